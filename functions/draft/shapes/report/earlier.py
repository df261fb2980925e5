"""What a report said of its period, kept in the source's cursor, so that the next one can say what has changed since.

Rows come late and figures are corrected. A report is not drawn up again for that; its successor names it, once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Literal, Self

from pydantic import PlainSerializer, PlainValidator, field_validator, model_validator

from drafter_file.report import TableSource
from galley.instants import in_utc
from galley.schedule import InvalidSchedule, zone
from galley.store import Cursor
from galley.texts import counted
from local_days import Days
from shapes.report.figures import Result, Value, change, plain_number
from shapes.shape import Figure
from sources.collected import CursorState, read_cursor
from sources.table import Table
from spans import Period, Span

MOST_REMEMBERED = 5
"""So many of the latest reports' days are looked at again."""

EXACT_PLACES = 12
"""To so many decimals a figure is remembered."""


def _day_or_instant(value: object) -> date:
    if isinstance(value, datetime):
        return in_utc(value)
    if isinstance(value, date):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no date and no instant")
    return date.fromisoformat(value) if len(value) == len("2026-11-20") else in_utc(datetime.fromisoformat(value))


Moment = Annotated[date, PlainValidator(_day_or_instant), PlainSerializer(lambda moment: moment.isoformat())]
"""A date, or for exact times an instant."""


class Reported(CursorState):
    """What one report was about: its days, the first of them that had a row, how many rows, and each figure as text.

    Of a time that was not reported, since there was no row, the rows are 0.

    For an exact time there stand its two ends, the instant of its first row, and the ``zone`` in which it is told. A
    figure's key says how it is computed, so that it is compared with nothing else; one without a value is "".
    """

    first: Moment
    last: Moment
    oldest: Moment
    zone: str = ""
    rows: int
    figures: dict[str, str]

    @field_validator("zone")
    @classmethod
    def _zone_exists(cls, name: str) -> str:
        try:
            if name:
                zone(name)
        except InvalidSchedule as error:
            raise ValueError(str(error)) from error
        return name

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        kinds = {isinstance(moment, datetime) for moment in (self.first, self.last, self.oldest)}
        if kinds != {bool(self.zone)}:
            raise ValueError("days have dates, an exact time has instants and a zone")
        return self

    @field_validator("figures")
    @classmethod
    def _numbers(cls, figures: dict[str, str]) -> dict[str, str]:
        for text in figures.values():
            try:
                finite = not text or Decimal(text).is_finite()
            except InvalidOperation:
                finite = False
            if not finite:
                raise ValueError(f"{text!r} is not a number")
        return figures

    @property
    def period(self) -> Period:
        """What it was about."""
        if isinstance(self.first, datetime) and isinstance(self.last, datetime):
            return Span(self.first, self.last, zone(self.zone))
        return Days(self.first, self.last)


class Memory(CursorState):
    """The cursor: which table it is of, over which windows, and what was reported of it, oldest first."""

    place: str = ""
    window: Literal["days", "exact"] = "days"
    reports: tuple[Reported, ...] = ()


@dataclass(frozen=True, slots=True)
class Late:
    """What has become of one report since: a line for people, and the numbers in it."""

    line: str
    values: tuple[Figure, ...]


def remembered(source: TableSource, cursor: Cursor | None, period: Period) -> tuple[Reported, ...]:
    """Return the reports of the same table about the time before: what came after its window a run does not see.

    Raises:
        NeverSucceeds: ``invalid_cursor``.
    """
    return tuple(report for report in _memory(source, cursor).reports if _follows(period, report.period))


def _follows(period: Period, other: Period) -> bool:
    if isinstance(period, Span):
        return isinstance(other, Span) and period.follows(other)
    return isinstance(other, Days) and period.follows(other)


