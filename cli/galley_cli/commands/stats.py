"""``galley stats``: what each drafter's weeks came to, from the counters that are kept with its runs."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from galley.money import usd
from galley_cli.commands.common import (
    DEFAULT_STATE,
    JsonOption,
    Operating,
    StackOption,
    StateOption,
    whole_number,
)
from galley_cli.commands.definitions import known_drafters, refuse_unknown
from galley_cli.commands.shown import columns
from galley_cli.week_figures import Figures, latest_weeks, monday_of, together

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("stats")(stats)


def stats(
    drafters: Annotated[
        list[str] | None, typer.Argument(metavar="DRAFTER", help="Only these; all of them without any.")
    ] = None,
    weeks: Annotated[
        int,
        typer.Option(parser=whole_number(1, 53), metavar="NUMBER", help="So many ISO weeks (UTC), with this one."),
    ] = 4,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show each drafter's slots, drafts, acceptance and cost for each week. A run counts in the week of its slot."""
    operating = Operating(state, stack, as_json)
    opened = operating.open()
    known = known_drafters(operating)
    for name in drafters or ():
        refuse_unknown(name, known)
    named = tuple(dict.fromkeys(drafters)) if drafters else known
    shown = latest_weeks(opened.now(), weeks)
    found = {name: {week: Figures(opened.store.week(name, week)) for week in shown} for name in named}

    def table(console: "Console") -> None:
        listed = columns("drafter", "week, from", "slots", "drafts", "decided", "cost")
        for name, of_weeks in found.items():
            for when, figures in _rows(of_weeks):
                listed.add_row(name, when, *_cells(figures))
        if listed.row_count:
            console.print(listed)
        if silent := [name for name, of_weeks in found.items() if not any(_rows(of_weeks))]:
            console.print(f"Nothing is counted since {monday_of(shown[-1])} of: {', '.join(silent)}.")
        if not found:
            console.print("There are no drafters.")

    operating.print({"weeks": list(shown), "drafters": [_drafter(name, found[name]) for name in named]}, table)


def _drafter(name: str, of_weeks: Mapping[str, Figures]) -> dict[str, object]:
    listed = [{"week": week, "from": str(monday_of(week)), **figures.json()} for week, figures in of_weeks.items()]
    return {"drafter": name, "weeks": listed, "total": together(of_weeks.values()).json()}


def _rows(of_weeks: Mapping[str, Figures]) -> Iterator[tuple[str, Figures]]:
    """Yield the weeks that have figures, each with its name and day; all of them together, where there are several."""
    counted = {f"{week}\n{monday_of(week)}": figures for week, figures in of_weeks.items() if figures.counters}
    yield from counted.items()
    if len(counted) > 1:
        yield f"{len(of_weeks)} weeks", together(counted.values())


def _cells(figures: Figures) -> tuple[str, ...]:
    return _slots(figures), _drafts(figures), _decided(figures), _cost(figures)


def _slots(figures: Figures) -> str:
    return _lines(figures.slots, {"skipped": figures.skipped_by_reason})


def _drafts(figures: Figures) -> str:
    return _lines(figures.drafts, {"approved": {"edited": figures.edited}, "rejected": figures.rejected_by_reason})


def _lines(numbers: Mapping[str, int], parts: Mapping[str, Mapping[str, int]]) -> str:
    """Return a line for each number that is not zero, with what it is made up of."""
    lines = []
    for name, number in numbers.items():
        of = ", ".join(f"{part} {count}" for part, count in parts.get(name, {}).items() if count)
        if number:
            lines.append(f"{number} {name}{f' ({of})' if of else ''}")
    return "\n".join(lines)


def _decided(figures: Figures) -> str:
    mean = figures.mean_minutes_to_decision
    if mean is None:
        return ""
    decided = f"{figures.decided}, mean {_duration(mean)}"
    if figures.acceptance is None or figures.acceptance_unedited is None:
        return f"{decided}\naccepted: too few"
    return f"{decided}\n{figures.acceptance:.0%} accepted\n{figures.acceptance_unedited:.0%} unedited"


def _duration(minutes: float) -> str:
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def _cost(figures: Figures) -> str:
    each = figures.nanousd_for_each_approved
    for_each = "n/a" if each is None else usd(each)
    return f"{usd(figures.cost_nanousd)}\n{for_each} per approved\n{figures.tokens:,} tokens"
