"""Every rule of AWS's guide by an example of our own, what it does not say, and that every search ends.

The rules: https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
"""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType

import pytest

from galley import schedule
from galley.instants import format_instant, parse_instant
from galley.schedule import InvalidSchedule, calendar_of, parse

CREATED = datetime(2020, 1, 1, tzinfo=UTC)
EARLIEST, LATEST = datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def days(*numbers: int) -> list[str]:
    return [f"2026-08-{number:02}T06:00:00Z" for number in numbers]


def dates(*texts: str) -> list[str]:
    return [f"{text}T06:00:00Z" for text in texts]


def hours(*texts: str) -> list[str]:
    return [f"2026-08-05T{text}:00Z" for text in texts]


@pytest.mark.guarantee("G9")
@pytest.mark.parametrize(
    ("fields", "start", "end", "expected"),
    [
        pytest.param("0 6,18 * * ? *", "2026-08-05", "2026-08-06", hours("06:00", "18:00"), id="a list"),
        pytest.param("0 8-10 * * ? *", "2026-08-05", "2026-08-06", hours("08:00", "09:00", "10:00"), id="a range"),
        pytest.param("5/25 6 * * ? *", "2026-08-05", "2026-08-06", hours("06:05", "06:30", "06:55"), id="every, from"),
        pytest.param("*/20 6 * * ? *", "2026-08-05", "2026-08-06", hours("06:00", "06:20", "06:40"), id="every"),
        pytest.param("10-50/20 6 * * ? *", "2026-08-05", "2026-08-06", hours("06:10", "06:30", "06:50"), id="steps"),
        pytest.param(
            "0 22-1 * * ? *", "2026-08-05", "2026-08-06", hours("00:00", "01:00", "22:00", "23:00"), id="over midnight",
        ),
        pytest.param("0,0 6,6 5,5 * ? *", "2026-08-01", "2026-09-01", days(5), id="named twice, due once"),
        pytest.param("0 6 ? * 1 *", "2026-08-01", "2026-09-01", days(2, 9, 16, 23, 30), id="1 is Sunday"),
        pytest.param("0 6 ? * SAT *", "2026-08-01", "2026-09-01", days(1, 8, 15, 22, 29), id="a name"),
        pytest.param("0 6 ? * L *", "2026-08-01", "2026-09-01", days(1, 8, 15, 22, 29), id="the last day of a week"),
        pytest.param("0 6 ? * TUE,5-6 *", "2026-08-01", "2026-08-08", days(4, 6, 7), id="names and numbers"),
        pytest.param("0 6 1/10 * ? *", "2026-08-01", "2026-09-01", days(1, 11, 21, 31), id="every tenth day"),
        pytest.param("0 6 ? * 6L *", "2026-08-01", "2026-09-01", days(28), id="the last Friday"),
        pytest.param("0 6 ? * 3#2 *", "2026-08-01", "2026-09-01", days(11), id="the second Tuesday"),
        pytest.param(
            "0 6 ? * 6#5 *", "2026-01-01", "2027-01-01",
            dates("2026-01-30", "2026-05-29", "2026-07-31", "2026-10-30"), id="the fifth Friday, where there is one",
        ),
        pytest.param("0 6 5W 8 ? *", "2026-01-01", "2027-01-01", days(5), id="a weekday is its own nearest"),
        pytest.param("0 6 1W 8 ? *", "2026-01-01", "2027-01-01", days(3), id="the nearest stays in its month, begin"),
        pytest.param("0 6 15W 8 ? *", "2026-01-01", "2027-01-01", days(14), id="nearest to a Saturday"),
        pytest.param("0 6 16W 8 ? *", "2026-01-01", "2027-01-01", days(17), id="nearest to a Sunday"),
        pytest.param("0 6 31W 5,6 ? *", "2026-01-01", "2027-01-01", dates("2026-05-29"), id="the same, end; no 31st"),
        pytest.param(
            "0 6 L 2,4 ? 2027,2028", "2026-01-01", "2029-01-01",
            dates("2027-02-28", "2027-04-30", "2028-02-29", "2028-04-30"), id="the last day of a month",
        ),
        pytest.param("0 6 29 2 ? *", "2026-01-01", "2033-01-01", dates("2028-02-29", "2032-02-29"), id="a leap day"),
        pytest.param(
            "0 6 1 JAN,JUL-AUG ? 2026-2030/4", "2025-01-01", "2035-01-01",
            dates("2026-01-01", "2026-07-01", "2026-08-01", "2030-01-01", "2030-07-01", "2030-08-01"),
            id="months and years",
        ),
        pytest.param("0 6 31 12 ? 1970,2199", "1969-01-01", "2300-01-01", dates("1970-12-31", "2199-12-31"), id="ends"),
        pytest.param("0 6 L-2 8 ? *", "2026-01-01", "2027-01-01", days(29), id="two days before the last"),
        pytest.param(
            "0 6 LW 5,8,10 ? *", "2026-01-01", "2027-01-01", dates("2026-05-29", "2026-08-31", "2026-10-30"),
            id="the last weekday",
        ),
        pytest.param("0 6 1W,15,L 8 ? *", "2026-01-01", "2027-01-01", days(3, 15, 31), id="L and W in a list"),
        pytest.param("0 6 ? 8 MON,6L *", "2026-01-01", "2027-01-01", days(3, 10, 17, 24, 28, 31), id="nL in a list"),
        pytest.param("0 6 ? * SAT-MON *", "2026-08-01", "2026-08-10", days(1, 2, 3, 8, 9), id="weekdays over the end"),
        pytest.param("0 6 ? * 2/2 *", "2026-08-01", "2026-08-10", days(3, 5, 7), id="steps of weekdays"),
        pytest.param(
            "0 6 1 NOV-FEB/2 ? *", "2026-08-01", "2027-08-01", dates("2026-11-01", "2027-01-01"), id="months",
        ),
        pytest.param("50-10/10 6 * * ? *", "2026-08-05", "2026-08-06", hours("06:00", "06:10", "06:50"), id="minutes"),
    ],
)  # fmt: skip
def test_g9_each_rule_of_the_guide_and_what_is_read_beyond_it(
    fields: str, start: str, end: str, expected: list[str]
) -> None:
    calendar = calendar_of(f"cron({fields})", "UTC", CREATED)
    found = calendar.between(parse_instant(f"{start}T00:00:00Z"), parse_instant(f"{end}T00:00:00Z"))
    assert [format_instant(slot) for slot in found] == expected


