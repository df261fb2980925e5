"""Every slot that was due, with what became of it: the row, or that there is none yet, or a hole."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from galley.contract import InvalidTick, Tick, read_tick
from galley.instants import in_utc
from galley.runs import Run, RunKey
from galley.schedule import InvalidSchedule
from galley.schedules import ScheduleDefinition
from galley.store import Store
from galley_cli.rows import Unreadable, rows_at

MOST_COMING = 3
"""How many of each schedule's coming slots are shown."""

_TICK = timedelta(microseconds=1)


class NoRow(StrEnum):
    """What a slot is that has no row.

    ``waiting``: its grace is not over, so its tick, its message or the sweep may still be on its way. ``hole``: the
    grace is over; the next sweep records what it is.
    """

    COMING = "coming"
    WAITING = "waiting"
    HOLE = "hole"


@dataclass(frozen=True, slots=True)
class DueSlot:
    """One drafter's slot of a schedule, by the schedule's name, and what is known of it."""

    schedule: str
    key: RunKey
    outcome: Run | Unreadable | NoRow


@dataclass(frozen=True, slots=True)
class Watched:
    """A schedule that can be read, and since when its slots are due: its creation or its last change, in UTC."""

    name: str
    enabled: bool
    since: datetime


@dataclass(frozen=True, slots=True)
class DueSlots:
    """The slots, oldest first, a line for each schedule that cannot be read, and the schedules that can."""

    slots: tuple[DueSlot, ...]
    broken: tuple[str, ...]
    schedules: tuple[Watched, ...]


def due_slots(schedules: Iterable[ScheduleDefinition], store: Store, *, span: timedelta, now: datetime) -> DueSlots:
    """Return the slots that were due within the span until now, and the next that come within as long from now.

    A slot that was not due by what is known of the schedule now, since it was disabled or changed later, is among them
    where it has a row: so a schedule's past stays in view when it is switched or changed. Each drafter's rows are
    listed once.
    """
    due: list[tuple[ScheduleDefinition, Tick, RunKey]] = []
    with_row_only: set[tuple[str, RunKey]] = set()
    broken: list[str] = []
    watched: list[Watched] = []
    for one in schedules:
        try:
            tick = read_tick(one.input, "input")
            every = [slot.replace(microsecond=0) for slot in one.calendar().between(now - span, now + _TICK)]
            past = set(one.due(now - span, now + _TICK))
            coming = one.due(now + _TICK, now + span)[:MOST_COMING]
        except (InvalidTick, InvalidSchedule) as error:
            broken.append(f"{one.name}: {error}")
            continue
        watched.append(Watched(one.name, one.enabled, max(in_utc(one.created), in_utc(one.modified))))
        due += [(one, tick, RunKey(drafter, slot)) for slot in (*every, *coming) for drafter in tick.drafters]
        with_row_only |= {
            (one.name, RunKey(drafter, slot)) for slot in every if slot not in past for drafter in tick.drafters
        }
    rows = _rows(store, [key for _, _, key in due])
    found = [
        DueSlot(one.name, key, rows[key] or without_row(key.slot, tick, now))
        for one, tick, key in due
        if rows[key] is not None or (one.name, key) not in with_row_only
    ]
    found.sort(key=lambda one: (one.key.slot, one.schedule, one.key.drafter))
    return DueSlots(tuple(found), tuple(broken), tuple(watched))


def without_row(slot: datetime, tick: Tick, now: datetime) -> NoRow:
    """Return what a slot is that has no row."""
    if slot > now:
        return NoRow.COMING
    return NoRow.WAITING if now <= slot + tick.contract.grace else NoRow.HOLE


def _rows(store: Store, keys: Iterable[RunKey]) -> dict[RunKey, Run | Unreadable | None]:
    slots: dict[str, set[datetime]] = {}
    for key in keys:
        slots.setdefault(key.drafter, set()).add(key.slot)
    return {
        RunKey(drafter, slot): row
        for drafter, those in slots.items()
        for slot, row in rows_at(store, drafter, those).items()
    }
