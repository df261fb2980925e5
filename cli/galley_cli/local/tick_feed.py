"""Ticks -> dispatch, as Lambda repeats asynchronous invocations that fail."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import assert_never

from galley_cli.local.pool import FunctionError, Invocation, PoolClosed, Returned
from galley_cli.local.queue import RETRIES_EXHAUSTED, Delivery, TickQueue
from galley_cli.local.runner import IDLE, Invoke, Report, event_of, until, wait_before_retry
from galley_cli.template import DISPATCH, AsyncRetries


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
                    self._ticks.bury(delivery.receipt, RETRIES_EXHAUSTED, f"{line} ({delivery.receives} attempts)")
                    self._report(f"a tick is dead: {line}")
                else:
                    self._ticks.put_off(delivery.receipt, wait)
                    self._report(f"a tick failed and is tried again in {wait.total_seconds():.0f} s: {line}")
            case _:
                assert_never(invocation)
