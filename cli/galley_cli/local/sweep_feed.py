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
        self._asked: dict[datetime, _Sweep] = {}

    def ask(self, body: str, at: datetime | None = None) -> None:
        """Have a sweep done, now or at an instant. Of all that are due, or asked for the same instant, one is done."""
        now = self._now()
        with self._lock:
            self._asked[at or now] = _Sweep(body, now, at or now)
        self._wake()

    def step(self) -> timedelta:
        """Sweep if it is time for one."""
        now = self._now()
        with self._lock:
            due = sorted(at for at in self._asked if at <= now)
            if not due:
                return until(min(self._asked, default=None), now)
            sweep = [self._asked.pop(at) for at in due][-1]
        with suppress(PoolClosed):  # the next start begins with a sweep
            self._settle(sweep, self._invoke(RECOVER, event_of(sweep.body)))
        return timedelta()

    def close(self) -> None:
        """Nothing is handled beside ``step``."""

    def _settle(self, sweep: "_Sweep", invocation: Invocation) -> None:
        match invocation:
            case Returned(response):
                found = response if isinstance(response, Mapping) else {}
                for line in found.get("broken", []):
                    self._report(f"the sweep found something broken: {line}")
                for line in found.get("gone", []):
                    self._report(line)
                for line in found.get("silent", []):
                    self._report(f"a drafter has gone silent: {line}")
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
            if min(self._asked, default=now + wait) >= now + wait:
                self._asked[now + wait] = _Sweep(sweep.body, sweep.asked, now + wait, sweep.attempts + 1)
            next_one = max(min(self._asked) - now, timedelta())
        self._report(f"a sweep failed, and the next is in {next_one.total_seconds():.0f} s: {line}")


@dataclass(frozen=True, slots=True)
class _Sweep:
    body: str
    asked: datetime
    due: datetime
    attempts: int = 1
