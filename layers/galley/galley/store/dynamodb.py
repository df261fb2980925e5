"""The store in Amazon DynamoDB: one table, and one transaction for each change of a run.

| pk                  | sk             | what                                                                    |
| ------------------- | -------------- | ----------------------------------------------------------------------- |
| `RUN#<drafter>`     | `<slot>`       | the run; `queue` and `queue_at` while it is watched                     |
| `TEXT#<drafter>`    | `<slot>`       | the draft, and the reviewer's edit beside it                            |
| `DRAFTER#<drafter>` | `STATE`        | `pending`; `paused` with its reason, and `paused_since`; of the last    |
|                     |                | pause `was_paused`, `was_paused_since` and `was_paused_until`           |
| `DRAFTER#<drafter>` | `WEEK#<week>`  | the counters of an ISO week                                             |
| `DRAFTER#<drafter>` | `SOURCE#<id>`  | the source's cursor, as JSON text                                       |
| `DRAFTER#<drafter>` | `REJECTIONS`   | the latest ones, `latest_1` (the last) to `latest_5`                     |
| `DRAFTER#<drafter>` | `SPEND#<day>`  | `committed`: nano-dollars spent and reserved on a UTC day; `expires`     |
| `SCHEDULES`         | `<schedule>`   | the schedule as the sweep last read it, and `swept_until`;              |
|                     |                | of a deleted one `forgotten` and `expires`                              |

The spend of a day has a row of its own: conditions cannot add, so one number must hold both what is spent and what is
reserved, and a row that begins with its day needs nobody to reset it at midnight.

A change is first tried on the row as it most probably is. If that is wrong, the cancelled transaction brings the row
as it is, and the change is worked out again from that: no read comes before a write on the usual path.
"""

import base64
import hashlib
import itertools
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import BotoCoreError, ClientError

