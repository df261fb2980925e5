"""Backfill: what each slot of a range would become, and sending what is to be drafted.

A slot with a row has its outcome, so only slots without one are sent, and on request the runs that failed. What was
sent goes through the claim like any other message: the gate, a pause and the budget bind it, and no slot is drafted
twice. So a backfill that broke off is run again: what was sent before has a row by then, or is sent twice for nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from galley.contract import Tick
from galley.queue import QueueUnavailable, RunQueue
from galley.runs import Origin, Run, RunKey, RunMessage, Status, messages_for
from galley.schedules import ScheduleDefinition
from galley.store import Conflict, NoSuchRun, Settled, Store
from galley_cli.rows import Row, Unreadable

MOST_SLOTS = 10_000
"""How many slots one backfill goes through: a week of a schedule that is due each minute."""

AT_ONCE = 10
"""How many messages go into one request, and so how many rows can be queued without a message after a crash."""


class Order(StrEnum):
    """Which slots are sent first, and so drafted first."""

    OLDEST = "oldest"
    NEWEST = "newest"


class Rerun(StrEnum):
    """Which slots that have a row are sent all the same."""

    NONE = "none"
    FAILED = "failed"


class Step(StrEnum):
    """What a backfill does with a slot."""

    SEND = "send"
    RESEND = "resend"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class Planned:
    """A slot, its row, what is to be done with it and, where it is left as it is, why."""

    key: RunKey
    row: Row
    step: Step
    why: str = ""


def plan(drafter: str, rows: Mapping[datetime, Row], *, order: Order, rerun: Rerun, limit: int | None) -> list[Planned]:
    """Decide for each slot, in the order of sending. ``limit`` is how many are sent at most."""
    planned: list[Planned] = []
    left = limit
    for slot in sorted(rows, reverse=order is Order.NEWEST):
        step, why = _step(rows[slot], rerun)
        if step is not Step.LEAVE and left is not None:
            if left == 0:
                step, why = Step.LEAVE, f"beyond --limit {limit}"
            else:
                left -= 1
        planned.append(Planned(RunKey(drafter, slot), rows[slot], step, why))
    return planned


def _step(row: Row, rerun: Rerun) -> tuple[Step, str]:
    """Decide what is done with a slot, and say why where it is left.

    Sending a failed run again changes its row first, so a row that is queued may lack its message.
    """
    match row:
        case None:
            return Step.SEND, ""
        case Unreadable(why):
            return Step.LEAVE, why
        case Run(status=Status.FAILED | Status.QUEUED) if rerun is Rerun.FAILED:
            return Step.RESEND, ""
        case Run(status=Status.FAILED):
            return Step.LEAVE, "--rerun failed sends it again"
        case Run():
            return Step.LEAVE, ""
    assert_never(row)


class Backfill:
    """Sends what was planned, and knows what was sent."""

    def __init__(
        self,
        store: Store,
        queue: RunQueue,
        schedule: ScheduleDefinition,
        tick: Tick,
        *,
        now: Callable[[], datetime],
        trace: str,
    ) -> None:
        """Prepare; ``tick`` is the schedule's input, and ``trace`` ties together what is sent."""
        self.sent: set[RunKey] = set()
        """The runs whose message is in the queue."""
        self.overtaken: set[RunKey] = set()
        """The failed runs that somebody else sent again, or changed, first."""
        self._store = store
        self._queue = queue
        self._schedule = schedule
        self._tick = tick
        self._now = now
        self._trace = trace

    def send(self, planned: Sequence[Planned], advance: Callable[[int], None]) -> None:
        """Send in tens, and tell after each request how many slots are done with.

        Raises:
            galley.queue.QueueUnavailable: when some could not be sent; ``sent`` has those that were.
        """
        to_send = [one for one in planned if one.step is not Step.LEAVE]
        for begin in range(0, len(to_send), AT_ONCE):
            some = to_send[begin : begin + AT_ONCE]
            messages: list[RunMessage] = []
            try:
                for one in some:
                    messages += self._messages(one)
            finally:  # a row that was queued needs its message, whatever stopped the next one
                self._send(messages)
            advance(len(some))

    def _send(self, messages: Sequence[RunMessage]) -> None:
        keys = {message.key for message in messages}
        try:
            if messages:
                self._queue.send(messages)
        except QueueUnavailable as error:
            self.sent |= {key for key in keys if str(key) not in error.unsent}
            raise
        self.sent |= keys

    def _messages(self, one: Planned) -> Iterator[RunMessage]:
        match one.step:
            case Step.SEND:
                yield backfill_message(self._tick, one.key, self._schedule, self._trace)
            case Step.RESEND if isinstance(one.row, Run) and one.row.status is Status.QUEUED:
                yield one.row.message
            case Step.RESEND:
                match self._store.resend(one.key, now=self._now()):
                    case Settled(run):
                        yield run.message
                    case Conflict() | NoSuchRun():
                        self.overtaken.add(one.key)
            case Step.LEAVE:
                pass


def backfill_message(tick: Tick, key: RunKey, schedule: ScheduleDefinition, trace: str) -> RunMessage:
    """Return the message of one of a tick's drafters for a slot of its schedule; no grace binds it."""
    messages = messages_for(tick, key.slot, origin=Origin.BACKFILL, schedule=schedule.arn, trace=trace)
    return next(message for message in messages if message.key == key)
