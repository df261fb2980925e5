"""What a run costs in requests to AWS, from its message to its outcome, counted below the handlers.

Counted is every request that botocore sends, repetitions included, by every client that the function makes. What
Lambda's poller asks of SQS is not the function's.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
import time_machine

from e2e.on_moto import GROUP, Moto, moto_stack
from galley import system
from galley.rules import NO_RULES, Rules
from galley.runs import Origin, RunKey, RunMessage, SkipReason, Status
from galley.store import Approve, Bill, Claimed, Limits, Settled
from galley_cli.sample_material import put_samples
from support.aws import REGION
from support.outside import CONTRACT, SLOT, message
from unit.review.asking import DRAFT as A_DRAFT

NOW = SLOT + timedelta(minutes=1)
TRANSACTION, QUERY = "TransactWriteItems", "Query"
A_DESK_THAT_IS_DOWN = "http://127.0.0.1:9"
"""Nothing listens there, so the monitor has something to write about."""


@dataclass
class Sent:
    """The requests that were sent, by service, in their order."""

    operations: dict[str, list[str]] = field(default_factory=dict)

    def note(self, event_name: str, **_: Any) -> None:
        """Note a request; botocore tells of each that it makes, ``request-created.<service>.<operation>``."""
        _, service, operation = event_name.split(".")
        self.operations.setdefault(service, []).append(operation)

    def of(self, service: str) -> list[str]:
        """Return the operations that were asked of a service."""
        return self.operations.get(service, [])

    def forget(self) -> None:
        """Begin to count anew."""
        self.operations.clear()


@pytest.fixture
def stack() -> Iterator[Moto]:
    """A stack with material for every drafter, at the minute after the slot."""
    with time_machine.travel(NOW, tick=False), moto_stack(desk_url=A_DESK_THAT_IS_DOWN) as moto:
        put_samples(moto.bucket, NOW)
        moto.deploy_schedules()
        yield moto


@pytest.fixture
def sent(stack: Moto, monkeypatch: pytest.MonkeyPatch) -> Sent:
    """Count what the functions' own clients send: they are made anew, from a session that tells of each request."""
    found = Sent()
    session = boto3.Session(region_name=REGION)
    session.events.register("request-created", found.note)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", session)
    system.install(system.AwsSystem())
    return found


def arn(schedule: str) -> str:
    return f"arn:aws:scheduler:eu-west-2:123456789012:schedule/{GROUP}/{schedule}"


LAST_MONDAY = datetime(2026, 11, 23, 13, tzinfo=UTC)
RUNS = {
    "daily-digest": message(schedule=arn("DailyDigest")),
    "weekly-report": message("weekly-report", LAST_MONDAY, schedule=arn("WeeklyReport"), origin=Origin.BACKFILL),
    "nightly-sync": message("nightly-sync", schedule=arn("NightlySync")),
    "hourly-monitor": message("hourly-monitor", schedule=arn("HourlyMonitor")),
}
"""One run of each shape, which finds something to write about."""

DRAFTED = [TRANSACTION, QUERY, TRANSACTION]
"""A drafted run's claim, the one query for what earlier runs left, and the draft, whatever its shape."""

LISTED = 3
"""The listings of the queued, the begun and the pending runs, which a sweep reads once each, whatever there is."""


def deliver(stack: Moto, run: RunMessage) -> None:
    """Send the run's message, receive it as Lambda's poller does, and have draft handle it."""
    stack.queue.send([run])
    polled = stack.receive()
    assert polled is not None
    assert stack.invoke("draft", polled) == {"batchItemFailures": []}
    stack.delete(polled["Records"][0])


def status_of(stack: Moto, key: RunKey) -> tuple[Status, str | None]:
    run = stack.store.run(key)
    assert run is not None
    return run.status, run.reason


def fill(stack: Moto, drafter: str, *, rows: int, pending: int, rules: Rules = NO_RULES) -> None:
    """Give a drafter so many earlier runs, of which so many wait for a decision."""
    for number in range(rows):
        run = message(drafter, SLOT - timedelta(days=1 + number), origin=Origin.BACKFILL)
        limits = Limits(rows, None, 0)
        claimed = stack.store.claim(run, limits, owner="a", now=NOW, lease_until=NOW + timedelta(minutes=6))
        assert isinstance(claimed, Claimed)
        settled = stack.store.store(claimed.run, A_DRAFT, {}, Bill(), now=NOW, rules=rules)
        assert isinstance(settled, Settled)
        if number >= pending:
            read = settled.run
            stack.store.decide(
                run.key, Approve(), version=read.version, read_hash=read.text_hash or "", reviewer="ada", now=NOW
            )


@pytest.mark.enable_socket
@pytest.mark.parametrize(("rows", "pending"), [(0, 0), (12, 1)])
@pytest.mark.parametrize("drafter", RUNS)
def test_a_drafted_run_takes_a_claim_a_query_and_a_store_however_many_rows_there_are(
    stack: Moto, sent: Sent, drafter: str, rows: int, pending: int
) -> None:
    fill(stack, drafter, rows=rows, pending=pending)
    sent.forget()

    deliver(stack, RUNS[drafter])

    assert status_of(stack, RUNS[drafter].key) == (Status.PENDING, None)
    assert sent.of("dynamodb") == DRAFTED
    assert sent.of("sqs") == []