@pytest.mark.parametrize(
    "fields",
    [
        "0 6 ? * MON-FRI *", "0/15 20-2 * * ? *", "0 6 L * ? *", "0 6 3W * ? *", "0 6 ? * L *", "0 6 ? * 6L *",
        "0 6 ? * 3#2 *", "0 6 1/10 JAN,FEB-APR ? 2026-2030/2", "*/5 * 1,15 */3 ? *",
    ],
)  # fmt: skip
def test_what_the_guide_describes_warns_of_nothing(fields: str) -> None:
    calendar = calendar_of(f"cron({fields})", "Europe/London", CREATED)
    assert list(calendar.warnings(CREATED, CREATED + timedelta(days=30))) == []


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ("0 6 L-2 * ? *", ["day-of-month 'L-2'"]),
        ("0 6 LW * ? *", ["day-of-month 'LW'"]),
        ("0 6 1,L * ? *", ["day-of-month 'L'"]),
        ("0 6 1W,15 * ? *", ["day-of-month '1W'"]),
        ("0 6 ? * MON,6L *", ["day-of-week '6L'"]),
        ("0 6 ? * 2/2 *", ["day-of-week '2/2'"]),
        ("0 6 ? * FRI-MON *", ["day-of-week 'FRI-MON'"]),
        ("0 6 ? * MON,6-2 *", ["day-of-week '6-2'"]),
        ("0 6 ? NOV-FEB MON *", ["month 'NOV-FEB'"]),
        ("50-10/5 6 25-5 * ? *", ["minutes '50-10/5'", "day-of-month '25-5'"]),
        ("0 6 ? jan mon *", ["month 'jan'", "day-of-week 'mon'"]),
    ],
)
def test_what_the_guide_does_not_describe_is_read_with_a_warning(fields: str, named: list[str]) -> None:
    calendar = calendar_of(f"cron({fields})", "UTC", CREATED)
    warned = list(calendar.warnings(CREATED, CREATED + timedelta(days=30)))
    assert [line.partition(":")[0] for line in warned] == named
    assert all("AWS does not document" in line for line in warned)


