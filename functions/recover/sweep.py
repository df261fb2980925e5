"""Whether the latest due slot of each schedule has an outcome, and what becomes of it where it has none.

Only that slot is looked for: older ones are not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from galley.contract import InvalidTick, read_tick
from galley.observe import tell_outcome
from galley.queue import RunQueue
from galley.runs import Origin, RunMessage, SkipReason, messages_for
from galley.schedule import InvalidSchedule
from galley.schedules import ScheduleDefinition, Schedules
from galley.store import AlreadyThere, Settled, Store, UnreadableRow

SETTLING = timedelta(minutes=2)
"""A slot younger than this is left alone: its own tick may still be on its way (Scheduler's precision is a minute)."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did: the runs it sent, the slots it recorded as skipped, and the schedules it could not read."""

    caught_up: tuple[str, ...]
    skipped: tuple[str, ...]
    broken: tuple[str, ...]


def sweep(schedules: Schedules, store: Store, queue: RunQueue, *, now: datetime, trace: str) -> Swept:
    """Give the latest due slot of each enabled schedule an outcome where it has none.

    Within its grace it is sent as a run; past it, it is recorded as misfired. Older slots are not looked for.
    One broken schedule never stops the others.
    """
    messages: list[RunMessage] = []
    skipped: list[str] = []
    broken: list[str] = []
    for definition in schedules.all():
        try:
            due = list(_due(definition, now, trace))
        except (InvalidSchedule, InvalidTick) as error:
            broken.append(f"{definition.name}: {error}")
            continue
        for message in due:
            try:
                if store.run(message.key) is not None:
                    continue
            except UnreadableRow as error:
                broken.append(f"{definition.name}: {error}")
                continue
            if not message.is_late(now):
                messages.append(message)
            elif _misfire(store, message, now):
                skipped.append(str(message.key))
    if messages:
        queue.send(messages)
    return Swept(tuple(str(message.key) for message in messages), tuple(skipped), tuple(broken))


def _due(definition: ScheduleDefinition, now: datetime, trace: str) -> Iterator[RunMessage]:
    """Yield the messages of a schedule's latest due slot."""
    tick = read_tick(definition.input, f"input of schedule {definition.name}")
    if not definition.enabled:
        return
    slot = _latest_due(definition, now)
    if slot is not None:
        yield from messages_for(tick, slot, origin=Origin.CATCH_UP, schedule=definition.arn, trace=trace)


def _latest_due(definition: ScheduleDefinition, now: datetime) -> datetime | None:
    """Return the schedule's latest settled slot, unless it lies before the schedule became what it is."""
    slot = definition.calendar().latest_until(now - SETTLING)
    return slot if slot is not None and slot >= definition.modified else None


def _misfire(store: Store, message: RunMessage, now: datetime) -> bool:
    detail = f"found {int((now - message.slot).total_seconds() // 60)} minutes after its slot, past its grace"
    match store.skip(message, SkipReason.MISFIRED, detail, now=now):
        case Settled(run):
            tell_outcome(run)
            return True
        case AlreadyThere():
            return False
