"""The local system as ``galley run`` starts it, with drafters and a model of the benchmark's own.

A folder is made that looks like a checkout: links to the real one, but for the drafters, and for the offline model,
whose place ``slow_model`` takes. The real system then runs on it, its functions in processes of their own.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from bench import slow_model
from bench.figures import wait_until
from galley.contract import CatchUp, Contract
from galley.runs import Origin, RunMessage, Status
from galley_cli.checkout import Checkout
from galley_cli.local import running
from galley_cli.local.bucket import FolderBucket
from galley_cli.local.state import StateDirectory
from galley_cli.template import DRAFT, read_template
from support.outside import ROOT

FIRST_SLOT = datetime(2026, 3, 2, tzinfo=UTC)
EARLIER = FIRST_SLOT - timedelta(days=1)
"""A slot before all others, to warm up with."""

CONTRACT = Contract(window_minutes=30, grace_minutes=120, catch_up=CatchUp.ALL)
TABLE = "metrics/figures.csv"

DRAFTER = f"""
title = "Figures"
shape = "report"
instructions = "Say what the figures say."
pending_limit = 1000
period_hours = 24

[[sources]]
kind = "table"
id = "figures"
key = "{TABLE}"
date_column = "date"
metrics = [{{ name = "Orders", column = "orders", aggregate = "sum" }}]
"""


def drafter_names(count: int) -> list[str]:
    """Return the names of so many drafters."""
    return [f"drafter-{number:03}" for number in range(count)]


def slots(count: int) -> list[datetime]:
    """Return so many slots: a midnight each."""
    return [FIRST_SLOT + timedelta(days=number) for number in range(count)]


def messages(drafters: Sequence[str], of_slots: Sequence[datetime]) -> list[RunMessage]:
    """Return a run message for each drafter at each slot, in the order in which ticks would send them.

    The runs are backfills, which no grace binds: the slots are long past.
    """
    return [
        RunMessage(drafter=drafter, slot=slot, origin=Origin.BACKFILL, contract=CONTRACT)
        for slot in of_slots
        for drafter in drafters
    ]


def figures(of_slots: Sequence[datetime]) -> bytes:
    """Return the table that the drafters report on: a line for each day, from before the first slot to the last."""
    days = [slot + timedelta(days=past) for past in (-3, -2, -1) for slot in of_slots[:1]] + list(of_slots)
    return "\n".join(["date,orders", *(f"{day:%Y-%m-%d},{100 + day.day}" for day in days), ""]).encode()


def checkout_with(root: Path, drafters: Sequence[str]) -> Checkout:
    """Make a folder that looks like a checkout of the project, but has these drafters and the slow model."""
    function = root / "functions" / DRAFT
    (function / "drafters").mkdir(parents=True)
    (root / "cli").mkdir()
    for name in ("template.yaml", "layers", "cli/galley_cli"):
        (root / name).symlink_to(ROOT / name)
    for path in (ROOT / "functions").iterdir():
        if path.name != DRAFT:
            (root / "functions" / path.name).symlink_to(path)
    for path in (ROOT / "functions" / DRAFT).iterdir():
        if path.name not in {"drafters", "offline.py", "__pycache__"}:
            (function / path.name).symlink_to(path)
    (function / "offline.py").write_bytes(Path(slow_model.__file__).read_bytes())
    for name in drafters:
        (function / "drafters" / f"{name}.toml").write_text(DRAFTER)
    return Checkout(root)


@dataclass
class LocalSystem:
    """A local system that runs."""

    state: StateDirectory
    running: running.Running
    calls: Path
    complaints: list[str]

    def send(self, run_messages: Sequence[RunMessage]) -> None:
        self.running.queues.send(run_messages)

    def send_to_a_queue_that_forgot(self, run_messages: Sequence[RunMessage]) -> None:
        """Send messages under new deduplication ids, so that each of them is delivered."""
        for at, message in enumerate(run_messages):
            self.running.queues.send_text(
                message.model_dump_json(), group=message.drafter, deduplication_id=f"forgotten-{at}"
            )

    def drafts(self) -> int:
        """Return how many drafts are stored."""
        with self.state.read() as db:
            return int(db.execute("SELECT count(*) FROM runs WHERE status = ?", (Status.PENDING,)).fetchone()[0])

    def model_calls(self) -> int:
        """Return how often the model was called."""
        return self.calls.stat().st_size if self.calls.exists() else 0

    def wait_for_drafts(self, count: int) -> None:
        wait_until(lambda: self.drafts() >= count, lambda: f"{self.drafts()} of {count} drafts; {self.complaints}")

    def wait_until_idle(self) -> None:
        wait_until(
            lambda: self.running.queues.waiting() == 0 and self.running.runs.in_flight == 0,
            lambda: f"{self.running.queues.waiting()} messages wait; {self.complaints}",
        )


@contextmanager
def local_system(folder: Path, drafters: Sequence[str], of_slots: Sequence[datetime]) -> Iterator[LocalSystem]:
    """Start a system with as many processes as there are drafters; each of them has drafted one run already."""
    checkout = checkout_with(folder / "checkout", drafters)
    template = read_template(checkout.template)
    template = replace(template, schedules=(), queue=replace(template.queue, concurrency=len(drafters)))
    complaints: list[str] = []
    with closing(StateDirectory.open(folder / "state")) as state, _as_many_at_once(len(drafters)):
        FolderBucket(state.bucket).put(TABLE, figures(of_slots), content_type="text/csv")
        whole = running.Running(checkout, template, state, port=0, report=complaints.append, tell=_tell_nobody)
        system = LocalSystem(state, whole, checkout.function(DRAFT) / "calls", complaints)
        try:
            whole.start(clock=False)
            whole._pool.warm(DRAFT, len(drafters))
            system.send(messages(drafters, [EARLIER]))
            system.wait_until_idle()
            yield system
        finally:
            whole.stop()


def _as_many_at_once(count: int) -> Any:
    """Let so many runs be drafted at once, more than the local system does by itself."""
    return mock.patch.object(running, "MOST_DRAFTS_AT_ONCE", count)


def _tell_nobody(record: Any, run: Any) -> None:
    """Nobody looks on."""
