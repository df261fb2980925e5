"""The calendar against EventBridge's own rules (G9)."""

import json
from datetime import UTC, datetime, timedelta
from importlib import resources
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo, reset_tzpath

import pytest

from galley.instants import format_instant, parse_instant
from galley.schedule import InvalidSchedule, calendar_of, parse, tzdata_version, zone

VECTORS = Path(__file__).parents[4] / "shared/data/cron_vectors.json"
CREATED = datetime(2020, 1, 1, tzinfo=UTC)

REFUSED = [
    ("0 10 * * * *", "day-of-month"),
    ("0 10 ? * ? *", "day-of-month"),
    ("0 10 1 * MON *", "day-of-week"),
    ("0 10 * * ?", "5 fields"),
    ("0 10 * * ? * *", "7 fields"),
    ("60 10 * * ? *", "minutes '60'"),
    ("0 24 * * ? *", "hours '24'"),
    ("0 0 0 * ? *", "day-of-month '0'"),
    ("0 0 32 * ? *", "day-of-month '32'"),
    ("0 0 1 13 ? *", "month '13'"),
    ("0 0 ? * 0 *", "day-of-week '0'"),
    ("0 0 ? * 8 *", "day-of-week '8'"),
    ("0 0 * * ? 1969", "year '1969'"),
    ("0 0 * * ? 2200", "year '2200'"),
    ("0 0 ? * 3#6 *", "day-of-week '6'"),
    ("0 0 ? * 3#1,6#3 *", "day-of-week"),
    ("0 0 ? * MON-FRI", "5 fields"),
    ("*/0 * * * ? *", "minutes '0'"),
    ("0 0 32W * ? *", "day-of-month '32'"),
    ("0 0 W * ? *", "day-of-month 'W'"),
    ("abc * * * ? *", "minutes 'abc'"),
    ("0 0 1 JANU ? *", "month 'JANU'"),
    ("0 0 * * ? 2027-2026", "year '2027-2026'"),
]


def slots(expression: str, timezone: str, start: str, end: str) -> list[str]:
    calendar = calendar_of(expression, timezone, CREATED)
    return [format_instant(slot) for slot in calendar.between(parse_instant(start), parse_instant(end))]


@pytest.mark.guarantee("G9")
@pytest.mark.skipif(not VECTORS.exists(), reason="the cron vectors are not beside this checkout")
def test_g9_every_vector_fires_exactly_as_eventbridge_documents() -> None:
    vectors = json.loads(VECTORS.read_text())
    wrong = [
        vector["id"]
        for vector in vectors
        if slots(vector["expr"], vector["tz"], vector["start"], vector["end"]) != vector["fires"]
    ]
    assert sum(not vector["flags"] for vector in vectors) >= 95, "those that rest on AWS's own words alone"
    assert wrong == []


@pytest.mark.guarantee("G9")
@pytest.mark.parametrize(
    ("expression", "timezone", "start", "end", "expected"),
    [
        pytest.param(
            "cron(30 1 * * ? *)", "Europe/London", "2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z",
            ["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"], id="a wall time in the spring gap is not due",
        ),
        pytest.param(
            "cron(30 1 * * ? *)", "America/New_York", "2026-11-01T00:00:00Z", "2026-11-02T12:00:00Z",
            ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"], id="a repeated wall time is due on its first pass",
        ),
        pytest.param(
            "cron(0 0 * * ? *)", "Africa/Cairo", "2026-04-22T23:00:00Z", "2026-04-25T22:30:00Z",
            ["2026-04-24T21:00:00Z", "2026-04-25T21:00:00Z"], id="a gap at midnight takes only that midnight",
        ),
        pytest.param(
            "cron(15 2 ? * SUN *)", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-05T00:00:00Z",
            [], id="a gap of half an hour",
        ),
        pytest.param(
            "rate(1 day)", "America/New_York", "2026-03-07T00:00:00Z", "2026-03-09T12:00:00Z",
            ["2026-03-07T00:00:00Z", "2026-03-08T00:00:00Z", "2026-03-09T00:00:00Z"], id="days are 24 hours",
        ),
        pytest.param(
            "at(2022-11-20T13:00:00)", "America/Los_Angeles", "2022-01-01T00:00:00Z", "2023-01-01T00:00:00Z",
            ["2022-11-20T21:00:00Z"], id="once",
        ),
    ],
)  # fmt: skip
def test_g9_slots_follow_the_clocks_of_the_timezone(
    expression: str, timezone: str, start: str, end: str, expected: list[str]
) -> None:
    assert slots(expression, timezone, start, end) == expected


