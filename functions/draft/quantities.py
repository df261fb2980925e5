"""Numbers as people write them, read so that two spellings of one figure can be told to be one. Pure.

A spelling may have several readings: ``1.234`` is a thousand and some to one writer and one and a bit to another, and
``5m`` are millions, metres or minutes. All of them are kept, and whoever compares is content with any.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from unicodedata import decimal

_MOST_DIGITS = 18
"""Longer rows of digits are names (accounts, keys), not figures, and are compared as they stand."""
_LARGEST = 25
"""No figure is larger than so many powers of ten: what Decimal cannot hold to the last digit it refuses to divide."""

_SPACES = " \u00a0\u2009\u202f"
_CORE = re.compile(rf"[0-9]++(?:[.,'’][0-9]++|[{_SPACES}][0-9]{{3}}(?![0-9]))*+")
_DIGITS = re.compile(r"(?![0-9])\d")
_SEPARATOR = re.compile(rf"[.,'’{_SPACES}]")

_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
_ONES += "seventeen eighteen nineteen".split()
_TENS = {name: 10 * (at + 2) for at, name in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split())}
_WORDS = {**{name: at for at, name in enumerate(_ONES)}, **_TENS}
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_FRACTION = r"thirds?|quarters?|halves|fifths?|sixths?|eighths?|tenths?"
_IN_WORDS = re.compile(
    rf"\b({_WORD})(?:[ \-]({'|'.join(_ONES[1:10])}))?(?:[ ](hundred))?\b(?![ \-](?:{_FRACTION})\b)", re.IGNORECASE
)
_ELSEWHERE: Mapping[str, int] = {
    name: at
    for names in (
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn",
        "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze",
        "dos tres cuatro cinco seis siete ocho nueve diez _ doce trece catorce quince",
        "_ tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici",
    )
    for at, name in enumerate(names.split(), start=2)
}
"""Without those that are another thing in English: once, due."""
_IN_OTHER_WORDS = re.compile(rf"\b({'|'.join(sorted(_ELSEWHERE, key=len, reverse=True))})\b", re.IGNORECASE)

_THOUSAND, _MILLION, _BILLION, _TRILLION = (Decimal(10) ** power for power in (3, 6, 9, 12))
_MAGNITUDES: Mapping[str, Decimal] = {
    **dict.fromkeys("k thousand thousands tsd tausend mille".split(), _THOUSAND),
    **dict.fromkeys("m mn mio million millions millionen".split(), _MILLION),
    **dict.fromkeys("b bn mrd billion billions milliarde milliarden milliard milliards".split(), _BILLION),
    **dict.fromkeys("tn trillion trillions".split(), _TRILLION),
}
_MINUTE, _HOUR, _DAY = Decimal(60), Decimal(3_600), Decimal(86_400)
_ONE = Decimal(1)
_UNITS: Mapping[str, tuple[str, Decimal]] = {
    **dict.fromkeys("% percent percentage pct pp prozent".split(), ("%", _ONE)),
    **dict.fromkeys("bp bps".split(), ("%", Decimal("0.01"))),
    **dict.fromkeys("ms msec millisecond milliseconds".split(), ("s", Decimal("0.001"))),
    **dict.fromkeys("s sec secs second seconds sekunden".split(), ("s", _ONE)),
    **dict.fromkeys("m min mins minute minutes minuten".split(), ("s", _MINUTE)),
    **dict.fromkeys("h hr hrs hour hours stunden".split(), ("s", _HOUR)),
    **dict.fromkeys("d day days tage tagen jours".split(), ("s", _DAY)),
    **dict.fromkeys("week weeks wochen".split(), ("s", 7 * _DAY)),
    **dict.fromkeys("month months".split(), ("month", _ONE)),
    **dict.fromkeys("year years".split(), ("month", Decimal(12))),
    **dict.fromkeys("byte bytes".split(), ("byte", _ONE)),
    **{name: ("byte", Decimal(1000) ** at) for at, name in enumerate("kb mb gb tb pb".split(), start=1)},
    **{name: ("byte", Decimal(1024) ** at) for at, name in enumerate("kib mib gib tib pib".split(), start=1)},
    **dict.fromkeys("mm millimetre millimetres".split(), ("metre", Decimal("0.001"))),
    **dict.fromkeys("cm centimetre centimetres".split(), ("metre", Decimal("0.01"))),
    **dict.fromkeys("m metre metres meter meters".split(), ("metre", _ONE)),
    **dict.fromkeys("km kilometre kilometres kilometer kilometers".split(), ("metre", Decimal(1000))),
    **dict.fromkeys("g gram grams".split(), ("gram", _ONE)),
    **dict.fromkeys("kg kilo kilos kilogram kilograms".split(), ("gram", Decimal(1000))),
    **dict.fromkeys("t ton tons tonne tonnes".split(), ("gram", _MILLION)),
    **{name: ("watt-hour", Decimal(1000) ** at) for at, name in enumerate("wh kwh mwh gwh twh".split())},
    **{name: ("watt", Decimal(1000) ** at) for at, name in enumerate("watt kw mw gw tw".split())},
    **dict.fromkeys("€ eur euro euros".split(), ("EUR", _ONE)),
    **dict.fromkeys("$ usd dollar dollars".split(), ("USD", _ONE)),
    **dict.fromkeys("£ gbp pound pounds".split(), ("GBP", _ONE)),
    **dict.fromkeys("¥ jpy yen".split(), ("JPY", _ONE)),
    **dict.fromkeys("chf francs".split(), ("CHF", _ONE)),
}
_SEVERAL: Mapping[str, tuple[tuple[str, Decimal], ...]] = {
    "m": (("s", _MINUTE), ("metre", _ONE)),
    "t": (("gram", _MILLION),),
}
_AFTER = re.compile(r"[ \u00a0\u2009\u202f\-]?(per[ ]cent|basis[ ]points|[€$£¥%]|[^\W\d_]{1,12}+)")
_BEFORE = re.compile(r"(?:(?<![^\W_])(eur|usd|gbp|chf|jpy)[ ]?|([€$£¥])[ ]?)[+\-−–]?$", re.IGNORECASE)
_NO_UNIT: tuple[tuple[str, Decimal], ...] = (("", _ONE),)
_RANGE = re.compile(r"\s?(?:-|–|—|to|and|or|bis|und|à|et)\s?[€$£¥]?")


@dataclass(frozen=True, slots=True)
class Reading:
    """A value as it is shown, in what it is counted (``unit``, "" for none that is known) and by how much that is.

    ``step`` is what the last digit shown is worth. ``factor`` makes values of one unit comparable: 90 minutes are shown
    as 90, with the unit ``s`` and the factor 60.
    """

    shown: Decimal
    step: Decimal
    unit: str = ""
    factor: Decimal = _ONE

    @property
    def value(self) -> Decimal:
        """The value in the unit's own measure."""
        return self.shown * self.factor


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a text, from ``start`` to ``end``, as it is written, and what it may mean.

    Without readings it is one that can only be compared as it stands: a version, an account. ``parts`` are the numbers
    that it may be a row of: 1,2,3.
    """

    start: int
    end: int
    written: str
    readings: tuple[Reading, ...]
    parts: tuple[Reading, ...] = ()
    in_words: bool = False


def plain_digits(text: str) -> str:
    """Return the text, as long as it was, with the digits of every script as 0 to 9."""
    return _DIGITS.sub(lambda found: str(decimal(found[0])), text)


ANY_MARK, POINT = ".,", "."
"""What may stand before decimals: in a text of unknown origin, and in one that code wrote in English."""


def quantities(text: str, decimal_marks: str = ANY_MARK) -> Iterator[Quantity]:
    """Return each number of a text, written in digits or, in English, in words; ``one`` is no number."""
    found = [(one.start(), one) for one in _CORE.finditer(text)]
    digits = [_in_digits(text, one, decimal_marks, cores=found, at=at) for at, (_, one) in enumerate(found)]
    words = [
        Quantity(
            one.start(),
            one.end(),
            one[0],
            _measured(text, one.start(), one.end(), ((_worth(one), _ONE),)),
            in_words=True,
        )
        for one in _IN_WORDS.finditer(text)
        if one[0].casefold() not in ("one", "zero")
    ]
    return iter(sorted((*digits, *words), key=lambda quantity: quantity.start))


def exact(value: Decimal, unit: str) -> tuple[Reading, ...]:
    """Return what a number that code computed may be read as; ``unit`` is what stands behind it, "" for nothing.

    Its sign is left out, as it is in a text: "fell by 4". One that is too large to be compared has no reading.
    """
    amount = abs(value)
    if amount.adjusted() > _LARGEST:
        return ()
    readings = (_reading((amount, _ONE), found) for found in _units_after(f" {unit.strip()}", 0))
    return tuple(reading for reading in readings if reading.value.adjusted() <= _LARGEST)


def in_other_words(text: str) -> Iterator[Reading]:
    """Return the numbers from two to fifteen that are written in German, French, Spanish or Italian words."""
    for found in _IN_OTHER_WORDS.finditer(text):
        yield from _measured(text, found.start(), found.end(), ((Decimal(_ELSEWHERE[found[1].casefold()]), _ONE),))


def _worth(found: re.Match[str]) -> Decimal:
    tens = _WORDS[found[1].casefold()] + (_WORDS[found[2].casefold()] if found[2] else 0)
    return Decimal(tens * (100 if found[3] else 1))


def _in_digits(
    text: str, core: re.Match[str], decimal_marks: str, *, cores: list[tuple[int, re.Match[str]]], at: int
) -> Quantity:
    values = tuple(_values(core[0], decimal_marks))
    readings = _measured(text, core.start(), core.end(), values)
    if at + 1 < len(cores):
        # "12 to 15 million": what stands behind the second is said of the first too.
        following = cores[at + 1][1]
        between = text[core.end() : following.start()]
        if len(between) <= 8 and _RANGE.fullmatch(between):
            units = _units_after(text, following.end())
            ranged = (_reading(value, unit) for value in values for unit in units if unit[2] != _ONE)
            readings += tuple(reading for reading in ranged if reading.value.adjusted() <= _LARGEST)
    parts = [part for part in _SEPARATOR.split(core[0]) if len(part) <= _MOST_DIGITS]
    is_row = "." not in core[0] if not readings else set(_SEPARATOR.findall(core[0])) & set(_SPACES)
    row = parts if len(parts) > 1 and is_row else []
    return Quantity(core.start(), core.end(), core[0], readings, tuple(Reading(Decimal(part), _ONE) for part in row))


def _values(core: str, decimal_marks: str) -> Iterator[tuple[Decimal, Decimal]]:
    """Return what a row of digits and separators may be worth, each with what its last digit is worth."""
    parts = _SEPARATOR.split(core)
    marks = _SEPARATOR.findall(core)
    if sum(map(len, parts)) > _MOST_DIGITS:
        return
    if not marks:
        yield Decimal(core), _ONE
        return
    grouped = parts[0] not in ("", "0") and len(parts[0]) <= 3 and all(len(part) in (2, 3) for part in parts[1:])
    if grouped and len(set(marks)) == 1 and len(parts[-1]) == 3 and marks[0] != decimal_marks:
        yield Decimal("".join(parts)), _ONE
    if marks[-1] in decimal_marks and marks.count(marks[-1]) == 1 and len(set(marks[:-1])) <= 1:
        if len(marks) > 1 and (len(parts[0]) > 3 or not all(len(part) in (2, 3) for part in parts[1:-1])):
            return
        yield Decimal(f"{''.join(parts[:-1])}.{parts[-1]}"), _ONE.scaleb(-len(parts[-1]))


def _measured(text: str, start: int, end: int, values: Iterable[tuple[Decimal, Decimal]]) -> tuple[Reading, ...]:
    before = _BEFORE.search(text, max(0, start - 6), start)
    currency = _UNITS[(before[1] or before[2]).casefold()] if before else None
    readings: list[Reading] = []
    for value in values:
        for name, factor, magnitude in _units_after(text, end):
            unit = (*currency, magnitude) if currency else (name, factor, magnitude)
            reading = _reading(value, unit)
            readings += [reading] if reading.value.adjusted() <= _LARGEST else []
    return tuple(dict.fromkeys(readings))


def _reading(value: tuple[Decimal, Decimal], unit: tuple[str, Decimal, Decimal]) -> Reading:
    name, factor, magnitude = unit
    return Reading(value[0] * magnitude, value[1] * magnitude, name, factor)


def _units_after(text: str, end: int) -> tuple[tuple[str, Decimal, Decimal], ...]:
    """Return what may be said behind a number: units, their factors and a magnitude before them."""
    after = _AFTER.match(text, end)
    if after is None:
        return (("", _ONE, _ONE),)
    word = after[1].casefold().replace("per cent", "%").replace("basis points", "bps")
    found = [(name, factor, _ONE) for name, factor in _units(word)]
    if word in _MAGNITUDES:
        behind = _AFTER.match(text, after.end())
        units = _units(behind[1].casefold()) if behind else ()
        found += [(name, factor, _MAGNITUDES[word]) for name, factor in units or _NO_UNIT]
    return tuple(found) or (("", _ONE, _ONE),)


def _units(word: str) -> tuple[tuple[str, Decimal], ...]:
    if word in _SEVERAL:
        return _SEVERAL[word]
    return (_UNITS[word],) if word in _UNITS else ()


class Values:
    """Values in order, so that it costs little to ask whether one of them rounds to what is shown."""

    def __init__(self, values: Iterable[Decimal]) -> None:
        self._values = sorted(set(values))

    def round_to(self, value: Decimal, step: Decimal) -> bool:
        """Tell whether a value, rounded to the step half up or half to even, is the one given, whatever its sign."""
        half = step / 2
        nearest = self._from(value - half)
        if nearest is None or nearest > value + half:
            return False
        return nearest < value + half or not (value / step) % 2

    def within(self, value: Decimal, distance: Decimal) -> bool:
        """Tell whether a value is nearer than the distance to the one given."""
        at = bisect_right(self._values, value - distance)
        return at < len(self._values) and self._values[at] < value + distance

    def _from(self, low: Decimal) -> Decimal | None:
        at = bisect_left(self._values, low)
        return self._values[at] if at < len(self._values) else None
