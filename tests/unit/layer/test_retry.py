"""How long is waited."""

from datetime import timedelta

import pytest

from galley.retry import FIRST_WAIT, LONGEST_RETRY_AFTER, LONGEST_WAIT, backoff, wait_after


def test_waits_double_up_to_the_longest_less_at_most_a_quarter() -> None:
    for attempt in range(1, 12):
        whole = min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT)
        assert whole * 3 / 4 <= wait_after(attempt, "daily-digest:2026-11-27T06:00:00Z") <= whole


def test_runs_that_failed_together_do_not_come_back_together() -> None:
    assert len({wait_after(1, f"drafter-{number}") for number in range(20)}) == 20


@pytest.mark.parametrize(
    ("asked", "waited"),
    [(timedelta(minutes=3), timedelta(minutes=3)), (timedelta(hours=84), LONGEST_RETRY_AFTER)],
)
def test_what_the_other_side_asks_for_is_kept_within_reason(asked: timedelta, waited: timedelta) -> None:
    assert wait_after(1, "run", asked) == waited


def test_the_backoff_of_requests_doubles_and_is_shared_out() -> None:
    assert [backoff(attempt, 0.1, 0.5) for attempt in (1, 2, 3)] == pytest.approx([0.1, 0.2, 0.4])
    assert backoff(3, 0.1, 0.0) == 0
