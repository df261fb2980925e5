"""Faults that users of other schedulers met after an outage, a pause or a change, each with its report.

The whole way of a slot is walked: schedules, dispatch, the queue, draft and the sweep (``support.calendar_system``).
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import authoring
from catch_up import MOST_CAUGHT_UP
from galley import observe
from galley.contract import InvalidTick, read_tick
from galley.instants import format_instant, parse_instant
from galley.runs import Origin, RunKey, iso_week
from galley.schedules import ScheduleDefinition
from galley_cli.local.state import StateDirectory
from galley_cli.template import read_template
from support.calendar_system import (
    CALL_TAKES,
    DAY,
    EVERYTHING,
    HOUR,
    MINUTE,
    SECOND,
    SWEEPS,
    SWEEPS_EVERY,
    TICKS,
    CalendarSystem,
    OneItem,
)
from support.outside import ROOT, schedule

MIDNIGHT = parse_instant("2026-06-10T00:00:00Z")
Start = Callable[..., CalendarSystem]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start a system at an instant."""
    monkeypatch.setitem(authoring.SHAPES, "digest", OneItem)
    state = StateDirectory.open(tmp_path / "state")

    def started(at: datetime, *definitions: ScheduleDefinition, **settings: Any) -> CalendarSystem:
        return CalendarSystem(state, at, definitions, **settings)

    yield started
    state.close()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What is counted, and how often."""
    names: Counter[str] = Counter()
    monkeypatch.setattr(observe, "count", lambda name: names.update([name]))
    return names


def promising(expression: str, grace: timedelta, catch_up: str, **change: Any) -> ScheduleDefinition:
    """Return a schedule of daily-digest in UTC that was made at midnight."""
    made = json.loads(schedule().input) | {"grace_minutes": grace // MINUTE, "catch_up": catch_up}
    fields = {"timezone": "UTC", "input": json.dumps(made), "created": MIDNIGHT, "modified": MIDNIGHT, **change}
    return schedule(expression=expression, **fields)


EVERY_FIVE_MINUTES = "cron(0/5 * * * ? *)"


@pytest.mark.guarantee("G4")
def test_g4_after_a_long_outage_a_frequent_schedule_goes_on_and_each_lost_slot_has_its_row(start: Start) -> None:
    """https://github.com/kubernetes/kubernetes/issues/42649

    After more than a hundred missed starts the job was never started again.
    """
    often = promising(EVERY_FIVE_MINUTES, 30 * MINUTE, "all")
    system = start(MIDNIGHT, often)
    system.until(MIDNIGHT + 12 * HOUR, frozenset())
    system.until(MIDNIGHT + 13 * HOUR)
    missed = [run for run in system.rows() if run.reason == "misfired"]
    caught_up = [run for run in system.rows() if run.origin is Origin.CATCH_UP and run.reason != "misfired"]
    assert [len(missed), len(caught_up)] == [144 - 5, 5], "the sweep comes five past, when 11:35 is just in its grace"
    assert [str(run.status) for run in caught_up] == ["pending"] * 5
    assert system.became()[144:] == ["pending"] * 12
    assert [run.slot for run in system.rows()] == [MIDNIGHT + number * 5 * MINUTE for number in range(144 + 12)]


def test_a_schedule_that_is_moved_runs_for_no_slot_from_before_its_change(start: Start) -> None:
    """https://github.com/dagster-io/dagster/issues/13597

    Moving a daily schedule to a later hour launched the run of the day before, at once.
    """
    early = promising("cron(15 1 * * ? *)", DAY, "latest")
    system = start(MIDNIGHT, early)
    system.until(MIDNIGHT + 7 * HOUR)
    system.definitions = (replace(early, expression="cron(15 2 * * ? *)", modified=system.at),)
    system.until(MIDNIGHT + 25 * HOUR)
    assert [run.slot for run in system.rows()] == [MIDNIGHT + 75 * MINUTE]
    system.until(MIDNIGHT + 27 * HOUR)
    assert [run.slot for run in system.rows()] == [MIDNIGHT + 75 * MINUTE, MIDNIGHT + 26 * HOUR + 15 * MINUTE]
    assert len(system.calls) == 2


@pytest.mark.parametrize("working", [EVERYTHING, frozenset({SWEEPS})], ids=["while ticks come", "while no tick comes"])
def test_the_days_of_a_pause_are_recorded_and_not_drafted_afterwards(start: Start, working: frozenset[str]) -> None:
    """https://github.com/dagster-io/dagster/issues/7010

    A schedule that was turned on again ran for all the days that it had been off.
    """
    daily = promising("cron(0 6 * * ? *)", 5 * DAY, "all")
    system = start(MIDNIGHT, daily)
    system.store.pause("daily-digest", "on holiday", now=system.at)
    system.until(MIDNIGHT + 10 * DAY, working)
    system.store.resume("daily-digest", now=system.at)
    system.until(MIDNIGHT + 10 * DAY + 5 * HOUR)
    assert system.became() == ["paused"] * 10
    assert system.calls == []
    system.until(MIDNIGHT + 11 * DAY)
    assert system.became() == ["paused"] * 10 + ["pending"]


def test_the_days_for_which_a_schedule_was_disabled_are_not_drafted_afterwards(start: Start) -> None:
    """https://github.com/dagster-io/dagster/issues/13329

    The same for the schedule itself: EventBridge fires none of these slots, so none of them is due.
    """
    daily = promising("cron(0 6 * * ? *)", 20 * DAY, "all")
    system = start(MIDNIGHT, daily)
    system.definitions = (replace(daily, enabled=False, modified=MIDNIGHT),)
    system.until(MIDNIGHT + 10 * DAY)
    system.definitions = (replace(daily, modified=system.at),)
    system.until(MIDNIGHT + 11 * DAY)
    assert [run.slot for run in system.rows()] == [MIDNIGHT + 10 * DAY + 6 * HOUR]


@pytest.mark.parametrize(("catch_up", "drafted"), [("latest", [1, 0]), ("all", [MOST_CAUGHT_UP, 36 - MOST_CAUGHT_UP])])
def test_what_an_outage_missed_is_not_drafted_in_one_burst(start: Start, catch_up: str, drafted: list[int]) -> None:
    """https://github.com/inngest/inngest/pull/3569

    After an outage of the queue every cron that had been missed was fired in quick succession.
    """
    over = MIDNIGHT + 3 * HOUR
    often = promising(EVERY_FIVE_MINUTES, 6 * HOUR, catch_up, end=over - SECOND)
    system = start(MIDNIGHT, often)
    system.until(over, frozenset())
    system.until(over + 2 * SWEEPS_EVERY)
    assert [len(swept.caught_up) for swept in system.swept] == drafted
    assert len(system.calls) == sum(drafted)
    assert system.most_at_once == 1, "one after the other, whatever waits"
    assert all(later - before >= CALL_TAKES for before, later in pairwise(system.calls))


@pytest.mark.guarantee("G2")
@pytest.mark.parametrize("catch_up", ["latest", "all"])
def test_g2_what_was_delayed_and_comes_at_once_is_drafted_no_further_than_the_gate(start: Start, catch_up: str) -> None:
    """https://github.com/itk-dev-rpa/OpenOrchestrator/issues/66

    A trigger that had been delayed ran as often as it was due meanwhile, all at once.
    """
    often = promising(EVERY_FIVE_MINUTES, 6 * HOUR, catch_up)
    system = start(MIDNIGHT, often, pending_limit=3)
    system.until(MIDNIGHT + 2 * HOUR, frozenset({TICKS}))
    system.until(MIDNIGHT + 3 * HOUR)
    assert system.became().count("pending") == len(system.calls) == 3
    assert set(system.became()) == {"pending", "gate", *(["coalesced"] if catch_up == "latest" else [])}
    assert system.store.drafter("daily-digest").pending == 3


@pytest.mark.guarantee("G1")
@pytest.mark.parametrize(("catch_up", "drafted"), [("latest", 1), ("all", 8)])
def test_g1_what_piles_up_while_no_worker_runs_is_drafted_once_for_each_slot(
    start: Start, catch_up: str, drafted: int
) -> None:
    """https://github.com/triggerdotdev/trigger.dev/issues/1566

    Restarted each night, the workers found one task queued and copied thousands of times. Here the sweep does ask
    again for a slot that has no row, once in each sweep and for a bounded number of slots: a copy costs a claim, and
    nothing else.
    """
    hourly = promising("cron(0 * * * ? *)", DAY, catch_up)
    system = start(MIDNIGHT, hourly)
    for number in range(8):
        system.at = MIDNIGHT + number * HOUR
        for _ in range(3):
            system.tick(hourly, system.at)
        assert system.queue.waiting() == number + 1, "the queue swallows a tick that is repeated"
    system.at = MIDNIGHT
    system.until(MIDNIGHT + 8 * HOUR, frozenset({SWEEPS}))
    sweeps = 8 * HOUR // SWEEPS_EVERY
    asked = [len(swept.caught_up) for swept in system.swept]
    assert len(asked) == sweeps
    assert 0 < max(asked) <= drafted, "no copy of a copy"
    assert system.queue.waiting() == 8 + sum(asked)
    system.work()
    assert system.queue.waiting() == 0
    assert system.became().count("pending") == len(system.calls) == drafted
    assert [run.slot for run in system.rows()] == [MIDNIGHT + number * HOUR for number in range(8)]


@pytest.mark.guarantee("G1")
@pytest.mark.parametrize("order", [(TICKS, SWEEPS), (SWEEPS, TICKS)])
def test_g1_a_slot_at_whose_time_a_pause_ends_is_drafted_once(start: Start, order: tuple[str, str]) -> None:
    """https://github.com/argoproj/argo-workflows/issues/4445

    Resuming a suspended cron workflow fired it twice: live, and as missed.
    """
    hourly = promising("cron(0 * * * ? *)", HOUR, "all", modified=MIDNIGHT + MINUTE)
    slot = MIDNIGHT + HOUR
    system = start(MIDNIGHT + 30 * MINUTE, hourly)
    system.sweep()
    system.store.pause("daily-digest", "for a moment", now=system.at)
    system.at = slot + 5 * SECOND
    system.store.resume("daily-digest", now=system.at)
    assert system.sweep().caught_up == (), "its own tick may still be on its way"
    system.at = slot + 3 * MINUTE
    for part in order:
        if part == TICKS:
            system.tick(hourly, slot)
        else:
            assert system.sweep().caught_up == (str(RunKey("daily-digest", slot)),)
    assert system.queue.waiting() == 1, "both messages have one key"
    system.until(slot + 50 * MINUTE)
    assert (system.became(), len(system.calls)) == (["pending"], 1)


def test_a_weekly_run_that_comes_late_is_drafted_within_the_grace_of_its_own_schedule(start: Start) -> None:
    """https://github.com/sonichi/sutando/pull/3437

    One lateness limit of 900 seconds for every job dropped daily ones that came 33 and 41 minutes late.
    """
    (weekly,) = [one for one in read_template(ROOT / "template.yaml").schedules if one.name == "WeeklyReport"]
    begin = parse_instant("2026-06-07T00:00:00Z")
    slot = parse_instant("2026-06-08T12:00:00Z")
    system = start(begin, weekly.definition(begin, begin))
    system.until(slot, frozenset())
    system.at = slot + 20 * MINUTE
    system.tick(system.definitions[0], slot)
    system.work()
    assert (system.became("weekly-report"), system.rows("weekly-report")[0].slot) == (["pending"], slot)
    with pytest.raises(InvalidTick, match="grace_minutes is missing"):
        read_tick({"drafters": ["weekly-report"], "window_minutes": 60, "catch_up": "latest"})


@pytest.mark.parametrize(
    ("catch_up", "outage", "lost"),
    [
        pytest.param("latest", 3 * HOUR, {"coalesced": 2}, id="shorter than the grace"),
        pytest.param("latest", 9 * HOUR, {"coalesced": 4, "misfired": 4}, id="longer than the grace"),
        pytest.param("all", 9 * HOUR, {"misfired": 4}, id="longer, where each slot is drafted"),
        pytest.param("none", 9 * HOUR, {"missed": 9}, id="where nothing is caught up"),
    ],
)
def test_each_slot_that_was_lost_is_counted_once_under_its_reason(
    start: Start, told: Counter[str], catch_up: str, outage: timedelta, lost: dict[str, int]
) -> None:
    """https://github.com/temporalio/temporal/issues/8087

    Runs that were skipped showed in no metric. (And the default of how far back runs are caught up went from a minute
    to a year, https://github.com/temporalio/temporal/pull/4332: here every schedule says its own grace.)
    """
    hourly = promising("cron(0 * * * ? *)", 5 * HOUR, catch_up, modified=MIDNIGHT + SECOND, end=MIDNIGHT + outage)
    system = start(MIDNIGHT + MINUTE, hourly)
    system.until(MIDNIGHT + outage + 3 * MINUTE, frozenset())
    system.until(MIDNIGHT + 2 * DAY)
    assert {name: told[f"run_skipped_{name}"] for name in lost} == lost
    assert sum(told.values()) == outage // HOUR, "and each of the others once, as what it became"
    week = system.store.week("daily-digest", iso_week(MIDNIGHT))
    assert {name: week[f"skipped:{name}"] for name in lost} == lost
    shown = Counter(str(run.reason) for run in system.rows() if run.reason in lost)
    assert shown == lost
    assert all(run.detail for run in system.rows() if run.reason in lost)
    assert format_instant(system.rows()[0].slot) == "2026-06-10T01:00:00Z"
