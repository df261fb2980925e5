"""What the local store does beyond the contract of every store: its stream, its start, and what it says of bad rows."""

from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from contract.material import (
    BILL,
    DAY,
    DIGEST,
    DRAFT,
    EDIT,
    NOW,
    REPORT,
    SLOT,
    approved,
    claim,
    claimed,
    decide,
    failed,
    later,
    message,
    pending,
    settled,
)
from galley.retry import RetryLater
from galley.runs import RunKey, Status
from galley.store import Claimed, LeaseLost, Limits, RowsDisagree, Settled, StoreBusy, UnreadableRow
from galley_cli.local import state as state_module
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore, StreamRecord


@pytest.fixture
def store(state: StateDirectory) -> SqliteStore:
    return SqliteStore(state)


def moves(store: SqliteStore, after: int = 0) -> list[tuple[str, Status | None, Status]]:
    return [(str(record.key), record.old, record.new) for record in store.stream_after(after)]


def test_the_stream_tells_every_change_of_a_row_in_order(store: SqliteStore) -> None:
    run = approved(store)
    store.settle_publication(run, Status.PUBLISHED, "s3", now=NOW)
    name = str(run.key)
    assert moves(store) == [
        (name, None, Status.DRAFTING),
        (name, Status.DRAFTING, Status.PENDING),
        (name, Status.PENDING, Status.APPROVED),
        (name, Status.APPROVED, Status.PUBLISHED),
    ]
    third = store.stream_after(2, limit=1)
    assert third == (StreamRecord(3, run.key, Status.PENDING, Status.APPROVED, 3, NOW),)


def test_what_did_not_happen_is_not_in_the_stream(store: SqliteStore) -> None:
    run = pending(store)
    decide(store, run, version=run.version + 1)
    claim(store)
    store.pause(DIGEST, "spend limit", now=NOW)
    claim(store, later(1))
    assert len(store.stream_after(0)) == 2


def test_a_consumer_keeps_its_place_and_never_goes_back(store: SqliteStore, root: Path) -> None:
    approved(store)
    assert store.stream_position("publish") == 0
    store.advance("publish", 2)
    store.advance("publish", 1)
    with closing(StateDirectory.open(root)) as reopened:
        assert SqliteStore(reopened).stream_position("publish") == 2


def test_the_stream_keeps_what_one_consumer_has_not_done_with(store: SqliteStore) -> None:
    approved(store)
    store.advance("publish", 3)
    assert store.stream_after(0) == ()
    store.advance("other", 0)
    failed(store, later(1))
    store.advance("publish", 5)
    assert [record.sequence for record in store.stream_after(0)] == [4, 5]
    store.advance("other", 4)
    assert [record.sequence for record in store.stream_after(0)] == [5]


def test_at_the_start_every_lease_of_an_earlier_system_is_dead(store: SqliteStore) -> None:
    limits = Limits(pending=1, daily_budget_nanousd=200, worst_cost_nanousd=100)
    before = claimed(store, limits=limits)
    waiting = pending(store, message(REPORT))
    assert store.expire_leases(now=NOW) == (before.key,)

    expired = store.run(before.key)
    assert expired is not None
    assert expired.lease_is_dead(NOW)
    assert (expired.status, expired.version, expired.owner) == (Status.DRAFTING, before.version + 1, None)
    assert store.run(waiting.key) == waiting
    assert isinstance(store.store(before, DRAFT, {}, BILL, now=NOW), LeaseLost)

    again = claim(store, limits=limits, owner="the next system")
    assert isinstance(again, Claimed)
    assert again.run.attempts == 1, "the one that was cut short does not count"
    assert again.run.cost_nanousd == 100
    assert store.committed_nanousd(DIGEST, DAY) == 200
    assert store.drafter(DIGEST).pending == 1


