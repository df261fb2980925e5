"""The run protocol, as a worker lives it: one message in, and the row says what became of it.

Claim, collect, write, store: each step is one call. Every way out leaves an outcome in the row, or a dead letter where
the row cannot be had. Here a message is read and its run claimed; ``claimed_run`` brings a claimed run to its outcome.
"""

import sys
from datetime import timedelta
from typing import assert_never

from attempt import Attempt, ComesBack, Delivery, Done, Outcome, Workplace, dead_letter
from claimed_run import ClaimedRun
from drafter import Drafter, InvalidDrafter
from galley.money import usd
from galley.observe import logger, tell_outcome
from galley.queue import RECEIVES_EXHAUSTED
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
)

STORE_BUSY_WAIT = timedelta(seconds=30)
"""How long a message waits that could not be claimed because others held the rows."""
BLOCKED_WAIT = timedelta(minutes=8)
"""How long a run waits that was begun before and meets a pause or a used-up budget: only a person or a day ends it."""

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
    """Claim the run, unless its slot is not worth drafting any more and it was never begun."""
    if isinstance(attempt.drafter, Drafter) and attempt.message.is_late(attempt.began):
        minutes = int((attempt.began - attempt.message.slot).total_seconds() // 60)
        started = _skip(attempt, SkipReason.MISFIRED, f"came {minutes} minutes after its slot")
        if started is None or started.status is not Status.DRAFTING:
            return Done()
    limits = _limits(attempt)
    try:
        outcome = attempt.outside.store.claim(
            attempt.message, limits, owner=attempt.owner, now=attempt.began, lease_until=attempt.deadline
        )
    except StoreBusy as error:
        logger.warning("run %s waits, its rows are held by others: %s", attempt.message.key, error)
        if attempt.delivery.is_last:
            return _end_waiting(attempt, attempt.outside.store.run(attempt.message.key), f"store busy: {error}", error)
        return _come_back(attempt, STORE_BUSY_WAIT)
    return _act_on(attempt, limits, outcome)


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
            logger.info("run %s is %s already", run.key, run.status)
            return Done()
        case Busy(run):
            return _leave_to_its_owner(attempt, run)
        case Gated(pending):
            waiting = f"{pending} drafts of {attempt.message.drafter} wait for a decision"
            return _skip_or_wait(attempt, SkipReason.GATE, f"{waiting}; its limit is {limits.pending}")
        case Paused(reason):
            return _skip_or_wait(attempt, SkipReason.PAUSED, reason)
        case OverBudget(committed):
            detail = (
                f"{usd(committed)} of {usd(limits.daily_budget_nanousd or 0)} are spent or reserved today, "
                f"and this call may cost {usd(limits.worst_cost_nanousd)}"
            )
            return _skip_or_wait(attempt, SkipReason.BUDGET, detail)
    assert_never(outcome)


def _skip_or_wait(attempt: Attempt, reason: SkipReason, detail: str) -> Outcome:
    """Record the skip. A run that was begun before cannot be skipped any more: it waits, as long as it comes back."""
    there = _skip(attempt, reason, detail)
    if there is None or there.status is not Status.DRAFTING:
        return Done()
    if attempt.delivery.is_last and there.lease_is_dead(attempt.began):
        return _end_waiting(attempt, there, f"{reason}: {detail}")
    return _come_back(attempt, BLOCKED_WAIT)


def _end_waiting(attempt: Attempt, run: Run | None, waited_for: str, error: Exception | None = None) -> Outcome:
    """Fail a run whose message is not handed over again, and say what it waited for; nobody works on it.

    The letter comes first: a crash between the two leaves a dead lease, which the sweep ends. Where there is no row, or
    one that was only queued, the letter alone says what became of the message.
    """
    now = attempt.outside.now()
    if run is not None and run.lease_until is not None and run.lease_until > now:
        return _leave_to_its_owner(attempt, run)
    letter = dead_letter(attempt.delivery, RECEIVES_EXHAUSTED, waited_for, error, now, run=run, key=attempt.message.key)
    attempt.outside.queue.bury(letter)
    if run is None or not run.lease_is_dead(now):
        return Done()
    # A take-over is refused, so the run is ended as it is, and billed what its last owner had reserved.
    bill = Bill(cost_nanousd=run.reserved_nanousd)
    match attempt.outside.store.release(run, Status.FAILED, RECEIVES_EXHAUSTED, waited_for, bill, now=now):
        case Settled(ended):
            tell_outcome(ended)
        case LeaseLost():
            logger.warning("run %s was taken over while it was ended", run.key)
    return Done()


def _leave_to_its_owner(attempt: Attempt, run: Run) -> Outcome:
    """Come back when the lease of another invocation ends."""
    if attempt.delivery.is_last:
        logger.error(
            "run %s is worked on by another invocation, and this was its message's last receive: if that one dies, "
            "the sweep ends the run",
            run.key,
        )
    lease_left = timedelta() if run.lease_until is None else run.lease_until - attempt.began
    return _come_back(attempt, lease_left + timedelta(seconds=1))


def _skip(attempt: Attempt, reason: SkipReason, detail: str) -> Run | None:
    """Record the skip; return the row that stands there already, if one does."""
    match attempt.outside.store.skip(attempt.message, reason, detail, now=attempt.began):
        case Settled(run):
            tell_outcome(run)
            return None
        case AlreadyThere(run):
            return run


def _come_back(attempt: Attempt, wait: timedelta) -> ComesBack:
    attempt.outside.queue.put_off(attempt.delivery.receipt, wait)
    return ComesBack()
