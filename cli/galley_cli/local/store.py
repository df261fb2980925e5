"""The store in SQLite: each operation of ``galley.store`` is one transaction.

What an operation makes of a run is decided in ``galley.store.changes``; here it is applied, and only to the row that
was seen: the statement that changes a row names its version and its owner.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from galley.drafts import Draft
from galley.instants import format_instant, in_utc, parse_instant, to_the_second
from galley.retry import RetryLater
from galley.rules import NO_RULES, Rules
from galley.runs import Run, RunKey, RunMessage, SkipReason, Status
from galley.store import (
    MOST_REJECTIONS,
    NO_CURSORS,
    AlreadyThere,
    Approve,
    Bill,
    Busy,
    Claimed,
    ClaimOutcome,
    Conflict,
    Cursor,
    CursorMoved,
    DrafterState,
    Duplicate,
    Gated,
    LeaseLost,
    Limits,
    Memory,
    NoSuchRun,
    OverBudget,
    Page,
    Paused,
    Reject,
    Rejection,
    RowsDisagree,
    Settled,
    StoreBusy,
    StoredDraft,
    SweptSchedule,
    SweptSchedules,
    UnreadableRow,
    Withdrawal,
    changes,
)
from galley.store.rows import (
    draft_row,
    last_pause,
    read_cursor,
    read_draft,
    read_rejections,
    read_run,
    read_schedule,
    rejection_row,
    run_row,
    schedule_row,
    slot_of_row,
    status_of_row,
)
from galley_cli.local.state import StateBusy, StateDirectory, stamp, unstamp

_RUN_COLUMNS = (
    "drafter",
    "slot",
    "status",
    "version",
    "origin",
    "contract",
    "created",
    "changed",
    "schedule",
    "trace",
    "reason",
    "detail",
    "resend",
    "attempts",
    "faults",
    "owner",
    "lease_until",
    "next_attempt",
    "spend_day",
    "reserved_nanousd",
    "cost_nanousd",
    "usage",
    "model",
    "title",
    "text_hash",
    "attachments_hash",
    "drafted",
    "decision",
    "published",
    "dismissed",
    "rules",
)
_TEXT_COLUMNS = (
    "title",
    "body",
    "items",
    "warnings",
    "model",
    "channels",
    "attachments",
    "edited_title",
    "edited_body",
)
_JSON_COLUMNS = frozenset({"contract", "usage", "decision", "rules", "items", "warnings", "channels", "attachments"})

# The statements below are put together from the names above and from nothing else.
_SELECT_RUN = f"SELECT {', '.join(_RUN_COLUMNS)}, queue_at FROM runs"  # noqa: S608
_INSERT_RUN = (
    f"INSERT INTO runs ({', '.join(_RUN_COLUMNS)}, queue_at) "  # noqa: S608
    f"VALUES ({', '.join('?' * (len(_RUN_COLUMNS) + 1))})"
)
_UPDATE_RUN = (
    f"UPDATE runs SET {', '.join(f'{name} = ?' for name in _RUN_COLUMNS)}, queue_at = ? "  # noqa: S608
    "WHERE drafter = ? AND slot = ? AND version = ? AND owner IS ?"
)
_SELECT_TEXT = f"SELECT {', '.join(_TEXT_COLUMNS)} FROM texts WHERE drafter = ? AND slot = ?"  # noqa: S608
_INSERT_TEXT = (
    f"INSERT INTO texts (drafter, slot, {', '.join(_TEXT_COLUMNS)}) "  # noqa: S608
    f"VALUES (?, ?, {', '.join('?' * len(_TEXT_COLUMNS))})"
)


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """One change of a run's row, as the table's stream tells it. ``old`` is None for a new row.

    ``sequence`` rises with each change and is never used twice.
    """

    sequence: int
    key: RunKey
    old: Status | None
    new: Status
    version: int
    at: datetime


class SqliteStore:
    """The store of one machine, and the stream of its rows' changes."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state

    def claim(
        self, message: RunMessage, limits: Limits, *, owner: str, now: datetime, lease_until: datetime
    ) -> ClaimOutcome:
        """Take the run, a place at the gate and the worst cost of the call, together or not at all."""
        with self._transaction() as rows:
            change = changes.claim(
                rows.run(message.key), message, limits, owner=owner, now=now, lease_until=lease_until
            )
            if isinstance(change, Duplicate | Busy):
                return change
            gate = rows.drafter(message.drafter)
            if gate.paused is not None:
                return Paused(gate.paused)
            if gate.pending + change.places > limits.pending:
                return Gated(gate.pending)
            committed = rows.committed(message.drafter, changes.utc_day(now))
            budget = limits.daily_budget_nanousd
            if budget is not None and committed + limits.worst_cost_nanousd > budget:
                return OverBudget(committed)
            return Claimed(rows.apply(change, now))

    def store(
        self,
        run: Run,
        draft: Draft,
        cursors: Mapping[str, Cursor],
        bill: Bill,
        *,
        now: datetime,
        read: Mapping[str, Cursor] = NO_CURSORS,
        rules: Rules = NO_RULES,
    ) -> Settled | LeaseLost:
        """Drafting -> pending: the text, the sources' cursors, the bill and the week with it."""
        change = changes.store(run, draft, bill, now=now, rules=rules)
        with self._transaction() as rows:
            if not rows.still(run):
                return LeaseLost(rows.run(run.key))
            rows.add_text(run.key, draft)
            rows.move_cursors(run.drafter, cursors, read)
            return Settled(rows.apply(change, now))

    def release(
        self,
        run: Run,
        status: Status,
        reason: str,
        detail: str,
        bill: Bill,
        *,
        now: datetime,
        cursors: Mapping[str, Cursor] = NO_CURSORS,
        read: Mapping[str, Cursor] = NO_CURSORS,
    ) -> Settled | LeaseLost:
        """Drafting -> empty, failed or skipped: the place is given back, the bill settled."""
        change = changes.release(run, status, reason, detail, bill, now=now, cursors=cursors)
        with self._transaction() as rows:
            if not rows.still(run):
                return LeaseLost(rows.run(run.key))
            rows.move_cursors(run.drafter, cursors, read)
            return Settled(rows.apply(change, now))

    def postpone(
        self, run: Run, error: RetryLater, bill: Bill, *, now: datetime, next_attempt: datetime
    ) -> Settled | LeaseLost:
        """Keep the run drafting with its lease given up; its place stays counted, the bill is settled."""
        change = changes.postpone(run, error, bill, now=now, next_attempt=next_attempt)
        with self._transaction() as rows:
            if not rows.still(run):
                return LeaseLost(rows.run(run.key))
            return Settled(rows.apply(change, now))

    def skip(self, message: RunMessage, reason: SkipReason, detail: str, *, now: datetime) -> Settled | AlreadyThere:
        """Record that the slot is deliberately not drafted, where no row is or a queued one."""
        with self._transaction() as rows:
            change = changes.skip(rows.run(message.key), message, reason, detail, now=now)
            return change if isinstance(change, AlreadyThere) else Settled(rows.apply(change, now))

    def queue(self, message: RunMessage, *, now: datetime) -> Settled | AlreadyThere:
        """Record that a run was asked for, where no row is."""
        with self._transaction() as rows:
            change = changes.queue(rows.run(message.key), message, now=now)
            return change if isinstance(change, AlreadyThere) else Settled(rows.apply(change, now))

    def remind(self, key: RunKey, *, now: datetime) -> Settled | Conflict | NoSuchRun:
        """Note that a waiting run's message was sent once more."""
        return self._change(key, lambda seen: changes.remind(seen, now=now), now)

    def decide(
        self,
        key: RunKey,
        verdict: Approve | Reject,
        *,
        version: int,
        read_hash: str,
        reviewer: str,
        now: datetime,
    ) -> Settled | Conflict | NoSuchRun:
        """Pending -> approved or rejected, once, for the version and the text hash that the reviewer read."""
        changes.edit_of(verdict)  # half an edit is refused, whatever has become of the run
        with self._transaction() as rows:
            seen = rows.run(key)
            if seen is None:
                return NoSuchRun()
            change = changes.decide(seen, verdict, version=version, read_hash=read_hash, reviewer=reviewer, now=now)
            if isinstance(change, Conflict):
                return change
            if change.edit is not None:
                rows.edit_text(key, *change.edit)
            if change.rejection is not None:
                rows.remember(key.drafter, change.rejection)
            return Settled(rows.apply(change, now))

    def withdraw(self, run: Run, why: Withdrawal, *, now: datetime) -> Settled | Conflict | NoSuchRun:
        """Pending -> expired or superseded, at the version that was read."""
        return self._change_as_read(run, changes.withdraw(run, why, now=now), now)

    def resend(self, key: RunKey, *, now: datetime) -> Settled | Conflict | NoSuchRun:
        """Failed -> queued, with the resend number raised by one and the attempts counted anew."""
        return self._change(key, lambda seen: changes.resend(seen, now=now), now)

    def dismiss(self, key: RunKey, *, now: datetime) -> Settled | Conflict | NoSuchRun:
        """Let a failed run be listed no longer."""
        return self._change(key, lambda seen: changes.dismiss(seen, now=now), now)

    def settle_publication(
        self, run: Run, status: Status, detail: str, *, now: datetime
    ) -> Settled | Conflict | NoSuchRun:
        """Approved -> published or publish_unknown, at the version and text hash that were sent."""
        return self._change_as_read(run, changes.settle_publication(run, status, detail, now=now), now)

    def pause(self, drafter: str, reason: str, *, now: datetime) -> None:
        """Let the drafter claim nothing until it is resumed."""
        at = format_instant(now)
        with self._transaction() as rows:
            rows.pause(drafter, reason, at)

    def resume(self, drafter: str, *, now: datetime) -> None:
        """Let the drafter claim again."""
        at = format_instant(now)
        with self._transaction() as rows:
            rows.resume(drafter, at)

    def run(self, key: RunKey) -> Run | None:
        """Return the row as it is now."""
        with self._reading() as rows:
            return rows.run(key)

    def draft(self, key: RunKey) -> StoredDraft | None:
        """Return the run's text, with the reviewer's edit where there is one."""
        with self._reading() as rows:
            row = rows.db.execute(_SELECT_TEXT, _key(key)).fetchone()
        return None if row is None else read_draft(_decoded(_TEXT_COLUMNS, row))

    def memory(self, drafter: str) -> Memory:
        """Return the cursors of the drafter's sources and its latest rejections."""
        with self._reading() as rows:
            return Memory(rows.cursors(drafter), *rows.rejections(drafter))

    def drafter(self, drafter: str) -> DrafterState:
        """Return the drafter's gate as it is now."""
        with self._reading() as rows:
            return rows.drafter(drafter)

    def committed_nanousd(self, drafter: str, day: str) -> int:
        """Return what the drafter has spent and reserved on a UTC day."""
        with self._reading() as rows:
            return rows.committed(drafter, day)

    def week(self, drafter: str, week: str) -> Mapping[str, int]:
        """Return the drafter's counters of an ISO week, by name."""
        with self._reading() as rows:
            found = rows.db.execute(
                "SELECT counter, value FROM weeks WHERE drafter = ? AND week = ?", (drafter, week)
            ).fetchall()
        return dict(found)

    def watched(self, status: Status, *, limit: int = 100, after: str | None = None) -> Page:
        """List the runs in one of the watched states, longest there first."""
        place = ("", "", "") if after is None else _watched_place(after)
        with self._reading() as rows:
            found = rows.db.execute(
                f"{_SELECT_RUN} WHERE status = ? AND queue_at IS NOT NULL "
                "AND (queue_at, drafter, slot) > (?, ?, ?) ORDER BY queue_at, drafter, slot LIMIT ?",
                (status, *place, limit + 1),
            ).fetchall()
        return _page(found, limit, lambda row: f"{row[-1]} {row[0]}:{row[1]}")

    def history(self, drafter: str, *, limit: int = 100, after: str | None = None) -> Page:
        """List a drafter's runs, newest slot first."""
        before = "~" if after is None else _history_place(drafter, after)
        with self._reading() as rows:
            found = rows.db.execute(
                f"{_SELECT_RUN} WHERE drafter = ? AND slot < ? ORDER BY slot DESC LIMIT ?", (drafter, before, limit + 1)
            ).fetchall()
        return _page(found, limit, lambda row: f"{row[0]}:{row[1]}")

    def slot_statuses(self, drafter: str, first: datetime, last: datetime) -> Mapping[datetime, Status | None]:
        """Return the slots from the first to the last that have a row, and what each has become."""
        with self._reading() as rows:
            found = rows.db.execute(
                "SELECT slot, status FROM runs WHERE drafter = ? AND slot BETWEEN ? AND ?",
                (drafter, format_instant(first), format_instant(last)),
            ).fetchall()
        return {slot_of_row(drafter, slot): status_of_row(status) for slot, status in found}

    def swept_schedules(self) -> SweptSchedules:
        """Return what the sweep noted of every schedule, by name."""
        with self._reading() as rows:
            found = rows.db.execute("SELECT name, swept FROM schedules ORDER BY name").fetchall()
        schedules: list[SweptSchedule] = []
        unreadable: list[str] = []
        for name, swept in found:
            try:
                schedules.append(read_schedule(json.loads(swept)))
            except (UnreadableRow, json.JSONDecodeError) as error:
                unreadable.append(f"row of schedule {name}: {error}")
        return SweptSchedules(tuple(schedules), tuple(unreadable))

    def note_swept(self, swept: SweptSchedule, *, now: datetime) -> None:
        """Note what the sweep knows of a schedule."""
        in_utc(now)
        with self._transaction() as rows:
            rows.db.execute(
                "INSERT INTO schedules VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET swept = excluded.swept",
                (swept.definition.name, _json(schedule_row(swept))),
            )

    def forget_swept(self, name: str, *, now: datetime) -> None:
        """Forget what was noted of a schedule."""
        in_utc(now)
        with self._transaction() as rows:
            rows.db.execute("DELETE FROM schedules WHERE name = ?", (name,))

    def expire_leases(self, *, now: datetime) -> tuple[RunKey, ...]:
        """Give up every lease, and return the runs that had one. A run that waits counts as seen now.

        Only for the start of a system that holds ``StateDirectory.lock_for_running``: then no process lives that could
        hold a lease, and waiting for its end would only lose time. What a dead owner had reserved stays reserved until
        the run is taken over. The attempt that was cut short does not count: it says nothing about the run, and how
        often that can be is bounded by the run's message (``queue.MOST_INTERRUPTIONS``).
        """
        expired = []
        with self._transaction() as rows:
            held = rows.db.execute(f"{_SELECT_RUN} WHERE status = ?", (Status.DRAFTING,)).fetchall()
            for row in held:
                try:
                    run = _run(row)
                except UnreadableRow:
                    continue  # listed as unreadable wherever rows are listed
                seen = replace(run, version=run.version + 1, changed=to_the_second(now))
                if run.lease_until is not None:
                    seen = replace(seen, owner=None, lease_until=None, attempts=max(run.attempts - 1, 0))
                    expired.append(run.key)
                rows.apply(changes.Change(run, seen), now)
        return tuple(expired)

    def stream_after(self, sequence: int, *, limit: int = 100) -> tuple[StreamRecord, ...]:
        """Return the changes of rows after a place in the stream (0 for its beginning), in their order."""
        with self._reading() as rows:
            found = rows.db.execute(
                "SELECT sequence, drafter, slot, old_status, new_status, version, at FROM stream "
                "WHERE sequence > ? ORDER BY sequence LIMIT ?",
                (sequence, limit),
            ).fetchall()
        return tuple(
            StreamRecord(
                sequence=place,
                key=RunKey(drafter, parse_instant(slot)),
                old=None if old is None else Status(old),
                new=Status(new),
                version=version,
                at=unstamp(at),
            )
            for place, drafter, slot, old, new, version, at in found
        )

    def stream_position(self, consumer: str) -> int:
        """Return how far a consumer has come: the last sequence that it has done with, 0 at its beginning."""
        with self._reading() as rows:
            row = rows.db.execute("SELECT position FROM consumers WHERE name = ?", (consumer,)).fetchone()
        return 0 if row is None else int(row[0])

    def advance(self, consumer: str, sequence: int) -> None:
        """Note that a consumer has done with everything up to a sequence; it never goes back.

        What every consumer has done with is dropped.
        """
        with self._transaction() as rows:
            rows.db.execute(
                "INSERT INTO consumers (name, position) VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET position = max(position, excluded.position)",
                (consumer, sequence),
            )
            rows.db.execute("DELETE FROM stream WHERE sequence <= (SELECT min(position) FROM consumers)")

    def _change(
        self, key: RunKey, change_of: Callable[[Run], changes.Change | Conflict], now: datetime
    ) -> Settled | Conflict | NoSuchRun:
        """Apply what somebody without a lease makes of the row as it is."""
        with self._transaction() as rows:
            seen = rows.run(key)
            if seen is None:
                return NoSuchRun()
            change = change_of(seen)
            return change if isinstance(change, Conflict) else Settled(rows.apply(change, now))

    def _change_as_read(self, read: Run, change: changes.Change, now: datetime) -> Settled | Conflict | NoSuchRun:
        """Apply what somebody without a lease made of the row as they had read it."""
        with self._transaction() as rows:
            current = rows.run(read.key)
            if current is None:
                return NoSuchRun()
            if (current.version, current.text_hash) != (read.version, read.text_hash):
                return Conflict(current)
            return Settled(rows.apply(change, now))

    @contextmanager
    def _transaction(self) -> Iterator["_Rows"]:
        try:
            with self._state.write() as db:
                yield _Rows(db)
        except StateBusy as error:
            raise StoreBusy(str(error)) from error

    @contextmanager
    def _reading(self) -> Iterator["_Rows"]:
        try:
            with self._state.read() as db:
                yield _Rows(db)
        except StateBusy as error:
            raise StoreBusy(str(error)) from error


