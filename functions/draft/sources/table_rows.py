"""The rows of a table: CSV or JSON lines, as the cells of those columns that are wanted."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence

from drafter_file.report import TableSource
from galley.retry import NeverSucceeds
from galley.texts import clip, counted

_SEPARATORS = (",", ";", "\t")

Record = Sequence[str] | str
"""The cells of the wanted columns, or why a row has none that can be read."""


def records(source: TableSource, body: bytes, columns: Mapping[str, str]) -> Iterator[tuple[int, Record]]:
    """Yield the number of each row that is not blank, and its cells of the columns, or why it has none.

    ``columns`` are those that are wanted, each with who needs it.

    Raises:
        NeverSucceeds: ``unreadable_table`` or ``missing_column``.
    """
    # A byte that is not UTF-8 spoils its own cell, not the table; where a number should be, the row is named.
    text = io.TextIOWrapper(io.BytesIO(body), encoding="utf-8-sig", errors="replace", newline="")
    return _json_lines(text, source, columns) if source.is_json_lines else _csv_rows(text, source, columns)


def _json_lines(
    text: io.TextIOWrapper, source: TableSource, columns: Mapping[str, str]
) -> Iterator[tuple[int, Record]]:
    """Yield the number and the cells of each line that is not blank; numbers are kept as they are written."""
    named: dict[str, None] = {}
    found_any = False
    for number, line in enumerate(text, start=1):
        if not line.strip():
            continue
        try:
            read = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
            cells = [_json_cell(read.get(name)) for name in columns] if isinstance(read, dict) else None
        except (ValueError, RecursionError):
            cells = None
        if cells is None:
            yield number, "it is not a JSON object"
            continue
        found_any = True
        named |= {name: None for name in list(read)[:40] if len(named) < 400}
        named |= {name: None for name in columns if name in read}
        yield number, cells
    for column, wanted_by in columns.items():
        if found_any and column not in named:
            raise _missing_column(source, "no column", column, wanted_by, list(named))


def _json_cell(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            return json.dumps(value, ensure_ascii=False)


def _csv_rows(text: io.TextIOWrapper, source: TableSource, columns: Mapping[str, str]) -> Iterator[tuple[int, Record]]:
    """Yield the number and the cells of each row that is not blank."""
    rows = _raw_rows(text, source, columns)
    names = [name.strip() for name in next(rows)[1] or ()]
    while names and not names[-1]:
        names.pop()
    for column, wanted_by in columns.items():
        if names.count(column) != 1:
            problem = "more than one column" if column in names else "no column"
            raise _missing_column(source, problem, column, wanted_by, names)
    places, width = [names.index(column) for column in columns], len(names)
    for number, cells in rows:
        if cells is None:
            yield number, "its quotes do not match"
        elif not any(cell.strip() for cell in cells):
            continue
        elif len(cells) < width or any(cell.strip() for cell in cells[width:]):
            yield number, f"it has {counted(len(cells), 'cell', 'cells')}, the first row has {width}"
        else:
            yield number, [cells[place] for place in places]


def _missing_column(
    source: TableSource, problem: str, column: str, wanted_by: str, names: Sequence[str]
) -> NeverSucceeds:
    return NeverSucceeds(
        "missing_column",
        f"{source.place}: there is {problem} {column!r}, which {wanted_by} of source {source.id!r} needs;"
        f" the columns are {', '.join(shortened(name) for name in names[:40])}",
    )


def _raw_rows(
    text: io.TextIOWrapper, source: TableSource, columns: Mapping[str, str]
) -> Iterator[tuple[int, list[str] | None]]:
    """Yield the number and the cells of each row; None for the cells of a row whose quotes do not match."""
    head = text.readline()
    if not head.strip():
        raise NeverSucceeds("unreadable_table", f"{source.place}: its first row is empty; it must name the columns")
    separator = _separator(head, columns)
    text.seek(0)
    reader = csv.reader(text, delimiter=separator, strict=True)
    number = 0
    while True:
        number += 1
        try:
            yield number, next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "field limit" in str(error):
                raise NeverSucceeds(
                    "unreadable_table",
                    f"{source.place}: row {number} has a cell of more than {csv.field_size_limit():,} characters, or "
                    "opens a quote that is never closed; correct it",
                ) from error
            if number == 1 or "unexpected end of data" in str(error):
                raise NeverSucceeds(
                    "unreadable_table", f"{source.place}: row {number} opens a quote that is never closed; correct it"
                ) from error
            yield number, None


def _separator(head: str, columns: Mapping[str, str]) -> str:
    """Return the separator under which the first row names most of the wanted columns, and then has most cells."""

    def fitness(separator: str) -> tuple[int, int]:
        try:
            cells = next(csv.reader([head], delimiter=separator), [])
        except csv.Error:  # a cell beyond the reader's limit
            cells = []
        return len(columns.keys() & {cell.strip() for cell in cells}), len(cells)

    return max(_SEPARATORS, key=fitness)


def shortened(text: str) -> str:
    """Return a cell as it is named in a line."""
    return clip(repr(text), 42)