@pytest.mark.parametrize(
    ("expression", "timezone", "warned"),
    [
        ("cron(30 1 * * ? *)", "Europe/London", ["2026-03-29 01:30 does not exist in Europe/London"]),
        ("cron(30 1 ? * SUN *)", "Europe/London", ["2026-03-29 01:30 does not exist"]),
        ("cron(30 1 ? * MON *)", "Europe/London", []),
        ("cron(30 1,13 * * ? *)", "Europe/London", []),
        ("cron(0 0 30 2 ? *)", "UTC", ["it is never due, from 2026-01-01T00:00:00Z on"]),
        ("cron(0 0 1 1 ? 2024,2025)", "UTC", ["it is never due"]),
        ("cron(30 2 8 3 ? 2026)", "America/New_York", ["2026-03-08 02:30 does not exist", "it is never due"]),
        ("at(2026-03-08T02:30:00)", "America/New_York", ["2026-03-08 02:30 does not exist", "it is never due"]),
        ("at(2026-11-01T01:30:00)", "America/New_York", ["2026-11-01 01:30 comes twice in America/New_York"]),
        ("at(2025-12-31T23:59:59)", "UTC", ["it is never due"]),
        ("at(2026-06-01T12:00:00)", "America/New_York", []),
        ("rate(1 day)", "Europe/London", []),
    ],
)
def test_what_the_clocks_and_the_calendar_take_is_warned_of(expression: str, timezone: str, warned: list[str]) -> None:
    year = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    found = list(calendar_of(expression, timezone, CREATED).warnings(*year))
    assert len(found) == len(warned), found
    assert all(line.startswith(begin) for line, begin in zip(found, warned, strict=True)), found


def test_what_the_gaps_take_is_told_within_the_schedules_own_bounds() -> None:
    ended = calendar_of(
        "cron(0/30 1 * * ? *)", "Europe/London", CREATED, start=CREATED, end=datetime(2022, 1, 1, tzinfo=UTC)
    )
    lost = ["2020-03-29T01:00:00", "2020-03-29T01:30:00", "2021-03-28T01:00:00", "2021-03-28T01:30:00"]
    assert [wall.isoformat() for wall in ended.lost_to_gaps(EARLIEST, LATEST)] == lost


def steps_of(search: Callable[[], object]) -> int:
    """Return how many functions of the module the search calls or resumes."""
    steps = 0
    code = str(Path(schedule.__file__))

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal steps
        steps += event == "call" and frame.f_code.co_filename == code

    sys.setprofile(count)
    try:
        search()
    finally:
        sys.setprofile(None)
    return steps


