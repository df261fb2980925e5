"""``galley schedules``: what is due when."""

from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from galley.contract import InvalidTick, read_tick
from galley.schedule import InvalidSchedule
from galley.schedules import ScheduleDefinition
from galley_cli.commands.common import (
    DEFAULT_STATE,
    JsonOption,
    Operating,
    StackOption,
    StateOption,
    slot_in_both,
    whole_number,
)
from galley_cli.commands.definitions import definitions
from galley_cli.commands.shown import columns

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("schedules")(list_schedules)


def list_schedules(
    coming: Annotated[
        int | None,
        typer.Option(
            "--next", parser=whole_number(1, 1000), metavar="NUMBER", help="Show so many coming slots of each instead."
        ),
    ] = None,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the schedules, with their last and next slot in their own timezone and in UTC."""
    operating = Operating(state, stack, as_json)
    found = definitions(operating)
    problems = found.problems
    listed = [_schedule(definition, found.now, coming) for definition in found.schedules]

    def table(console: "Console") -> None:
        shown = _last_and_next(listed) if coming is None else _coming(listed)
        console.print(shown if listed else "There are no schedules.")
        for line in (*(f"{one['schedule']}: {one['error']}" for one in listed if "error" in one), *problems):
            console.print(f"broken: {line}")

    operating.print({"schedules": listed, "problems": list(problems)}, table)


def _last_and_next(listed: list[dict[str, Any]]) -> "Table":
    shown = columns("schedule", "expression", "timezone", "drafters", "last slot", "next slot")
    for one in listed:
        drafters = ", ".join(one.get("drafters", [])) if one["enabled"] else "(disabled)"
        shown.add_row(
            one["schedule"], one["expression"], one["timezone"], drafters, _slot(one, "last"), _slot(one, "next")
        )
    return shown


def _coming(listed: list[dict[str, Any]]) -> "Table":
    shown = columns("schedule", "timezone", "coming slot", "in UTC", "")
    for one in listed:
        for slot in one.get("coming", []):
            note = "" if one["enabled"] else "(disabled)"
            shown.add_row(one["schedule"], one["timezone"], slot["local"], slot["utc"], note)
        if not one.get("coming"):
            shown.add_row(one["schedule"], one["timezone"], "", "", "(broken)" if "error" in one else "(none)")
    return shown


def _schedule(definition: ScheduleDefinition, now: datetime, coming: int | None) -> dict[str, Any]:
    """Return a schedule as JSON, with so many coming slots; what is wrong with it stands in ``error``."""
    shown: dict[str, Any] = {
        "schedule": definition.name,
        "arn": definition.arn,
        "expression": definition.expression,
        "timezone": definition.timezone,
        "enabled": definition.enabled,
    }
    try:
        tick = read_tick(definition.input, "input")
        calendar = definition.calendar()
    except (InvalidTick, InvalidSchedule) as error:
        return {**shown, "error": str(error)}
    if coming is not None:
        slots = islice(calendar.after(now), coming)
        shown["coming"] = [slot_in_both(slot, definition.timezone) for slot in slots]
    return {
        **shown,
        "drafters": list(tick.drafters),
        "contract": tick.contract.model_dump(mode="json"),
        "last": _in_both(calendar.latest_until(now), definition.timezone),
        "next": _in_both(calendar.next_after(now), definition.timezone),
    }


def _in_both(slot: datetime | None, timezone: str) -> dict[str, str] | None:
    return None if slot is None else slot_in_both(slot, timezone)


def _slot(one: dict[str, Any], which: str) -> str:
    slot = one.get(which)
    return "" if slot is None else f"{slot['local']}\n{slot['utc']}"
