"""The store: one row for each run, and everything that must change together with it.

The words here are what the guarantees rest on; each implementation keeps them: ``galley.store.dynamodb`` in
Amazon DynamoDB, and SQLite on one machine. One contract suite (tests/contract) runs against all of them.

Every operation is atomic: all that it says happens, or nothing. What happened is the value it returns; a failed
condition is an outcome, never an error. Conflicts with other writers are retried inside, for a bounded time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Protocol

from galley.drafts import Draft, attachments_hash, text_hash
from galley.retry import Fault, NeverSucceeds, RetryLater
from galley.rules import NO_RULES, Rules
from galley.runs import RejectReason, Run, RunKey, RunMessage, SkipReason, Status, Usage
from galley.schedules import ScheduleDefinition


class StoreBusy(RetryLater):
    """The rows cannot be had now: others held them for longer than the operation waits, or the table gave no answer.

    If the answer was lost on its way, the change may have happened. The same operation, with the same instant, may be
    asked for again: it does not happen twice.
    """

    def __init__(self, detail: str) -> None:
        super().__init__("store_busy", detail)


class RowsDisagree(NeverSucceeds):
    """Rows contradict each other: a count would fall below zero, a draft has no text. Nothing was changed.

    No operation leaves rows like that; somebody wrote to the table by hand. Its detail is one line that names them.
    """

    def __init__(self, detail: str) -> None:
        super().__init__("rows_disagree", detail)


class CursorMoved(Fault):
    """Another run moved a source's cursor since it was read: what was collected may be in its draft already.

    The queue hands out one message of a drafter at a time, so that this should not happen. Nothing was changed.
    """

    def __init__(self, source: str) -> None:
        super().__init__(
            "cursor_moved", f"another run moved the cursor of source {source!r} meanwhile; its items are collected anew"
        )


class UnreadableRow(Exception):
    """A row that is not what this version writes. Its text is one line that names the row and what is wrong."""


Cursor = Mapping[str, object]
"""A source's place, as JSON values. It is kept in one item of at most 400 KB, so sources bound it well below."""

NO_CURSORS: Mapping[str, Cursor] = MappingProxyType({})


MOST_REJECTIONS = 5
"""So many of a drafter's latest rejections are remembered."""
MOST_WORDS = 300
"""How many characters of a reviewer's words are remembered with a rejection; the run's row keeps them whole."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a reviewer said no to the draft of a slot, on one line; ``words`` may be empty."""

    slot: datetime
    reason: RejectReason
    words: str


@dataclass(frozen=True, slots=True)
class Memory:
    """What a drafter's runs know of the earlier ones.

    ``cursors`` holds each source's, as stored with the last draft made from it. ``rejections`` are the latest ones, at
    most ``MOST_REJECTIONS``, the last one first. ``unreadable`` names those of them that could not be read.
    """

    cursors: Mapping[str, Cursor] = field(default_factory=dict)
    rejections: tuple[Rejection, ...] = ()
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a drafter: undecided drafts, and money for each UTC day. Money is in nano-dollars.

    ``worst_cost_nanousd`` is reserved before the model is called; without a budget it is still booked.
    """

    pending: int
    daily_budget_nanousd: int | None
    worst_cost_nanousd: int


@dataclass(frozen=True, slots=True)
class Bill:
    """What one attempt consumed, whether or not its answer was of use."""

    usage: Usage = field(default_factory=Usage)
    cost_nanousd: int = 0
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """The run is the caller's until its lease ends."""

    run: Run


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The run has an outcome already, or was sent again with a later message than this; there is nothing to do."""

    run: Run


@dataclass(frozen=True, slots=True)
class Busy:
    """Somebody else works on the run and its lease still lives, or the next attempt's time has not come."""

    run: Run


@dataclass(frozen=True, slots=True)
class Gated:
    """The drafter has as many undecided drafts as it may have."""

    pending: int


@dataclass(frozen=True, slots=True)
class Paused:
    """The drafter is paused, by a person or by a spend limit."""

    reason: str


@dataclass(frozen=True, slots=True)
class OverBudget:
    """The worst cost of the call does not fit into what is left of the day's budget."""

    committed_nanousd: int


ClaimOutcome = Claimed | Duplicate | Busy | Gated | Paused | OverBudget


