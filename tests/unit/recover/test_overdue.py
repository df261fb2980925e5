"""Runs whose window is over and that have no outcome yet."""

from datetime import timedelta

import pytest

from galley.runs import Origin, Run, RunMessage, Status
from galley.store import Bill, Claimed, Limits, Store
from in_flight import list_in_flight
from overdue import find_overdue
from support.outside import CONTRACT, SLOT, message

SECOND = timedelta(seconds=1)
OVER = SLOT + CONTRACT.window + SECOND
LIMITS = Limits(pending=1, daily_budget_nanousd=None, worst_cost_nanousd=0)


def begun(store: Store, asked: RunMessage) -> Run:
    claimed = store.claim(asked, LIMITS, owner="worker", now=SLOT, lease_until=SLOT + timedelta(minutes=5))
    assert isinstance(claimed, Claimed)
    return claimed.run


def test_a_begun_run_is_overdue_after_the_last_moment_of_its_window(store: Store) -> None:
    run = begun(store, message())
    assert find_overdue(list_in_flight(store).runs, now=OVER - SECOND) == ()
    assert find_overdue(list_in_flight(store).runs, now=OVER) == (str(run.key),)


def test_a_run_with_an_outcome_is_not_overdue(store: Store) -> None:
    store.release(begun(store, message()), Status.EMPTY, "nothing_new", "", Bill(), now=SLOT)
    assert find_overdue(list_in_flight(store).runs, now=OVER) == ()


@pytest.mark.parametrize("origin", [Origin.CATCH_UP, Origin.MANUAL])
def test_the_window_binds_whatever_the_grace_binds(store: Store, origin: Origin) -> None:
    run = begun(store, message(origin=origin))
    assert find_overdue(list_in_flight(store).runs, now=OVER) == (str(run.key),)


def test_a_backfill_and_a_run_that_a_person_sent_again_are_never_overdue(store: Store) -> None:
    begun(store, message(origin=Origin.BACKFILL))
    other = begun(store, message("nightly-sync"))
    store.release(other, Status.FAILED, "refusal", "", Bill(), now=SLOT)
    store.resend(other.key, now=SLOT)
    assert find_overdue(list_in_flight(store).runs, now=OVER) == ()
