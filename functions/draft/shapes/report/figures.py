"""The figures of a table over a report's period, beside those of the time before and of a year ago. Exact, and pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import assert_never

from drafter_file.report import Metric, TableSource
from sources.table import FURTHER, Table
from sources.tallies import EXACT, Tallies, Tally, put_together
from spans import Period, parts_of

OTHERS = "others"
NOTHING = "no value"

_ROUNDED = Context(prec=400, rounding=ROUND_HALF_UP)
_HUNDRED = Decimal(100)


@dataclass(frozen=True, slots=True)
class Value:
    """A figure, or why there is none. A percentage counts hundredths: 4.2 is 4.2%."""

    amount: Decimal | None
    why: str = NOTHING


@dataclass(frozen=True, slots=True)
class Row:
    """One figure in the periods that are compared; None where a period is not compared at all."""

    label: str
    now: Value
    before: Value | None
    year_ago: Value | None


@dataclass(frozen=True, slots=True)
class Result:
    """One metric: its figure, that of each part of the period that has a row, and those of its groups."""

    metric: Metric
    places: int
    total: Row
    each: Mapping[Period, Value]
    each_before: Mapping[Period, Value]
    groups: tuple[Row, ...] = ()

    @property
    def unit(self) -> str:
        """What stands behind the figure."""
        return "%" if self.metric.percent else self.metric.unit

    def shown(self, value: Value) -> str:
        """Return a figure as it is shown, rounded, with its unit."""
        return value.why if value.amount is None else number(value.amount, self.places, self.unit)

    def change(self, now: Value, before: Value | None) -> str:
        """Return what became of a figure, in words."""
        then = None if before is None else before.amount
        return change(now.amount, then, self.places, unit=self.unit)


@dataclass(frozen=True, slots=True)
class Periods:
    """What a report is about, and what it compares that with, where the table has rows of it."""

    now: Period
    before: Period | None
    year_ago: Period | None

    @property
    def all(self) -> tuple[Period | None, ...]:
        """The period, the one before and that of a year ago, None in the place of one that is not compared."""
        return self.now, self.before, self.year_ago

    @property
    def compared(self) -> tuple[Period, ...]:
        """Those of them that there are."""
        return tuple(period for period in self.all if period is not None)


def result(source: TableSource, table: Table, metric: Metric, periods: Periods) -> Result:
    """Return a metric over the periods."""
    each, each_before = (
        {period: compute(source, metric, table.tallies(period)) for period in _with_rows(source, table, days)}
        for days in (periods.now, periods.before)
    )
    tallies = [None if period is None else table.tallies(period) for period in periods.all]
    return Result(
        metric=metric,
        places=_places(source, metric, [one for one in tallies if one is not None]),
        total=_row(source, metric, metric.name, tallies),
        each=each,
        each_before=each_before,
        groups=_groups(source, table, metric, periods),
    )


def compute(source: TableSource, metric: Metric, tallies: Mapping[str, Tally]) -> Value:
    """Return a metric's figure, exact; where there is none it says why."""
    found = _ratio(source, metric, tallies) if metric.aggregate == "ratio" else Value(_aggregate(metric, tallies))
    if found.amount is None or not metric.percent:
        return found
    return Value(EXACT.multiply(found.amount, _HUNDRED))


def _aggregate(metric: Metric, tallies: Mapping[str, Tally]) -> Decimal | None:
    """Return the values of a metric put together; None when there are none, except that a count is then 0."""
    tally = tallies.get(metric.name, Tally())
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
        case "ratio":
            raise ValueError(f"metric {metric.name!r} divides two others; it has no values of its own")
    assert_never(metric.aggregate)


def change(now: Decimal | None, before: Decimal | None, places: int, *, unit: str = "") -> str:
    """Return what became of a figure, in words; a percentage only where there is one, and none of a percentage."""
    if now is None:
        return "not comparable, there is no value"
    if before is None:
        return "not comparable, that time has no value"
    difference = EXACT.subtract(now, before)
    if not difference:
        return "unchanged"
    smallest = Decimal(1).scaleb(-places)
    amount = difference.copy_abs()
    way = "up" if difference > 0 else "down"
    way += "" if _ROUNDED.quantize(amount, smallest) else " less than"
    points = " percentage points"
    shown = f"{way} {number(max(amount, smallest), places, points if unit == '%' else unit)}"
    if unit == "%":
        return shown
    percent = percent_change(now, before)
    if percent is None:
        return f"{shown} from 0, so there is no percentage"
    return f"{shown} ({'+' if percent > 0 else '-'}{number(percent.copy_abs(), 1, '%')})"


