"""The schedules of a group in Amazon EventBridge Scheduler."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from galley.aws import unavailable_as
from galley.instants import in_utc
from galley.schedules import ScheduleDefinition, ScheduleMissing, ScheduleSummary, SchedulesUnavailable

if TYPE_CHECKING:
    from mypy_boto3_scheduler import EventBridgeSchedulerClient
    from mypy_boto3_scheduler.type_defs import GetScheduleOutputTypeDef, ScheduleSummaryTypeDef


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
        names = sorted(summary["Name"] for summary in self._summaries())
        found = []
        for name in names:
            try:
                found.append(self._get(self._group, name))
            except ScheduleMissing:
                continue
        return tuple(found)

    def listed(self) -> tuple[ScheduleSummary, ...]:
        """Return every schedule of the group as the listing shows it, a hundred to a request."""
        return tuple(
            ScheduleSummary(
                name=summary["Name"],
                arn=summary["Arn"],
                enabled=summary["State"] == "ENABLED",
                modified=in_utc(summary["LastModificationDate"]),
            )
            for summary in self._summaries()
        )

    def get(self, arn: str) -> ScheduleDefinition:
        """Return one schedule, of whatever group its ARN names (`arn:aws:scheduler:…:schedule/<group>/<name>`)."""
        kind, _, path = arn.rpartition(":")[2].partition("/")
        group, _, name = path.partition("/")
        if kind != "schedule" or not group or not name:
            raise ScheduleMissing(f"{arn!r} is not the ARN of a schedule")
        return self._get(group, name)

    def _summaries(self) -> "Iterator[ScheduleSummaryTypeDef]":
        with unavailable_as(SchedulesUnavailable):
            for page in self._client.get_paginator("list_schedules").paginate(GroupName=self._group):
                yield from page["Schedules"]

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
