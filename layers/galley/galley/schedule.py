"""When a schedule is due: EventBridge Scheduler's expressions, in a timezone, as slots in UTC.

The rules are those of https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html. A wall time that
a spring change skips is not due; one that an autumn change repeats is due once, on its first pass; ``rate(1 day)``
is 24 hours, whatever the clocks do. This is the only module that knows cron and timezones.
"""

import calendar
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from importlib import import_module, resources
from zoneinfo import ZoneInfo

from galley.contract import FIRST_INSTANT, FIRST_YEAR, LAST_INSTANT, LAST_YEAR
from galley.instants import format_instant, in_utc

_MOMENT = timedelta(microseconds=1)
FIELDS = ("minutes", "hours", "day-of-month", "month", "day-of-week", "year")
MONTHS = {
    "JAN": 1, "FEB": 2, "MAR": 3, "APR": 4, "MAY": 5, "JUN": 6,
    "JUL": 7, "AUG": 8, "SEP": 9, "OCT": 10, "NOV": 11, "DEC": 12,
}  # fmt: skip
WEEKDAYS = {"SUN": 1, "MON": 2, "TUE": 3, "WED": 4, "THU": 5, "FRI": 6, "SAT": 7}


class InvalidSchedule(ValueError):
    """An expression or a timezone that EventBridge Scheduler would refuse; its text is one line naming the field."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A ``cron(...)`` expression, as sets of wall-clock values. ``days`` gives the days of a month that match.

    ``undocumented`` has a line for each part that AWS's guide does not describe.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: frozenset[int]
    years: frozenset[int]
    days: Callable[[int, int], frozenset[int]]
    undocumented: tuple[str, ...] = ()

    @property
    def times(self) -> tuple[time, ...]:
        """The wall times of a day that matches, in order."""
        return tuple(time(hour, minute) for hour in self.hours for minute in self.minutes)


@dataclass(frozen=True, slots=True)
class Rate:
    """A ``rate(...)`` expression: every so long, counted from the schedule's start."""

    every: timedelta


@dataclass(frozen=True, slots=True)
class At:
    """An ``at(...)`` expression: once, at a wall time."""

    wall: datetime


Expression = Cron | Rate | At


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """Return the zone of an IANA name, from the pinned ``tzdata`` and from nowhere else.

    ``ZoneInfo(name)`` would prefer the system's own files, and those of a runtime change under the same code
    (https://docs.python.org/3/library/zoneinfo.html#data-sources).

    Raises:
        InvalidSchedule: when there is none by that name.
    """
    if name not in _zone_names():
        raise InvalidSchedule(f"timezone {name!r} does not exist; use an IANA name like Europe/London")
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as rules:
        return ZoneInfo.from_file(rules, key=name)


@cache
def _zone_names() -> frozenset[str]:
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split())


def tzdata_version() -> str:
    """Return the version of the IANA time zone database that slots are computed from, like ``2026f``."""
    return str(import_module("tzdata").IANA_VERSION)


@lru_cache(maxsize=1024)
def parse(expression: str) -> Expression:
    """Return what an expression means.

    Raises:
        InvalidSchedule: one line that names the field and what is allowed there.
    """
    kind, _, rest = expression.strip().partition("(")
    if not rest.endswith(")") or len(expression) > 256:
        raise InvalidSchedule(
            f"expression {expression!r} is not cron(...), rate(...) or at(...) of at most 256 characters"
        )
    inside = rest[:-1].strip()
    match kind:
        case "cron":
            return _parse_cron(inside)
        case "rate":
            return _parse_rate(inside)
        case "at":
            return _parse_at(inside)
    raise InvalidSchedule(f"expression {expression!r} is not cron(...), rate(...) or at(...)")


