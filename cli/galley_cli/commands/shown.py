"""Runs and letters as lines for people, and letters as JSON. Instants are in UTC."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from galley.queue import DeadLetter, DeadTick
from galley.rules import Review
from galley.runs import Run, Status

if TYPE_CHECKING:
    from rich.table import Table

_JSON: TypeAdapter[Any] = TypeAdapter(Any)
_CONTROL = re.compile("[^\t\n\x20-\x7e\xa0-\U0010ffff]")


def as_json(value: object) -> Any:
    """Return a dataclass as plain JSON values."""
    return _JSON.dump_python(value, mode="json", fallback=str)


def letter_json(letter: DeadLetter) -> dict[str, Any]:
    """Return every field of a dead letter."""
    shown: dict[str, Any] = as_json(letter)
    return shown


def tick_json(tick: DeadTick) -> dict[str, Any]:
    """Return every field of a dead tick."""
    shown: dict[str, Any] = as_json(tick)
    return shown


def columns(*names: str) -> "Table":
    """Return an empty table that folds what is too wide, so nothing is cut, and whose texts are ``printable``.

    The first column and a hash are to be copied, so they stay whole; on a narrow terminal the lines are longer than it.
    """
    from rich.cells import cell_len
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table

    class Listing(Table):
        def add_row(self, *given: RenderableType | None, **style: Any) -> None:
            cells = [printable(cell) if isinstance(cell, str) else cell for cell in given]
            for column, cell in zip(self.columns, cells, strict=False):
                if column.no_wrap:
                    column.min_width = max(column.min_width or 0, cell_len(str(cell)))
            super().add_row(*cells, **style)

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            least = sum(column.min_width or 0 for column in self.columns) + len(self.columns)
            yield from super().__rich_console__(console, options.update(max_width=max(options.max_width, least)))

    made = Listing(box=None, pad_edge=False)
    for number, name in enumerate(names):
        made.add_column(name, overflow="fold", no_wrap=number == 0 or name == "hash", min_width=10)
    return made


def value_lines(value: Any, name: str = "") -> Iterator[str]:
    """Yield nested JSON as lines for people, each with a name and a value."""
    values = list(named_values(value, name))
    width = max((len(one) for one, _ in values), default=0)
    for one, text in values:
        yield printable(f"{one:{width}}  {text}")


def printable(text: str) -> str:
    """Return the text with a mark in the place of each control character: what comes from outside moves no cursor."""
    return _CONTROL.sub("\ufffd", text)


def named_values(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values of nested JSON as ``name.sub`` and text, in their order; what is empty is left out."""
    match value:
        case None | "" | []:
            return
        case dict():
            for key, inner in value.items():
                yield from named_values(inner, f"{name}.{key}" if name else str(key))
        case list() if any(isinstance(inner, dict | list) for inner in value):
            for number, inner in enumerate(value, 1):
                yield from named_values(inner, f"{name}.{number}")
        case list():
            yield name, ", ".join(map(str, value))
        case bool():
            yield name, "yes" if value else "no"
        case _:
            yield name, str(value)


def status_of(run: Run) -> str:
    """Return the status, with the reason of a skip or a failure, and whether the text was sent unread."""
    if run.status in {Status.SKIPPED, Status.FAILED}:
        return f"{run.status}: {run.reason}"
    return f"{run.status}, not reviewed" if run.rules.review is Review.NONE else str(run.status)


def title_or_detail(run: Run) -> str:
    """Return what a run is about: its draft's title, else what is known of why there is none."""
    return run.title or run.detail or ""