def test_at_the_start_a_run_that_waits_counts_as_seen_and_keeps_its_attempts(store: SqliteStore) -> None:
    """The system was off, not the run abandoned: the sweep gives its message time to come."""
    run = claimed(store)
    postponed = store.postpone(
        run, RetryLater("overloaded", "529"), BILL, now=NOW, next_attempt=NOW + timedelta(minutes=1)
    )
    assert isinstance(postponed, Settled)
    started = NOW + timedelta(hours=12)
    assert store.expire_leases(now=started) == ()
    seen = store.run(run.key)
    assert seen is not None
    assert (seen.changed, seen.attempts, seen.reason) == (started, 1, "overloaded")


def test_a_row_that_cannot_be_read_is_named_and_hides_no_other(state: StateDirectory, store: SqliteStore) -> None:
    good = pending(store)
    bad = [pending(store, later(number)) for number in (1, 2)]
    with state.write() as db:
        db.execute("UPDATE runs SET contract = '{' WHERE slot = '2026-03-03T06:00:00Z'")
        db.execute("UPDATE runs SET origin = 'whim' WHERE slot = '2026-03-04T06:00:00Z'")
    for page in (store.watched(Status.PENDING), store.history(DIGEST)):
        assert page.runs == (good,)
        assert sorted(line[: line.index(": ", 30)] for line in page.unreadable) == [f"run {run.key}" for run in bad]
    with pytest.raises(UnreadableRow, match=f"run {bad[0].key}"):
        store.run(bad[0].key)
    with state.write() as db:
        db.execute("UPDATE runs SET status = 'drafting', lease_until = '2026-03-02T06:05:00Z', owner = 'x'")
    assert store.expire_leases(now=NOW) == (good.key,)


def test_counts_that_contradict_the_rows_are_told_and_nothing_changes(
    state: StateDirectory, store: SqliteStore
) -> None:
    run = pending(store)
    with state.write() as db:
        db.execute("UPDATE drafters SET pending = 0")
    with pytest.raises(RowsDisagree, match=f"drafter {DIGEST} gives back a place and has none"):
        decide(store, run)
    assert store.run(run.key) == run
    assert store.stream_after(2) == ()


def test_a_pending_run_without_a_text_cannot_be_edited(state: StateDirectory, store: SqliteStore) -> None:
    run = pending(store)
    with state.write() as db:
        db.execute("DELETE FROM texts")
    with pytest.raises(RowsDisagree, match=f"run {run.key} is pending and has no text"):
        decide(store, run, EDIT)
    assert store.run(run.key) == run


def test_a_store_that_others_hold_says_so_and_does_nothing(
    state: StateDirectory, store: SqliteStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "TURN_SECONDS", 0.02)
    with closing(StateDirectory.open(root)) as other, other.write(), pytest.raises(StoreBusy, match="try again"):
        claim(store)
    assert store.run(RunKey(DIGEST, SLOT)) is None


def test_everything_is_there_after_a_restart(store: SqliteStore, state: StateDirectory, root: Path) -> None:
    run = approved(store)
    text = store.draft(run.key)
    state.close()
    with closing(StateDirectory.open(root)) as reopened:
        again = SqliteStore(reopened)
        assert again.run(run.key) == run
        assert again.draft(run.key) == text
        assert again.drafter(DIGEST).pending == 0
        assert again.week(DIGEST, "2026-W10")["approved"] == 1


@pytest.mark.parametrize("after", ["", "nonsense", "2026-03-02T06:00:00Z", f"yesterday {DIGEST}:2026-03-02T06:00:00Z"])
def test_a_place_in_a_listing_that_no_page_gave_is_refused(store: SqliteStore, after: str) -> None:
    pending(store)
    with pytest.raises(ValueError, match=r"is not a run|is not an instant"):
        store.watched(Status.PENDING, after=after)
    with pytest.raises(ValueError, match=r"is not a run"):
        store.history(DIGEST, after=after)


def test_a_lease_given_up_stays_in_the_listing_at_its_next_attempt(store: SqliteStore) -> None:
    waiting, working = claimed(store), claimed(store, later(1))
    settled(
        store.postpone(waiting, RetryLater("overloaded", "529"), BILL, now=NOW, next_attempt=NOW + timedelta(hours=1))
    )
    assert [run.key for run in store.watched(Status.DRAFTING).runs] == [working.key, waiting.key]
