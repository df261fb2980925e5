"""A report's figures as people and programs read them: Markdown, a CSV table, a chart, and the exact numbers. Pure."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from drafter_file.report import TableSource
from galley.drafts import Attachment
from galley.texts import one_line
from inert import inert_line
from local_days import Every
from shapes.report.chart import MOST_BARS, MOST_PANELS, Bar, Panel, draw
from shapes.report.figures import NOTHING, Periods, Result, Row, Value, percent_change, plain_number
from shapes.shape import Figure
from sources.table import Table
from sources.tallies import EXACT
from spans import Period, Span, part_name, parts_of, side_by_side, step_of, uneven, with_unit

MOST_SHOWN = 14
"""Up to so many days (weeks, months, years) are also shown one by one."""
MOST_HOURS_SHOWN = 25
"""Up to so many hours are: those of the longest day."""
TABLE_NAME, CHART_NAME = "figures.csv", "chart.svg"
MOST_TABLE_BYTES, MOST_CHART_BYTES = 24_000, 20_000

_HEAD = ("Table", "Figure", "Group", "Unit", "From", "To", "Value", "Before", "Change", "Change %", "Year ago")
_LIVE = ("=", "+", "-", "@", "\t", "\r")
_EACH = {"hour": "Hour", "day": "Day", "week": "Week", "month": "Month", "year": "Year", "any": ""}


@dataclass(frozen=True, slots=True)
class Part:
    """What one table gave."""

    source: TableSource
    table: Table
    periods: Periods
    results: tuple[Result, ...]

    @property
    def rows(self) -> int:
        """How many rows the periods have together."""
        return self.table.rows(*self.periods.compared)

    @property
    def every(self) -> Every:
        """What its parts are: of whole days, what the table has its rows for; of an exact time, hours or days."""
        return step_of(self.periods.now, self.source.rows_every)

    @property
    def each(self) -> Sequence[Period]:
        """The parts of the report's period; none where it is one."""
        each = parts_of(self.periods.now, self.source.rows_every)
        return each if len(each) > 1 else ()


def markdown(part: Part, zone: str, changed: Sequence[str]) -> str:
    """Return the figures of one table; ``changed`` are lines on what was reported before."""
    blocks = [_about(part, zone), _overview(part)]
    blocks += [_grouped(part, result) for result in part.results if result.groups]
    if _is_shown_one_by_one(part):
        blocks.append(_one_by_one(part))
    if changed:
        blocks.append("Changed since it was reported:\n\n" + "\n".join(f"- {_cell(line)}" for line in changed))
    return "\n\n".join(blocks)


def values(part: Part) -> Iterator[Figure]:
    """Yield every number that the Markdown shows, exact, and the differences in both directions."""
    periods = part.periods
    yield Figure(Decimal(part.rows), "", "rows read")
    yield from _lengths(periods)
    for result in part.results:
        for row in (result.total, *result.groups):
            name = result.metric.name if row is result.total else f"{result.metric.name}, {row.label}"
            yield from _values_of_row(name, result, row, periods)
        for period, value in result.each.items() if _is_shown_one_by_one(part) else ():
            if value.amount is not None:
                label = f"{result.metric.name}, {_label(part, period)}"
                yield Figure(value.amount, result.unit, label)


def _lengths(periods: Periods) -> Iterator[Figure]:
    """Yield how long the report's period is, and how long both are of two that differ."""
    now = periods.now
    if not isinstance(now, Span):
        yield Figure(Decimal(now.count), "", f"days, {now}")
        return
    yield Figure(EXACT.divide(Decimal(int(now.elapsed.total_seconds())), Decimal(3600)), "", f"hours, {now}")
    for then in (periods.before, periods.year_ago):
        if then is not None and (lengths := uneven(now, then)):
            ours, theirs, unit = lengths
            yield Figure(Decimal(ours), "", f"{unit}s, {now}")
            yield Figure(Decimal(theirs), "", f"{unit}s, {then}")


