"""``galley schedules``: what is due when; ``enable`` and ``disable`` switch a deployed stack's schedules."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, assert_never

import typer

from galley.contract import InvalidTick, read_tick
from galley.instants import format_instant
from galley.schedule import InvalidSchedule
from galley.schedules import ScheduleDefinition, ScheduleState
from galley_cli.commands.common import (
    DEFAULT_STATE,
    BadInput,
    JsonOption,
    Operating,
    Refused,
    StackOption,
    StateOption,
    confirm,
    slot_in_both,
    whole_number,
)
from galley_cli.commands.definitions import changed_since_start, definitions, known_silences
from galley_cli.commands.shown import columns, printable
from galley_cli.deployed_schedules import definition_named

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

schedules = typer.Typer(name="schedules", invoke_without_command=True)

NamesArgument = Annotated[list[str], typer.Argument(metavar="NAME...", help="As 'galley schedules' lists them.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@schedules.callback()
def list_schedules(
    context: typer.Context,
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
    """List the schedules, with their last and next slot in their own timezone and in UTC; or enable and disable them.

    A schedule that is disabled has no next slot. Beside a drafter that has gone silent stands since when.
    """
    operating = Operating(state, stack, as_json)
    if context.invoked_subcommand is not None:
        if coming is not None or as_json or stack is not None or state is not DEFAULT_STATE:
            raise BadInput(f"give the options after '{context.invoked_subcommand}', and --next without it")
        return
    found = definitions(operating)
    problems = found.problems
    changed = [one.name for one in changed_since_start(operating)]
    silent = known_silences(operating)
    listed = [
        _schedule(definition, found.now, coming, silent.get(definition.name, {})) for definition in found.schedules
    ]

    def table(console: "Console") -> None:
        shown = _last_and_next(listed) if coming is None else _coming(listed)
        console.print(shown if listed else "There are no schedules.")
        for line in (*(f"{one['schedule']}: {one['error']}" for one in listed if "error" in one), *problems):
            console.print(f"broken: {line}")
        if changed:
            console.print(
                "Changed in template.yaml since 'galley run' last started, which takes it up at its next start: "
                f"{', '.join(changed)}."
            )

    operating.print({"schedules": listed, "problems": list(problems), "changed_since_start": changed}, table)


@schedules.command()
def enable(
    names: NamesArgument,
    yes: YesOption = False,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let schedules of a deployed stack be due again, from their next slot on. The slots in between are not made up."""
    _switch(Operating(state, stack, as_json), names, ScheduleState.ENABLED, yes=yes)


