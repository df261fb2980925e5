"""The queues in SQLite, with the semantics of Amazon SQS as far as anything rests on them.

- A group is a line: while one of its messages is being handled, none of that group is handed out.
- A repeated deduplication id is swallowed for five minutes, even after the first message is gone.
- A message that is not deleted comes back when its visibility ends; one that was received too often is buried
  at the receive that would be one too many.
- A receipt is good for one receive, and only until the message's visibility ends.

Two things are otherwise here, because a machine is restarted and its clock is set by hand. A receive that a stop or
a kill of the system cut short is taken back at the next start. And what is put off beyond the longest put-off is due:
it was put off before the clock was set back.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
"""

import sqlite3
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from galley.instants import format_instant, parse_instant, utc_now
from galley.queue import MAX_RECEIVES, DeadLetter, DeadTick, QueueUnavailable, RemovalFailed, receives_exhausted
from galley.runs import MOST_DETAIL, RunMessage
from galley.texts import clip
from galley_cli.local.state import StateBusy, StateDirectory, stamp, unstamp, unstamp_or_none

DEDUPLICATION_WINDOW = timedelta(minutes=5)
"""https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html"""

LONGEST_PUT_OFF = timedelta(hours=12)
"""How long a message may be invisible in all, counted from its receipt: ChangeMessageVisibility's limit."""

MOST_INTERRUPTIONS = 20
"""How many of one message's receives are taken back because the system ended while it was being handled.

A stop or a power cut says nothing about the message. But one that brings the whole system down whenever it is handled
looks just the same, so the number has a bound, beyond which each interruption counts as a receive.
"""

TICK_ATTEMPTS = 3
"""How often Lambda tries an asynchronous event: once, and twice more.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
"""

RETRIES_EXHAUSTED = "RetriesExhausted"
"""What Lambda says of an event that failed at every attempt."""


class StaleReceipt(Exception):
    """The message is not the caller's any more: its visibility has ended, or it was received again since."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message as it is handed out. ``receives`` counts this time too; instants are in UTC."""

    id: str
    receipt: str
    body: str
    group: str
    deduplication_id: str | None
    sequence: int
    sent: datetime
    first_received: datetime
    receives: int


class SqliteQueues:
    """The queue of run messages and the two of the dead; and, for who drives the system, their consumer's side."""

    def __init__(
        self, state: StateDirectory, *, now: Callable[[], datetime] = utc_now, max_receives: int = MAX_RECEIVES
    ) -> None:
        self._state = state
        self._now = now
        self._messages = _Messages(state, "runs", now, max_receives, _bury_exhausted_run)

    def send(self, messages: Sequence[RunMessage]) -> None:
        """Send the messages, all of them or none."""
        try:
            with self._state.write() as db:
                for message in messages:
                    self._messages.add(
                        db, message.model_dump_json(), group=message.drafter, deduplication_id=message.deduplication_id
                    )
        except StateBusy as error:
            raise QueueUnavailable([str(message.key) for message in messages], str(error)) from error

    def send_text(self, body: str, *, group: str, deduplication_id: str) -> None:
        """Send a body as it is, readable or not: SQS takes any text, too."""
        with self._state.write() as db:
            self._messages.add(db, body, group=group, deduplication_id=deduplication_id)

    def put_off(self, receipt: str, delay: timedelta) -> None:
        """Let a message that is being handled come back after the delay (at most 12 hours from its receipt).

        Raises:
            StaleReceipt: it comes back by itself, or has already.
        """
        self._messages.put_off(receipt, delay)

    def bury(self, letter: DeadLetter) -> None:
        """Put a message among the dead, with its reason beside it."""
        try:
            with self._state.write() as db:
                _bury(db, letter)
        except StateBusy as error:
            raise QueueUnavailable([letter.run or "an unreadable message"], f"dead letter: {error}") from error

    def bury_tick(self, tick: DeadTick) -> None:
        """Put a tick among the dead."""
        with self._state.write() as db:
            _bury_tick(db, tick)

    def dead_runs(self, *, limit: int = 100) -> tuple[DeadLetter, ...]:
        """List dead run messages, oldest first."""
        with self._state.read() as db:
            found = db.execute(
                "SELECT body, run, reason, detail, error_type, attempts, first, last, sequence FROM dead_runs "
                "ORDER BY last, sequence LIMIT ?",
                (limit,),
            ).fetchall()
        return tuple(
            DeadLetter(
                body, run, reason, detail, kind, attempts, parse_instant(first), parse_instant(last), str(sequence)
            )
            for body, run, reason, detail, kind, attempts, first, last, sequence in found
        )

    def dead_ticks(self, *, limit: int = 100) -> tuple[DeadTick, ...]:
        """List dead ticks, oldest first."""
        with self._state.read() as db:
            found = db.execute(
                "SELECT body, reason, detail, at, sequence FROM dead_ticks ORDER BY at, sequence LIMIT ?", (limit,)
            ).fetchall()
        return tuple(
            DeadTick(body, reason, detail, parse_instant(at), id=str(sequence))
            for body, reason, detail, at, sequence in found
        )

    def remove_dead_runs(self, ids: Collection[str]) -> frozenset[str]:
        """Take away the letters of these ids, and return the ids of those that were taken away."""
        return self._remove_dead("DELETE FROM dead_runs WHERE sequence = ?", ids)

    def remove_dead_ticks(self, ids: Collection[str]) -> frozenset[str]:
        """Take away the ticks of these ids, and return the ids of those that were taken away."""
        return self._remove_dead("DELETE FROM dead_ticks WHERE sequence = ?", ids)

    def _remove_dead(self, statement: str, ids: Collection[str]) -> frozenset[str]:
        try:
            with self._state.write() as db:
                return frozenset(one for one in ids if db.execute(statement, (one,)).rowcount == 1)
        except StateBusy as error:
            raise RemovalFailed((), str(error)) from error

    def receive(self, *, visibility: timedelta, limit: int = 1) -> tuple[Delivery, ...]:
        """Hand out messages, the oldest first, at most one of each group. They are nobody else's for ``visibility``.

        A message that was received too often is buried instead, and the next of its group is looked at.
        """
        return self._messages.receive(visibility, limit)

    def delete(self, receipt: str) -> None:
        """Remove a message that is done with; nothing happens when it is gone already.

        Raises:
            StaleReceipt: it stays, and is handed out (again).
        """
        self._messages.delete(receipt)

    def next_due(self) -> datetime | None:
        """Return when ``receive`` may next hand something out: now or earlier, later, or (None) not before a send."""
        return self._messages.next_due()

    def waiting(self) -> int:
        """Return how many messages there are, being handled or not."""
        return self._messages.waiting()

    def make_all_visible(self) -> int:
        """Let every message that was being handled be handed out again at once; return how many there were.

        Only for the start of a system that holds ``StateDirectory.lock_for_running``: whoever handled them is dead.
        Of each message the receive that was cut short is taken back, ``MOST_INTERRUPTIONS`` times at most. What was
        put off on purpose keeps its time.
        """
        return self._messages.make_all_visible()