class _Rows:
    """The tables, within one transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def run(self, key: RunKey) -> Run | None:
        row = self.db.execute(f"{_SELECT_RUN} WHERE drafter = ? AND slot = ?", _key(key)).fetchone()
        return None if row is None else _run(row)

    def still(self, run: Run) -> bool:
        """Tell whether the row is what the caller saw, and so the caller's where he owned it."""
        row = self.db.execute(
            "SELECT 1 FROM runs WHERE drafter = ? AND slot = ? AND version = ? AND owner IS ?",
            (*_key(run.key), run.version, run.owner),
        ).fetchone()
        return row is not None

    def drafter(self, drafter: str) -> DrafterState:
        row = self.db.execute(
            "SELECT pending, paused, was_paused, was_paused_since, was_paused_until FROM drafters WHERE drafter = ?",
            (drafter,),
        ).fetchone()
        return DrafterState(drafter) if row is None else DrafterState(drafter, row[0], row[1], last_pause(*row[2:]))

    def committed(self, drafter: str, day: str) -> int:
        row = self.db.execute(
            "SELECT committed_nanousd FROM spend WHERE drafter = ? AND day = ?", (drafter, day)
        ).fetchone()
        return 0 if row is None else int(row[0])

    def apply(self, change: changes.Change, now: datetime) -> Run:
        """Write the next row, and everything that changes with it."""
        before, after = change.before, change.after
        waits_since = changes.queue_at(after)
        row = [*_encoded(_RUN_COLUMNS, run_row(after)), waits_since]
        if before is None:
            self.db.execute(_INSERT_RUN, row)
        elif self.db.execute(_UPDATE_RUN, (*row, *_key(before.key), before.version, before.owner)).rowcount != 1:
            raise RowsDisagree(f"run {before.key} changed within a transaction")
        if change.places:
            self._move_pending(change)
        if change.committed:
            self.db.execute(
                "INSERT INTO spend VALUES (?, ?, ?) ON CONFLICT (drafter, day) "
                "DO UPDATE SET committed_nanousd = committed_nanousd + excluded.committed_nanousd",
                (after.drafter, after.spend_day, change.committed),
            )
        self.db.executemany(
            "INSERT INTO weeks VALUES (?, ?, ?, ?) "
            "ON CONFLICT (drafter, week, counter) DO UPDATE SET value = value + excluded.value",
            [(after.drafter, change.week, counter, value) for counter, value in change.counters.items()],
        )
        self.db.execute(
            "INSERT INTO stream (drafter, slot, old_status, new_status, version, at) VALUES (?, ?, ?, ?, ?, ?)",
            (*_key(after.key), None if before is None else before.status, after.status, after.version, stamp(now)),
        )
        return after

    def add_text(self, key: RunKey, draft: Draft) -> None:
        try:
            self.db.execute(_INSERT_TEXT, (*_key(key), *_encoded(_TEXT_COLUMNS, draft_row(draft))))
        except sqlite3.IntegrityError as error:
            raise RowsDisagree(f"run {key} is being drafted and has a text already") from error

    def edit_text(self, key: RunKey, title: str, body: str) -> None:
        edited = self.db.execute(
            "UPDATE texts SET edited_title = ?, edited_body = ? WHERE drafter = ? AND slot = ?",
            (title, body, *_key(key)),
        )
        if edited.rowcount != 1:
            raise RowsDisagree(f"run {key} is pending and has no text")

    def cursors(self, drafter: str) -> Mapping[str, Cursor]:
        found = self.db.execute("SELECT source, value FROM cursors WHERE drafter = ?", (drafter,)).fetchall()
        return {source: read_cursor(value, f"cursor of source {source!r} of {drafter}") for source, value in found}

    def move_cursors(self, drafter: str, cursors: Mapping[str, Cursor], read: Mapping[str, Cursor]) -> None:
        """Move the cursors, if each still is what was read."""
        there = self.cursors(drafter) if cursors else {}
        for source in cursors:
            if there.get(source) != read.get(source):
                raise CursorMoved(source)
        self.db.executemany(
            "INSERT INTO cursors VALUES (?, ?, ?) ON CONFLICT (drafter, source) DO UPDATE SET value = excluded.value",
            [(drafter, source, _json(value)) for source, value in cursors.items()],
        )

    def rejections(self, drafter: str) -> tuple[tuple[Rejection, ...], tuple[str, ...]]:
        found = self.db.execute(
            "SELECT slot, reason, words FROM rejections WHERE drafter = ? ORDER BY sequence DESC", (drafter,)
        ).fetchall()
        return read_rejections((dict(zip(("slot", "reason", "words"), row, strict=True)) for row in found), drafter)

    def remember(self, drafter: str, rejection: Rejection) -> None:
        """Put a rejection before the earlier ones, and forget the oldest."""
        told = rejection_row(rejection)
        self.db.execute(
            "INSERT INTO rejections (drafter, slot, reason, words) VALUES (?, ?, ?, ?)",
            (drafter, told["slot"], told["reason"], told["words"]),
        )
        self.db.execute(
            "DELETE FROM rejections WHERE drafter = ? AND sequence NOT IN "
            "(SELECT sequence FROM rejections WHERE drafter = ? ORDER BY sequence DESC LIMIT ?)",
            (drafter, drafter, MOST_REJECTIONS),
        )

    def pause(self, drafter: str, reason: str, at: str) -> None:
        self.db.execute(
            "INSERT INTO drafters (drafter, pending, paused, paused_since) VALUES (?, 0, ?, ?) "
            "ON CONFLICT (drafter) DO UPDATE "
            "SET paused = excluded.paused, paused_since = coalesce(paused_since, excluded.paused_since)",
            (drafter, reason, at),
        )

    def resume(self, drafter: str, at: str) -> None:
        self.db.execute(
            "UPDATE drafters SET was_paused = paused, was_paused_since = coalesce(paused_since, ?), "
            "was_paused_until = ?, paused = NULL, paused_since = NULL WHERE drafter = ? AND paused IS NOT NULL",
            (at, at, drafter),
        )

    def _move_pending(self, change: changes.Change) -> None:
        drafter = change.after.drafter
        self.db.execute("INSERT OR IGNORE INTO drafters (drafter, pending) VALUES (?, 0)", (drafter,))
        if change.ends_whatever_the_count and self.drafter(drafter).pending == 0:
            return
        try:
            self.db.execute("UPDATE drafters SET pending = pending + ? WHERE drafter = ?", (change.places, drafter))
        except sqlite3.IntegrityError as error:
            raise RowsDisagree(f"drafter {drafter} gives back a place and has none: its count is 0") from error


