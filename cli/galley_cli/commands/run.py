"""``galley run``: the whole system on this machine until it is stopped, or with ``--once`` until its first outcomes."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from galley_cli.commands.common import DEFAULT_STATE, DONE, REFUSED, JsonOption, StateOption, console

if TYPE_CHECKING:
    from galley.runs import Run, RunKey
    from galley_cli.inspection import Inspection
    from galley_cli.local.running import Running
    from galley_cli.local.store import StreamRecord

ONCE_PATIENCE = timedelta(minutes=10)
"""How long ``--once`` waits for the outcomes: longer than all retries of a run take together."""

DEFAULT_PORT = 8700


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)


PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="The port of the review desk; 0 takes a free one.")
]
OnceOption = Annotated[bool, typer.Option("--once", help="Draft the latest due slot of each schedule, then stop.")]


def run(
    port: PortOption = DEFAULT_PORT,
    state: StateOption = DEFAULT_STATE,
    once: OnceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run the system on this machine: schedules, drafters and the review desk, until Ctrl-C."""
    from galley_cli.checkout import find_checkout
    from galley_cli.inspection import inspect
    from galley_cli.local.running import Running
    from galley_cli.local.state import StateDirectory

    checkout = find_checkout()
    inspection = inspect(checkout)
    terminal = Terminal(as_json=as_json, quiet=once)
    for problem in inspection.problems:
        terminal.report(problem)
    opened = StateDirectory.open(state)
    try:
        running = Running(
            checkout,
            inspection.template,
            opened,
            port=0 if once else port,
            report=terminal.report,
            tell=terminal.tell,
        )
        raise typer.Exit(_once(running, terminal) if once else _until_stopped(running, inspection, state, terminal))
    finally:
        opened.close()


def _until_stopped(running: "Running", inspection: "Inspection", state: Path, terminal: "Terminal") -> int:
    with Interrupts() as interrupts:
        running.start(clock=True)
        try:
            terminal.greet(running, inspection, state)
            interrupts.wait()
            terminal.note("Stopping; what is being drafted may finish. Ctrl-C again stops at once.")
        finally:
            running.stop()
    return DONE


def _once(running: "Running", terminal: "Terminal") -> int:
    with Interrupts(running.give_up):
        keys = running.start(clock=False)
        try:
            running.wait_for_outcomes(keys, ONCE_PATIENCE)
            runs = [(key, running.store.run(key)) for key in keys]
            unsettled = running.without_outcome(keys)
        finally:
            running.stop()
    terminal.summarise(runs)
    for key in unsettled:
        terminal.report(f"run {key} has no outcome yet; galley run goes on with it")
    return REFUSED if unsettled else DONE


class Interrupts:
    """Ctrl-C, a termination and a closed terminal ask for a clean stop; the second of them stops at once.

    Nothing is lost by that: the processes of the functions end with this one, and what they did not finish is repeated.
    """

    _SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, asked: Callable[[], None] | None = None) -> None:
        self._asked = threading.Event()
        self._tell = asked
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interrupts":
        """Listen."""
        for number in self._SIGNALS:
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue  # nohup: whoever started it wants it to outlive the terminal
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no more."""
        for number, before in self._before.items():
            signal.signal(number, before)

    def wait(self) -> None:
        """Wait until a stop is asked for."""
        self._asked.wait()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._asked.is_set():
            os._exit(128 + number)
        self._asked.set()
        if self._tell is not None:
            self._tell()


class Terminal:
    """What a person, or a program, is told while the system runs."""

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        """With ``quiet`` changes of runs are not told as they come, since a summary follows."""
        self._as_json = as_json
        self._quiet = quiet
        self._console = console()

    def report(self, line: str) -> None:
        """Tell what went wrong, on standard error."""
        with suppress(OSError):
            sys.stderr.write(f"galley: {' '.join(line.split())}\n")
            sys.stderr.flush()

    def note(self, line: str) -> None:
        """Tell a person something that no program needs."""
        if not self._as_json:
            self._print(line)

    def greet(self, running: "Running", inspection: "Inspection", state: Path) -> None:
        """Tell where the desk is and what runs."""
        address = running.desk.new_address()
        if self._as_json:
            self._print(json.dumps({"desk": address, "pid": os.getpid()}))
            return
        self._print("Galley runs on this machine.")
        self._print(f"  Review desk  {address}")
        self._print("               (this address opens the desk once; keep the page open)")
        self._print(f"  Drafting     {_model_line()}")
        self._print(f"  Schedules    {len(inspection.template.schedules)} of {inspection.template.path}")
        self._print(f"  State        {state}, logs in {state / 'logs'}")
        self._print("Ctrl-C stops it; nothing is lost.")

    def tell(self, record: "StreamRecord", run: "Run") -> None:
        """Tell a change of a run that a person may want to know of."""
        if self._quiet or not _is_news(record, run):
            return
        if self._as_json:
            self._print(json.dumps(facts_of(run.key, run), ensure_ascii=False))
            return
        at = record.at.astimezone().strftime("%H:%M:%S")
        self._print(f"{at}  {run.key}  {record.new}  {_why(run)}".rstrip())

    def summarise(self, runs: "list[tuple[RunKey, Run | None]]") -> None:
        """Tell what became of the runs."""
        if self._as_json:
            rows = [facts_of(key, run) for key, run in runs]
            self._print(json.dumps({"runs": rows}, indent=2, ensure_ascii=False))
            return
        from rich.table import Table

        table = Table("run", "status", "title or reason", box=None, pad_edge=False)
        for key, run in runs:
            table.add_row(str(key), "no row" if run is None else str(run.status), "" if run is None else _why(run))
        self._console.print(table)

    def _print(self, line: str) -> None:
        with suppress(OSError):  # a terminal that went away stops nothing
            self._console.print(line)
            self._console.file.flush()


def facts_of(key: "RunKey", run: "Run | None") -> dict[str, Any]:
    """Return what a program may want to know of a run; ``status`` is null where it has no row."""
    from galley.instants import format_instant

    if run is None:
        return {"run": str(key), "drafter": key.drafter, "slot": format_instant(key.slot), "status": None}
    return {
        "run": str(key),
        "drafter": key.drafter,
        "slot": format_instant(key.slot),
        "status": str(run.status),
        "reason": run.reason,
        "detail": run.detail,
        "title": run.title,
        "origin": str(run.origin),
        "attempts": run.attempts,
        "model": run.model,
        "cost_usd": run.cost_nanousd / 1e9,
    }


def _is_news(record: "StreamRecord", run: "Run") -> bool:
    """Tell whether a change is an outcome, or a wait that a person would wonder about."""
    from galley.runs import Status

    if record.new is Status.DRAFTING:
        return record.version == run.version and run.next_attempt is not None
    return record.new is not Status.QUEUED


def _why(run: "Run") -> str:
    reason = ": ".join(part for part in (run.reason, run.detail) if part)
    return run.title or reason


def _model_line() -> str:
    from galley_cli.local.environment import model_provider

    if model_provider(os.environ) == "anthropic":
        return "with Claude (ANTHROPIC_API_KEY is set)"
    return "offline: an extractive summary; set ANTHROPIC_API_KEY to draft with Claude"
