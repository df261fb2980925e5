"""Whether a drafter has gone silent: so many due slots in a row without a draft."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from galley.runs import IN_FLIGHT, WITH_A_DRAFT, Status


def silent_since(
    slots: Sequence[datetime],
    statuses: Mapping[datetime, Status | None],
    *,
    silence_slots: int,
    known: datetime | None,
) -> datetime | None:
    """Return the first slot of a drafter's silence; None where it is not silent.

    ``slots`` are the schedule's slots that were looked at, oldest first, and ``statuses`` what has become of all slots
    in that span that have a row. ``known`` is since when the drafter was silent before, if it was: a silence lasts
    until a later slot has its draft. A draft counts whatever its slot, so one that a person asked for ends it too. A
    slot without an outcome says nothing yet, and neither does a state that a newer version wrote.
    """
    drafted = max((slot for slot, status in statuses.items() if status in WITH_A_DRAFT), default=None)
    if known is not None and (drafted is None or drafted < known):
        return known
    quiet = [
        slot for slot in slots if (drafted is None or slot > drafted) and statuses.get(slot) not in {None, *IN_FLIGHT}
    ]
    return quiet[0] if len(quiet) >= silence_slots else None


def first_in_flight(slots: Sequence[datetime], statuses: Mapping[datetime, Status | None]) -> datetime | None:
    """Return the first of the slots whose run has begun or was asked for, and has no outcome yet."""
    return next((slot for slot in slots if statuses.get(slot) in IN_FLIGHT), None)
