"""One attempt at a run: what was delivered, who works on it where and until when, and what became of the message."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from drafter import Drafter, InvalidDrafter, load_drafter
from galley.bucket import Bucket
from galley.queue import MAX_RECEIVES, DeadLetter, RunQueue
from galley.runs import Run, RunKey, RunMessage
from galley.schedules import Schedules
from galley.store import Store
from model import Model
from sources.fetch import Fetch


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message as the queue handed it over.

    ``receipt`` is what its visibility is changed by; ``receives`` counts how often it was handed over, this time too.
    """

    body: str
    receipt: str
    receives: int

    @property
    def is_last(self) -> bool:
        """Tell whether the queue buries the message instead of handing it over once more."""
        return self.receives >= MAX_RECEIVES


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


def dead_letter(
    delivery: Delivery,
    reason: str,
    detail: str,
    error: Exception | None,
    now: datetime,
    run: Run | None = None,
    key: RunKey | None = None,
) -> DeadLetter:
    """Return the letter for a message that is not tried again.

    ``run`` is its row, ``key`` what it asks for where there is no row. One that cannot even be read has neither.
    """
    key = key if run is None else run.key
    return DeadLetter(
        body=delivery.body,
        run=None if key is None else str(key),
        reason=reason,
        detail=detail,
        error_type="" if error is None else type(error).__name__,
        attempts=1 if run is None else run.attempts,
        first=now if run is None else run.created,
        last=now,
    )
