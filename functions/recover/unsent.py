"""Runs that a person sent again and whose message never came: it is sent once more."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from galley.listing import all_watched
from galley.queue import RunQueue
from galley.runs import Status
from galley.store import Store

OVERDUE_AFTER = timedelta(hours=1)
"""How long a queued run may wait for its turn before its message is taken to be lost."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The runs whose message was sent once more, and a line for each row that could not be read."""

    runs: tuple[str, ...]
    broken: tuple[str, ...]


def send_unsent(store: Store, queue: RunQueue, *, now: datetime) -> Sent:
    """Send the message of each run that has been queued for long.

    Sending a run again writes its row first, so a crash between the two leaves a row without a message. A message that
    only waits for its turn is sent twice by this: the second one finds that the run has its outcome.

    Raises:
        galley.queue.QueueUnavailable: when some could not be sent. The next sweep tries them again.
    """
    queued = all_watched(store, Status.QUEUED)
    overdue = [run for run in queued.runs if now - run.changed > OVERDUE_AFTER]
    if overdue:
        queue.send([run.message for run in overdue])
    return Sent(tuple(str(run.key) for run in overdue), queued.unreadable)
