"""Schedules that people change, switch, delete, make again, pause and resume, while ticks are lost and sweeps die.

Each walk keeps beside it what Scheduler really fired. When all is over and quiet, every slot that was fired has its
row, and no other has one.
"""

import json
import random
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from galley.runs import Origin, SkipReason, Status
from galley.schedules import ScheduleDefinition
from galley.store import Bill, Claimed, Limits, Paused, Store
from support.outside import SLOT, FixedSchedules, RecordingQueue, message, schedule
from sweep import sweep

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
DRAFTER = "hourly-monitor"
LIMITS = Limits(pending=1_000, daily_budget_nanousd=None, worst_cost_nanousd=0)
GRACE = 3 * HOUR
CATCH_UP = ("latest", "all", "none")
EXPRESSIONS = ("cron(0/20 * * * ? *)", "cron(7 * * * ? *)", "rate(13 minutes)", "cron(30 0/2 * * ? *)")


class Killed(BaseException):
    """The sweep's process is gone."""


@dataclass
class Dying:
    """A store, a queue or Scheduler of a sweep that dies at one of its calls, before or after it."""

    inner: Any
    left: list[int]
    after: bool

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            self.left[0] -= 1
            if self.left[0] == 0 and not self.after:
                raise Killed
            answer = getattr(self.inner, name)(*given, **named)
            if self.left[0] == 0:
                raise Killed
            return answer

        return call


@dataclass
class Walk:
    """One schedule's life. ``fired`` are its true slots; ``open`` may have a row or not, since it was deleted then."""

    store: Store
    chance: random.Random
    at: datetime = SLOT + 3 * SECOND
    queue: RecordingQueue = field(default_factory=RecordingQueue)
    deployed: ScheduleDefinition | None = None
    fired: set[datetime] = field(default_factory=set)
    open: set[datetime] = field(default_factory=set)
    changed: bool = False

    def __post_init__(self) -> None:
        self.create()

    def step(self) -> None:
        """Let some seconds pass, fire what is due meanwhile, and let somebody do something."""
        self.wait(self.chance.choice((7, 40, 100, 300, 900)) * SECOND)
        acts = {self.sweep: 6, self.die: 3, self.work: 4, self.change: 2, self.delete: 0.5, self.pause: 1, self.idle: 4}
        self.chance.choices(list(acts), list(acts.values()))[0]()

    def wait(self, span: timedelta) -> None:
        """Let time pass; of what is fired meanwhile every other tick is lost."""
        for slot in [] if self.deployed is None else self.deployed.due(self.at, self.at + span):
            self.fired.add(slot)
            if self.chance.random() < 0.5:
                self.queue.sent.append(message(DRAFTER, slot, origin=Origin.SCHEDULE))
        self.at += span

    def sweep(self) -> None:
        self.swept(self.store, self.queue, self.schedules)
        self.changed = False

    def die(self) -> None:
        left, after = [self.chance.randint(1, 12)], self.chance.random() < 0.5
        parts = [Dying(part, left, after) for part in (self.store, self.queue, self.schedules)]
        try:
            self.swept(*parts)
            self.changed = False
        except Killed:
            pass

    def swept(self, store: Any, queue: Any, schedules: Any) -> None:
        done = sweep(schedules, store, queue, now=self.at, trace="sweep", remaining=lambda: 5 * MINUTE)
        assert done.broken == ()

    def work(self) -> None:
        for asked in self.queue.sent:
            outcome = self.store.claim(asked, LIMITS, owner=f"{self.at}", now=self.at, lease_until=self.at + MINUTE)
            if isinstance(outcome, Claimed):
                self.store.release(outcome.run, Status.EMPTY, "nothing_new", "", Bill(), now=self.at)
            elif isinstance(outcome, Paused):
                self.store.skip(asked, SkipReason.PAUSED, outcome.reason, now=self.at)
        self.queue.sent.clear()

    def change(self) -> None:
        """Change what is deployed, once between two sweeps: of two changes Scheduler itself remembers the last."""
        if self.deployed is None:
            self.create()
        elif not self.changed:
            self.changed = True
            fields: dict[str, Any] = self.chance.choice(
                [{"enabled": not self.deployed.enabled}, {"expression": self.chance.choice(EXPRESSIONS)}]
            )
            self.wait(timedelta(milliseconds=300))
            self.deployed = replace(self.deployed, modified=self.at, **fields)

    def create(self) -> None:
        contract = {"window_minutes": 30, "grace_minutes": GRACE // MINUTE, "catch_up": self.chance.choice(CATCH_UP)}
        text = json.dumps({"drafters": [DRAFTER], **contract})
        expression = self.chance.choice(EXPRESSIONS)
        self.deployed = schedule(
            "Watch", expression=expression, timezone="UTC", input=text, created=self.at, modified=self.at
        )
        self.changed = True

    def delete(self) -> None:
        if self.chance.random() < 0.5:
            self.wait(SECOND)
            self.open |= self.fired
            self.deployed = None
            if self.chance.random() < 0.5:
                self.wait(self.chance.choice((1, 100, 4_000)) * SECOND)
                self.create()

    def pause(self) -> None:
        if self.store.drafter(DRAFTER).paused is None:
            self.store.pause(DRAFTER, "by hand", now=self.at)
        else:
            self.store.resume(DRAFTER, now=self.at)

    def idle(self) -> None:
        pass

    @property
    def schedules(self) -> FixedSchedules:
        return FixedSchedules(() if self.deployed is None else (self.deployed,))

    def quiet(self) -> None:
        """Let nothing more come due, and sweep until every grace is over."""
        if self.deployed is not None:
            self.sweep()
            self.deployed = replace(self.deployed, enabled=False, modified=self.at)
        end = self.at + GRACE + HOUR
        while self.at < end:
            self.at += 15 * MINUTE
            self.sweep()

    def rows(self) -> set[datetime]:
        return {run.slot for run in self.store.history(DRAFTER, limit=10_000).runs}


@pytest.mark.guarantee("G4")
@pytest.mark.parametrize("seed", range(12))
def test_g4_however_a_schedule_is_changed_each_slot_that_was_fired_has_its_row_and_no_other(
    store: Store, seed: int
) -> None:
    walk = Walk(store, random.Random(seed))
    for _ in range(150):
        walk.step()
    walk.quiet()
    assert walk.rows() - walk.fired == set(), "rows of slots that were never fired"
    assert walk.fired - walk.open - walk.rows() == set(), "slots without an outcome"
