"""The schedules of a group in EventBridge Scheduler."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError
from moto import mock_aws

from galley.schedules import ScheduleMissing, ScheduleNotUnderstood, ScheduleState, SchedulesUnavailable
from galley.schedules.eventbridge import EventBridgeSchedules
from support.aws import GROUP, Requests, client, error, watched

TARGET = {
    "Arn": "arn:aws:lambda:eu-west-2:123456789012:function:dispatch",
    "RoleArn": "arn:aws:iam::123456789012:role/scheduler",
}
INPUT = '{"drafters": ["daily-digest"], "slot": "<aws.scheduler.scheduled-time>"}'


@pytest.fixture
def requests() -> Iterator[Requests]:
    with mock_aws(), watched(client("scheduler")) as requests:
        client("scheduler").create_schedule_group(Name=GROUP)
        requests.forget()
        yield requests


@pytest.fixture
def schedules(requests: Requests) -> EventBridgeSchedules:
    return EventBridgeSchedules(client("scheduler"), GROUP)


def create(name: str, group: str = GROUP, **change: Any) -> str:
    fields: dict[str, Any] = {
        "ScheduleExpression": "cron(0 6 ? * MON-FRI *)",
        "ScheduleExpressionTimezone": "Europe/London",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "State": "ENABLED",
        "Target": {**TARGET, "Input": INPUT},
        **change,
    }
    arn: str = client("scheduler").create_schedule(Name=name, GroupName=group, **fields)["ScheduleArn"]
    return arn


def test_a_schedule_is_what_is_deployed(schedules: EventBridgeSchedules) -> None:
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    end = start + timedelta(days=30)
    arn = create("DailyDigest-1A2B3C", StartDate=start, EndDate=end)

    found = schedules.get(arn)

    assert (found.name, found.arn) == ("DailyDigest-1A2B3C", arn)
    assert (found.expression, found.timezone) == ("cron(0 6 ? * MON-FRI *)", "Europe/London")
    assert (found.input, found.enabled) == (INPUT, True)
    assert (found.start, found.end) == (start, end)
    assert found.created == found.modified
    for instant in (found.created, found.modified, found.start, found.end):
        assert instant is not None
        assert instant.utcoffset() == timedelta()
    assert schedules.all() == (found,)


def test_all_schedules_of_the_group_are_listed_by_name_and_no_others(schedules: EventBridgeSchedules) -> None:
    client("scheduler").create_schedule_group(Name="another")
    for name in ("c", "a", "b"):
        create(name)
    create("d", group="another")

    assert [found.name for found in schedules.all()] == ["a", "b", "c"]


def test_a_schedule_without_a_timezone_or_bounds_is_in_utc_and_unbounded(
    schedules: EventBridgeSchedules, requests: Requests
) -> None:
    arn = create("Disabled", State="DISABLED", Target=TARGET)
    answer = client("scheduler").get_schedule(Name="Disabled", GroupName=GROUP)
    for absent in ("ScheduleExpressionTimezone", "StartDate", "EndDate"):
        answer.pop(absent, None)
    requests.answer_with(200, answer)

    found = schedules.get(arn)

    assert (found.timezone, found.start, found.end) == ("UTC", None, None)
    assert (found.enabled, found.input) == (False, "")


def test_a_schedule_of_another_group_is_found_by_its_arn(schedules: EventBridgeSchedules) -> None:
    client("scheduler").create_schedule_group(Name="another")
    arn = create("d", group="another")

    assert schedules.get(arn).name == "d"


def test_a_schedule_that_goes_away_while_they_are_listed_is_left_out(
    schedules: EventBridgeSchedules, requests: Requests
) -> None:
    create("stays")
    both = {"Schedules": [{"Name": "gone"}, {"Name": "stays"}]}
    requests.answer_with(200, both)

    assert [found.name for found in schedules.all()] == ["stays"]


def test_every_page_of_a_listing_is_followed(schedules: EventBridgeSchedules, requests: Requests) -> None:
    for name in ("a", "b"):
        create(name)
    requests.answer_with(200, {"Schedules": [{"Name": "b"}], "NextToken": "the-next"})
    requests.answer_with(200, {"Schedules": [{"Name": "a"}]})

    assert [found.name for found in schedules.all()] == ["a", "b"]


@pytest.mark.parametrize(
    "arn",
    [
        f"arn:aws:scheduler:eu-west-2:123456789012:schedule/{GROUP}/gone",
        "arn:aws:scheduler:eu-west-2:123456789012:schedule/DailyDigest",
        f"arn:aws:scheduler:eu-west-2:123456789012:schedule-group/{GROUP}",
        "<aws.scheduler.schedule-arn>",
        "DailyDigest",
        "",
    ],
)
def test_what_is_no_schedule_is_missing_and_named(schedules: EventBridgeSchedules, arn: str) -> None:
    with pytest.raises(ScheduleMissing, match=arn.rpartition("/")[2] or "''"):
        schedules.get(arn)


def test_only_a_missing_schedule_is_missing(schedules: EventBridgeSchedules, requests: Requests) -> None:
    requests.answer_with(400, error("AccessDeniedException", "not allowed"))

    with pytest.raises(ClientError, match="not allowed"):
        schedules.get(f"arn:aws:scheduler:eu-west-2:123456789012:schedule/{GROUP}/a")


def test_the_listing_tells_what_a_schedule_itself_tells_of_its_last_change(
    schedules: EventBridgeSchedules, requests: Requests
) -> None:
    create("Enabled")
    create("Disabled", State="DISABLED")
    requests.forget()

    listed = schedules.listed()

    assert requests.made == ["ListSchedules"], "no schedule is asked for by itself"
    assert sorted(listed, key=lambda one: one.name) == [found.summary for found in schedules.all()]
    assert {one.name: one.enabled for one in listed} == {"Enabled": True, "Disabled": False}


def test_every_page_of_the_listing_is_followed(schedules: EventBridgeSchedules, requests: Requests) -> None:
    changed = datetime(2026, 3, 2, 6, tzinfo=UTC)

    def page(name: str) -> dict[str, Any]:
        summary = {"Name": name, "Arn": f"arn:{name}", "State": "ENABLED", "LastModificationDate": changed}
        return {"Schedules": [summary]}

    requests.answer_with(200, {**page("b"), "NextToken": "the-next"})
    requests.answer_with(200, page("a"))

    assert [(one.name, one.arn, one.modified) for one in schedules.listed()] == [
        ("b", "arn:b", changed),
        ("a", "arn:a", changed),
    ]


def test_a_listing_without_an_answer_says_that_scheduler_gives_none(
    schedules: EventBridgeSchedules, requests: Requests
) -> None:
    requests.answer_with(429, error("ThrottlingException", "try again"))

    with pytest.raises(SchedulesUnavailable):
        schedules.listed()


def whole(**change: Any) -> dict[str, Any]:
    """Return every field that a schedule of ours may have, none of them at its default."""
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    return {
        "Description": "Weekday mornings",
        "FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 5},
        "StartDate": start,
        "EndDate": start + timedelta(days=30),
        "KmsKeyArn": "arn:aws:kms:eu-west-2:123456789012:key/1234",
        "ActionAfterCompletion": "DELETE",
        "Target": {
            **TARGET,
            "Input": INPUT,
            "RetryPolicy": {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 3},
            "DeadLetterConfig": {"Arn": "arn:aws:sqs:eu-west-2:123456789012:dead-ticks"},
        },
        **change,
    }


def told(name: str) -> dict[str, Any]:
    """Return what Scheduler tells of a schedule, without what it alone writes."""
    answer = client("scheduler").get_schedule(Name=name, GroupName=GROUP)
    return {field: answer[field] for field in answer if field not in ("ResponseMetadata", "LastModificationDate")}


@pytest.mark.parametrize("state", list(ScheduleState))
def test_a_switch_changes_the_state_and_nothing_else(
    schedules: EventBridgeSchedules, requests: Requests, state: ScheduleState
) -> None:
    (other,) = set(ScheduleState) - {state}
    arn = create("Daily", **whole(State=str(other)))
    before = told("Daily")
    requests.forget()

    now = schedules.switch(arn, state)

    assert told("Daily") == {**before, "State": state}
    assert (now.enabled, now.created) == (state is ScheduleState.ENABLED, before["CreationDate"])


def test_all_that_scheduler_told_is_written_back_whatever_the_other_side_forgets(
    schedules: EventBridgeSchedules, requests: Requests
) -> None:
    arn = create("Daily", **whole())
    before = told("Daily")
    requests.forget()

    schedules.switch(arn, ScheduleState.DISABLED)

    assert requests.made == ["GetSchedule", "UpdateSchedule", "GetSchedule"]
    sent = {field: value for field, value in requests.parameters[1].items() if field != "ClientToken"}
    assert sent == {field: before[field] for field in before.keys() - {"Arn", "CreationDate"}} | {"State": "DISABLED"}


def test_a_schedule_that_is_in_the_state_already_is_not_written(
    schedules: EventBridgeSchedules, requests: Requests
) -> None:
    arn = create("Daily")
    requests.forget()

    assert schedules.switch(arn, ScheduleState.ENABLED) == schedules.get(arn)
    assert "UpdateSchedule" not in requests.made


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"Jitter": 5}, "Jitter"),
        ({"Target": {**TARGET, "Priority": {"Level": 1}}}, "Target.Priority"),
        ({"Target": {**TARGET, "EcsParameters": {"TaskDefinitionArn": "a", "Tags": [], "Sidecar": 1}}}, "Sidecar"),
    ],
)
def test_what_the_sdk_does_not_know_is_named_and_nothing_is_written(
    schedules: EventBridgeSchedules, requests: Requests, more: dict[str, Any], named: str
) -> None:
    arn = create("Daily")
    answer = {
        "Arn": arn,
        "Name": "Daily",
        "GroupName": GROUP,
        "State": "ENABLED",
        "ScheduleExpression": "rate(1 hour)",
        "Description": None,
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": TARGET,
        **more,
    }

    def newer(**_: Any) -> AWSResponse:
        return AWSResponse("https://scheduler", 200, {"content-type": "application/json"}, Raw(answer))

    client("scheduler").meta.events.register_first("before-send.scheduler.GetSchedule", newer)
    try:
        with pytest.raises(ScheduleNotUnderstood, match=rf"schedule Daily has \S*{named}, which the installed boto3"):
            schedules.switch(arn, ScheduleState.DISABLED)
    finally:
        client("scheduler").meta.events.unregister("before-send.scheduler.GetSchedule", newer)
    assert "UpdateSchedule" not in requests.made


class Raw:
    """A body as the SDK reads it from a connection."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self._text = json.dumps(answer).encode()

    def stream(self) -> Iterator[bytes]:
        yield self._text


def test_a_switch_of_what_is_gone_or_refused_changes_nothing(
    schedules: EventBridgeSchedules, requests: Requests
) -> None:
    with pytest.raises(ScheduleMissing, match="gone"):
        schedules.switch(f"arn:aws:scheduler:eu-west-2:123456789012:schedule/{GROUP}/gone", ScheduleState.DISABLED)
    arn = create("Daily", StartDate=datetime.now(UTC) + timedelta(days=1))
    before = told("Daily")

    def refuse(**_: Any) -> Any:
        return Status(403), error("AccessDeniedException", "not allowed")

    client("scheduler").meta.events.register("before-call.scheduler.UpdateSchedule", refuse)
    try:
        with pytest.raises(ClientError, match="not allowed"):
            schedules.switch(arn, ScheduleState.DISABLED)
    finally:
        client("scheduler").meta.events.unregister("before-call.scheduler.UpdateSchedule", refuse)
    assert told("Daily") == before


class Status:
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code