class TickQueue:
    """Ticks on their way from the clock to dispatch, as Lambda queues an asynchronous event: kept until it is done.

    Between two ticks there is no order, and none waits for another.
    https://docs.aws.amazon.com/lambda/latest/dg/invocation-async.html
    """

    def __init__(
        self, state: StateDirectory, *, now: Callable[[], datetime] = utc_now, max_attempts: int = TICK_ATTEMPTS
    ) -> None:
        self._state = state
        self._now = now
        self._messages = _Messages(state, "ticks", now, max_attempts, _bury_exhausted_tick)

    def enqueue(self, body: str) -> None:
        """Send a tick (JSON text)."""
        with self._state.write() as db:
            self._messages.add(db, body)

    def receive(self, *, visibility: timedelta, limit: int = 1) -> tuple[Delivery, ...]:
        """Hand out ticks for ``visibility``. One that was tried too often is put among the dead ticks instead."""
        return self._messages.receive(visibility, limit)

    def delete(self, receipt: str) -> None:
        """Remove a tick that was dispatched.

        Raises:
            StaleReceipt: it stays, and is handed out (again).
        """
        self._messages.delete(receipt)

    def put_off(self, receipt: str, delay: timedelta) -> None:
        """Let a tick that failed be tried again after the delay.

        Raises:
            StaleReceipt: it comes back by itself, or has already.
        """
        self._messages.put_off(receipt, delay)

    def bury(self, receipt: str, reason: str, detail: str) -> None:
        """Move a tick to the dead ticks.

        Raises:
            StaleReceipt: it stays, and is handed out (again).
        """
        with self._state.write() as db:
            row = db.execute("SELECT body FROM messages WHERE receipt = ?", (receipt,)).fetchone()
            self._messages.remove(db, receipt)
            if row is not None:
                _bury_tick(db, DeadTick(row[0], reason, detail, self._now()))

    def next_due(self) -> datetime | None:
        """Return when ``receive`` may next hand something out: now or earlier, later, or (None) not before a send."""
        return self._messages.next_due()

    def waiting(self) -> int:
        """Return how many ticks there are, being handled or not."""
        return self._messages.waiting()

    def make_all_visible(self) -> int:
        """Do what ``SqliteQueues.make_all_visible`` does, for the ticks."""
        return self._messages.make_all_visible()


