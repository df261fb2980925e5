"""Faults that users of other schedulers met, each with its report: Galley's slots for the same input."""

from datetime import datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from galley.instants import format_instant, parse_instant
from galley.runs import RunKey
from galley.schedule import Calendar, calendar_of

CREATED = parse_instant("2020-01-01T00:00:00Z")
MINUTE = timedelta(minutes=1)


def calendar(fields: str, timezone: str) -> Calendar:
    return calendar_of(f"cron({fields})", timezone, CREATED)


def slots(fields: str, timezone: str, start: str, end: str) -> list[str]:
    found = calendar(fields, timezone).between(parse_instant(start), parse_instant(end))
    return [format_instant(slot) for slot in found]


@pytest.mark.guarantee("G9")
def test_g9_a_day_without_its_slot_is_told_and_not_looked_for() -> None:
    """https://github.com/apache/airflow/issues/38098"""
    found = slots("0 2 * * ? *", "America/Chicago", "2024-03-09T06:00:00Z", "2024-03-12T05:00:00Z")
    assert found == ["2024-03-09T08:00:00Z", "2024-03-11T07:00:00Z"]
    daily = calendar("0 2 * * ? *", "America/Chicago")
    (told,) = daily.warnings(parse_instant("2024-03-09T06:00:00Z"), parse_instant("2024-03-12T05:00:00Z"))
    assert told.startswith("2024-03-10 02:00 does not exist in America/Chicago")


@pytest.mark.guarantee("G9")
def test_g9_the_next_slot_never_flips_back_after_the_autumn_change() -> None:
    """https://github.com/apache/airflow/issues/35272"""
    quarters = calendar("0,15,30,45 6-22 * * ? *", "Europe/Brussels")
    last_of_summer = parse_instant("2023-10-28T20:45:00Z")
    following = [format_instant(slot) for slot in islice(quarters.after(last_of_summer), 3)]
    assert following == ["2023-10-29T05:00:00Z", "2023-10-29T05:15:00Z", "2023-10-29T05:30:00Z"]
    assert quarters.latest_until(parse_instant("2023-10-29T04:59:00Z")) == last_of_summer


@pytest.mark.guarantee("G9")
def test_g9_every_second_hour_goes_on_after_the_spring_change_one_slot_at_a_time() -> None:
    """https://github.com/apache/airflow/issues/30195"""
    found = slots("0 */2 * * ? *", "America/Toronto", "2023-03-12T04:00:00Z", "2023-03-12T13:00:00Z")
    assert found == ["2023-03-12T05:00:00Z", "2023-03-12T08:00:00Z", "2023-03-12T10:00:00Z", "2023-03-12T12:00:00Z"]


@pytest.mark.guarantee("G9")
@pytest.mark.parametrize("asked", ["2022-10-29T12:00:00Z", "2022-10-30T00:59:00Z", "2022-10-30T01:01:00Z"])
def test_g9_a_slot_has_one_key_on_both_sides_of_the_autumn_change(asked: str) -> None:
    """https://github.com/PrefectHQ/prefect/issues/7461"""
    slot = calendar("0 9 * * ? *", "Europe/London").next_after(parse_instant(asked))
    assert slot is not None
    assert str(RunKey("daily-digest", slot)) == "daily-digest:2022-10-30T09:00:00Z"


@pytest.mark.guarantee("G9")
def test_g9_the_second_pass_of_the_repeated_hour_is_no_slot() -> None:
    """https://github.com/kubernetes/kubernetes/issues/121594"""
    nightly = calendar("30 2 * * ? *", "Europe/Berlin")
    first, second = parse_instant("2023-10-29T00:30:00Z"), parse_instant("2023-10-29T01:30:00Z")
    assert nightly.latest_until(first) == first
    assert nightly.latest_until(second) == first
    assert nightly.next_after(first) == parse_instant("2023-10-30T01:30:00Z")


