"""A system for tests: the adapters that a test gives, a clock that it sets, and Lambda's context."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from galley.bucket import Bucket
from galley.contract import CatchUp, Contract
from galley.queue import DeadLetter, DeadTick, RunQueue
from galley.runs import Origin, RunMessage
from galley.schedules import ScheduleDefinition, ScheduleMissing, Schedules, ScheduleSummary
from galley.store import Store

ROOT = Path(__file__).parents[2]
SLOT = datetime(2026, 11, 27, 6, tzinfo=UTC)
ARN = "arn:aws:scheduler:eu-west-2:123456789012:schedule/galley-dev/DailyDigest"
CONTRACT = Contract(window_minutes=30, grace_minutes=120, catch_up=CatchUp.LATEST)


def event(name: str) -> dict[str, Any]:
    """Return a sample event of the folder events/."""
    loaded: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text())
    return loaded


def message(drafter: str = "daily-digest", slot: datetime = SLOT, **change: Any) -> RunMessage:
    """Return a run message as a schedule would cause it."""
    fields = {"origin": Origin.SCHEDULE, "contract": CONTRACT, "schedule": ARN, **change}
    return RunMessage(drafter=drafter, slot=slot, **fields)


def schedule(name: str = "DailyDigest", **change: Any) -> ScheduleDefinition:
    """Return a schedule as it would be deployed: daily at six in London, created in 2026."""
    fields: dict[str, Any] = {
        "arn": ARN.replace("DailyDigest", name),
        "expression": "cron(0 6 * * ? *)",
        "timezone": "Europe/London",
        "input": json.dumps(
            {
                "drafters": ["daily-digest"],
                "schedule": "<aws.scheduler.schedule-arn>",
                "slot": "<aws.scheduler.scheduled-time>",
                "window_minutes": 30,
                "grace_minutes": 120,
                "catch_up": "latest",
            }
        ),
        "enabled": True,
        "created": datetime(2026, 1, 1, tzinfo=UTC),
        "modified": datetime(2026, 1, 1, tzinfo=UTC),
        **change,
    }
    return ScheduleDefinition(name=name, **fields)


@dataclass
class RecordingQueue:
    """A queue that remembers what it was told."""

    sent: list[RunMessage] = field(default_factory=list)
    put_offs: list[tuple[str, timedelta]] = field(default_factory=list)
    buried: list[DeadLetter] = field(default_factory=list)

    def send(self, messages: Sequence[RunMessage]) -> None:
        self.sent.extend(messages)

    def put_off(self, receipt: str, delay: timedelta) -> None:
        self.put_offs.append((receipt, delay))

    def bury(self, letter: DeadLetter) -> None:
        self.buried.append(letter)

    def dead_runs(self, *, limit: int = 100) -> tuple[DeadLetter, ...]:
        return tuple(self.buried[:limit])

    def dead_ticks(self, *, limit: int = 100) -> tuple[DeadTick, ...]:
        return ()

    def remove_dead_runs(self, ids: Collection[str]) -> frozenset[str]:
        raise AssertionError("nothing under test takes letters away")

    def remove_dead_ticks(self, ids: Collection[str]) -> frozenset[str]:
        raise AssertionError("nothing under test takes ticks away")


@dataclass(frozen=True)
class FixedSchedules:
    """Schedules that stand in a test."""

    definitions: tuple[ScheduleDefinition, ...] = ()

    def all(self) -> tuple[ScheduleDefinition, ...]:
        return self.definitions

    def listed(self) -> tuple[ScheduleSummary, ...]:
        return tuple(definition.summary for definition in self.definitions)

    def get(self, arn: str) -> ScheduleDefinition:
        for definition in self.definitions:
            if definition.arn == arn:
                return definition
        raise ScheduleMissing(arn)


@dataclass(eq=False)
class Outside:
    """A ``galley.system.System`` of given adapters. What a test does not give must not be opened."""

    store_: Store | None = None
    queue_: RunQueue | None = None
    bucket_: Bucket | None = None
    schedules_: Schedules | None = None
    at: datetime = SLOT + timedelta(minutes=1)

    def now(self) -> datetime:
        return self.at

    def store(self, table: str) -> Store:
        assert self.store_ is not None, "this function must not open the store"
        return self.store_

    def queue(self, runs_url: str, dead_runs_url: str = "", dead_ticks_url: str = "") -> RunQueue:
        assert self.queue_ is not None, "this function must not open the queue"
        return self.queue_

    def bucket(self, name: str) -> Bucket:
        assert self.bucket_ is not None, "this function must not open the bucket"
        return self.bucket_

    def schedules(self, group: str) -> Schedules:
        assert self.schedules_ is not None, "this function must not open the schedules"
        return self.schedules_

    def secret(self, name: str, *, refresh: bool = False) -> str:
        raise LookupError(f"secret {name}: there are none in this test")


@dataclass
class Context:
    """Lambda's context, as far as handlers use it."""

    aws_request_id: str = "8bb4a1e0-5b7f-4d06-8d3e-0f5f6f3c1a11"
    function_name: str = "galley-test"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:eu-west-2:123456789012:function:galley-test"
    remaining: timedelta = timedelta(minutes=5)

    def get_remaining_time_in_millis(self) -> int:
        return int(self.remaining.total_seconds() * 1000)
