"""The real thing: ``galley run`` as processes of their own, for tests of the whole system on one machine."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

ROOT = Path(__file__).parents[2]


def environment(root: Path = ROOT, **more: str) -> dict[str, str]:
    """Return this process's environment, with the packages of a checkout importable."""
    ours = os.pathsep.join([str(root / "cli"), str(root / "layers" / "galley")])
    return {**os.environ, "PYTHONPATH": ours, **more}


def galley(*arguments: str, root: Path = ROOT, timeout: float = 90, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run a ``galley`` command of a checkout to its end."""
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "galley_cli", *arguments],
        env=environment(root, **more),
        cwd=root,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


class RunningGalley:
    """A ``galley run --json`` under way; ``lines`` are what it has said so far, decoded."""

    def __init__(self, state: Path, *arguments: str, **more: str) -> None:
        """Start it; the desk takes a free port unless the arguments name one."""
        self.state = state
        port = () if "--port" in arguments else ("--port", "0")
        self.process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "galley_cli", "run", "--json", "--state", str(state), *port, *arguments],
            env=environment(**more),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []
        self._queue: SimpleQueue[str] = SimpleQueue()
        self._errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read_lines, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def wait_for(self, wanted: Callable[[Sequence[dict[str, Any]]], bool], seconds: float = 60) -> bool:
        """Wait until what it has said is as wanted; False when it ended or was silent for too long."""
        deadline = time.monotonic() + seconds
        while not wanted(self.lines):
            try:
                line = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                return False
            if not line:
                return wanted(self.lines)
            self.lines.append(json.loads(line))
        return True

    def wait_until_it_runs(self) -> str:
        """Return the desk's address, token and all."""
        assert self.wait_for(lambda lines: bool(lines)), f"it did not start: {self.errors}"
        return str(self.lines[0]["desk"])

    @property
    def errors(self) -> str:
        """What it has said on standard error."""
        return "".join(self._errors)

    def stop(self, number: int = signal.SIGINT, seconds: float = 30) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(seconds)
        for reader in self._readers:
            reader.join(10)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return code

    def _read_lines(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._queue.put(line)
        self._queue.put("")

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self._errors.extend(self.process.stderr)


def processes_of(state: Path) -> list[str]:
    """Return the command lines of all processes that work on a state directory."""
    listed = subprocess.run(["ps", "-eo", "pid=,stat=,args="], capture_output=True, text=True, check=True)  # noqa: S607
    lines = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    return [line[2] for line in lines if len(line) == 3 and str(state) in line[2] and not line[1].startswith("Z")]


def wait_for_no_process(state: Path, seconds: float = 15) -> list[str]:
    """Wait until no process works on the state directory; return those that still do."""
    deadline = time.monotonic() + seconds
    while (found := processes_of(state)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found
