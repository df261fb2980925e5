"""A table of figures, in the bucket or at an address, reduced to what a report needs of it: tallies.

A table may be large; what is kept of it is one tally for each day and metric, and one for each group of each period.
Where a report is about an exact time, the place of a day is taken by a cell: the time between two instants at which a
period or a part of one begins or ends. A cell is known by its end, and belongs to it.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from drafter_file.report import Metric, TableSource
from galley.bucket import Bucket, ObjectMissing, ObjectTooLarge, ObjectUnreadable
from galley.instants import utc_now
from galley.retry import NeverSucceeds, RetryLater
from galley.schedule import zone as zone_named
from retry_after import retry_after
from sources.clean import clean_line
from sources.fetch import Fetch, FetchError, FetchLimits, is_public
from sources.table_rows import Record, records, shortened
from sources.tallies import WITHOUT_INSTANT, At, Tallies, Tally, put_together
from spans import Period, Span

MAX_BYTES = 50_000_000
MOST_GROUPS = 1_000
"""So many values of a column are told apart; a column with more of them is no column to group by."""
NO_GROUP = "(none)"
FURTHER = ""
"""Stands for all values of a column beyond those that are told apart."""

_FETCH_SECONDS = 60.0
_ACCEPT = {"Accept": "text/csv, application/x-ndjson, application/jsonl, text/plain;q=0.5, */*;q=0.1"}
_NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,12})?|\.\d{1,12})(?:[eE][+-]?\d{1,2})?")
_DATE = re.compile(r"(\d{4})[-/](\d{2})[-/](\d{2})")
_NAMED = 5
_GROUP_CHARS = 60


@dataclass(slots=True)
class Table:
    """What the days that were asked for hold, and what could not be read.

    ``days`` holds, for each day (or cell) that has a readable row, its tallies, and ``rows_on`` how many rows it has,
    ``begun`` when the first of them is of. ``groups`` holds the tallies for each column to group by, each of the
    periods, and each value. ``oldest`` and ``newest`` are the first and the last date, or instant for exact periods, in
    the whole table. ``left_out`` names rows, in one line each, the first few of ``left_out_rows``; ``empty_cells``
    counts, by metric, the rows that have no value for it. ``crowded`` names columns that have more values than are told
    apart.
    """

    days: dict[date, Tallies] = field(default_factory=dict)
    rows_on: Counter[date] = field(default_factory=Counter)
    begun: dict[date, date] = field(default_factory=dict)
    groups: dict[str, dict[Period, dict[str, Tallies]]] = field(default_factory=dict)
    oldest: date | None = None
    newest: date | None = None
    left_out: list[str] = field(default_factory=list)
    left_out_rows: int = 0
    empty_cells: Counter[str] = field(default_factory=Counter)
    crowded: set[str] = field(default_factory=set)
    _in_order: list[date] = field(default_factory=list)

    def leave_out(self, row: int, why: str) -> None:
        """Note a row that cannot be read."""
        self.left_out_rows += 1
        if len(self.left_out) < _NAMED:
            self.left_out.append(f"row {row} ({why})")

    def rows(self, *periods: Period) -> int:
        """Return how many rows the periods have together."""
        return sum(self.rows_on[day] for day in {day for period in periods for day in self._within(period)})

    def has_row(self, period: Period) -> bool:
        """Tell whether there is a row within the period."""
        return bool(self._within(period))

    def oldest_in(self, period: Period) -> date | None:
        """Return when the first row within the period is of."""
        within = self._within(period)
        return self.begun[within[0]] if within else None

    def tallies(self, period: Period) -> Tallies:
        """Return the tallies of the period put together."""
        return put_together(self.days[day] for day in self._within(period))

    def _within(self, period: Period) -> Sequence[date]:
        if len(self._in_order) != len(self.rows_on):
            self._in_order = sorted(self.rows_on)
        return period.within(self._in_order)

    def groups_in(self, column: str, period: Period) -> Mapping[str, Tallies]:
        """Return the tallies for each value of a column, in one of the periods that the table was read for."""
        return self.groups.get(column, {}).get(period, {})


@dataclass(frozen=True, slots=True)
class Outside:
    """Where a table can be: the sources bucket, and addresses."""

    bucket: Bucket
    fetch: Fetch


def read_table(
    outside: Outside, source: TableSource, periods: Sequence[Period], zone: ZoneInfo, *, also: Sequence[Period] = ()
) -> Table:
    """Return what the table says about the periods, all whole days in the zone or, as the source says, all exact times.

    It is UTF-8, with or without a byte order mark. In CSV the first row names the columns, and the separator is a
    comma, a semicolon or a tab; in JSON lines each line is an object, and a column that it lacks is an empty cell. A
    date is written year first (``2026-11-20`` or ``2026/11/20``), or as the source's ``date_format`` says, and is taken
    as it stands; an instant with an offset (``2026-11-20T23:30:00-05:00``) counts for its date in the zone; a time
    without one is read in the source's ``date_zone`` (where clocks go back, as the first of the two; a time that clocks
    skip, as if they had not) and is refused where there is none, since it could mean any zone. Numbers have a decimal
    point and no thousands separators; an empty cell is no value. Rows are numbered as a spreadsheet or an editor shows
    them, the first line is 1. Rows of other days are only looked at for their date. Periods of ``also`` are tallied
    as well; what is wrong with their rows is not told, and they have no groups. For exact times, a row without a time
    of day is left out, and one that bears the beginning of its hour or day counts at its end.

    Raises:
        NeverSucceeds: ``missing_table``, ``table_too_large``, ``unreadable_table``, ``missing_column`` or
            ``invalid_address``; one line that names the table and what to change.
        RetryLater: ``table_unavailable``, when its address does not answer.
    """
    reading = _Reading(source, periods, zone, also)
    for number, record in records(source, _load(outside, source), reading.columns):
        reading.take(number, record)
    table = reading.table
    if table.left_out_rows and table.newest is None:
        raise NeverSucceeds("unreadable_table", f"{source.place}: no row can be read; {'; '.join(table.left_out)}")
    return table


class _Reading:
    """Puts rows into a table, each into its day and its groups, all its metrics or none of them."""

    def __init__(self, source: TableSource, periods: Sequence[Period], zone: ZoneInfo, also: Sequence[Period]) -> None:
        self.table = Table()
        self.source = source
        self.periods = periods
        self.cuts = sorted({cut for period in (*periods, *also) for cut in _cuts(period, source)})
        self.wanted = {day for period in periods for day in _days(period, self.cuts)}
        self.also = {day for period in also for day in _days(period, self.cuts)} - self.wanted
        self.plain = [metric for metric in source.metrics if metric.aggregate != "ratio"]
        self.grouped = _grouped(source)
        names = [source.date_column, *(metric.column or "" for metric in self.plain), *self.grouped]
        self.columns = {name: _user(name, source) for name in dict.fromkeys(names)}
        self.place = {name: place for place, name in enumerate(self.columns)}
        self.at = _date_reader(source, zone)
        self.seen: dict[str, set[str]] = {column: set() for column in self.grouped}

    def take(self, number: int, record: Record) -> None:
        table = self.table
        if isinstance(record, str):
            table.leave_out(number, record)
            return
        at = self.at(record[0].strip())
        if at is None:
            name, text = self.source.date_column, shortened(record[0])
            table.leave_out(number, f"{name!r} is {text}, not a date like {_example(self.source)}")
            return
        of: date = at[0] if self.source.window == "days" else at[1]
        if of is WITHOUT_INSTANT:
            name, text = self.source.date_column, shortened(record[0])
            table.leave_out(number, f'{name!r} is {text}, without the time of day that window = "exact" needs')
            return
        table.oldest = of if table.oldest is None else min(table.oldest, of)
        table.newest = of if table.newest is None else max(table.newest, of)
        day = self._day(of)
        if day is None or (day not in self.wanted and day not in self.also):
            return
        values = self._values(number, record, told=day in self.wanted)
        if values is None:
            return
        table.rows_on[day] += 1
        table.begun[day] = min(of, table.begun.get(day, of))
        _add(table.days.setdefault(day, {}), values, self.plain, at)
        if day in self.wanted:
            self._group(record, values, at, day)

    def _day(self, of: date) -> date | None:
        """Return the day itself, or the end of the cell in which an instant lies; None beyond the last one."""
        if not isinstance(of, datetime):
            return of
        place = bisect_left(self.cuts, of)
        return self.cuts[place] if place < len(self.cuts) else None

    def _values(self, number: int, record: Sequence[str], *, told: bool) -> dict[str, Decimal] | None:
        values: dict[str, Decimal] = {}
        empty: list[str] = []
        for metric in self.plain:
            text = record[self.place[metric.column or ""]].strip()
            if metric.aggregate == "count":
                values |= {metric.name: Decimal(1)} if text else {}
            elif not text:
                empty.append(metric.name)
            elif _NUMBER.fullmatch(text):
                values[metric.name] = Decimal(text)
            else:
                if told:
                    self.table.leave_out(number, f"{metric.column!r} is {shortened(text)}, not a number like 1234.5")
                return None
        if told:
            self.table.empty_cells.update(empty)
        return values

    def _group(self, record: Sequence[str], values: Mapping[str, Decimal], at: At, day: date) -> None:
        for column, metrics in self.grouped.items():
            group = clean_line(record[self.place[column]], _GROUP_CHARS) or NO_GROUP
            seen = self.seen[column]
            if group not in seen and len(seen) >= MOST_GROUPS:
                self.table.crowded.add(column)
                group = FURTHER
            else:
                seen.add(group)
            of_column = self.table.groups.setdefault(column, {})
            for period in self.periods:
                if day in period:
                    _add(of_column.setdefault(period, {}).setdefault(group, {}), values, metrics, at)


def _cuts(period: Period, source: TableSource) -> Iterator[datetime]:
    """Yield the instants at which an exact period begins and ends, and so do its parts."""
    if isinstance(period, Span):
        yield period.start
        for part in (*period.parts(period.step(source.rows_every)), *period.whole(source.rows_every)):
            yield part.end


def _days(period: Period, cuts: Sequence[datetime]) -> Sequence[date]:
    return period.within(cuts) if isinstance(period, Span) else period.each()


def _add(tallies: Tallies, values: Mapping[str, Decimal], metrics: Sequence[Metric], at: At) -> None:
    for metric in metrics:
        tally = tallies.setdefault(metric.name, Tally())
        if metric.name in values:
            tally.add(values[metric.name], at)


def _grouped(source: TableSource) -> dict[str, list[Metric]]:
    """Return, for each column to group by, the metrics that are tallied for its values."""
    grouped: dict[str, dict[str, Metric]] = {}
    for metric in source.metrics:
        if metric.group_by is not None:
            parts = (metric.numerator, metric.denominator) if metric.aggregate == "ratio" else (metric.name,)
            names = grouped.setdefault(metric.group_by, {})
            names |= {name: source.metric(name) for name in parts if name is not None}
    return {column: list(metrics.values()) for column, metrics in grouped.items()}


def _user(column: str, source: TableSource) -> str:
    """Return who needs a column, to be named where it is missing."""
    if column == source.date_column:
        return "date_column"
    for metric in source.metrics:
        if metric.column == column:
            return f"metric {metric.name!r}"
    return "group_by"


def _load(outside: Outside, source: TableSource) -> bytes:
    body = _fetched(outside.fetch, source.url, source) if source.url else _stored(outside.bucket, source.place)
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise NeverSucceeds("unreadable_table", f"{source.place}: is in UTF-16; save it as CSV in UTF-8")
    return body


def _stored(bucket: Bucket, key: str) -> bytes:
    try:
        return bucket.get(key, max_bytes=MAX_BYTES)
    except ObjectMissing as error:
        raise NeverSucceeds("missing_table", f"{key}: there is no such file in the bucket; put it there") from error
    except ObjectUnreadable as error:
        raise NeverSucceeds("unreadable_table", str(error)) from error
    except ObjectTooLarge as error:
        raise NeverSucceeds(
            "table_too_large", f"{key}: has more than {MAX_BYTES:,} bytes; keep only the rows that reports still need"
        ) from error


def _fetched(fetch: Fetch, url: str, source: TableSource) -> bytes:
    host = urlsplit(url).hostname or ""
    if (host.replace(".", "").isdigit() or ":" in host) and not is_public(host):
        raise NeverSucceeds("invalid_address", f"source {source.id!r}: {source.place} is in a private network")
    limits = FetchLimits(seconds=_FETCH_SECONDS, wire_bytes=MAX_BYTES, body_bytes=MAX_BYTES)
    try:
        answer = fetch(url, headers=_ACCEPT, limits=limits)
    except FetchError as error:
        raise RetryLater("table_unavailable", f"source {source.id!r}: {source.place}: {error.reason}") from error
    told = f"source {source.id!r}: {source.place} answered {answer.status}"
    if answer.status in (408, 429) or answer.status >= 500:
        raise RetryLater("table_unavailable", told, retry_after(answer.headers, utc_now()))
    if answer.status != 200:
        raise NeverSucceeds("missing_table", f"{told}; correct its url")
    return answer.body


def _date_reader(source: TableSource, zone: ZoneInfo) -> Callable[[str], At | None]:
    """Return what reads a cell of the date column; None for one that is no date."""
    local = None if source.date_zone is None else zone_named(source.date_zone)
    form, has_time = source.date_format, source.date_format_has_time

    def read(text: str) -> datetime | date | None:
        if form is not None:
            moment = datetime.strptime(text, form)  # noqa: DTZ007 - it gets its zone below
            return moment if has_time else moment.date()
        if written := _DATE.fullmatch(text):
            return date(int(written[1]), int(written[2]), int(written[3]))
        return datetime.fromisoformat(text.replace("/", "-", 2))

    @lru_cache(maxsize=4_096)
    def at(text: str) -> At | None:
        try:
            found = read(text)
            if not isinstance(found, datetime):
                return None if found is None else (found, WITHOUT_INSTANT)
            if found.tzinfo is None:
                if local is None:
                    return None
                found = found.replace(tzinfo=local)
            if source.row_time == "start":
                found = _end_of_row(found, source, zone)
            return found.astimezone(zone).date(), found.astimezone(UTC)
        except (ValueError, OverflowError):
            return None

    return at


def _end_of_row(start: datetime, source: TableSource, zone: ZoneInfo) -> datetime:
    """Return when the hour or the day, by the zone's clocks, ends that a row's time is the beginning of."""
    if source.rows_every == "hour":
        return start.astimezone(UTC) + timedelta(hours=1)
    return start.astimezone(zone) + timedelta(days=1)


def _example(source: TableSource) -> str:
    return "2026-11-20" if source.date_format is None else date(2026, 11, 20).strftime(source.date_format)
