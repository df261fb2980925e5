"""Dates and times of day as people write them, in digits and in the words of five languages. Pure.

A date may be told in part, without its year or its day, and one in digits may be two: 3/4 is in March, or in April.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date

_MONTHS: Mapping[str, int] = {
    name: at
    for names in (
        "january february march april may june july august september october november december",
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    )
    for at, name in enumerate(names.split(), start=1)
} | {"sept": 9}
_IN_DIGITS = re.compile(
    r"(?<![\w.])([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})(?![0-9])"
    r"|(?<![\w.,/\-])([0-9]{1,2})([-/.])([0-9]{1,2})\6([0-9]{4}|[0-9]{2})(?![\w]|[./,\-][0-9])"
)
_MONTH = re.compile(rf"\b({'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?", re.IGNORECASE)
_LIST = r"\s?(?:-|–|,|&|to|and|or|until|through|bis|und|et|y)\s?"
_DAY = r"(?<![\w.,])[0-9]{1,2}(?:st|nd|rd|th|\.|º)?"
_DAYS_BEFORE = re.compile(rf"((?:{_DAY}{_LIST}){{0,6}}{_DAY})(?:\sof|\sde)?[\s\-]{{0,2}}$", re.IGNORECASE)
_NEXT_DAY = r"[0-9]{1,2}(?:st|nd|rd|th)?(?![\w:%]|[.,][0-9])"
_DAYS_AFTER = re.compile(rf"\s({_NEXT_DAY}(?:{_LIST}{_NEXT_DAY}){{0,6}})", re.IGNORECASE)
_YEAR = re.compile(r"(?:,|\sde)?[\s\-]?([0-9]{4})(?![\w])")
_LONGEST_DAYS = 60
_TIME = re.compile(
    r"(?<![\w.,:])([01]?[0-9]|2[0-4])(?:[:.]([0-5][0-9])(?::[0-5][0-9](?:\.[0-9]+)?)?)?\s?(am|pm|a\.m\.|p\.m\.)(?!\w)"
    r"|(?:(?<![\w.,:])|(?<=[0-9]T))([01]?[0-9]|2[0-4]):([0-5][0-9])(?::[0-5][0-9](?:\.[0-9]+)?)?(?!\d|:)"
    r"|(?<![\w.,:])([01]?[0-9]|2[0-4])\s?h\s?([0-5][0-9])(?!\w)"
    r"|(?<![\w.,:])([01]?[0-9]|2[0-4])\s?(?:Uhr|o['’]clock)(?!\w)",
    re.IGNORECASE,
)
_LEAP_YEAR = 2000
_ALSO_A_WORD = frozenset({"may", "march", "mar"})


@dataclass(frozen=True, slots=True)
class Day:
    """A date as far as it is told: a month with its day, its year, or both."""

    month: int
    day: int | None = None
    year: int | None = None

    def parts(self) -> Iterator["Day"]:
        """Return the date itself, and what may be told of it."""
        yield self
        if self.day is not None and self.year is not None:
            yield Day(self.month, self.day)
            yield Day(self.month, None, self.year)
        if self.day is not None or self.year is not None:
            yield Day(self.month)

    @property
    def week(self) -> int | None:
        """The ISO week of a whole date."""
        if self.day is None or self.year is None:
            return None
        return date(self.year, self.month, self.day).isocalendar().week


@dataclass(frozen=True, slots=True)
class Dated:
    """Dates at one place of a text. Each of ``meant`` is what one of them may be: 3/4 is in March, or in April."""

    start: int
    end: int
    meant: tuple[tuple[Day, ...], ...]
    in_digits: bool


@dataclass(frozen=True, slots=True)
class Timed:
    """A time of day at one place of a text, in hours and minutes; with ``either`` it may be after noon too."""

    start: int
    end: int
    hour: int
    minute: int
    either: bool


def dates(text: str) -> Iterator[Dated]:
    """Return the dates of a text, in digits and with the months of five languages by their names."""
    for found in _IN_DIGITS.finditer(text):
        if found[1]:
            meant = _days((int(found[1]), int(found[3]), int(found[4])))
        else:
            first, second, year = int(found[5]), int(found[7]), int(found[8])
            year += 2000 if year < 100 else 0
            meant = _days((year, second, first), (year, first, second))
        if meant:
            yield Dated(found.start(), found.end(), (meant,), in_digits=True)
    for found in _MONTH.finditer(text):
        if dated := _with_month(text, found):
            yield dated


def _with_month(text: str, found: re.Match[str]) -> Dated | None:
    before = _DAYS_BEFORE.search(text, max(0, found.start() - _LONGEST_DAYS), found.start())
    after = None if before else _DAYS_AFTER.match(text, found.end())
    days = before or after
    told = _YEAR.match(text, (after or found).end())
    if not told and (not days or found[1] in _ALSO_A_WORD):
        return None
    month, year = _MONTHS[found[1].casefold()], int(told[1]) if told else None
    meant = [_days((year or _LEAP_YEAR, month, int(day))) for day in re.findall(r"[0-9]+", days[1] if days else "")]
    if year is None:
        meant = [tuple(replace(day, year=None) for day in one) for one in meant]
    start, end = (before or found).start(), (told or after or found).end()
    return Dated(start, end, tuple(meant) or ((Day(month, None, year),),), in_digits=False) if all(meant) else None


def _days(*told: tuple[int, int, int]) -> tuple[Day, ...]:
    days: list[Day] = []
    for year, month, day in told:
        try:
            days.append(day_of(date(year, month, day)))
        except ValueError:
            continue
    return tuple(dict.fromkeys(days))


def day_of(day: date) -> Day:
    """Return a whole date as one that a text may tell in part."""
    return Day(day.month, day.day, day.year)


def times(text: str) -> Iterator[Timed]:
    """Return the times of day of a text."""
    for found in _TIME.finditer(text):
        half = (found[3] or "").casefold().replace(".", "")
        hour = int(found[1] or found[4] or found[6] or found[8])
        minute = int(found[2] or found[5] or found[7] or 0)
        if half:
            hour = hour % 12 + (12 if half == "pm" else 0)
        yield Timed(found.start(), found.end(), hour % 24, minute, either=not half and 0 < hour < 12)
