"""One attempt at a run: what was delivered, who works on it where and until when, and what became of the message."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from drafter import Drafter, InvalidDrafter, load_drafter
from galley.bucket import Bucket
from galley.queue import MAX_RECEIVES, DeadLetter, RunQueue
from galley.retry import MOST_FAULTS
from galley.runs import Run, RunKey, RunMessage
from galley.schedules import Schedules
from galley.store import Store
from model import Model
from sources.fetch import Fetch

WITHOUT_A_WORD = "ended without a word: a crash, or the function's time limit"
"""How an attempt ended whose lease was never given up."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message as the queue handed it over.

    ``receipt`` is what its visibility is changed by; ``receives`` counts how often it was handed over, this time too.
    """

    body: str
    receipt: str
    receives: int

    @property
    def can_wait(self) -> bool:
        """Tell whether the queue hands the message out often enough for a wait and for every fault that is allowed.

        Only crashes may use up the receives: past the last one the queue buries the message without asking.
        """
        return self.receives + MOST_FAULTS < MAX_RECEIVES


@dataclass(frozen=True, slots=True)
class Workplace:
    """Everything outside that drafting touches."""

    store: Store
    queue: RunQueue
    bucket: Bucket
    schedules: Schedules
    model: Model
    fetch: Fetch
    desk_url: str
    now: Callable[[], datetime]
    drafter: Callable[[str], Drafter] = field(default=load_drafter)


@dataclass(frozen=True, slots=True)
class Done:
    """The message has done its work and may be deleted."""


@dataclass(frozen=True, slots=True)
class ComesBack:
    """The message must be delivered again; its visibility says when."""


Outcome = Done | ComesBack


@dataclass(frozen=True, slots=True)
class Attempt:
    """One delivery of a run's message, and who handles it.

    ``drafter`` is what its file says, or what is wrong with it. ``owner`` is unique for each invocation. ``began`` and
    ``deadline`` are in UTC; an invocation cannot live past its deadline, so that is the end of its lease too.
    """

    message: RunMessage
    drafter: Drafter | InvalidDrafter
    delivery: Delivery
    outside: Workplace
    owner: str
    began: datetime
    deadline: datetime

    def put_off_or_renew(self, wait: timedelta) -> Outcome:
        """Have the run's message delivered again, after the wait if it can be.

        A message whose receives must be saved for crashes is replaced by a fresh one. FIFO messages cannot be delayed,
        so that one comes at once. If the run's row says when its next attempt is due it then waits for that; otherwise
        it is tried.
        """
        if self.delivery.can_wait:
            return self.put_off(wait)
        self.outside.queue.send([self.message.renewed])
        return Done()

    def put_off(self, wait: timedelta) -> Outcome:
        """Have this very message delivered after a wait: until it is deleted, the rest of its group waits too."""
        self.outside.queue.put_off(self.delivery.receipt, wait)
        return ComesBack()


def dead_letter(
    delivery: Delivery,
    reason: str,
    detail: str,
    error: Exception | None,
    now: datetime,
    *,
    run: Run | None = None,
    key: RunKey | None = None,
) -> DeadLetter:
    """Return the letter for a message that is not tried again.

    ``run`` is its row, ``key`` what it asks for where its row cannot be had. One that cannot be read has neither.
    """
    key = key if run is None else run.key
    return DeadLetter(
        body=delivery.body,
        run=None if key is None else str(key),
        reason=reason,
        detail=detail,
        error_type="" if error is None else type(error).__name__,
        attempts=delivery.receives if run is None else run.attempts,
        first=now if run is None else run.created,
        last=now,
    )


def last_end(run: Run) -> str:
    """Return how a run's last attempt ended, as the end of a sentence about it."""
    if run.reason is None or run.owner is not None:
        return WITHOUT_A_WORD
    return f"ended with {run.reason}: {run.detail}"
