"""The schedules of a group in Amazon EventBridge Scheduler."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from galley.aws import unavailable_as
from galley.instants import in_utc
from galley.schedules import ScheduleDefinition, ScheduleMissing, SchedulesUnavailable

if TYPE_CHECKING:
    from mypy_boto3_scheduler import EventBridgeSchedulerClient
    from mypy_boto3_scheduler.type_defs import GetScheduleOutputTypeDef


class EventBridgeSchedules:
    """The schedules of one group by its name. Opening it does no I/O."""

    def __init__(self, client: "EventBridgeSchedulerClient", group: str) -> None:
        self._client = client
        self._group = group

    def all(self) -> tuple[ScheduleDefinition, ...]:
        """Return every schedule of the group, by name. One that goes away meanwhile is left out.

        A listing has no expressions, so each schedule is asked for by itself.
        https://docs.aws.amazon.com/scheduler/latest/APIReference/API_ScheduleSummary.html
        """
        with unavailable_as(SchedulesUnavailable):
            pages = self._client.get_paginator("list_schedules").paginate(GroupName=self._group)
            names = sorted(summary["Name"] for page in pages for summary in page["Schedules"])
        found = []
        for name in names:
            try:
                found.append(self._get(self._group, name))
            except ScheduleMissing:
                continue
        return tuple(found)

    def get(self, arn: str) -> ScheduleDefinition:
        """Return one schedule, of whatever group its ARN names (`arn:aws:scheduler:…:schedule/<group>/<name>`)."""
        kind, _, path = arn.rpartition(":")[2].partition("/")
        group, _, name = path.partition("/")
        if kind != "schedule" or not group or not name:
            raise ScheduleMissing(f"{arn!r} is not the ARN of a schedule")
        return self._get(group, name)

    def _get(self, group: str, name: str) -> ScheduleDefinition:
        with unavailable_as(SchedulesUnavailable):
            try:
                return _definition(self._client.get_schedule(GroupName=group, Name=name))
            except ClientError as error:
                if error.response["Error"]["Code"] == "ResourceNotFoundException":
                    raise ScheduleMissing(f"schedule {group}/{name} does not exist") from error
                raise


def _definition(found: "GetScheduleOutputTypeDef") -> ScheduleDefinition:
    """Return the schedule as deployed; without a timezone Scheduler keeps UTC."""
    start, end = found.get("StartDate"), found.get("EndDate")
    return ScheduleDefinition(
        name=found["Name"],
        arn=found["Arn"],
        expression=found["ScheduleExpression"],
        timezone=found.get("ScheduleExpressionTimezone") or "UTC",
        input=found["Target"].get("Input", ""),
        enabled=found["State"] == "ENABLED",
        created=in_utc(found["CreationDate"]),
        modified=in_utc(found["LastModificationDate"]),
        start=None if start is None else in_utc(start),
        end=None if end is None else in_utc(end),
    )
