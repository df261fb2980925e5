"""report: the figures of a window, compared with those of the days before. Code computes; the model only words it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import assert_never

from drafter_file.report import Metric, TableSource
from galley.drafts import Item
from galley.texts import listed
from shapes.shape import Assignment, Material, Window
from sources.table import EXACT, Table, Tally, merged, read_table

MOST_DAYS_SHOWN = 14
"""Up to so many days are also shown one by one."""

_ROUNDED = Context(prec=120, rounding=ROUND_HALF_UP)
_NAMED = 10


@dataclass(frozen=True, slots=True)
class Days:
    """Whole local days, ``first`` and ``last`` included; none when ``last`` is before ``first``."""

    first: date
    last: date

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"

    @property
    def count(self) -> int:
        """How many days they are."""
        return max(0, (self.last - self.first).days + 1)

    @property
    def before(self) -> "Days":
        """As many days, directly before these."""
        return Days(self.first - timedelta(days=self.count), self.first - timedelta(days=1))

    def each(self) -> tuple[date, ...]:
        """Return every day, in order."""
        return tuple(self.first + timedelta(days=past) for past in range(self.count))


def days_of(window: Window) -> Days:
    """Return the local days that end within the window: later than its start, at the latest at its end.

    A day ends at the midnight after it, in the window's zone. So a report due on Monday at 08:00 is about the seven
    days from Monday to Sunday before, whatever hour it is due at and however long its days are when clocks change; each
    day is in exactly one of the windows that follow each other.
    """
    return Days(
        window.start.astimezone(window.zone).date(),
        window.end.astimezone(window.zone).date() - timedelta(days=1),
    )


def collect(assignment: Assignment) -> Material:
    """Return the window's figures, each compared with as many days directly before; one item for each metric.

    Without a readable row in the window there is nothing new to say and no model is called: a report about no figures
    could only be invented. Rows and days that are missing are named in the warnings, and so is an uneven comparison.
    There is no cursor: a window says by itself what belongs to it.

    Raises:
        NeverSucceeds: for a table that is missing, too large, not CSV, or without a column that a metric needs.
    """
    window = assignment.window()
    days = days_of(window)
    if not days.count:
        return Material(nothing_new=f"no day ends in {window.zone.key} between the last slot and this one")
    items: list[Item] = []
    figures: list[str] = []
    warnings: list[str] = []
    silent: list[str] = []
    for source in assignment.drafter.sources:
        if not isinstance(source, TableSource):
            continue
        table = read_table(assignment.bucket, source, days.before.first, days.last, window.zone)
        if not any(day in table.days for day in days.each()):
            silent.append(_why_silent(source, table, days, window))
            continue
        results = [_result(table, metric, days) for metric in source.metrics]
        items += [_item(f"r{len(items) + at}", source, result, days) for at, result in enumerate(results, start=1)]
        figures.append(_section(source, table, results, days, window))
        warnings += _warnings(source, table, days)
    if not items:
        return Material(nothing_new="; ".join(silent))
    return Material(items=tuple(items), figures="\n\n".join(figures), warnings=(*warnings, *silent))


@dataclass(frozen=True, slots=True)
class _Result:
    """One metric: its value in the window and in the days before, where there is one, and what became of it."""

    metric: Metric
    now: Decimal | None
    before: Decimal | None
    places: int
    change: str

    def shown(self, value: Decimal | None) -> str:
        return "no value" if value is None else _number(value, self.places)


def _result(table: Table, metric: Metric, days: Days) -> _Result:
    tally = merged(table.days, metric.name, days.first, days.last)
    earlier = merged(table.days, metric.name, days.before.first, days.before.last)
    known_before = any(day in table.days for day in days.before.each())
    places = _places(metric, max(tally.places, earlier.places))
    now = aggregate(tally, metric)
    before = aggregate(earlier, metric) if known_before else None
    return _Result(metric, now, before, places, change(now, before, places))


def aggregate(tally: Tally, metric: Metric) -> Decimal | None:
    """Return a metric's value; None when there are no values to put together, except that a count is then 0."""
    if metric.aggregate == "count":
        return Decimal(tally.count)
    if not tally.count:
        return None
    match metric.aggregate:
        case "sum":
            return tally.total
        case "mean":
            return EXACT.divide(tally.total, Decimal(tally.count))
        case "min":
            return tally.low
        case "max":
            return tally.high
        case "last":
            return tally.last
    assert_never(metric.aggregate)


