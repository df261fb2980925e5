"""Runs whose window is over and that have no outcome yet."""

from collections.abc import Iterable
from datetime import datetime

from galley.runs import Run


def find_overdue(runs: Iterable[Run], *, now: datetime) -> tuple[str, ...]:
    """Return those of the queued and drafting runs that are past their window, by their keys."""
    return tuple(sorted(str(run.key) for run in runs if is_overdue(run, now)))


def is_overdue(run: Run, now: datetime) -> bool:
    """Tell whether a run takes longer than its schedule expects.

    The window counts from the slot. A run that no grace binds (a backfill, one that a person sent again) began long
    after its slot, and is never overdue.
    """
    return run.message.grace_ends is not None and now > run.slot + run.contract.window
