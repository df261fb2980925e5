"""The drafters that have gone silent, as the last sweep noted them."""

from collections.abc import Mapping
from datetime import datetime

from galley.contract import InvalidTick, read_tick
from galley.store import Store, SweptSchedule

Silences = Mapping[str, Mapping[str, datetime]]
"""By schedule and drafter, the first slot (in UTC) of a silence that lasts."""


def silences(store: Store) -> Silences:
    """Return who is silent, by the names of the schedules that have their drafters watched."""
    noted = {swept.definition.name: _silent(swept) for swept in store.swept_schedules().schedules}
    return {name: silent for name, silent in noted.items() if silent}


def silent_drafters(found: Silences) -> Mapping[str, datetime]:
    """Return since when each silent drafter is so, on whichever schedule that was noted first."""
    first: dict[str, datetime] = {}
    for silent in found.values():
        for drafter, since in silent.items():
            first[drafter] = min(since, first.get(drafter, since))
    return first


def _silent(swept: SweptSchedule) -> dict[str, datetime]:
    try:
        tick = read_tick(swept.definition.input)
    except InvalidTick:
        return {}
    watched = tick.drafters if tick.silence_slots is not None else ()
    noted = ((name, swept.drafters[name].silent_since) for name in watched if name in swept.drafters)
    return {name: since for name, since in noted if since is not None}
