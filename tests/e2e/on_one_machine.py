"""The system on one machine with a clock that a test sets: the real one, its functions in processes of their own.

The functions' processes ask the clock too. They import the project's packages from a folder that looks like a checkout
and holds links to the real one, and a module beside them that Python imports first: it replaces ``utc_now``.
"""

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from galley.runs import Status
from galley_cli.checkout import Checkout
from galley_cli.local.bucket import FolderBucket
from galley_cli.local.queue import SqliteQueues, TickQueue
from galley_cli.local.running import Running
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from galley_cli.local.stream_feed import CONSUMER
from galley_cli.template import Template, read_template
from support.outside import ROOT

PATIENCE_SECONDS = 30

_ASKS_THE_CLOCK = """
from datetime import datetime
from pathlib import Path

import galley.instants

galley.instants.utc_now = lambda: datetime.fromisoformat(Path({clock!r}).read_text())
"""


class Clock:
    """An instant in a file, for this process and for others."""

    def __init__(self, path: Path, now: datetime) -> None:
        self.path = path
        self.now = now
        self.set(now)

    def set(self, now: datetime) -> None:
        """Move to an instant; whoever reads meanwhile reads the old one or the new one."""
        new = self.path.with_suffix(".new")
        new.write_text(now.isoformat())
        new.replace(self.path)
        self.now = now


@dataclass
class OneMachine:
    """A local system over a state directory, and a reviewer's session at its desk."""

    state: StateDirectory
    template: Template
    running: Running
    clock: Clock
    store: SqliteStore
    queue: SqliteQueues
    ticks: TickQueue
    bucket: FolderBucket
    complaints: list[str]
    _cookie: str = ""

    def at(self, now: datetime) -> None:
        self.clock.set(now)

    def start(self) -> None:
        self.running.start(clock=False)

    def tick(self, schedule: str, slot: datetime) -> None:
        (due,) = [one for one in self.template.schedules if one.name == schedule]
        self.ticks.enqueue(due.event(slot))

    def send_text(self, body: str) -> None:
        self.queue.send_text(body, group="anything", deduplication_id="raw")

    def ask_desk(self, method: str, path: str, body: Mapping[str, object] | None = None) -> tuple[int, Any]:
        if not self._cookie:
            opened = self._request("GET", f"/?{urlsplit(self.running.desk.new_address()).query}")
            self._cookie = str(opened.getheader("Set-Cookie")).partition(";")[0]
        answer = self._request(method, path, None if body is None else json.dumps(body))
        return answer.status, json.loads(answer.read())

    def settle(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._is_settled():
            assert time.monotonic() < deadline, f"it does not come to rest: {self.complaints}"
            time.sleep(0.02)
        assert self.complaints == []

    def _is_settled(self) -> bool:
        return (
            self.ticks.waiting() == 0
            and self.queue.waiting() == 0
            and self.store.stream_after(self.store.stream_position(CONSUMER)) == ()
            and self.store.watched(Status.APPROVED).runs == ()
        )

    def _request(self, method: str, path: str, body: str | None = None) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.running.desk.port, timeout=PATIENCE_SECONDS)
        headers = {"Cookie": self._cookie, "Content-Type": "application/json"}
        connection.request(method, path, body, headers)
        return connection.getresponse()


@contextmanager
def one_machine(folder: Path, now: datetime, project: Path = ROOT) -> Iterator[OneMachine]:
    """Prepare a system that drafts offline, at an instant; it is stopped at the end.

    ``folder / "checkout"`` is a project whose commands ask the same clock.
    """
    clock = Clock(folder / "clock", now)
    checkout = _checkout_that_asks(clock, folder / "checkout", project)
    template = read_template(checkout.template)
    complaints: list[str] = []
    with closing(StateDirectory.open(folder / "state", now=lambda: clock.now)) as state:
        running = Running(
            checkout,
            template,
            state,
            port=0,
            report=complaints.append,
            tell=lambda record, run: None,
            now=lambda: clock.now,
        )
        try:
            yield OneMachine(
                state=state,
                template=template,
                running=running,
                clock=clock,
                store=SqliteStore(state),
                queue=SqliteQueues(state, now=lambda: clock.now),
                ticks=TickQueue(state, now=lambda: clock.now),
                bucket=FolderBucket(state.bucket, now=lambda: clock.now),
                complaints=complaints,
            )
        finally:
            running.stop()


def _checkout_that_asks(clock: Clock, root: Path, project: Path) -> Checkout:
    (root / "cli").mkdir(parents=True)
    for name in ("template.yaml", "functions", "layers", "cli/galley_cli"):
        (root / name).symlink_to(project / name)
    (root / "cli" / "sitecustomize.py").write_text(_ASKS_THE_CLOCK.format(clock=str(clock.path)))
    return Checkout(root)