def percent_change(now: Decimal, before: Decimal) -> Decimal | None:
    """Return by how many hundredths of what it was a figure has changed; None where it was 0."""
    if not before:
        return None
    return EXACT.divide(EXACT.multiply(EXACT.subtract(now, before), _HUNDRED), before.copy_abs())


def number(value: Decimal, places: int, unit: str = "") -> str:
    """Return a number with thousands separators and so many decimals, half away from zero, and its unit."""
    rounded = _ROUNDED.quantize(value, Decimal(1).scaleb(-places))
    behind = unit if not unit or unit.startswith(("%", " ")) else f" {unit}"
    return f"{rounded if rounded else rounded.copy_abs():,f}{behind}"


def plain_number(value: Decimal, places: int) -> str:
    """Return a number for programs: rounded as it is shown, without thousands separators."""
    return number(value, places).replace(",", "")


def _with_rows(source: TableSource, table: Table, period: Period | None) -> list[Period]:
    return [] if period is None else [part for part in parts_of(period, source.rows_every) if table.has_row(part)]


def _row(source: TableSource, metric: Metric, label: str, tallies: list[Tallies | None]) -> Row:
    now, before, year_ago = (None if one is None else compute(source, metric, one) for one in tallies)
    return Row(label, now or Value(None), before, year_ago)


def _groups(source: TableSource, table: Table, metric: Metric, periods: Periods) -> tuple[Row, ...]:
    """Return the groups with the largest figures now, and the others together; those that have none now come last."""
    if metric.group_by is None:
        return ()
    column = metric.group_by
    held = [None if days is None else table.groups_in(column, days) for days in periods.all]
    names = {name for groups in held if groups is not None for name in groups}

    def rank(name: str) -> tuple[bool, Decimal, str]:
        amount = compute(source, metric, (held[0] or {}).get(name, {})).amount
        return amount is None, (amount or Decimal(0)).copy_negate(), name

    ranked = sorted(names - {FURTHER}, key=rank)
    kept, rest = ranked[: metric.max_groups], ranked[metric.max_groups :]
    rows = [
        _row(source, metric, name, [None if groups is None else groups.get(name, {}) for groups in held])
        for name in kept
    ]
    if rest or FURTHER in names:
        others = [
            None if groups is None else put_together(groups[name] for name in (*rest, FURTHER) if name in groups)
            for groups in held
        ]
        many = f"more than {len(rest)}" if FURTHER in names else str(len(rest))
        rows.append(_row(source, metric, f"{OTHERS} ({many})", others))
    return tuple(rows)


def _ratio(source: TableSource, metric: Metric, tallies: Mapping[str, Tally]) -> Value:
    above, below = source.metric(metric.numerator or ""), source.metric(metric.denominator or "")
    numerator, denominator = _aggregate(above, tallies), _aggregate(below, tallies)
    if numerator is None or denominator is None:
        return Value(None, f"{NOTHING}, {(above if numerator is None else below).name} has none")
    if not denominator:
        return Value(None, f"{NOTHING}, {below.name} is 0")
    return Value(EXACT.divide(numerator, denominator))


def _places(source: TableSource, metric: Metric, compared: list[Tallies]) -> int:
    """Return with how many decimals a metric is shown: as many as its values have, a mean or a ratio at least two."""
    if metric.decimals is not None:
        return metric.decimals
    if metric.percent:
        return 1
    written = max((tallies[metric.name].places for tallies in compared if metric.name in tallies), default=0)
    match metric.aggregate:
        case "count":
            return 0
        case "mean" | "ratio":
            return max(2, written)
        case "sum" | "min" | "max" | "last":
            return written
    assert_never(metric.aggregate)
