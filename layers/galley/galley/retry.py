"""The two ways in which work fails, and when it is tried again.

Whoever raises an error says which way it is by its class. ``RetryLater``: the same work may succeed later; with an
``AnswerLost`` it may have been done all the same, and a ``Fault`` was foreseen by nobody. ``NeverSucceeds``: doing it
again would only cost money. ``judged`` sorts everything else.
"""

import hashlib
from datetime import datetime, timedelta


class RetryLater(Exception):
    """The same work may succeed later: throttling, overload, a time-out, a broken connection.

    ``reason`` is a short code (``overloaded``, ``timeout``); ``after`` is what the other side asked for, if it did.
    """

    def __init__(self, reason: str, detail: str, after: timedelta | None = None) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.after = after


class AnswerLost(RetryLater):
    """A request was sent and its answer never came: nobody knows whether it was done, nor whether it is billed."""


class Fault(RetryLater):
    """Nobody foresaw this error. It is tried again a few times only: most likely it is a fault of our own."""


class NeverSucceeds(Exception):
    """Doing the same again would only cost money: a refusal, a truncated answer, a wrong setting.

    ``reason`` is a short code (``refusal``, ``unknown_drafter``); ``detail`` is one line for a person.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class SpendLimitReached(NeverSucceeds):
    """The account's own spend limit: no run of this drafter succeeds until a person raises it."""


FIRST_WAIT = timedelta(seconds=30)
LONGEST_WAIT = timedelta(minutes=15)
LONGEST_RETRY_AFTER = timedelta(hours=1)

MOST_ATTEMPTS = 20
"""How often a run is tried whose waiting no grace ends: about three hours of an outage."""

MOST_FAULTS = 3
"""How many attempts may meet a fault, or end without a word: a crash, the function's time limit."""

DELIVERY = timedelta(minutes=1)
"""What is left of the grace for a message's way back when its last wait is cut short."""


def judged(error: Exception) -> RetryLater | NeverSucceeds:
    """Return an error as one of the two ways in which work fails."""
    match error:
        case RetryLater() | NeverSucceeds():
            return error
        case _:
            return Fault("unexpected_error", f"{type(error).__name__}: {error}")


def faults_exhausted(faults: int) -> bool:
    """Tell whether a run that has met so many faults is not tried again."""
    return faults >= MOST_FAULTS


def wait_after(attempt: int, run: str, retry_after: timedelta | None = None) -> timedelta:
    """Return how long to wait after the given attempt (1 for the first) of a run, before the next one.

    The wait doubles from 30 seconds to 15 minutes, less up to a quarter of it, drawn from a hash of the run and the
    attempt, so that runs that failed together do not come back together. It is never sooner than what the other side
    asked for, as long as that is at most an hour: a ``retry-after`` of 84 hours has been seen, and means nothing.
    """
    doubled = FIRST_WAIT * (1 << min(max(attempt, 1) - 1, 10))
    whole = min(doubled, LONGEST_WAIT)
    share = int.from_bytes(hashlib.sha256(f"{run}#{attempt}".encode()).digest()[:4]) / 2**32
    wait = whole - whole * share / 4
    return wait if retry_after is None else max(wait, min(retry_after, LONGEST_RETRY_AFTER))


def next_attempt(
    attempt: int,
    run: str,
    *,
    now: datetime,
    retry_after: timedelta | None = None,
    grace_ends: datetime | None = None,
) -> datetime | None:
    """Return when a run is tried again after the given attempt (1 for the first); None when it is not.

    A run that no grace binds (``grace_ends`` is None) is tried ``MOST_ATTEMPTS`` times. Any other is tried until its
    grace ends, however often that is; its last wait is cut short so that one attempt still comes within it, unless the
    other side asked not to be called before.
    """
    wait = wait_after(attempt, run, retry_after)
    if grace_ends is None:
        return now + wait if attempt < MOST_ATTEMPTS else None
    left = grace_ends - DELIVERY - now
    if wait <= left:
        return now + wait
    soonest = FIRST_WAIT if retry_after is None else max(FIRST_WAIT, min(retry_after, LONGEST_RETRY_AFTER))
    return now + left if left >= soonest else None


def backoff(attempt: int, first_seconds: float, share: float) -> float:
    """Return how many seconds to wait before a request's next attempt, after ``attempt`` of them (1 for the first).

    The most that it can be doubles with each attempt; ``share`` (0 to 1, drawn at random) is how much of it is waited,
    so that callers that collided do not come back together.
    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    """
    return first_seconds * 2.0**attempt * share
