"""Exact times between two instants, as a report with ``window = "exact"`` is about them. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from galley.texts import counted
from local_days import Days, Every, name_of

Step = Literal["hour", "day"]

_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
_SAME_WEEKDAYS = timedelta(weeks=52)
_LONGEST_BY_THE_HOUR = timedelta(hours=25)
_UNITS = (("day", _DAY), ("hour", _HOUR), ("minute", timedelta(minutes=1)), ("second", timedelta(seconds=1)))


@dataclass(frozen=True, slots=True)
class Span:
    """The time later than ``start`` and at the latest ``end``, in UTC. It is told as the clocks of ``zone`` show it.

    ``earlier_start`` is where the previous slot's own window began, if the schedule tells.
    """

    start: datetime
    end: datetime
    zone: ZoneInfo = field(compare=False)
    earlier_start: datetime | None = field(default=None, compare=False)

    def __str__(self) -> str:
        first, last = self.tell(self.start), self.tell(self.end)
        day = f"{self._wall[1].date()} "
        return f"{first} to {last.removeprefix(day) if first.startswith(day) else last}"

    def __contains__(self, moment: object) -> bool:
        return isinstance(moment, datetime) and self.start < moment <= self.end

    def within(self, moments: Sequence[date]) -> Sequence[date]:
        """Return those of the instants, which are in order, that lie in it."""
        return moments[bisect_right(moments, self.start) : bisect_right(moments, self.end)]

    def follows(self, other: "Span") -> bool:
        """Tell whether it begins when the other has ended."""
        return other.end <= self.start

    def tell(self, moment: date) -> str:
        """Return an instant as the zone's clocks show it, with the name of their time where they show it twice."""
        if not isinstance(moment, datetime):
            return str(moment)
        local = moment.astimezone(self.zone)
        twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
        return local.strftime(f"%Y-%m-%d %H:%M{':%S' if local.second else ''}{' %Z' if twice else ''}")

    @property
    def bounds(self) -> tuple[str, str]:
        """Both ends for programs, as local times with their offsets."""
        return self.start.astimezone(self.zone).isoformat(), self.end.astimezone(self.zone).isoformat()

    @property
    def elapsed(self) -> timedelta:
        """How long it is, as time passes."""
        return self.end - self.start

    @property
    def length(self) -> timedelta:
        """How long it is by the clocks: from 06:00 to 06:00 is a day, also when that has 23 hours."""
        return self._wall[1] - self._wall[0]

    @property
    def months(self) -> int:
        """How many calendar months it is, from a time of a day to the same time of the same day later; else 0."""
        return 0 if self._days is None else self._days.months

    @property
    def before(self) -> "Span":
        """The time directly before: the previous slot's own window, if that is as long by the clocks or as time passes.

        Otherwise as many calendar months, or as long by the clocks, or below a day as long as time passes: across a
        change, a time of some hours by the clocks may be none at all.
        """
        if self.earlier_start is not None:
            own = Span(self.earlier_start, self.start, self.zone)
            if self.length == own.length or self.elapsed == own.elapsed:
                return own
        if self._days is not None and self.months:
            return Span(self._instant(self._days.before.first, self._wall[0]), self.start, self.zone)
        if self.length >= _DAY:
            return Span(self._shifted(self.start, self.length), self.start, self.zone)
        return Span(self.start - self.elapsed, self.start, self.zone)

    @property
    def year_ago(self) -> "Span":
        """The same time by the clocks, a year before for calendar months, else 52 weeks before; below a day as long."""
        if self._days is not None and self.months:
            ago = self._days.year_ago
            start, end = (
                self._instant(day, wall) for day, wall in zip((ago.first, ago.last + _DAY), self._wall, strict=True)
            )
            return Span(start, end, self.zone)
        end = self._shifted(self.end, _SAME_WEEKDAYS)
        start = self._shifted(self.start, _SAME_WEEKDAYS) if self.length >= _DAY else end - self.elapsed
        return Span(start, end, self.zone)

    def step(self, rows_every: Every) -> Step:
        """Return in what it is shown part by part: hours, if it is no longer than a day and rows are not days."""
        return "hour" if self.elapsed <= _LONGEST_BY_THE_HOUR and rows_every != "day" else "day"

    def parts(self, step: Step) -> tuple["Span", ...]:
        """Return its hours, or its days by the clocks, counted from its start; the last one may be shorter."""
        return self._cut([*(cut for cut in self._cuts(step) if cut < self.end), self.end])

    def whole(self, every: Every) -> tuple["Span", ...]:
        """Return the hours or days that lie wholly in it, counted from its start; of longer ones none."""
        if every not in ("hour", "day"):
            return ()
        return self._cut(self._cuts("hour" if every == "hour" else "day"))

    def _cut(self, cuts: Sequence[datetime]) -> tuple["Span", ...]:
        starts = [self.start, *cuts]
        return tuple(Span(start, end, self.zone) for start, end in zip(starts, cuts, strict=False))

    def _cuts(self, step: Step) -> list[datetime]:
        cuts: list[datetime] = []
        past = 0
        while True:
            past += 1
            at = self.start + past * _HOUR if step == "hour" else self._shifted(self.start, -past * _DAY)
            if at > self.end:
                return cuts
            cuts.append(at)

    @property
    def _wall(self) -> tuple[datetime, datetime]:
        start, end = (at.astimezone(self.zone).replace(tzinfo=None, fold=0) for at in (self.start, self.end))
        return start, end

    @property
    def _days(self) -> Days | None:
        start, end = self._wall
        return Days(start.date(), end.date() - _DAY) if start.time() == end.time() else None

    def _instant(self, day: date, wall: datetime) -> datetime:
        """Return the instant at which clocks show a time of a day: the first of two, and one that is skipped later."""
        return datetime.combine(day, wall.time(), tzinfo=self.zone).astimezone(UTC)

    def _shifted(self, moment: datetime, back: timedelta) -> datetime:
        """Return the instant that is so much earlier by the clocks."""
        wall = moment.astimezone(self.zone).replace(tzinfo=None, fold=0) - back
        return self._instant(wall.date(), wall)


