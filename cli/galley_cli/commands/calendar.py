"""``galley calendar``: every slot that was due, and what became of it."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from galley.instants import format_instant
from galley.runs import Run
from galley.texts import counted
from galley_cli.commands.common import (
    DEFAULT_STATE,
    JsonOption,
    Operating,
    StackOption,
    StateOption,
    whole_number,
)
from galley_cli.commands.definitions import definitions
from galley_cli.commands.shown import columns, printable, status_of, title_or_detail
from galley_cli.due_slots import DueSlot, DueSlots, NoRow, due_slots
from galley_cli.rows import Unreadable

if TYPE_CHECKING:
    from rich.console import Console

MOST_DAYS = 92


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("calendar")(calendar)


def calendar(
    days: Annotated[
        int, typer.Option(parser=whole_number(1, MOST_DAYS), metavar="NUMBER", help="So many days back from now.")
    ] = 14,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every due slot of every schedule with its outcome, oldest first, and the next slots to come.

    A slot without a row is 'waiting' within its grace, and a 'hole' past it. What lies before a schedule's creation or
    last change, or while it is disabled, is not due: it is listed only where it has a row.
    """
    operating = Operating(state, stack, as_json)
    opened = operating.open()
    now = opened.now()
    found = due_slots(opened.schedules.all(), opened.store, span=timedelta(days=days), now=now)
    # On this machine a schedule that cannot be read is never deployed.
    broken = [*found.broken, *(definitions(operating).problems if stack is None else ())]
    holes = sum(one.outcome is NoRow.HOLE for one in found.slots)

    def table(console: "Console") -> None:
        listed = columns("run", "schedule", "status", "title or detail")
        for one in found.slots:
            listed.add_row(str(one.key), one.schedule, printable(_status(one)), printable(_detail(one)))
        console.print(listed if found.slots else f"No slot was due in {days} days, and none is to come in as many.")
        for line in _explained(found, operating, now - timedelta(days=days)):
            console.print(line)
        if holes:
            console.print(f"{counted(holes, 'hole', 'holes')}: see what became of the sweep.")
        for line in broken:
            console.print(f"broken: {printable(line)}")

    shown = {
        "from": format_instant(now - timedelta(days=days)),
        "now": format_instant(now),
        "slots": [_json(one) for one in found.slots],
        "schedules": [
            {"schedule": one.name, "enabled": one.enabled, "since": format_instant(one.since)}
            for one in found.schedules
        ],
        "holes": holes,
        "broken": broken,
    }
    operating.print(shown, table)


def _explained(found: DueSlots, operating: Operating, first: datetime) -> Iterator[str]:
    """Yield a line for each reason why slots may be missed in the list that are none."""
    for one in found.schedules:
        if not one.enabled:
            yield f"disabled: {one.name}, last changed {format_instant(one.since)}; no slot of it is due."
    later = [f"{one.name} {format_instant(one.since)}" for one in found.schedules if one.enabled and one.since > first]
    if later:
        yield (
            "Slots from before a schedule was made or last changed are listed only where they have a row: "
            f"{', '.join(later)}."
        )
    if not found.schedules and not found.broken:
        run = "" if operating.stack is not None else ": 'galley run' deploys those of template.yaml when it starts"
        yield f"No schedule is deployed{run}."


def _json(one: DueSlot) -> dict[str, Any]:
    run = one.outcome if isinstance(one.outcome, Run) else None
    return {
        "schedule": one.schedule,
        "run": str(one.key),
        "drafter": one.key.drafter,
        "slot": format_instant(one.key.slot),
        "status": _word(one),
        "reason": None if run is None else run.reason,
        "detail": one.outcome.why if isinstance(one.outcome, Unreadable) else None if run is None else run.detail,
        "origin": None if run is None else str(run.origin),
    }


def _word(one: DueSlot) -> str:
    match one.outcome:
        case Run(status=status):
            return str(status)
        case Unreadable():
            return "unreadable"
        case gap:
            return str(gap)


def _status(one: DueSlot) -> str:
    return status_of(one.outcome) if isinstance(one.outcome, Run) else _word(one)


def _detail(one: DueSlot) -> str:
    match one.outcome:
        case Run() as run:
            return title_or_detail(run)
        case Unreadable(why):
            return why
        case _:
            return ""
