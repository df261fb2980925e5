"""What the commands share: their options, the system they act on, how they print, and how they fail."""

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from galley.instants import format_instant, in_utc, parse_instant

if TYPE_CHECKING:
    from rich.console import Console

    from galley.queue import RunQueue
    from galley.schedules import Schedules
    from galley.store import Store

DEFAULT_STATE = Path(".galley")

StateOption = Annotated[
    Path, typer.Option("--state", metavar="DIR", help="The state directory of the system on this machine.")
]
StackOption = Annotated[
    str | None, typer.Option("--stack", metavar="NAME", help="Act on this deployed CloudFormation stack instead.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of tables for people.")]

_CONTROL_IN_JSON = re.compile("[\x7f-\x9f]")
"""The control characters that JSON need not escape."""

WIDTH_FOR_PROGRAMS = 200
"""How wide a table is when no terminal says how wide it is."""

DONE, REFUSED, BAD_INPUT = 0, 1, 2


class Refused(Exception):
    """What was asked for cannot be done as things are: a conflict, not found. One line says why; exit code 1."""


class BadInput(Exception):
    """What was given is wrong. One line names it and the remedy; exit code 2."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The system that a command acts on, deployed or on this machine."""

    store: "Store"
    queue: "RunQueue"
    schedules: "Schedules"
    now: Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Operating:
    """What the shared options say: which system, and how to print."""

    state: Path
    stack: str | None
    as_json: bool

    def __post_init__(self) -> None:
        """Refuse two systems at once."""
        if self.stack is not None and self.state is not DEFAULT_STATE:
            raise BadInput(
                f"--state {self.state} is a system on this machine and --stack {self.stack} a deployed one; give one"
            )

    def open(self) -> Opened:
        """Open the deployed stack that was named, else the state directory, whether or not a system runs on it.

        Raises:
            galley_cli.stack.StackUnreachable: there is no such stack, or it cannot be asked.
            galley_cli.local.state.StateError: there is no state directory, or it cannot be used.
        """
        return _open_local(self.state) if self.stack is None else _open_stack(self.stack)

    def print(self, data: object, table: "Callable[[Console], None]") -> None:
        """Print ``data`` as JSON if that was asked for, else let ``table`` print for a person."""
        if self.as_json:
            sys.stdout.write(json_text(data, indent=2) + "\n")
        else:
            table(console())


def json_text(data: object, *, indent: int | None = None) -> str:
    """Return JSON that loses nothing on standard output, whatever its encoding, and that moves no cursor there."""
    unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    text = json.dumps(data, indent=indent, ensure_ascii=not unicode)
    return _CONTROL_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def group(name: str, help: str) -> typer.Typer:
    """Return an empty group of commands, which prints its help when it is given none."""
    made = typer.Typer(name=name, help=help, invoke_without_command=True)
    made.callback()(show_help)
    return made


def show_help(context: typer.Context) -> None:
    """Print the help of a group of commands that was given none."""
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help().rstrip() + "\n")


def whole_number(least: int, most: int) -> Callable[[str | int], int]:
    """Return what reads an option that is a whole number between two: its text, or its default."""

    def read(given: str | int) -> int:
        text = str(given)
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise typer.BadParameter(f"{text!r} is not a whole number from {least} to {most}.")
        return int(text)

    return read


def an_instant(given: str) -> datetime:
    """Read an option that is an instant: ISO 8601 with an offset."""
    try:
        return parse_instant(given)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant, or a date, which is its midnight in a timezone that is known only later."""

    given: datetime | date

    def at(self, timezone: str) -> datetime:
        """Return the instant in UTC; of a day that begins later than at midnight, its first instant.

        Raises:
            galley.schedule.InvalidSchedule: there is no such timezone.
            BadInput: the instant is beyond what a datetime can hold.
        """
        if isinstance(self.given, datetime):
            return self.given
        from galley.schedule import zone

        try:
            return in_utc(datetime.combine(self.given, time(), zone(timezone)))
        except ValueError as error:
            raise BadInput(str(error)) from error


def a_moment(given: str) -> Moment:
    """Read an option that is an instant or a date."""
    try:
        return Moment(date.fromisoformat(given))
    except ValueError:
        pass
    try:
        return Moment(parse_instant(given))
    except ValueError as error:
        raise typer.BadParameter(f"{error}; a date alone is its midnight in the schedule's timezone") from error


class AsksAtOnce(TyperCommand):
    """A command that names all the options that it lacks in one line, instead of the first of them each time."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # a context whose class Typer keeps to itself
        """Read the arguments.

        Raises:
            BadInput: when an option is lacking.
        """
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        missing = [one for one in self.params if one.required and one.opts[0].startswith("-") and one.name not in given]
        if missing and "help" not in given:
            options = "option" if len(missing) == 1 else "options"
            raise BadInput(
                f"Missing {options} {', '.join(one.opts[0] for one in missing)}; see '{ctx.command_path} --help'"
            )
        return super().parse_args(ctx, args)


