"""``galley drafters``, ``galley pause`` and ``galley resume``: each drafter's gate, and shutting it by hand."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from galley.answers import gate_answer
from galley.edits import checked_words
from galley.instants import format_instant
from galley.money import usd
from galley.store import DrafterState
from galley.store.changes import utc_day
from galley.texts import one_line
from galley_cli.commands.common import (
    DEFAULT_STATE,
    BadInput,
    JsonOption,
    Opened,
    Operating,
    StackOption,
    StateOption,
)
from galley_cli.commands.definitions import known_drafters, refuse_unknown
from galley_cli.commands.shown import columns
from galley_cli.obstacles import read_file
from galley_cli.os_user import os_user
from galley_cli.silences import silences, silent_drafters

if TYPE_CHECKING:
    from rich.console import Console

    from drafter import Drafter

DrafterArgument = Annotated[str, typer.Argument(metavar="DRAFTER", help="Its name, as 'galley drafters' lists it.")]


@dataclass(frozen=True, slots=True)
class _Gate:
    """A drafter's gate, what it has spent today (a UTC day), and what its file allows; money in nano-dollars.

    ``silent_since`` is the first slot of a silence that the sweep has told.
    """

    state: DrafterState
    day: str
    committed_nanousd: int
    file: "Drafter | None"
    problem: str | None
    silent_since: datetime | None

    def json(self) -> dict[str, Any]:
        """Return what is known; a limit or a budget is null where the file is missing, wrong or sets none."""
        return {
            **gate_answer(self.state),
            "pending_limit": None if self.file is None else self.file.pending_limit,
            "day": self.day,
            "committed_nanousd": self.committed_nanousd,
            "daily_budget_nanousd": None if self.file is None else self.file.daily_budget_nanousd,
            "silent_since": None if self.silent_since is None else format_instant(self.silent_since),
            "problem": self.problem,
        }

    @property
    def pending(self) -> str:
        """How many of how many drafts are undecided, for a person."""
        return f"{self.state.pending} of {'?' if self.file is None else self.file.pending_limit}"

    @property
    def spend(self) -> str:
        """How much of how much was spent or reserved today, for a person."""
        spent = usd(self.committed_nanousd)
        if self.file is None:
            return f"{spent} of ?"
        budget = self.file.daily_budget_nanousd
        return f"{spent}, no budget" if budget is None else f"{spent} of {usd(budget)}"


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("drafters")(list_drafters)
    app.command("pause")(pause)
    app.command("resume")(resume)


def list_drafters(state: StateOption = DEFAULT_STATE, stack: StackOption = None, as_json: JsonOption = False) -> None:
    """List the drafters: undecided drafts of the limit, what today (UTC) has cost of the budget, silences and pauses.

    Limits and budgets are those of the files here, also with --stack.
    """
    operating = Operating(state, stack, as_json)
    opened = operating.open()
    silent = silent_drafters(silences(opened.store))
    gates = [_gate(opened, name, silent.get(name)) for name in known_drafters(operating)]

    def table(console: "Console") -> None:
        listed = columns("drafter", "pending", "spent today", "silent since", "paused")
        for gate in gates:
            silence = "" if gate.silent_since is None else format_instant(gate.silent_since)
            listed.add_row(gate.state.drafter, gate.pending, gate.spend, silence, gate.state.paused or "")
        console.print(listed if gates else "There are no drafters.")
        for gate in gates:
            if gate.problem is not None:
                console.print(f"broken: {gate.problem}")

    operating.print({"drafters": [gate.json() for gate in gates]}, table)


def pause(
    drafter: DrafterArgument,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for whoever finds its skipped slots.")] = "",
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a drafter draft nothing until it is resumed: its slots are skipped, and say so. What waits can be decided.

    Of a drafter that is paused already the new reason replaces the old one, which is told.
    """
    try:
        words = one_line(checked_words(reason))
    except ValueError as error:
        raise BadInput(f"--reason {error}; nothing was paused") from error
    operating = Operating(state, stack, as_json)
    refuse_unknown(drafter, known_drafters(operating))
    opened = operating.open()
    before = opened.store.drafter(drafter).paused
    opened.store.pause(drafter, f"by {os_user()} (command line){f': {words}' if words else ''}", now=opened.now())
    now = opened.store.drafter(drafter)
    told = f"{drafter} is paused {now.paused}."
    _print(operating, now, before, told if before is None else f"{told} Until now it was paused {before}.")


def resume(
    drafter: DrafterArgument,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a paused drafter draft again, from its next slot on. Nothing else ends a pause."""
    operating = Operating(state, stack, as_json)
    refuse_unknown(drafter, known_drafters(operating))
    opened = operating.open()
    before = opened.store.drafter(drafter).paused
    opened.store.resume(drafter, now=opened.now())
    told = f"{drafter} was not paused." if before is None else f"{drafter} drafts again; it was paused {before}."
    _print(operating, opened.store.drafter(drafter), before, told)


def _print(operating: Operating, gate: DrafterState, before: str | None, line: str) -> None:
    operating.print({**gate_answer(gate), "was_paused": before}, lambda console: console.print(line))


def _gate(opened: Opened, name: str, silent_since: datetime | None) -> _Gate:
    file, problem = read_file(name)
    day = utc_day(opened.now())
    return _Gate(
        opened.store.drafter(name), day, opened.store.committed_nanousd(name, day), file, problem, silent_since
    )
