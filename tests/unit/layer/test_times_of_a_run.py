"""Until when a slot is worth drafting, a lease lives, and an attempt is waited for: each bound, to the second."""

from dataclasses import replace
from datetime import timedelta

import pytest

from galley.retry import LONGEST_RETRY_AFTER
from galley.runs import LONGEST_LEASE, Origin, Run, Status
from support.outside import CONTRACT, SLOT, message

SECOND = timedelta(seconds=1)
RUN = Run("daily-digest", SLOT, Status.DRAFTING, 1, Origin.SCHEDULE, CONTRACT, created=SLOT, changed=SLOT)


def test_the_last_moment_of_the_grace_still_belongs_to_it() -> None:
    ends = SLOT + timedelta(hours=2)
    assert message().grace_ends == ends
    assert [message().is_late(ends), message().is_late(ends + SECOND)] == [False, True]


def test_a_lease_is_dead_from_its_end_on_or_when_it_was_given_up() -> None:
    held = replace(RUN, owner="worker", lease_until=SLOT + SECOND)
    assert [held.lease_is_dead(SLOT), held.lease_is_dead(SLOT + SECOND)] == [False, True]
    assert RUN.lease_is_dead(SLOT)


def test_a_lease_that_ends_later_than_any_can_is_a_clocks_mistake() -> None:
    held = replace(RUN, owner="worker", lease_until=SLOT + LONGEST_LEASE)
    assert [held.lease_is_dead(SLOT), held.lease_is_dead(SLOT - SECOND)] == [False, True]


@pytest.mark.parametrize("status", [one for one in Status if one is not Status.DRAFTING], ids=str)
def test_a_run_that_is_not_being_drafted_has_no_dead_lease(status: Status) -> None:
    assert not replace(RUN, status=status).lease_is_dead(SLOT)


def test_a_run_waits_until_its_next_attempt_and_never_longer_than_any_wait_can_be() -> None:
    waiting = replace(RUN, next_attempt=SLOT + LONGEST_RETRY_AFTER)
    moments = [SLOT - SECOND, SLOT, SLOT + LONGEST_RETRY_AFTER - SECOND, SLOT + LONGEST_RETRY_AFTER]
    assert [waiting.waits(moment) for moment in moments] == [False, True, True, False]
    assert not RUN.waits(SLOT)
