"""The run protocol, as a worker lives it: one message in, and the row says what became of it.

Claim, collect, write, store: each step is one call, and every way out leaves an outcome in the row. What can go
wrong is of two kinds (galley.retry): it may succeed later, then the row waits with its lease given up; or it never
will, then the message goes to the dead letters before the row says failed, so that a crash between the two is
repeated, not lost.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import assert_never

from drafter import Drafter, InvalidDrafter, load_drafter
from galley.bucket import Bucket
from galley.drafts import Draft, Item
from galley.observe import logger, tell_outcome
from galley.queue import DeadLetter, RunQueue
from galley.retry import MOST_ATTEMPTS, NeverSucceeds, RetryLater, SpendLimitReached, wait_before
from galley.runs import InvalidMessage, Origin, Run, RunMessage, SkipReason, Status, read_message
from galley.schedules import Schedules
from galley.store import (
    AlreadyThere,
    Bill,
    Busy,
    Claimed,
    Duplicate,
    Gated,
    LeaseLost,
    Limits,
    OverBudget,
    Paused,
    Settled,
    Store,
    StoreBusy,
)
from model import Model
from shapes import digest, monitor, report, sync
from shapes.shape import Assignment, Fetch, Material, Shape
from windows import window_of
from writing import Brief, compose, read_answer

SHAPES: dict[str, Shape] = {"digest": digest, "report": report, "sync": sync, "monitor": monitor}
SHOWN_BYTES = 8_000
"""How much of each item's text is kept beside the draft for the reviewer, in UTF-8."""
SHOWN_BYTES_IN_ALL = 200_000
"""How much of all items' texts is kept: a table row holds 400 KB, the draft and a reviewer's edit with it."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message as the queue handed it over; ``receipt`` is what its visibility is changed by."""

    body: str
    receipt: str


@dataclass(frozen=True, slots=True)
class Workplace:
    """Everything outside that drafting touches."""

    store: Store
    queue: RunQueue
    bucket: Bucket
    schedules: Schedules
    model: Model
    fetch: Fetch
    desk_url: str
    now: Callable[[], datetime]
    drafter: Callable[[str], Drafter] = field(default=load_drafter)


@dataclass(frozen=True, slots=True)
class Done:
    """The message has done its work and may be deleted."""


@dataclass(frozen=True, slots=True)
class ComesBack:
    """The message must be delivered again; its visibility says when."""


Outcome = Done | ComesBack


def work(delivery: Delivery, place: Workplace, owner: str, remaining: timedelta) -> Outcome:
    """Do what a message asks for and return whether it is done with.

    ``owner`` is unique for each invocation; ``remaining`` is what is left of the function's time, and so the length
    of the lease: an invocation cannot live longer.

    Raises:
        Exception: whatever a broken store or queue raises. The message then comes back by its visibility.
    """
    now = place.now()
    try:
        message = read_message(delivery.body)
    except InvalidMessage as error:
        _bury_unreadable(delivery, error, place, now)
        return Done()
    try:
        drafter = place.drafter(message.drafter)
    except InvalidDrafter as error:
        return _fail_unknown(message, error, place, owner, now + remaining)
    if _is_late(message, now):
        started = _skip(message, SkipReason.MISFIRED, f"came {_minutes(now - message.slot)} after its slot", place, now)
        if started is None or not started.lease_is_dead(now):
            return Done()
    return _claim(message, drafter, delivery, place, owner, now, remaining)


def _claim(
    message: RunMessage,
    drafter: Drafter,
    delivery: Delivery,
    place: Workplace,
    owner: str,
    now: datetime,
    remaining: timedelta,
) -> Outcome:
    limits = Limits(
        pending=drafter.pending_limit,
        daily_budget_nanousd=drafter.daily_budget_nanousd,
        worst_cost_nanousd=place.model.worst_cost(drafter.model, drafter.max_input_tokens, drafter.max_output_tokens),
    )
    try:
        outcome = place.store.claim(message, limits, owner=owner, now=now, lease_until=now + remaining)
    except StoreBusy:
        place.queue.put_off(delivery.receipt, wait_before(1, str(message.key)))
        return ComesBack()
    match outcome:
        case Claimed(run):
            return _Work(run, message, drafter, delivery, place, deadline=now + remaining).do()
        case Duplicate(run):
            logger.info("run %s is %s already", run.key, run.status, extra={"run": str(run.key)})
            return Done()
        case Busy(run):
            lease_left = timedelta() if run.lease_until is None else run.lease_until - now
            place.queue.put_off(delivery.receipt, lease_left + timedelta(seconds=1))
            return ComesBack()
        case Gated(pending):
            detail = f"{pending} drafts of {message.drafter} wait for a decision; its limit is {limits.pending}"
            return _skip_or_wait(message, SkipReason.GATE, detail, delivery, place, now)
        case Paused(reason):
            return _skip_or_wait(message, SkipReason.PAUSED, reason, delivery, place, now)
        case OverBudget(committed):
            detail = (
                f"${committed / 1e9:.4f} of ${drafter.daily_budget_usd} are spent or reserved today, "
                f"and this call may cost ${limits.worst_cost_nanousd / 1e9:.4f}"
            )
            return _skip_or_wait(message, SkipReason.BUDGET, detail, delivery, place, now)
    assert_never(outcome)


