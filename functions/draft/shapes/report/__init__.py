"""report: the figures of a window, compared with those before and a year ago. Code computes, the model words it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from drafter_file.report import TableSource
from galley.drafts import Item
from galley.store import Cursor
from galley.texts import counted, listed
from local_days import Days
from shapes.report.earlier import Late, Reported, as_it_is_now, changed_since, cursor_after, remembered
from shapes.report.figures import Periods, Result, Row, Value, compute, result
from shapes.report.rendering import Part, attachments, markdown, values
from shapes.shape import Assignment, Figure, Material, Window
from sources.table import MOST_GROUPS, Outside, Table, read_table
from spans import Period, Span, part_name, uneven, with_unit

_NAMED = 10


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


def period_of(source: TableSource, window: Window) -> Period | str:
    """Return what a table's part of the report is about; where no day ends within the window, a line that says so."""
    if source.window == "exact":
        return Span(window.start, window.end, window.zone, window.earlier_start)
    days = days_of(window)
    if days.count:
        return days
    line = f"{source.place}: no day ends in {window.zone.key} between the last slot and this one"
    if window.end - window.start < timedelta(days=1):
        line += f'; set window = "exact" in source {source.id!r} for reports about less than a day'
    return line


def collect(assignment: Assignment) -> Material:
    """Return the window's figures, compared with the time before and a year ago; one item for each metric.

    A table is read for the whole days that ended in the window, or for exactly the window, as its source says.
    Without a readable row in that time there is nothing new to say and no model is called: a report about no figures
    could only be invented. Rows, days and hours that are missing are named in the warnings, and so are an uneven
    comparison, and what has changed of what was reported already.
    A window says by itself what belongs to it; the cursor only remembers what was reported, or that there was nothing
    to report, to notice what came late. A table and a chart go with the draft.

    Raises:
        NeverSucceeds: for a table that is missing, too large, unreadable, or without a column that a metric needs.
        RetryLater: ``table_unavailable``, when a table's address does not answer.
    """
    window = assignment.window()
    sources = [source for source in assignment.drafter.sources if isinstance(source, TableSource)]
    looks = [_look(source, assignment, window) for source in sources]
    found = [look for look in looks if isinstance(look, _Found)]
    silent = tuple(look.why for look in looks if isinstance(look, _Silent))
    cursors = {source.id: look.cursor for source, look in zip(sources, looks, strict=True) if look.cursor is not None}
    if not found:
        return Material(nothing_new="; ".join(silent), cursors=cursors)
    parts = [look.part for look in found]
    about = " and ".join(dict.fromkeys(str(part.periods.now) for part in parts))
    attached, left_out = attachments(f"{assignment.drafter.title}, {about}", parts)
    results = [(part, one) for part in parts for one in part.results]
    return Material(
        items=tuple(_item(f"r{at}", part, one) for at, (part, one) in enumerate(results, start=1)),
        figures="\n\n".join(markdown(look.part, window.zone.key, _lines(look.late)) for look in found),
        values=tuple(figure for look in found for figure in (*values(look.part), *_numbers(look.late))),
        attachments=attached,
        warnings=(*(warning for look in found for warning in look.warnings), *left_out, *silent),
        cursors=cursors,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What a table with rows in the window gave."""

    part: Part
    late: tuple[Late, ...]
    warnings: tuple[str, ...]
    cursor: Cursor


@dataclass(frozen=True, slots=True)
class _Silent:
    """Why a table has nothing to say; where it has no row in the window, the cursor that remembers so."""

    why: str
    cursor: Cursor | None = None


def _look(source: TableSource, assignment: Assignment, window: Window) -> _Found | _Silent:
    """Read one table; return why it has nothing to say where it has no row in the window."""
    now = period_of(source, window)
    if isinstance(now, str):
        return _Silent(now)
    cursor = assignment.cursors().get(source.id)
    earlier = remembered(source, cursor, now)
    before, year_ago = now.before, now.year_ago
    compared = [now, before, *([] if year_ago == before else [year_ago])]
    outside = Outside(assignment.bucket, assignment.fetch)
    table = read_table(outside, source, compared, window.zone, also=[report.period for report in earlier])
    if not table.has_row(now):
        nothing = tuple(result(source, table, metric, Periods(now, None, None)) for metric in source.metrics)
        why = _why_silent(source, table, now, window)
        return _Silent(why, cursor_after(source, cursor, now, table, nothing, {}))
    periods = Periods(
        now=now,
        before=before if table.has_row(before) else None,
        year_ago=year_ago if year_ago != before and table.has_row(year_ago) else None,
    )
    results = tuple(result(source, table, metric, periods) for metric in source.metrics)
    part = Part(source, table, periods, results)
    again = _again(earlier, part)
    late = tuple(
        late
        for report in earlier
        if report.period in again
        and (late := changed_since(source.called, report, again[report.period], results)) is not None
    )
    return _Found(
        part=part,
        late=late,
        warnings=(*_warnings(part), *(one.line for one in late)),
        cursor=cursor_after(source, cursor, now, table, results, again),
    )


def _again(earlier: Sequence[Reported], part: Part) -> Mapping[Period, Reported]:
    """Return, for each earlier report whose rows the table still has, what it would say now."""
    again: dict[Period, Reported] = {}
    for report in earlier:
        tallies = part.table.tallies(report.period)
        figures = [(one, compute(part.source, one.metric, tallies)) for one in part.results]
        now = as_it_is_now(report, part.table, figures)
        if now is not None:
            again[report.period] = now
    return again


def _lines(late: Sequence[Late]) -> list[str]:
    return [one.line for one in late]


def _numbers(late: Sequence[Late]) -> Iterable[Figure]:
    return (figure for one in late for figure in one.values)


def _item(item_id: str, part: Part, one: Result) -> Item:
    metric, row, periods = one.metric, one.total, part.periods
    text = (
        f"{metric.name} ({metric.how}), {periods.now}: {one.shown(row.now)};"
        f" {_before(periods.now)}, {periods.before or periods.now.before}: {one.shown(row.before or Value(None))};"
        f" change: {one.change(row.now, row.before)}."
    )
    if periods.year_ago is not None:
        text += _year_ago(one, row, periods.year_ago)
    return Item(id=item_id, title=metric.name, text=text, source=part.source.called)


def _before(now: Period) -> str:
    return "the time before" if isinstance(now, Span) else "the days before"


def _year_ago(one: Result, row: Row, then: Period) -> str:
    shown = one.shown(row.year_ago or Value(None))
    return f" A year ago, {then}: {shown}; change: {one.change(row.now, row.year_ago)}."


def _warnings(part: Part) -> Iterable[str]:
    source, table = part.source, part.table
    if table.left_out_rows:
        yield _rows_left_out(source, table)
    for name, count in table.empty_cells.items():
        yield f"{source.place}: {name!r} has no value in {count} of {part.rows} rows, they are not counted"
    for one in part.results:
        if one.metric.aggregate == "ratio" and one.total.now.amount is None:
            yield f"{source.place}: {one.metric.name!r} has {one.total.now.why}"
    for column in sorted(table.crowded):
        yield f"{source.place}: {column!r} has more than {MOST_GROUPS:,} values; the further ones are among the others"
    yield from _missing(part)


def _missing(part: Part) -> Iterable[str]:
    """Say which days or hours have no row; where it is the last ones, the window is not over yet for this table."""
    source, table, periods = part.source, part.table, part.periods
    now = periods.now
    missing = _without_row(part, now)
    if missing:
        line = f"{source.place}: no row for {_named(part, missing)}, {_of(missing, now, source)} of the report"
        if missing[-1] == now.whole(source.rows_every)[-1] and not _reaches(table, missing[-1]):
            line += f"; the window is partial, the newest row is of {_newest(table, now)}"
        yield line
    if periods.before is None:
        yield f"{source.place}: there are no rows for {_before(now)}, {now.before}, so nothing is compared"
    for then, which in ((periods.before, "before"), (periods.year_ago, "a year ago")):
        if then is not None and (absent := _without_row(part, then)):
            yield (
                f"{source.place}: the comparison is uneven, no row for {_named(part, absent)},"
                f" {_of(absent, then, source)} {which}"
            )
        if then is not None and isinstance(now, Span) and not now.months and (lengths := uneven(now, then)):
            ours, theirs, unit = lengths
            yield f"{source.place}: the comparison is uneven, {with_unit(ours, unit)} with {theirs:,} {which}"


def _reaches(table: Table, part: Period) -> bool:
    """Tell whether the table has rows as late as a part of the window, or later."""
    if table.newest is None:
        return False
    if isinstance(part, Span):
        return isinstance(table.newest, datetime) and table.newest > part.start
    return table.newest >= part.first


def _newest(table: Table, now: Period) -> str:
    return "" if table.newest is None else now.tell(table.newest)


def _without_row(part: Part, period: Period) -> list[Period]:
    return [each for each in period.whole(part.source.rows_every) if not part.table.has_row(each)]


def _named(part: Part, missing: Sequence[Period]) -> str:
    every = part.source.rows_every
    names = [
        str(period) if every == "day" and isinstance(period, Days) else part_name(period, every) for period in missing
    ]
    if not isinstance(missing[0], Span):
        return listed(names, _NAMED)
    return f"the {every if len(missing) == 1 else f'{every}s'} up to {listed(names, _NAMED)}"


def _of(missing: Sequence[Period], period: Period, source: TableSource) -> str:
    due = len(period.whole(source.rows_every))
    return f"{len(missing)} of the {counted(due, source.rows_every, f'{source.rows_every}s')}"


def _rows_left_out(source: TableSource, table: Table) -> str:
    more = table.left_out_rows - len(table.left_out)
    named = "; ".join(table.left_out) + (f"; and {more} more" if more else "")
    return f"{source.place}: {counted(table.left_out_rows, 'row is', 'rows are')} left out: {named}"


def _why_silent(source: TableSource, table: Table, now: Period, window: Window) -> str:
    newest = f"its newest row is of {_newest(table, now)}" if table.newest else "it has no rows"
    left_out = f"; {_rows_left_out(source, table)}" if table.left_out_rows else ""
    return f"{source.place} has no row for {now} ({window.zone.key}); {newest}{left_out}"
