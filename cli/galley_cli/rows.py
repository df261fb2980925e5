"""The rows of some of a drafter's slots, from one listing of its runs."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from galley.runs import Run, RunKey
from galley.store import Store, UnreadableRow

PAGE = 500
"""How many rows are asked for at once."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that is there and cannot be read; ``why`` is one line that names it."""

    why: str


Row = Run | Unreadable | None


def rows_at(store: Store, drafter: str, slots: Collection[datetime]) -> dict[datetime, Row]:
    """Return what stands in the row of each slot, None where there is none.

    The drafter's runs are listed from the newest on, as far back as the oldest of the slots.
    """
    rows: dict[datetime, Row] = dict.fromkeys(slots)
    oldest = min(rows, default=None)
    after: str | None = None
    some_unreadable = False
    while oldest is not None:
        page = store.history(drafter, limit=PAGE, after=after)
        rows |= {run.slot: run for run in page.runs if run.slot in rows}
        some_unreadable = some_unreadable or bool(page.unreadable)
        after = page.next
        if after is None or (page.runs and page.runs[-1].slot < oldest):
            break
    if some_unreadable:
        for slot in [slot for slot, row in rows.items() if row is None]:
            rows[slot] = _row(store, RunKey(drafter, slot))
    return rows


def _row(store: Store, key: RunKey) -> Row:
    try:
        return store.run(key)
    except UnreadableRow as error:
        return Unreadable(str(error))
