"""Which slots of a schedule, as it is deployed, were to fire."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from galley.schedule import InvalidSchedule
from support.outside import SLOT, schedule

DAY = timedelta(days=1)
WEEK = [SLOT + number * DAY for number in range(7)]


@pytest.mark.parametrize(
    ("change", "due"),
    [
        pytest.param({}, WEEK, id="all of the range, its end left out"),
        pytest.param({"enabled": False}, [], id="none while it is disabled"),
        pytest.param({"created": WEEK[2]}, WEEK[2:], id="none before its creation"),
        pytest.param({"modified": WEEK[2]}, WEEK[2:], id="one at the very instant of its last change"),
        pytest.param({"modified": WEEK[2] + timedelta(milliseconds=1)}, WEEK[3:], id="none before its last change"),
        pytest.param({"start": WEEK[1]}, WEEK[1:], id="none before StartDate"),
        pytest.param({"end": WEEK[4]}, WEEK[:5], id="none after EndDate"),
        pytest.param({"start": WEEK[1], "modified": WEEK[3], "end": WEEK[4]}, WEEK[3:5], id="the narrowest bound"),
    ],
)
def test_a_slot_is_due_where_eventbridge_was_to_fire_it(change: dict[str, Any], due: list[datetime]) -> None:
    assert list(schedule(**change).due(SLOT, SLOT + 7 * DAY)) == due


def test_ranges_that_follow_each_other_share_no_slot_and_leave_none_out() -> None:
    hourly = schedule(expression="cron(0 * * * ? *)")
    night = datetime(2026, 10, 25, tzinfo=UTC)  # London's clocks go back at 01:00 UTC: 01:00 there is due once
    whole = list(hourly.due(night, night + DAY))
    middle = night + timedelta(hours=1)
    assert [*hourly.due(night, middle), *hourly.due(middle, night + DAY)] == whole
    assert len(whole) == 23


def test_a_slot_is_a_whole_second_even_of_a_rate_that_counts_from_within_one() -> None:
    created = SLOT + timedelta(milliseconds=250)
    every_day = schedule(expression="rate(1 day)", created=created, modified=created)
    assert list(every_day.due(SLOT, SLOT + 2 * DAY)) == [SLOT, SLOT + DAY]


def test_a_broken_schedule_says_so_before_any_slot_is_taken() -> None:
    with pytest.raises(InvalidSchedule, match="Mars/Olympus"):
        schedule(timezone="Mars/Olympus").due(SLOT, SLOT + DAY)
