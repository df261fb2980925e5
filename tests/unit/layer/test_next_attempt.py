"""When a run is tried again: each bound, to the second."""

from datetime import timedelta

from galley.retry import DELIVERY, FIRST_WAIT, LONGEST_RETRY_AFTER, MOST_ATTEMPTS, next_attempt, wait_after
from support.outside import SLOT

RUN = "daily-digest:2026-11-27T06:00:00Z"
SECOND = timedelta(seconds=1)


def test_a_run_that_no_grace_binds_waits_longer_each_time_and_is_tried_so_often_and_no_more() -> None:
    for attempt in range(1, MOST_ATTEMPTS):
        assert next_attempt(attempt, RUN, now=SLOT) == SLOT + wait_after(attempt, RUN)
    assert next_attempt(MOST_ATTEMPTS, RUN, now=SLOT) is None


def test_a_wait_that_just_fits_into_the_grace_is_waited() -> None:
    wait = wait_after(1, RUN)
    assert wait < FIRST_WAIT
    assert next_attempt(1, RUN, now=SLOT, grace_ends=SLOT + wait + DELIVERY) == SLOT + wait
    assert next_attempt(1, RUN, now=SLOT, grace_ends=SLOT + wait + DELIVERY - SECOND) is None


def test_the_last_wait_is_cut_short_to_the_end_of_the_grace_and_not_below_the_first_wait() -> None:
    assert wait_after(5, RUN) > FIRST_WAIT
    assert next_attempt(5, RUN, now=SLOT, grace_ends=SLOT + FIRST_WAIT + DELIVERY) == SLOT + FIRST_WAIT
    assert next_attempt(5, RUN, now=SLOT, grace_ends=SLOT + FIRST_WAIT + DELIVERY - SECOND) is None


def test_no_attempt_comes_before_the_other_side_asked_for_it() -> None:
    asked = timedelta(minutes=20)
    assert next_attempt(5, RUN, now=SLOT, retry_after=asked, grace_ends=SLOT + asked + DELIVERY) == SLOT + asked
    assert next_attempt(5, RUN, now=SLOT, retry_after=asked, grace_ends=SLOT + asked + DELIVERY - SECOND) is None
    for_days = timedelta(hours=84)
    ends = SLOT + LONGEST_RETRY_AFTER + DELIVERY
    assert next_attempt(5, RUN, now=SLOT, retry_after=for_days, grace_ends=ends) == SLOT + LONGEST_RETRY_AFTER
