"""A CSV table of figures in the bucket, reduced to what a report needs of it: one tally for each day and metric."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Context, Decimal
from zoneinfo import ZoneInfo

from drafter_file.report import Metric, TableSource
from galley.bucket import Bucket, ObjectMissing, ObjectTooLarge, ObjectUnreadable
from galley.retry import NeverSucceeds
from galley.texts import clip

MAX_BYTES = 50_000_000
EXACT = Context(prec=60)
"""Sums of figures are exact as long as they have no more than 60 digits."""

_SEPARATORS = (",", ";", "\t")
_NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,12})?|\.\d{1,12})(?:[eE][+-]?\d{1,2})?")
_DATE = re.compile(r"(\d{4})[-/](\d{2})[-/](\d{2})")
_NAMED = 5


@dataclass(slots=True)
class Tally:
    """What is known of one metric's values: enough for every aggregate, and it can be merged with the next day's.

    ``places`` is the largest number of decimals that a value was written with.
    """

    count: int = 0
    total: Decimal = Decimal(0)
    low: Decimal | None = None
    high: Decimal | None = None
    last: Decimal | None = None
    places: int = 0

    def add(self, value: Decimal) -> None:
        """Take one value in."""
        self.count += 1
        self.total = EXACT.add(self.total, value)
        self.low = value if self.low is None else min(self.low, value)
        self.high = value if self.high is None else max(self.high, value)
        self.last = value
        exponent = value.as_tuple().exponent
        self.places = max(self.places, -exponent if isinstance(exponent, int) else 0)

    def merge(self, later: "Tally") -> None:
        """Take in what was tallied of later days."""
        self.count += later.count
        self.total = EXACT.add(self.total, later.total)
        self.low = min((low for low in (self.low, later.low) if low is not None), default=None)
        self.high = max((high for high in (self.high, later.high) if high is not None), default=None)
        self.last = self.last if later.last is None else later.last
        self.places = max(self.places, later.places)


@dataclass(slots=True)
class Table:
    """The days that were asked for, and what could not be read.

    ``days`` holds, for each day that has a readable row, a tally for each metric by its name. ``rows`` counts those
    rows, ``newest`` is the latest date in the whole file. ``left_out`` names rows, in one line each, the first few of
    ``left_out_rows``; ``empty_cells`` counts, by metric, the rows that have no value for it.
    """

    days: dict[date, dict[str, Tally]] = field(default_factory=dict)
    rows: int = 0
    newest: date | None = None
    left_out: list[str] = field(default_factory=list)
    left_out_rows: int = 0
    empty_cells: dict[str, int] = field(default_factory=dict)

    def leave_out(self, row: int, why: str) -> None:
        """Note a row that cannot be read."""
        self.left_out_rows += 1
        if len(self.left_out) < _NAMED:
            self.left_out.append(f"row {row} ({why})")


def read_table(bucket: Bucket, source: TableSource, first: date, last: date, zone: ZoneInfo) -> Table:
    """Return what the table says about the days from ``first`` to ``last``, both included.

    The table is UTF-8 (with or without a byte order mark), its first row names the columns, and its separator is a
    comma, a semicolon or a tab. A date is written year first (``2026-11-20`` or ``2026/11/20``); an instant with an
    offset (``2026-11-20T23:30:00-05:00``) counts for its date in the zone; a time without an offset could mean any zone
    and is refused. Numbers have a decimal point and no thousands separators; an empty cell is no value. Rows are
    numbered as a spreadsheet shows them: the first one with the columns' names is row 1. Rows of other days are only
    looked at for their date.

    Raises:
        NeverSucceeds: ``missing_table``, ``table_too_large``, ``unreadable_table`` or ``missing_column``; one line that
            names the file and what to change.
    """
    rows = _rows(_load(bucket, source.key), source)
    columns = _columns(next(rows)[1], source)
    table = Table()
    width, date_at = columns.width, columns.date_at
    for number, cells in rows:
        if cells is None:
            table.leave_out(number, "its quotes do not match")
            continue
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) < width or any(cell.strip() for cell in cells[width:]):
            table.leave_out(number, f"it has {len(cells)} cells, the first row has {width}")
            continue
        day = _day(cells[date_at], zone)
        if day is None:
            table.leave_out(number, f"{source.date_column!r} is {_short(cells[date_at])}, not a date like 2026-11-20")
            continue
        table.newest = day if table.newest is None else max(table.newest, day)
        if first <= day <= last:
            _take(table, number, day, cells, columns.metrics)
    if table.left_out_rows and table.newest is None:
        raise NeverSucceeds("unreadable_table", f"{source.key}: no row can be read; {'; '.join(table.left_out)}")
    return table


@dataclass(frozen=True, slots=True)
class _Columns:
    width: int
    date_at: int
    metrics: tuple[tuple[Metric, int], ...]


def _load(bucket: Bucket, key: str) -> io.TextIOWrapper:
    try:
        body = bucket.get(key, max_bytes=MAX_BYTES)
    except ObjectMissing as error:
        raise NeverSucceeds("missing_table", f"{key}: there is no such file in the bucket; put it there") from error
    except ObjectUnreadable as error:
        raise NeverSucceeds("unreadable_table", str(error)) from error
    except ObjectTooLarge as error:
        raise NeverSucceeds(
            "table_too_large", f"{key}: has more than {MAX_BYTES:,} bytes; keep only the rows that reports still need"
        ) from error
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise NeverSucceeds("unreadable_table", f"{key}: is in UTF-16; save it as CSV in UTF-8")
    # A byte that is not UTF-8 spoils its own cell, not the table; where a number should be, the row is named.
    return io.TextIOWrapper(io.BytesIO(body), encoding="utf-8-sig", errors="replace", newline="")


def _rows(text: io.TextIOWrapper, source: TableSource) -> Iterator[tuple[int, list[str] | None]]:
    """Yield the number and the cells of each row; None for the cells of a row whose quotes do not match."""
    head = text.readline()
    if not head.strip():
        raise NeverSucceeds("unreadable_table", f"{source.key}: its first row is empty; it must name the columns")
    separator = _separator(head, source)
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
            if number == 1 or "unexpected end of data" in str(error) or "field limit" in str(error):
                raise NeverSucceeds(
                    "unreadable_table", f"{source.key}: row {number} opens a quote that is never closed; correct it"
                ) from error
            yield number, None


def _separator(head: str, source: TableSource) -> str:
    """Return the separator under which the first row names most of the wanted columns, and then has most cells."""
    wanted = {source.date_column, *(metric.column for metric in source.metrics)}

    def fitness(separator: str) -> tuple[int, int]:
        cells = next(csv.reader([head], delimiter=separator), [])
        return len(wanted & {cell.strip() for cell in cells}), len(cells)

    return max(_SEPARATORS, key=fitness)


def _columns(cells: Sequence[str] | None, source: TableSource) -> _Columns:
    names = [name.strip() for name in cells or ()]
    while names and not names[-1]:
        names.pop()

    def place(column: str, wanted_by: str) -> int:
        if names.count(column) != 1:
            problem = "more than one column" if column in names else "no column"
            raise NeverSucceeds(
                "missing_column",
                f"{source.key}: there is {problem} {column!r}, which {wanted_by} of source {source.id!r} needs;"
                f" the columns are {', '.join(_short(name) for name in names[:40])}",
            )
        return names.index(column)

    return _Columns(
        width=len(names),
        date_at=place(source.date_column, "date_column"),
        metrics=tuple((metric, place(metric.column, f"metric {metric.name!r}")) for metric in source.metrics),
    )


def _take(table: Table, number: int, day: date, cells: Sequence[str], metrics: Sequence[tuple[Metric, int]]) -> None:
    """Add a row to its day, all its metrics or none of them."""
    values: dict[str, Decimal] = {}
    empty: list[str] = []
    for metric, place in metrics:
        text = cells[place].strip()
        if metric.aggregate == "count":
            values |= {metric.name: Decimal(1)} if text else {}
        elif not text:
            empty.append(metric.name)
        elif _NUMBER.fullmatch(text):
            values[metric.name] = Decimal(text)
        else:
            table.leave_out(number, f"{metric.column!r} is {_short(text)}, not a number like 1234.5")
            return
    table.rows += 1
    tallies = table.days.setdefault(day, {metric.name: Tally() for metric, _ in metrics})
    for name, value in values.items():
        tallies[name].add(value)
    for name in empty:
        table.empty_cells[name] = table.empty_cells.get(name, 0) + 1


def _day(text: str, zone: ZoneInfo) -> date | None:
    text = text.strip()
    try:
        if written := _DATE.fullmatch(text):
            return date(int(written[1]), int(written[2]), int(written[3]))
        moment = datetime.fromisoformat(text.replace("/", "-", 2))
        return None if moment.tzinfo is None else moment.astimezone(zone).date()
    except (ValueError, OverflowError):
        return None


def _short(text: str) -> str:
    return clip(repr(text), 42)


def merged(days: Mapping[date, Mapping[str, Tally]], metric: str, first: date, last: date) -> Tally:
    """Return one tally of a metric over the days from ``first`` to ``last``, both included."""
    whole = Tally()
    for day in sorted(days):
        if first <= day <= last:
            whole.merge(days[day][metric])
    return whole