@dataclass(slots=True)
class _Work:
    """A claimed run on its way to an outcome. ``bill`` holds what it has consumed so far."""

    run: Run
    message: RunMessage
    drafter: Drafter
    delivery: Delivery
    place: Workplace
    deadline: datetime
    bill: Bill = field(default_factory=Bill)

    def do(self) -> Outcome:
        if _is_late(self.message, self.place.now()):
            return self._fail(NeverSucceeds("grace_over", f"was not drafted within its grace; last: {self.run.detail}"))
        if self.run.attempts > MOST_ATTEMPTS:
            return self._fail(_exhausted(self.run, f"{self.run.reason}: {self.run.detail}"))
        try:
            return self._draft()
        except RetryLater as error:
            return self._postpone(error)
        except SpendLimitReached as error:
            self.place.store.pause(self.drafter.name, error.detail, now=self.place.now())
            return self._fail(error)
        except NeverSucceeds as error:
            return self._fail(error)
        except Exception as error:
            logger.exception("run %s met an unexpected error", self.run.key, extra={"run": str(self.run.key)})
            return self._postpone(RetryLater("unexpected_error", f"{type(error).__name__}: {error}"))

    def _draft(self) -> Outcome:
        material = self._collect()
        if material.nothing_new is not None:
            return self._release(Status.EMPTY, "nothing_new", material.nothing_new, material)
        brief = Brief(
            drafter=self.drafter.name,
            shape=self.drafter.shape,
            title=self.drafter.title,
            instructions=self.drafter.instructions,
            items=material.items,
            figures=material.figures,
            slot=self.run.slot,
            model=self.drafter.model,
            max_input_tokens=self.drafter.max_input_tokens,
            max_output_tokens=self.drafter.max_output_tokens,
        )
        answer = self.place.model.write(brief, remaining=self.deadline - self.place.now())
        self.bill = Bill(answer.usage, answer.cost_nanousd, answer.model)
        title, body, warnings = compose(read_answer(answer, brief), brief)
        draft = Draft(
            title=title,
            body=body,
            items=_shown(material.items),
            warnings=(*material.warnings, *warnings),
            model=answer.model,
            channels=self.drafter.destinations,
        )
        now = self.place.now()
        return self._settled(self.place.store.store(self.run, draft, material.cursors, self.bill, now=now))

    def _collect(self) -> Material:
        assignment = Assignment(
            drafter=self.drafter,
            slot=self.run.slot,
            window=lambda: window_of(self.message, self.drafter, self.place.schedules),
            cursors=self.place.store.cursors(self.drafter.name),
            bucket=self.place.bucket,
            fetch=self.place.fetch,
            desk_url=self.place.desk_url,
        )
        return SHAPES[self.drafter.shape].collect(assignment)

    def _release(self, status: Status, reason: str, detail: str, material: Material) -> Outcome:
        return self._settled(
            self.place.store.release(
                self.run, status, reason, detail, self.bill, now=self.place.now(), cursors=material.cursors
            )
        )

    def _fail(self, error: NeverSucceeds) -> Outcome:
        now = self.place.now()
        self.place.queue.bury(
            DeadLetter(
                body=self.delivery.body,
                run=str(self.run.key),
                reason=error.reason,
                detail=error.detail,
                error_type=type(error).__name__,
                attempts=self.run.attempts,
                first=self.run.created,
                last=now,
            )
        )
        return self._settled(
            self.place.store.release(self.run, Status.FAILED, error.reason, error.detail, self.bill, now=now)
        )

    def _postpone(self, error: RetryLater) -> Outcome:
        if self.run.attempts >= MOST_ATTEMPTS:
            return self._fail(_exhausted(self.run, str(error)))
        now = self.place.now()
        wait = wait_before(self.run.attempts, str(self.run.key), error.after)
        postponed = self.place.store.postpone(
            self.run, error.reason, error.detail, self.bill, now=now, next_attempt=now + wait
        )
        match postponed:
            case Settled():
                logger.warning("run %s waits %d s: %s", self.run.key, wait.total_seconds(), error.reason)
                self.place.queue.put_off(self.delivery.receipt, wait)
                return ComesBack()
            case LeaseLost():
                return self._settled(postponed)
        assert_never(postponed)

    def _settled(self, outcome: Settled | LeaseLost) -> Outcome:
        match outcome:
            case Settled(run):
                tell_outcome(run)
            case LeaseLost():
                logger.warning("run %s was taken over; this attempt is dropped", self.run.key)
            case _:
                assert_never(outcome)
        return Done()


