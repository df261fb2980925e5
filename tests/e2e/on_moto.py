"""A whole deployment within moto, and Lambda in front of it: what is deployed, and what invokes it.

Each function runs as Lambda runs it: the handler that template.yaml names, with the variables that it names and no
others of ours, an event that has been JSON, and a context that knows how much time is left. The adapters are AWS's.
"""

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from unittest import mock

import boto3
from botocore.config import Config

import dispatch
import draft
import publish
import recover
import review
from galley.bucket.s3 import S3Bucket
from galley.contract import SCHEDULE_PLACEHOLDER, SLOT_PLACEHOLDER
from galley.instants import format_instant
from galley.queue.sqs import SqsRunQueue
from galley.schedules.eventbridge import EventBridgeSchedules
from galley.store.dynamodb import DynamoStore
from galley_cli.local.filters import fits
from galley_cli.template import DRAFT, PUBLISH, Template, TemplateSchedule, read_template
from support.aws import BUCKET, GROUP, REGION, TABLE, Deployed, client, deployed
from support.outside import ROOT, Context

MODULES = {module.__name__: module for module in (dispatch, draft, publish, recover, review)}
DESK = "https://a1b2c3d4e5.execute-api.eu-west-2.amazonaws.com"
KEY_NAME = "galley/anthropic"
REMAINING = timedelta(minutes=5)


@cache
def template() -> Template:
    """Return what the project's template says."""
    return read_template(ROOT / "template.yaml")


@dataclass
class Moto:
    """What a stack consists of, by its adapters; ``invoke`` runs its functions.

    ``variables`` are the values of what the template makes or is given; a variable that is not here is an error.
    """

    names: Deployed
    variables: dict[str, str]
    store: DynamoStore
    queue: SqsRunQueue
    bucket: S3Bucket
    schedules: EventBridgeSchedules
    _published: dict[str, int] = field(default_factory=dict)

    def invoke(self, name: str, event: Any, *, remaining: timedelta = REMAINING) -> Any:
        """Run a function on an event, with so much of its time left."""
        function = template().functions[name]
        module, _, handler_name = function.handler.partition(".")
        handler = getattr(MODULES[module], handler_name)
        given = {variable: self.variables.get(variable, value) for variable, value in function.environment.items()}
        context = Context(aws_request_id=str(uuid.uuid4()), function_name=f"galley-{name}", remaining=remaining)
        with mock.patch.dict(os.environ, given):
            result = handler(json.loads(json.dumps(event)), context)
        return json.loads(json.dumps(result))

    def deploy_schedules(self) -> None:
        """Make the template's schedules; they are created now."""
        for schedule in template().schedules:
            client("scheduler").create_schedule(
                Name=schedule.name,
                GroupName=GROUP,
                ScheduleExpression=schedule.expression,
                ScheduleExpressionTimezone=schedule.timezone,
                FlexibleTimeWindow={"Mode": "OFF"},
                Target={
                    "Arn": "arn:aws:lambda:eu-west-2:123456789012:function:galley-dispatch",
                    "RoleArn": "arn:aws:iam::123456789012:role/galley-scheduler",
                    "Input": schedule.input,
                },
            )

    def tick(self, schedule: TemplateSchedule, slot: datetime) -> dict[str, Any]:
        """Return what Scheduler sends when the schedule is due."""
        arn = f"arn:aws:scheduler:eu-west-2:123456789012:schedule/{GROUP}/{schedule.name}"
        text = schedule.input.replace(SCHEDULE_PLACEHOLDER, arn).replace(SLOT_PLACEHOLDER, format_instant(slot))
        event: dict[str, Any] = json.loads(text)
        return event

    def receive(self) -> dict[str, Any] | None:
        """Take the next run message out of the queue, as the event that Lambda's poller makes of it."""
        answer = client("sqs").receive_message(
            QueueUrl=self.names.runs_url,
            MaxNumberOfMessages=1,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        records = [_sqs_record(message) for message in answer.get("Messages", [])]
        return {"Records": records} if records else None

    def delete(self, record: Mapping[str, Any]) -> None:
        """Remove a message that is done with."""
        client("sqs").delete_message(QueueUrl=self.names.runs_url, ReceiptHandle=record["receiptHandle"])

    def deliver_runs(self) -> None:
        """Have draft work off every message that may be received now."""
        while (event := self.receive()) is not None:
            failed = {one["itemIdentifier"] for one in self.invoke(DRAFT, event)["batchItemFailures"]}
            for record in event["Records"]:
                if record["messageId"] not in failed:
                    self.delete(record)

    def deliver_changes(self) -> None:
        """Have publish see every change of the table since the last time that fits its filter."""
        for record in self._changes():
            if any(fits(pattern, record) for pattern in template().stream.patterns):
                assert self.invoke(PUBLISH, {"Records": [record]}) == {"batchItemFailures": []}

    def _changes(self) -> Iterator[dict[str, Any]]:
        streams = _streams()
        arn = streams.list_streams(TableName=TABLE)["Streams"][0]["StreamArn"]
        for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            iterator = streams.get_shard_iterator(
                StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            records = streams.get_records(ShardIterator=iterator)["Records"]
            seen = self._published.get(shard["ShardId"], 0)
            self._published[shard["ShardId"]] = len(records)
            yield from (json.loads(json.dumps(record, default=_as_epoch)) for record in records[seen:])


@cache
def _streams() -> Any:
    """Return a client that asks the region's endpoint: moto has none of those that name an account."""
    return boto3.client("dynamodbstreams", REGION, config=Config(account_id_endpoint_mode="disabled"))


@contextmanager
def moto_stack(provider: str = "offline", desk_url: str = DESK) -> Iterator[Moto]:
    """Deploy a stack that drafts with the provider; it is gone at the end."""
    with deployed() as names:
        key = client("secretsmanager").create_secret(Name=KEY_NAME, SecretString="key-1")
        variables = {
            "POWERTOOLS_METRICS_NAMESPACE": "Galley/moto",
            "GALLEY_TABLE": names.table,
            "GALLEY_RUNS_QUEUE_URL": names.runs_url,
            "GALLEY_DEAD_RUNS_QUEUE_URL": names.dead_runs_url,
            "GALLEY_BUCKET": names.bucket,
            "GALLEY_SCHEDULE_GROUP": names.group,
            "GALLEY_DESK_URL": desk_url,
            "GALLEY_MODEL_PROVIDER": provider,
            "GALLEY_MODEL_KEY_ARN": key["ARN"],
            "GALLEY_LOGIN_DOMAIN": "galley-1.auth.eu-west-2.amazoncognito.com",
            "GALLEY_LOGIN_CLIENT_ID": "4f2bc1examplee8u0",
        }
        yield Moto(
            names=names,
            variables=variables,
            store=DynamoStore(client("dynamodb"), TABLE),
            queue=SqsRunQueue(client("sqs"), names.runs_url, names.dead_runs_url, names.dead_ticks_url, poll_seconds=0),
            bucket=S3Bucket(client("s3"), BUCKET),
            schedules=EventBridgeSchedules(client("scheduler"), GROUP),
        )


def _sqs_record(message: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": message.get("MessageAttributes", {}),
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-2:123456789012:galley-runs.fifo",
        "awsRegion": "eu-west-2",
    }


def _as_epoch(value: object) -> int:
    assert isinstance(value, datetime)
    return int(value.timestamp())
