"""draft's real handler over DynamoDB Local: table, rows and expressions are those of AWS.

What is not DynamoDB costs nothing here: the bucket is in memory, and the model answers at once.
"""

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import draft
from attempt import Workplace
from bench.local_system import DRAFTER, TABLE, figures
from bench.slow_model import TEXT
from drafter import Drafter, read_drafter
from galley import system
from galley.instants import format_instant
from galley.runs import RunMessage, Status, Usage
from galley.store.dynamodb import DynamoStore
from galley.store.rows import partition_of_runs
from support.memory_bucket import MemoryBucket
from support.outside import Context, FixedSchedules, Outside, RecordingQueue
from writing import Answer, Brief

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

NAME = "figures"
NOW = datetime(2026, 11, 27, 6, 1, tzinfo=UTC)
COST = 200_000
WORST_COST = 4_000_000
SETTINGS = {
    "GALLEY_TABLE": "table",
    "GALLEY_RUNS_QUEUE_URL": "runs",
    "GALLEY_DEAD_RUNS_QUEUE_URL": "dead-runs",
    "GALLEY_BUCKET": "bucket",
    "GALLEY_SCHEDULE_GROUP": "galley",
    "GALLEY_DESK_URL": "https://desk.example.com",
    "GALLEY_MODEL_PROVIDER": "offline",
    "GALLEY_MODEL_KEY_ARN": "",
}


@dataclass
class Model:
    """Answers at once. ``calls`` counts."""

    calls: int = 0

    def write(self, brief: Brief, *, remaining: timedelta) -> Answer:
        self.calls += 1
        return Answer(model="instant", stop="end_turn", text=TEXT, usage=Usage(1_000, 200), cost_nanousd=COST)

    def worst_cost(self, model: str, max_input_tokens: int, max_output_tokens: int) -> int:
        return WORST_COST


def drafter(folder: Path, pending_limit: int) -> Drafter:
    """Return the drafter of the benchmark, with a daily budget, and a limit that may be above what a file can say."""
    path = folder / f"{NAME}.toml"
    path.write_text(DRAFTER.replace("pending_limit = 1000", "daily_budget_usd = 1000"))
    return read_drafter(path).model_copy(update={"pending_limit": pending_limit})


@dataclass
class Ours:
    """A table of DynamoDB Local, and draft in front of it."""

    client: "DynamoDBClient"
    table: str
    drafter: Drafter
    model: Model = field(default_factory=Model)

    def handle(self, run: RunMessage) -> None:
        """Have the handler work on the run's message."""
        answer = draft.handler(sqs_event(run), Context(aws_request_id=str(uuid.uuid4())))
        if answer != {"batchItemFailures": []}:
            raise AssertionError(f"{run.key} comes back")

    def limit(self, pending: int) -> None:
        """Set how many drafts may be undecided."""
        self.drafter = self.drafter.model_copy(update={"pending_limit": pending})

    def fill(self, rows: int, pending: int) -> Iterator[Mapping[str, Any]]:
        """Yield so many rows of runs, the first of which wait for a decision, and count those at the gate."""
        for number in range(rows):
            slot = format_instant(datetime(1990, 1, 1, tzinfo=UTC) + timedelta(hours=number))
            row = {"pk": {"S": partition_of_runs(NAME)}, "sk": {"S": slot}, "version": {"N": "2"}}
            watched = {"queue": {"S": str(Status.PENDING)}, "queue_at": {"S": slot}} if number < pending else {}
            status = Status.PENDING if watched else Status.PUBLISHED
            yield row | watched | {"status": {"S": str(status)}}

    def count(self, pending: int) -> None:
        """Let the gate count so many undecided drafts."""
        state = {"pk": {"S": f"DRAFTER#{NAME}"}, "sk": {"S": "STATE"}, "pending": {"N": str(pending)}}
        self.client.put_item(TableName=self.table, Item=state)


@contextmanager
def ours_on_dynamodb(client: "DynamoDBClient", table: str, folder: Path) -> Iterator[Ours]:
    """Let the handler of this process work on the table."""
    bucket = MemoryBucket()
    bucket.put(TABLE, figures_until_now(), content_type="text/csv")
    ours = Ours(client, table, drafter(folder, 1_000_000))
    outside = Outside(
        store_=DynamoStore(client, table), queue_=RecordingQueue(), bucket_=bucket, schedules_=FixedSchedules(), at=NOW
    )
    workplace = partial(Workplace, drafter=lambda name: ours.drafter)
    with ExitStack() as stack:
        stack.callback(system.install(outside))
        stack.enter_context(mock.patch.dict(os.environ, SETTINGS))
        stack.enter_context(mock.patch.object(draft, "Workplace", workplace))
        stack.enter_context(mock.patch.object(draft, "_model", return_value=ours.model))
        yield ours


def figures_until_now() -> bytes:
    """Return the table that the drafter reports on."""
    return figures([NOW.replace(hour=0, minute=0) - timedelta(days=past) for past in range(30, -2, -1)])


def sqs_event(run: RunMessage) -> dict[str, Any]:
    """Return the event that Lambda's poller makes of a run's message, as far as handlers look at it."""
    record = {
        "messageId": str(uuid.uuid4()),
        "receiptHandle": "receipt",
        "body": run.model_dump_json(),
        "attributes": {"ApproximateReceiveCount": "1", "MessageGroupId": run.drafter},
    }
    event: dict[str, Any] = json.loads(json.dumps({"Records": [record]}))
    return event
