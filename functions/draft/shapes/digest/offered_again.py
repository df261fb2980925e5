"""Items of rejected drafts, offered once more.

What was offered is remembered like a source's cursor, under a name that no source of a file can have, and so moves only
with the draft that has it. A draft that was rejected before the drafter offered anything again is left as it is: its
file then said that its items are dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from galley.drafts import Item
from galley.instants import format_instant
from galley.store import Cursor
from galley.texts import counted
from shapes.shape import RejectedDrafts
from sources.collected import CursorState, read_cursor, short_hash

SOURCE = "_rejected"
MAX_REMEMBERED_ITEMS = 4_000


class _State(CursorState):
    """``slots`` are those of drafts that are dealt with, ``items`` hashes of what was offered again."""

    slots: tuple[str, ...] = ()
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OfferedAgain:
    """What the next draft has once more, with ids from ``r1``; ``cursor`` is None when it does not move."""

    items: tuple[Item, ...] = ()
    warnings: tuple[str, ...] = ()
    cursor: Cursor | None = None


def offer_again(rejected: RejectedDrafts, cursor: Cursor | None, at_most: int) -> OfferedAgain:
    """Return the items of the drafts that were rejected since the cursor, oldest first, each of them once more at most.

    What is beyond ``at_most`` is for the draft after.

    Raises:
        NeverSucceeds: for a cursor that is not one of ours.
    """
    slots = {format_instant(slot): slot for slot in rejected.slots()}
    state = read_cursor(_State, cursor, "the rejected drafts")
    done = list(slots) if cursor is None else [slot for slot in slots if slot in state.slots]
    offered = dict.fromkeys(state.items)
    items: list[Item] = []
    warnings: list[str] = []
    for slot in [slot for slot in slots if slot not in done]:
        kept = rejected.items(slots[slot])
        if kept is None:
            warnings.append(f"the items of the rejected draft of {slot} cannot be offered again, its text is not there")
            done.append(slot)
            continue
        fresh = [item for item in kept if _identity(item) not in offered]
        taken = fresh[: at_most - len(items)]
        items += taken
        offered.update(dict.fromkeys(map(_identity, taken)))
        warnings += _told(slot, len(taken), len(fresh))
        done += [slot] if len(taken) == len(fresh) else []
    moved = {"slots": sorted(done), "items": list(offered)[-MAX_REMEMBERED_ITEMS:]}
    return OfferedAgain(
        items=tuple(replace(item, id=f"r{number}") for number, item in enumerate(items, 1)),
        warnings=tuple(warnings),
        cursor=None if moved == cursor else moved,
    )


def _told(slot: str, taken: int, fresh: int) -> Sequence[str]:
    if not fresh:
        return []
    offered = f"{counted(taken, 'item', 'items')} offered again, the draft of {slot} was rejected"
    waiting = f"; {fresh - taken} more for the next draft" if taken < fresh else ""
    return [offered + waiting]


def _identity(item: Item) -> str:
    """Return what tells an item from all others, without its text: that is kept beside a draft only in part."""
    published = "" if item.published is None else format_instant(item.published)
    return short_hash(item.source, item.title, item.link or "", published)
