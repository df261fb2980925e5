"""``galley dlq``: what failed for good, from the queue of dead letters and from the table."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from galley.answers import run_answer
from galley.listing import all_watched
from galley.queue import DeadLetter, DeadTick
from galley.runs import Run, RunKey, Status
from galley.store import UnreadableRow
from galley_cli.commands.common import (
    DEFAULT_STATE,
    JsonOption,
    Opened,
    Operating,
    Refused,
    StackOption,
    StateOption,
    group,
)
from galley_cli.commands.shown import columns, letter_json, status_of, tick_json, value_lines

if TYPE_CHECKING:
    from rich.console import Console

dlq = group("dlq", "See what failed for good: runs and ticks.")

LIMIT = 1000


@dataclass(frozen=True, slots=True)
class DeadRun:
    """A run that failed for good, as the queue and the table each know it; one of them may not."""

    name: str
    letter: DeadLetter | None
    row: Run | None

    @property
    def reason(self) -> str:
        """Why it died, in the letter's words where there is one."""
        if self.letter is not None:
            return f"{self.letter.reason}: {self.letter.detail}"
        return f"{self.row.reason}: {self.row.detail}" if self.row is not None else ""

    def json(self) -> dict[str, Any]:
        """Return the letter and the row side by side."""
        return {
            "run": self.name,
            "letter": None if self.letter is None else letter_json(self.letter),
            "row": None if self.row is None else run_answer(self.row),
        }


@dlq.command("list")
def list_dead(state: StateOption = DEFAULT_STATE, stack: StackOption = None, as_json: JsonOption = False) -> None:
    """List dead runs and dead ticks, oldest first. A letter without a failed row, or the reverse, is shown as such."""
    operating = Operating(state, stack, as_json)
    opened = operating.open()
    dead, unreadable = _dead_runs(opened)
    ticks = opened.queue.dead_ticks(limit=LIMIT)

    def table(console: "Console") -> None:
        listed = columns("dead run", "reason", "letter", "row")
        for one in dead:
            row = "none" if one.row is None else status_of(one.row)
            letter = "none" if one.letter is None else f"{one.letter.last:%Y-%m-%d %H:%M}Z"
            listed.add_row(one.name, one.reason, letter, row)
        console.print(listed if dead else "No run is dead.")
        for tick in ticks:
            console.print(f"{_name_of(tick)} at {tick.at:%Y-%m-%d %H:%M}Z: {tick.reason}: {tick.detail}")
        for line in unreadable:
            console.print(f"unreadable: {line}")

    shown = {"runs": [one.json() for one in dead], "ticks": [tick_json(tick) for tick in ticks]}
    operating.print({**shown, "unreadable": unreadable}, table)


@dlq.command()
def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="As 'galley dlq list' names it.")],
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show everything that is known of a dead run."""
    operating = Operating(state, stack, as_json)
    dead, unreadable = _dead_runs(operating.open())
    found = [one for one in dead if one.name == run]
    if not found:
        others = f"; unreadable: {'; '.join(unreadable)}" if unreadable else ""
        raise Refused(f"no dead letter and no failed run is named {run!r}; see 'galley dlq list'{others}")

    def lines(console: "Console") -> None:
        for part in ("letter", "row"):
            for one in found:
                for line in value_lines(one.json()[part], part):
                    console.print(line)

    operating.print({"runs": [one.json() for one in found]}, lines)


def _dead_runs(opened: Opened) -> tuple[list[DeadRun], list[str]]:
    """Return dead letters joined with their rows, failed rows without a letter, and a line for each unreadable row."""
    letters = opened.queue.dead_runs(limit=LIMIT)
    failed = all_watched(opened.store, Status.FAILED)
    rows = {str(row.key): row for row in failed.runs}
    unreadable = list(failed.unreadable)
    dead = []
    for number, letter in enumerate(letters, 1):
        name = letter.run or f"unreadable-{number}"
        row = rows.pop(name, None)
        if row is None and letter.run is not None:
            try:
                row = opened.store.run(RunKey.parse(letter.run))
            except UnreadableRow as error:
                if str(error) not in unreadable:
                    unreadable.append(str(error))
        dead.append(DeadRun(name, letter, row))
    return [*dead, *(DeadRun(name, None, row) for name, row in rows.items())], unreadable


def _name_of(tick: DeadTick) -> str:
    """Return what died: a tick, or the record of an approved run that publish could not handle."""
    try:
        body = json.loads(tick.body)
    except ValueError:
        body = None
    run = body.get("run") if isinstance(body, dict) else None
    return "dead tick" if run is None else f"not published: {run}"
