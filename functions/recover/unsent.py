"""Runs that wait for a message that seems to be lost: it is sent once more."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from abandoned import last_sign
from galley.listing import all_watched
from galley.queue import QueueUnavailable, RunQueue
from galley.retry import NeverSucceeds
from galley.runs import Run, Status
from galley.store import Store, StoreBusy

QUEUED_FOR = timedelta(hours=1)
"""How long a run may be queued, or its message have been sent once more, before it is sent again."""

WAITED_FOR = timedelta(hours=2)
"""The same of a begun run, from when its next attempt was due: its message may stand in a long line."""


@dataclass(frozen=True, slots=True)
class SentAgain:
    """The runs whose message was sent once more, and a line for what could not be read or sent."""

    runs: tuple[str, ...]
    broken: tuple[str, ...]


def send_unsent(store: Store, queue: RunQueue, *, now: datetime) -> SentAgain:
    """Send the message of each run that has been waiting for it for long, and note that in its row.

    Sending a run again writes its row first, so a crash between the two leaves a row without a message. Whether a
    message only waits for its turn cannot be seen: if it does, the second one finds that the run was claimed.
    """
    sent: list[str] = []
    broken: list[str] = []
    for status, patience in ((Status.QUEUED, QUEUED_FOR), (Status.DRAFTING, WAITED_FOR)):
        waiting = all_watched(store, status)
        broken += waiting.unreadable
        for run in waiting.runs:
            if _waits(run, now) and now - last_sign(run) > patience:
                try:
                    queue.send([run.message])
                    store.remind(run.key, now=now)
                except (QueueUnavailable, StoreBusy, NeverSucceeds) as error:
                    broken.append(f"{run.key}: {error.detail}")
                else:
                    sent.append(str(run.key))
    return SentAgain(tuple(sent), tuple(broken))


def _waits(run: Run, now: datetime) -> bool:
    """Tell whether nobody works on the run, and it gave its last lease up, if it ever had one."""
    return run.owner is None and (run.status is Status.QUEUED or run.lease_is_dead(now))
