"""``galley runs``: what became of every slot."""

from typing import TYPE_CHECKING, Annotated

import typer

from galley.runs import Run, RunKey, Status
from galley.store import Page, Store
from galley_cli.commands.calendars import known_drafters
from galley_cli.commands.common import DEFAULT_STATE, JsonOption, Operating, Refused, StackOption, StateOption
from galley_cli.commands.shown import columns, run_json, state_of

if TYPE_CHECKING:
    from rich.console import Console

runs = typer.Typer(name="runs", help="See what became of every slot.", no_args_is_help=True)


@runs.command("list")
def list_runs(
    drafter: Annotated[str | None, typer.Option(help="Only this drafter's runs.")] = None,
    status: Annotated[Status | None, typer.Option(help="Only runs in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many, the newest slots.")] = 50,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """List runs, newest slot first."""
    operating = Operating(state, stack, as_json)
    store = operating.open().store
    names = known_drafters(operating) if drafter is None else (drafter,)
    pages = [_history(store, name, status, limit) for name in names]
    found = sorted((run for page in pages for run in page.runs), key=lambda run: (run.slot, run.drafter), reverse=True)
    unreadable = [line for page in pages for line in page.unreadable]

    def table(console: "Console") -> None:
        listed = columns("run", "state", "origin", "attempts", "title or detail")
        for run in found[:limit]:
            listed.add_row(
                str(run.key), state_of(run), str(run.origin), str(run.attempts), run.title or run.detail or ""
            )
        console.print(listed if found else "There is no such run.")
        for line in unreadable:
            console.print(f"unreadable: {line}")

    operating.print({"runs": [run_json(run) for run in found[:limit]], "unreadable": unreadable}, table)


@runs.command()
def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="daily-digest:2026-03-29T05:00:00Z")],
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show everything that is known of a run."""
    operating = Operating(state, stack, as_json)
    key = RunKey.parse(run)
    row = operating.open().store.run(key)
    if row is None:
        raise Refused(f"there is no run {key}")
    shown = run_json(row)

    def lines(console: "Console") -> None:
        for name, value in shown.items():
            if value not in (None, ""):
                console.print(f"{name:16} {value}")

    operating.print(shown, lines)


def _history(store: Store, drafter: str, status: Status | None, limit: int) -> Page:
    """Return a drafter's newest runs in a state, at most so many, reading on until there are enough."""
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
