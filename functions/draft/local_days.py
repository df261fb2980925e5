"""Whole local days, as a calendar counts them: what a report is about, and what it is compared with. Pure."""

from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, assert_never

Every = Literal["hour", "day", "week", "month", "year", "any"]

_DAY = timedelta(days=1)
_SAME_WEEKDAYS = timedelta(weeks=52)


@dataclass(frozen=True, slots=True)
class Days:
    """Whole local days, ``first`` and ``last`` included; none when ``last`` is before ``first``."""

    first: date
    last: date

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"

    def __contains__(self, day: object) -> bool:
        return isinstance(day, date) and self.first <= day <= self.last

    def within(self, days: Sequence[date]) -> Sequence[date]:
        """Return those of some days, which are in order, that are among these."""
        return days[bisect_left(days, self.first) : bisect_right(days, self.last)]

    def follows(self, other: "Days") -> bool:
        """Tell whether they begin when the others are over."""
        return other.last < self.first

    def tell(self, day: date) -> str:
        """Return how a day is told."""
        return str(day)

    @property
    def bounds(self) -> tuple[str, str]:
        """The first and the last of them, for programs."""
        return str(self.first), str(self.last)

    @property
    def count(self) -> int:
        """How many days they are."""
        return max(0, (self.last - self.first).days + 1)

    @property
    def months(self) -> int:
        """How many calendar months they are, from a day of a month up to the same day of a later one; else 0."""
        after = self.last + _DAY
        months = 12 * (after.year - self.first.year) + after.month - self.first.month
        return months if self.first.day == after.day and months > 0 else 0

    @property
    def before(self) -> "Days":
        """The days directly before these: as many calendar months where these are some, else as many days."""
        first = _months_later(self.first, -self.months) if self.months else self.first - timedelta(days=self.count)
        return Days(first, self.first - _DAY)

    @property
    def year_ago(self) -> "Days":
        """The days a year before: the same dates where these are calendar months, else the same days of the week.

        52 weeks are 364 days: a Monday is compared with a Monday, as a shop or an office would.
        """
        if self.months:
            return Days(_months_later(self.first, -12), _months_later(self.last + _DAY, -12) - _DAY)
        return Days(self.first - _SAME_WEEKDAYS, self.last - _SAME_WEEKDAYS)

    def each(self) -> tuple[date, ...]:
        """Return every day, in order."""
        return tuple(self.first + timedelta(days=past) for past in range(self.count))

    def whole(self, every: Every) -> tuple["Days", ...]:
        """Return the days, ISO weeks, calendar months or years that lie wholly within these, in order.

        Hours have no place in whole days; what is due each hour is due each day.
        """
        found: list[Days] = []
        at = self.first
        while every != "any" and at <= self.last:
            period = _period_of(at, every)
            if period.first in self and period.last in self:
                found.append(period)
            at = period.last + _DAY
        return tuple(found)


def name_of(period: Days, every: Every) -> str:
    """Return how a period is called in a table: ``Mon 2026-11-16``, ``week of 2026-11-16``, ``2026-11``, ``2026``."""
    match every:
        case "hour" | "day":
            return f"{period.first:%a} {period.first}"
        case "week":
            return f"week of {period.first}"
        case "month":
            return f"{period.first:%Y-%m}"
        case "year":
            return str(period.first.year)
        case "any":
            return str(period)
    assert_never(every)


def _period_of(day: date, every: Every) -> Days:
    match every:
        case "hour" | "day" | "any":
            return Days(day, day)
        case "week":
            monday = day - timedelta(days=day.weekday())
            return Days(monday, monday + timedelta(days=6))
        case "month":
            return Days(day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1]))
        case "year":
            return Days(date(day.year, 1, 1), date(day.year, 12, 31))
    assert_never(every)


def _months_later(day: date, months: int) -> date:
    """Return the same day of another month, or that month's last day where it has none."""
    year, month = divmod(12 * day.year + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
