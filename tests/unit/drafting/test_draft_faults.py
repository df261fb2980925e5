"""Faults that users of other systems met with work that was begun or that waited for a person, each with its report."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import authoring
from galley import observe
from galley.instants import parse_instant
from galley.runs import Status
from galley.schedules import ScheduleDefinition
from galley.store import Approve, Settled
from galley_cli.local.state import StateDirectory
from support.calendar_system import DAY, HOUR, MINUTE, SECOND, CalendarSystem, OneItem
from support.outside import schedule

SLOT = parse_instant("2026-06-10T06:00:00Z")
Start = Callable[..., CalendarSystem]


class Killed(BaseException):
    """The worker is gone: none of our code runs any more."""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start a system whose first slot is due now."""
    monkeypatch.setitem(authoring.SHAPES, "digest", OneItem)
    state = StateDirectory.open(tmp_path / "state")

    def started(expression: str = "cron(0 6 * * ? *)", **settings: Any) -> CalendarSystem:
        return CalendarSystem(state, SLOT, (_daily_digest(expression),), **settings)

    yield started
    state.close()


def _daily_digest(expression: str) -> ScheduleDefinition:
    promised = json.dumps(json.loads(schedule().input) | {"grace_minutes": DAY // MINUTE})
    return schedule(expression=expression, timezone="UTC", input=promised, created=SLOT, modified=SLOT)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What is counted, and how often."""
    names: Counter[str] = Counter()
    monkeypatch.setattr(observe, "count", lambda name: names.update([name]))
    return names


@pytest.mark.guarantee("G1")
def test_g1_a_worker_that_died_before_its_draft_keeps_nobody_from_it_past_its_lease(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """https://github.com/aws-powertools/powertools-lambda-python/issues/1038

    A function that ran into its time limit left its idempotency record in progress, and every retry was refused.
    """
    system = start(visibility=MINUTE)
    system.tick(system.definitions[0], SLOT)

    def dies(assignment: object) -> None:
        raise Killed

    with monkeypatch.context() as broken:
        broken.setattr(OneItem, "collect", dies)
        with pytest.raises(Killed):
            system.work()
    system.at = SLOT + 2 * MINUTE
    system.work()
    assert (system.became(), system.calls) == (["drafting"], []), "as long as the lease lasts it might live"
    system.at = SLOT + 5 * MINUTE + SECOND
    system.work()
    assert (system.became(), len(system.calls)) == (["pending"], 1)
    assert system.queue.waiting() == 0


@pytest.mark.guarantee("G1")
def test_g1_a_worker_that_died_after_its_draft_is_followed_by_no_second_call(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """https://github.com/aws-powertools/powertools-lambda-python/issues/8049

    Since such records expire with the time limit, what was done just before it is done twice.
    """
    system = start(visibility=MINUTE)
    system.tick(system.definitions[0], SLOT)
    stores = system.store.store

    def dies(*given: Any, **named: Any) -> None:
        stores(*given, **named)
        raise Killed

    with monkeypatch.context() as broken:
        broken.setattr(system.store, "store", dies)
        with pytest.raises(Killed):
            system.work()
    drafted = system.rows()
    assert [run.status for run in drafted] == [Status.PENDING]
    for minutes in (2, 10, 60):
        system.at = SLOT + minutes * MINUTE
        system.work()
    assert (system.rows(), len(system.calls)) == (drafted, 1)
    assert system.queue.waiting() == 0


def _approve_the_oldest(system: CalendarSystem) -> None:
    run = next(one for one in system.rows() if one.status is Status.PENDING)
    read = {"version": run.version, "read_hash": str(run.text_hash), "reviewer": "ada", "now": system.at}
    assert isinstance(system.store.decide(run.key, Approve(), **read), Settled)


@pytest.mark.guarantee("G2")
def test_g2_a_slot_that_finds_the_gate_full_is_skipped_and_neither_dead_nor_made_up_later(start: Start) -> None:
    """https://github.com/vikasprogrammer/agentric/issues/139

    Routine approvals piled up without an answer, and the agents stalled.
    """
    system = start("cron(0 * * * ? *)", pending_limit=3)
    system.until(SLOT + 3 * HOUR + 30 * MINUTE)
    assert system.became() == ["pending", "pending", "pending", "gate"]
    assert len(system.calls) == 3
    assert system.queue.dead_runs() == ()
    gated = system.rows()[3]
    _approve_the_oldest(system)
    system.until(SLOT + 4 * HOUR + 30 * MINUTE)
    assert system.became() == ["approved", "pending", "pending", "gate", "pending"]
    assert system.rows()[3] == gated
    assert len(system.calls) == 4


@pytest.mark.guarantee("G2")
def test_g2_a_gate_that_stays_full_is_told_at_each_slot_and_opens_with_the_first_decision(
    start: Start, told: Counter[str]
) -> None:
    """https://github.com/gagan114662/os1-samantha/issues/146

    Items for review had no end and no batch decision; old ones blocked new ones, and nobody was told
    (https://github.com/sparq-org/sparq/issues/5145).
    """
    system = start(pending_limit=3)
    system.until(SLOT + 11 * DAY - HOUR)
    assert system.became() == ["pending"] * 3 + ["gate"] * 8
    assert {run.detail for run in system.rows()[3:]} == {
        "3 drafts of daily-digest wait for a decision; its limit is 3"
    }, "each slot says what it waits for"
    assert told["run_skipped_gate"] == 8
    _approve_the_oldest(system)
    system.until(SLOT + 11 * DAY + HOUR)
    assert system.became()[-1] == "pending"


@pytest.mark.guarantee("G2")
def test_g2_a_gate_that_nobody_opens_opens_by_itself_where_old_drafts_expire(start: Start) -> None:
    """https://github.com/gagan114662/os1-samantha/issues/146

    Items for review had no end, and old ones blocked new ones.
    """
    system = start(pending_limit=3, expire_hours=6 * 24 + 12)
    system.until(SLOT + 8 * DAY + HOUR)
    assert system.became() == ["expired"] * 2 + ["pending"] + ["gate"] * 4 + ["pending"] * 2
    assert system.store.drafter("daily-digest").pending == 3


@pytest.mark.guarantee("G1")
def test_g1_two_schedules_of_one_job_make_one_draft_for_a_slot(start: Start) -> None:
    """https://github.com/langchain-ai/managed-deepagents/issues/1

    Each deployment added a second, identical schedule, and the old ones went on.
    """
    system = start()
    (one,) = system.definitions
    other = replace(one, name="DailyDigestAgain", arn=f"{one.arn}Again")
    system.definitions = (one, other)
    system.until(SLOT + 2 * DAY)
    assert system.became() == ["pending", "pending"]
    assert len(system.calls) == 2
    assert {run.schedule for run in system.rows()} <= {one.arn, other.arn}
    system.at = SLOT + 2 * DAY + MINUTE
    for definition in (one, other):
        system.tick(definition, SLOT + 2 * DAY)
    assert system.queue.waiting() == 1, "both ticks give one message"
