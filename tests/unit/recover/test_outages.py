"""An outage of three days, over each clock change of a year: what every slot has become when all is over.

The slots that were due are found by another way than the sweep's: minute by minute in UTC, by what the zone's clocks
show. A wall time that is shown twice counts on its first pass (the rule of EventBridge Scheduler:
https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html).
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest

from galley.runs import Origin, Status
from galley.schedule import zone
from galley.schedules import ScheduleDefinition
from galley.store import Bill, Claimed, Limits, Store
from support.outside import FixedSchedules, RecordingQueue, schedule
from sweep import SETTLING, Swept, sweep

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
OUTAGE = 3 * DAY
POLICIES = ("all", "latest", "none")
NO_LIMITS = Limits(pending=10_000, daily_budget_nanousd=None, worst_cost_nanousd=0)

CHANGES = {
    "New York, spring": ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    "New York, autumn": ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    "London, spring": ("Europe/London", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    "London, autumn": ("Europe/London", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    "Sydney, autumn": ("Australia/Sydney", datetime(2026, 4, 4, 16, tzinfo=UTC)),
    "Sydney, spring": ("Australia/Sydney", datetime(2026, 10, 3, 16, tzinfo=UTC)),
    "Lord Howe, autumn": ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    "Lord Howe, spring": ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    "no change": ("Europe/London", datetime(2026, 6, 7, 1, tzinfo=UTC)),
}
"""Each change of 2026, by the instant at which the clocks are changed. In the tables below all fall on a Sunday."""


@dataclass(frozen=True)
class Cadence:
    """How often a schedule is due: its expression, the wall times that it means, and for how long a slot is good."""

    expression: str
    means: Callable[[datetime], bool]
    grace: timedelta


CADENCES = {
    # Half past, and half past one each day: where the clocks change, these do not exist, or come twice.
    "hourly": Cadence("cron(30 * * * ? *)", lambda wall: wall.minute == 30, 3 * HOUR),
    "daily": Cadence("cron(30 1 * * ? *)", lambda wall: (wall.hour, wall.minute) == (1, 30), 40 * HOUR),
    "weekly": Cadence(
        "cron(30 2 ? * SUN *)",
        lambda wall: (wall.isoweekday(), wall.hour, wall.minute) == (7, 2, 30),
        6 * DAY,
    ),
}


@cache
def due(cadence: str, timezone: str, first: datetime, end: datetime) -> tuple[datetime, ...]:
    """Return the slots in ``[first, end)``."""

    def walk() -> Iterator[datetime]:
        moment = first
        while moment < end:
            wall = moment.astimezone(zone(timezone))
            if wall.fold == 0 and CADENCES[cadence].means(wall):
                yield moment
            moment += MINUTE

    return tuple(walk())


def expected(cadence: str, policy: str, slots: tuple[datetime, ...], over: datetime) -> list[tuple[datetime, str]]:
    """Return what the contract says of the slots of an outage that was over at an instant."""
    rows = []
    for slot in slots:
        if policy == "none":
            rows.append((slot, "missed"))
        elif over > slot + CADENCES[cadence].grace:
            rows.append((slot, "misfired"))
        elif policy == "latest" and slot != slots[-1]:
            rows.append((slot, "coalesced"))
        else:
            rows.append((slot, "drafted"))
    return rows


@dataclass
class System:
    """A store, a queue, and nine schedules: each cadence under each policy. No tick comes; only the sweep works."""

    store: Store
    definitions: tuple[ScheduleDefinition, ...]
    queue: RecordingQueue

    def sweep(self, now: datetime) -> Swept:
        done = sweep(
            FixedSchedules(self.definitions), self.store, self.queue, now=now, trace="", remaining=lambda: HOUR
        )
        assert not done.broken
        assert not done.unfinished
        return done

    def work(self, now: datetime) -> None:
        """Draft what was sent."""
        for message in self.queue.sent:
            outcome = self.store.claim(message, NO_LIMITS, owner="worker", now=now, lease_until=now + MINUTE)
            if isinstance(outcome, Claimed):
                self.store.release(outcome.run, Status.EMPTY, "drafted", "", Bill(), now=now)
        self.queue.sent.clear()

    def rows(self) -> dict[str, list[tuple[datetime, str]]]:
        found = {}
        for definition in self.definitions:
            runs = self.store.history(definition.name, limit=1_000).runs
            assert {run.origin for run in runs} <= {Origin.CATCH_UP}
            found[definition.name] = [(run.slot, str(run.reason)) for run in reversed(runs)]
        return found


def deploy(store: Store, timezone: str, begin: datetime, end: datetime) -> System:
    definitions = []
    for cadence, one in CADENCES.items():
        for policy in POLICIES:
            contract = {
                "drafters": [f"{cadence}-{policy}"],
                "window_minutes": 30,
                "grace_minutes": one.grace // MINUTE,
                "catch_up": policy,
            }
            definitions.append(
                schedule(
                    f"{cadence}-{policy}",
                    expression=one.expression,
                    timezone=timezone,
                    input=json.dumps(contract),
                    created=begin - 30 * DAY,
                    modified=begin,
                    end=end,
                )
            )
    return System(store, tuple(definitions), RecordingQueue())


@pytest.mark.guarantee("G4")
@pytest.mark.parametrize("change", CHANGES)
def test_g4_after_an_outage_each_slot_has_become_what_its_contract_says(store: Store, change: str) -> None:
    timezone, turned = CHANGES[change]
    begin = turned.replace(minute=0) - 40 * HOUR
    over = begin + OUTAGE + 10 * MINUTE
    system = deploy(store, timezone, begin, over - SETTLING)
    says = {
        f"{cadence}-{policy}": expected(cadence, policy, due(cadence, timezone, begin, over), over)
        for cadence in CADENCES
        for policy in POLICIES
    }

    system.sweep(over)
    system.work(over)
    at_once = system.rows()
    assert at_once == {
        name: [(slot, reason) for slot, reason in rows if not _waits(name, slot, over)] for name, rows in says.items()
    }
    again = system.sweep(over + MINUTE)
    assert (again.caught_up, again.skipped) == ((), ())
    assert system.rows() == at_once

    for days in (1, 3, 7):
        system.sweep(over + days * DAY)
        assert system.queue.sent == []
    assert system.rows() == says
    assert system.sweep(over + 8 * DAY) == Swept()
    assert system.rows() == says
    for known in store.swept_schedules().schedules:
        if says[known.definition.name]:
            assert known.swept_until >= over - SETTLING, "each slot has its row, so none is looked at again"


def _waits(name: str, slot: datetime, over: datetime) -> bool:
    """Tell whether nothing is written of the slot yet: it is not caught up, but its own message may still come."""
    cadence, _, policy = name.partition("-")
    return policy == "none" and over <= slot + CADENCES[cadence].grace


def test_the_outages_hold_what_a_clock_change_takes_away_and_repeats() -> None:
    """The stories would prove nothing if no wall time of theirs were missing or shown twice."""
    counted = {}
    for change, (timezone, turned) in CHANGES.items():
        begin = turned.replace(minute=0) - 40 * HOUR
        slots = [len(due(cadence, timezone, begin, begin + OUTAGE + 10 * MINUTE)) for cadence in CADENCES]
        counted[change] = tuple(slots)
    assert counted == {
        "New York, spring": (72, 3, 0),
        "New York, autumn": (71, 3, 1),
        "London, spring": (72, 2, 1),
        "London, autumn": (71, 3, 1),
        "Sydney, autumn": (71, 3, 1),
        "Sydney, spring": (72, 3, 0),
        "Lord Howe, autumn": (72, 3, 1),
        "Lord Howe, spring": (73, 3, 1),
        "no change": (72, 3, 1),
    }