def _exhausted(run: Run, last: str) -> NeverSucceeds:
    return NeverSucceeds("attempts_exhausted", f"{run.attempts} attempts; the last ended with {last}")


def _is_late(message: RunMessage, now: datetime) -> bool:
    """Tell whether the slot is past its grace. A backfill ignores it, and so does a run that a person sent again."""
    return message.origin is not Origin.BACKFILL and message.resend == 0 and now - message.slot > message.contract.grace


def _skip(message: RunMessage, reason: SkipReason, detail: str, place: Workplace, now: datetime) -> Run | None:
    """Record the skip; return the row that stands there already, if one does."""
    match place.store.skip(message, reason, detail, now=now):
        case Settled(run):
            tell_outcome(run)
            return None
        case AlreadyThere(run):
            return run


def _skip_or_wait(
    message: RunMessage, reason: SkipReason, detail: str, delivery: Delivery, place: Workplace, now: datetime
) -> Outcome:
    """Record the skip. A run that was begun before cannot be skipped any more: it waits."""
    there = _skip(message, reason, detail, place, now)
    if there is None or there.status is not Status.DRAFTING:
        return Done()
    place.queue.put_off(delivery.receipt, wait_before(MOST_ATTEMPTS, str(message.key)))
    return ComesBack()


def _bury_unreadable(delivery: Delivery, error: InvalidMessage, place: Workplace, now: datetime) -> None:
    logger.error("a message cannot be read: %s", error)
    place.queue.bury(
        DeadLetter(
            body=delivery.body,
            run=None,
            reason="invalid_message",
            detail=str(error),
            error_type=type(error).__name__,
            attempts=1,
            first=now,
            last=now,
        )
    )


def _fail_unknown(
    message: RunMessage, error: InvalidDrafter, place: Workplace, owner: str, lease_until: datetime
) -> Outcome:
    """Fail a run whose drafter is missing or wrong: claimed without limits, so that its row says so."""
    now = place.now()
    unlimited = Limits(pending=1_000_000, daily_budget_nanousd=None, worst_cost_nanousd=0)
    match place.store.claim(message, unlimited, owner=owner, now=now, lease_until=lease_until):
        case Claimed(run):
            place.queue.bury(
                DeadLetter(
                    body=message.model_dump_json(),
                    run=str(run.key),
                    reason="invalid_drafter",
                    detail=str(error),
                    error_type=type(error).__name__,
                    attempts=run.attempts,
                    first=run.created,
                    last=now,
                )
            )
            released = place.store.release(run, Status.FAILED, "invalid_drafter", str(error), Bill(), now=now)
            if isinstance(released, Settled):
                tell_outcome(released.run)
            return Done()
        case Paused(reason):
            _skip(message, SkipReason.PAUSED, reason, place, now)
            return Done()
        case Busy():
            return ComesBack()
        case Duplicate() | Gated() | OverBudget():
            return Done()


def _shown(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return the items as they are kept beside the draft, each cut to its share of what a row can hold."""
    share = min(SHOWN_BYTES, SHOWN_BYTES_IN_ALL // max(1, len(items)))
    return tuple(replace(item, text=_cut(item.text, share)) for item in items)


def _cut(text: str, at_most: int) -> str:
    encoded = text.encode()
    return text if len(encoded) <= at_most else f"{encoded[:at_most].decode(errors='ignore')} […]"


def _minutes(span: timedelta) -> str:
    return f"{int(span.total_seconds() // 60)} minutes"
