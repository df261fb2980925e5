"""How fast the slots of five years are found, beside cronsim with the same rule applied.

cronsim by itself moves what a gap swallows to the gap's end. It is therefore asked for wall times without a zone, and
those are dropped that do not come back from UTC as they were: what is left is EventBridge's rule, first pass only.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from time import process_time

from bench.figures import spread, table
from galley.schedule import calendar_of, zone

EXPRESSION, TIMEZONE = "cron(0/15 8-18 ? * MON-FRI *)", "America/New_York"
BY_CRONSIM = "*/15 8-18 * * MON-FRI"
FIRST = datetime(2022, 1, 1, tzinfo=UTC)
FIVE_YEARS = timedelta(days=5 * 365 + 1)


@dataclass(frozen=True, slots=True)
class Enumerated:
    """The CPU seconds of both sides, round by round, for the same slots."""

    slots: int
    ours: tuple[float, ...]
    cronsims: tuple[float, ...]

    def report(self) -> str:
        """Return the figures as a table in Markdown."""
        ratio = median(theirs / ours for ours, theirs in zip(self.ours, self.cronsims, strict=True))
        rows = (
            ("Galley", _milliseconds(self.ours), f"{self.slots / median(self.ours):,.0f}", "1"),
            ("cronsim", _milliseconds(self.cronsims), f"{self.slots / median(self.cronsims):,.0f}", f"{ratio:.1f}"),
        )
        return f"Enumerating five years of `{EXPRESSION}` in {TIMEZONE} ({self.slots:,} slots):\n\n" + table(
            ("side", "CPU time", "slots in a second", "it / Galley's"), rows
        )


def measure(span: timedelta = FIVE_YEARS, rounds: int = 7) -> Enumerated:
    """Enumerate on both sides by turns; each round begins with the expression's text.

    Raises:
        RuntimeError: when the two sides find different slots.
    """
    end = FIRST + span
    _same(_ours(FIRST, end), _by_cronsim(FIRST, end))
    ours, cronsims = [], []
    for _ in range(rounds):
        ours.append(_seconds(lambda: _ours(FIRST, end)))
        cronsims.append(_seconds(lambda: _by_cronsim(FIRST, end)))
    return Enumerated(len(list(_ours(FIRST, end))), tuple(ours), tuple(cronsims))


def _ours(first: datetime, end: datetime) -> Iterator[datetime]:
    return calendar_of(EXPRESSION, TIMEZONE, first).between(first, end)


def _by_cronsim(first: datetime, end: datetime) -> Iterator[datetime]:
    from cronsim import CronSim

    clocks = zone(TIMEZONE)
    for wall in CronSim(BY_CRONSIM, (first - timedelta(days=1)).replace(tzinfo=None)):
        slot = wall.replace(tzinfo=clocks, fold=0).astimezone(UTC)
        if slot >= end:
            return
        if slot >= first and slot.astimezone(clocks).replace(tzinfo=None) == wall:
            yield slot


def _seconds(slots: Callable[[], Iterator[datetime]]) -> float:
    begun = process_time()
    for _ in slots():
        pass
    return process_time() - begun


def _same(ours: Iterator[datetime], theirs: Iterator[datetime]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        if one != other:
            raise RuntimeError(f"Galley finds {one.isoformat()} where cronsim finds {other.isoformat()}")


def _milliseconds(seconds: tuple[float, ...]) -> str:
    return spread([1000 * one for one in seconds], "ms", 1)
