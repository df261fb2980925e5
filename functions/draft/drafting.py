"""The run protocol, as a worker lives it: one message in, and the row says what became of it.

Claim, collect, write, store: each step is one call. Every way out leaves an outcome in the row, or a dead letter where
the row cannot be had. Here a message is read and its run claimed; ``claimed_run`` brings a claimed run to its outcome.
"""

import sys
from datetime import timedelta
from typing import assert_never

from attempt import Attempt, Delivery, Done, Outcome, Workplace, dead_letter, last_end
from claimed_run import ClaimedRun
from drafter import Drafter, InvalidDrafter
from galley.instants import format_instant
from galley.money import usd
from galley.observe import logger, tell_outcome
from galley.queue import QueueUnavailable
from galley.retry import NeverSucceeds, faults_exhausted, wait_after
from galley.runs import InvalidMessage, Run, RunMessage, SkipReason, Status, read_message
from galley.store import (
    AlreadyThere,
    Bill,
    Busy,
    Claimed,
    ClaimOutcome,
    Duplicate,
    Gated,
    LeaseLost,
    Limits,
    OverBudget,
    Paused,
    Settled,
    StoreBusy,
    UnreadableRow,
)
from overtaken import newer_slot

LOOK_AGAIN_AFTER = timedelta(seconds=30)
"""How long a message waits whose run's rows others hold or change at the moment."""
AFTER_A_LEASE = timedelta(seconds=1)
"""How long after a lease's end, or a next attempt's time, a message comes back for it."""

_NO_LIMITS = Limits(pending=sys.maxsize, daily_budget_nanousd=None, worst_cost_nanousd=0)
"""A run that is claimed only to record that its drafter is missing or wrong makes no draft and calls no model."""


def draft_run(delivery: Delivery, outside: Workplace, owner: str, remaining: timedelta) -> Outcome:
    """Do what a message asks for and return whether it is done with.

    ``owner`` is unique for each invocation; ``remaining`` is what is left of the function's time, and so the length
    of the lease: an invocation cannot live longer.

    Raises:
        Exception: whatever a broken store or queue raises. The message then comes back by its visibility.
    """
    began = outside.now()
    try:
        message = read_message(delivery.body)
    except InvalidMessage as error:
        logger.error("a message cannot be read: %s", error)
        outside.queue.bury(dead_letter(delivery, "invalid_message", str(error), error, began))
        return Done()
    with logger.append_context_keys(run=str(message.key), trace=message.trace):
        drafter = _drafter_of(message, outside)
        return _begin(Attempt(message, drafter, delivery, outside, owner, began, deadline=began + remaining))


def _drafter_of(message: RunMessage, outside: Workplace) -> Drafter | InvalidDrafter:
    try:
        return outside.drafter(message.drafter)
    except InvalidDrafter as error:
        return error


