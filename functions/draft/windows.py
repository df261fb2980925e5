"""The window of a run: (previous slot, slot], as its schedule keeps time."""

from datetime import timedelta

from drafter import Drafter
from galley.retry import NeverSucceeds
from galley.runs import RunMessage
from galley.schedule import InvalidSchedule, zone
from galley.schedules import ScheduleMissing, Schedules
from shapes.shape import Window

_MOMENT = timedelta(seconds=1)


def window_of(message: RunMessage, drafter: Drafter, schedules: Schedules) -> Window:
    """Return the window of a run.

    A run without a schedule uses the drafter's own period and timezone; so does the first slot that a schedule has.

    Raises:
        galley.retry.NeverSucceeds: when the schedule is gone or cannot be read.
    """
    period = timedelta(hours=drafter.period_hours)
    if message.schedule is None:
        return Window(message.slot - period, message.slot, zone(drafter.timezone))
    try:
        calendar = schedules.get(message.schedule).calendar()
    except ScheduleMissing as error:
        raise NeverSucceeds("schedule_missing", f"schedule {message.schedule} is gone: {error}") from error
    except InvalidSchedule as error:
        raise NeverSucceeds("invalid_schedule", f"schedule {message.schedule}: {error}") from error
    previous = calendar.latest_until(message.slot - _MOMENT)
    if previous is None:
        return Window(message.slot - period, message.slot, calendar.zone)
    return Window(previous, message.slot, calendar.zone, calendar.latest_until(previous - _MOMENT))