@pytest.mark.guarantee("G9")
def test_g9_midnight_after_the_spring_change_is_not_lost() -> None:
    """https://github.com/agronholm/apscheduler/issues/606"""
    midnight = calendar("0 0 * * ? *", "America/New_York").next_after(parse_instant("2026-03-08T05:00:00Z"))
    assert midnight == parse_instant("2026-03-09T04:00:00Z")


@pytest.mark.guarantee("G9")
def test_g9_what_is_due_in_the_repeated_hour_is_compared_by_instants() -> None:
    """https://github.com/NousResearch/hermes-agent/pull/110261"""
    toronto = ZoneInfo("America/Toronto")
    every_five = calendar_of("rate(5 minutes)", "America/Toronto", parse_instant("2026-11-01T06:45:00Z"))
    first_pass = datetime(2026, 11, 1, 1, 50, tzinfo=toronto)
    assert every_five.latest_until(first_pass) is None
    slot = every_five.next_after(first_pass)
    assert slot == parse_instant("2026-11-01T06:45:00Z")
    assert parse_instant(first_pass.isoformat()) - slot == timedelta(minutes=-55)
    assert every_five.latest_until(first_pass.replace(fold=1)) == slot + 5 * MINUTE


@pytest.mark.guarantee("G9")
@pytest.mark.parametrize(
    ("timezone", "day"),
    [
        ("America/New_York", "2026-03-08T05:00:00Z"),
        ("America/New_York", "2026-11-01T04:00:00Z"),
        ("Europe/London", "2026-10-25T00:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-04T12:00:00Z"),
        ("Africa/Cairo", "2026-04-23T20:00:00Z"),
        ("America/Santiago", "2026-04-05T00:00:00Z"),
    ],
)
def test_g9_the_next_slot_is_later_than_every_minute_of_the_change(timezone: str, day: str) -> None:
    """https://github.com/node-cron/node-cron/issues/492"""
    for fields in ("30 2 * * ? *", "0/20 * * * ? *", "15 0 ? * SUN *", "30 23 1 * ? *"):
        one = calendar(fields, timezone)
        moment = parse_instant(day)
        for _ in range(5 * 60):
            coming = one.next_after(moment)
            assert coming is not None
            assert moment < coming < moment + timedelta(days=366)
            moment += MINUTE


@pytest.mark.guarantee("G9")
def test_g9_a_gap_at_midnight_takes_no_more_than_midnight() -> None:
    """https://github.com/spring-projects/spring-framework/issues/36859"""
    found = slots("0 */2 * * ? *", "Africa/Cairo", "2025-04-24T19:10:20Z", "2025-04-25T04:00:00Z")
    assert found == ["2025-04-24T20:00:00Z", "2025-04-24T23:00:00Z", "2025-04-25T01:00:00Z", "2025-04-25T03:00:00Z"]


@pytest.mark.guarantee("G9")
def test_g9_a_week_that_the_gap_takes_is_told_ahead() -> None:
    """https://github.com/dragonmantank/cron-expression/issues/112"""
    weekly = calendar("15 2 ? * SUN *", "America/Winnipeg")
    now = parse_instant("2021-03-08T14:16:00Z")
    assert weekly.next_after(now) == parse_instant("2021-03-21T07:15:00Z")
    (told,) = weekly.warnings(now, now + timedelta(days=366))
    assert told.startswith("2021-03-14 02:15 does not exist in America/Winnipeg")


@pytest.mark.guarantee("G9")
@pytest.mark.parametrize(
    ("weekday", "named", "day"), [("2", "MON", 7), ("7", "SAT", 12), ("1", "SUN", 6), ("6L", "6L", 25)]
)
def test_g9_weekdays_are_counted_as_aws_counts_them(weekday: str, named: str, day: int) -> None:
    """https://github.com/floci-io/floci/pull/3147"""
    for text in (weekday, named):
        (first, *_) = slots(f"0 12 ? * {text} *", "UTC", "2026-09-06T00:00:00Z", "2026-10-01T00:00:00Z")
        assert first == f"2026-09-{day:02}T12:00:00Z"
