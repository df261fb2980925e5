"""AWS for tests: moto, holding the table, the queues, the bucket and the group of schedules of template.yaml.

What is made here is read from the template, so that a test meets the keys, the index and the queues that are deployed.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

import boto3
import yaml
from moto import mock_aws

from support.outside import ROOT

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

REGION: Final = "eu-west-2"
TABLE = "galley-table"
BUCKET = "galley-bucket"
GROUP = "galley-schedules"
RUNS, DEAD_RUNS, DEAD_TICKS = "galley-runs.fifo", "galley-dead-runs.fifo", "galley-dead-ticks"


@dataclass(frozen=True)
class Deployed:
    """The names by which a stack's functions know what they use."""

    table: str
    runs_url: str
    dead_runs_url: str
    dead_ticks_url: str
    bucket: str
    group: str


@cache
def client(service: str) -> Any:
    """Return a client of this process, made once: making one takes longer than most tests."""
    return cast("Any", boto3).client(service, REGION)


@contextmanager
def deployed() -> Iterator[Deployed]:
    """Let every boto3 client of this process talk to a fresh, empty deployment within moto."""
    with mock_aws():
        runs, dead_runs, dead_ticks = create_queues(client("sqs"))
        create_table(client("dynamodb"))
        create_bucket(client("s3"))
        client("scheduler").create_schedule_group(Name=GROUP)
        yield Deployed(TABLE, runs, dead_runs, dead_ticks, BUCKET, GROUP)


def create_table(client: "DynamoDBClient", name: str = TABLE) -> str:
    """Make the template's table: keys, index, stream and time to live."""
    declared = properties("Table")
    stream: Any = {"StreamEnabled": True, **declared["StreamSpecification"]}
    as_declared = ("BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")
    client.create_table(
        TableName=name, StreamSpecification=stream, **{property: declared[property] for property in as_declared}
    )
    client.update_time_to_live(TableName=name, TimeToLiveSpecification=declared["TimeToLiveSpecification"])
    return name


def create_queues(client: "SQSClient") -> tuple[str, str, str]:
    """Make the template's queues of runs, of dead runs and of dead ticks, and return their addresses."""
    dead_runs = _create_queue(client, DEAD_RUNS, properties("DeadRunsQueue"))
    dead_ticks = _create_queue(client, DEAD_TICKS, properties("DeadTicksQueue"))
    arn = client.get_queue_attributes(QueueUrl=dead_runs, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    declared = properties("RunsQueue")
    redrive = {**declared["RedrivePolicy"], "deadLetterTargetArn": arn}
    return _create_queue(client, RUNS, {**declared, "RedrivePolicy": redrive}), dead_runs, dead_ticks


def create_bucket(client: "S3Client", name: str = BUCKET) -> str:
    """Make an empty bucket."""
    client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
    return name


def properties(resource: str) -> dict[str, Any]:
    """Return what the template declares of a resource; a reference stands as what it refers to."""
    declared: dict[str, Any] = _template()["Resources"][resource]["Properties"]
    return declared


class Requests:
    """The requests that a client makes, by the names of their operations; and answers put in their way.

    An answer that is put in the way is given instead of the real one, so nothing happens on the other side.
    """

    def __init__(self) -> None:
        self.made: list[str] = []
        self.parameters: list[dict[str, Any]] = []
        self._in_the_way: list[tuple[int, dict[str, Any]]] = []

    def answer_with(self, status: int, answer: Mapping[str, Any], *, times: int = 1) -> None:
        """Answer the next requests with a status of HTTP and an answer as botocore parses it."""
        self._in_the_way += [(status, dict(answer))] * times

    def forget(self) -> None:
        """Begin to count anew."""
        self.made.clear()
        self.parameters.clear()

    def see(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        """Note a request: botocore calls this for each."""
        self.made.append(model.name)
        self.parameters.append(params)

    def answer(self, **_: Any) -> tuple[Any, dict[str, Any]] | None:
        """Answer a request, if an answer is in the way: botocore calls this for each."""
        if not self._in_the_way:
            return None
        status, answer = self._in_the_way.pop(0)
        return _Status(status), answer


@contextmanager
def watched(client: Any) -> Iterator[Requests]:
    """See the requests of a client, and put answers in their way, for as long as the context lasts."""
    requests = Requests()
    service = client.meta.service_model.service_id.hyphenize()
    hooks = {f"provide-client-params.{service}": requests.see, f"before-call.{service}": requests.answer}
    for event, hook in hooks.items():
        client.meta.events.register(event, hook)
    yield requests
    for event, hook in hooks.items():
        client.meta.events.unregister(event, hook)


@dataclass(frozen=True)
class _Status:
    status_code: int


def error(code: str, message: str = "", **more: Any) -> dict[str, Any]:
    """Return an error as botocore parses it."""
    return {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 400}, **more}


def _create_queue(client: "SQSClient", name: str, declared: Mapping[str, Any]) -> str:
    attributes: Any = {key: _attribute(value) for key, value in declared.items() if key != "QueueName"}
    return client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]


def _attribute(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return json.dumps(value)
        case _:
            return str(value)


@cache
def _template() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load((ROOT / "template.yaml").read_text(), Loader=_Template)  # noqa: S506
    return loaded


class _Template(yaml.SafeLoader):
    """Reads CloudFormation's short functions as their arguments."""


def _argument(loader: _Template, _: str, node: yaml.Node) -> object:
    constructors: dict[type[yaml.Node], Callable[[Any], object]] = {
        yaml.ScalarNode: loader.construct_scalar,
        yaml.SequenceNode: loader.construct_sequence,
        yaml.MappingNode: loader.construct_mapping,
    }
    return constructors[type(node)](node)


_Template.add_multi_constructor("!", _argument)
