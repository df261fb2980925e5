"""The schedules of a group in Amazon EventBridge Scheduler."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from galley.aws import unavailable_as
from galley.instants import in_utc
from galley.schedules import (
    ScheduleDefinition,
    ScheduleMissing,
    ScheduleNotUnderstood,
    ScheduleState,
    ScheduleSummary,
    SchedulesUnavailable,
)

if TYPE_CHECKING:
    from mypy_boto3_scheduler import EventBridgeSchedulerClient
    from mypy_boto3_scheduler.type_defs import GetScheduleOutputTypeDef, ScheduleSummaryTypeDef

_READ_ONLY = frozenset({"Arn", "CreationDate", "LastModificationDate", "ResponseMetadata"})
"""What GetSchedule tells of a schedule and UpdateSchedule does not take."""


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
        return self._get(*_group_and_name(arn))

    def switch(self, arn: str, state: ScheduleState) -> ScheduleDefinition:
        """Enable or disable one schedule, and return it as it is then.

        UpdateSchedule replaces the whole schedule: what it is not given returns to its default. So everything that
        GetSchedule told goes back, and nothing is written where the SDK left out a part of the answer.
        https://docs.aws.amazon.com/scheduler/latest/APIReference/API_UpdateSchedule.html
        """
        group, name = _group_and_name(arn)
        with self._bodies() as bodies:
            found = self._found(group, name)
        unknown = [place for body in bodies for place in _unknown(json.loads(body), found)]
        if unknown:
            raise ScheduleNotUnderstood(
                f"schedule {name} has {', '.join(unknown)}, which the installed boto3 does not know and would lose; "
                "nothing was changed: update boto3"
            )
        if found["State"] == state:
            return _definition(found)
        kept: dict[str, Any] = {field: value for field, value in found.items() if field not in _READ_ONLY}
        with unavailable_as(SchedulesUnavailable):
            self._client.update_schedule(**{**kept, "State": str(state)})
        return self._get(group, name)

    def _summaries(self) -> "Iterator[ScheduleSummaryTypeDef]":
        with unavailable_as(SchedulesUnavailable):
            for page in self._client.get_paginator("list_schedules").paginate(GroupName=self._group):
                yield from page["Schedules"]

    def _get(self, group: str, name: str) -> ScheduleDefinition:
        return _definition(self._found(group, name))

    def _found(self, group: str, name: str) -> "GetScheduleOutputTypeDef":
        with unavailable_as(SchedulesUnavailable):
            try:
                return self._client.get_schedule(GroupName=group, Name=name)
            except ClientError as error:
                if error.response["Error"]["Code"] == "ResourceNotFoundException":
                    raise ScheduleMissing(f"schedule {group}/{name} does not exist") from error
                raise

    @contextmanager
    def _bodies(self) -> Iterator[list[bytes]]:
        """Keep the answers of GetSchedule as they were sent: the SDK drops what it does not know."""
        bodies: list[bytes] = []

        def keep(http_response: Any, **_: Any) -> None:
            bodies.append(http_response.content)

        self._client.meta.events.register("after-call.scheduler.GetSchedule", keep)
        try:
            yield bodies
        finally:
            self._client.meta.events.unregister("after-call.scheduler.GetSchedule", keep)


def _group_and_name(arn: str) -> tuple[str, str]:
    """Return which schedule an ARN names."""
    kind, _, path = arn.rpartition(":")[2].partition("/")
    group, _, name = path.partition("/")
    if kind != "schedule" or not group or not name:
        raise ScheduleMissing(f"{arn!r} is not the ARN of a schedule")
    return group, name


def _unknown(sent: object, read: object, place: str = "") -> Iterator[str]:
    """Yield the place of each field that was sent and not read; one that is null says nothing."""
    match sent, read:
        case Mapping(), Mapping():
            for field, value in sent.items():
                if value is not None and field not in read:
                    yield f"{place}{field}"
                else:
                    yield from _unknown(value, read.get(field), f"{place}{field}.")
        case list(), list():
            for one, other in zip(sent, read, strict=True):
                yield from _unknown(one, other, place)


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