@dataclass(frozen=True, slots=True)
class Settled:
    """The run changed as asked; this is the row now."""

    run: Run


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """The run is no longer the caller's: what stands in the row is somebody else's, and nothing was changed."""

    run: Run | None


@dataclass(frozen=True, slots=True)
class AlreadyThere:
    """The slot has a row already, and it stays."""

    run: Run


@dataclass(frozen=True, slots=True)
class Conflict:
    """The run is not in the state, the version or the text that the caller read; this is what it is now."""

    run: Run


@dataclass(frozen=True, slots=True)
class NoSuchRun:
    """There is no row for that key."""


@dataclass(frozen=True, slots=True)
class Approve:
    """A yes to the text that was read, or to the reviewer's own edit of it (``title`` and ``body`` together)."""

    title: str | None = None
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """A no, with its reason; ``words`` are the reviewer's own."""

    reason: RejectReason
    words: str = ""


@dataclass(frozen=True, slots=True)
class Expire:
    """Nobody decided on a draft for as long as its drafter lets it wait."""


@dataclass(frozen=True, slots=True)
class Supersede:
    """The draft of another run takes an undecided draft's place."""

    by: RunKey


Withdrawal = Expire | Supersede


@dataclass(frozen=True, slots=True)
class StoredDraft:
    """The draft as it was made, and the reviewer's edit beside it where there is one.

    ``title`` and ``body`` are what counts: the edit where there is one.
    """

    draft: Draft
    edited_title: str | None = None
    edited_body: str | None = None

    @property
    def title(self) -> str:
        """The title that a channel sends."""
        return self.draft.title if self.edited_title is None else self.edited_title

    @property
    def body(self) -> str:
        """The text that a channel sends."""
        return self.draft.body if self.edited_body is None else self.edited_body

    @property
    def text_hash(self) -> str:
        """The hash of both, with the attachments: what the run's row must say for the text to be its own."""
        return text_hash(self.title, self.body, attachments_hash(self.draft.attachments))


@dataclass(frozen=True, slots=True)
class Pause:
    """A drafter's pause that is over: why it was, and since when and until when. Both are in UTC, to the second."""

    reason: str
    since: datetime
    until: datetime

    def holds(self, slot: datetime) -> bool:
        """Tell whether a slot was due while the drafter was paused."""
        return self.since <= slot < self.until