def _label(part: Part, period: Period) -> str:
    """Return how a part is called away from the others; an exact one by what it ends with."""
    name = part_name(period, part.every)
    return f"{part.every} up to {name}" if isinstance(period, Span) else name


def attachments(title: str, parts: Sequence[Part]) -> tuple[tuple[Attachment, ...], tuple[str, ...]]:
    """Return the table and the chart that go with the draft, and a warning where the table does not hold all."""
    table, left_out = _csv(parts)
    warnings = (f"{TABLE_NAME} is full, {left_out} of its lines are left out",) if left_out else ()
    return (
        Attachment(TABLE_NAME, "text/csv", table),
        Attachment(CHART_NAME, "image/svg+xml", _chart(title, parts)),
    ), warnings


def _about(part: Part, zone: str) -> str:
    now, before, year_ago = part.periods.now, part.periods.before, part.periods.year_ago
    exact = isinstance(now, Span)
    none = f"no rows of the {'time' if exact else 'days'} before to compare with"
    compared = none if before is None else f"compared with {before}{_uneven(now, before)}"
    ago = ""
    if year_ago is not None:
        ago = f" and with {year_ago}{_uneven(now, year_ago) if exact else ''}"
    rows = f"{part.rows} rows of {'these times' if exact else 'these days'} were read."
    return f"`{_code(part.source.called)}`, {now} ({zone}), {compared}{ago}; {rows}"


def _uneven(now: Period, then: Period) -> str:
    lengths = uneven(now, then)
    if lengths is None:
        return ""
    ours, theirs, unit = lengths
    return f", {with_unit(ours, unit)} with {theirs:,}"


def _overview(part: Part) -> str:
    rows = ((result, (_cell(result.metric.name), _cell(result.metric.how)), result.total) for result in part.results)
    return _compared(("Figure", "Computed as"), rows, part.periods)


def _grouped(part: Part, result: Result) -> str:
    head = f"{_cell(result.metric.name)} by {_cell(result.metric.group_by or '')}"
    return _compared((head,), ((result, (_cell(row.label),), row) for row in result.groups), part.periods)


def _compared(head: Sequence[str], rows: Iterable[tuple[Result, Sequence[str], Row]], periods: Periods) -> str:
    earlier = periods.before or periods.now.before
    heads, marks = [*head, str(periods.now), str(earlier), "Change"], [*("---" for _ in head), "---:", "---:", "---"]
    if periods.year_ago is not None:
        heads, marks = [*heads, str(periods.year_ago), "Change in a year"], [*marks, "---:", "---"]
    lines: list[Sequence[str]] = [heads, marks]
    for result, names, row in rows:
        before = row.before or Value(None)
        line = [*names, result.shown(row.now), result.shown(before), result.change(row.now, row.before)]
        if periods.year_ago is not None:
            line += [result.shown(row.year_ago or Value(None)), result.change(row.now, row.year_ago)]
        lines.append([*line[: len(names)], *map(_cell, line[len(names) :])])
    return _table(lines)


def _is_shown_one_by_one(part: Part) -> bool:
    return 1 < len(part.each) <= (MOST_HOURS_SHOWN if part.every == "hour" else MOST_SHOWN)


def _one_by_one(part: Part) -> str:
    head = f"{_EACH[part.every]}{' up to' if isinstance(part.periods.now, Span) else ''}"
    lines: list[Sequence[str]] = [
        (head, *(_cell(result.metric.name) for result in part.results)),
        ("---", *("---:" for _ in part.results)),
    ]
    for period in part.each:
        cells = (result.shown(result.each[period]) if period in result.each else "no row" for result in part.results)
        lines.append((part_name(period, part.every), *map(_cell, cells)))
    return _table(lines)


