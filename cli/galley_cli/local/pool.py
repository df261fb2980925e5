"""The functions' execution environments: started when they are needed, reused, and killed at their time limit."""

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, cast

INIT_SECONDS = 60.0
"""How long a function may take to be imported. Lambda allows 10 s (it has the machine to itself)."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The handler's result."""

    value: Any


@dataclass(frozen=True, slots=True)
class FunctionError:
    """The function failed: it raised, ran out of time or died. ``error_type`` is Lambda's name for it."""

    error_type: str
    message: str


Invocation = Returned | FunctionError


class PoolClosed(Exception):
    """The system is stopping; nothing is invoked any more."""


_ENDED = ("Runtime.ExitError", "Runtime.InitError")


@dataclass(frozen=True, slots=True)
class FunctionSetup:
    """How one function is run: its code, its process's whole environment (asked for at each start), its limits."""

    name: str
    handler: str
    code: Path
    environment: Callable[[], Mapping[str, str]]
    memory_mb: int
    time_limit: timedelta
    concurrency: int


class Sandbox:
    """One execution environment: a child process that answers one event at a time."""

    def __init__(self, setup: FunctionSetup, state: Path) -> None:
        """Start the process; it is ready when it says so, which the first invocation waits for."""
        self._setup = setup
        self._ready = False
        self._late = False
        self._spent = False
        self._process = subprocess.Popen(  # noqa: S603 - our own module, no shell
            [
                *(sys.executable, "-P", "-m", "galley_cli.local.sandbox", setup.name),
                *("--handler", setup.handler, "--code", str(setup.code)),
                *("--state", str(state), "--memory", str(setup.memory_mb)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(setup.environment()),
            cwd=setup.code,
            text=True,
            encoding="utf-8",
            process_group=0,  # Ctrl-C is for the parent alone: it lets what runs here finish
        )
        self._requests = cast("IO[str]", self._process.stdin)
        self._answers = cast("IO[str]", self._process.stdout)

    @property
    def alive(self) -> bool:
        """Tell whether another event can be given to it."""
        return not self._spent and self._process.poll() is None

    def invoke(self, event: Any, request_id: str) -> Invocation:
        """Have one event handled. After an error that ended the process, the sandbox is not alive any more."""
        failed = self._become_ready()
        if failed is not None:
            return failed
        limit = self._setup.time_limit.total_seconds()
        request = json.dumps({"request_id": request_id, "limit_seconds": limit, "event": event})
        answer = self._ask(request, limit)
        if answer is None:
            if self._late:
                return FunctionError("Sandbox.Timedout", f"Task timed out after {limit:.2f} seconds")
            return FunctionError("Runtime.ExitError", f"the process ended with exit status {self._process.wait()}")
        if "error" in answer:
            return FunctionError(answer["error"]["errorType"], answer["error"]["errorMessage"])
        return Returned(answer.get("result"))

    def end(self) -> None:
        """End the process at once, and wait for its end."""
        with suppress(OSError):
            self._process.kill()
        self._process.wait()
        for pipe in (self._requests, self._answers):
            with suppress(OSError):
                pipe.close()

    def _become_ready(self) -> FunctionError | None:
        if self._ready:
            return None
        answer = self._ask(None, INIT_SECONDS)
        if answer is None:
            why = "was not ready in time" if self._late else f"ended with exit status {self._process.wait()}"
            return FunctionError("Runtime.InitError", f"{self._setup.name} {why}; see its log")
        if "init_error" in answer:
            self._spent = True
            error = answer["init_error"]
            return FunctionError(error["errorType"], error["errorMessage"])
        self._ready = True
        return None

    def _ask(self, request: str | None, seconds: float) -> dict[str, Any] | None:
        """Send a request, if there is one, and return the next answer; None when the process ended instead.

        At the limit the process is killed, which is what ends the waiting.
        """
        guard = threading.Timer(seconds, self._kill_late)
        guard.daemon = True
        guard.start()
        try:
            if request is not None:
                self._requests.write(request + "\n")
                self._requests.flush()
            line = self._answers.readline()
        except OSError:
            line = ""
        finally:
            guard.cancel()
            guard.join()
        self._spent = self._late or not line.endswith("\n")
        return dict(json.loads(line)) if line.endswith("\n") else None

    def _kill_late(self) -> None:
        self._late = True
        with suppress(OSError):
            self._process.kill()


class _Slots:
    """The sandboxes of one function, at most as many at work as its concurrency."""

    def __init__(self, setup: FunctionSetup) -> None:
        self.setup = setup
        self.free = threading.Semaphore(setup.concurrency)
        self.closed = False
        self.idle: list[Sandbox] = []
        self.busy: set[Sandbox] = set()


class LambdaPool:
    """Invokes functions by name, in sandboxes that live until they fail or the pool is closed."""

    def __init__(
        self,
        setups: Mapping[str, FunctionSetup],
        state: Path,
        *,
        start: Callable[[FunctionSetup, Path], Sandbox] = Sandbox,
    ) -> None:
        """Start nothing yet."""
        self._slots = {name: _Slots(setup) for name, setup in setups.items()}
        self._state = state
        self._start = start
        self._lock = threading.Lock()

    def warm(self, function: str, count: int = 1) -> None:
        """Start sandboxes ahead of their first event, up to the function's concurrency."""
        slots = self._slots[function]
        with self._lock:
            missing = min(count, slots.setup.concurrency) - len(slots.idle) - len(slots.busy)
            if not slots.closed:
                slots.idle.extend(self._start(slots.setup, self._state) for _ in range(missing))

    def invoke(self, function: str, event: Any) -> Invocation:
        """Have an event handled, waiting for a free sandbox first.

        Raises:
            PoolClosed: when the system is stopping: nothing was begun, or it was cut short.
        """
        slots = self._slots[function]
        with slots.free:
            sandbox = self._take(slots)
            try:
                invocation = sandbox.invoke(event, str(uuid.uuid4()))
            finally:
                self._put_back(slots, sandbox)
        if slots.closed and isinstance(invocation, FunctionError) and invocation.error_type in _ENDED:
            raise PoolClosed(f"{function} was cut short: the system is stopping")
        return invocation

    def close(self, grace: timedelta, *, keep: Collection[str] = ()) -> int:
        """Let running invocations end for so long, then end the processes. Returns how many were cut short.

        Functions to ``keep`` are still invoked afterwards: those that the others need until their own end.
        """
        closing = [slots for name, slots in self._slots.items() if name not in keep]
        with self._lock:
            for slots in closing:
                slots.closed = True
                while slots.idle:
                    slots.idle.pop().end()
        deadline = time.monotonic() + grace.total_seconds()
        while self._busy(closing) and time.monotonic() < deadline:
            time.sleep(0.02)
        cut_short = self._busy(closing)
        for sandbox in cut_short:
            sandbox.end()
        return len(cut_short)

    def is_busy(self) -> bool:
        """Tell whether anything is being handled."""
        return bool(self._busy(self._slots.values()))

    def _busy(self, among: Iterable[_Slots]) -> list[Sandbox]:
        with self._lock:
            return [sandbox for slots in among for sandbox in slots.busy]

    def _take(self, slots: _Slots) -> Sandbox:
        with self._lock:
            if slots.closed:
                raise PoolClosed(f"{slots.setup.name} is not invoked any more: the system is stopping")
            sandbox = None
            while sandbox is None and slots.idle:
                sandbox = _if_alive(slots.idle.pop())
            sandbox = sandbox or self._start(slots.setup, self._state)
            slots.busy.add(sandbox)
            return sandbox

    def _put_back(self, slots: _Slots, sandbox: Sandbox) -> None:
        with self._lock:
            slots.busy.discard(sandbox)
            if sandbox.alive and not slots.closed:
                slots.idle.append(sandbox)
                return
        sandbox.end()


def _if_alive(sandbox: Sandbox) -> Sandbox | None:
    if sandbox.alive:
        return sandbox
    sandbox.end()
    return None