@dataclass(frozen=True, slots=True)
class DrafterState:
    """A drafter's gate: its undecided drafts (with those being drafted) and whether it is paused, and why.

    ``last_pause`` is the last one that is over.
    """

    drafter: str
    pending: int = 0
    paused: str | None = None
    last_pause: Pause | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a listing, and the rows that could not be read, named: one bad row never hides the good ones.

    ``next`` continues the listing where this page ends; None at its end.
    """

    runs: tuple[Run, ...]
    unreadable: tuple[str, ...] = ()
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """Which runs of a drafter the sweep asked for, that have no row yet.

    All up to the slot ``through``, the first of them at ``at``; both are kept to the second.
    """

    at: datetime
    through: datetime


@dataclass(frozen=True, slots=True)
class SweptDrafter:
    """What the sweep must remember of one drafter of a schedule. Instants are kept to the second.

    ``silent_since`` is the first slot of a silence that was told; None while the drafter drafts, or nobody watches it.
    ``in_flight`` is the first slot whose run had no outcome yet when the sweep looked for a silence.
    """

    silent_since: datetime | None = None
    in_flight: datetime | None = None
    asked: Asked | None = None


NOTHING_NOTED = SweptDrafter()


@dataclass(frozen=True, slots=True)
class SweptSchedule:
    """What the sweep knows of a schedule: the definition that it last read, and how far it has come.

    Each due slot before ``swept_until`` has its row, for each drafter of the schedule. It is kept to the second, and so
    is ``stopped``: when a sweep whose time was up went no further than this schedule. ``drafters`` holds those of which
    there is something to remember. ``former`` are the definitions that the schedule had before and that were due at
    slots without a row, oldest first; each says in ``ends`` when it was changed.
    """

    definition: ScheduleDefinition
    swept_until: datetime
    drafters: Mapping[str, SweptDrafter] = field(default_factory=dict)
    stopped: datetime | None = None
    former: tuple["SweptSchedule", ...] = ()
    ends: datetime | None = None


@dataclass(frozen=True, slots=True)
class SweptSchedules:
    """All that the sweep knows, and the rows that could not be read, named."""

    schedules: tuple[SweptSchedule, ...]
    unreadable: tuple[str, ...] = ()


class Store(Protocol):
    """The run protocol. ``now`` and every other instant are aware; ``owner`` is unique for each invocation.

    Where one run is asked for, a row that cannot be read raises ``UnreadableRow``; listings name it.
    """

    def claim(
        self, message: RunMessage, limits: Limits, *, owner: str, now: datetime, lease_until: datetime
    ) -> ClaimOutcome:
        """Take the run, a place at the gate and the worst cost of the call, together or not at all.

        Without a row, or with a queued one: it becomes drafting, attempts rise by one, the drafter's pending count
        rises by one if it is below the limit, the drafter is not paused and the day's committed spend plus the worst
        cost is within the budget. A drafting run whose lease is dead is taken over, not before its next attempt's time:
        its place is already counted, and kept only if the count is within the limit: whoever claimed it may have been
        bound by another one. Its attempts rise, and what its last owner had reserved is booked as paid, since nobody
        knows better; the pause and the budget bind it like any other claim. If that owner never gave its lease up, the
        run's faults rise.
        When several things stand in the way, the run's own state is told first, then the pause, the gate, the budget.
        """
        ...

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
        """Drafting -> pending, while ``run.owner`` holds the lease's row: text, source cursors, bill and week with it.

        ``run`` is what ``claim`` returned. ``cursors`` holds each source's new value; sources not named keep theirs.
        ``read`` holds the values from which the draft was collected; a source that is not in it had none. ``rules`` are
        kept in the row. Where they say that nobody reviews the draft it becomes approved in the same moment, with a
        decision that says so, gives its place back, and is counted as unreviewed, never as approved.

        Raises:
            CursorMoved: when a cursor that would move is not what was read any more.
            NeverSucceeds: ``draft_too_large``, when the store cannot hold a text of that size.
        """
        ...

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
        """Drafting -> empty, failed or skipped: the place is given back, the bill settled.

        Cursors may move only with empty, and as ``store`` moves them: what a failed run had collected is collected
        again. ``reason`` is that of a ``SkipReason`` where the run is skipped. Who ends somebody else's dead lease
        bills what that one had reserved (``run.reserved_nanousd``), as a take-over does. A run ends as failed or
        skipped even though its drafter's count was damaged by hand and holds no place.

        Raises:
            CursorMoved: when a cursor that would move is not what was read any more.
            ValueError: for another status, or for cursors that would move without an outcome.
        """
        ...

    def postpone(
        self, run: Run, error: RetryLater, bill: Bill, *, now: datetime, next_attempt: datetime
    ) -> Settled | LeaseLost:
        """Keep the run drafting, with its lease given up, its last error and the next attempt's time in the row.

        Its place stays counted; the bill is settled, so that only a crash is booked at its worst. A ``Fault`` is
        counted among the run's faults.
        """
        ...

    def skip(self, message: RunMessage, reason: SkipReason, detail: str, *, now: datetime) -> Settled | AlreadyThere:
        """Record that the slot is deliberately not drafted, where no row is or a queued one."""
        ...

    def queue(self, message: RunMessage, *, now: datetime) -> Settled | AlreadyThere:
        """Record that a run was asked for, where no row is: queued, with the message's resend number.

        The caller then sends the message; whatever happens to it, the run is known.
        """
        ...

    def remind(self, key: RunKey, *, now: datetime) -> Settled | Conflict | NoSuchRun:
        """Note that the message of a run that waits for it was sent once more: queued, or drafting without an owner."""
        ...

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

        The place at the gate is given back. With an edit the run's ``text_hash`` is the edit's, and the edit is kept
        beside the original; an edit that changes nothing is none. A rejection comes into the drafter's memory with it,
        in the place of the oldest one there; of several at one moment none is lost.

        Raises:
            ValueError: when an edit has a title without a body, or a body without a title.
            NeverSucceeds: ``draft_too_large``, when the store cannot hold the edit beside the original.
        """
        ...

    def withdraw(self, run: Run, why: Withdrawal, *, now: datetime) -> Settled | Conflict | NoSuchRun:
        """Pending -> expired or superseded, at the version that was read, with the reason in the row.

        The place at the gate is given back, and the week counts each apart from what a person rejected. Of a withdrawal
        and a decision at one moment one takes, and the other is a conflict.

        Raises:
            ValueError: when the run was not pending as it was read.
        """
        ...

    def resend(self, key: RunKey, *, now: datetime) -> Settled | Conflict | NoSuchRun:
        """Failed -> queued, with the resend number raised by one and the attempts counted anew.

        The week counts it as resent, so that failed less resent are the slots that are failed now. The caller sends
        ``run.message``.
        """
        ...

    def dismiss(self, key: RunKey, *, now: datetime) -> Settled | Conflict | NoSuchRun:
        """Let a failed run be listed no longer: it stays failed, and it can still be sent again."""
        ...

    def settle_publication(
        self, run: Run, status: Status, detail: str, *, now: datetime
    ) -> Settled | Conflict | NoSuchRun:
        """Approved -> published or publish_unknown, at the version and text hash that were sent.

        Raises:
            ValueError: when the run cannot come to that status from the one it was read in.
        """
        ...

    def pause(self, drafter: str, reason: str, *, now: datetime) -> None:
        """Let the drafter claim nothing until it is resumed. Of one that is paused already only the reason changes."""
        ...

    def resume(self, drafter: str, *, now: datetime) -> None:
        """Let the drafter claim again, and keep when it was paused, where it was."""
        ...

    def run(self, key: RunKey) -> Run | None:
        """Return the row as it is now."""
        ...

    def draft(self, key: RunKey) -> StoredDraft | None:
        """Return the run's text, with the reviewer's edit where there is one."""
        ...

    def memory(self, drafter: str) -> Memory:
        """Return the cursors of the drafter's sources and its latest rejections.

        Raises:
            NeverSucceeds: ``invalid_cursor``, when a cursor cannot be read.
        """
        ...

    def drafter(self, drafter: str) -> DrafterState:
        """Return the drafter's gate as it is now; all zero for a drafter never seen."""
        ...

    def committed_nanousd(self, drafter: str, day: str) -> int:
        """Return what the drafter has spent and reserved on a UTC day (``2026-03-29``)."""
        ...

    def week(self, drafter: str, week: str) -> Mapping[str, int]:
        """Return the drafter's counters of an ISO week (``2026-W13``), by name; empty when there are none.

        A run is counted in the week of its slot, in UTC, whenever it comes into a state. Counters only rise:

        - ``drafted`` texts, ``empty``, ``failed`` and ``skipped`` slots, the latter also by reason (``skipped:gate``);
          ``resent`` counts the failed ones that were sent again, and so have not failed any more
        - of the drafts: ``approved`` (``edited`` of them with an edit), ``rejected``, also by reason
          (``rejected:tone``), ``expired``, ``superseded``, and ``unreviewed`` for those that nobody reviews
        - ``minutes_to_decision`` of the approved and rejected in all, ``tokens`` of every kind and ``cost_nanousd``
        """
        ...

    def watched(self, status: Status, *, limit: int = 100, after: str | None = None) -> Page:
        """List the runs in one of the watched states, longest there first, without those that were dismissed.

        Those whose draft is urgent come before all others.

        It lists, it never decides: it may be behind the rows by a moment.

        Raises:
            ValueError: when ``after`` is not what a page of this listing gave as its ``next``.
        """
        ...

    def history(self, drafter: str, *, limit: int = 100, after: str | None = None) -> Page:
        """List a drafter's runs, newest slot first.

        Raises:
            ValueError: when ``after`` is not what a page of this listing gave as its ``next``.
        """
        ...

    def slot_statuses(self, drafter: str, first: datetime, last: datetime) -> Mapping[datetime, Status | None]:
        """Return the slots from the first to the last, both included, that have a row, and what each has become.

        The state is None where it is none that this version knows: the slot has its row all the same.
        """
        ...

    def swept_schedules(self) -> SweptSchedules:
        """Return what the sweep noted of every schedule, by name."""
        ...

    def note_swept(self, swept: SweptSchedule, *, now: datetime) -> None:
        """Note what the sweep knows of a schedule, in the place of what it knew before."""
        ...

    def forget_swept(self, name: str, *, now: datetime) -> None:
        """Forget what was noted of a schedule, if anything was: it is there no more."""
        ...