def _table(lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """Return a text for a cell of a table: values of a column may stand in it, and anyone may have written those."""
    return inert_line(text, 300).markdown.replace("|", "\\|")


def _code(text: str) -> str:
    return one_line(text.replace("`", "'"))


def _values_of_row(name: str, result: Result, row: Row, periods: Periods) -> Iterator[Figure]:
    for value, days in ((row.now, periods.now), (row.before, periods.before), (row.year_ago, periods.year_ago)):
        if value is not None and value.amount is not None:
            yield Figure(value.amount, result.unit, f"{name}, {days}")
    for then, days in ((row.before, periods.before), (row.year_ago, periods.year_ago)):
        if row.now.amount is None or then is None or then.amount is None:
            continue
        difference = EXACT.subtract(row.now.amount, then.amount)
        label = f"{name}, change since {days}"
        yield Figure(difference, "percentage points" if result.unit == "%" else result.unit, label)
        percent = percent_change(row.now.amount, then.amount)
        if percent is not None and result.unit != "%":
            yield Figure(percent, "%", label)


def _csv(parts: Sequence[Part]) -> tuple[str, int]:
    """Return the table for programs, and how many of its lines did not fit."""
    kept, size, left_out = [_csv_line(_HEAD)], 0, 0
    for line in (_csv_line(cells) for part in parts for cells in _lines(part)):
        size += len(line.encode())
        if size > MOST_TABLE_BYTES:
            left_out += 1
        else:
            kept.append(line)
    return "".join(kept), left_out


def _csv_line(cells: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _lines(part: Part) -> Iterator[Sequence[str]]:
    bounds = part.periods.now.bounds
    for result in part.results:
        about = (_inactive(part.source.called), _inactive(result.metric.name))
        for row in (result.total, *result.groups):
            group = "" if row is result.total else _inactive(row.label)
            yield *about, group, result.unit, *bounds, *_numbers(result, row)
        for period in part.each:
            if period in result.each:
                cell = _plain(result, result.each[period])
                yield *about, "", result.unit, *period.bounds, cell, "", "", "", ""


def _numbers(result: Result, row: Row) -> tuple[str, ...]:
    now, before = row.now.amount, None if row.before is None else row.before.amount
    difference = None if now is None or before is None else EXACT.subtract(now, before)
    percent = None if now is None or before is None else percent_change(now, before)
    return (
        _plain(result, row.now),
        _plain(result, row.before),
        _plain(result, Value(difference)),
        plain_number(percent, 1) if percent is not None and result.unit != "%" else "",
        _plain(result, row.year_ago),
    )


def _plain(result: Result, value: Value | None) -> str:
    return "" if value is None or value.amount is None else plain_number(value.amount, result.places)


def _inactive(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula (https://owasp.org/www-community/attacks/CSV_Injection)."""
    line = one_line(text)
    return f"'{line}" if line.startswith(_LIVE) else line


def _chart(title: str, parts: Sequence[Part]) -> str:
    """Return the chart of as many figures as fit into it."""
    panels = [_panel(part, result) for part in parts for result in part.results]
    for shown in range(MOST_PANELS, 1, -1):
        chart = draw(title, panels, shown)
        if len(chart.encode()) <= MOST_CHART_BYTES:
            return chart
    return draw(title, panels, 1)


def _panel(part: Part, result: Result) -> Panel:
    total, periods = result.total, part.periods
    summary = f"{result.shown(total.now)}, before {NOTHING if total.before is None else result.shown(total.before)}"
    if part.each:
        bars = [
            Bar(part_name(period, part.every), _at(result.each, period), _at(result.each_before, before))
            for period, before in side_by_side(periods.now, periods.before, part.source.rows_every)[:MOST_BARS]
        ]
    else:
        bars = [Bar(str(periods.now), total.now.amount, None if total.before is None else total.before.amount)]
        if periods.year_ago is not None:
            amount = None if total.year_ago is None else total.year_ago.amount
            bars.insert(0, Bar(f"a year ago, {periods.year_ago.bounds[0][:10]}", None, amount))
    return Panel(result.metric.name, summary, tuple(bars))


def _at(each: Mapping[Period, Value], period: Period | None) -> Decimal | None:
    return None if period is None or period not in each else each[period].amount
