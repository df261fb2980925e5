"""What each operation of the store makes of a run: pure functions, so that no two stores can differ in it.

Each takes the run as it was seen and returns either the outcome that it stands in the way of, or a ``Change``: the next
row and everything that must change with it. A store applies a change only if the row still is what was seen.

Instants are kept to the second. The end of a lease is rounded up, so that none ends before its owner does.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from galley.drafts import Draft, attachments_hash, text_hash
from galley.instants import format_instant, in_utc, to_the_second
from galley.retry import Fault, RetryLater
from galley.rules import NO_RULES, Review, Rules
from galley.runs import (
    HOLDS_A_PLACE,
    MOST_DETAIL,
    NOBODY,
    TRANSITIONS,
    WATCHED,
    Decision,
    Run,
    RunMessage,
    SkipReason,
    Status,
    iso_week,
)
from galley.store import (
    MOST_WORDS,
    NO_CURSORS,
    AlreadyThere,
    Approve,
    Bill,
    Busy,
    Conflict,
    Cursor,
    Duplicate,
    Expire,
    Limits,
    Reject,
    Rejection,
    Supersede,
    Withdrawal,
)
from galley.texts import clip, one_line


@dataclass(frozen=True, slots=True)
class Change:
    """A run's next row, and what changes with it. ``before`` is the run as it was seen; None where no row was.

    ``committed`` is what the spend of ``after.spend_day`` rises by (or falls, below zero), in nano-dollars.
    ``counters`` are what the week of the slot rises by. ``edit`` is the title and the body that a reviewer put in the
    place of those that were read, to be kept beside them; None without an edit. ``rejection`` is what the drafter
    remembers of a no; None without one.
    """

    before: Run | None
    after: Run
    committed: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)
    edit: tuple[str, str] | None = None
    rejection: Rejection | None = None

    def __post_init__(self) -> None:
        here = None if self.before is None else self.before.status
        there = self.after.status
        if here is not there and there not in TRANSITIONS[here]:
            raise ValueError(f"run {self.after.key} cannot go from {here} to {there}")

    @property
    def places(self) -> int:
        """What the drafter's pending count rises by: 1, 0 or -1."""
        held = self.before is not None and self.before.status in HOLDS_A_PLACE
        return int(self.after.status in HOLDS_A_PLACE) - int(held)

    @property
    def ends_whatever_the_count(self) -> bool:
        """Tell whether the run ends without a draft, which a count that was damaged by hand must not prevent."""
        return self.places < 0 and self.after.status in {Status.FAILED, Status.SKIPPED}

    @property
    def week(self) -> str:
        """The ISO week whose counters rise."""
        return iso_week(self.after.slot)


_CLAIMABLE = frozenset({Status.QUEUED, Status.DRAFTING})


def claim(
    seen: Run | None, message: RunMessage, limits: Limits, *, owner: str, now: datetime, lease_until: datetime
) -> Change | Duplicate | Busy:
    """Take the run for its next attempt, as far as its own row allows.

    What the last owner of a dead lease had reserved counts as paid: nobody knows better. A message from before the run
    was sent again is not the run's any more.
    """
    if seen is not None and (seen.status not in _CLAIMABLE or message.resend < seen.resend):
        return Duplicate(seen)
    if seen is not None and seen.status is Status.DRAFTING and (not seen.lease_is_dead(now) or seen.waits(now)):
        return Busy(seen)
    run = _new_run(message, Status.DRAFTING, now) if seen is None else seen
    after = replace(
        run,
        status=Status.DRAFTING,
        version=_next_version(seen),
        changed=to_the_second(now),
        resend=max(run.resend, message.resend),
        attempts=run.attempts + 1,
        faults=run.faults + (0 if run.owner is None else 1),
        owner=owner,
        lease_until=to_the_second(lease_until + timedelta(microseconds=999_999)),
        next_attempt=None,
        spend_day=utc_day(now),
        reserved_nanousd=limits.worst_cost_nanousd,
        cost_nanousd=run.cost_nanousd + run.reserved_nanousd,
    )
    return Change(seen, after, limits.worst_cost_nanousd, _counted(cost_nanousd=run.reserved_nanousd))


def store(run: Run, draft: Draft, bill: Bill, *, now: datetime, rules: Rules = NO_RULES) -> Change:
    """Put the draft before the reviewers, or, where its drafter's are sent unread, let it be published."""
    attached = attachments_hash(draft.attachments)
    stored = replace(
        _without_lease(run, bill, now),
        status=Status.PENDING,
        reason=None,
        detail=None,
        title=draft.title,
        text_hash=text_hash(draft.title, draft.body, attached),
        attachments_hash=attached,
        drafted=to_the_second(now),
        rules=rules,
    )
    match rules.review:
        case Review.REQUIRED:
            return _change_of_claimed(run, stored, bill)
        case Review.NONE:
            unread = Decision(NOBODY, to_the_second(now), read_hash="")
            return _change_of_claimed(run, replace(stored, status=Status.APPROVED, decision=unread), bill)