Period = Days | Span
"""What a report is about."""


def step_of(period: Period, rows_every: Every) -> Every:
    """Return in what a period is shown part by part."""
    return period.step(rows_every) if isinstance(period, Span) else rows_every


def parts_of(period: Period, rows_every: Every) -> Sequence[Period]:
    """Return the parts in which a period is shown."""
    return period.parts(period.step(rows_every)) if isinstance(period, Span) else period.whole(rows_every)


def part_name(part: Period, every: Every) -> str:
    """Return how a part is called in a table: an hour by its end, a day of an exact time by its end and weekday."""
    if not isinstance(part, Span):
        return name_of(part, every)
    name = part.tell(part.end)
    return name if every == "hour" else f"{part.end.astimezone(part.zone):%a} {name}"


def side_by_side(now: Period, before: Period | None, rows_every: Every) -> list[tuple[Period, Period | None]]:
    """Return each part of a period with the one that stands beside it: of days in their order, else by the clocks.

    So eight in the morning is beside eight in the morning, also on the day on which clocks change. Of two hours that
    clocks show alike, the first is the one that stands beside another.
    """
    parts = parts_of(now, rows_every)
    if isinstance(now, Span):
        if not isinstance(before, Span):
            return [(part, None) for part in parts]
        theirs: dict[timedelta, Span] = {}
        for part in before.parts(now.step(rows_every)):
            theirs.setdefault(Span(before.start, part.end, before.zone).length, part)
        return [
            (part, theirs.pop(Span(now.start, part.end, now.zone).length, None))
            for part in now.parts(now.step(rows_every))
        ]
    earlier = [] if before is None else parts_of(before, rows_every)
    return list(zip(parts, [*earlier, *[None] * len(parts)], strict=False))


def uneven(now: Period, before: Period) -> tuple[int, int, str] | None:
    """Return how long two periods are, and in which unit, where they are not equally long; else None."""
    if isinstance(now, Span) and isinstance(before, Span):
        if now.elapsed == before.elapsed:
            return None
        lengths = (now.elapsed, before.elapsed)
        unit, size = next((one for one in _UNITS if not any(length % one[1] for length in lengths)), _UNITS[-1])
        return now.elapsed // size, before.elapsed // size, unit
    if isinstance(now, Days) and isinstance(before, Days) and now.count != before.count:
        return now.count, before.count, "day"
    return None


def with_unit(number: int, unit: str) -> str:
    """Return a length as it is told: ``25 hours``."""
    return counted(number, unit, f"{unit}s")
