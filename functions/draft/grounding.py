"""Is what a draft says in what it was made from? Checks in code, on every draft. Pure.

A finding is a warning beside the draft with its place in the text; ``strict`` drafters fail instead. The checks can
tell that a figure is nowhere in the sources. That it stands in the right sentence is for the reviewer to see.
"""

import re
import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from dates_and_times import Day, Timed, dates, day_of, times
from galley.drafts import Item
from galley.texts import CUT_MARK
from quantities import (
    ANY_MARK,
    POINT,
    Quantity,
    Reading,
    Values,
    in_other_words,
    plain_digits,
    quantities,
)

MOST_FINDINGS = 20
"""So many findings of one kind are named; the rest are counted."""
AROUND = 40
"""So many characters on each side of a finding are shown with it."""

_LARGEST_COUNT = 12
"""Up to so much a number in words may count what the sources tell."""
_LONGEST_NAME = 32
_LONGEST_VERSION = 6
_ROUGHLY = Decimal("0.1")
_HOURS_OF_A_DAY, _DAYS_OF_A_WEEK = Decimal(24 * 3_600), Decimal(7 * 24 * 3_600)
_ANY = "any unit"

_HEDGE = re.compile(
    r"(?:about|around|nearly|almost|over|than|under|some|roughly|approximately|approx\.?|circa|ca\.|close to|just|least"
    r"|most|up to|above|below|exceed\w*|past|towards?|fast|rund|etwa|knapp|über|environ|près de)\s+[€$£¥]?$"
    r"|[~≈<>≥≤]\s?[€$£¥]?$",
    re.IGNORECASE,
)
_ITEM_NOUN = re.compile(
    r"(?:[ \-][^\W\d_]+){0,2}?[ \-](?:items?|e-?mails?|mails?|messages?|letters?|entries|entry|posts?|articles?|stories"
    r"|story|documents?|pages?|files?|checks?|sources?|updates?|notices?|notifications?|newsletters?|threads?|requests?"
    r"|replies|reply|topics?|matters?|points?|figures?|metrics?|changes?|more|others?)\b",
    re.IGNORECASE,
)
_WEEK = re.compile(r"(?:\b(?:week|wk|kw)\s?#?|\bW)$", re.IGNORECASE)
_PART_OF_YEAR = re.compile(r"\b([QH])$")
_WEEKDAY = re.compile(
    r"\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,?\s(?:the\s)?$", re.IGNORECASE
)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b")
_BELONGS = re.compile(r"\s?%|[^\W_]{1,12}(?!\w)| (?:per ?cent|thousand|million|billion)\b", re.IGNORECASE)
_PERCENT_HEAD = re.compile(r"\(%\)|\bin (?:%|percent|per cent)|%\s*\||\bpercent(?:age)?\b|\bper cent\b", re.IGNORECASE)

_SCALES = {"thousand": Decimal(1_000), "million": Decimal(1_000_000)}
_IN = re.compile(r"\bin (?:\w+ )?(thousand|million)s?\b", re.IGNORECASE)
"""What the drafter's instructions, or its figures, say of all figures: that they are in thousands."""


