"""A message that comes so late that its schedule has been due again: only the latest slot is drafted, if that is said.

The sweep does the same for slots whose message never came (``functions/recover/catch_up.py``).
"""

from datetime import datetime, timedelta

from attempt import Delivery
from galley.contract import CatchUp
from galley.observe import logger
from galley.runs import Origin, RunMessage
from galley.schedule import InvalidSchedule
from galley.schedules import ScheduleMissing, Schedules, SchedulesUnavailable

LATE = timedelta(minutes=2)
"""How late a tick's message is looked at. One that is in time costs no request: Scheduler's precision is a minute."""


def newer_slot(message: RunMessage, delivery: Delivery, schedules: Schedules, now: datetime) -> datetime | None:
    """Return the next slot of the message's schedule, if it is due and the contract has only the latest drafted.

    Only a late message of a tick is looked at, and only when it is received for the first time: one that comes again
    was begun, most likely, and a begun run goes on. A schedule that cannot be had keeps nothing from being drafted.
    """
    is_first = delivery.receives == 1 and message.resend == message.renewal == 0
    if not is_first or message.origin is not Origin.SCHEDULE or message.contract.catch_up is not CatchUp.LATEST:
        return None
    if message.schedule is None or now - message.slot <= LATE:
        return None
    try:
        due = schedules.get(message.schedule).due(message.slot + timedelta(seconds=1), now)
    except (ScheduleMissing, InvalidSchedule, SchedulesUnavailable) as error:
        logger.warning("whether a newer slot than %s is due cannot be told: %s", message.key, error)
        return None
    return due[-1] if due else None
