"""``galley slots``: when an expression is due, before anything is deployed."""

import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

import typer

from galley.instants import format_instant
from galley.schedule import calendar_of
from galley_cli.commands.common import AsksAtOnce, BadInput, JsonOption, Moment, a_moment, slot_in_both


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("slots", cls=AsksAtOnce)(list_slots)


def list_slots(
    expression: Annotated[
        str, typer.Argument(help="cron(...), rate(...) or at(...), as EventBridge Scheduler has it.")
    ],
    timezone: Annotated[str, typer.Option("--tz", metavar="ZONE", help="An IANA name like Europe/London.")],
    begin: Annotated[
        Moment, typer.Option("--from", parser=a_moment, metavar="INSTANT", help="Slots at or after this instant.")
    ],
    until: Annotated[
        Moment, typer.Option("--to", parser=a_moment, metavar="INSTANT", help="Slots before this instant.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Print when an expression is due in a timezone, in UTC and by the zone's clocks. A rate counts from --from.

    An INSTANT is like 2026-03-29T05:00:00Z, or a date: its midnight in the timezone.

    What may not be meant is a warning on standard error: a day without its only slot since the clocks go forward,
    syntax that AWS does not document, a schedule that is never due.
    """
    first, end = begin.at(timezone), until.at(timezone)
    if end < first:
        raise BadInput(
            f"--to {format_instant(end)} is before --from {format_instant(first)}; give the earlier one first"
        )
    calendar = calendar_of(expression, timezone, first)
    for line in calendar.warnings(first, end):
        sys.stderr.write(f"galley: warning: {line}\n")
    slots = calendar.between(first, end)
    sys.stdout.writelines(_json(slots) if as_json else _lines(slots, timezone))


def _lines(slots: Iterator[datetime], timezone: str) -> Iterator[str]:
    for slot in slots:
        shown = slot_in_both(slot, timezone)
        yield f"{shown['utc']}  {shown['local']}\n"


def _json(slots: Iterator[datetime]) -> Iterator[str]:
    """Yield a JSON list slot by slot: a long range has millions."""
    first = next(slots, None)
    if first is None:
        yield "[]\n"
        return
    yield f'[\n  "{format_instant(first)}"'
    for slot in slots:
        yield f',\n  "{format_instant(slot)}"'
    yield "\n]\n"