class _Messages:
    """One queue. Without a group a message is a line of its own."""

    def __init__(
        self,
        state: StateDirectory,
        queue: str,
        now: Callable[[], datetime],
        max_receives: int,
        bury: Callable[[sqlite3.Connection, str, int, datetime], None],
    ) -> None:
        self._state = state
        self._queue = queue
        self._now = now
        self._max_receives = max_receives
        self._bury = bury

    def add(
        self, db: sqlite3.Connection, body: str, *, group: str | None = None, deduplication_id: str | None = None
    ) -> None:
        now = self._now()
        if deduplication_id is not None and self._was_sent(db, deduplication_id, now):
            return
        message_id = str(uuid.uuid4())
        db.execute(
            "INSERT INTO messages (queue, id, message_group, deduplication_id, body, sent) VALUES (?, ?, ?, ?, ?, ?)",
            (self._queue, message_id, group or message_id, deduplication_id, body, stamp(now)),
        )

    def receive(self, visibility: timedelta, limit: int) -> tuple[Delivery, ...]:
        if visibility <= timedelta():
            raise ValueError(f"a message is handed out for a while, not for {visibility}")
        due = self.next_due()
        now = self._now()  # read after what is due now, which would else be due a moment later
        if due is None or due > now:
            return ()
        deliveries: list[Delivery] = []
        with self._state.write() as db:
            while len(deliveries) < limit and (heads := self._heads(db, now, limit - len(deliveries))):
                for head in heads:
                    if head.receives >= self._max_receives:
                        self._bury(db, head.body, head.receives, now)
                        db.execute("DELETE FROM messages WHERE sequence = ?", (head.sequence,))
                    else:
                        deliveries.append(_hand_out(db, head, now, now + visibility))
        return tuple(deliveries)

    def delete(self, receipt: str) -> None:
        with self._state.write() as db:
            self.remove(db, receipt)

    def remove(self, db: sqlite3.Connection, receipt: str) -> None:
        removed = db.execute(
            "DELETE FROM messages WHERE queue = ? AND receipt = ? AND visible_at > ?",
            (self._queue, receipt, stamp(self._now())),
        )
        if removed.rowcount == 0:
            self._refuse_stale(db, receipt)

    def put_off(self, receipt: str, delay: timedelta) -> None:
        now = self._now()
        with self._state.write() as db:
            row = db.execute(
                "SELECT last_received FROM messages WHERE queue = ? AND receipt = ? AND visible_at > ?",
                (self._queue, receipt, stamp(now)),
            ).fetchone()
            if row is None:
                raise StaleReceipt(f"the message of receipt {receipt} is not being handled under it any more")
            until = min(now + max(delay, timedelta()), unstamp(row[0]) + LONGEST_PUT_OFF)
            db.execute("UPDATE messages SET visible_at = ?, put_off = 1 WHERE receipt = ?", (stamp(until), receipt))

    def next_due(self) -> datetime | None:
        with self._state.read() as db:
            row = db.execute(
                f"SELECT min(due) FROM (SELECT {_LINE_IS_DUE} AS due FROM messages "  # noqa: S608 - a constant
                "WHERE queue = ? GROUP BY message_group)",
                (self._farthest(self._now()), self._queue),
            ).fetchone()
        if row[0] is None:
            return None
        return unstamp(row[0]) if row[0] else self._now()

    def waiting(self) -> int:
        with self._state.read() as db:
            return int(db.execute("SELECT count(*) FROM messages WHERE queue = ?", (self._queue,)).fetchone()[0])

    def make_all_visible(self) -> int:
        with self._state.write() as db:
            cut_short = db.execute(
                "SELECT sequence, receives, receipt FROM messages "
                "WHERE queue = ? AND visible_at IS NOT NULL AND put_off = 0",
                (self._queue,),
            ).fetchall()
            db.executemany(
                "UPDATE messages SET visible_at = NULL, receives = ? WHERE sequence = ?",
                [(_without_interruption(receives, receipt), sequence) for sequence, receives, receipt in cut_short],
            )
        return len(cut_short)

    def _was_sent(self, db: sqlite3.Connection, deduplication_id: str, now: datetime) -> bool:
        """Tell whether the id was accepted within the window; if it was not, accept it now."""
        db.execute("DELETE FROM deduplication WHERE queue = ? AND sent NOT BETWEEN ? AND ?", self._window(now))
        accepted = db.execute(
            "INSERT OR IGNORE INTO deduplication (queue, id, sent) VALUES (?, ?, ?)",
            (self._queue, deduplication_id, stamp(now)),
        )
        return accepted.rowcount == 0

    def _window(self, now: datetime) -> tuple[str, str, str]:
        """Return between which instants an id that counts was accepted; later ones are of a clock since set back."""
        longest_ago = now - DEDUPLICATION_WINDOW + timedelta.resolution
        return self._queue, stamp(longest_ago), stamp(now + DEDUPLICATION_WINDOW)

    def _farthest(self, now: datetime) -> str:
        """Return until when a message can have been put off by a clock that is not ahead of this one."""
        return stamp(now + LONGEST_PUT_OFF)

    def _heads(self, db: sqlite3.Connection, now: datetime, limit: int) -> list["_Head"]:
        """Return the first message of each line in which none is being handled, the oldest first."""
        found = db.execute(
            f"SELECT {', '.join(_Head._fields)} FROM messages "  # noqa: S608 - only the names of the fields
            "WHERE sequence IN (SELECT min(sequence) FROM messages WHERE queue = ? GROUP BY message_group "
            f"HAVING {_LINE_IS_DUE} <= ?) ORDER BY sequence LIMIT ?",
            (self._queue, self._farthest(now), stamp(now), limit),
        )
        return [_Head(*row) for row in found.fetchall()]

    def _refuse_stale(self, db: sqlite3.Connection, receipt: str) -> None:
        message_id = receipt.rpartition(".")[0]
        there = db.execute("SELECT 1 FROM messages WHERE queue = ? AND id = ?", (self._queue, message_id)).fetchone()
        if there is not None:
            raise StaleReceipt(f"the message of receipt {receipt} is not being handled under it any more")