def release(
    run: Run,
    status: Status,
    reason: str,
    detail: str,
    bill: Bill,
    *,
    now: datetime,
    cursors: Mapping[str, Cursor] = NO_CURSORS,
) -> Change:
    """End the run without a draft. The store moves the cursors with it.

    Raises:
        ValueError: when the status is none of empty, failed and skipped, when cursors would move with another than
            empty, or when a run is skipped for something that is no ``SkipReason``.
    """
    if status not in {Status.EMPTY, Status.FAILED, Status.SKIPPED}:
        raise ValueError(f"run {run.key} is released as empty, failed or skipped, not as {status}")
    if status is Status.SKIPPED:
        reason = str(SkipReason(reason))
    if cursors and status is not Status.EMPTY:
        raise ValueError(f"run {run.key} is released as {status}; cursors move only with empty")
    ended = _without_lease(run, bill, now)
    return _change_of_claimed(run, replace(ended, status=status, reason=reason, detail=clip(detail, MOST_DETAIL)), bill)


def postpone(run: Run, error: RetryLater, bill: Bill, *, now: datetime, next_attempt: datetime) -> Change:
    """Give the lease up until the next attempt."""
    waiting = replace(
        _without_lease(run, bill, now),
        reason=error.reason,
        detail=clip(error.detail, MOST_DETAIL),
        faults=run.faults + (1 if isinstance(error, Fault) else 0),
        next_attempt=to_the_second(next_attempt),
    )
    return _change_of_claimed(run, waiting, bill)


def skip(
    seen: Run | None, message: RunMessage, reason: SkipReason, detail: str, *, now: datetime
) -> Change | AlreadyThere:
    """Deliberately not draft the slot, where no row is or a queued one."""
    if seen is not None and (seen.status is not Status.QUEUED or message.resend < seen.resend):
        return AlreadyThere(seen)
    run = _new_run(message, Status.SKIPPED, now) if seen is None else seen
    after = replace(
        run,
        status=Status.SKIPPED,
        version=_next_version(seen),
        changed=to_the_second(now),
        reason=str(reason),
        detail=clip(detail, MOST_DETAIL),
    )
    return Change(seen, after, counters=_counted(*week_counters(after)))


def queue(seen: Run | None, message: RunMessage, *, now: datetime) -> Change | AlreadyThere:
    """Ask for a run that has no row."""
    return AlreadyThere(seen) if seen is not None else Change(None, _new_run(message, Status.QUEUED, now))


def remind(seen: Run, *, now: datetime) -> Change | Conflict:
    """Note that the message of a run that waits for it was sent once more."""
    if seen.status is not Status.QUEUED and (seen.status is not Status.DRAFTING or seen.owner is not None):
        return Conflict(seen)
    return Change(seen, replace(seen, version=_next_version(seen), changed=to_the_second(now)))


