"""What holds for every expression, zone and instant, and what an independent reader of AWS's syntax says to the same.

aws-croniter knows no timezone. It is asked for wall times, and which instant shows a wall time first is found by
walking through the instants.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from aws_croniter import AwsCroniter
from hypothesis import given, settings
from hypothesis import strategies as st

from galley.schedule import Calendar, calendar_of, zone

ZONES = (
    "UTC", "America/New_York", "Europe/London", "Australia/Sydney", "Australia/Lord_Howe", "Africa/Cairo",
    "America/Havana", "America/Santiago", "Atlantic/Azores", "Asia/Kathmandu", "Pacific/Apia", "Africa/Casablanca",
)  # fmt: skip
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
CHANGES = [
    datetime(2011, 12, 29, tzinfo=UTC),  # Apia leaves out a whole day
    *(datetime(2026, month, day, tzinfo=UTC) for month, day in ((2, 14), (3, 7), (3, 21), (3, 28), (4, 4), (4, 23))),
    *(datetime(2026, month, day, tzinfo=UTC) for month, day in ((9, 5), (10, 3), (10, 24), (10, 29), (10, 31))),
]
EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
AT_MOST = 100


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    step = st.integers(1, high - low)
    part = st.one_of(
        number.map(str),
        span,
        st.tuples(st.one_of(st.just("*"), number.map(str), span), step).map(lambda both: f"{both[0]}/{both[1]}"),
    )
    return st.one_of(st.just("*"), st.lists(part, min_size=1, max_size=3).map(",".join))


WEEKDAY = st.integers(1, 7)
DAYS = st.one_of(
    st.one_of(_field(1, 31), st.just("L"), st.integers(1, 31).map(lambda day: f"{day}W")).map(lambda text: (text, "?")),
    st.one_of(
        st.lists(WEEKDAY.map(str), min_size=1, max_size=3).map(",".join),
        st.sampled_from(["MON-FRI", "SAT,SUN", "TUE", "2-6", "*"]),
        WEEKDAY.map(lambda day: f"{day}L"),
        st.tuples(WEEKDAY, st.integers(1, 5)).map(lambda both: f"{both[0]}#{both[1]}"),
    ).map(lambda text: ("?", text)),
)
FIELDS = st.builds(
    lambda minutes, hours, days, months, years: f"{minutes} {hours} {days[0]} {months} {days[1]} {years}",
    _field(0, 59), _field(0, 23), DAYS, st.one_of(st.just("*"), _field(1, 12)),
    st.sampled_from(["*", "2011,2024-2030", "2026,2027"]),
)  # fmt: skip
EXPRESSIONS = st.one_of(
    FIELDS.map(lambda fields: f"cron({fields})"),
    st.integers(2, 3000).map(lambda minutes: f"rate({minutes} minutes)"),
    st.tuples(st.sampled_from(CHANGES), st.integers(0, 3 * 1440)).map(
        lambda both: f"at({(both[0] + both[1] * MINUTE).replace(tzinfo=None).isoformat()})"
    ),
)
INSTANTS = st.builds(
    lambda day, seconds: day + timedelta(seconds=seconds), st.sampled_from(CHANGES), st.integers(0, 4 * 86400)
)
CALENDARS = st.builds(
    calendar_of, EXPRESSIONS, st.sampled_from(ZONES), st.just(datetime(2011, 12, 1, 0, 0, 37, tzinfo=UTC))
)


@given(CALENDARS, INSTANTS)
def test_slots_come_in_order_and_each_once_within_their_bounds(calendar: Calendar, first: datetime) -> None:
    end = first + 20 * DAY
    found = list(islice(calendar.between(first, end), AT_MOST))
    assert all(before < after for before, after in pairwise(found))
    assert all(first <= slot < end and slot.tzinfo is UTC for slot in found)


@given(CALENDARS, INSTANTS, st.integers(0, 3 * 86400), st.integers(0, 3 * 86400))
def test_a_range_is_the_sum_of_its_parts(calendar: Calendar, first: datetime, one: int, other: int) -> None:
    middle = first + timedelta(seconds=one)
    end = middle + timedelta(seconds=other)
    whole = list(calendar.between(first, end))
    assert [*calendar.between(first, middle), *calendar.between(middle, end)] == whole
    lost = list(calendar.lost_to_gaps(first, end))
    assert [*calendar.lost_to_gaps(first, middle), *calendar.lost_to_gaps(middle, end)] == lost


@given(CALENDARS, INSTANTS)
def test_the_next_slot_is_later_and_the_latest_is_not(calendar: Calendar, moment: datetime) -> None:
    coming, latest = calendar.next_after(moment), calendar.latest_until(moment)
    if coming is not None:
        assert coming > moment
        assert next(calendar.between(moment + timedelta(microseconds=1), coming), None) is None
        assert calendar.latest_until(coming) == coming
        assert calendar.latest_until(coming - timedelta(microseconds=1)) == latest
    if latest is not None:
        assert latest <= moment
        assert calendar.next_after(latest - timedelta(microseconds=1)) == latest
        assert calendar.next_after(latest) == coming


def walls_by_aws_croniter(fields: str, first: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the wall times in ``[first, end)``, naive. It gives up after ten months without one; it is asked again."""
    at = first.replace(tzinfo=UTC)
    while at < end.replace(tzinfo=UTC):
        found = AwsCroniter(fields).occurrence(at).next(inclusive=True)
        if found is None:
            at = (at.replace(day=1) + 32 * DAY).replace(day=1, hour=0, minute=0)
            continue
        if found < end.replace(tzinfo=UTC):
            yield found.replace(tzinfo=None)
        at = found + MINUTE


def first_shown(timezone: str, first: datetime, end: datetime) -> dict[datetime, datetime]:
    """Return the wall times that the zone's clocks show in ``[first, end)``, and the instants that show them first."""
    shown: dict[datetime, datetime] = {}
    at = first
    while at < end:
        shown.setdefault(at.astimezone(zone(timezone)).replace(tzinfo=None), at)
        at += MINUTE
    return shown


@pytest.mark.guarantee("G9")
@given(FIELDS, st.integers(0, 500))
def test_g9_aws_croniter_finds_the_same_slots_in_utc(fields: str, weeks: int) -> None:
    first = datetime(2024, 1, 1, tzinfo=UTC) + weeks * 7 * DAY
    end = first + 400 * DAY
    ours = list(islice(calendar_of(f"cron({fields})", "UTC", first).between(first, end), AT_MOST))
    theirs = islice(walls_by_aws_croniter(fields, first.replace(tzinfo=None), end.replace(tzinfo=None)), AT_MOST)
    assert [slot.replace(tzinfo=None) for slot in ours] == list(theirs)


@pytest.mark.guarantee("G9")
@settings(max_examples=150)
@given(FIELDS, st.sampled_from(ZONES), st.sampled_from(CHANGES))
def test_g9_aws_croniter_finds_the_same_slots_by_the_clocks_of_a_zone(
    fields: str, timezone: str, change: datetime
) -> None:
    first, end = change, change + 3 * DAY
    # A wall time that was shown before the range, too, is not due again within it.
    shown = first_shown(timezone, first - DAY, end)
    walls = walls_by_aws_croniter(fields, min(shown), max(shown) + MINUTE)
    theirs = islice((shown[wall] for wall in walls if shown.get(wall, EARLIEST) >= first), AT_MOST)
    ours = islice(calendar_of(f"cron({fields})", timezone, first).between(first, end), AT_MOST)
    assert list(ours) == list(theirs)
