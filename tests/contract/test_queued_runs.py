"""Runs that were asked for and wait for their message."""

from datetime import timedelta

import pytest

from contract.material import BILL, LEASE, NOW, claim, claimed, everything, later, message, settled
from galley.retry import RetryLater
from galley.runs import Run, Status
from galley.store import AlreadyThere, Bill, Conflict, Gated, Limits, NoSuchRun, Settled, Store

MINUTE = timedelta(minutes=1)
ONE_PLACE = Limits(pending=1, daily_budget_nanousd=None, worst_cost_nanousd=0)


def test_a_run_that_was_asked_for_is_queued_with_its_resend_number_and_holds_no_place(store: Store) -> None:
    asked = message(resend=3)

    run = settled(store.queue(asked, now=NOW))

    assert run == store.run(asked.key)
    assert (run.status, run.resend, run.attempts, run.message) == (Status.QUEUED, 3, 0, asked)
    assert [one.key for one in store.watched(Status.QUEUED).runs] == [run.key]
    assert store.drafter(run.drafter).pending == 0
    assert claimed(store, asked).status is Status.DRAFTING


def test_a_run_that_has_a_row_is_not_queued_over_it(store: Store) -> None:
    run = claimed(store)
    before = everything(store)

    assert store.queue(message(), now=NOW) == AlreadyThere(run)
    assert everything(store) == before


@pytest.mark.guarantee("G2")
def test_g2_a_run_that_was_queued_needs_a_free_place_like_any_other(store: Store) -> None:
    settled(store.queue(message(), now=NOW))
    claimed(store, later(1), ONE_PLACE)

    assert claim(store, message(), ONE_PLACE) == Gated(1)


def test_the_row_notes_that_a_waiting_runs_message_was_sent_once_more(store: Store) -> None:
    queued = settled(store.queue(message(), now=NOW))
    run = claimed(store, later(1))
    waiting = settled(store.postpone(run, RetryLater("overloaded", ""), Bill(), now=NOW, next_attempt=NOW + MINUTE))

    for before in (queued, waiting):
        after = settled(store.remind(before.key, now=NOW + 5 * MINUTE))
        assert after == store.run(before.key)
        assert (after.status, after.version, after.changed) == (before.status, before.version + 1, NOW + 5 * MINUTE)
        assert (after.next_attempt, after.attempts) == (before.next_attempt, before.attempts)


def test_a_run_that_waits_for_no_message_is_left_as_it_is(store: Store) -> None:
    run = claimed(store)

    assert store.remind(run.key, now=NOW + LEASE) == Conflict(run)
    assert store.remind(later(1).key, now=NOW) == NoSuchRun()


def test_a_message_that_a_person_sent_frees_the_run_from_its_grace_though_it_was_begun(store: Store) -> None:
    run = claimed(store)
    store.postpone(run, RetryLater("overloaded", ""), BILL, now=NOW, next_attempt=NOW)

    again: Run = claimed(store, message(resend=1))

    assert (again.resend, again.message.grace_ends) == (1, None)
    assert isinstance(store.release(again, Status.FAILED, "refusal", "", Bill(), now=NOW), Settled)
