"""``galley run``: the whole system on this machine until it is stopped, or with ``--once`` until its first outcomes."""

import os
import select
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from galley.answers import run_answer
from galley.instants import format_instant
from galley.runs import Run, RunKey, Status
from galley.texts import counted
from galley_cli.commands.common import (
    DEFAULT_STATE,
    DONE,
    REFUSED,
    JsonOption,
    StateOption,
    console,
    json_text,
    whole_number,
)
from galley_cli.commands.shown import columns, printable, status_of, title_or_detail

if TYPE_CHECKING:
    from galley_cli.inspection import Inspection
    from galley_cli.local.running import Running
    from galley_cli.local.store import StreamRecord

ONCE_PATIENCE = timedelta(minutes=10)
"""How long ``--once`` waits for the outcomes: enough for the usual retries; the next start goes on with the rest."""

DEFAULT_PORT = 8700
"""The port of the review desk unless another is named."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)


PortOption = Annotated[
    int,
    typer.Option(
        "--port",
        parser=whole_number(0, 65535),
        metavar="PORT",
        help="The port of the review desk; 0 takes a free one.",
    ),
]
OnceOption = Annotated[bool, typer.Option("--once", help="Draft the latest due slot of each schedule, then stop.")]


def run(
    port: PortOption = DEFAULT_PORT,
    state: StateOption = DEFAULT_STATE,
    once: OnceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run the system on this machine: schedules, drafters and the review desk, until Ctrl-C.

    With --once it also drafts what was sent by hand and is due, and exits with 0 when every run has an outcome,
    whichever, and with 1 when one has none yet.
    """
    from galley_cli.checkout import find_checkout
    from galley_cli.inspection import inspect
    from galley_cli.local.desk import refuse_taken_port
    from galley_cli.local.running import Running
    from galley_cli.local.state import StateDirectory

    checkout = find_checkout()
    inspection = inspect(checkout)
    terminal = Terminal(as_json=as_json, quiet=once)
    for problem in inspection.problems:
        terminal.report(problem)
    port = 0 if once else port
    if not StateDirectory.is_there(state):
        refuse_taken_port(port)  # before anything is made
    opened = StateDirectory.open(state)
    try:
        running = Running(checkout, inspection.template, opened, port=port, report=terminal.report, tell=terminal.tell)
        if once:
            raise typer.Exit(_once(running, inspection, terminal))
        raise typer.Exit(_until_stopped(running, inspection, state, terminal))
    finally:
        opened.close()


def _until_stopped(running: "Running", inspection: "Inspection", state: Path, terminal: "Terminal") -> int:
    with Interrupts() as interrupts:
        running.start(clock=True)
        try:
            terminal.greet(running, inspection, state)
            for _ in interrupts.requests_until_stop():
                terminal.give_address(running)
            terminal.note("Stopping; what is being drafted may finish. Ctrl-C again stops at once.")
        finally:
            running.stop()
    return DONE


def _once(running: "Running", inspection: "Inspection", terminal: "Terminal") -> int:
    from galley_cli.local.running import has_outcome

    with Interrupts() as interrupts:
        keys = running.start(clock=False)
        try:
            running.wait_for_outcomes(keys, ONCE_PATIENCE, pause=interrupts.wait)
        finally:
            running.stop()
        rows = running.read_rows(keys)
        others = [key for key in sorted(terminal.told, key=str) if key not in rows]
        waiting = running.queues.waiting()
        rows |= running.read_rows(others)
    terminal.summarise([*keys, *others], rows, inspection.problems, waiting)
    unsettled = [key for key, run in rows.items() if not has_outcome(run)]
    for key in unsettled:
        terminal.report(f"run {key} has no outcome yet; galley run goes on with it")
    more = waiting - len(unsettled)
    if more > 0:
        terminal.report(f"{counted(more, 'more message waits', 'more messages wait')} for draft; galley run goes on")
    for key, run in rows.items():
        if run is not None and run.status is Status.APPROVED:
            terminal.report(f"run {key} is approved and not published; see 'galley dlq list' and the log of publish")
    return REFUSED if unsettled or more > 0 or len(rows) < len(keys) + len(others) else DONE