_LINE_IS_DUE = "max(CASE WHEN visible_at IS NULL OR (put_off = 1 AND visible_at > ?) THEN '' ELSE visible_at END)"
"""When a line's next message is due. While one is being handled, whatever the clock says, the line waits for that."""


class _Head(NamedTuple):
    sequence: int
    id: str
    message_group: str
    deduplication_id: str | None
    body: str
    sent: str
    receives: int
    first_received: str | None
    receipt: str | None


def _times_handed_out(receipt: str | None) -> int:
    """Return how often a message was handed out: its last receipt says so, and thus none is like another."""
    return 0 if receipt is None else int(receipt.rpartition(".")[2])


def _without_interruption(receives: int, receipt: str) -> int:
    """Return what a message's receives are once the last one, cut short by the system's end, is taken back."""
    taken_back = _times_handed_out(receipt) - receives
    return receives - 1 if taken_back < MOST_INTERRUPTIONS else receives


def _hand_out(db: sqlite3.Connection, head: _Head, now: datetime, until: datetime) -> Delivery:
    delivery = Delivery(
        id=head.id,
        receipt=f"{head.id}.{_times_handed_out(head.receipt) + 1}",
        body=head.body,
        group=head.message_group,
        deduplication_id=head.deduplication_id,
        sequence=head.sequence,
        sent=unstamp(head.sent),
        first_received=unstamp_or_none(head.first_received) or now,
        receives=head.receives + 1,
    )
    db.execute(
        "UPDATE messages SET visible_at = ?, put_off = 0, receives = ?, first_received = ?, last_received = ?, "
        "receipt = ? WHERE sequence = ?",
        (
            stamp(until),
            delivery.receives,
            stamp(delivery.first_received),
            stamp(now),
            delivery.receipt,
            head.sequence,
        ),
    )
    return delivery


def _bury_exhausted_run(db: sqlite3.Connection, body: str, receives: int, now: datetime) -> None:
    _bury(db, receives_exhausted(body, receives, now))


def _bury_exhausted_tick(db: sqlite3.Connection, body: str, attempts: int, now: datetime) -> None:
    _bury_tick(db, DeadTick(body, RETRIES_EXHAUSTED, f"no answer ({attempts} attempts)", now))


def _bury(db: sqlite3.Connection, letter: DeadLetter) -> None:
    """Keep a letter; the same body with the same reason at the same instant is the same letter."""
    db.execute(
        "INSERT OR IGNORE INTO dead_runs (body, run, reason, detail, error_type, attempts, first, last) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            letter.body,
            letter.run,
            letter.reason,
            letter.detail,
            letter.error_type,
            letter.attempts,
            format_instant(letter.first),
            format_instant(letter.last),
        ),
    )


def _bury_tick(db: sqlite3.Connection, tick: DeadTick) -> None:
    db.execute(
        "INSERT INTO dead_ticks (body, reason, detail, at) VALUES (?, ?, ?, ?)",
        (tick.body, tick.reason, clip(tick.detail, MOST_DETAIL), format_instant(tick.at)),
    )