from galley.aws import unavailable_as, why_unavailable
from galley.drafts import Draft
from galley.instants import format_instant, in_utc
from galley.retry import NeverSucceeds, RetryLater, backoff
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
from galley.store.changes import Change
from galley.store.rows import (
    Row,
    draft_row,
    last_pause,
    partition_of_runs,
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

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

INDEX = "queue"
"""The sparse index of the watched runs: hash `queue` (the status), range `queue_at`."""

MOST_ITEM_BYTES = 400 * 1024
"""https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html"""

SPEND_KEPT = timedelta(days=60)
TRIES = 8
FIRST_WAIT_SECONDS = 0.025
"""Half of the longest that a transaction's first wait can be."""

ROUNDS = 5
"""How often a change is worked out again because the row turned out to be another one."""

Attribute = dict[str, Any]
"""A value in DynamoDB's own notation, like ``{"S": "text"}``."""


class _Part(Enum):
    """What a write of a transaction stands for, so that a failed condition can be told by its place."""

    RUN = auto()
    GATE = auto()
    COUNT = auto()
    BUDGET = auto()
    TEXT = auto()
    CURSOR = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class _Write:
    part: _Part
    item: "TransactWriteItemTypeDef"
    source: str = ""


@dataclass(frozen=True, slots=True)
class _Failed:
    """The first part of a transaction whose condition did not hold, with its row as it is; None where none is.

    ``source`` names the source whose cursor it is, where it is one.
    """

    part: _Part
    row: Row | None
    source: str

    @property
    def run(self) -> Run | None:
        return None if self.row is None else read_run(self.row)


class DynamoStore:
    """The run protocol over one table. Opening it does no I/O; conflicts are waited out for about three seconds.

    Every change goes through one transaction with a token made of its own content and instant, so that a repeated
    request, whose first answer was lost, changes nothing twice.
    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._table = table
        self._sleep = sleep
        self._jitter = jitter

    def claim(
        self, message: RunMessage, limits: Limits, *, owner: str, now: datetime, lease_until: datetime
    ) -> ClaimOutcome:
        """Take the run, a place at the gate and the worst cost of the call, together or not at all."""
        seen: Run | None = None
        for _ in range(ROUNDS):
            change = changes.claim(seen, message, limits, owner=owner, now=now, lease_until=lease_until)
            if isinstance(change, Duplicate | Busy):
                return change
            writes = [self._run(change), self._gate(change, limits), *self._reservation(change, limits)]
            failed = self._commit([*writes, *self._week(change)], now)
            if failed is None:
                return Claimed(change.after)
            match failed.part:
                case _Part.RUN:
                    seen = failed.run
                case _Part.GATE:
                    state = _state(message.drafter, failed.row)
                    return Gated(state.pending) if state.paused is None else Paused(state.paused)
                case _Part.BUDGET:
                    return OverBudget(_whole(failed.row, "committed"))
                case part:
                    raise AssertionError(f"a claim has no condition on {part}")
        raise StoreBusy(f"run {message.key} kept changing under its claim")

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
        """Drafting -> pending, with the text, the source cursors, the bill and the week."""
        text = {**_text_key(run.key), **draft_row(draft)}
        if (size := _item_bytes(text)) > MOST_ITEM_BYTES:
            raise _too_large(f"draft of {run.key} takes {size} bytes of the {MOST_ITEM_BYTES} that a row can hold")
        change = changes.store(run, draft, bill, now=now, rules=rules)
        return self._settle(change, [self._put(text), *self._cursors(run.drafter, cursors, read)], now)

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
        return self._settle(change, self._cursors(run.drafter, cursors, read), now)

    def postpone(
        self, run: Run, error: RetryLater, bill: Bill, *, now: datetime, next_attempt: datetime
    ) -> Settled | LeaseLost:
        """Keep the run drafting, with its lease given up until the next attempt."""
        return self._settle(changes.postpone(run, error, bill, now=now, next_attempt=next_attempt), [], now)

    def skip(self, message: RunMessage, reason: SkipReason, detail: str, *, now: datetime) -> Settled | AlreadyThere:
        """Record that the slot is deliberately not drafted."""
        return self._record(message.key, lambda seen: changes.skip(seen, message, reason, detail, now=now), now)

    def queue(self, message: RunMessage, *, now: datetime) -> Settled | AlreadyThere:
        """Record that a run was asked for, where no row is."""
        return self._record(message.key, lambda seen: changes.queue(seen, message, now=now), now)

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
        """Pending -> approved or rejected, once, for the version and the text hash that the reviewer read.

        The row is read first: a transaction does not return what it wrote, and the time that the decision took is
        counted from when the draft was made.
        """
        edit = changes.edit_of(verdict)
        if edit is not None and (size := sum(len(text.encode()) for text in edit)) > MOST_ITEM_BYTES:
            raise _too_large(f"edit of {key} takes {size} bytes of the {MOST_ITEM_BYTES} that a row can hold")

        def decided(seen: Run) -> Change | Conflict:
            return changes.decide(seen, verdict, version=version, read_hash=read_hash, reviewer=reviewer, now=now)

        return self._change(key, decided, now)

    def withdraw(self, run: Run, why: Withdrawal, *, now: datetime) -> Settled | Conflict | NoSuchRun:
        """Pending -> expired or superseded, at the version that was read."""
        return self._change_as_read(changes.withdraw(run, why, now=now), now)

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
        return self._change_as_read(changes.settle_publication(run, status, detail, now=now), now)

    def pause(self, drafter: str, reason: str, *, now: datetime) -> None:
        """Let the drafter claim nothing until it is resumed."""
        paused = {
            "UpdateExpression": "SET paused = :reason, paused_since = if_not_exists(paused_since, :now)",
            "ExpressionAttributeValues": _attributes({":reason": reason, ":now": format_instant(now)}),
        }
        self._commit([_Write(_Part.OTHER, {"Update": self._on(_state_key(drafter), paused)})], now)

    def resume(self, drafter: str, *, now: datetime) -> None:
        """Let the drafter claim again."""
        resumed = {
            "UpdateExpression": "SET was_paused = paused, was_paused_since = if_not_exists(paused_since, :now), "
            "was_paused_until = :now REMOVE paused, paused_since",
            "ConditionExpression": "attribute_exists(paused)",
            "ExpressionAttributeValues": _attributes({":now": format_instant(now)}),
        }
        self._commit([_Write(_Part.OTHER, {"Update": self._on(_state_key(drafter), resumed)})], now)

    def run(self, key: RunKey) -> Run | None:
        """Return the row as it is now."""
        row = self._get(_run_key(key))
        return None if row is None else read_run(row)

    def draft(self, key: RunKey) -> StoredDraft | None:
        """Return the run's text, with the reviewer's edit where there is one."""
        row = self._get(_text_key(key))
        return None if row is None else read_draft(row)

    def memory(self, drafter: str) -> Memory:
        """Return the cursors of the drafter's sources and its latest rejections; by their names they lie together."""
        condition = "pk = :pk AND sk BETWEEN :first AND :last"
        query = _query(self._table, condition, pk=_drafter_pk(drafter), first=_REJECTIONS, last=_AFTER_SOURCES)
        rows = {row["sk"]: row for row in map(_plain_row, self._all(query))}
        told = rows.pop(_REJECTIONS, {})
        cursors = {
            source: read_cursor(row.get("cursor"), f"cursor of source {source!r} of {drafter}")
            for sk, row in rows.items()
            if sk.startswith(_SOURCE) and (source := sk.removeprefix(_SOURCE))
        }
        return Memory(cursors, *read_rejections((told[name] for name in _LATEST if told.get(name)), drafter))

    def drafter(self, drafter: str) -> DrafterState:
        """Return the drafter's gate as it is now."""
        return _state(drafter, self._get(_state_key(drafter)))

    def committed_nanousd(self, drafter: str, day: str) -> int:
        """Return what the drafter has spent and reserved on a UTC day."""
        return _whole(self._get(_spend_key(drafter, day)), "committed")

    def week(self, drafter: str, week: str) -> Mapping[str, int]:
        """Return the drafter's counters of an ISO week, by name."""
        row = self._get(_week_key(drafter, week)) or {}
        return {name: value for name, value in row.items() if name not in {"pk", "sk"}}

    def watched(self, status: Status, *, limit: int = 100, after: str | None = None) -> Page:
        """List the runs in one of the watched states, longest there first."""
        query = _query(self._table, "queue = :queue", queue=str(status))
        return self._page({**query, "IndexName": INDEX}, {"queue": str(status)}, ("pk", "sk", "queue_at"), limit, after)

    def history(self, drafter: str, *, limit: int = 100, after: str | None = None) -> Page:
        """List a drafter's runs, newest slot first."""
        pk = partition_of_runs(drafter)
        query = _query(self._table, "pk = :pk", pk=pk)
        newest_first = {**query, "ScanIndexForward": False, "ConsistentRead": True}
        return self._page(newest_first, {"pk": pk}, ("sk",), limit, after)

    def slot_statuses(self, drafter: str, first: datetime, last: datetime) -> Mapping[datetime, Status | None]:
        """Return the slots from the first to the last that have a row, and what each has become."""
        if first > last:
            return {}  # a condition that runs backwards is refused
        between = {"first": format_instant(first), "last": format_instant(last)}
        condition = "pk = :pk AND sk BETWEEN :first AND :last"
        query = _query(self._table, condition, pk=partition_of_runs(drafter), **between)
        names = {"#status": "status"}
        items = self._all({**query, "ProjectionExpression": "sk, #status", "ExpressionAttributeNames": names})
        return {slot_of_row(drafter, item["sk"]["S"]): status_of_row(item.get("status", {}).get("S")) for item in items}

    def swept_schedules(self) -> SweptSchedules:
        """Return what the sweep noted of every schedule, by name."""
        found, unreadable = [], []
        for item in self._all(_query(self._table, "pk = :pk", pk=_SCHEDULES)):
            if "forgotten" in item:
                continue
            try:
                found.append(read_schedule(_plain_row(item)))
            except UnreadableRow as error:
                unreadable.append(f"row {item['pk']['S']} {item['sk']['S']}: {error}")
        return SweptSchedules(tuple(found), tuple(unreadable))

    def note_swept(self, swept: SweptSchedule, *, now: datetime) -> None:
        """Note what the sweep knows of a schedule."""
        key = {"pk": _SCHEDULES, "sk": swept.definition.name}
        self._commit([self._put({**key, **schedule_row(swept)})], now)

    def forget_swept(self, name: str, *, now: datetime) -> None:
        """Forget what was noted of a schedule: no function may delete rows, so DynamoDB does it, in its own time."""
        expires = int(in_utc(now).timestamp())
        self._commit([self._put({"pk": _SCHEDULES, "sk": name, "forgotten": True, "expires": expires})], now)

    def _settle(self, change: Change, others: Sequence[_Write], now: datetime) -> Settled | LeaseLost:
        """Apply what the owner of a lease makes of its run."""
        writes = [self._run(change), *self._place_back(change), *others, *self._bill(change), *self._week(change)]
        for _ in range(ROUNDS + len(others)):
            match self._commit(writes, now):
                case None:
                    return Settled(change.after)
                case _Failed(_Part.RUN) as failed:
                    return LeaseLost(failed.run)
                case _Failed(_Part.CURSOR) as failed:
                    writes = _respelled(writes, failed)
                case _Failed(_Part.COUNT) if change.ends_whatever_the_count:
                    writes = [write for write in writes if write.part is not _Part.COUNT]
                case failed:
                    raise _disagreement(change, failed)
        raise StoreBusy(f"the cursors of {change.after.drafter} kept changing")

    def _change(
        self, key: RunKey, change_of: Callable[[Run], Change | Conflict], now: datetime
    ) -> Settled | Conflict | NoSuchRun:
        """Apply what somebody without a lease makes of the row as it is."""
        seen = self.run(key)
        for _ in range(ROUNDS):
            if seen is None:
                return NoSuchRun()
            change = change_of(seen)
            if isinstance(change, Conflict):
                return change
            text = [] if change.edit is None else [self._edit(key, *change.edit)]
            told = [] if change.rejection is None else [self._rejected(key.drafter, change.rejection)]
            writes = [self._run(change), *self._place_back(change), *text, *told, *self._week(change)]
            match self._commit(writes, now):
                case None:
                    return Settled(change.after)
                case _Failed(_Part.RUN) as failed:
                    seen = failed.run
                case failed:
                    raise _disagreement(change, failed)
        raise StoreBusy(f"run {key} kept changing")

    def _change_as_read(self, change: Change, now: datetime) -> Settled | Conflict | NoSuchRun:
        """Apply what somebody without a lease made of the row as they had read it."""
        match self._commit([self._run(change), *self._place_back(change), *self._week(change)], now):
            case None:
                return Settled(change.after)
            case _Failed(_Part.RUN) as failed:
                return NoSuchRun() if failed.run is None else Conflict(failed.run)
            case failed:
                raise _disagreement(change, failed)

    def _record(
        self, key: RunKey, change_of: Callable[[Run | None], Change | AlreadyThere], now: datetime
    ) -> Settled | AlreadyThere:
        """Apply what becomes of a run that most probably has no row."""
        seen: Run | None = None
        for _ in range(ROUNDS):
            change = change_of(seen)
            if isinstance(change, AlreadyThere):
                return change
            failed = self._commit([self._run(change), *self._week(change)], now)
            if failed is None:
                return Settled(change.after)
            seen = failed.run
        raise StoreBusy(f"run {key} kept changing while it was recorded")

    def _run(self, change: Change) -> _Write:
        """Write the run's row, if it still is the one that was seen."""
        key = _run_key(change.after.key)
        row = {**key, **_queued_row(change.after)}
        if change.before is None:
            put = {"Item": _attributes(row), "ConditionExpression": "attribute_not_exists(pk)"}
            return _Write(_Part.RUN, {"Put": self._told(put)})
        was = {**key, **_queued_row(change.before)}
        update = _update(
            set_to={name: value for name, value in row.items() if was.get(name) != value},
            remove=sorted(was.keys() - row.keys()),
            same_as={name: was.get(name) for name in ("version", "status", "owner", "text_hash")},
        )
        return _Write(_Part.RUN, {"Update": self._on(key, update)})

    def _gate(self, change: Change, limits: Limits) -> _Write:
        """Take a place, if the drafter is not paused and one is free. Who holds one keeps it only within the limit.

        A limit of zero lets nobody in, not even where no row counts yet.
        """
        key = _state_key(change.after.drafter)
        not_paused = "attribute_not_exists(paused)"
        if not change.places:
            check = {
                "Key": _attributes(key),
                "ConditionExpression": f"{not_paused} AND (attribute_not_exists(pending) OR pending <= :limit)",
                "ExpressionAttributeValues": _attributes({":limit": limits.pending}),
            }
            return _Write(_Part.GATE, {"ConditionCheck": self._told(check)})
        first_place = "attribute_not_exists(pending)"
        free_place = f"({first_place} OR pending < :limit)" if limits.pending > 0 else "pending < :limit"
        update = {
            "UpdateExpression": "ADD pending :one",
            "ConditionExpression": f"{not_paused} AND {free_place}",
            "ExpressionAttributeValues": _attributes({":one": 1, ":limit": limits.pending}),
        }
        return _Write(_Part.GATE, {"Update": self._on(key, update)})

    def _place_back(self, change: Change) -> Iterable[_Write]:
        """Give the place back, if one is counted: a count below zero means that rows were lost or made by hand."""
        if change.places:
            update = {
                "UpdateExpression": "ADD pending :places",
                "ConditionExpression": "pending >= :held",
                "ExpressionAttributeValues": _attributes({":places": change.places, ":held": -change.places}),
            }
            yield _Write(_Part.COUNT, {"Update": self._on(_state_key(change.after.drafter), update)})

    def _reservation(self, change: Change, limits: Limits) -> Iterable[_Write]:
        """Reserve the worst cost of the call, if it fits into what is left of the day's budget.

        A worst cost above the whole budget never fits, not even where no row counts yet.
        """
        if limits.daily_budget_nanousd is None:
            yield from self._bill(change)
            return
        room = limits.daily_budget_nanousd - change.committed
        first_call = "attribute_not_exists(committed)"
        fits = f"{first_call} OR committed <= :room" if room >= 0 else "committed <= :room"
        update = self._spend(change)
        update["ConditionExpression"] = fits
        update["ExpressionAttributeValues"] |= _attributes({":room": room})
        yield _Write(_Part.BUDGET, {"Update": self._on(self._spend_key(change), update)})

    def _bill(self, change: Change) -> Iterable[_Write]:
        """Correct what the day has committed."""
        if change.committed:
            yield _Write(_Part.OTHER, {"Update": self._on(self._spend_key(change), self._spend(change))})

    @staticmethod
    def _spend(change: Change) -> dict[str, Any]:
        day = datetime.fromisoformat(change.after.spend_day or "").replace(tzinfo=UTC)
        expires = int((day + SPEND_KEPT).timestamp())
        return {
            "UpdateExpression": "SET expires = :expires ADD committed :committed",
            "ExpressionAttributeValues": _attributes({":expires": expires, ":committed": change.committed}),
        }

    @staticmethod
    def _spend_key(change: Change) -> Row:
        return _spend_key(change.after.drafter, change.after.spend_day or "")

    def _week(self, change: Change) -> Iterable[_Write]:
        """Raise the counters of the slot's week."""
        if change.counters:
            key = _week_key(change.after.drafter, change.week)
            yield _Write(_Part.OTHER, {"Update": self._on(key, _update(add=change.counters))})

    def _cursors(self, drafter: str, cursors: Mapping[str, Cursor], read: Mapping[str, Cursor]) -> list[_Write]:
        """Move the cursors, if each still is what was read."""
        return [self._cursor(_source_key(drafter, source), source, cursors[source], read) for source in cursors]

    def _cursor(self, key: Row, source: str, cursor: Cursor, read: Mapping[str, Cursor]) -> _Write:
        put: dict[str, Any] = {"Item": _attributes({**key, "cursor": _json(cursor)})}
        if source in read:
            put["ConditionExpression"] = "#cursor = :read"
            put["ExpressionAttributeNames"] = {"#cursor": "cursor"}
            put["ExpressionAttributeValues"] = _attributes({":read": _json(read[source])})
        else:
            put["ConditionExpression"] = "attribute_not_exists(pk)"
        return _Write(_Part.CURSOR, {"Put": self._told(put)}, source)

    def _edit(self, key: RunKey, title: str, body: str) -> _Write:
        """Put the reviewer's edit beside the draft, which must be there."""
        update = _update(set_to={"edited_title": title, "edited_body": body})
        update["ConditionExpression"] = "attribute_exists(pk)"
        return _Write(_Part.TEXT, {"Update": self._on(_text_key(key), update)})

    def _rejected(self, drafter: str, rejection: Rejection) -> _Write:
        """Put a rejection before the earlier ones, and the oldest out.

        Each moves a place on as it stands at that moment, the oldest first, so nothing need be read; of two rejections
        at once the one that comes first is moved by the other.
        https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.UpdateExpressions.html
        """
        places = itertools.pairwise(reversed(_LATEST))
        moved = [f"{older} = if_not_exists({newer}, :none)" for older, newer in places]
        update = {
            "UpdateExpression": f"SET {', '.join([*moved, f'{_LATEST[0]} = :told'])}",
            "ExpressionAttributeValues": _attributes({":none": {}, ":told": rejection_row(rejection)}),
        }
        return _Write(_Part.OTHER, {"Update": self._on(_rejections_key(drafter), update)})

    def _put(self, row: Row) -> _Write:
        return _Write(_Part.OTHER, {"Put": {"TableName": self._table, "Item": _attributes(row)}})

    def _on(self, key: Row, update: Mapping[str, Any]) -> Any:
        return self._told({"Key": _attributes(key), **update})

    def _told(self, action: Mapping[str, Any]) -> Any:
        """Return an action on the table that tells the row as it is when its condition fails."""
        return {"TableName": self._table, "ReturnValuesOnConditionCheckFailure": "ALL_OLD", **action}

    def _commit(self, writes: Sequence[_Write], now: datetime) -> _Failed | None:
        """Write all or nothing, and return the first part whose condition failed.

        Raises:
            StoreBusy: when other writers held the rows through all tries, or the table gave no answer.
        """
        items = [write.item for write in writes]
        content = json.dumps([items, in_utc(now).isoformat()], sort_keys=True)
        token = hashlib.sha256(content.encode()).hexdigest()[:36]
        in_the_way = ""
        for attempt in range(TRIES):
            if attempt:
                self._sleep(backoff(attempt, FIRST_WAIT_SECONDS, self._jitter()))
            try:
                self._client.transact_write_items(TransactItems=items, ClientRequestToken=token)
                return None
            except BotoCoreError as error:
                why = why_unavailable(error)
                if why is None:
                    raise
                raise StoreBusy(f"table {self._table}: {why}") from error
            except ClientError as error:
                failed = _first_failure(writes, error)
                if isinstance(failed, _Failed):
                    return failed
                in_the_way = failed
        raise StoreBusy(f"table {self._table}: {in_the_way} at each of {TRIES} tries")

    def _get(self, key: Row) -> Row | None:
        with unavailable_as(StoreBusy):
            found = self._client.get_item(TableName=self._table, Key=_attributes(key), ConsistentRead=True)
        return _plain_row(found["Item"]) if "Item" in found else None

    def _all(self, query: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield every item of a query, from all its pages, as they are now."""
        begin: dict[str, Any] = {}
        while True:
            with unavailable_as(StoreBusy):
                answer = self._client.query(**query, **begin, ConsistentRead=True)
            yield from answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return
            begin = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def _page(self, query: dict[str, Any], partition: Row, rest: Sequence[str], limit: int, after: str | None) -> Page:
        """Return one page of a query. One row more than asked for is read, to know whether the page is the last."""
        found: list[Mapping[str, Any]] = []
        begin: dict[str, Any] = (
            {} if after is None else {"ExclusiveStartKey": _attributes(_place(after, partition, rest))}
        )
        while len(found) <= limit:
            with unavailable_as(StoreBusy):
                answer = self._client.query(**query, **begin, Limit=limit + 1 - len(found))
            found += answer["Items"]
            if "LastEvaluatedKey" not in answer:
                break
            begin = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        page, more = found[:limit], found[limit:]
        runs, unreadable = [], []
        for item in page:
            try:
                runs.append(read_run(_plain_row(item)))
            except UnreadableRow as error:
                unreadable.append(f"row {item['pk']['S']} {item['sk']['S']}: {error}")
        return Page(tuple(runs), tuple(unreadable), _after(page[-1], rest) if more else None)


_SOURCE = "SOURCE#"
_AFTER_SOURCES = "SOURCE$"
"""Sorts after each source's row, whatever the source is called."""
_REJECTIONS = "REJECTIONS"
_LATEST = tuple(f"latest_{place}" for place in range(1, MOST_REJECTIONS + 1))
_SCHEDULES = "SCHEDULES"
_BUSY_REASONS = {"ProvisionedThroughputExceeded", "ThrottlingError", "TransactionConflict"}


def _busy_code(error: ClientError) -> str:
    """Return why a request was turned away, if it is worth trying again; raise otherwise."""
    code = error.response["Error"]["Code"]
    if code == "ValidationException" and "size" in error.response["Error"]["Message"]:
        raise _too_large(str(error)) from error
    if why_unavailable(error) is None:
        raise error
    return code


def _first_failure(writes: Sequence[_Write], error: ClientError) -> _Failed | str:
    """Return the first failed condition of a transaction, or what was in the way if that came before.

    The reasons are in the order of the writes, and an innocent write's code is the word None.
    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    """
    if error.response["Error"]["Code"] != "TransactionCanceledException":
        return _busy_code(error)
    reasons = cast("list[dict[str, Any]]", error.response.get("CancellationReasons", []))
    for write, reason in zip(writes, reasons, strict=False):
        code = reason["Code"]
        if code == "ConditionalCheckFailed":
            return _Failed(write.part, _plain_row(reason["Item"]) if "Item" in reason else None, write.source)
        if code in _BUSY_REASONS:
            return str(code)
        if code == "ValidationError" and "size" in reason.get("Message", ""):
            raise _too_large(f"a row would be larger than DynamoDB holds: {reason['Message']}") from error
        if code != "None":
            raise error
    raise error


def _respelled(writes: Sequence[_Write], failed: _Failed) -> list[_Write]:
    """Return the writes with a cursor's condition as the text that stands there, if that means what was read.

    Somebody who wrote to the table by hand may have spelled the same value in another way.

    Raises:
        CursorMoved: when it means something else.
    """
    there = None if failed.row is None else failed.row.get("cursor")
    respelled = []
    for write in writes:
        if write.part is _Part.CURSOR and write.source == failed.source:
            put: dict[str, Any] = {**cast("dict[str, Any]", write.item["Put"])}
            was = put.get("ExpressionAttributeValues", {}).get(":read", {}).get("S")
            if was is None or there in {None, was} or json.loads(str(there)) != json.loads(was):
                raise CursorMoved(failed.source)
            put["ExpressionAttributeValues"] = _attributes({":read": there})
            respelled.append(_Write(write.part, cast("TransactWriteItemTypeDef", {"Put": put}), write.source))
        else:
            respelled.append(write)
    return respelled


def _json(cursor: Cursor) -> str:
    return json.dumps(cursor, allow_nan=False)


def _too_large(detail: str) -> NeverSucceeds:
    return NeverSucceeds("draft_too_large", detail)


def _disagreement(change: Change, failed: _Failed) -> RowsDisagree:
    run = change.after.key
    match failed.part:
        case _Part.COUNT:
            count = _whole(failed.row, "pending")
            return RowsDisagree(f"run {run} holds a place, but {run.drafter} has {count} undecided drafts in its count")
        case _Part.TEXT:
            return RowsDisagree(f"run {run} is {change.before and change.before.status}, but its draft is missing")
        case part:
            raise AssertionError(f"no condition is set on {part}")


def _queued_row(run: Run) -> Row:
    """Return the run's row with its place in the index, where it has one."""
    since = changes.queue_at(run)
    return run_row(run) | ({} if since is None else {"queue": str(run.status), "queue_at": since})


def _run_key(key: RunKey) -> Row:
    return {"pk": partition_of_runs(key.drafter), "sk": format_instant(key.slot)}


def _text_key(key: RunKey) -> Row:
    return {"pk": f"TEXT#{key.drafter}", "sk": format_instant(key.slot)}


def _drafter_pk(drafter: str) -> str:
    return f"DRAFTER#{drafter}"


def _state_key(drafter: str) -> Row:
    return {"pk": _drafter_pk(drafter), "sk": "STATE"}


def _week_key(drafter: str, week: str) -> Row:
    return {"pk": _drafter_pk(drafter), "sk": f"WEEK#{week}"}


def _spend_key(drafter: str, day: str) -> Row:
    return {"pk": _drafter_pk(drafter), "sk": f"SPEND#{day}"}


def _source_key(drafter: str, source: str) -> Row:
    return {"pk": _drafter_pk(drafter), "sk": f"{_SOURCE}{source}"}


def _rejections_key(drafter: str) -> Row:
    return {"pk": _drafter_pk(drafter), "sk": _REJECTIONS}


def _state(drafter: str, row: Row | None) -> DrafterState:
    state = row or {}
    last = last_pause(state.get("was_paused"), state.get("was_paused_since"), state.get("was_paused_until"))
    return DrafterState(drafter, _whole(row, "pending"), state.get("paused"), last)


def _whole(row: Row | None, name: str) -> int:
    """Return a number of a row; zero where there is none yet."""
    return 0 if row is None else int(row.get(name, 0))


def _update(
    *,
    set_to: Row | None = None,
    remove: Sequence[str] = (),
    add: Mapping[str, int] | None = None,
    same_as: Row | None = None,
) -> dict[str, Any]:
    """Return an update, with names and values as placeholders, since many of our words are reserved in DynamoDB.

    ``same_as``: what the row must still hold for the update to happen; None stands for an attribute that is not there.
    """
    names: dict[str, str] = {}
    values: Row = {}

    def name_of(attribute: str) -> str:
        return names.setdefault(attribute, f"#n{len(names)}")

    def value_of(value: object) -> str:
        placeholder = f":v{len(values)}"
        values[placeholder] = value
        return placeholder

    clauses = {
        "SET": [f"{name_of(name)} = {value_of(value)}" for name, value in (set_to or {}).items()],
        "REMOVE": [name_of(name) for name in remove],
        "ADD": [f"{name_of(name)} {value_of(value)}" for name, value in (add or {}).items()],
    }
    conditions = [
        f"attribute_not_exists({name_of(name)})" if value is None else f"{name_of(name)} = {value_of(value)}"
        for name, value in (same_as or {}).items()
    ]
    update: dict[str, Any] = {
        "UpdateExpression": " ".join(f"{verb} {', '.join(parts)}" for verb, parts in clauses.items() if parts),
        "ExpressionAttributeNames": {placeholder: attribute for attribute, placeholder in names.items()},
        "ExpressionAttributeValues": _attributes(values),
    }
    if conditions:
        update["ConditionExpression"] = " AND ".join(conditions)
    return update


def _query(table: str, condition: str, **values: str) -> dict[str, Any]:
    return {
        "TableName": table,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": _attributes({f":{name}": value for name, value in values.items()}),
    }


def _after(item: Mapping[str, Any], rest: Sequence[str]) -> str:
    """Return the token that continues a listing after a row. Its partition is not in it: the listing knows that."""
    return base64.urlsafe_b64encode(json.dumps([item[name]["S"] for name in rest]).encode()).decode()


def _place(after: str, partition: Row, rest: Sequence[str]) -> Row:
    """Return the key at which a listing continues.

    Raises:
        ValueError: when the token is not one of this listing.
    """
    try:
        values = json.loads(base64.urlsafe_b64decode(after.encode()))
        named = dict(zip(rest, values, strict=True))
        if all(isinstance(value, str) and value for value in named.values()):
            return {**partition, **named}
    except (ValueError, TypeError):
        pass
    raise ValueError(f"{after!r} is no place in this listing; start it again without one")


def _attributes(row: Mapping[str, object]) -> dict[str, Attribute]:
    return {name: _attribute(value) for name, value in row.items()}


def _attribute(value: object) -> Attribute:
    match value:
        case str():
            return {"S": value}
        case bool():
            return {"BOOL": value}
        case int():
            return {"N": str(value)}
        case dict():
            return {"M": _attributes(value)}
        case list():
            return {"L": [_attribute(one) for one in value]}
        case _:
            raise TypeError(f"a row holds no {type(value).__name__}")


def _plain_row(item: Mapping[str, Any]) -> Row:
    return {name: _plain(value) for name, value in item.items()}


def _plain(attribute: Attribute) -> object:
    match attribute:
        case {"S": value} | {"BOOL": value}:
            return value
        case {"N": str(value)}:
            return int(value) if value.removeprefix("-").isdecimal() else value
        case {"M": value}:
            return _plain_row(value)
        case {"L": value}:
            return [_plain(one) for one in value]
        case _:
            raise UnreadableRow(f"{attribute} is of a kind that is never written")


def _item_bytes(row: Mapping[str, object]) -> int:
    """Return the size of an item as DynamoDB counts it.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    return sum(len(name.encode()) + _value_bytes(value) for name, value in row.items())


def _value_bytes(value: object) -> int:
    match value:
        case str():
            return len(value.encode())
        case dict():
            return 3 + len(value) + _item_bytes(value)
        case list():
            return 3 + sum(1 + _value_bytes(one) for one in value)
        case _:
            return 21