class Interrupts:
    """Ctrl-C, a termination and a closed terminal ask for a clean stop; the second of them stops at once.

    Nothing is lost by that: the processes of the functions end with this one, and what they did not finish is repeated.
    SIGUSR1 asks for a new address of the desk.

    A handler may interrupt any code of the main thread, another handler included, so it takes no lock: it sets a flag
    and writes to a pipe. Of two signals close together the kernel gives one to another thread, which interrupts no wait
    of the main thread, so the interpreter writes to that pipe as well
    (https://docs.python.org/3/library/signal.html#signal.set_wakeup_fd).
    """

    _SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)

    def __init__(self) -> None:
        self._stop = False
        self._address = False
        self._before: dict[signal.Signals, Any] = {}
        self._waiting = self._waking = self._woken_before = -1

    def __enter__(self) -> "Interrupts":
        """Listen."""
        self._waiting, self._waking = os.pipe()
        for end in (self._waiting, self._waking):
            os.set_blocking(end, False)
        self._woken_before = signal.set_wakeup_fd(self._waking, warn_on_full_buffer=False)
        for number in self._SIGNALS:
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue  # nohup: whoever started it wants it to outlive the terminal
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no more."""
        for number, before in self._before.items():
            signal.signal(number, before)
        signal.set_wakeup_fd(self._woken_before)
        os.close(self._waiting)
        os.close(self._waking)

    def wait(self, longest: timedelta) -> bool:
        """Wait until a stop is asked for, at most so long; tell whether it is."""
        if not self._stop:
            self._sleep(longest.total_seconds())
        return self._stop

    def requests_until_stop(self) -> Iterator[None]:
        """Wait until a stop is asked for; yield each time when a new address is."""
        while not self._stop:
            if self._address:
                self._address = False
                yield
            else:
                self._sleep(None)

    def _sleep(self, seconds: float | None) -> None:
        """Wait for a signal. One that came since the flags were looked at has left its byte in the pipe."""
        select.select([self._waiting], [], [], seconds)
        with suppress(BlockingIOError):
            os.read(self._waiting, 512)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGUSR1:
            self._address = True
        elif self._stop:
            os._exit(128 + number)
        else:
            self._stop = True
        with suppress(BlockingIOError):  # a full pipe wakes as well
            os.write(self._waking, b".")


class Terminal:
    """What a person, or a program, is told while the system runs."""

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        """With ``quiet`` changes of runs are not told as they come, since a summary follows."""
        self.told: set[RunKey] = set()
        """The runs that came to an outcome meanwhile."""
        self._as_json = as_json
        self._quiet = quiet
        self._console = console()

    def report(self, line: str) -> None:
        """Tell what went wrong, on standard error."""
        with suppress(OSError):
            sys.stderr.write(f"galley: {printable(' '.join(line.split()))}\n")
            sys.stderr.flush()

    def note(self, line: str) -> None:
        """Tell a person something that no program needs."""
        if not self._as_json:
            self._print(line)

    def greet(self, running: "Running", inspection: "Inspection", state: Path) -> None:
        """Tell where the desk is and what runs."""
        address = running.desk.new_address()
        if self._as_json:
            self._print(json_text({"desk": address, "pid": os.getpid()}))
            return
        self._print("Galley runs on this machine.")
        self._print(f"  Review desk  {address}")
        self._print("               (this address opens the desk once; keep the page open)")
        self._print(f"               for another browser: kill -USR1 {os.getpid()} prints a new address here")
        self._print(f"  Drafting     {_model_line()}")
        self._print(f"  Schedules    {len(inspection.template.schedules)} of {inspection.template.path}")
        self._print(f"  State        {state}, logs in {state / 'logs'}")
        self._print("Changes of template.yaml and of the drafters' files are taken up at the next start.")
        self._print("Ctrl-C stops it; nothing is lost.")
        if running.starts_idle:
            self._print(_next_line(running))

    def give_address(self, running: "Running") -> None:
        """Tell another address of the desk."""
        address = running.desk.new_address()
        self._print(json_text({"desk": address}) if self._as_json else f"Review desk  {address}")

    def tell(self, record: "StreamRecord", run: Run) -> None:
        """Tell a change of a run that a person may want to know of."""
        if not _is_news(record, run):
            return
        if record.new is not Status.DRAFTING:
            self.told.add(run.key)
        if self._quiet:
            if record.new is Status.DRAFTING:
                self.report(f"run {run.key} is postponed: {_why(run)}")
            return
        if self._as_json:
            self._print(json_text(facts_of(run.key, run)))
            return
        at = record.at.astimezone().strftime("%H:%M:%S")
        self._print(f"{at}  {run.key}  {record.new}  {_why(run)}".rstrip())

    def summarise(
        self, keys: Sequence["RunKey"], rows: Mapping["RunKey", "Run | None"], problems: Sequence[str], waiting: int
    ) -> None:
        """Tell what became of the runs, and a program what is broken and how many messages wait; people are told apart.

        ``rows`` lacks the runs whose row cannot be read.
        """
        if self._as_json:
            facts = [facts_of(key, rows.get(key)) for key in keys]
            self._print(json_text({"runs": facts, "problems": list(problems), "waiting": waiting}, indent=2))
            return
        table = columns("run", "status", "title or detail")
        for key in keys:
            run = rows.get(key)
            nothing = ("no row" if key in rows else "unreadable", "")
            known = nothing if run is None else (status_of(run), title_or_detail(run))
            table.add_row(str(key), *known)
        self._console.print(table)

    def _print(self, line: str) -> None:
        with suppress(OSError):  # a terminal that went away stops nothing
            self._console.print(line)
            self._console.file.flush()


def facts_of(key: RunKey, run: Run | None) -> dict[str, Any]:
    """Return what a program may want to know of a run; ``status`` is null where it has no row that can be read."""
    if run is None:
        nothing = dict.fromkeys(("status", "reason", "detail", "title"))
        return {"run": str(key), "drafter": key.drafter, "slot": format_instant(key.slot), **nothing}
    return run_answer(run)


def _is_news(record: "StreamRecord", run: Run) -> bool:
    """Tell whether a change is an outcome, or a wait that a person would wonder about."""
    if record.new is Status.DRAFTING:
        return record.version == run.version and run.next_attempt is not None
    return record.new is not Status.QUEUED


def _why(run: Run) -> str:
    reason = ": ".join(part for part in (run.reason, run.detail) if part)
    if run.status is Status.DRAFTING and run.next_attempt is not None:
        return f"{reason}; next attempt {_local(run.next_attempt)}"
    return run.title or reason


def _next_line(running: "Running") -> str:
    coming = running.next_slot()
    if coming is None:
        return "Nothing is due: no schedule has a slot to come; see 'galley schedules'."
    slot, name = coming
    return f"Nothing is due until {_local(slot)} ({name})."


def _local(moment: datetime) -> str:
    """Return an instant for a person at this machine, in its own timezone; the date only where it is not today."""
    local = moment.astimezone()
    today = local.date() == datetime.now().astimezone().date()
    return local.strftime("%H:%M:%S %Z" if today else "%a %d %b %H:%M %Z")


def _model_line() -> str:
    from galley_cli.local.environment import model_provider

    if model_provider(os.environ) == "anthropic":
        return "with Claude (ANTHROPIC_API_KEY is set)"
    return "offline: an extractive summary; set ANTHROPIC_API_KEY to draft with Claude"
