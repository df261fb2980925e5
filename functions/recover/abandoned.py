"""Runs that were begun and that nobody works on any more: they are ended, and give their place at the gate back."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from galley.instants import format_instant
from galley.observe import tell_outcome
from galley.queue import DeadLetter, QueueUnavailable, RunQueue
from galley.runs import Run, Status
from galley.store import Bill, LeaseLost, RowsDisagree, Settled, Store, StoreBusy

ABANDONED = "abandoned"
"""The reason of a run that nobody has worked on for too long."""

ABANDONED_AFTER = timedelta(hours=2)
"""How long a run may lie still whose attempt ended without a word: longer than its message's visibility."""

GIVEN_UP_AFTER = timedelta(days=1)
"""How long a run may lie still that waits for its next attempt: its message may stand in a long line, and is sent once
more meanwhile."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The runs that were ended, and a line for each that could not be."""

    runs: tuple[str, ...]
    broken: tuple[str, ...]


def end_abandoned(runs: Iterable[Run], store: Store, queue: RunQueue, *, now: datetime) -> Ended:
    """Fail each of the runs whose lease is dead and whose next attempt never came.

    Its message most likely died without our code running: the queue has buried it, after a crash on each receive. A
    letter of our own is buried beside it, before the row says failed: nobody knows whether the message died or was
    lost. What its last owner had reserved is booked as paid, since nobody knows whether that call was billed. A run
    that cannot be ended stops no other.
    """
    ended: list[str] = []
    broken: list[str] = []
    for run in runs:
        try:
            if is_abandoned(run, now) and _end(store, queue, run, now):
                ended.append(str(run.key))
        except (RowsDisagree, StoreBusy, QueueUnavailable) as error:
            broken.append(f"{run.key}: {error.detail}")
    return Ended(tuple(ended), tuple(broken))


def is_abandoned(run: Run, now: datetime) -> bool:
    """Tell whether a run lies still for longer than anything that is still on its way to it."""
    if not run.lease_is_dead(now):
        return False
    if run.owner is not None:
        return now - last_sign(run) > ABANDONED_AFTER
    return now - (run.next_attempt or run.changed) > GIVEN_UP_AFTER


def last_sign(run: Run) -> datetime:
    """Return the latest instant at which somebody worked on the run, or was to work on it."""
    return max(instant for instant in (run.changed, run.lease_until, run.next_attempt) if instant is not None)


def _end(store: Store, queue: RunQueue, run: Run, now: datetime) -> bool:
    last = f"; its last error was {run.reason}: {run.detail}" if run.reason else ""
    detail = f"nobody has worked on it since {format_instant(last_sign(run))} and its message seems to be gone{last}"
    letter = DeadLetter(
        body=run.message.model_dump_json(),
        run=str(run.key),
        reason=ABANDONED,
        detail=detail,
        error_type="",
        attempts=run.attempts,
        first=run.created,
        last=now,
    )
    queue.bury(letter)
    bill = Bill(cost_nanousd=run.reserved_nanousd)
    match store.release(run, Status.FAILED, ABANDONED, detail, bill, now=now):
        case Settled(settled):
            tell_outcome(settled)
            return True
        case LeaseLost():
            return False
