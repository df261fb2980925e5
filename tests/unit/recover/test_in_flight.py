"""The runs without an outcome: listed once in a sweep, and each left to one who looks at it."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

import recover
from abandoned import GIVEN_UP_AFTER
from galley import system
from galley.retry import RetryLater
from galley.runs import Status
from galley.store import Bill, Claimed, Limits, Page, RowsDisagree, Store
from in_flight import list_in_flight
from support.outside import SLOT, Context, FixedSchedules, Outside, RecordingQueue, event, message

LIMITS = Limits(pending=9, daily_budget_nanousd=None, worst_cost_nanousd=0)
GIVEN_UP = SLOT + GIVEN_UP_AFTER + timedelta(seconds=1)


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TABLE", "RUNS_QUEUE_URL", "DEAD_RUNS_QUEUE_URL", "SCHEDULE_GROUP"):
        monkeypatch.setenv(f"GALLEY_{name}", "test")


@pytest.fixture
def given_up(store: Store) -> Store:
    """A store with a run that waits for its next attempt, which never came."""
    claimed = store.claim(message(), LIMITS, owner="worker", now=SLOT, lease_until=SLOT)
    assert isinstance(claimed, Claimed)
    store.postpone(claimed.run, RetryLater("overloaded", "529"), Bill(), now=SLOT, next_attempt=SLOT)
    return store


def answer(store: Store, queue: RecordingQueue) -> dict[str, list[str]]:
    system.install(Outside(store_=store, queue_=queue, schedules_=FixedSchedules(), at=GIVEN_UP))
    return recover.handler(event("recover"), Context())


def test_each_state_is_listed_once_in_a_sweep(given_up: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: Counter[Status] = Counter()
    watched = given_up.watched

    def counted(status: Status, **page: Any) -> Page:
        listed[status] += 1
        return watched(status, **page)

    monkeypatch.setattr(given_up, "watched", counted)
    given_up.queue(message("nightly-sync"), now=SLOT)
    answer(given_up, RecordingQueue())
    assert listed == {Status.DRAFTING: 1, Status.QUEUED: 1, Status.PENDING: 1}


def test_a_run_that_was_ended_is_neither_sent_again_nor_overdue(given_up: Store) -> None:
    queue = RecordingQueue()
    done = answer(given_up, queue)
    assert (done["ended"], done["sent_again"], done["overdue"]) == ([str(message().key)], [], [])
    assert queue.sent == []


def test_a_run_that_cannot_be_ended_now_is_overdue_and_its_message_is_not_sent_again(
    given_up: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*given: object, **named: object) -> None:
        raise RowsDisagree("the count would fall below zero")

    monkeypatch.setattr(given_up, "release", refuses)
    done = answer(given_up, RecordingQueue())
    assert (done["ended"], done["sent_again"], done["overdue"]) == ([], [], [str(message().key)])
    assert len(done["broken"]) == 1


def test_a_row_that_cannot_be_read_is_named_once(given_up: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "row RUN#nightly-sync 2026-11-27T06:00:00Z: status 'eaten' is none"
    watched = given_up.watched
    monkeypatch.setattr(
        given_up,
        "watched",
        lambda status, **page: Page((), (line,)) if status is Status.QUEUED else watched(status, **page),
    )
    assert list_in_flight(given_up).broken == (line,)
    done = answer(given_up, RecordingQueue())
    assert done["broken"] == [line]
    assert done["ended"] == [str(message().key)], "it hides no other"
