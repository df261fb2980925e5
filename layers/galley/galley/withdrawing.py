"""Undecided drafts that their drafter's rules take out of the review queue: which, and for what."""

from datetime import datetime

from galley.observe import tell_outcome
from galley.runs import Run, Status
from galley.store import Conflict, NoSuchRun, Settled, Store, Withdrawal


def is_expired(run: Run, now: datetime) -> bool:
    """Tell whether a draft has been undecided for as long as its drafter lets it be."""
    return run.status is Status.PENDING and run.rules.expires is not None and now >= run.rules.expires


def replaces(newer: Run, older: Run) -> bool:
    """Tell whether a draft takes the place of an undecided one of the same drafter.

    Whatever becomes of the newer one afterwards: it was there to be read in the older one's place. An earlier slot that
    was drafted later, by a backfill or because it was sent again, stays: somebody asked for it, knowing what was there.
    """
    if newer.drafted is None or older.drafted is None or older.status is not Status.PENDING:
        return False
    if newer.drafter != older.drafter or newer.slot == older.slot:
        return False
    is_earlier = older.slot < newer.slot and older.drafted <= newer.drafted
    return older.slot in newer.rules.supersedes or (newer.rules.supersedes_earlier and is_earlier)


def withdraw(store: Store, run: Run, why: Withdrawal, *, now: datetime) -> Run | None:
    """Take an undecided draft out of the queue and tell so; return its row, or None if it was no longer as it was read.

    Raises:
        galley.store.StoreBusy: when its rows cannot be had now.
        galley.store.RowsDisagree: when they contradict each other.
    """
    match store.withdraw(run, why, now=now):
        case Settled(withdrawn):
            tell_outcome(withdrawn)
            return withdrawn
        case Conflict() | NoSuchRun():
            return None
