"""The queues: run messages on their way, and what died on the way.

``galley.queue.sqs`` keeps them in Amazon SQS; on one machine they are in SQLite with the same semantics.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from galley.retry import RetryLater
from galley.runs import MOST_DETAIL, InvalidMessage, RunMessage, read_message
from galley.texts import clip

MAX_RECEIVES = 5
"""How often a message is received before the queue buries it: the redrive policy of template.yaml."""

RECEIVES_EXHAUSTED = "receives_exhausted"
"""The reason of a letter that the queue buried, or a worker that had to wait at the last receive."""


class QueueUnavailable(RetryLater):
    """Some messages could not be sent, even after retries. ``unsent`` names their runs; the others were sent."""

    def __init__(self, unsent: Sequence[str], detail: str) -> None:
        super().__init__("queue_unavailable", f"could not send {len(unsent)} messages ({', '.join(unsent)}): {detail}")
        self.unsent = tuple(unsent)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that will not be tried again by itself, and why.

    ``body`` is the message as it was, readable or not. ``run`` is its key where it has one. ``first`` and ``last`` are
    the instants of its first and last attempt. A letter that the queue itself buried, after ``MAX_RECEIVES``, has the
    reason ``receives_exhausted``: the code never lived long enough to say more. Both instants are then its burial. A
    worker that had to wait at the last receive buries the message under the same reason, and says for what it waited.
    Of the detail ``MOST_DETAIL`` characters are kept.
    """

    body: str
    run: str | None
    reason: str
    detail: str
    error_type: str
    attempts: int
    first: datetime
    last: datetime

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
    """A tick that never became run messages, and what its sender says of it."""

    body: str
    reason: str
    detail: str
    at: datetime


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
