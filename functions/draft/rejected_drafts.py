"""A drafter's rejected drafts, as the store has them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from galley.drafts import Item
from galley.observe import logger
from galley.runs import RunKey, Status
from galley.store import Store, UnreadableRow

LOOKED_AT = 200
"""So many of a drafter's newest runs are looked at: one page of its history."""


@dataclass(frozen=True, slots=True)
class StoredRejections:
    """The rejected drafts among a drafter's newest runs."""

    store: Store
    drafter: str

    def slots(self) -> Sequence[datetime]:
        """Return their slots, in UTC, oldest first."""
        runs = self.store.history(self.drafter, limit=LOOKED_AT).runs
        return sorted(run.slot for run in runs if run.status is Status.REJECTED)

    def items(self, slot: datetime) -> tuple[Item, ...] | None:
        """Return the items kept beside one of them, or None when its row is gone or cannot be read."""
        try:
            stored = self.store.draft(RunKey(self.drafter, slot))
        except UnreadableRow as error:
            logger.warning("the items of a rejected draft cannot be offered again: %s", error)
            return None
        return None if stored is None else stored.draft.items
