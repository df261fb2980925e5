"""Runs that wait for a message that never comes."""

from datetime import timedelta

import pytest

from galley.queue import QueueUnavailable
from galley.retry import RetryLater
from galley.runs import RunKey, Status
from galley.store import Bill, Claimed, Limits, Settled, Store
from in_flight import list_in_flight
from support.outside import SLOT, RecordingQueue, message
from unsent import QUEUED_FOR, WAITED_FOR, send_unsent

KEY = RunKey("daily-digest", SLOT)
SECOND = timedelta(seconds=1)


@pytest.fixture
def queued(store: Store) -> Store:
    """A store with one run that was sent again, at its slot."""
    limits = Limits(pending=1, daily_budget_nanousd=None, worst_cost_nanousd=0)
    claimed = store.claim(message(), limits, owner="worker", now=SLOT, lease_until=SLOT + timedelta(minutes=5))
    assert isinstance(claimed, Claimed)
    store.release(claimed.run, Status.FAILED, "refusal", "", Bill(), now=SLOT)
    assert isinstance(store.resend(KEY, now=SLOT), Settled)
    return store


@pytest.mark.guarantee("G5")
def test_g5_a_run_sent_again_whose_message_was_lost_is_sent_once_more(queued: Store) -> None:
    queue = RecordingQueue()
    sent = send_unsent(list_in_flight(queued).runs, queued, queue, now=SLOT + QUEUED_FOR + SECOND)
    assert sent.runs == (str(KEY),)
    run = queued.run(KEY)
    assert run is not None
    assert queue.sent == [run.message]
    assert (run.resend, run.status) == (1, Status.QUEUED)
    assert (
        send_unsent(list_in_flight(queued).runs, queued, queue, now=SLOT + QUEUED_FOR + timedelta(minutes=16)).runs
        == ()
    ), "not at every sweep"
    assert send_unsent(list_in_flight(queued).runs, queued, queue, now=SLOT + 2 * QUEUED_FOR + 2 * SECOND).runs == (
        str(KEY),
    )


def test_a_run_whose_message_may_still_wait_for_its_turn_is_left_alone(queued: Store) -> None:
    queue = RecordingQueue()
    assert send_unsent(list_in_flight(queued).runs, queued, queue, now=SLOT + QUEUED_FOR).runs == ()
    assert queue.sent == []


def test_what_cannot_be_sent_is_named_and_stops_no_sweep(queued: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = RecordingQueue()

    def down(messages: object) -> None:
        raise QueueUnavailable([str(KEY)], "down")

    monkeypatch.setattr(queue, "send", down)
    sent = send_unsent(list_in_flight(queued).runs, queued, queue, now=SLOT + QUEUED_FOR + SECOND)
    assert (sent.runs, sent.broken) == ((), (f"{KEY}: could not send {KEY}: down",))


def test_a_begun_run_whose_next_attempt_never_comes_is_sent_once_more_and_not_failed(store: Store) -> None:
    """Its message may stand in a long line: a run is not given up for that."""
    limits = Limits(pending=1, daily_budget_nanousd=None, worst_cost_nanousd=0)
    claimed = store.claim(message(), limits, owner="worker", now=SLOT, lease_until=SLOT + timedelta(minutes=5))
    assert isinstance(claimed, Claimed)
    again = SLOT + timedelta(minutes=10)
    store.postpone(claimed.run, RetryLater("overloaded", "529"), Bill(), now=SLOT, next_attempt=again)
    queue = RecordingQueue()
    assert send_unsent(list_in_flight(store).runs, store, queue, now=again + WAITED_FOR).runs == ()
    assert send_unsent(list_in_flight(store).runs, store, queue, now=again + WAITED_FOR + SECOND).runs == (str(KEY),)
    run = store.run(KEY)
    assert run is not None
    assert (run.status, run.next_attempt, queue.sent) == (Status.DRAFTING, again, [run.message])


def test_a_run_that_somebody_works_on_or_whose_attempt_crashed_is_not_sent(store: Store) -> None:
    limits = Limits(pending=1, daily_budget_nanousd=None, worst_cost_nanousd=0)
    store.claim(message(), limits, owner="worker", now=SLOT, lease_until=SLOT + timedelta(minutes=5))
    queue = RecordingQueue()
    for minutes in (1, 6, 600):
        assert send_unsent(list_in_flight(store).runs, store, queue, now=SLOT + timedelta(minutes=minutes)).runs == ()
