"""The same story through the handlers in AWS and through the system on one machine ends with the same rows."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import time_machine

from e2e.on_moto import Moto, moto_stack, template
from e2e.on_one_machine import one_machine
from galley.bucket import Bucket
from galley.queue import RunQueue
from galley.store import Store
from galley_cli.local.running import latest_due_runs
from galley_cli.template import DISPATCH, REVIEW
from support.aws import client
from support.outside import event
from support.story import MONDAY, Ending, ending_of, tell


@dataclass
class OnMoto:
    """A stack within moto as a stage."""

    moto: Moto
    clock: time_machine.Traveller

    @property
    def store(self) -> Store:
        return self.moto.store

    @property
    def queue(self) -> RunQueue:
        return self.moto.queue

    @property
    def bucket(self) -> Bucket:
        return self.moto.bucket

    def at(self, now: datetime) -> None:
        self.clock.move_to(now)

    def start(self) -> None:
        """Deploy, and ask for the latest due slots as a person would; ``galley run`` asks for them by itself."""
        self.moto.deploy_schedules()
        self.queue.send(latest_due_runs(self.moto.schedules, MONDAY))

    def tick(self, schedule: str, slot: datetime) -> None:
        (due,) = [one for one in template().schedules if one.name == schedule]
        self.moto.invoke(DISPATCH, self.moto.tick(due, slot))

    def send_text(self, body: str) -> None:
        client("sqs").send_message(
            QueueUrl=self.moto.names.runs_url, MessageBody=body, MessageGroupId="any", MessageDeduplicationId="raw"
        )

    def ask_desk(self, method: str, path: str, body: Mapping[str, object] | None = None) -> tuple[int, Any]:
        asked = event("review-approve" if body else "review-read")
        asked["rawPath"] = asked["requestContext"]["http"]["path"] = path
        asked["requestContext"]["http"]["method"] = method
        asked["body"] = None if body is None else json.dumps(body)
        answer = self.moto.invoke(REVIEW, asked)
        return answer["statusCode"], json.loads(answer["body"])

    def settle(self) -> None:
        self.moto.deliver_runs()
        self.moto.deliver_changes()


@contextmanager
def _healthy_desk() -> Iterator[str]:
    """Something at an address of its own that says that it is well, for the monitor to look at."""

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Health) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def told_on_moto() -> Ending:
    with (
        time_machine.travel(MONDAY, tick=False) as clock,
        _healthy_desk() as desk,
        moto_stack(desk_url=desk) as moto,
    ):
        stage = OnMoto(moto, clock)
        tell(stage)
        return ending_of(stage)


def told_on_one_machine(folder: Path) -> Ending:
    with one_machine(folder, MONDAY) as stage:
        tell(stage)
        return ending_of(stage)


@pytest.mark.enable_socket
def test_the_same_story_ends_with_the_same_rows_in_aws_and_on_one_machine(tmp_path: Path) -> None:
    here, there = told_on_one_machine(tmp_path), told_on_moto()
    for part in asdict(here):
        assert getattr(here, part) == getattr(there, part), f"the {part} differ"

    assert {key: run["status"] for key, run in here.runs.items()} == {
        "daily-digest:2026-11-23T06:00:00Z": "rejected",
        "daily-digest:2026-11-24T06:00:00Z": "pending",
        "hourly-monitor:2026-11-23T14:00:00Z": "empty",
        "hourly-monitor:2026-11-23T16:00:00Z": "empty",
        "nightly-sync:2026-11-22T15:30:00Z": "published",
        "nightly-sync:2026-11-23T15:30:00Z": "pending",
        "weekly-report:2026-11-23T13:00:00Z": "pending",
        "weekly-report:2026-11-30T13:00:00Z": "pending",
        "no-such-drafter:2026-11-30T13:31:00Z": "failed",
    }, "the story is not what it was meant to be"
    assert [letter["reason"] for letter in here.dead] == ["invalid_drafter", "invalid_message"]
    assert [key for key in here.objects if key.startswith("published/")] == [
        "published/nightly-sync/2026-11-22T15:30:00Z.md"
    ]
    assert {gate.drafter: gate.pending for gate in here.gates} == {
        "daily-digest": 1,
        "hourly-monitor": 0,
        "nightly-sync": 1,
        "weekly-report": 2,
        "no-such-drafter": 0,
    }
