"""template.yaml, as one machine reads it: what is deployed is what runs here."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from galley.schedules import ScheduleMissing
from galley_cli.template import InvalidTemplate, Template, TemplateSchedules, read_template

PROJECT = Path(__file__).parents[3]
CREATED = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def text() -> str:
    return (PROJECT / "template.yaml").read_text(encoding="utf-8")


def reading(folder: Path, text: str) -> Template:
    path = folder / "template.yaml"
    path.write_text(text, encoding="utf-8")
    return read_template(path)


def test_the_projects_own_template_has_no_problems() -> None:
    template = read_template(PROJECT / "template.yaml")
    assert template.problems == ()
    assert {schedule.name for schedule in template.schedules} >= {"DailyDigest", "WeeklyReport", "NightlySync"}
    assert [sweep.function for sweep in template.sweeps] == ["recover"]


def test_limits_are_those_that_are_deployed(tmp_path: Path, text: str) -> None:
    changed = text.replace("VisibilityTimeout: 1800", "VisibilityTimeout: 2400").replace(
        "maxReceiveCount: 5", "maxReceiveCount: 7"
    )
    template = reading(tmp_path, changed)
    assert template.queue.visibility == timedelta(seconds=2400)
    assert template.queue.max_receives == 7
    assert template.queue.concurrency == 4, "the default of the parameter that the mapping refers to"
    assert template.functions["draft"].time_limit == timedelta(seconds=300)
    assert template.async_retries["dispatch"].retries == 2
    assert template.stream.patterns[0]["dynamodb"]["NewImage"]["status"] == {"S": ["approved"]}


def test_a_variable_that_refers_to_a_resource_has_no_literal_value(text: str, tmp_path: Path) -> None:
    environment = reading(tmp_path, text).functions["dispatch"].environment
    assert environment["GALLEY_RUNS_QUEUE_URL"] is None
    assert environment["POWERTOOLS_SERVICE_NAME"] == "dispatch"


@pytest.mark.parametrize(
    ("good", "broken", "named"),
    [
        ("cron(0 6 ? * MON-FRI *)", "cron(0 6 * * MON-FRI)", ["5 fields", "six"]),
        ("Europe/London", "Europe/Londn", ["'Europe/Londn'", "does not exist"]),
        ('"grace_minutes": 120', '"grace_minutes": "long"', ["grace_minutes", "'long'"]),
        ('{"drafters": ["daily-digest"]', '{drafters: ["daily-digest"]', ["Input", "not JSON"]),
        ("ScheduleExpressionTimezone: Europe/London", "Zone: Europe/London", ["ScheduleExpressionTimezone", "missing"]),
        ("            OmitName: true\n", "", ["OmitName", "is missing; add it"]),
        ("            GroupName: !Ref ScheduleGroup\n", "", ["GroupName", "is missing; add it"]),
        ("            RoleArn: !GetAtt SchedulerRole.Arn\n", "", ["RoleArn", "is missing; add it"]),
        ("            RetryPolicy: {MaximumEventAgeInSeconds: 7200, MaximumRetryAttempts: 20}\n", "", ["RetryPolicy"]),
        ("            DeadLetterConfig: {Arn: !GetAtt DeadTicksQueue.Arn}\n", "", ["DeadLetterConfig"]),
        ("ScheduleExpression: cron(0 6", "State: sometimes\n            ScheduleExpression: cron(0 6", ["'sometimes'"]),
        ("ScheduleExpression: cron(0 6", "StartDate: soon\n            ScheduleExpression: cron(0 6", ["'soon'"]),
    ],
)
def test_a_broken_schedule_is_named_and_stops_no_other(
    tmp_path: Path, text: str, good: str, broken: str, named: list[str]
) -> None:
    assert good in text
    template = reading(tmp_path, text.replace(good, broken, 1))
    assert [schedule.name for schedule in template.schedules] == ["WeeklyReport", "NightlySync", "HourlyMonitor"]
    (problem,) = template.problems
    assert "\n" not in problem
    for part in [str(tmp_path / "template.yaml"), "DispatchFunction.Events.DailyDigest", *named]:
        assert part in problem


@pytest.mark.parametrize(
    ("good", "broken", "named"),
    [
        ("      Timeout: 300\n      LoggingConfig: {LogGroup: !Ref DraftLogs}", "      LoggingConfig: {}", ["Timeout"]),
        ("Handler: publish.handler", "Handler: publsh.handler", ["publish.handler"]),
        ("            BatchSize: 1\n", "            BatchSize: 5\n", ["Events.Runs", "BatchSize", "5"]),
        ("        maxReceiveCount: 5\n", "", ["RunsQueue", "maxReceiveCount"]),
        ("Queue: !GetAtt RunsQueue.Arn", "Queue: !GetAtt Table.Arn", ["Queue", "Table"]),
        ("Resources:\n", "Resources: [\n", ["is not YAML"]),
        ("  Bucket:\n    Type", "  Table:\n    Type", ["'Table'", "twice"]),
    ],
)
def test_a_template_that_cannot_run_says_why_in_one_line(
    tmp_path: Path, text: str, good: str, broken: str, named: list[str]
) -> None:
    assert good in text
    with pytest.raises(InvalidTemplate) as caught:
        reading(tmp_path, text.replace(good, broken, 1))
    line = str(caught.value)
    assert "\n" not in line
    for part in [str(tmp_path / "template.yaml"), *named]:
        assert part in line


def test_a_tick_carries_the_schedules_own_arn_and_slot() -> None:
    template = read_template(PROJECT / "template.yaml")
    digest = next(schedule for schedule in template.schedules if schedule.name == "DailyDigest")
    event = digest.event(datetime(2026, 3, 30, 5, tzinfo=UTC))
    assert f'"schedule": "{digest.arn}"' in event
    assert '"slot": "2026-03-30T05:00:00Z"' in event
    assert "<aws" not in event


def test_schedules_are_found_by_the_arn_that_ticks_carry() -> None:
    template = read_template(PROJECT / "template.yaml")
    schedules = TemplateSchedules.of(template, created=CREATED, modified=CREATED)
    for definition in schedules.all():
        assert schedules.get(definition.arn) == definition
        assert definition.created == CREATED
    with pytest.raises(ScheduleMissing, match="Nightly"):
        schedules.get("arn:aws:scheduler:local:000000000000:schedule/galley/Nightly")


def test_dates_bound_a_schedule_and_a_disabled_one_says_so(tmp_path: Path, text: str) -> None:
    bounded = text.replace(
        "ScheduleExpression: cron(0 6 ? * MON-FRI *)",
        "ScheduleExpression: rate(1 hour)\n            State: DISABLED\n"
        "            StartDate: 2026-04-01T00:00:00Z\n            EndDate: 2026-04-01T02:00:00Z",
    )
    digest = reading(tmp_path, bounded).schedules[0]
    assert not digest.enabled
    slots = list(digest.calendar(CREATED).between(CREATED, CREATED + timedelta(days=90)))
    assert [slot.hour for slot in slots] == [0, 1, 2]