@pytest.mark.parametrize(("fields", "named"), REFUSED)
def test_what_eventbridge_refuses_is_refused_with_its_field(fields: str, named: str) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        parse(f"cron({fields})")
    assert named in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "expression",
    ["banana", "cron(0 6 * * ? *", "rate(0 minutes)", "rate(1 minutes)", "rate(2 minute)", "rate(1 week)", "at(today)",
     "at(2026-02-30T00:00:00)", "cron(" + "0" * 300 + ")"],
)  # fmt: skip
def test_other_expressions_are_refused(expression: str) -> None:
    with pytest.raises(InvalidSchedule):
        parse(expression)


@pytest.mark.parametrize(
    "name",
    [
        "Mars/Olympus",
        "Europe/Londn",
        "Europe",
        "europe/london",
        "",
        "../etc/passwd",
        "/etc/localtime",
        "Europe/../UTC",
        "zone.tab",
        "tzdata.zi",
        "__init__.py",
        "localtime",
    ],
)
def test_a_zone_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(InvalidSchedule, match="does not exist"):
        zone(name)


@pytest.mark.guarantee("G9")
def test_g9_the_pinned_zones_count_and_not_those_of_the_system(tmp_path: Path) -> None:
    """The system's London keeps Tokyo's time here."""
    (tmp_path / "Europe").mkdir()
    tokyo = resources.files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").read_bytes()
    (tmp_path / "Europe/London").write_bytes(tokyo)
    reset_tzpath([str(tmp_path)])
    zone.cache_clear()
    try:
        assert ZoneInfo.no_cache("Europe/London").utcoffset(datetime(2026, 7, 1)) == timedelta(hours=9)
        slot = calendar_of("cron(0 6 * * ? *)", "Europe/London", CREATED).next_after(
            parse_instant("2026-07-01T00:00:00Z")
        )
    finally:
        reset_tzpath()
        zone.cache_clear()
    assert slot == parse_instant("2026-07-01T05:00:00Z")


def test_the_version_of_the_zones_is_that_of_the_pinned_wheel() -> None:
    year, release = version("tzdata").split(".")[:2]
    assert tzdata_version() == f"{year}{chr(ord('a') + int(release) - 1)}"


def test_an_expression_that_never_fires_ends_the_search() -> None:
    never = calendar_of("cron(0 0 30 2 ? *)", "America/New_York", CREATED)
    assert never.next_after(CREATED) is None
    assert never.latest_until(CREATED) is None


def test_next_and_latest_meet_at_every_slot_of_the_transition_days() -> None:
    for timezone in ("Europe/London", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"):
        calendar = calendar_of("cron(0/30 * * * ? *)", timezone, CREATED)
        for day in (
            datetime(2026, 3, 29, tzinfo=UTC),
            datetime(2026, 11, 1, tzinfo=UTC),
            datetime(2026, 4, 4, tzinfo=UTC),
        ):
            known = list(calendar.between(day, day + timedelta(days=2)))
            for before, after in pairwise(known):
                assert calendar.next_after(before) == after
                assert calendar.latest_until(after - timedelta(seconds=1)) == before
                assert calendar.latest_until(after) == after


def test_start_and_end_bound_the_slots_inclusively() -> None:
    calendar = calendar_of(
        "cron(0 6 * * ? *)", "UTC", CREATED,
        start=parse_instant("2026-03-02T06:00:00Z"), end=parse_instant("2026-03-04T06:00:00Z"),
    )  # fmt: skip
    found = list(calendar.between(CREATED, parse_instant("2027-01-01T00:00:00Z")))
    assert [slot.day for slot in found] == [2, 3, 4]
    assert calendar.latest_until(parse_instant("2026-12-01T00:00:00Z")) == found[-1]
    assert calendar.next_after(found[-1]) is None


def test_naive_datetimes_are_refused() -> None:
    calendar = calendar_of("cron(0 6 * * ? *)", "UTC", CREATED)
    with pytest.raises(ValueError, match="no timezone"):
        calendar.next_after(datetime(2026, 1, 1))
