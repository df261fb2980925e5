"""Runs that wait for a message that seems to be lost: it is sent once more."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from abandoned import is_abandoned, last_sign
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
    """The runs whose message was sent once more, and a line for what could not be sent."""

    runs: tuple[str, ...]
    broken: tuple[str, ...]


def send_unsent(runs: Iterable[Run], store: Store, queue: RunQueue, *, now: datetime) -> SentAgain:
    """Send the message of each of the runs that has been waiting for it for long, and note that in its row.

    Sending a run again writes its row first, so a crash between the two leaves a row without a message. Whether a
    message only waits for its turn cannot be seen: if it does, the second one finds that the run was claimed.
    """
    sent: list[str] = []
    broken: list[str] = []
    for run in runs:
        if not is_unsent(run, now):
            continue
        try:
            queue.send([run.message])
            store.remind(run.key, now=now)
        except (QueueUnavailable, StoreBusy, NeverSucceeds) as error:
            broken.append(f"{run.key}: {error.detail}")
        else:
            sent.append(str(run.key))
    return SentAgain(tuple(sent), tuple(broken))


def is_unsent(run: Run, now: datetime) -> bool:
    """Tell whether a run has been waiting for its message for so long that it seems to be lost.

    Nobody works on such a run, and it gave its last lease up, if it ever had one. One that is to be ended waits for
    nothing any more.
    """
    if run.owner is not None or is_abandoned(run, now):
        return False
    match run.status:
        case Status.QUEUED:
            return now - last_sign(run) > QUEUED_FOR
        case Status.DRAFTING:
            return run.lease_is_dead(now) and now - last_sign(run) > WAITED_FOR
        case _:
            return False