def decide(
    seen: Run, verdict: Approve | Reject, *, version: int, read_hash: str, reviewer: str, now: datetime
) -> Change | Conflict:
    """Decide on exactly the version and the text that the reviewer read.

    An edit that changes nothing is no edit.

    Raises:
        ValueError: when an edit gives a title without a body, or a body without a title.
    """
    if (seen.status, seen.version, seen.text_hash) != (Status.PENDING, version, read_hash):
        return Conflict(seen)
    decided = replace(seen, version=_next_version(seen), changed=to_the_second(now))
    minutes = max(0, int((in_utc(now) - in_utc(seen.drafted or seen.changed)).total_seconds() // 60))
    match verdict:
        case Reject(reason, words):
            decision = Decision(reviewer, to_the_second(now), read_hash, reason=reason, words=words)
            after = replace(decided, status=Status.REJECTED, reason=str(reason), decision=decision)
            names = week_counters(after)
            told = Rejection(seen.slot, reason, one_line(words, MOST_WORDS))
            return Change(seen, after, counters=_counted(*names, minutes_to_decision=minutes), rejection=told)
        case Approve():
            edit = edit_of(verdict)
            if edit is not None and text_hash(*edit, seen.attachments_hash) == read_hash:
                edit = None
            decision = Decision(reviewer, to_the_second(now), read_hash, edited=edit is not None)
            after = replace(decided, status=Status.APPROVED, decision=decision)
            names = [*week_counters(after)]
            if edit is not None:
                title, body = edit
                after = replace(after, title=title, text_hash=text_hash(title, body, seen.attachments_hash))
                names.append("edited")
            return Change(seen, after, counters=_counted(*names, minutes_to_decision=minutes), edit=edit)


def edit_of(verdict: Approve | Reject) -> tuple[str, str] | None:
    """Return the title and the body that the reviewer gives, changed or not; None where none are given.

    Raises:
        ValueError: when one of them is given without the other.
    """
    match verdict:
        case Reject() | Approve(None, None):
            return None
        case Approve(str(title), str(body)):
            return title, body
        case _:
            raise ValueError("an edit has a title and a body; give both, or neither")


def resend(seen: Run, *, now: datetime) -> Change | Conflict:
    """Queue a failed run again. Its attempts are counted anew; what it has cost stays."""
    if seen.status is not Status.FAILED:
        return Conflict(seen)
    after = replace(
        seen,
        status=Status.QUEUED,
        version=_next_version(seen),
        changed=to_the_second(now),
        resend=seen.resend + 1,
        attempts=0,
        faults=0,
        reason=None,
        detail=None,
        dismissed=None,
    )
    return Change(seen, after, counters=_counted("resent"))


def dismiss(seen: Run, *, now: datetime) -> Change | Conflict:
    """Let nobody watch a failed run any more."""
    if seen.status is not Status.FAILED or seen.dismissed is not None:
        return Conflict(seen)
    return Change(
        seen, replace(seen, version=_next_version(seen), changed=to_the_second(now), dismissed=to_the_second(now))
    )


def withdraw(run: Run, why: Withdrawal, *, now: datetime) -> Change:
    """Take an undecided draft out of the review queue.

    Raises:
        ValueError: when the run was not pending.
    """
    match why:
        case Expire():
            status, reason = Status.EXPIRED, "undecided"
            detail = f"nobody decided on it until {format_instant(now)}"
        case Supersede(by):
            status, reason = Status.SUPERSEDED, "replaced"
            detail = f"the draft of {by} took its place"
    after = replace(
        run, status=status, version=_next_version(run), changed=to_the_second(now), reason=reason, detail=detail
    )
    return Change(run, after, counters=_counted(*week_counters(after)))


def settle_publication(run: Run, status: Status, detail: str, *, now: datetime) -> Change:
    """Record what is known of the publication.

    Raises:
        ValueError: when the status is not one that an approved run can come to.
    """
    after = replace(
        run,
        status=status,
        version=_next_version(run),
        changed=to_the_second(now),
        detail=clip(detail, MOST_DETAIL),
        published=to_the_second(now) if status is Status.PUBLISHED else run.published,
    )
    return Change(run, after)


def week_counters(run: Run) -> Sequence[str]:
    """Return the names of the week's counters that rise when a run comes into its state."""
    match run.status:
        case Status.PENDING:
            return ("drafted",)
        case Status.SKIPPED | Status.REJECTED:
            return (str(run.status), f"{run.status}:{run.reason}")
        case Status.QUEUED | Status.DRAFTING | Status.PUBLISH_UNKNOWN | Status.PUBLISHED:
            return ()
        case Status.APPROVED if run.rules.review is Review.NONE:
            return ("drafted", "unreviewed")
        case Status.APPROVED | Status.EXPIRED | Status.SUPERSEDED | Status.EMPTY | Status.FAILED:
            return (str(run.status),)


URGENT = "!"
"""What stands before the instant of an urgent draft: it sorts before every digit, on whatever page that is."""


def queue_at(run: Run) -> str | None:
    """Return since when a watched run waits, as a text to sort the listing by; None where nobody watches.

    A drafting run stands at the end of its lease, so that the dead leases come first. The urgent ones stand before all.
    """
    if run.status not in WATCHED or run.dismissed is not None:
        return None
    since = format_instant(run.lease_until or run.next_attempt or run.changed)
    return f"{URGENT}{since}" if run.rules.urgent else since


def utc_day(now: datetime) -> str:
    """Return the UTC date whose budget a moment belongs to, like ``2026-03-29``."""
    return in_utc(now).date().isoformat()


def _new_run(message: RunMessage, status: Status, now: datetime) -> Run:
    return Run(
        drafter=message.drafter,
        slot=message.slot,
        status=status,
        version=1,
        origin=message.origin,
        contract=message.contract,
        created=to_the_second(now),
        changed=to_the_second(now),
        schedule=message.schedule,
        trace=message.trace,
        resend=message.resend,
    )


def _without_lease(run: Run, bill: Bill, now: datetime) -> Run:
    """Return the run with its lease given up and its reservation replaced by the bill."""
    return replace(
        run,
        version=_next_version(run),
        changed=to_the_second(now),
        owner=None,
        lease_until=None,
        next_attempt=None,
        reserved_nanousd=0,
        cost_nanousd=run.cost_nanousd + bill.cost_nanousd,
        usage=run.usage + bill.usage,
        model=bill.model or run.model,
    )


def _change_of_claimed(run: Run, after: Run, bill: Bill) -> Change:
    if run.status is not Status.DRAFTING:
        raise ValueError(f"run {run.key} is {run.status}; only a claimed run can be settled")
    usage = bill.usage
    tokens = usage.input_tokens + usage.output_tokens + usage.cache_write_tokens + usage.cache_read_tokens
    names = () if after.status is Status.DRAFTING else week_counters(after)
    counters = _counted(*names, tokens=tokens, cost_nanousd=bill.cost_nanousd)
    return Change(run, after, bill.cost_nanousd - run.reserved_nanousd, counters)


def _counted(*names: str, **amounts: int) -> Mapping[str, int]:
    """Return one for each name, and the amounts that are not zero."""
    counted = Counter(names)
    counted.update({name: amount for name, amount in amounts.items() if amount})
    return counted


def _next_version(seen: Run | None) -> int:
    return 1 if seen is None else seen.version + 1