class Kind(StrEnum):
    """What is wrong with what a draft says."""

    LINK = "a link that is no item's, taken out"
    MARKUP = "HTML or an image, taken out"
    MENTION = "a mention, made harmless"
    CITE = "cited, but no item"
    NUMBER = "a number that is in no source"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a draft something stands: ``section`` counts from 1, 0 is the title; ``around`` are the words there."""

    section: int
    heading: str = ""
    around: str = ""

    def __str__(self) -> str:
        where = f"section {self.section}" if self.section else "the title"
        where += f' "{self.heading}"' if self.heading else ""
        return f"{where}: {self.around}" if self.around else where


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing in the model's own words that the sources do not bear out, or that no draft may say."""

    kind: Kind
    what: str
    place: Place

    def __str__(self) -> str:
        return f"{self.kind}: {self.what} ({self.place})"


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a draft as it is read: plain text without addresses, and where it stands.

    ``counts`` are numbers that may be said there of the draft itself: how many items it cites.
    """

    text: str
    place: Place
    counts: frozenset[int] = frozenset()


def told(findings: Sequence[Finding]) -> Iterator[str]:
    """Return a line for each finding, of each kind the first ``MOST_FINDINGS``, and how many more there are."""
    for kind in Kind:
        of_kind = [finding for finding in findings if finding.kind is kind]
        yield from map(str, of_kind[:MOST_FINDINGS])
        if len(of_kind) > MOST_FINDINGS:
            yield f"{kind}: {len(of_kind) - MOST_FINDINGS} more"


def around(text: str, start: int, end: int) -> str:
    """Return the words around a place in a text, on one line, marked where they go on."""
    before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
    if start > AROUND:
        before = "…" + (before.partition(" ")[2] or before)
    if end + AROUND < len(text):
        after = (after.rpartition(" ")[0] or after) + "…"
    return " ".join(f"{before}{text[start:end]}{after}".split())


class Facts:
    """The numbers, dates and times that a draft may tell: those of its items, its figures and its assignment.

    ``values`` are the numbers in the figures, exact. Where a figure or an item shows one of them rounded, what counts
    is the exact one, in its unit: 2.45 is shown as 2.5, and is not 3.
    """

    def __init__(
        self,
        items: Sequence[Item],
        figures: str,
        assignment: Iterable[str],
        slot: datetime,
        values: Sequence[Reading] = (),
    ) -> None:
        self._names: set[str] = set()
        self._days = {day_of(slot.date()), day_of(slot.date() - timedelta(days=1))}
        self._times = {(slot.hour, slot.minute)}
        self._shown: set[Decimal] = set()
        self._by_unit: defaultdict[str, set[Decimal]] = defaultdict(set, s={_HOURS_OF_A_DAY, _DAYS_OF_A_WEEK})
        self._scales: tuple[Decimal, ...] = ()
        self._exact: dict[str, Values] = {}
        assigned = tuple(assignment)
        for text in assigned:
            self._read(text)
        self._scales = tuple(
            {_SCALES[found[1].casefold()] for text in (figures, *assigned) for found in _IN.finditer(text)}
        )
        for reading in values:
            self._take(reading)
        self._exact = {
            unit: Values(one.value for one in values if one.unit == unit) for unit in {one.unit for one in values}
        }
        self._read(figures, POINT)
        for item in items:
            self._names.add(item.id.casefold())
            for text in (item.title, item.text, item.source, item.author or ""):
                self._read(text)
            if item.published is not None:
                self._days.add(day_of(item.published.date()))
                self._times.add((item.published.hour, item.published.minute))
        self.items = len(items)
        self.counts = frozenset(
            (
                len(items),
                *Counter(item.source for item in items).values(),
                *Counter(item.author for item in items).values(),
                *Counter(item.id.rstrip("0123456789") for item in items).values(),
            )
        )
        self._index = {unit: Values(values) for unit, values in {**self._by_unit, _ANY: self._shown}.items()}
        self._parts_of_days = {part for day in self._days for part in day.parts()}
        self.years = frozenset(day.year for day in self._days if day.year is not None)
        self.days_of_month = frozenset(day.day for day in self._days if day.day is not None)
        self.weeks = frozenset(week for day in self._days if (week := day.week) is not None)
        self.months = frozenset(day.month for day in self._days)

    def tell_name(self, name: str) -> bool:
        """Tell whether a source has this row of letters and digits, or just this version."""
        return name in self._names

    def tell_day(self, day: Day) -> bool:
        """Tell whether a source has the date, or one that may be it."""
        return day in self._parts_of_days or any(part in self._days for part in day.parts())

    def tell_time(self, timed: Timed) -> bool:
        """Tell whether a source has the time of day."""
        return (timed.hour, timed.minute) in self._times or (
            timed.either and (timed.hour + 12, timed.minute) in self._times
        )

    def tell(self, reading: Reading, *, roughly: bool = False) -> bool:
        """Tell whether a source has the figure, or one that rounds to it."""
        if not reading.unit:
            return self._matches(_ANY, reading.shown, reading.step, roughly)
        if self._matches(reading.unit, reading.value, reading.step * reading.factor, roughly):
            return True
        return reading.unit != "%" and self._matches("", reading.shown, reading.step, roughly)

    def _matches(self, unit: str, value: Decimal, step: Decimal, roughly: bool) -> bool:
        values = self._index.get(unit)
        if values is None:
            return False
        if values.round_to(value, step):
            return True
        return roughly and values.within(value, min(_last_digit(value, step), value * _ROUGHLY))

    def _is_exact(self, reading: Reading) -> bool:
        """Tell whether a number of a source is one that is known exactly, rounded."""
        values = self._exact.get(reading.unit)
        return values is not None and values.round_to(reading.value, reading.step * reading.factor)

    def _read(self, text: str, decimal_marks: str = ANY_MARK) -> None:
        text = plain_digits(text)
        spans: list[tuple[int, int]] = []
        for dated in dates(text):
            self._days.update(day for meant in dated.meant for day in meant)
            # A month's name beside a number is not always a date: "in March 120 units".
            spans += [(dated.start, dated.end)] if dated.in_digits else []
        for timed in times(text):
            self._times.add((timed.hour, timed.minute))
            if timed.either:
                self._times.add((timed.hour + 12, timed.minute))
        in_percent = _PERCENT_HEAD.search(text) is not None
        within = _Spans(spans)
        for quantity in quantities(text, decimal_marks):
            if quantity.start in within:
                continue
            self._names.update(_names_of_source(text, quantity))
            if any(map(self._is_exact, quantity.readings)):
                continue
            for reading in quantity.readings or quantity.parts:
                self._take_as_written(reading, in_percent)
        for reading in in_other_words(text):
            self._take_as_written(reading, in_percent)

    def _take_as_written(self, reading: Reading, in_percent: bool) -> None:
        self._take(reading)
        if not reading.unit and (in_percent or reading.shown % 1):
            self._by_unit["%"].add(reading.shown)

    def _take(self, reading: Reading) -> None:
        self._shown.add(reading.shown)
        self._by_unit[reading.unit].add(reading.value)
        for scale in () if reading.unit else self._scales:
            self._shown.add(reading.shown * scale)
            self._by_unit[""].add(reading.shown * scale)
        if not reading.unit and reading.shown < 2:
            self._by_unit["%"].add(reading.shown * 100)  # a share


def ungrounded(passages: Iterable[Passage], facts: Facts) -> Iterator[Finding]:
    """Return what the passages tell in numbers, dates and times and no source does."""
    for passage in passages:
        text = plain_digits(passage.text)
        spans: list[tuple[int, int]] = []
        wrong: list[tuple[int, int]] = []
        for dated in dates(text):
            spans.append((dated.start, dated.end))
            if not all(any(map(facts.tell_day, meant)) for meant in dated.meant):
                wrong.append(spans[-1])
        within = _Spans(spans)
        for timed in times(text):
            if timed.start not in within:
                spans.append((timed.start, timed.end))
                wrong += [] if _is_told_time(timed, facts) else [spans[-1]]
        within = _Spans(spans)
        for quantity in quantities(text):
            if quantity.start not in within and not _is_told(quantity, text, passage, facts):
                wrong.append((quantity.start, quantity.end))
        for start, end in sorted(wrong):
            place = replace(passage.place, around=around(passage.text, start, end))
            yield Finding(Kind.NUMBER, _as_written(passage.text, start, end).rstrip("."), place)


def _is_told_time(timed: Timed, facts: Facts) -> bool:
    """Tell whether a source has the time, or just its hour: "by ten", "before 8"."""
    hour = Decimal((timed.hour - 1) % 12 + 1)
    return facts.tell_time(timed) or (not timed.minute and facts.tell(Reading(hour, Decimal(1))))


def _is_told(quantity: Quantity, text: str, passage: Passage, facts: Facts) -> bool:
    before, after = text[max(0, quantity.start - 30) : quantity.start], text[quantity.end : quantity.end + 60]
    if any(map(facts.tell_name, (quantity.written, *_with_letters(text, quantity)))) or after.startswith(
        (CUT_MARK, "…")
    ):
        return True
    roughly = _HEDGE.search(before) is not None
    if any(facts.tell(reading, roughly=roughly) for reading in quantity.readings):
        return True
    if quantity.parts and all(map(facts.tell, quantity.parts)):
        return True
    whole = _whole(quantity)
    return whole is not None and (
        _is_counted(whole, quantity, after, passage, facts)
        or _is_of_a_date(whole, before, after, facts)
        or (after[:1] in (".", ")") and _begins_a_line(text, quantity.start))
    )


def _begins_a_line(text: str, place: int) -> bool:
    return not text[text.rfind("\n", 0, place) + 1 : place].strip()


def _whole(quantity: Quantity) -> int | None:
    """Return what a number counts, when it is whole and has no unit."""
    bare = [reading.shown for reading in quantity.readings if not reading.unit and not reading.shown % 1]
    return int(bare[0]) if bare else None


def _is_counted(whole: int, quantity: Quantity, after: str, passage: Passage, facts: Facts) -> bool:
    """Tell whether a number counts the items, or some of them: who reads them counts without being told to."""
    if whole in facts.counts or whole in passage.counts:
        return True
    if quantity.in_words:
        return whole <= max(2, min(facts.items, _LARGEST_COUNT))
    return whole <= facts.items and _ITEM_NOUN.match(after) is not None


def _is_of_a_date(whole: int, before: str, after: str, facts: Facts) -> bool:
    if whole in facts.years:
        return True
    if _WEEK.search(before):
        return whole in facts.weeks
    if part := _PART_OF_YEAR.search(before):
        size = 3 if part[1].upper() == "Q" else 6
        return any((month - 1) // size + 1 == whole for month in facts.months)
    return whole in facts.days_of_month and (_ORDINAL.match(after) or _WEEKDAY.search(before)) is not None


def _names_of_source(text: str, quantity: Quantity) -> Iterator[str]:
    """Return what a number of a source may be called by: with the letters it is one word with; as a version."""
    yield from _with_letters(text, quantity)
    if not quantity.readings:
        parts = quantity.written.split(".")
        yield quantity.written
        yield from (".".join(parts[:count]) for count in range(2, min(len(parts), _LONGEST_VERSION)))


def _with_letters(text: str, quantity: Quantity) -> Iterator[str]:
    if quantity.in_words:
        return
    start, end = quantity.start, quantity.end
    while start > 0 and quantity.start - start < _LONGEST_NAME and _is_of_a_word(text[start - 1]):
        start -= 1
    while end < len(text) and end - quantity.end < _LONGEST_NAME and _is_of_a_word(text[end]):
        end += 1
    if (start, end) != (quantity.start, quantity.end):
        yield text[start:end].casefold()


def _is_of_a_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _as_written(text: str, start: int, end: int) -> str:
    """Return a number with the signs and letters that belong to it."""
    if start > 0 and text[start - 1] in "€$£¥#":
        start -= 1
    behind = _BELONGS.match(text, end)
    return " ".join(text[start : behind.end() if behind else end].split())


def _last_digit(value: Decimal, step: Decimal) -> Decimal:
    """Return what the last digit is worth that is no closing zero: a hundred in 1,200."""
    while value and not value % (step * 10):
        step *= 10
    return step


class _Spans:
    """Places in a text that do not overlap, as dates do."""

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        self._spans = sorted(spans)

    def __contains__(self, place: int) -> bool:
        at = bisect_right(self._spans, (place, sys.maxsize)) - 1
        return at >= 0 and place < self._spans[at][1]
