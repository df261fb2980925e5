"""Backfilling on either system: what was sent is sent once, and what breaks off is gone on with."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import time_machine

from contract.conftest import START
from contract.implementations import RunQueueUnderTest
from contract.material import DIGEST, NOW, SLOT, claim, claimed, failed, later, message, pending, queued, settled
from galley.queue import RunQueue
from galley.retry import NeverSucceeds
from galley.runs import Origin, RunKey, RunMessage, SkipReason, Status, read_message
from galley.store import Bill, Busy, Claimed, Duplicate, Gated, Limits, RowsDisagree, Store
from galley_cli.backfilling import AT_ONCE, Backfill, Order, Planned, Rerun, plan
from galley_cli.deployed_schedules import schedule_of
from galley_cli.rows import PAGE, rows_at
from support.outside import schedule

DAY = timedelta(days=1)


class Crash(BaseException):
    """The process ends here."""


@dataclass
class Requests:
    """A queue that notes how many messages each request has, and ends the process at one of them."""

    queue: RunQueue
    crash_before: int | None = None
    sizes: list[int] = field(default_factory=list)

    def send(self, messages: Sequence[RunMessage]) -> None:
        if len(self.sizes) == self.crash_before:
            raise Crash
        self.queue.send(messages)
        self.sizes.append(len(messages))


@dataclass
class System:
    """A store and queues of one implementation, a daily schedule, and a range of so many of its slots from SLOT on."""

    store: Store
    ends: RunQueueUnderTest
    slots: int = 25

    def plan(self, rerun: Rerun = Rerun.NONE, order: Order = Order.OLDEST) -> list[Planned]:
        rows = rows_at(self.store, DIGEST, [SLOT + number * DAY for number in range(self.slots)])
        return plan(DIGEST, rows, order=order, rerun=rerun, limit=None)

    def backfill(self, planned: Sequence[Planned], crash_before: int | None = None) -> tuple[Backfill, Requests]:
        requests = Requests(self.ends.queue, crash_before)
        found = schedule_of([schedule()], DIGEST)
        sending = Backfill(
            self.store, cast("RunQueue", requests), found.schedule, found.tick, now=lambda: NOW, trace="backfill"
        )
        advanced: list[int] = []
        with suppress(Crash):
            sending.send(planned, advanced.append)
        assert sum(advanced) <= len(planned)
        return sending, requests

    def received(self) -> list[RunMessage]:
        """Take every message out of the queue."""
        found = []
        while (one := self.ends.receive()) is not None:
            found.append(read_message(one.body))
            self.ends.delete(one.receipt)
        return found


@pytest.fixture
def system(implementation: Any, tmp_path: Path, clock: time_machine.Traveller) -> Iterator[System]:
    clock.move_to(START)
    with ExitStack() as stack:
        store = stack.enter_context(implementation.open_store(tmp_path / "store"))
        yield System(store, stack.enter_context(implementation.open_queue(tmp_path / "queue")))


def days(messages: Sequence[RunMessage]) -> list[int]:
    return [(one.slot - SLOT).days for one in messages]


@pytest.mark.parametrize(("order", "expected"), [(Order.OLDEST, list(range(25))), (Order.NEWEST, [*range(24, -1, -1)])])
def test_a_range_is_sent_in_its_order_one_request_for_each_ten(
    system: System, order: Order, expected: list[int]
) -> None:
    sending, requests = system.backfill(system.plan(order=order))
    assert requests.sizes == [AT_ONCE, AT_ONCE, 5]
    messages = system.received()
    assert days(messages) == expected
    assert {one.origin for one in messages} == {Origin.BACKFILL}
    assert sending.sent == {one.key for one in messages}


@pytest.mark.guarantee("G1")
@pytest.mark.parametrize("crash_before", [0, 1, 2])
def test_g1_a_backfill_that_crashed_is_gone_on_with_and_no_slot_is_drafted_twice(
    system: System, crash_before: int
) -> None:
    sending, _ = system.backfill(system.plan(), crash_before)
    assert len(sending.sent) == crash_before * AT_ONCE
    first = system.received()
    for number, one in enumerate(first):
        claimed(system.store, one, owner=f"first-{number}")
    system.backfill(system.plan())
    second = system.received()
    assert sorted(days([*first, *second])) == list(range(25)), "what was drafted meanwhile is not sent again"

    again = claim(system.store, second[0], owner="second")
    assert isinstance(again, Claimed)
    assert isinstance(claim(system.store, second[0], owner="third"), Busy), "a message that comes twice drafts nothing"


@pytest.mark.guarantee("G2")
def test_g2_the_gate_binds_a_backfill(system: System) -> None:
    system.slots = 4
    system.backfill(system.plan())
    two = Limits(pending=2, daily_budget_nanousd=None, worst_cost_nanousd=0)
    outcomes = [claim(system.store, one, two, owner=f"o-{one.key}") for one in system.received()]
    assert [type(outcome) for outcome in outcomes] == [Claimed, Claimed, Gated, Gated]
    for outcome in outcomes[:2]:
        assert isinstance(outcome, Claimed)
        assert outcome.run.origin is Origin.BACKFILL


def test_what_has_an_outcome_is_left_alone_even_where_failed_runs_are_sent_again(system: System) -> None:
    system.slots = 4
    pending(system.store)
    system.store.skip(later(1), SkipReason.GATE, "3 wait", now=NOW)
    settled(system.store.release(claimed(system.store, later(2)), Status.EMPTY, "nothing_new", "", Bill(), now=NOW))
    failed(system.store, later(3))
    assert system.backfill(system.plan())[0].sent == set()
    assert system.backfill(system.plan(Rerun.FAILED))[0].sent == {later(3).key}
    (again,) = system.received()
    assert (again.key, again.resend, again.is_late(NOW + 99 * DAY)) == (later(3).key, 1, False)
    assert isinstance(claim(system.store, again), Claimed)
    assert isinstance(claim(system.store, later(3), owner="another"), Duplicate), "the first message is an older one"


def test_a_row_that_was_queued_before_a_crash_gets_its_message_the_next_time(system: System) -> None:
    system.slots = 1
    failed(system.store)
    sending, _ = system.backfill(system.plan(Rerun.FAILED), crash_before=0)
    row = system.store.run(message().key)
    assert row is not None
    assert (row.status, sending.sent, system.received()) == (Status.QUEUED, set(), [])
    assert system.backfill(system.plan(Rerun.FAILED))[0].sent == {row.key}
    assert [one.resend for one in system.received()] == [1]


def test_a_failed_run_that_somebody_else_sent_first_is_left_to_them(system: System) -> None:
    system.slots = 2
    failed(system.store)
    failed(system.store, later(1))
    planned = system.plan(Rerun.FAILED)
    settled(system.store.resend(later(1).key, now=NOW))
    sending, _ = system.backfill(planned)
    assert (sending.sent, sending.overtaken) == ({message().key}, {later(1).key})
    assert days(system.received()) == [0]


def test_what_stops_one_slot_leaves_no_queued_row_without_its_message(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.slots = 3
    for number in range(3):
        failed(system.store, later(number))
    planned = system.plan(Rerun.FAILED)
    resend = system.store.resend

    def damaged(key: RunKey, **named: Any) -> Any:
        if key == later(1).key:
            raise RowsDisagree("the rows disagree")
        return resend(key, **named)

    monkeypatch.setattr(system.store, "resend", damaged)
    with pytest.raises(NeverSucceeds):
        system.backfill(planned)
    assert days(system.received()) == [0]
    third = system.store.run(later(2).key)
    assert third is not None
    assert third.status is Status.FAILED


def test_rows_are_found_through_all_pages(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    queued(system.store)
    for number in range(1, 7):
        system.store.skip(later(number), SkipReason.GATE, "", now=NOW)
    history = system.store.history
    monkeypatch.setattr(
        system.store, "history", lambda drafter, limit=PAGE, after=None: history(drafter, limit=2, after=after)
    )
    rows = rows_at(system.store, DIGEST, [SLOT - DAY, SLOT, SLOT + 5 * DAY, SLOT + 8 * DAY])
    assert [getattr(row, "status", None) for row in rows.values()] == [None, Status.QUEUED, Status.SKIPPED, None]
    assert rows_at(system.store, DIGEST, []) == {}
