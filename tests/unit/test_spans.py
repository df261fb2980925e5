"""Exact times: what they are compared with, and their hours and days, also where clocks change."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from galley.schedule import calendar_of, zone
from spans import Span, part_name, side_by_side, uneven

NEW_YORK, LONDON = zone("America/New_York"), zone("Europe/London")
HOURLY, MORNINGS, OFFICE, MONTHLY = (
    "cron(0 * * * ? *)",
    "cron(0 6 * * ? *)",
    "cron(0 6 ? * MON-FRI *)",
    "cron(0 6 1 * ? *)",
)
CREATED = datetime(2020, 1, 1, 0, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)


def window(expression: str, end: str, name: str = "America/New_York") -> Span:
    """Return the window of the slot at an instant, as a run finds it."""
    calendar = calendar_of(expression, name, CREATED)
    slot = datetime.fromisoformat(end).astimezone(UTC)
    slots = [slot]
    for _ in range(2):
        found = calendar.latest_until(slots[-1] - timedelta(seconds=1))
        assert found is not None
        slots.append(found)
    return Span(slots[1], slots[0], zone(name), slots[2])


@pytest.mark.parametrize(
    ("expression", "end", "told", "before", "year_ago"),
    [
        pytest.param(
            MORNINGS,
            "2026-11-18T06:00-05:00",
            "2026-11-17 06:00 to 2026-11-18 06:00",
            "2026-11-16 06:00 to 2026-11-17 06:00",
            "2025-11-18 06:00 to 2025-11-19 06:00",
            id="a day at six",
        ),
        pytest.param(
            MORNINGS,
            "2026-03-08T06:00-04:00",
            "2026-03-07 06:00 to 2026-03-08 06:00",
            "2026-03-06 06:00 to 2026-03-07 06:00",
            "2025-03-08 06:00 to 2025-03-09 06:00",
            id="a day of 23 hours",
        ),
        pytest.param(
            HOURLY,
            "2026-11-18T09:00-05:00",
            "2026-11-18 08:00 to 09:00",
            "2026-11-18 07:00 to 08:00",
            "2025-11-19 08:00 to 09:00",
            id="an hour",
        ),
        pytest.param(
            HOURLY,
            "2026-03-08T03:00-04:00",
            "2026-03-08 01:00 to 03:00",
            "2026-03-08 00:00 to 01:00",
            "2025-03-09 01:00 to 03:00",
            id="the hour into which clocks are put forward",
        ),
        pytest.param(
            HOURLY,
            "2026-03-08T04:00-04:00",
            "2026-03-08 03:00 to 04:00",
            "2026-03-08 01:00 to 03:00",
            "2025-03-09 03:00 to 04:00",
            id="the hour after it",
        ),
        pytest.param(
            HOURLY,
            "2026-11-01T02:00-05:00",
            "2026-11-01 01:00 EDT to 02:00",
            "2026-11-01 00:00 to 01:00 EDT",
            "2025-11-02 01:00 EDT to 02:00",
            id="the hour that comes twice is one slot's window",
        ),
        pytest.param(
            HOURLY,
            "2026-11-01T03:00-05:00",
            "2026-11-01 02:00 to 03:00",
            "2026-11-01 01:00 EDT to 02:00",
            "2025-11-02 02:00 to 03:00",
            id="it is what the next is compared with",
        ),
        pytest.param(
            "rate(1 hour)",
            "2026-11-01T01:20-05:00",
            "2026-11-01 01:20 EDT to 01:20 EST",
            "2026-11-01 00:20 to 01:20 EDT",
            "2025-11-02 00:20 to 01:20 EDT",
            id="a rate knows no clocks",
        ),
        pytest.param(
            "rate(1 day)",
            "2026-03-08T20:20-04:00",
            "2026-03-07 19:20 to 2026-03-08 20:20",
            "2026-03-06 19:20 to 2026-03-07 19:20",
            "2025-03-08 19:20 to 2025-03-09 20:20",
            id="nor does one of days",
        ),
        pytest.param(
            OFFICE,
            "2026-11-17T06:00-05:00",
            "2026-11-16 06:00 to 2026-11-17 06:00",
            "2026-11-15 06:00 to 2026-11-16 06:00",
            "2025-11-17 06:00 to 2025-11-18 06:00",
            id="a Tuesday is not compared with the three days of Monday's window",
        ),
        pytest.param(
            OFFICE,
            "2026-11-02T06:00-05:00",
            "2026-10-30 06:00 to 2026-11-02 06:00",
            "2026-10-27 06:00 to 2026-10-30 06:00",
            "2025-10-31 06:00 to 2025-11-03 06:00",
            id="a weekend with as many days before",
        ),
        pytest.param(
            MONTHLY,
            "2026-03-01T06:00-05:00",
            "2026-02-01 06:00 to 2026-03-01 06:00",
            "2026-01-01 06:00 to 2026-02-01 06:00",
            "2025-02-01 06:00 to 2025-03-01 06:00",
            id="a month with a month",
        ),
        pytest.param(
            HOURLY,
            "2027-01-01T00:00-05:00",
            "2026-12-31 23:00 to 2027-01-01 00:00",
            "2026-12-31 22:00 to 23:00",
            "2026-01-01 23:00 to 2026-01-02 00:00",
            id="a year's end",
        ),
    ],
)
def test_what_a_slots_window_is_compared_with(expression: str, end: str, told: str, before: str, year_ago: str) -> None:
    span = window(expression, end)
    assert (str(span), str(span.before), str(span.year_ago)) == (told, before, year_ago)


def test_without_a_schedule_some_hours_are_compared_with_as_many_that_passed() -> None:
    three = Span(datetime(2026, 3, 8, 6, tzinfo=UTC), datetime(2026, 3, 8, 9, tzinfo=UTC), NEW_YORK)
    assert str(three) == "2026-03-08 01:00 to 05:00"
    assert str(three.before) == "2026-03-07 22:00 to 2026-03-08 01:00"
    assert uneven(three, three.before) is None


def test_how_long_two_times_are_is_told_in_the_largest_unit_that_fits() -> None:
    def lengths(expression: str, end: str) -> tuple[int, int, str] | None:
        span = window(expression, end)
        return uneven(span, span.before)

    assert lengths(MORNINGS, "2026-11-18T06:00-05:00") is None
    assert lengths(MORNINGS, "2026-03-08T06:00-04:00") == (23, 24, "hour")
    assert lengths(MONTHLY, "2026-03-01T06:00-05:00") == (28, 31, "day")
    assert lengths("cron(0/30 * * * ? *)", "2026-11-01T02:00-05:00") == (90, 30, "minute")


def test_a_day_at_six_has_as_many_hours_as_passed_and_each_is_told_by_its_end() -> None:
    for end, hours, told in (
        ("2026-03-08T06:00-04:00", 23, ["2026-03-08 01:00", "2026-03-08 03:00"]),
        ("2026-11-01T06:00-05:00", 25, ["2026-11-01 01:00 EDT", "2026-11-01 01:00 EST"]),
    ):
        span = window(MORNINGS, end)
        assert span.step("hour") == span.step("any") == "hour"
        assert span.step("day") == "day"
        assert span.parts("hour") == span.whole("hour")
        names = [part_name(part, "hour") for part in span.parts("hour")]
        assert (len(names), names[18:20]) == (hours, told)


def test_days_are_counted_from_the_windows_own_time_of_day() -> None:
    span = window(OFFICE, "2026-11-02T06:00-05:00")
    assert span.step("hour") == "day"
    assert [part_name(part, "day") for part in span.parts("day")] == [
        "Sat 2026-10-31 06:00",
        "Sun 2026-11-01 06:00",
        "Mon 2026-11-02 06:00",
    ]
    assert [part.elapsed // HOUR for part in span.whole("day")] == [24, 25, 24]


def test_a_rest_is_shown_as_a_shorter_part_but_no_row_is_due_in_it() -> None:
    span = Span(datetime(2026, 11, 16, tzinfo=UTC), datetime(2026, 11, 16, 2, 30, tzinfo=UTC), LONDON)
    assert [part.elapsed for part in span.parts("hour")] == [HOUR, HOUR, HOUR / 2]
    assert len(span.whole("hour")) == 2
    assert not span.whole("day")
    assert not span.whole("any")


@pytest.mark.parametrize(
    ("end", "beside"),
    [
        ("2026-03-08T06:00-04:00", {"2026-03-08 01:00": "2026-03-07 01:00", "2026-03-08 03:00": "2026-03-07 03:00"}),
        ("2026-11-01T06:00-05:00", {"2026-11-01 01:00 EDT": "2026-10-31 01:00", "2026-11-01 01:00 EST": ""}),
        (
            "2026-11-02T06:00-05:00",
            {"2026-11-02 01:00": "2026-11-01 01:00 EDT", "2026-11-02 02:00": "2026-11-01 02:00"},
        ),
    ],
)
def test_each_hour_stands_beside_the_same_hour_by_the_clocks(end: str, beside: dict[str, str]) -> None:
    span = window(MORNINGS, end)
    pairs = {
        part_name(now, "hour"): "" if before is None else part_name(before, "hour")
        for now, before in side_by_side(span, span.before, "hour")
    }
    assert {name: pairs[name] for name in beside} == beside
    last = list(pairs.items())[-1]
    assert last[0].endswith("06:00")
    assert last[1].endswith("06:00")


@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC)),
    st.integers(1, 60 * 24 * 40),
    st.sampled_from(["America/New_York", "Australia/Lord_Howe", "Europe/London", "UTC", "Asia/Kathmandu"]),
)
def test_parts_fill_a_time_without_a_gap_and_the_time_before_ends_where_it_begins(
    start: datetime, minutes: int, name: str
) -> None:
    start = start.replace(microsecond=0)
    span = Span(start, start + timedelta(minutes=minutes), zone(name))
    for parts in (span.parts("hour"), span.parts("day")):
        assert parts[0].start == span.start
        assert parts[-1].end == span.end
        assert all(part.start < part.end for part in parts)
        assert all(first.end == second.start for first, second in pairwise(parts))
    assert span.before.end == span.start
    assert span.before.elapsed > timedelta()
    assert span.year_ago.elapsed > timedelta()
    assert span.months or abs(span.before.elapsed - span.elapsed) <= HOUR
    assert timedelta(days=363) < span.end - span.year_ago.end < timedelta(days=367)
