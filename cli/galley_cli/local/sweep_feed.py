"""The clock -> recover, as Lambda repeats asynchronous invocations that fail."""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from galley.queue import DeadTick
from galley_cli.local.pool import FunctionError, Invocation, PoolClosed, Returned
from galley_cli.local.queue import RETRIES_EXHAUSTED, SqliteQueues
from galley_cli.local.runner import Invoke, Report, event_of, until, wait_before_retry
from galley_cli.template import RECOVER, AsyncRetries


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
                    self._report(f"the sweep found something broken: {line}")
            case FunctionError(error_type, message):
                self._retry(sweep, f"{error_type}: {message}")
            case _:
                assert_never(invocation)

    def _retry(self, sweep: "_Sweep", line: str) -> None:
        now = self._now()
        wait = wait_before_retry(sweep.attempts, now - sweep.asked, self._retries)
        if wait is None:
            detail = f"{line} ({sweep.attempts} attempts)"
            self._queue.bury_tick(DeadTick(sweep.body, RETRIES_EXHAUSTED, detail, now))
            self._report(f"a sweep is dead: {line}")
            return
        with self._lock:
            if self._asked is None:
                self._asked = _Sweep(sweep.body, sweep.asked, now + wait, sweep.attempts + 1)
            next_one = max(self._asked.due - now, timedelta())
        self._report(f"a sweep failed, and the next is in {next_one.total_seconds():.0f} s: {line}")


@dataclass(frozen=True, slots=True)
class _Sweep:
    body: str
    asked: datetime
    due: datetime
    attempts: int = 1
