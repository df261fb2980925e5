"""Whole listings, from all their pages."""

from galley.runs import Run, Status
from galley.store import Page, Store


def all_watched(store: Store, status: Status) -> Page:
    """Return all runs of a watched status, and the name of each row that cannot be read, on one page."""
    runs: list[Run] = []
    unreadable: list[str] = []
    after: str | None = None
    while True:
        page = store.watched(status, after=after)
        runs.extend(page.runs)
        unreadable.extend(page.unreadable)
        after = page.next
        if after is None:
            return Page(tuple(runs), tuple(unreadable))