def cursor_after(
    source: TableSource,
    cursor: Cursor | None,
    period: Period,
    table: Table,
    results: Sequence[Result],
    late: Mapping[Period, Reported],
) -> Cursor:
    """Return the cursor with this report in it, and with what the earlier ones would say now."""
    earlier = _memory(source, cursor).reports
    kept = [late.get(report.period, report) for report in earlier if report.period != period]
    now = _reported(period, table, [(result, result.total.now) for result in results])
    reports = sorted((*kept, now), key=lambda report: (report.last, report.first))[-MOST_REMEMBERED:]
    return Memory(place=source.place, window=source.window, reports=tuple(reports)).model_dump(mode="json")


def as_it_is_now(report: Reported, table: Table, results: Sequence[tuple[Result, Value]]) -> Reported | None:
    """Return what a report would say now; None where the table no longer reaches back to its rows.

    ``results`` hold each metric's figure over the report's period.
    """
    if table.oldest is None or table.oldest > report.oldest:
        return None
    return _reported(report.period, table, results, oldest=report.oldest)


def changed_since(called: str, then: Reported, now: Reported, results: Sequence[Result]) -> Late | None:
    """Return what has changed since a report, None where nothing has."""
    values = list(_changes(then, now, results))
    if then.rows == now.rows and not values:
        return None
    figures = "; ".join(line for line, _ in values) or "no figure changed"
    numbers = [Figure(Decimal(count), "", f"rows of {then.period}") for count in (then.rows, now.rows)]
    return Late(
        f"{called}: {then.period} {_what_was_said(then, now)}; {figures}",
        (*numbers, *(number for _, several in values for number in several)),
    )


def _what_was_said(then: Reported, now: Reported) -> str:
    if not then.rows:
        return f"was not reported, it had no row; it has {now.rows:,} now"
    if then.rows == now.rows:
        return "was already reported"
    return f"was already reported with {counted(then.rows, 'row', 'rows')}, it has {now.rows:,} now"


def _changes(then: Reported, now: Reported, results: Sequence[Result]) -> Iterator[tuple[str, tuple[Figure, ...]]]:
    """Yield a line for each figure that has changed, and what it was and is."""
    for result in results:
        key = _key(result)
        if key not in then.figures or then.figures[key] == now.figures.get(key):
            continue
        was, is_now = (_amount(report.figures.get(key, "")) for report in (then, now))
        shown = [result.shown(Value(amount)) for amount in (was, is_now)]
        became = change(is_now, was, result.places, unit=result.unit)
        numbers = tuple(
            Figure(amount, result.unit, f"{result.metric.name}, {then.period}, {when}")
            for amount, when in ((was, "as it was reported"), (is_now, "as it is now"))
            if amount is not None
        )
        was_and_is = f"was {shown[0]}, is {shown[1]} ({became})" if then.rows else f"is {shown[1]}"
        yield f"{result.metric.name} {was_and_is}", numbers


def _reported(
    period: Period, table: Table, results: Sequence[tuple[Result, Value]], oldest: date | None = None
) -> Reported:
    first, last = (period.start, period.end) if isinstance(period, Span) else (period.first, period.last)
    return Reported(
        first=first,
        last=last,
        oldest=oldest or table.oldest_in(period) or first,
        zone=period.zone.key if isinstance(period, Span) else "",
        rows=table.rows(period),
        figures={_key(result): _text(value) for result, value in results},
    )


def _key(result: Result) -> str:
    return f"{result.metric.name} = {result.metric.how}{' in percent' if result.metric.percent else ''}"


def _text(value: Value) -> str:
    if value.amount is None:
        return ""
    text = plain_number(value.amount, EXACT_PLACES)
    return text.rstrip("0").rstrip(".")


def _amount(text: str) -> Decimal | None:
    return Decimal(text) if text else None


def _memory(source: TableSource, cursor: Cursor | None) -> Memory:
    memory = read_cursor(Memory, cursor, f"the table of {source.id!r}")
    return memory if (memory.place, memory.window) == (source.place, source.window) else Memory()
