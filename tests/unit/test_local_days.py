"""Days as a calendar counts them: what they are compared with, and the weeks, months and years within them."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_days import Days, Every, name_of


def days(text: str) -> Days:
    first, _, last = text.partition("..")
    return Days(date.fromisoformat(first), date.fromisoformat(last or first))


@pytest.mark.parametrize(
    ("those", "before", "year_ago"),
    [
        pytest.param("2026-11-16..2026-11-22", "2026-11-09..2026-11-15", "2025-11-17..2025-11-23", id="a week"),
        pytest.param("2026-01-05", "2026-01-04", "2025-01-06", id="a Monday, and the Monday a year ago"),
        pytest.param("2024-12-30..2025-01-05", "2024-12-23..2024-12-29", "2024-01-01..2024-01-07", id="a year's end"),
        pytest.param("2026-03-01..2026-03-31", "2026-02-01..2026-02-28", "2025-03-01..2025-03-31", id="a month"),
        pytest.param("2024-02-01..2024-02-29", "2024-01-01..2024-01-31", "2023-02-01..2023-02-28", id="a leap month"),
        pytest.param("2026-01-15..2026-02-14", "2025-12-15..2026-01-14", "2025-01-15..2025-02-14", id="from the 15th"),
        pytest.param("2026-01-01..2026-03-31", "2025-10-01..2025-12-31", "2025-01-01..2025-03-31", id="a quarter"),
        pytest.param("2025-01-01..2025-12-31", "2024-01-01..2024-12-31", "2024-01-01..2024-12-31", id="a year"),
        pytest.param("2026-03-30..2026-04-29", "2026-02-28..2026-03-29", "2025-03-30..2025-04-29", id="from the 30th"),
        pytest.param("2026-01-31..2026-02-27", "2026-01-03..2026-01-30", "2025-02-01..2025-02-28", id="28 days"),
    ],
)
def test_what_days_are_compared_with(those: str, before: str, year_ago: str) -> None:
    assert days(those).before == days(before)
    assert days(those).year_ago == days(year_ago)


@given(st.dates(date(1990, 1, 1), date(2100, 1, 1)), st.integers(1, 800))
def test_the_days_before_end_where_these_begin_and_a_year_ago_is_about_a_year_ago(first: date, count: int) -> None:
    those = Days(first, first + timedelta(days=count - 1))
    assert those.before.last + timedelta(days=1) == those.first
    assert those.months or those.before.count == those.count
    ago = those.first - those.year_ago.first
    assert ago.days == 364 or (those.months and ago.days in (365, 366))
    if not those.months:
        assert those.year_ago.first.weekday() == those.first.weekday()


@pytest.mark.parametrize(
    ("every", "those", "names"),
    [
        ("day", "2026-11-21..2026-11-22", ["Sat 2026-11-21", "Sun 2026-11-22"]),
        ("week", "2026-11-14..2026-11-30", ["week of 2026-11-16", "week of 2026-11-23"]),
        ("month", "2025-11-15..2026-01-31", ["2025-12", "2026-01"]),
        ("month", "2026-02-02..2026-02-28", []),
        ("year", "2024-01-01..2026-12-30", ["2024", "2025"]),
        ("any", "2026-02-01..2026-02-28", []),
    ],
)
def test_the_periods_that_lie_wholly_within_days(every: Every, those: str, names: list[str]) -> None:
    assert [name_of(period, every) for period in days(those).whole(every)] == names