@dataclass(frozen=True, slots=True)
class Calendar:
    """The slots of one schedule. Every instant that goes in or comes out is aware, and comes out in UTC.

    ``anchor`` is where a rate begins to count: the schedule's StartDate, or its creation.
    ``start`` and ``end`` bound the slots, both inclusive, as StartDate and EndDate do; ``at`` ignores them.
    """

    expression: Expression
    zone: ZoneInfo
    anchor: datetime
    start: datetime | None = None
    end: datetime | None = None

    def between(self, first: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the slots in ``[first, end)``, in order, each once."""
        first, end = self._bounded(first, end)
        if first >= end:
            return
        match self.expression:
            case Cron() as cron:
                slots = _cron_slots(cron, self.zone, first, end)
            case Rate(every):
                slots = _rate_slots(every, in_utc(self.anchor), first, end)
            case At(wall):
                slots = _localise(wall, self.zone)
        for slot in slots:
            if slot >= end:
                return
            if slot >= first:
                yield slot

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first slot later than the moment; None when there is none by the year 2199."""
        return next(self.after(moment), None)

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the slots later than the moment, in order, up to the year 2199."""
        return self.between(min(in_utc(moment), LAST_INSTANT) + _MOMENT, LAST_INSTANT)

    def latest_until(self, moment: datetime) -> datetime | None:
        """Return the last slot at or before the moment; None when there is none since the year 1970."""
        end = min(in_utc(moment), LAST_INSTANT) + _MOMENT
        if isinstance(self.expression, Rate):
            bound = end if self.end is None else min(end, in_utc(self.end) + _MOMENT)
            behind = (bound - _MOMENT - in_utc(self.anchor)) // self.expression.every
            if behind < 0:
                return None
            slot = in_utc(self.anchor) + behind * self.expression.every
            return slot if next(self.between(slot, bound), None) is not None else None
        span, first = timedelta(days=1), end
        while first > FIRST_INSTANT:
            first = max(FIRST_INSTANT, end - span)
            latest = None
            for latest in self.between(first, end):  # noqa: B007 - the last one is what is asked for
                pass
            if latest is not None:
                return latest
            end, span = first, min(span * 4, timedelta(days=3660))
        return None

    def lost_to_gaps(self, first: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the wall times, naive and in order, that would be due in ``[first, end)`` if the clocks showed them.

        The zone's clocks leave them out that day, mostly for summer time. A rate has none.
        """
        first, end = self._bounded(first, end)
        match self.expression:
            case Cron() as cron:
                walls = _walls_in_gaps(cron, self.zone, first, end)
            case Rate():
                return
            case At(wall):
                walls = iter(() if any(_localise(wall, self.zone)) else (wall,))
        for wall in walls:
            if first <= _taken_literally(wall, self.zone) < end:
                yield wall

    def warnings(self, first: datetime, end: datetime) -> Iterator[str]:
        """Yield a line for each thing in ``[first, end)`` that whoever wrote the expression may not expect.

        These are what AWS does not document and may read otherwise, a day without its only slot since the clocks left
        it out, and a schedule that is never due from ``first`` on.
        """
        once = isinstance(self.expression, At)
        if isinstance(self.expression, Cron):
            yield from self.expression.undocumented
            once = len(self.expression.times) == 1
        if isinstance(self.expression, At) and _comes_twice(self.expression.wall, self.zone):
            yield (
                f"{_shown(self.expression.wall)} comes twice in {self.zone.key}, where the clocks go back; "
                "AWS does not document which one is due, and here it is the first"
            )
        if once:
            for wall in self.lost_to_gaps(first, end):
                yield f"{_shown(wall)} does not exist in {self.zone.key}, where the clocks go forward: it is not due"
        if self.next_after(max(in_utc(first), FIRST_INSTANT) - _MOMENT) is None:
            yield f"it is never due, from {format_instant(first)} on"

    def _bounded(self, first: datetime, end: datetime) -> tuple[datetime, datetime]:
        """Return the part of ``[first, end)`` in which the schedule can have slots."""
        first, end = max(in_utc(first), FIRST_INSTANT), min(in_utc(end), LAST_INSTANT)
        if not isinstance(self.expression, At):
            if self.start is not None:
                first = max(first, in_utc(self.start))
            if self.end is not None:
                end = min(end, in_utc(self.end) + _MOMENT)
        return first, end


def calendar_of(
    expression: str,
    timezone: str,
    anchor: datetime,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
) -> Calendar:
    """Return the calendar of a schedule.

    Raises:
        InvalidSchedule: one line that names what is wrong with the expression or the timezone.
    """
    return Calendar(parse(expression), zone(timezone), start if start is not None else anchor, start, end)


def _rate_slots(every: timedelta, anchor: datetime, first: datetime, end: datetime) -> Iterator[datetime]:
    steps_to_first, steps_to_end = -((anchor - first) // every), -((anchor - end) // every)
    for step in range(max(0, steps_to_first), steps_to_end):
        yield anchor + step * every


def _cron_slots(cron: Cron, tz: ZoneInfo, first: datetime, end: datetime) -> Iterator[datetime]:
    times = cron.times
    for day in _days(cron, first, end):
        yield from _day_slots(day, times, tz)


def _walls_in_gaps(cron: Cron, tz: ZoneInfo, first: datetime, end: datetime) -> Iterator[datetime]:
    times = cron.times
    for day in _days(cron, first, end):
        if _whole_day_offset(day, tz) is None:
            walls = (datetime.combine(day, at) for at in times)
            yield from (wall for wall in walls if not any(_localise(wall, tz)))


def _days(cron: Cron, first: datetime, end: datetime) -> Iterator[date]:
    """Yield the days that match and that any zone's clocks may show in ``[first, end)``."""
    begins, ends = first.date() - timedelta(days=1), end.date() + timedelta(days=1)
    month = begins.replace(day=1)
    while month <= ends:
        if month.year in cron.years and month.month in cron.months:
            for day in sorted(cron.days(month.year, month.month)):
                today = month.replace(day=day)
                if begins <= today <= ends:
                    yield today
        month = (month + timedelta(days=31)).replace(day=1)


def _day_slots(day: date, times: tuple[time, ...], tz: ZoneInfo) -> Iterator[datetime]:
    """Yield a day's slots in UTC; on a day without a change of offset all of them shift alike."""
    offset = _whole_day_offset(day, tz)
    if offset is not None:
        for at in times:
            yield datetime.combine(day, at, tzinfo=UTC) - offset
        return
    slots = {slot for at in times for slot in _localise(datetime.combine(day, at), tz)}
    yield from sorted(slots)


def _whole_day_offset(day: date, tz: ZoneInfo) -> timedelta | None:
    """Return how far the zone's clocks are from UTC all day long; None on a day on which that changes."""
    midnight = datetime.combine(day, time())
    before = (midnight - timedelta(hours=1)).replace(tzinfo=tz).utcoffset()
    after = (midnight + timedelta(hours=25)).replace(tzinfo=tz).utcoffset()
    return before if before == after else None


def _localise(wall: datetime, tz: ZoneInfo) -> Iterator[datetime]:
    """Yield the first instant at which the zone's clocks show the wall time; nothing if they never do."""
    instant = _taken_literally(wall, tz)
    if instant.astimezone(tz).replace(tzinfo=None) == wall:
        yield instant


def _taken_literally(wall: datetime, tz: ZoneInfo) -> datetime:
    """Return the first instant of a wall time; for one that does not exist, as if the clocks had not gone forward."""
    return wall.replace(tzinfo=tz, fold=0).astimezone(UTC)


def _comes_twice(wall: datetime, tz: ZoneInfo) -> bool:
    first, second = (wall.replace(tzinfo=tz, fold=fold).utcoffset() for fold in (0, 1))
    return first != second and any(_localise(wall, tz))


def _shown(wall: datetime) -> str:
    return wall.isoformat(" ", timespec="minutes")


def _parse_rate(inside: str) -> Rate:
    found = re.fullmatch(r"(\d{1,9})\s+(minute|hour|day)(s?)", inside)
    if not found or int(found[1]) == 0:
        raise InvalidSchedule(f"rate({inside}) is not a positive number and minutes, hours or days")
    if (int(found[1]) == 1) == bool(found[3]):
        raise InvalidSchedule(f"rate({inside}): write the unit in the singular for 1 and in the plural otherwise")
    return Rate(timedelta(**{f"{found[2]}s": int(found[1])}))


def _parse_at(inside: str) -> At:
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", inside):
        raise InvalidSchedule(f"at({inside}) is not a wall time like at(2026-11-20T13:00:00)")
    try:
        wall = datetime.fromisoformat(inside)
    except ValueError as error:
        raise InvalidSchedule(f"at({inside}) is not a wall time: {error}") from error
    if not FIRST_YEAR <= wall.year <= LAST_YEAR:
        raise InvalidSchedule(f"at({inside}): year {wall.year} is not allowed; use {FIRST_YEAR} to {LAST_YEAR}")
    return At(wall)


def _parse_cron(inside: str) -> Cron:
    fields = inside.split()
    if len(fields) != 6:
        raise InvalidSchedule(f"cron({inside}) has {len(fields)} fields; it needs six: {' '.join(FIELDS)}")
    minutes, hours, days, months, weekdays, years = fields
    if (days == "?") == (weekdays == "?"):
        raise InvalidSchedule(
            f"cron({inside}): day-of-month is {days!r} and day-of-week is {weekdays!r}; exactly one must be ?"
        )
    return Cron(
        minutes=tuple(sorted(_values(minutes, "minutes", 0, 59))),
        hours=tuple(sorted(_values(hours, "hours", 0, 23))),
        months=_values(months, "month", 1, 12, MONTHS),
        years=_values(years, "year", FIRST_YEAR, LAST_YEAR),
        days=_days_of_month(days) if weekdays == "?" else _days_of_week(weekdays),
        undocumented=tuple(_undocumented(dict(zip(FIELDS, fields, strict=True)))),
    )


def _undocumented(fields: dict[str, str]) -> Iterator[str]:
    """Yield a line for each part of good fields that AWS's guide does not describe, in the order of the fields."""
    for field, text in fields.items():
        for part in text.split(","):
            what = _undocumented_part(field, part, alone=part == text)
            if what:
                yield (
                    f"{field} {part!r}: AWS does not document {what}, and may refuse it or mean something else by it; "
                    "see that the slots are the ones that you mean"
                )


def _undocumented_part(field: str, part: str, *, alone: bool) -> str:
    """Return what AWS's guide does not describe about one part of a field; empty if it does describe all of it."""
    if field == "day-of-month" and part.startswith("L-"):
        return "a day counted back from the last"
    if part == "LW":
        return "the last weekday of a month"
    if field in {"day-of-month", "day-of-week"} and not alone and re.fullmatch(r"L|\w+[LW]", part):
        return "L and W in a list"
    if field == "day-of-week" and "/" in part:
        return "steps of weekdays"
    if field != "hours" and _runs_over_the_end(field, part.partition("/")[0]):
        return "a range that runs over its end, but for hours"
    return "names in small letters" if re.search("[a-z]", part) else ""


def _runs_over_the_end(field: str, span: str) -> bool:
    names = {"month": MONTHS, "day-of-week": WEEKDAYS}.get(field, {})
    ends = [names.get(end.upper()) or int(end) for end in span.split("-") if end.upper() in names or end.isdigit()]
    return len(ends) == 2 and ends[0] > ends[1]


def _values(text: str, field: str, low: int, high: int, names: dict[str, int] | None = None) -> frozenset[int]:
    """Return the numbers that a field of lists, ranges and steps means; an hour range may run over midnight."""
    values: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, field, 1, high - low + 1) if slash else 1
        if span == "*":
            values.update(range(low, high + 1, step))
            continue
        begin_text, dash, last_text = span.partition("-")
        begin = _number(begin_text, field, low, high, names)
        last = _number(last_text, field, low, high, names) if dash else (high if slash else begin)
        if last >= begin:
            values.update(range(begin, last + 1, step))
        elif field == "year":
            raise InvalidSchedule(f"{field} {part!r} runs backwards")
        else:
            size = high - low + 1
            values.update((value - low) % size + low for value in range(begin, last + size + 1, step))
    return frozenset(values)


def _number(text: str, field: str, low: int, high: int, names: dict[str, int] | None = None) -> int:
    value = (names or {}).get(text.upper())
    if value is None and re.fullmatch(r"[0-9]{1,4}", text):
        value = int(text)
    if value is None or not low <= value <= high:
        allowed = f"{low} to {high}" + (f" or {', '.join(names)}" if names else "")
        raise InvalidSchedule(f"{field} {text!r} is not allowed; use {allowed}")
    return value


def _days_of_month(text: str) -> Callable[[int, int], frozenset[int]]:
    rules = [_day_rule(part) for part in text.split(",")]
    return lambda year, month: frozenset[int]().union(*(rule(year, month) for rule in rules))


def _day_rule(part: str) -> Callable[[int, int], frozenset[int]]:
    if found := re.fullmatch(r"L(?:-(\d{1,2}))?", part):
        back = _number(found[1], "day-of-month", 1, 30) if found[1] else 0
        return lambda year, month: _existing(_length(year, month) - back, year, month)
    if part == "LW":
        return lambda year, month: _nearest_weekday(_length(year, month), year, month)
    if found := re.fullmatch(r"(\d{1,2})W", part):
        day = _number(found[1], "day-of-month", 1, 31)
        return lambda year, month: _nearest_weekday(day, year, month)
    values = _values(part, "day-of-month", 1, 31)
    return lambda year, month: frozenset(value for value in values if value <= _length(year, month))


def _days_of_week(text: str) -> Callable[[int, int], frozenset[int]]:
    if "#" in text and "," in text:
        raise InvalidSchedule(f"day-of-week {text!r} is a list with #; only one # is allowed, and alone, like 3#2")
    if "#" in text:
        weekday_text, _, nth_text = text.partition("#")
        weekday = _number(weekday_text, "day-of-week", 1, 7, WEEKDAYS)
        nth = _number(nth_text, "day-of-week", 1, 5)
        return lambda year, month: frozenset(sorted(_weekdays(weekday, year, month))[nth - 1 : nth])
    rules = [_weekday_rule(part) for part in text.split(",")]
    return lambda year, month: frozenset[int]().union(*(rule(year, month) for rule in rules))


def _weekday_rule(part: str) -> Callable[[int, int], frozenset[int]]:
    if part == "L":
        return lambda year, month: _weekdays(7, year, month)
    if part.endswith("L") and part != "L":
        weekday = _number(part[:-1], "day-of-week", 1, 7, WEEKDAYS)
        return lambda year, month: frozenset({max(_weekdays(weekday, year, month))})
    values = _values(part, "day-of-week", 1, 7, WEEKDAYS)
    return lambda year, month: frozenset[int]().union(*(_weekdays(value, year, month) for value in values))


def _weekdays(weekday: int, year: int, month: int) -> frozenset[int]:
    """Return the days of the month that fall on the weekday, 1 = Sunday."""
    first = (weekday + 5 - calendar.weekday(year, month, 1)) % 7 + 1
    return frozenset(range(first, _length(year, month) + 1, 7))


def _nearest_weekday(day: int, year: int, month: int) -> frozenset[int]:
    """Return the Monday to Friday nearest to the day, within its month; nothing if the month lacks the day."""
    length = _length(year, month)
    if day > length:
        return frozenset()
    match calendar.weekday(year, month, day):
        case 5:
            return frozenset({day - 1 if day > 1 else day + 2})
        case 6:
            return frozenset({day + 1 if day < length else day - 2})
    return frozenset({day})


def _existing(day: int, year: int, month: int) -> frozenset[int]:
    return frozenset({day}) if 1 <= day <= _length(year, month) else frozenset()


def _length(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]
