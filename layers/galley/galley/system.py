"""The outside world of a function: the clock and the adapters to what it is given by name.

In Lambda that is AWS. Whoever runs the handlers elsewhere (the local system, tests) installs another one first.
"""

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Protocol

from galley.bucket import Bucket
from galley.instants import utc_now
from galley.queue import RunQueue
from galley.schedules import Schedules, SwitchableSchedules
from galley.store import Store

if TYPE_CHECKING:
    from botocore.config import Config


class System(Protocol):
    """Opens adapters by the names that a function's settings hold. Opening one does no I/O."""

    def now(self) -> datetime:
        """Return the present instant in UTC."""
        ...

    def store(self, table: str) -> Store:
        """Open the table."""
        ...

    def queue(self, runs_url: str, dead_runs_url: str = "", dead_ticks_url: str = "") -> RunQueue:
        """Open the queues; what is not named cannot be used."""
        ...

    def bucket(self, name: str) -> Bucket:
        """Open the bucket."""
        ...

    def schedules(self, group: str) -> Schedules:
        """Open the group of schedules."""
        ...

    def secret(self, name: str, *, refresh: bool = False) -> str:
        """Return a secret's text, cached for five minutes; ``refresh`` asks for it again.

        Raises:
            LookupError: when it cannot be had; one line that names it.
        """
        ...


class AwsSystem:
    """Amazon DynamoDB, SQS, S3, EventBridge Scheduler and Secrets Manager, with clients made on first use."""

    now = staticmethod(utc_now)

    @cache  # noqa: B019 - one system lives as long as the process
    def store(self, table: str) -> Store:
        """Open the table."""
        import boto3

        from galley.store.dynamodb import DynamoStore

        return DynamoStore(boto3.client("dynamodb", config=client_config()), table)

    @cache  # noqa: B019 - one system lives as long as the process
    def queue(self, runs_url: str, dead_runs_url: str = "", dead_ticks_url: str = "") -> RunQueue:
        """Open the queues."""
        import boto3

        from galley.queue.sqs import SqsRunQueue

        return SqsRunQueue(boto3.client("sqs", config=client_config()), runs_url, dead_runs_url, dead_ticks_url)

    @cache  # noqa: B019 - one system lives as long as the process
    def bucket(self, name: str) -> Bucket:
        """Open the bucket."""
        import boto3

        from galley.bucket.s3 import S3Bucket

        return S3Bucket(boto3.client("s3", config=client_config()), name)

    @cache  # noqa: B019 - one system lives as long as the process
    def schedules(self, group: str) -> SwitchableSchedules:
        """Open the group of schedules."""
        import boto3

        from galley.schedules.eventbridge import EventBridgeSchedules

        return EventBridgeSchedules(boto3.client("scheduler", config=client_config()), group)

    def secret(self, name: str, *, refresh: bool = False) -> str:
        """Return the secret's text."""
        from aws_lambda_powertools.utilities.parameters import get_secret
        from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError

        try:
            return str(get_secret(name, max_age=300, force_fetch=refresh))
        except GetParameterError as error:
            raise LookupError(f"secret {name}: {error}; check that it exists and that the role may read it") from error


def client_config() -> "Config":
    """Return how every client asks AWS: with bounded waits, so that a hanging endpoint cannot eat the time limit."""
    from botocore.config import Config

    return Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 4})


_installed: System | None = None


@cache
def _aws() -> System:
    return AwsSystem()


def current() -> System:
    """Return the system that was installed, or AWS."""
    return _aws() if _installed is None else _installed


def install(system: System | None) -> Callable[[], None]:
    """Let every handler of this process use another system; None goes back to AWS.

    Returns a function that puts the one before back.
    """
    global _installed
    before = _installed
    _installed = system

    def undo() -> None:
        global _installed
        _installed = before

    return undo
