"""A failed run that a person is done with: it stays in the table and leaves the list of failures."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from contract.material import (
    NOW,
    approved,
    claim,
    claimed,
    everything,
    failed,
    later,
    message,
    pending,
    queued,
    settled,
)
from galley.runs import RunKey, SkipReason, Status
from galley.store import Conflict, Duplicate, NoSuchRun, Page, Store

LATER = NOW + timedelta(hours=1)


def test_a_dismissed_run_stays_failed_and_is_listed_no_longer(store: Store) -> None:
    other = failed(store, later(1))
    run = failed(store)

    dismissed = settled(store.dismiss(run.key, now=LATER))

    assert dismissed == replace(run, version=run.version + 1, changed=LATER, dismissed=LATER)
    assert store.run(run.key) == dismissed
    assert store.watched(Status.FAILED) == Page((other,))
    assert dismissed in store.history(run.drafter).runs


def test_dismissing_counts_nothing_and_gives_no_place_back(store: Store) -> None:
    run = failed(store)
    pending(store, later(1))
    before = everything(store)

    store.dismiss(run.key, now=LATER)

    after = everything(store)
    del before[run.drafter]["runs"], after[run.drafter]["runs"]
    assert {name: value for name, value in after.items() if name != "watched failed"} == {
        name: value for name, value in before.items() if name != "watched failed"
    }


def test_a_run_is_dismissed_once(store: Store) -> None:
    run = failed(store)
    dismissed = settled(store.dismiss(run.key, now=NOW))

    assert store.dismiss(run.key, now=LATER) == Conflict(dismissed)
    assert store.run(run.key) == dismissed


@pytest.mark.parametrize(
    "bring",
    [
        claimed,
        pending,
        approved,
        queued,
        lambda store: settled(store.skip(message(), SkipReason.GATE, "", now=NOW)),
    ],
)
def test_only_a_failed_run_is_dismissed(store: Store, bring: Any) -> None:
    run = bring(store)
    before = everything(store)

    assert store.dismiss(run.key, now=LATER) == Conflict(run)
    assert everything(store) == before


def test_a_run_that_is_not_there_is_not_dismissed(store: Store) -> None:
    assert store.dismiss(RunKey("nobody", NOW), now=NOW) == NoSuchRun()


@pytest.mark.guarantee("G5")
def test_g5_a_dismissed_run_can_still_be_sent_again_and_fails_anew_in_the_list(store: Store) -> None:
    run = failed(store)
    store.dismiss(run.key, now=NOW)

    again = settled(store.resend(run.key, now=LATER))

    assert (again.status, again.resend, again.dismissed) == (Status.QUEUED, 1, None)
    assert store.watched(Status.QUEUED) == Page((again,))
    assert store.watched(Status.FAILED) == Page(())
    failed_again = failed(store, again.message)
    assert store.watched(Status.FAILED) == Page((failed_again,))


@pytest.mark.guarantee("G1")
def test_g1_a_dismissed_run_is_claimed_by_no_message(store: Store) -> None:
    run = failed(store)
    dismissed = settled(store.dismiss(run.key, now=NOW))

    assert claim(store, message(resend=5)) == Duplicate(dismissed)