def change(now: Decimal | None, before: Decimal | None, places: int) -> str:
    """Return what became of a figure, in words; a percentage only where there is one."""
    if now is None:
        return "not comparable, there is no value"
    if before is None:
        return "not comparable, the days before have no value"
    difference = EXACT.subtract(now, before)
    if not difference:
        return "unchanged"
    way = "up" if difference > 0 else "down"
    amount = f"{way} {_number(abs(difference), places)}"
    if not before:
        return f"{amount} from 0, so there is no percentage"
    percent = EXACT.divide(EXACT.multiply(difference, Decimal(100)), abs(before))
    return f"{amount} ({'+' if percent > 0 else '-'}{_number(abs(percent), 1)}%)"


def _places(metric: Metric, written: int) -> int:
    """Return with how many decimals a metric is shown: as many as its values have, a mean at least two."""
    match metric.aggregate:
        case "count":
            return 0
        case "mean":
            return max(2, written)
        case "sum" | "min" | "max" | "last":
            return written
    assert_never(metric.aggregate)


def _number(value: Decimal, places: int) -> str:
    return f"{_ROUNDED.quantize(value, Decimal(1).scaleb(-places)):,f}"


def _item(item_id: str, source: TableSource, result: _Result, days: Days) -> Item:
    metric = result.metric
    how = f"{metric.aggregate} of {metric.column}"
    text = (
        f"{metric.name} ({how}), {days}: {result.shown(result.now)};"
        f" the days before, {days.before}: {result.shown(result.before)}; change: {result.change}."
    )
    return Item(id=item_id, title=metric.name, text=text, source=source.key)


def _section(source: TableSource, table: Table, results: Sequence[_Result], days: Days, window: Window) -> str:
    about = (
        f"`{_code(source.key)}`, {days} ({window.zone.key}), compared with {days.before};"
        f" {table.rows} rows of these days were read."
    )
    overview = _table(
        ("Figure", "Computed as", str(days), str(days.before), "Change"),
        ("---", "---", "---:", "---:", "---"),
        (
            (
                result.metric.name,
                f"{result.metric.aggregate} of {result.metric.column}",
                result.shown(result.now),
                result.shown(result.before),
                result.change,
            )
            for result in results
        ),
    )
    if not 1 < days.count <= MOST_DAYS_SHOWN:
        return f"{about}\n\n{overview}"
    each = _table(
        ("Day", *(result.metric.name for result in results)),
        ("---", *("---:" for _ in results)),
        ((f"{day:%a} {day}", *(_on(table, day, result) for result in results)) for day in days.each()),
    )
    return f"{about}\n\n{overview}\n\n{each}"


def _on(table: Table, day: date, result: _Result) -> str:
    if day not in table.days:
        return "no row"
    return result.shown(aggregate(table.days[day][result.metric.name], result.metric))


def _table(head: Sequence[str], alignment: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(_cell(text) for text in line)} |" for line in (head, alignment, *rows))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")


def _code(text: str) -> str:
    return " ".join(text.replace("`", "'").split())


def _warnings(source: TableSource, table: Table, days: Days) -> Iterable[str]:
    if table.left_out_rows:
        yield _rows_left_out(source, table)
    for name, count in table.empty_cells.items():
        yield f"{source.key}: {name!r} has no value in {count} of {table.rows} rows, they are not counted"
    if missing := [day for day in days.each() if day not in table.days]:
        named = listed(missing, _NAMED)
        yield f"{source.key}: no row for {named}, {len(missing)} of the {days.count} days of the report"
    missing_before = [day for day in days.before.each() if day not in table.days]
    if len(missing_before) == days.count:
        yield f"{source.key}: there are no rows for the days before, {days.before}, so nothing is compared"
    elif missing_before:
        yield (
            f"{source.key}: the comparison is uneven, no row for {listed(missing_before, _NAMED)},"
            f" {len(missing_before)} of the {days.count} days before"
        )


def _rows_left_out(source: TableSource, table: Table) -> str:
    more = table.left_out_rows - len(table.left_out)
    named = "; ".join(table.left_out) + (f"; and {more} more" if more else "")
    rows = "1 row is" if table.left_out_rows == 1 else f"{table.left_out_rows} rows are"
    return f"{source.key}: {rows} left out: {named}"


def _why_silent(source: TableSource, table: Table, days: Days, window: Window) -> str:
    newest = f"its newest row is of {table.newest}" if table.newest else "it has no rows"
    left_out = f"; {_rows_left_out(source, table)}" if table.left_out_rows else ""
    return f"{source.key} has no row for {days} ({window.zone.key}); {newest}{left_out}"