@schedules.command()
def disable(
    names: NamesArgument,
    yes: YesOption = False,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let schedules of a deployed stack be due no more. What was sent before is still drafted."""
    _switch(Operating(state, stack, as_json), names, ScheduleState.DISABLED, yes=yes)


def _switch(operating: Operating, names: Sequence[str], wanted: ScheduleState, *, yes: bool) -> None:
    if operating.stack is None:
        found = definitions(operating).schedules
        switched = _Switched(operating, wanted, _chosen(found, names))
        if switched.to_switch:
            raise Refused(_where_to_switch(switched.to_switch, wanted))
        switched.print()
        return
    from galley_cli.stack import open_stack

    deployed = open_stack(operating.stack).schedules
    switched = _Switched(operating, wanted, _chosen(deployed.all(), names))
    if switched.to_switch and not yes:
        _confirm(switched.to_switch, wanted)
    try:
        for one in switched.to_switch:
            switched.switched[one.arn] = deployed.switch(one.arn, wanted)
    except BaseException:
        switched.print()
        raise
    switched.print()


def _chosen(schedules: Sequence[ScheduleDefinition], names: Sequence[str]) -> list[ScheduleDefinition]:
    """Return the schedules that were named, each once; refuse all where one of the names is wrong."""
    return list({one.arn: one for one in (definition_named(schedules, name) for name in names)}.values())


def _where_to_switch(schedules: Sequence[ScheduleDefinition], wanted: ScheduleState) -> str:
    names = ", ".join(one.name for one in schedules)
    match wanted:
        case ScheduleState.DISABLED:
            change = f"write 'State: DISABLED' into the Properties of {names}"
        case ScheduleState.ENABLED:
            change = f"take 'State: DISABLED' out of the Properties of {names}"
        case _:
            assert_never(wanted)
    return f"on this machine template.yaml says what is due: {change} there, and start galley run again"


def _confirm(schedules: Sequence[ScheduleDefinition], wanted: ScheduleState) -> None:
    """Say what will be switched and ask, on standard error; refuse unless the answer is yes."""
    verb = "enable" if wanted is ScheduleState.ENABLED else "disable"
    if not sys.stdin.isatty():
        raise BadInput(f"there is no terminal to ask at; --yes {verb}s without asking")
    for one in schedules:
        sys.stderr.write(f"{printable(f'{one.name}  {one.expression} {one.timezone}')}\n")
    confirm(f"{verb.capitalize()} this?", "nothing was changed")


@dataclass(frozen=True, slots=True)
class _Switched:
    """The schedules that were chosen, and, by ARN, those that were switched, as they are now."""

    operating: Operating
    wanted: ScheduleState
    chosen: Sequence[ScheduleDefinition]
    switched: dict[str, ScheduleDefinition] = field(default_factory=dict)

    @property
    def to_switch(self) -> list[ScheduleDefinition]:
        """Those that were in the other state."""
        return [one for one in self.chosen if one.enabled is not (self.wanted is ScheduleState.ENABLED)]

    def print(self) -> None:
        """Tell of each what became of it."""

        def lines(console: "Console") -> None:
            for one in self.chosen:
                console.print(self._line(one))

        shown = [
            {
                "schedule": one.name,
                "arn": one.arn,
                "enabled": self.switched.get(one.arn, one).enabled,
                "changed": one.arn in self.switched,
            }
            for one in self.chosen
        ]
        self.operating.print({"schedules": shown}, lines)

    def _line(self, before: ScheduleDefinition) -> str:
        now = self.switched.get(before.arn)
        word = str(self.wanted).lower()
        if now is None:
            is_done = before.enabled is (self.wanted is ScheduleState.ENABLED)
            return f"{before.name} is {word} already." if is_done else f"{before.name} was not {word}."
        match self.wanted:
            case ScheduleState.DISABLED:
                return f"{now.name} is disabled: no slot of it is due until it is enabled again."
            case ScheduleState.ENABLED:
                return f"{now.name} is enabled; {_next_line(now)}."
        assert_never(self.wanted)


def _next_line(definition: ScheduleDefinition) -> str:
    try:
        slot = definition.calendar().next_after(definition.modified)
    except InvalidSchedule as error:
        return f"but it cannot be read: {error}"
    return "no slot of it is to come" if slot is None else f"its next slot is {format_instant(slot)}"


def _last_and_next(listed: list[dict[str, Any]]) -> "Table":
    shown = columns("schedule", "expression", "timezone", "drafters", "last slot", "next slot")
    for one in listed:
        coming = _slot(one, "next") if one["enabled"] else "(disabled)"
        shown.add_row(one["schedule"], one["expression"], one["timezone"], _drafters(one), _slot(one, "last"), coming)
    return shown


def _drafters(one: dict[str, Any]) -> str:
    silent = one.get("silent", {})
    named = one.get("drafters", [])
    return ", ".join(f"{name} (silent since {silent[name]})" if name in silent else name for name in named)


def _coming(listed: list[dict[str, Any]]) -> "Table":
    shown = columns("schedule", "timezone", "coming slot", "in UTC", "")
    for one in listed:
        for slot in one.get("coming", []):
            shown.add_row(one["schedule"], one["timezone"], slot["local"], slot["utc"], "")
        if not one.get("coming"):
            why = "(broken)" if "error" in one else "(none)" if one["enabled"] else "(disabled)"
            shown.add_row(one["schedule"], one["timezone"], "", "", why)
    return shown


def _schedule(
    definition: ScheduleDefinition, now: datetime, coming: int | None, silent: Mapping[str, datetime]
) -> dict[str, Any]:
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
    next_slot = calendar.next_after(now) if definition.enabled else None
    if coming is not None:
        slots = islice(calendar.after(now), coming if definition.enabled else 0)
        shown["coming"] = [slot_in_both(slot, definition.timezone) for slot in slots]
    return {
        **shown,
        "drafters": list(tick.drafters),
        "contract": tick.contract.model_dump(mode="json"),
        "silence_slots": tick.silence_slots,
        "silent": {drafter: format_instant(since) for drafter, since in silent.items()},
        "last": _in_both(calendar.latest_until(now), definition.timezone),
        "next": _in_both(next_slot, definition.timezone),
    }


def _in_both(slot: datetime | None, timezone: str) -> dict[str, str] | None:
    return None if slot is None else slot_in_both(slot, timezone)


def _slot(one: dict[str, Any], which: str) -> str:
    slot = one.get(which)
    return "" if slot is None else f"{slot['local']}\n{slot['utc']}"