@pytest.mark.parametrize("pending", [1, 12])
def test_a_duplicate_takes_one_request(stack: Moto, sent: Sent, pending: int) -> None:
    fill(stack, "daily-digest", rows=pending, pending=pending)
    duplicate = message(slot=SLOT - timedelta(days=1), origin=Origin.BACKFILL)
    sent.forget()

    deliver(stack, duplicate)

    assert sent.operations == {"dynamodb": [TRANSACTION]}


@pytest.mark.parametrize("pending", [3, 12])
def test_a_gated_run_takes_two_requests_and_reads_no_material(stack: Moto, sent: Sent, pending: int) -> None:
    fill(stack, "daily-digest", rows=pending, pending=pending)
    run = message()
    sent.forget()

    deliver(stack, run)

    assert status_of(stack, run.key) == (Status.SKIPPED, "gate")
    assert sent.operations == {"dynamodb": [TRANSACTION, TRANSACTION]}


@pytest.mark.guarantee("G10")
@pytest.mark.parametrize(("drafters", "batches"), [(1, 1), (10, 1), (11, 2), (25, 3)])
def test_g10_a_tick_takes_one_request_for_each_ten_runs_and_nothing_else(
    stack: Moto, sent: Sent, drafters: int, batches: int
) -> None:
    tick = {
        "drafters": [f"drafter-{number}" for number in range(drafters)],
        "schedule": arn("DailyDigest"),
        "slot": "2026-11-27T06:00:00Z",
        **CONTRACT.model_dump(mode="json"),
    }

    assert len(stack.invoke("dispatch", tick)["runs"]) == drafters

    assert sent.operations == {"sqs": ["SendMessageBatch"] * batches}


@pytest.mark.enable_socket
def test_what_else_a_drafted_run_asks_of_aws_depends_on_its_sources_alone(stack: Moto, sent: Sent) -> None:
    asked: dict[str, Mapping[str, int]] = {}
    for drafter, run in RUNS.items():
        sent.forget()
        deliver(stack, run)
        others = [service for service in sent.operations if service != "dynamodb"]
        asked[drafter] = Counter(f"{service} {one}" for service in others for one in sent.of(service))

    assert asked == {
        "daily-digest": {"s3 ListObjectsV2": 1, "s3 GetObject": 14},
        "weekly-report": {"scheduler GetSchedule": 1, "s3 GetObject": 1},
        "nightly-sync": {"s3 ListObjectsV2": 3, "s3 GetObject": 9, "s3 PutObject": 9},
        "hourly-monitor": {},
    }


@pytest.mark.parametrize("rows", [0, 12])
def test_a_sweep_asks_for_what_changed_and_what_is_due_and_for_nothing_else(stack: Moto, sent: Sent, rows: int) -> None:
    fill(stack, "hourly-monitor", rows=rows, pending=0)
    sent.forget()

    stack.invoke("recover", {})
    assert Counter(sent.of("scheduler")) == {"ListSchedules": 1, "GetSchedule": len(RUNS)}
    assert Counter(sent.of("dynamodb")) == {QUERY: LISTED + 1, TRANSACTION: len(RUNS)}, "each is noted"

    sent.forget()
    stack.invoke("recover", {})
    assert sent.operations == {"scheduler": ["ListSchedules"], "dynamodb": [QUERY] * (LISTED + 1)}

    sent.forget()
    with time_machine.travel(SLOT + timedelta(minutes=70), tick=False):
        assert stack.invoke("recover", {})["skipped"] == []
    assert sent.of("scheduler") == ["ListSchedules"]
    looked = {QUERY: LISTED + 2, "GetItem": 1}
    assert Counter(sent.of("dynamodb")) == {**looked, TRANSACTION: 1}, "a slot has no row: the mark is there"

    sent.forget()
    with time_machine.travel(SLOT + timedelta(minutes=75), tick=False):
        stack.invoke("recover", {})
    assert Counter(sent.of("dynamodb")) == looked

    stack.store.skip(message("hourly-monitor", SLOT + timedelta(hours=1)), SkipReason.GATE, "", now=NOW)
    sent.forget()
    with time_machine.travel(SLOT + timedelta(minutes=85), tick=False):
        stack.invoke("recover", {})
    assert Counter(sent.of("dynamodb")) == {QUERY: LISTED + 2, TRANSACTION: 1}, "it has one, and the mark goes on"


def test_a_sweep_asks_once_for_each_drafter_with_rules_whatever_waits_and_once_for_each_that_it_withdraws(
    stack: Moto, sent: Sent
) -> None:
    fill(stack, "weekly-report", rows=4, pending=4)
    stack.invoke("recover", {})
    sent.forget()
    stack.invoke("recover", {})
    assert Counter(sent.of("dynamodb")) == {QUERY: LISTED + 1}, "what waits has no rules"

    fill(stack, "daily-digest", rows=12, pending=3, rules=Rules(expires=NOW + timedelta(days=1)))
    sent.forget()
    stack.invoke("recover", {})
    assert Counter(sent.of("dynamodb")) == {QUERY: LISTED + 2}

    fill(stack, "nightly-sync", rows=3, pending=3, rules=Rules(expires=NOW))
    sent.forget()
    assert len(stack.invoke("recover", {})["expired"]) == 3
    assert Counter(sent.of("dynamodb")) == {QUERY: LISTED + 3, TRANSACTION: 3}
