"""The clock: sends each schedule's tick when it is due, as EventBridge Scheduler does, while the system runs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from galley.instants import in_utc
from galley.schedule import Calendar
from galley_cli.local.runner import IDLE
from galley_cli.template import TemplateSchedule


@dataclass(frozen=True, slots=True)
class Due:
    """A schedule's slot that has come."""

    schedule: TemplateSchedule
    slot: datetime


class Clock:
    """Watches the enabled schedules. It fires what comes due while it runs; what was missed before is the sweep's.

    It never sleeps long, so it looks again soon after a suspended laptop woke up or its clock was set.
    """

    name = "clock"

    def __init__(
        self,
        schedules: Sequence[tuple[TemplateSchedule, datetime]],
        fire: Callable[[Due], None],
        now: Callable[[], datetime],
        *,
        since: datetime,
    ) -> None:
        """Fire what comes due after ``since``.

        Each schedule comes with the instant of its creation, from which a rate without a StartDate counts.
        """
        self._calendars = [(one, one.calendar(created)) for one, created in schedules if one.enabled]
        self._fire = fire
        self._now = now
        self._looked = in_utc(since)

    def step(self) -> timedelta:
        """Fire what came due since the last look, and return how long to sleep before the next one.

        When the machine's clock was set back, it goes on from there: slots are fired again rather than never, and a
        slot that has a row stays as it is, however often its tick comes.
        """
        now = in_utc(self._now())
        for due in due_between(self._calendars, self._looked, now):
            self._fire(due)
        self._looked = now
        coming = [slot for _, calendar in self._calendars if (slot := _soon(calendar, now)) is not None]
        return min([IDLE, *(slot - now for slot in coming)])

    def close(self) -> None:
        """Nothing is handled beside ``step``."""


def due_between(
    calendars: Sequence[tuple[TemplateSchedule, Calendar]], looked: datetime, now: datetime
) -> Iterator[Due]:
    """Yield the slots in ``(looked, now]``, oldest first.

    A slot older than its schedule's retry age is left out: Scheduler gives up then too, and the sweep records it.
    """
    tick = timedelta(microseconds=1)
    due = [
        Due(schedule, slot)
        for schedule, calendar in calendars
        for slot in calendar.between(max(looked + tick, now - schedule.retry_age), now + tick)
    ]
    yield from sorted(due, key=lambda one: (one.slot, one.schedule.name))


def _soon(calendar: Calendar, now: datetime) -> datetime | None:
    tick = timedelta(microseconds=1)
    return next(calendar.between(now + tick, now + IDLE), None)
