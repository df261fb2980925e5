"""Tallies: what is kept of a metric's values, instead of the values. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal

EXACT = Context(prec=60)
"""Sums of figures are exact as long as they have no more than 60 digits."""
WITHOUT_INSTANT = datetime.min.replace(tzinfo=UTC)
"""Stands for the instant of a row that has a date alone."""

At = tuple[date, datetime]
"""When a row is of: its local day, and its instant where it has one."""


@dataclass(slots=True)
class Tally:
    """What is known of one metric's values: enough for every aggregate, and it can be merged with another.

    ``places`` is the largest number of decimals that a value was written with. ``last`` is the value of the latest day,
    on it of the latest instant, and of rows that are alike in both the one that stands last.
    """

    count: int = 0
    total: Decimal = Decimal(0)
    low: Decimal | None = None
    high: Decimal | None = None
    last: Decimal | None = None
    last_at: At = (date.min, WITHOUT_INSTANT)
    places: int = 0

    def add(self, value: Decimal, at: At) -> None:
        """Take one value in."""
        self.count += 1
        self.total = EXACT.add(self.total, value)
        self.low = value if self.low is None else min(self.low, value)
        self.high = value if self.high is None else max(self.high, value)
        if at >= self.last_at:
            self.last, self.last_at = value, at
        exponent = value.as_tuple().exponent
        self.places = max(self.places, -exponent if isinstance(exponent, int) else 0)

    def merge(self, other: "Tally") -> None:
        """Take in what was tallied of other rows, which stand later in the table."""
        self.count += other.count
        self.total = EXACT.add(self.total, other.total)
        self.low = min((low for low in (self.low, other.low) if low is not None), default=None)
        self.high = max((high for high in (self.high, other.high) if high is not None), default=None)
        if other.last is not None and other.last_at >= self.last_at:
            self.last, self.last_at = other.last, other.last_at
        self.places = max(self.places, other.places)


Tallies = dict[str, Tally]
"""A tally for each metric that is no ratio, by its name."""


def put_together(parts: Iterable[Tallies]) -> Tallies:
    """Return several tallies of each metric as one."""
    whole: Tallies = {}
    for part in parts:
        for name, tally in part.items():
            whole.setdefault(name, Tally()).merge(tally)
    return whole
