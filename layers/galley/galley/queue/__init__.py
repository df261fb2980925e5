"""The queues: run messages on their way, and what died on the way.

``galley.queue.sqs`` keeps them in Amazon SQS; on one machine they are in SQLite with the same semantics.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from galley.retry import RetryLater
from galley.runs import MOST_DETAIL, InvalidMessage, RunMessage, read_message
from galley.texts import clip

MAX_RECEIVES = 5
"""How often a message is received before the queue buries it: the redrive policy of template.yaml."""

RECEIVES_EXHAUSTED = "receives_exhausted"
"""The reason of a letter that the queue itself buried."""


class QueueUnavailable(RetryLater):
    """Some messages could not be sent, even after retries. ``unsent`` names their runs; the others were sent."""

    def __init__(self, unsent: Sequence[str], detail: str) -> None:
        super().__init__("queue_unavailable", f"could not send {', '.join(unsent)}: {detail}")
        self.unsent = tuple(unsent)


class RemovalFailed(Exception):
    """Some of the dead could not be removed. ``removed`` are the ids of those that were; its text is one line."""

    def __init__(self, removed: Collection[str], detail: str) -> None:
        super().__init__(f"could not remove every dead message: {detail}")
        self.removed = frozenset(removed)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that will not be tried again by itself, and why.

    ``body`` is the message as it was, readable or not. ``run`` is its key where it has one. ``first`` and ``last`` are
    the instants of its first and last attempt. A letter that the queue itself buried, after ``MAX_RECEIVES``, has the
    reason ``receives_exhausted``: the code never lived long enough to say more. Both instants are then its burial, and
    ``attempts`` its receives. Of the detail ``MOST_DETAIL`` characters are kept. ``id`` is what the queue calls a
    letter for as long as it lies there; it is none of what the letter says, and empty before the letter is buried.
    """

    body: str
    run: str | None
    reason: str
    detail: str
    error_type: str
    attempts: int
    first: datetime
    last: datetime
    id: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "detail", clip(self.detail, MOST_DETAIL))


def receives_exhausted(body: str, receives: int, at: datetime) -> DeadLetter:
    """Return the letter of a message that the queue itself buried after so many receives; ``at`` is its burial."""
    try:
        run = str(read_message(body).key)
    except InvalidMessage:
        run = None
    return DeadLetter(
        body=body,
        run=run,
        reason=RECEIVES_EXHAUSTED,
        detail=f"was received {receives} times and never finished",
        error_type="",
        attempts=receives,
        first=at,
        last=at,
    )


@dataclass(frozen=True, slots=True)
class DeadTick:
    """A tick that never became run messages, and what its sender says of it.

    ``at`` is when it died, or, where the queue knows that, the instant at which its schedule was due; then ``schedule``
    is the schedule's ARN. ``id`` is what the queue calls the tick for as long as it lies there.
    """

    body: str
    reason: str
    detail: str
    at: datetime
    schedule: str | None = None
    id: str = field(default="", compare=False)


class RunQueue(Protocol):
    """The queue of run messages: in order and one at a time for each drafter, beside each other between drafters."""

    def send(self, messages: Sequence[RunMessage]) -> None:
        """Send the messages, one request for each ten. Those that fail are retried a few times.

        Raises:
            QueueUnavailable: when some could still not be sent; it names them.
        """
        ...

    def put_off(self, receipt: str, delay: timedelta) -> None:
        """Let a message that is being handled come back after the delay (at most 12 hours from its receipt)."""
        ...

    def bury(self, letter: DeadLetter) -> None:
        """Put a message among the dead, with its reason beside it. The caller then lets the original be deleted.

        Raises:
            QueueUnavailable: when it could not be sent; the original must then stay.
        """
        ...

    def dead_runs(self, *, limit: int = 100) -> tuple[DeadLetter, ...]:
        """List dead run messages, oldest first, without taking them away. Somebody else's listing may hide some."""
        ...

    def dead_ticks(self, *, limit: int = 100) -> tuple[DeadTick, ...]:
        """List dead ticks without taking them away."""
        ...

    def remove_dead_runs(self, ids: Collection[str]) -> frozenset[str]:
        """Take away the letters of these ids, and return the ids of those that were taken away.

        One that is gone already is nothing. Somebody else's listing may hide one: it is waited for, for some seconds.

        Raises:
            RemovalFailed: when the queue could not be asked; it names those that were taken away before.
        """
        ...

    def remove_dead_ticks(self, ids: Collection[str]) -> frozenset[str]:
        """Do for dead ticks what ``remove_dead_runs`` does for letters."""
        ...
