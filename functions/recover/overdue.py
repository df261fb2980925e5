"""Runs whose window is over and that have no outcome yet."""

from datetime import datetime

from galley.listing import all_watched
from galley.runs import Run, Status
from galley.store import Store


def find_overdue(store: Store, *, now: datetime) -> tuple[str, ...]:
    """Return the runs that are queued or being drafted past their window, by their keys.

    A row that cannot be read is named by those who end and send what they read in the same listings.
    """
    listed = (all_watched(store, status) for status in (Status.QUEUED, Status.DRAFTING))
    return tuple(sorted(str(run.key) for page in listed for run in page.runs if is_overdue(run, now)))


def is_overdue(run: Run, now: datetime) -> bool:
    """Tell whether a run takes longer than its schedule expects.

    The window counts from the slot. A run that no grace binds (a backfill, one that a person sent again) began long
    after its slot, and is never overdue.
    """
    return run.message.grace_ends is not None and now > run.slot + run.contract.window
