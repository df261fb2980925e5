"""Runs that were begun and that nobody works on any more."""

from datetime import timedelta

import pytest

from abandoned import ABANDONED_AFTER, GIVEN_UP_AFTER, end_abandoned
from galley.queue import DeadLetter, QueueUnavailable
from galley.retry import RetryLater
from galley.runs import Run, RunKey, Status
from galley.store import Bill, Claimed, Limits, RowsDisagree, Settled, Store
from in_flight import list_in_flight
from support.outside import SLOT, RecordingQueue, message

KEY = RunKey("daily-digest", SLOT)
LEASE = timedelta(minutes=5)
SECOND = timedelta(seconds=1)
LIMITS = Limits(pending=1, daily_budget_nanousd=None, worst_cost_nanousd=700)


def in_flight(store: Store) -> tuple[Run, ...]:
    return list_in_flight(store).runs


def begun(store: Store) -> Run:
    claimed = store.claim(message(), LIMITS, owner="crashed", now=SLOT, lease_until=SLOT + LEASE)
    assert isinstance(claimed, Claimed)
    return claimed.run


def row(store: Store) -> Run:
    found = store.run(KEY)
    assert found is not None
    return found


def unavailable(letter: DeadLetter) -> None:
    raise QueueUnavailable([str(letter.run)], "down")


@pytest.mark.guarantee("G4")
def test_g4_a_run_whose_message_died_with_its_worker_is_failed_and_gives_its_place_back(store: Store) -> None:
    begun(store)
    ended = end_abandoned(in_flight(store), store, RecordingQueue(), now=SLOT + LEASE + ABANDONED_AFTER + SECOND)
    assert ended.runs == (str(KEY),)
    assert (row(store).status, row(store).reason) == (Status.FAILED, "abandoned")
    assert store.drafter("daily-digest").pending == 0


@pytest.mark.guarantee("G5")
def test_g5_an_abandoned_run_has_a_letter_before_its_row_says_failed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(store)
    queue = RecordingQueue()
    with monkeypatch.context() as down:
        down.setattr(queue, "bury", unavailable)
        ended = end_abandoned(in_flight(store), store, queue, now=SLOT + LEASE + ABANDONED_AFTER + SECOND)
    assert ended.runs == ()
    assert ended.broken == (f"{KEY}: could not send {KEY}: down",)
    assert row(store).status is Status.DRAFTING
    end_abandoned(in_flight(store), store, queue, now=SLOT + LEASE + ABANDONED_AFTER + SECOND)
    (letter,) = queue.buried
    assert (letter.run, letter.reason, letter.attempts) == (str(KEY), "abandoned", 1)
    assert letter.body == message().model_dump_json()
    assert letter.detail == row(store).detail


@pytest.mark.guarantee("G11")
def test_g11_what_the_dead_owner_had_reserved_counts_as_paid(store: Store) -> None:
    begun(store)
    end_abandoned(in_flight(store), store, RecordingQueue(), now=SLOT + LEASE + ABANDONED_AFTER + SECOND)
    assert row(store).cost_nanousd == 700
    assert store.committed_nanousd("daily-digest", "2026-11-27") == 700


def test_a_run_that_may_still_be_worked_on_is_left_alone(store: Store) -> None:
    begun(store)
    assert end_abandoned(in_flight(store), store, RecordingQueue(), now=SLOT + LEASE + ABANDONED_AFTER).runs == ()
    assert row(store).status is Status.DRAFTING


def test_a_run_that_waits_for_its_next_attempt_is_left_alone_until_long_after_it(store: Store) -> None:
    next_attempt = SLOT + timedelta(hours=1)
    postponed = store.postpone(
        begun(store), RetryLater("overloaded", "529"), Bill(), now=SLOT, next_attempt=next_attempt
    )
    assert isinstance(postponed, Settled)
    assert end_abandoned(in_flight(store), store, RecordingQueue(), now=next_attempt + GIVEN_UP_AFTER).runs == ()
    assert end_abandoned(
        in_flight(store), store, RecordingQueue(), now=next_attempt + GIVEN_UP_AFTER + SECOND
    ).runs == (str(KEY),)
    assert "overloaded: 529" in str(row(store).detail)


@pytest.mark.guarantee("G1")
def test_g1_an_owner_that_comes_back_late_loses_to_the_sweep_and_the_other_way_round(store: Store) -> None:
    crashed = begun(store)
    end_abandoned(in_flight(store), store, RecordingQueue(), now=SLOT + LEASE + ABANDONED_AFTER + SECOND)
    late = store.release(crashed, Status.EMPTY, "nothing_new", "", Bill(), now=SLOT + timedelta(hours=3))
    assert not isinstance(late, Settled)
    assert end_abandoned(in_flight(store), store, RecordingQueue(), now=SLOT + timedelta(days=1)).runs == ()
    assert store.drafter("daily-digest").pending == 0


def test_a_run_that_cannot_be_ended_is_named_and_stops_no_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(store)

    def refuses(*given: object, **named: object) -> None:
        raise RowsDisagree("the count of daily-digest would fall below zero")

    monkeypatch.setattr(store, "release", refuses)
    ended = end_abandoned(in_flight(store), store, RecordingQueue(), now=SLOT + LEASE + ABANDONED_AFTER + SECOND)
    assert ended.runs == ()
    assert ended.broken == (f"{KEY}: the count of daily-digest would fall below zero",)
