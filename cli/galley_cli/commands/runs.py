"""``galley runs``: what became of every slot."""

from typing import TYPE_CHECKING, Annotated

import typer

from galley.answers import run_answer
from galley.reading import read_run
from galley.runs import Run, RunKey, Status
from galley.store import Page, Store
from galley_cli.commands.common import (
    DEFAULT_STATE,
    JsonOption,
    Operating,
    StackOption,
    StateOption,
    group,
    whole_number,
)
from galley_cli.commands.definitions import known_drafters, refuse_unknown
from galley_cli.commands.shown import columns, status_of, title_or_detail, value_lines

if TYPE_CHECKING:
    from rich.console import Console

runs = group("runs", "See what became of every slot.")


@runs.command("list")
def list_runs(
    drafter: Annotated[str | None, typer.Option(help="Only this drafter's runs.")] = None,
    status: Annotated[Status | None, typer.Option(help="Only runs of this status.")] = None,
    limit: Annotated[
        int,
        typer.Option(parser=whole_number(1, 10_000), metavar="NUMBER", help="At most so many, the newest slots."),
    ] = 50,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """List runs, newest slot first."""
    operating = Operating(state, stack, as_json)
    store = operating.open().store
    names = known_drafters(operating)
    if drafter is not None:
        refuse_unknown(drafter, names)
        names = (drafter,)
    pages = [_history(store, name, status, limit) for name in names]
    found = sorted((run for page in pages for run in page.runs), key=lambda run: (run.slot, run.drafter), reverse=True)
    unreadable = [line for page in pages for line in page.unreadable]

    def table(console: "Console") -> None:
        listed = columns("run", "status", "origin", "attempts", "title or detail")
        for run in found[:limit]:
            listed.add_row(str(run.key), status_of(run), str(run.origin), str(run.attempts), title_or_detail(run))
        console.print(listed if found else _nothing(drafter, status))
        for line in unreadable:
            console.print(f"unreadable: {line}")

    operating.print({"runs": [run_answer(run) for run in found[:limit]], "unreadable": unreadable}, table)


@runs.command()
def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="daily-digest:2026-03-29T05:00:00Z")],
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show everything that is known of a run."""
    operating = Operating(state, stack, as_json)
    shown = run_answer(read_run(operating.open().store, RunKey.parse(run)))

    def lines(console: "Console") -> None:
        for line in value_lines(shown):
            console.print(line)

    operating.print(shown, lines)


def _nothing(drafter: str | None, status: Status | None) -> str:
    whose = "No run" if drafter is None else f"No run of {drafter}"
    return f"{whose} is {status}." if status is not None else f"{whose} is there yet."


def _history(store: Store, drafter: str, status: Status | None, limit: int) -> Page:
    """Return a drafter's newest runs of a status, at most so many, reading on until there are enough."""
    found: list[Run] = []
    unreadable: list[str] = []
    after: str | None = None
    while True:
        page = store.history(drafter, after=after)
        found.extend(run for run in page.runs if status is None or run.status is status)
        unreadable.extend(page.unreadable)
        after = page.next
        if after is None or len(found) >= limit:
            return Page(tuple(found[:limit]), tuple(unreadable))
