"""Runs that a person sent again and whose message never came: it is sent once more."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from galley.listing import all_watched
from galley.queue import QueueUnavailable, RunQueue
from galley.runs import Status
from galley.store import Store

OVERDUE_AFTER = timedelta(hours=1)
"""How long a queued run may wait for its turn before its message is taken to be lost."""


@dataclass(frozen=True, slots=True)
class SentAgain:
    """The runs whose message was sent once more, and a line for what could not be read or sent."""

    runs: tuple[str, ...]
    broken: tuple[str, ...]


def send_unsent(store: Store, queue: RunQueue, *, now: datetime) -> SentAgain:
    """Send the message of each run that has been queued for long.

    Sending a run again writes its row first, so a crash between the two leaves a row without a message. Whether a
    message only waits for its turn cannot be seen: each sweep sends one more until the run is claimed, and those that
    come later find that it was.
    """
    queued = all_watched(store, Status.QUEUED)
    overdue = [run for run in queued.runs if now - run.changed > OVERDUE_AFTER]
    sent = tuple(str(run.key) for run in overdue)
    try:
        if overdue:
            queue.send([run.message for run in overdue])
    except QueueUnavailable as error:
        return SentAgain(tuple(run for run in sent if run not in error.unsent), (*queued.unreadable, error.detail))
    return SentAgain(sent, queued.unreadable)
