"""``galley check``: is every schedule and every drafter's file as it must be?"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from galley.contract import InvalidTick, read_tick
from galley.schedule import InvalidSchedule, calendar_of
from galley.schedules import ScheduleDefinition
from galley_cli.checkout import find_checkout
from galley_cli.commands.common import BAD_INPUT, DEFAULT_STATE, JsonOption, Operating, StackOption, StateOption
from galley_cli.inspection import inspect

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("check")(check)


def check(state: StateOption = DEFAULT_STATE, stack: StackOption = None, as_json: JsonOption = False) -> None:
    """Check template.yaml and every drafter's file; with --stack also the schedules that are deployed.

    Exits with 2 and one line for each problem that it finds.
    """
    operating = Operating(state, stack, as_json)
    inspection = inspect(find_checkout())
    drafters = [drafter.name for drafter in inspection.drafters]
    schedules = [schedule.name for schedule in inspection.template.schedules]
    problems = list(inspection.problems)
    if stack is not None:
        deployed = operating.open().schedules.all()
        schedules = [schedule.name for schedule in deployed]
        problems += [line for schedule in deployed for line in _problems(schedule, drafters)]

    def lines(console: "Console") -> None:
        if not problems:
            console.print(f"{len(schedules)} schedules and {len(drafters)} drafters are good.")

    operating.print({"problems": problems, "schedules": schedules, "drafters": drafters}, lines)
    for line in problems:
        sys.stderr.write(f"galley: {line}\n")
    if problems:
        raise typer.Exit(BAD_INPUT)


def _problems(schedule: ScheduleDefinition, drafters: Sequence[str]) -> list[str]:
    try:
        tick = read_tick(schedule.input, "input")
        calendar_of(schedule.expression, schedule.timezone, schedule.created)
    except (InvalidTick, InvalidSchedule) as error:
        return [f"deployed schedule {schedule.name}: {error}"]
    return [
        f"deployed schedule {schedule.name}: drafter {name!r} has no good file here; "
        f"the drafters are: {', '.join(drafters) or 'none'}"
        for name in tick.drafters
        if name not in drafters
    ]
