"""Whatever becomes of a run in a sweep is counted under its name, and what the sweep lost to others is not."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from abandoned import ABANDONED_AFTER, GIVEN_UP_AFTER, end_abandoned, is_abandoned
from galley import observe
from galley.runs import SkipReason
from galley.store import Claimed, Limits, RowsDisagree, Store, StoreBusy
from in_flight import list_in_flight
from support.outside import SLOT, FixedSchedules, RecordingQueue, message, schedule
from sweep import Swept, sweep
from unsent import QUEUED_FOR, send_unsent

LATE = SLOT + timedelta(hours=3)
MUCH_LATER = SLOT + ABANDONED_AFTER + timedelta(seconds=1)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is counted."""
    names: list[str] = []
    monkeypatch.setattr(observe, "count", names.append)
    return names


@pytest.fixture
def abandoned(store: Store) -> None:
    """A run that was begun at its slot, and whose worker died at once."""
    limits = Limits(pending=1, daily_budget_nanousd=None, worst_cost_nanousd=0)
    store.claim(message(), limits, owner="crashed", now=SLOT, lease_until=SLOT)


@pytest.mark.usefixtures("abandoned")
def test_an_abandoned_run_is_counted_as_failed(store: Store, told: list[str]) -> None:
    end_abandoned(list_in_flight(store).runs, store, RecordingQueue(), now=MUCH_LATER)
    assert told == ["run_failed"]


@pytest.mark.usefixtures("abandoned")
def test_a_run_that_died_without_an_error_is_said_to_have_none(store: Store) -> None:
    queue = RecordingQueue()
    end_abandoned(list_in_flight(store).runs, store, queue, now=MUCH_LATER)
    assert [letter.detail for letter in queue.buried] == [
        "nobody has worked on it since 2026-11-27T06:00:00Z and its message seems to be gone"
    ]


@pytest.mark.usefixtures("abandoned")
def test_an_abandoned_run_whose_rows_are_held_by_others_is_named_and_left_to_the_next_sweep(
    store: Store, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(*given: object, **named: object) -> None:
        raise StoreBusy("others hold the rows")

    monkeypatch.setattr(store, "release", held)
    ended = end_abandoned(list_in_flight(store).runs, store, RecordingQueue(), now=MUCH_LATER)
    assert (ended.runs, ended.broken, told) == ((), (f"{message().key}: others hold the rows",), [])


def swept(store: Store, now: datetime) -> Swept:
    schedules = FixedSchedules((schedule(created=SLOT, modified=SLOT),))
    return sweep(schedules, store, RecordingQueue(), now=now, trace="t", remaining=lambda: timedelta(minutes=5))


def test_a_slot_past_its_grace_is_counted_as_misfired(store: Store, told: list[str]) -> None:
    swept(store, LATE)
    assert told == ["run_skipped_misfired"]


def test_a_slot_that_somebody_else_recorded_meanwhile_is_neither_counted_nor_told(
    store: Store, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    skip = store.skip

    def after_somebody_else(*given: object, **named: object) -> object:
        skip(message(), SkipReason.PAUSED, "on holiday", now=LATE)
        return skip(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "skip", after_somebody_else)
    assert (swept(store, LATE).skipped, told) == ((), [])


def test_a_slot_at_the_very_instant_of_the_schedules_last_change_is_due(store: Store) -> None:
    assert swept(store, SLOT + timedelta(minutes=5)).caught_up == (str(message().key),)


@pytest.mark.parametrize("error", [StoreBusy("others hold the rows"), RowsDisagree("the table was written by hand")])
def test_a_message_that_was_sent_again_and_cannot_be_noted_is_named(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: StoreBusy | RowsDisagree
) -> None:
    def broken(*given: object, **named: object) -> None:
        raise error

    store.queue(message(), now=SLOT)
    monkeypatch.setattr(store, "remind", broken)
    sent = send_unsent(
        list_in_flight(store).runs, store, RecordingQueue(), now=SLOT + QUEUED_FOR + timedelta(seconds=1)
    )
    assert (sent.runs, sent.broken) == ((), (f"{message().key}: {error.detail}",))


def test_a_begun_run_that_a_restart_took_from_its_worker_is_given_up_in_the_end(store: Store) -> None:
    limits = Limits(pending=1, daily_budget_nanousd=None, worst_cost_nanousd=0)
    claimed = store.claim(message(), limits, owner="stopped", now=SLOT, lease_until=SLOT)
    assert isinstance(claimed, Claimed)
    taken = replace(claimed.run, owner=None, lease_until=None)
    assert not is_abandoned(taken, SLOT + GIVEN_UP_AFTER)
    assert is_abandoned(taken, SLOT + GIVEN_UP_AFTER + timedelta(seconds=1))
