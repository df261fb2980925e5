"""What the counters of a drafter's weeks tell: outcomes, acceptance, cost for each approved draft. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from galley.instants import in_utc
from galley.runs import iso_week

LEAST_DECIDED = 5
"""Of fewer decided drafts no share is told: one decision more would change it by a fifth or more."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A drafter's counters of one or more weeks, by the names that ``Store.week`` gives them."""

    counters: Mapping[str, int]

    @property
    def drafted(self) -> int:
        """How many drafts were made."""
        return self._of("drafted")

    @property
    def slots(self) -> Mapping[str, int]:
        """How many slots came to which outcome; one that failed and was sent again is open until its next one."""
        return {
            "drafted": self.drafted,
            "empty": self._of("empty"),
            "failed": self._of("failed") - self._of("resent"),
            "skipped": self._of("skipped"),
        }

    @property
    def skipped_by_reason(self) -> Mapping[str, int]:
        """Why how many slots were skipped."""
        return dict(self._by_reason("skipped"))

    @property
    def rejected_by_reason(self) -> Mapping[str, int]:
        """Why how many drafts were rejected."""
        return dict(self._by_reason("rejected"))

    @property
    def approved(self) -> int:
        """How many drafts a person approved, with and without an edit."""
        return self._of("approved")

    @property
    def decided(self) -> int:
        """How many drafts a person decided on."""
        return self.approved + self._of("rejected")

    @property
    def drafts(self) -> Mapping[str, int]:
        """What has become of how many of the drafts; those that wait for a decision are what is left of them."""
        ended = {name: self._of(name) for name in ("approved", "rejected", "expired", "superseded", "unreviewed")}
        return {**ended, "waiting": self.drafted - sum(ended.values())}

    @property
    def edited(self) -> int:
        """How many of the approved drafts were approved with an edit."""
        return self._of("edited")

    @property
    def acceptance(self) -> float | None:
        """The share of the decided drafts that was approved; None where too few are decided."""
        return self._of_decided(self.approved)

    @property
    def acceptance_unedited(self) -> float | None:
        """The share of the decided drafts that was approved as it was written; None where too few are decided."""
        return self._of_decided(self.approved - self.edited)

    @property
    def mean_minutes_to_decision(self) -> float | None:
        """How long a decided draft waited on average, by whole minutes of each; None where none is decided."""
        return self._of("minutes_to_decision") / self.decided if self.decided else None

    @property
    def tokens(self) -> int:
        """All tokens of all calls: input, output, cache written and read."""
        return self._of("tokens")

    @property
    def cost_nanousd(self) -> int:
        """What all calls were booked at, in nano-dollars, those that came to no draft included."""
        return self._of("cost_nanousd")

    @property
    def nanousd_for_each_approved(self) -> int | None:
        """The whole cost over the approved drafts, rounded to a nano-dollar; None where none is approved."""
        return round(self.cost_nanousd / self.approved) if self.approved else None

    def json(self) -> dict[str, Any]:
        """Return all figures as JSON; null is what cannot be told."""
        return {
            "slots": dict(self.slots),
            "skipped": dict(self.skipped_by_reason),
            "drafts": dict(self.drafts),
            "edited": self.edited,
            "rejected": dict(self.rejected_by_reason),
            "resent": self._of("resent"),
            "decided": self.decided,
            "acceptance": _rounded(self.acceptance),
            "acceptance_unedited": _rounded(self.acceptance_unedited),
            "mean_minutes_to_decision": _rounded(self.mean_minutes_to_decision),
            "tokens": self.tokens,
            "cost_nanousd": self.cost_nanousd,
            "nanousd_for_each_approved": self.nanousd_for_each_approved,
        }

    def _of(self, name: str) -> int:
        return self.counters.get(name, 0)

    def _of_decided(self, number: int) -> float | None:
        return number / self.decided if self.decided >= LEAST_DECIDED else None

    def _by_reason(self, name: str) -> Iterator[tuple[str, int]]:
        for counter, number in sorted(self.counters.items()):
            whole, colon, reason = counter.partition(":")
            if colon and whole == name:
                yield reason, number


def together(weeks: Iterable[Figures]) -> Figures:
    """Return the figures of several weeks as if they were one."""
    counted: Counter[str] = Counter()
    for week in weeks:
        counted.update(week.counters)
    return Figures(counted)


def latest_weeks(now: datetime, number: int) -> tuple[str, ...]:
    """Return so many ISO weeks, by UTC, the present one first."""
    return tuple(iso_week(in_utc(now) - timedelta(weeks=ago)) for ago in range(number))


def monday_of(week: str) -> date:
    """Return the day on which an ISO week like ``2026-W13`` begins."""
    return date.fromisoformat(f"{week}-1")


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
