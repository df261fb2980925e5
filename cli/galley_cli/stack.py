"""A deployed stack: its table, queues, bucket, schedules and desk, found by the stack's outputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from galley.bucket import Bucket
from galley.queue import RunQueue
from galley.schedules import SwitchableSchedules
from galley.store import Store
from galley.system import AwsSystem

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

OUTPUTS = ("TableName", "RunsQueueUrl", "DeadRunsQueueUrl", "DeadTicksQueueUrl", "ScheduleGroupName")


class StackUnreachable(Exception):
    """The stack cannot be acted on. Its text is one line that says why and what to do."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The adapters to a deployed stack."""

    store: Store
    queue: RunQueue
    schedules: SwitchableSchedules


@dataclass(frozen=True, slots=True)
class DeployedSources:
    """What a deployed stack's drafters read: the bucket, and the address of the review desk."""

    bucket: Bucket
    desk_url: str


def open_stack(name: str) -> Stack:
    """Return the adapters to the stack of that name, in the region and with the credentials of the environment.

    Raises:
        StackUnreachable: when it does not exist, may not be read, or is not a stack of Galley's.
    """
    outputs = _outputs(name, OUTPUTS)
    aws = AwsSystem()
    return Stack(
        store=aws.store(outputs["TableName"]),
        queue=aws.queue(outputs["RunsQueueUrl"], outputs["DeadRunsQueueUrl"], outputs["DeadTicksQueueUrl"]),
        schedules=aws.schedules(outputs["ScheduleGroupName"]),
    )


def open_sources(name: str) -> DeployedSources:
    """Return what the drafters of the stack of that name read, opened as by ``open_stack``.

    Raises:
        StackUnreachable: as ``open_stack`` does.
    """
    outputs = _outputs(name, ("BucketName", "DeskUrl"))
    return DeployedSources(AwsSystem().bucket(outputs["BucketName"]), outputs["DeskUrl"])


def _outputs(name: str, needed: Sequence[str]) -> dict[str, str]:
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        outputs = _described(boto3.client("cloudformation"), name)
    except ClientError as error:
        raise StackUnreachable(f"stack {name!r}: {error.response['Error']['Message']}") from error
    except BotoCoreError as error:
        raise StackUnreachable(f"stack {name!r}: {error}; set a region and credentials, or AWS_PROFILE") from error
    missing = [output for output in needed if output not in outputs]
    if missing:
        raise StackUnreachable(f"stack {name!r} has no output {', '.join(missing)}; is it deployed from template.yaml?")
    return outputs


def _described(cloudformation: "CloudFormationClient", name: str) -> dict[str, str]:
    described = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])}
