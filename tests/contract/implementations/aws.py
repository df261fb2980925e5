"""The adapters of AWS, on moto."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from moto import mock_aws

from contract.implementations import Received
from galley.bucket import Bucket
from galley.bucket.s3 import S3Bucket
from galley.queue.sqs import SqsRunQueue
from galley.store import Store
from galley.store.dynamodb import DynamoStore
from support.aws import client, create_bucket, create_queues, create_table

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@contextmanager
def open_store(folder: Path) -> Iterator[Store]:
    """Open a table in moto. Nothing waits: a test that meets a conflict by accident fails."""
    with mock_aws():
        yield DynamoStore(client("dynamodb"), create_table(client("dynamodb")), sleep=_never)


@dataclass(frozen=True)
class SqsUnderTest:
    """The queues in moto, and what Lambda's poller does."""

    client: "SQSClient"
    runs_url: str
    queue: SqsRunQueue

    def receive(self) -> Received | None:
        """Receive the next message for as long as the queue itself says."""
        answer = self.client.receive_message(
            QueueUrl=self.runs_url, MaxNumberOfMessages=1, MessageSystemAttributeNames=["ApproximateReceiveCount"]
        )
        for message in answer.get("Messages", []):
            receives = int(message["Attributes"]["ApproximateReceiveCount"])
            return Received(message["ReceiptHandle"], message["Body"], receives)
        return None

    def delete(self, receipt: str) -> None:
        """Remove a message that was received."""
        self.client.delete_message(QueueUrl=self.runs_url, ReceiptHandle=receipt)

    def send_raw(self, body: str, *, group: str) -> None:
        """Put any text into the queue."""
        self.client.send_message(
            QueueUrl=self.runs_url, MessageBody=body, MessageGroupId=group, MessageDeduplicationId=f"raw-{group}"
        )


@contextmanager
def open_queue(folder: Path) -> Iterator[SqsUnderTest]:
    """Open the queues in moto. Listings do not wait: the clock stands still."""
    with mock_aws():
        runs, dead_runs, dead_ticks = create_queues(client("sqs"))
        queue = SqsRunQueue(client("sqs"), runs, dead_runs, dead_ticks, sleep=_never, poll_seconds=0)
        yield SqsUnderTest(client("sqs"), runs, queue)


@contextmanager
def open_bucket(folder: Path) -> Iterator[Bucket]:
    """Open a bucket in moto."""
    with mock_aws():
        yield S3Bucket(client("s3"), create_bucket(client("s3")))


def _never(seconds: float) -> None:
    raise AssertionError(f"waited {seconds} s for nothing that this test put in the way")
