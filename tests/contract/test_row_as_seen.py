"""An operation changes the row that its caller saw, and no other."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from contract.material import (
    BILL,
    CURSORS,
    DIGEST,
    DRAFT,
    LEASE,
    NOW,
    REPORT,
    claimed,
    decide,
    everything,
    failed,
    later,
    message,
    pending,
    queued,
    settled,
)
from galley.retry import RetryLater
from galley.runs import Run, RunMessage, SkipReason, Status
from galley.store import Approve, Conflict, LeaseLost, Store, StoredDraft

ENDINGS: dict[str, Callable[[Store, Run], object]] = {
    "store": lambda store, run: store.store(run, DRAFT, CURSORS, BILL, now=NOW),
    "release": lambda store, run: store.release(run, Status.EMPTY, "nothing_new", "", BILL, now=NOW, cursors=CURSORS),
    "postpone": lambda store, run: store.postpone(
        run, RetryLater("timeout", ""), BILL, now=NOW, next_attempt=NOW + timedelta(minutes=1)
    ),
}


@pytest.mark.guarantee("G1")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("other", [{"owner": "invocation-2"}, {"version": 2}], ids=["another owner", "another version"])
def test_g1_a_run_is_ended_only_by_its_owner_and_only_as_he_claimed_it(
    store: Store, ending: str, other: dict[str, Any]
) -> None:
    run = claimed(store)
    before = everything(store)

    assert ENDINGS[ending](store, replace(run, **other)) == LeaseLost(run)
    assert everything(store) == before


@pytest.mark.guarantee("G1")
@pytest.mark.parametrize("ending", ENDINGS)
def test_g1_a_run_that_nobody_has_claimed_cannot_be_ended(store: Store, ending: str) -> None:
    run = pending(store)
    before = everything(store)

    with pytest.raises(ValueError, match="is pending; only a claimed run can be settled"):
        ENDINGS[ending](store, run)
    assert everything(store) == before


def test_a_run_that_is_ended_while_it_waits_waits_no_more(store: Store) -> None:
    waiting = settled(ENDINGS["postpone"](store, claimed(store)))
    assert waiting.next_attempt is not None

    after = settled(store.release(waiting, Status.SKIPPED, SkipReason.MISFIRED, "", BILL, now=NOW))

    assert after.next_attempt is None
    assert store.run(after.key) == after


def test_a_queued_run_that_is_skipped_says_since_when(store: Store) -> None:
    run = queued(store)
    later = NOW + timedelta(hours=1)

    after = settled(store.skip(run.message, SkipReason.GATE, "full", now=later))

    assert (after.version, after.changed, after.created) == (run.version + 1, later, run.created)
    assert store.run(run.key) == after


@pytest.mark.parametrize(
    "asked",
    [pytest.param(message(REPORT), id="drafters of one slot"), pytest.param(later(1), id="slots of one drafter")],
)
def test_texts_are_kept_apart(store: Store, asked: RunMessage) -> None:
    other = replace(DRAFT, title="Figures", body="42 sold.")
    runs = [pending(store), pending(store, asked, other)]

    settled(decide(store, runs[1], Approve("Figures, corrected", "43 sold.")))

    assert [store.draft(run.key) for run in runs] == [
        StoredDraft(DRAFT),
        StoredDraft(other, "Figures, corrected", "43 sold."),
    ]


@pytest.mark.parametrize("operation", ["pause", "resume"])
def test_an_instant_without_a_timezone_neither_pauses_nor_resumes_a_drafter(store: Store, operation: str) -> None:
    store.pause(REPORT, "by hand", now=NOW)
    naive = NOW.replace(tzinfo=None)

    with pytest.raises(ValueError, match="timezone"):
        store.pause(DIGEST, "by hand", now=naive) if operation == "pause" else store.resume(REPORT, now=naive)
    assert [store.drafter(drafter).paused for drafter in (DIGEST, REPORT)] == [None, "by hand"]


@pytest.mark.guarantee("G1")
@pytest.mark.parametrize("ending", ENDINGS)
def test_g1_a_lease_that_was_lost_is_lost_though_its_owner_holds_another_drafters_run(
    store: Store, ending: str
) -> None:
    lost, held = claimed(store), claimed(store, message(REPORT))
    assert (lost.slot, lost.owner, lost.version) == (held.slot, held.owner, held.version)
    taken_over = claimed(store, owner="invocation-2", now=NOW + LEASE)
    before = everything(store)

    assert ENDINGS[ending](store, lost) == LeaseLost(taken_over)
    assert everything(store) == before


@pytest.mark.parametrize("state", [pending, failed], ids=["pending", "failed"])
def test_a_run_that_waits_for_no_message_is_not_noted_as_sent_once_more(
    store: Store, state: Callable[[Store], Run]
) -> None:
    run = state(store)

    assert store.remind(run.key, now=NOW + LEASE) == Conflict(run)
    assert store.run(run.key) == run
