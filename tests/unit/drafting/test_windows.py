"""Which window a run is about, however late it is drafted."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from drafter import Drafter, read_drafter
from galley.contract import read_tick
from galley.retry import NeverSucceeds
from galley.runs import Origin, RunKey, messages_for
from galley_cli.backfilling import backfill_message
from support.outside import ROOT, SLOT, FixedSchedules, message, schedule
from windows import window_of

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def drafter() -> Drafter:
    return read_drafter(Path(ROOT / "functions" / "draft" / "drafters" / "daily-digest.toml"))


def test_a_backfilled_run_is_about_the_window_of_its_own_slot(drafter: Drafter) -> None:
    daily = schedule(created=SLOT, modified=SLOT)
    tick = read_tick(daily.input)
    first, end = datetime(2026, 3, 27, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
    slots = list(daily.calendar().between(first, end))
    windows = [
        window_of(backfill_message(tick, RunKey("daily-digest", slot), daily, "t"), drafter, FixedSchedules((daily,)))
        for slot in slots
    ]
    assert [window.end for window in windows] == slots
    assert [window.start for window in windows[1:]] == slots[:-1], "each begins where the one before ends"
    assert windows[0].start == slots[0] - 24 * HOUR
    assert windows[2].end - windows[2].start == 23 * HOUR, "the clocks went forward in London"
    assert [window.earlier_start for window in windows[2:]] == slots[:-2], "and knows where that one began"
    assert {window.zone.key for window in windows} == {"Europe/London"}


def test_a_tick_by_hand_is_about_what_came_since_the_slot_before(drafter: Drafter) -> None:
    daily = schedule()
    (asked,) = messages_for(
        read_tick(daily.input), SLOT + 4 * HOUR, origin=Origin.MANUAL, schedule=daily.arn, trace=None
    )
    window = window_of(asked, drafter, FixedSchedules((daily,)))
    assert (window.start, window.end) == (SLOT, SLOT + 4 * HOUR)


def test_the_first_slot_and_a_run_without_a_schedule_are_about_the_drafters_own_period(drafter: Drafter) -> None:
    period = timedelta(hours=drafter.period_hours)
    begins = schedule(start=SLOT)
    assert window_of(message(), drafter, FixedSchedules((begins,))).start == SLOT - period
    by_hand = window_of(message(schedule=None), drafter, FixedSchedules())
    assert (by_hand.start, by_hand.earlier_start) == (SLOT - period, None)


def test_a_run_whose_schedule_is_gone_never_succeeds(drafter: Drafter) -> None:
    with pytest.raises(NeverSucceeds, match="schedule_missing"):
        window_of(message(), drafter, FixedSchedules())
