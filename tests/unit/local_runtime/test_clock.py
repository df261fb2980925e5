"""The clock: each slot is fired once as it comes, whatever the machine's own clock does."""

from datetime import UTC, datetime, timedelta

import pytest

from galley_cli.local.clock import Clock, Due
from galley_cli.local.runner import IDLE
from galley_cli.template import TemplateSchedule

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)


def schedule(
    expression: str, timezone: str = "UTC", *, name: str = "S", enabled: bool = True, retry_age_hours: int = 24
) -> TemplateSchedule:
    return TemplateSchedule(
        name=name,
        function="dispatch",
        expression=expression,
        timezone=timezone,
        input="{}",
        enabled=enabled,
        start=None,
        end=None,
        retry_age=timedelta(hours=retry_age_hours),
    )


class Watched:
    """A clock whose time the test sets, and what it fired."""

    def __init__(self, *schedules: TemplateSchedule, at: datetime = NOON) -> None:
        self.now = at
        self.fired: list[Due] = []
        self.clock = Clock([(one, NOON) for one in schedules], self.fired.append, lambda: self.now, since=at)

    def look(self, at: datetime) -> timedelta:
        self.now = at
        return self.clock.step()

    @property
    def slots(self) -> list[str]:
        return [due.slot.strftime("%d %H:%M") for due in self.fired]


def test_a_slot_is_fired_once_when_it_comes() -> None:
    watched = Watched(schedule("cron(0 * * * ? *)"))
    watched.look(NOON + timedelta(minutes=59, seconds=59.9))
    assert watched.slots == []
    watched.look(NOON + timedelta(hours=1))
    watched.look(NOON + timedelta(hours=1, seconds=1))
    assert watched.slots == ["28 13:00"]


def test_what_was_due_before_the_start_is_not_fired() -> None:
    watched = Watched(schedule("cron(0 12 * * ? *)"))
    watched.look(NOON + timedelta(minutes=1))
    assert watched.slots == []


def test_after_a_suspended_hour_every_slot_that_came_due_is_fired_in_order() -> None:
    watched = Watched(schedule("cron(0/20 * * * ? *)", name="A"), schedule("cron(40 * * * ? *)", name="B"))
    watched.look(NOON + timedelta(hours=1))
    assert watched.slots == ["28 12:20", "28 12:40", "28 12:40", "28 13:00"]
    assert [due.schedule.name for due in watched.fired] == ["A", "A", "B", "A"]


def test_a_slot_past_its_retry_age_is_left_to_the_sweep() -> None:
    watched = Watched(schedule("cron(0 * * * ? *)", retry_age_hours=2))
    watched.look(NOON + timedelta(days=3, minutes=30))
    assert watched.slots == ["31 11:00", "31 12:00"]


def test_a_clock_set_back_fires_its_slots_again_rather_than_never() -> None:
    watched = Watched(schedule("cron(0 * * * ? *)"))
    watched.look(NOON + timedelta(days=365))
    watched.fired.clear()
    watched.look(NOON + timedelta(minutes=30))
    watched.look(NOON + timedelta(hours=1))
    assert watched.slots == ["28 13:00"]


def test_a_disabled_schedule_is_never_due() -> None:
    watched = Watched(schedule("cron(* * * * ? *)", enabled=False))
    watched.look(NOON + timedelta(hours=1))
    assert watched.slots == []


@pytest.mark.guarantee("G9")
def test_g9_the_clock_keeps_the_schedules_own_timezone_over_a_spring_change() -> None:
    eve = datetime(2026, 3, 28, tzinfo=UTC)
    watched = Watched(
        schedule("cron(30 1 * * ? *)", "Europe/London", name="Gap"),
        schedule("cron(0 6 * * ? *)", "Europe/London", name="Morning"),
        at=eve,
    )
    for minute in range(3 * 24 * 60):
        watched.look(eve + timedelta(minutes=minute))
    assert watched.slots == ["28 01:30", "28 06:00", "29 05:00", "30 00:30", "30 05:00"]


def test_it_sleeps_until_the_next_slot_but_never_long() -> None:
    watched = Watched(schedule("cron(0 * * * ? *)"))
    assert watched.look(NOON) == IDLE
    assert watched.look(NOON + timedelta(minutes=59, seconds=58)) == timedelta(seconds=2)


def test_a_clock_without_schedules_just_sleeps() -> None:
    assert Watched().look(NOON) == IDLE
