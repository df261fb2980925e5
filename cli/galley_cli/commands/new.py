"""``galley new``: a new drafter's file, and the schedule that goes with it."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from galley.contract import DrafterName
from galley.instants import utc_now
from galley.schedule import calendar_of
from galley_cli.checkout import find_checkout
from galley_cli.commands.common import DEFAULT_STATE, BadInput, JsonOption, Operating, Refused
from galley_cli.commands.shown import printable
from galley_cli.inspection import LOOKED_AHEAD
from galley_cli.starting import ShapeName, schedule_event, starter, usual
from galley_cli.template import read_template

if TYPE_CHECKING:
    from rich.console import Console

_NAME: TypeAdapter[str] = TypeAdapter(DrafterName)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("new")(new)


def new(
    shape: Annotated[ShapeName, typer.Argument(help="What it does.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, like competitor-digest.")],
    schedule: Annotated[
        str | None,
        typer.Option(metavar="EXPRESSION", help="When it is due: cron(...) or rate(...), as in 'galley slots'."),
    ] = None,
    timezone: Annotated[str, typer.Option("--tz", metavar="ZONE", help="An IANA name like Europe/London.")] = "UTC",
    as_json: JsonOption = False,
) -> None:
    """Write the file of a new drafter, with every setting in a comment, and print its schedule for template.yaml.

    A file that is there already is never overwritten.
    """
    try:
        _NAME.validate_python(name)
    except ValidationError as error:
        remedy = "use a-z, 0-9 and -, beginning with a letter, at most 63 characters"
        raise BadInput(f"NAME is {name!r}: {remedy}") from error
    due = replace(usual(shape), timezone=timezone)
    due = due if schedule is None else replace(due, expression=" ".join(schedule.split()))
    now = utc_now()
    for line in calendar_of(due.expression, due.timezone, now).warnings(now, now + LOOKED_AHEAD):
        sys.stderr.write(f"galley: warning: {printable(line)}\n")
    checkout = find_checkout()
    template = read_template(checkout.template)
    taken = [one.name for one in (*template.schedules, *template.sweeps)]
    event, text = schedule_event(name, due, taken)
    path = checkout.drafters / f"{name}.toml"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(starter(shape, name))
    except FileExistsError as error:
        raise Refused(f"{path}: is there already; give another name, or edit it") from error

    def lines(console: "Console") -> None:
        console.print(f"{path} is written. Paste this below Events of DispatchFunction in {checkout.template}:\n")
        console.print(text)
        console.print(f"Then: galley check, galley draft {name}")

    Operating(DEFAULT_STATE, None, as_json).print(
        {"drafter": name, "shape": str(shape), "file": str(path), "schedule": event, "event": text}, lines
    )
