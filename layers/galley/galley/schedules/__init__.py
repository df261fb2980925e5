"""The schedules as they are deployed. What fires is the truth: nobody keeps a copy of them in a file.

``galley.schedules.eventbridge`` asks EventBridge Scheduler; on one machine template.yaml itself is what fires.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from galley.instants import in_utc
from galley.retry import RetryLater
from galley.schedule import Calendar, calendar_of


class ScheduleState(StrEnum):
    """Whether a schedule is due at its slots at all, in Scheduler's own words."""

    ENABLED = "ENABLED"
    DISABLED = "DISABLED"


@dataclass(frozen=True, slots=True)
class ScheduleSummary:
    """A schedule as a listing shows it: enough to tell whether it is still what it was when it was last read."""

    name: str
    arn: str
    enabled: bool
    modified: datetime


@dataclass(frozen=True, slots=True)
class ScheduleDefinition:
    """One schedule: its expression, its timezone (an IANA name) and its input, as deployed.

    ``arn`` is what a tick names it by. Instants are in UTC; ``start`` and ``end`` bound the slots where they are set.
    """

    name: str
    arn: str
    expression: str
    timezone: str
    input: str
    enabled: bool
    created: datetime
    modified: datetime
    start: datetime | None = None
    end: datetime | None = None

    def calendar(self) -> Calendar:
        """Return the schedule's slots; a rate without a start counts from the schedule's creation.

        Raises:
            galley.schedule.InvalidSchedule: one line that names what is wrong with the expression or the timezone.
        """
        return calendar_of(self.expression, self.timezone, self.created, start=self.start, end=self.end)

    def due(self, first: datetime, end: datetime) -> tuple[datetime, ...]:
        """Return the slots in ``[first, end)`` at which the schedule was to fire, oldest first, to the second.

        It fires nothing while it is disabled, and nothing fired by its expression before its creation or last change.

        Raises:
            galley.schedule.InvalidSchedule: one line that names what is wrong with the expression or the timezone.
        """
        if not self.enabled:
            return ()
        since = max(in_utc(first), in_utc(self.created), in_utc(self.modified))
        return tuple(slot.replace(microsecond=0) for slot in self.calendar().between(since, end))

    def due_before(self, moment: datetime, count: int) -> tuple[datetime, ...]:
        """Return the last slots before a moment at which the schedule was to fire, at most ``count``, oldest first.

        As ``due`` does, it knows of none before the schedule's creation or last change.

        Raises:
            galley.schedule.InvalidSchedule: one line that names what is wrong with the expression or the timezone.
        """
        since = max(in_utc(self.created), in_utc(self.modified))
        end, span = in_utc(moment), timedelta(days=1)
        while len(found := self.due(end - span, end)) < count and end - span > since:
            span *= 4
        return found[-count:]

    @property
    def summary(self) -> ScheduleSummary:
        """The schedule as a listing shows it."""
        return ScheduleSummary(self.name, self.arn, self.enabled, self.modified)


class SchedulesUnavailable(RetryLater):
    """EventBridge Scheduler gave no answer; it may later."""

    def __init__(self, detail: str) -> None:
        super().__init__("schedules_unavailable", detail)


class ScheduleMissing(Exception):
    """There is no schedule by that ARN (any more)."""


class ScheduleNotUnderstood(Exception):
    """A schedule has a part that this version cannot write back. Nothing was changed; its text is one line."""


class Schedules(Protocol):
    """The schedules of one group."""

    def all(self) -> tuple[ScheduleDefinition, ...]:
        """Return every schedule of the group, by name."""
        ...

    def listed(self) -> tuple[ScheduleSummary, ...]:
        """Return every schedule of the group as a listing shows it: a request for each page, none for a schedule."""
        ...

    def get(self, arn: str) -> ScheduleDefinition:
        """Return one schedule.

        Raises:
            ScheduleMissing: when there is none by that ARN.
        """
        ...


class SwitchableSchedules(Schedules, Protocol):
    """Schedules that can be enabled and disabled where they are deployed."""

    def switch(self, arn: str, state: ScheduleState) -> ScheduleDefinition:
        """Enable or disable one schedule, leave all else of it as it is, and return it as it is then.

        One that is in that state already is not written: its last change stays when it was.

        Raises:
            ScheduleMissing: when there is none by that ARN.
            ScheduleNotUnderstood: when writing it back would lose a part of it; nothing was changed.
        """
        ...