def _key(key: RunKey) -> tuple[str, str]:
    return key.drafter, format_instant(key.slot)


def _run(row: Sequence[Any]) -> Run:
    try:
        return read_run(_decoded(_RUN_COLUMNS, row))
    except json.JSONDecodeError as error:
        raise UnreadableRow(f"run {row[0]}:{row[1]}: {error}") from error


def _page(found: Sequence[Sequence[Any]], limit: int, place: Callable[[Sequence[Any]], str]) -> Page:
    runs: list[Run] = []
    unreadable: list[str] = []
    for row in found[:limit]:
        try:
            runs.append(_run(row))
        except UnreadableRow as error:
            unreadable.append(str(error))
    return Page(tuple(runs), tuple(unreadable), place(found[limit - 1]) if len(found) > limit else None)


def _watched_place(after: str) -> tuple[str, str, str]:
    since, _, run = after.partition(" ")
    key = RunKey.parse(run)
    urgent = changes.URGENT if since.startswith(changes.URGENT) else ""
    return f"{urgent}{format_instant(parse_instant(since.removeprefix(urgent)))}", *_key(key)


def _history_place(drafter: str, after: str) -> str:
    key = RunKey.parse(after)
    if key.drafter != drafter:
        raise ValueError(f"{after!r} continues the listing of another drafter than {drafter}")
    return format_instant(key.slot)


def _encoded(columns: Sequence[str], row: Mapping[str, Any]) -> list[Any]:
    return [
        None if (value := row.get(name)) is None else _json(value) if name in _JSON_COLUMNS else value
        for name in columns
    ]


def _decoded(columns: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    return {
        name: json.loads(value) if name in _JSON_COLUMNS else value
        for name, value in zip(columns, row, strict=False)
        if value is not None
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