def confirm(question: str, otherwise: str) -> None:
    """Ask on standard error.

    Raises:
        Refused: with ``otherwise``, unless the answer is yes.
    """
    try:
        if typer.confirm(question, err=True):
            return
    except typer.Abort:  # Ctrl-C or Ctrl-D, which leave the cursor behind the question
        sys.stderr.write("\n")
    raise Refused(otherwise)


def slot_in_both(slot: datetime, timezone: str) -> dict[str, str]:
    """Return a slot as JSON, in UTC and as the clocks of its schedule's zone show it."""
    from galley.schedule import zone

    return {"utc": format_instant(slot), "local": slot.astimezone(zone(timezone)).isoformat(timespec="minutes")}


def console() -> "Console":
    """Return a console on standard output: what comes from outside holds no markup for it, and moves no cursor."""
    from rich.console import Console

    from galley_cli.commands.shown import printable

    class Plain(Console):
        def print(self, *objects: Any, **how: Any) -> None:
            super().print(*(printable(one) if isinstance(one, str) else one for one in objects), **how)

    columns = os.environ.get("COLUMNS", "")
    told = int(columns) if columns.isdecimal() and int(columns) > 0 else WIDTH_FOR_PROGRAMS
    width = None if sys.stdout.isatty() else told
    return Plain(markup=False, highlight=False, emoji=False, soft_wrap=True, width=width)


def explained(error: BaseException) -> tuple[str, int] | None:
    """Return the one line and the exit code of an error that a person can understand; None for a fault of ours."""
    from galley_cli.commands.shown import printable

    known = _line_and_code(error)
    return None if known is None else (printable(known[0]), known[1])


def _line_and_code(error: BaseException) -> tuple[str, int] | None:
    match error:
        case typer.TyperException():
            return error.format_message().replace("Value error, ", "", 1), error.exit_code
        case Refused():
            return str(error), REFUSED
        case BadInput():
            return str(error), BAD_INPUT
        case OSError():
            return f"{error.filename or 'the system'}: {error.strerror or error}", REFUSED
    for code, names in _KNOWN.items():
        if any(_is_a(error, name) for name in names):
            return str(error), code
    return None


_KNOWN: Mapping[int, tuple[str, ...]] = {
    REFUSED: (
        "galley_cli.deployed_schedules.NoSuchSchedule",
        "galley_cli.local.state.StateInUse",
        "galley_cli.local.state.StateBusy",
        "galley_cli.rehearsal.Unfit",
        "galley_cli.stack.StackUnreachable",
        "galley.bucket.ObjectMissing",
        "galley.bucket.ObjectUnreadable",
        "galley.bucket.BucketUnavailable",
        "galley.bucket.ObjectTooLarge",
        "galley.reading.NotFound",
        "galley.reading.TextMismatch",
        "galley.retry.NeverSucceeds",
        "galley.retry.RetryLater",
        "galley.schedules.ScheduleMissing",
        "galley.schedules.ScheduleNotUnderstood",
        "galley.schedules.SchedulesUnavailable",
        "galley.store.CursorMoved",
        "galley.store.RowsDisagree",
        "galley.store.StoreBusy",
        "galley.store.UnreadableRow",
        "galley.queue.QueueUnavailable",
        "galley.queue.RemovalFailed",
        "botocore.exceptions.BotoCoreError",
        "botocore.exceptions.ClientError",
    ),
    BAD_INPUT: (
        "drafter.InvalidDrafter",
        "galley.contract.InvalidTick",
        "galley.runs.InvalidRunKey",
        "galley.schedule.InvalidSchedule",
        "galley_cli.checkout.CheckoutMissing",
        "galley_cli.template.InvalidTemplate",
        "galley_cli.local.desk.PortUnavailable",
        "galley_cli.local.filters.UnknownFilter",
        "galley_cli.local.state.StateError",
    ),
}
"""Errors whose text is one line for a person. They are named, not imported: most commands need few of them."""


def _is_a(error: BaseException, name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    loaded = sys.modules.get(module)
    return isinstance(error, getattr(loaded, attribute, ()))


def _open_local(state: Path) -> Opened:
    from galley_cli.local.deployment import deployed
    from galley_cli.local.state import StateDirectory
    from galley_cli.local.system import LocalSystem

    directory = StateDirectory.open_existing(state)
    system = LocalSystem(directory, deployed(directory.root), {})
    return Opened(
        store=system.local_store,
        queue=system.local_queues,
        schedules=system.local_schedules,
        now=system.now,
    )


def _open_stack(name: str) -> Opened:
    from galley.instants import utc_now
    from galley_cli.stack import open_stack

    stack = open_stack(name)
    return Opened(store=stack.store, queue=stack.queue, schedules=stack.schedules, now=utc_now)
