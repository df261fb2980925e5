"""What AWS does between a queue and a function: hands out, judges the answer, repeats, and gives up.

Each feed is a loop over one source (the run messages, the ticks, the table's stream) in front of one function. A feed
keeps nothing in memory that matters: whatever is cut short is still in its queue.
"""

import json
import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from galley_cli.local.pool import Invocation
from galley_cli.template import AsyncRetries

IDLE = timedelta(seconds=15)
"""How long a feed sleeps at most when nothing changes."""

AFTER_AN_ERROR = timedelta(seconds=1)
"""How long a feed waits when its source could not be read or written."""

ASYNC_WAITS = (timedelta(minutes=1), timedelta(minutes=2))
"""How long Lambda waits before the first and the second retry of an asynchronous invocation.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
"""

_logger = logging.getLogger(__name__)

Invoke = Callable[[str, Any], Invocation]
"""Has a function (by its name) handle an event."""

Report = Callable[[str], None]
"""Tells a person one line."""


class Feed(Protocol):
    """One loop of the system. ``step`` does what there is to do and returns how long it may sleep unless woken."""

    name: str

    def step(self) -> timedelta:
        """Do what there is to do now."""
        ...

    def close(self) -> None:
        """Wait for what is being handled. Called when nothing is invoked any more."""
        ...


class Runner:
    """Runs each feed in a thread of its own, and wakes them all when anything changed."""

    def __init__(self, feeds: Sequence[Feed], report: Report) -> None:
        """Prepare the threads; none runs yet."""
        self._feeds = feeds
        self._report = report
        self._stop = threading.Event()
        self._woken = {feed.name: threading.Event() for feed in feeds}
        self._threads = [threading.Thread(target=self._loop, args=(feed,), name=feed.name) for feed in feeds]

    def start(self) -> None:
        """Start the loops."""
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Let every feed look again now."""
        for woken in self._woken.values():
            woken.set()

    def stop(self) -> None:
        """Let no loop begin another step."""
        self._stop.set()
        self.wake()

    def join(self) -> None:
        """Wait for the steps under way, and for what they handed out."""
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        for feed in self._feeds:
            feed.close()

    def _loop(self, feed: Feed) -> None:
        woken = self._woken[feed.name]
        trouble = ""
        while not self._stop.is_set():
            woken.clear()
            try:
                pause = feed.step()
                trouble = ""
            except Exception as error:
                if trouble != repr(error):
                    trouble = repr(error)
                    _logger.exception("the feed of %s met an error", feed.name)
                    self._report(f"{feed.name}: {str(error) or trouble}; trying again")
                pause = AFTER_AN_ERROR
            if pause > timedelta() and not self._stop.is_set():
                woken.wait(pause.total_seconds())


def failed_items(response: Any, known: Collection[str]) -> frozenset[str]:
    """Return which items of a batch a partial batch response calls failed.

    No answer, an empty one and an empty list mean that all succeeded. An answer that cannot be understood, or that
    names an item that was not in the batch, means that all failed.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting
    """
    if response is None:
        return frozenset()
    if not isinstance(response, Mapping):
        return frozenset(known)
    failures = response.get("batchItemFailures")
    if failures is None:
        return frozenset()
    if not isinstance(failures, list):
        return frozenset(known)
    named = [failure.get("itemIdentifier") if isinstance(failure, Mapping) else None for failure in failures]
    if not all(isinstance(name, str) and name in known for name in named):
        return frozenset(known)
    return frozenset(name for name in named if isinstance(name, str))


def event_of(body: str) -> Any:
    """Return a message's body as Lambda gives it to a function: what the JSON says, else the text."""
    try:
        return json.loads(body)
    except json.JSONDecodeError:
        return body


def until(due: datetime | None, now: datetime) -> timedelta:
    """Return how long to sleep until something is due, at most ``IDLE``."""
    return IDLE if due is None else min(max(due - now, timedelta()), IDLE)


def wait_before_retry(attempts: int, age: timedelta, retries: AsyncRetries) -> timedelta | None:
    """Return how long Lambda waits before it repeats an asynchronous invocation; None when it gives up."""
    if attempts > retries.retries or age > retries.max_age:
        return None
    return ASYNC_WAITS[min(attempts, len(ASYNC_WAITS)) - 1]
