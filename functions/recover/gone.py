"""Schedules that the sweep knows and that are deleted: what it knew is forgotten, and what that leaves open is told.

When a schedule was deleted nobody can ask any more. So a slot since it was last swept gets no row: it would say of a
slot that it was due, or missed, though the schedule may have been gone by then.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from galley.contract import InvalidTick, read_tick
from galley.instants import format_instant
from galley.runs import RunKey
from galley.schedule import InvalidSchedule
from galley.schedules import ScheduleDefinition, ScheduleMissing, Schedules, ScheduleSummary, SchedulesUnavailable
from galley.store import RowsDisagree, Store, StoreBusy, SweptSchedule, UnreadableRow
from galley.texts import counted, listed

MOST_NAMED = 3
"""How many slots without a row are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Gone:
    """A line for each schedule that was forgotten, and one for each that could not be."""

    told: tuple[str, ...]
    broken: tuple[str, ...]


def forget_gone(
    schedules: Schedules,
    store: Store,
    known: Iterable[SweptSchedule],
    summaries: Iterable[ScheduleSummary],
    *,
    now: datetime,
    is_out_of_time: Callable[[], bool],
) -> Gone:
    """Forget each known schedule that is not listed and, asked for by itself, does not exist.

    A listing may lack for a moment what is there. Whatever is not forgotten is looked at by the next sweep.
    """
    there = {summary.name for summary in summaries}
    told: list[str] = []
    broken: list[str] = []
    for swept in known:
        name = swept.definition.name
        if name in there:
            continue
        if is_out_of_time():
            break
        try:
            if not _exists(schedules, swept.definition):
                line = _line(f"schedule {name} is deleted", _without_row(store, swept, now))
                store.forget_swept(name, now=now)
                told.append(line)
        except (SchedulesUnavailable, StoreBusy, RowsDisagree) as error:
            broken.append(f"{name}: {error.detail}")
        except UnreadableRow as error:
            broken.append(f"{name}: {error}")
    return Gone(tuple(told), tuple(broken))


def line_of_made_again(store: Store, swept: SweptSchedule, made: ScheduleDefinition) -> str:
    """Return a line on a known schedule in whose place another one was made, under the same name.

    Raises:
        galley.store.StoreBusy: when the table gives no answer.
        galley.store.UnreadableRow: when a row has the place of a run and the name of none.
    """
    what = f"schedule {made.name} was deleted and made again at {format_instant(made.created)}"
    return _line(what, _without_row(store, swept, made.created))


def _exists(schedules: Schedules, definition: ScheduleDefinition) -> bool:
    try:
        schedules.get(definition.arn)
    except ScheduleMissing:
        return False
    return True


def _without_row(store: Store, swept: SweptSchedule, until: datetime) -> Sequence[RunKey]:
    """Return the runs since the schedule was last swept that have no row, oldest first, up to an instant."""
    until += timedelta(microseconds=1)
    found = {key for one in (*swept.former, swept) for key in _missing(store, one, min(one.ends or until, until))}
    return sorted(found, key=lambda key: (key.slot, key.drafter))


def _missing(store: Store, swept: SweptSchedule, end: datetime) -> Iterator[RunKey]:
    """Yield the runs without a row of one definition, of slots before its end; one that cannot be read has none."""
    try:
        due = swept.definition.due(swept.swept_until, end)
        drafters = read_tick(swept.definition.input).drafters
    except (InvalidSchedule, InvalidTick):
        return
    for drafter in drafters if due else ():
        with_row = store.slot_statuses(drafter, due[0], due[-1]).keys()
        yield from (RunKey(drafter, slot) for slot in due if slot not in with_row)


def _line(what: str, missing: Sequence[RunKey]) -> str:
    if not missing:
        return f"{what}; each slot that it was due at has its row"
    runs = counted(len(missing), "run", "runs")
    return f"{what}; {runs} without a row may have been due before: {listed(missing, MOST_NAMED)}"
