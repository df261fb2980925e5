"""Which of a schedule's slots it was to fire."""

from datetime import datetime, timedelta

import pytest

from galley.schedules import ScheduleDefinition
from support.outside import SLOT, schedule

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def hourly(**change: object) -> ScheduleDefinition:
    long_ago = SLOT - timedelta(days=9)
    return schedule(expression="cron(0 * * * ? *)", **{"created": long_ago, "modified": long_ago, **change})


def hours(definition: ScheduleDefinition, first: datetime = SLOT, end: datetime = SLOT + 4 * HOUR) -> list[int]:
    return [(slot - SLOT) // HOUR for slot in definition.due(first, end)]


def test_the_first_instant_belongs_to_the_range_and_the_last_does_not() -> None:
    assert hours(hourly()) == [0, 1, 2, 3]
    assert hours(hourly(), SLOT + SECOND, SLOT + 4 * HOUR + SECOND) == [1, 2, 3, 4]


@pytest.mark.parametrize("bound", ["created", "modified", "start"])
def test_nothing_is_due_before_the_schedule_was_what_it_is(bound: str) -> None:
    assert hours(hourly(**{bound: SLOT + 2 * HOUR})) == [2, 3]
    assert hours(hourly(**{bound: SLOT + 2 * HOUR + SECOND})) == [3]


def test_nothing_is_due_after_the_end_nor_while_the_schedule_is_disabled() -> None:
    assert hours(hourly(end=SLOT + HOUR)) == [0, 1]
    assert hours(hourly(enabled=False)) == []


def test_a_rate_that_counts_from_a_fraction_of_a_second_is_due_at_whole_seconds() -> None:
    """A run's key holds whole seconds, and so do the slots that are compared with it."""
    created = SLOT + timedelta(milliseconds=250)
    every_hour = schedule(expression="rate(1 hour)", created=created, modified=created)
    assert every_hour.due(SLOT, SLOT + 2 * HOUR) == (SLOT, SLOT + HOUR)
