"""``galley check``: is every schedule and every drafter's file as it must be?"""

import sys
from typing import TYPE_CHECKING

import typer

from galley.texts import counted
from galley_cli.checkout import find_checkout
from galley_cli.commands.common import BAD_INPUT, DEFAULT_STATE, JsonOption, Operating, StackOption, StateOption
from galley_cli.commands.shown import printable
from galley_cli.inspection import inspect, schedule_notes, schedule_problems, unscheduled, watched_for_silence

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("check")(check)


def check(state: StateOption = DEFAULT_STATE, stack: StackOption = None, as_json: JsonOption = False) -> None:
    """Check template.yaml and every drafter's file; with --stack also the schedules that are deployed.

    Exits with 2 and one line for each problem that it finds. A note is no problem.
    """
    operating = Operating(state, stack, as_json)
    inspection = inspect(find_checkout())
    drafters = [drafter.name for drafter in inspection.drafters]
    schedules = [schedule.name for schedule in inspection.template.schedules]
    watched = watched_for_silence(inspection.schedules)
    problems, notes = list(inspection.problems), list(inspection.notes)
    if stack is not None:
        opened = operating.open()
        deployed = opened.schedules.all()
        schedules = [schedule.name for schedule in deployed]
        watched = watched_for_silence(deployed)
        notes = [*unscheduled(deployed, inspection.names), *schedule_notes(deployed, opened.now())]
        problems += schedule_problems(deployed, inspection.names, lambda name: f"deployed schedule {name}")

    def lines(console: "Console") -> None:
        if not problems:
            console.print(f"{len(schedules)} schedules and {len(drafters)} drafters are good.")
        for name, slots in watched.items():
            console.print(
                f"watched: {name} is told as silent after {counted(slots, 'due slot', 'due slots')} without a draft"
            )
        for note in notes:
            console.print(f"note: {note}")

    found = {"problems": problems, "notes": notes, "schedules": schedules, "drafters": drafters}
    operating.print({**found, "silence_slots": watched}, lines)
    for line in problems:
        sys.stderr.write(f"galley: {printable(line)}\n")
    if problems:
        raise typer.Exit(BAD_INPUT)