def _begin(attempt: Attempt) -> Outcome:
    """Claim the run, unless its slot is not worth drafting any more."""
    try:
        if isinstance(attempt.drafter, Drafter) and attempt.message.is_late(attempt.began):
            minutes = int((attempt.began - attempt.message.slot).total_seconds() // 60)
            return _skip(attempt, SkipReason.MISFIRED, f"came {minutes} minutes after its slot, past its grace")
        if _is_overtaken(attempt):
            return Done()
        limits = _limits(attempt)
        outcome = attempt.outside.store.claim(
            attempt.message, limits, owner=attempt.owner, now=attempt.began, lease_until=attempt.deadline
        )
    except StoreBusy as error:
        return _look_again(attempt, error)
    except QueueUnavailable:
        raise  # it comes back by its visibility, and is no fault of the run's
    except (NeverSucceeds, UnreadableRow) as error:
        reason = error.reason if isinstance(error, NeverSucceeds) else "unreadable_row"
        logger.error("run %s cannot be claimed: %s", attempt.message.key, error)
        return _bury(attempt, reason, str(error), error)
    except Exception as error:
        logger.exception("run %s met an unexpected error before it was claimed", attempt.message.key)
        if faults_exhausted(attempt.delivery.receives):
            return _bury(attempt, "unexpected_error", f"{type(error).__name__}: {error}", error)
        return attempt.put_off(wait_after(attempt.delivery.receives, str(attempt.message.key)))
    try:
        return _act_on(attempt, limits, outcome)
    except StoreBusy as error:
        return _look_again(attempt, error)


def _look_again(attempt: Attempt, error: StoreBusy) -> Outcome:
    logger.warning("run %s waits for its rows: %s", attempt.message.key, error.detail)
    return attempt.put_off_or_renew(LOOK_AGAIN_AFTER)


def _bury(attempt: Attempt, reason: str, detail: str, error: Exception) -> Outcome:
    """Put the message of a run that cannot be claimed among the dead: its row, if it has one, stays as it is."""
    now = attempt.outside.now()
    letter = dead_letter(attempt.delivery, reason, detail, error, now, key=attempt.message.key)
    attempt.outside.queue.bury(letter)
    return Done()


def _is_overtaken(attempt: Attempt) -> bool:
    """Record the slot as coalesced where only a newer one is drafted. A run that was begun goes on."""
    message, outside = attempt.message, attempt.outside
    if isinstance(attempt.drafter, InvalidDrafter):
        return False
    newer = newer_slot(message, attempt.delivery, outside.schedules, attempt.began)
    if newer is None:
        return False
    minutes = (attempt.began - message.slot) // timedelta(minutes=1)
    came = f"came {minutes} minutes after its slot"
    detail = f"{came}; only the latest is drafted, and {format_instant(newer)} is due"
    match outside.store.skip(message, SkipReason.COALESCED, detail, now=attempt.began):
        case Settled(run):
            tell_outcome(run)
            return True
        case AlreadyThere():
            return False


def _limits(attempt: Attempt) -> Limits:
    match attempt.drafter:
        case InvalidDrafter():
            return _NO_LIMITS
        case Drafter() as drafter:
            worst = attempt.outside.model.worst_cost(drafter.model, drafter.max_input_tokens, drafter.max_output_tokens)
            return Limits(drafter.pending_limit, drafter.daily_budget_nanousd, worst)


def _act_on(attempt: Attempt, limits: Limits, outcome: ClaimOutcome) -> Outcome:
    match outcome:
        case Claimed(run):
            return ClaimedRun(run, attempt).finish()
        case Duplicate(run):
            return _leave(run)
        case Busy(run):
            return _wait_for(attempt, run)
        case Gated(pending):
            waiting = f"{pending} drafts of {attempt.message.drafter} wait for a decision"
            return _skip(attempt, SkipReason.GATE, f"{waiting}; its limit is {limits.pending}")
        case Paused(reason):
            return _skip(attempt, SkipReason.PAUSED, reason)
        case OverBudget(committed):
            detail = (
                f"{usd(committed)} of {usd(limits.daily_budget_nanousd or 0)} are spent or reserved today, "
                f"and this call may cost {usd(limits.worst_cost_nanousd)}"
            )
            return _skip(attempt, SkipReason.BUDGET, detail)
    assert_never(outcome)


def _skip(attempt: Attempt, reason: SkipReason, detail: str) -> Outcome:
    """Record that the slot is not drafted, whether or not the run was begun before."""
    store = attempt.outside.store
    match store.skip(attempt.message, reason, detail, now=attempt.began):
        case Settled(run):
            tell_outcome(run)
            return Done()
        case AlreadyThere(run):
            begun = run
    if begun.status is not Status.DRAFTING or attempt.message.resend < begun.resend:
        return _leave(begun)
    if not begun.lease_is_dead(attempt.began):
        return _wait_for(attempt, begun)
    told = f"{detail}; attempt {begun.attempts} {last_end(begun)}"
    bill = Bill(cost_nanousd=begun.reserved_nanousd)
    match store.release(begun, Status.SKIPPED, str(reason), told, bill, now=attempt.outside.now()):
        case Settled(run):
            tell_outcome(run)
            return Done()
        case LeaseLost():
            return attempt.put_off_or_renew(LOOK_AGAIN_AFTER)  # somebody else was at it: see then what has become of it


def _leave(run: Run) -> Outcome:
    """Leave the run as it is: it has its outcome, or a later message of its own."""
    logger.info("run %s is %s already", run.key, run.status)
    return Done()


def _wait_for(attempt: Attempt, run: Run) -> Outcome:
    """Come back when the lease of another invocation has ended, or the run's next attempt is due.

    While that one is at work the message is not replaced by a fresh one, however few receives it has left: once it is
    deleted the drafter's next message is handed out, and both would be at work at once (G3).
    """
    if run.lease_until is not None:
        return attempt.put_off(run.lease_until - attempt.began + AFTER_A_LEASE)
    return attempt.put_off_or_renew((run.next_attempt or attempt.began) - attempt.began + AFTER_A_LEASE)
