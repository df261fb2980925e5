"""Runs that a person sent again and whose message never came."""

from datetime import timedelta

import pytest

from galley.queue import QueueUnavailable
from galley.runs import RunKey, Status
from galley.store import Bill, Claimed, Limits, Settled, Store
from support.outside import SLOT, RecordingQueue, message
from unsent import OVERDUE_AFTER, send_unsent

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
    sent = send_unsent(queued, queue, now=SLOT + OVERDUE_AFTER + SECOND)
    assert sent.runs == (str(KEY),)
    run = queued.run(KEY)
    assert run is not None
    assert queue.sent == [run.message]
    assert (run.resend, run.status) == (1, Status.QUEUED)


def test_a_run_whose_message_may_still_wait_for_its_turn_is_left_alone(queued: Store) -> None:
    queue = RecordingQueue()
    assert send_unsent(queued, queue, now=SLOT + OVERDUE_AFTER).runs == ()
    assert queue.sent == []


def test_what_cannot_be_sent_is_named_and_stops_no_sweep(queued: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = RecordingQueue()

    def down(messages: object) -> None:
        raise QueueUnavailable([str(KEY)], "down")

    monkeypatch.setattr(queue, "send", down)
    sent = send_unsent(queued, queue, now=SLOT + OVERDUE_AFTER + SECOND)
    assert (sent.runs, sent.broken) == ((), (f"could not send {KEY}: down",))