@pytest.mark.parametrize(
    ("expression", "timezone"),
    [
        pytest.param("cron(* * 30 2 ? *)", "America/New_York", id="no such day"),
        pytest.param("cron(* * 31 2,4,6,9,11 ? *)", "America/New_York", id="no such day of five months"),
        pytest.param("cron(* * ? 2 2#5 1971-2199/2)", "UTC", id="a fifth Monday only leap years have"),
        pytest.param("cron(* 2 ? 3 1#2 2007-2199)", "America/New_York", id="each day's minutes in the gap"),
        pytest.param("at(2026-03-08T02:30:00)", "America/New_York", id="once, in the gap"),
    ],
)
def test_a_search_for_what_is_never_due_takes_few_steps(expression: str, timezone: str) -> None:
    """A minute at a time it would take 120 million; the months of all years are 2,760."""
    calendar = calendar_of(expression, timezone, CREATED)
    found: list[datetime | None] = []
    steps = steps_of(lambda: found.extend((calendar.next_after(EARLIEST), calendar.latest_until(LATEST))))
    assert found == [None, None]
    assert 0 < steps < 2 * 50_000


def test_the_next_and_the_latest_slot_are_found_without_all_slots_in_between() -> None:
    calendar = calendar_of("cron(* * * * ? *)", "America/New_York", CREATED)
    assert steps_of(lambda: calendar.next_after(CREATED)) < 10_000
    assert steps_of(lambda: calendar.latest_until(CREATED)) < 10_000
    rare = calendar_of("cron(0 0 29 2 ? 1972)", "America/New_York", CREATED)
    assert steps_of(lambda: rare.latest_until(CREATED)) < 10_000
    rate = calendar_of("rate(1 minute)", "UTC", CREATED)
    assert steps_of(lambda: (rate.next_after(LATEST), rate.latest_until(LATEST))) < 20


@pytest.mark.parametrize("expression", ["cron(* * * * ? *)", "rate(1 minute)", "at(2026-06-01T12:00:00)"])
def test_instants_beyond_every_schedule_are_no_error(expression: str) -> None:
    calendar = calendar_of(expression, "Pacific/Kiritimati", CREATED)
    assert calendar.latest_until(EARLIEST) is None
    assert calendar.next_after(LATEST) is None
    assert next(calendar.between(EARLIEST, LATEST), None) is not None
    assert list(calendar.between(LATEST, EARLIEST)) == []


def test_a_rate_longer_than_the_calendar_is_due_once() -> None:
    calendar = calendar_of("rate(999999999 days)", "UTC", CREATED)
    assert list(calendar.between(EARLIEST, LATEST)) == [CREATED]
    assert calendar.latest_until(CREATED - timedelta(seconds=1)) is None
    assert calendar.next_after(CREATED) is None
    assert calendar.latest_until(LATEST) == CREATED


def test_a_rate_keeps_the_seconds_that_it_began_at() -> None:
    created = parse_instant("2026-08-05T12:00:37Z")
    calendar = calendar_of("rate(5 minutes)", "Europe/London", created)
    found = [format_instant(slot) for slot in calendar.between(created, created + timedelta(minutes=11))]
    assert found == ["2026-08-05T12:00:37Z", "2026-08-05T12:05:37Z", "2026-08-05T12:10:37Z"]


def test_a_rate_in_days_drifts_by_an_hour_where_the_clocks_change() -> None:
    begin = parse_instant("2026-03-07T14:00:00Z")
    calendar = calendar_of("rate(1 day)", "America/New_York", CREATED, start=begin)
    found = calendar.between(CREATED, begin + timedelta(days=2))
    assert [slot.astimezone(calendar.zone).strftime("%d %H:%M") for slot in found] == ["07 09:00", "08 10:00"]


@pytest.mark.parametrize("year", ["0001", "1969", "2200", "9999"])
def test_a_year_that_no_schedule_has_is_refused(year: str) -> None:
    with pytest.raises(InvalidSchedule, match=f"year {int(year)} is not allowed; use 1970 to 2199"):
        parse(f"at({year}-06-01T12:00:00)")


def test_two_nth_weekdays_are_refused_as_the_list_that_they_are() -> None:
    with pytest.raises(InvalidSchedule, match="day-of-week '3#1,6#3' is a list with #"):
        parse("cron(0 0 ? * 3#1,6#3 *)")
