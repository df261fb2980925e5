"""Ticks -> dispatch and the clock -> recover, as Lambda repeats asynchronous invocations that fail."""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from galley.queue import DeadTick
from galley_cli.local.pool import FunctionError, Invocation, PoolClosed, Returned
from galley_cli.local.queue import Delivery, SqliteQueues, TickQueue
from galley_cli.local.runner import IDLE, Invoke, Report, event_of, until
from galley_cli.template import DISPATCH, RECOVER, AsyncRetries

ASYNC_WAITS = (timedelta(minutes=1), timedelta(minutes=2))
"""How long Lambda waits before the first and the second retry of an asynchronous invocation.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
"""


class TicksFeed:
    """Hands each tick to dispatch; one that fails is tried again, and in the end put among the dead ticks."""

    name = "ticks"

    def __init__(
        self,
        ticks: TickQueue,
        invoke: Invoke,
        retries: AsyncRetries,
        *,
        visibility: timedelta,
        now: Callable[[], datetime],
        report: Report,
    ) -> None:
        """Prepare the feed. ``visibility`` must be longer than dispatch may take."""
        self._ticks = ticks
        self._invoke = invoke
        self._retries = retries
        self._visibility = visibility
        self._now = now
        self._report = report

    def step(self) -> timedelta:
        """Dispatch the ticks that are due, one after the other: each takes milliseconds."""
        try:
            for delivery in self._ticks.receive(visibility=self._visibility, limit=1):
                self._settle(delivery, self._invoke(DISPATCH, event_of(delivery.body)))
        except PoolClosed:
            return IDLE
        return until(self._ticks.next_due(), self._now())

    def close(self) -> None:
        """Nothing is handled beside ``step``."""

    def _settle(self, delivery: Delivery, invocation: Invocation) -> None:
        match invocation:
            case Returned():
                self._ticks.delete(delivery.receipt)
            case FunctionError(error_type, message):
                line = f"{error_type}: {message}"
                wait = wait_before_retry(delivery.receives, self._now() - delivery.sent, self._retries)
                if wait is None:
                    self._ticks.bury(delivery.receipt, "RetriesExhausted", f"{line} ({delivery.receives} attempts)")
                    self._report(f"a tick is dead: {line}")
                else:
                    self._ticks.put_off(delivery.receipt, wait)
                    self._report(f"a tick failed and is tried again in {wait.total_seconds():.0f} s: {line}")
            case _:
                assert_never(invocation)


def wait_before_retry(attempts: int, age: timedelta, retries: AsyncRetries) -> timedelta | None:
    """Return how long Lambda waits before it repeats an asynchronous invocation; None when it gives up."""
    if attempts > retries.retries or age > retries.max_age:
        return None
    return ASYNC_WAITS[min(attempts, len(ASYNC_WAITS)) - 1]


class SweepFeed:
    """Runs recover when the clock asks for it. A sweep that was cut short is made up for by the next one."""

    name = "sweep"

    def __init__(
        self,
        queue: SqliteQueues,
        invoke: Invoke,
        retries: AsyncRetries,
        *,
        now: Callable[[], datetime],
        wake: Callable[[], None],
        report: Report,
    ) -> None:
        """Prepare the feed; nothing is asked for yet."""
        self._queue = queue
        self._invoke = invoke
        self._retries = retries
        self._now = now
        self._wake = wake
        self._report = report
        self._lock = threading.Lock()
        self._asked: _Sweep | None = None

    def ask(self, body: str, after: timedelta = timedelta()) -> None:
        """Have a sweep done after a while. Of several that were asked for, the last is done."""
        with self._lock:
            self._asked = _Sweep(body, self._now(), self._now() + after)
        self._wake()

    def step(self) -> timedelta:
        """Sweep if it is time for one."""
        with self._lock:
            sweep = self._asked
            if sweep is None or sweep.due > self._now():
                return until(None if sweep is None else sweep.due, self._now())
            self._asked = None
        with suppress(PoolClosed):  # the next start begins with a sweep
            self._settle(sweep, self._invoke(RECOVER, event_of(sweep.body)))
        return timedelta()

    def close(self) -> None:
        """Nothing is handled beside ``step``."""

    def _settle(self, sweep: "_Sweep", invocation: Invocation) -> None:
        match invocation:
            case Returned(response):
                for line in response.get("broken", []) if isinstance(response, Mapping) else []:
                    self._report(f"the sweep cannot read a schedule: {line}")
            case FunctionError(error_type, message):
                self._retry(sweep, f"{error_type}: {message}")
            case _:
                assert_never(invocation)

    def _retry(self, sweep: "_Sweep", line: str) -> None:
        now = self._now()
        wait = wait_before_retry(sweep.attempts, now - sweep.asked, self._retries)
        if wait is None:
            detail = f"{line} ({sweep.attempts} attempts)"
            self._queue.bury_tick(DeadTick(sweep.body, "RetriesExhausted", detail, now))
            self._report(f"a sweep is dead: {line}")
            return
        with self._lock:
            if self._asked is None:
                self._asked = _Sweep(sweep.body, sweep.asked, now + wait, sweep.attempts + 1)
        self._report(f"a sweep failed and is tried again in {wait.total_seconds():.0f} s: {line}")


@dataclass(frozen=True, slots=True)
class _Sweep:
    body: str
    asked: datetime
    due: datetime
    attempts: int = 1
