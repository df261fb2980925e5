"""The obvious way to do the same: Powertools' idempotency, a count of what is pending, and a put of the draft.

One table for the drafts, with a sparse index of those that are pending (keys only, the smallest that there is), and
one for Powertools' own records. It collects, writes and composes exactly as draft does, and says as much in its log and
its metrics. It has no budget, no cursors, no counters of the week, no lease, no record of what it skipped, and two runs
at once can both find the last place free.
https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)

from bench.local_system import TABLE
from bench.ours_on_dynamodb import NOW, Model, figures_until_now, sqs_event
from drafter import Drafter
from galley.bucket import Bucket
from galley.instants import format_instant
from galley.runs import RunMessage, read_message
from quantities import exact
from shapes import report
from shapes.shape import Assignment
from sources.fetch import fetch
from support.memory_bucket import MemoryBucket
from support.outside import Context, FixedSchedules
from windows import window_of
from writing import Brief, compose, read_answer

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DRAFTS, RECORDS, PENDING = "obvious-drafts", "obvious-idempotency", "pending"

logger = Logger(service="obvious", use_rfc3339=True, utc=True)
metrics = Metrics(namespace="Obvious", service="obvious")


def create_tables(client: "DynamoDBClient") -> None:
    """Make the two tables, both on demand."""
    client.create_table(
        TableName=DRAFTS,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("drafter", "slot", "pending_of")
        ],
        KeySchema=[{"AttributeName": "drafter", "KeyType": "HASH"}, {"AttributeName": "slot", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": PENDING,
                "KeySchema": [
                    {"AttributeName": "pending_of", "KeyType": "HASH"},
                    {"AttributeName": "slot", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )
    client.create_table(
        TableName=RECORDS,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )


@dataclass
class ObviousWay:
    """The tables, and a handler in front of them."""

    client: "DynamoDBClient"
    drafter: Drafter
    model: Model = field(default_factory=Model)
    bucket: Bucket = field(default_factory=MemoryBucket)

    def __post_init__(self) -> None:
        self.bucket.put(TABLE, figures_until_now(), content_type="text/csv")
        self._config = IdempotencyConfig(event_key_jmespath="[drafter, slot]", expires_after_seconds=3_600)
        persistence = DynamoDBPersistenceLayer(table_name=RECORDS, boto3_client=self.client)
        self._once = idempotent_function(
            self._draft, data_keyword_argument="run", persistence_store=persistence, config=self._config
        )
        self._handler = metrics.log_metrics(self._work)

    def handle(self, run: RunMessage) -> None:
        """Have the handler work on the run's message."""
        self._handler(sqs_event(run), Context())

    def limit(self, pending: int) -> None:
        """Set how many drafts may be undecided."""
        self.drafter = self.drafter.model_copy(update={"pending_limit": pending})

    def fill(self, rows: int, pending: int) -> Iterator[Mapping[str, Any]]:
        """Yield so many drafts, the first of which wait for a decision."""
        for number in range(rows):
            slot = format_instant(datetime(1990, 1, 1, tzinfo=UTC) + timedelta(hours=number))
            row = {"drafter": {"S": self.drafter.name}, "slot": {"S": slot}, "version": {"N": "2"}}
            waits = {"pending_of": {"S": self.drafter.name}} if number < pending else {}
            yield row | waits | {"status": {"S": "pending" if waits else "published"}}

    def count(self, pending: int) -> None:
        """The index itself is what is counted."""

    def _work(self, event: dict[str, Any], context: Context) -> dict[str, Any]:
        self._config.register_lambda_context(context)
        for record in event["Records"]:
            message = read_message(record["body"])
            with logger.append_context_keys(run=str(message.key)):
                self._once(run={"drafter": message.drafter, "slot": format_instant(message.slot)}, message=message)
        return {"batchItemFailures": []}

    def _draft(self, run: dict[str, str], message: RunMessage) -> dict[str, str]:
        if self._undecided(message.drafter) >= self.drafter.pending_limit:
            return self._told({**run, "status": "gated"})
        drafter = self.drafter
        material = report.collect(
            Assignment(
                drafter=drafter,
                slot=message.slot,
                looked_at=NOW,
                window=lambda: window_of(message, drafter, FixedSchedules()),
                cursors=dict,
                bucket=self.bucket,
                fetch=fetch,
                desk_url="",
                time_left=lambda: timedelta(minutes=5),
                earlier_run=lambda slot: None,
            )
        )
        brief = Brief(
            drafter=drafter.name,
            shape=drafter.shape,
            title=drafter.title,
            instructions=drafter.instructions,
            items=material.items,
            figures=material.figures,
            values=tuple(reading for figure in material.values for reading in exact(figure.value, figure.unit)),
            slot=message.slot,
            model=drafter.model,
            max_input_tokens=drafter.max_input_tokens,
            max_output_tokens=drafter.max_output_tokens,
        )
        answer = self.model.write(brief, remaining=timedelta(minutes=5))
        made = compose(read_answer(answer, brief), brief)
        words = {**run, "pending_of": message.drafter, "status": "pending", "title": made.title, "body": made.body}
        now = format_instant(NOW)
        words |= {"model": answer.model, "created": now, "items": "\n".join(item.text for item in material.items)}
        words |= {"attachments": "\n".join(attachment.text for attachment in material.attachments)}
        item: Any = {name: {"S": value} for name, value in words.items()}
        item["cost_nanousd"] = {"N": str(answer.cost_nanousd)}
        self.client.put_item(TableName=DRAFTS, Item=item)
        return self._told({**run, "status": "pending"})

    def _undecided(self, drafter: str) -> int:
        pages = self.client.get_paginator("query").paginate(
            TableName=DRAFTS,
            IndexName=PENDING,
            Select="COUNT",
            KeyConditionExpression="pending_of = :drafter",
            ExpressionAttributeValues={":drafter": {"S": drafter}},
        )
        return sum(page["Count"] for page in pages)

    def _told(self, outcome: dict[str, str]) -> dict[str, str]:
        logger.info("run %s is %s", outcome["slot"], outcome["status"])
        metrics.add_metric(name=f"run_{outcome['status']}", unit=MetricUnit.Count, value=1)
        return outcome
