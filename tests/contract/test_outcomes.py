"""What becomes of a claimed run, and of a slot that is not drafted: store, release, postpone, skip."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from contract.material import (
    BILL,
    CURSORS,
    DIGEST,
    DRAFT,
    LEASE,
    NOW,
    REPORT,
    WEEK,
    approved,
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
from galley.drafts import Draft, text_hash
from galley.retry import RetryLater
from galley.runs import RejectReason, Run, SkipReason, Status, Usage, iso_week
from galley.store import (
    AlreadyThere,
    Bill,
    Conflict,
    Cursor,
    CursorMoved,
    LeaseLost,
    Limits,
    Reject,
    Settled,
    Store,
    StoredDraft,
)
from galley.texts import CUT_MARK

TOKENS = BILL.usage.input_tokens + BILL.usage.output_tokens


def test_a_stored_draft_is_there_as_it_was_made_and_waits_for_a_reviewer(store: Store) -> None:
    run = claimed(store)
    stored_at = NOW + timedelta(seconds=42)

    after = settled(store.store(run, DRAFT, CURSORS, BILL, now=stored_at))

    assert after == store.run(run.key)
    assert after == replace(
        run,
        status=Status.PENDING,
        version=2,
        changed=stored_at,
        owner=None,
        lease_until=None,
        cost_nanousd=BILL.cost_nanousd,
        usage=BILL.usage,
        model=BILL.model,
        title=DRAFT.title,
        text_hash=text_hash(DRAFT.title, DRAFT.body),
        drafted=stored_at,
    )
    assert store.draft(run.key) == StoredDraft(DRAFT)
    assert store.drafter(DIGEST).pending == 1


@pytest.mark.parametrize(
    "draft",
    [
        pytest.param(Draft(title="", body="", items=(), warnings=(), model=""), id="nothing"),
        pytest.param(
            replace(DRAFT, title="\u202e\x07 title\n", body="\x00\ttab\r\nline\u2028"), id="control characters"
        ),
        pytest.param(replace(DRAFT, body="ä" * 60_000), id="long"),
    ],
)
def test_any_text_comes_back_as_it_was(store: Store, draft: Draft) -> None:
    run = pending(store, draft=draft)

    assert store.draft(run.key) == StoredDraft(draft)
    assert run.text_hash == text_hash(draft.title, draft.body)


def test_a_draft_that_follows_an_error_carries_it_no_longer(store: Store) -> None:
    run = claimed(store)
    store.postpone(run, RetryLater("overloaded", "529"), Bill(), now=NOW, next_attempt=NOW)
    again = claimed(store, owner="b")

    after = settled(store.store(again, DRAFT, {}, BILL, now=NOW))

    assert (after.reason, after.detail, after.next_attempt) == (None, None, None)


@pytest.mark.parametrize("status", [Status.EMPTY, Status.FAILED])
def test_a_released_run_says_why_and_has_no_text(store: Store, status: Status) -> None:
    run = claimed(store)

    after = settled(store.release(run, status, "a_reason", "a detail", BILL, now=NOW))

    assert after == store.run(run.key)
    assert (after.status, after.reason, after.detail) == (status, "a_reason", "a detail")
    assert (after.owner, after.lease_until, after.version) == (None, None, 2)
    assert store.draft(run.key) is None


def test_a_detail_is_kept_up_to_a_thousand_characters(store: Store) -> None:
    after = settled(store.release(claimed(store), Status.FAILED, "refusal", "x" * 5_000, BILL, now=NOW))

    assert after.detail == "x" * (1_000 - len(CUT_MARK)) + CUT_MARK


def test_a_postponed_run_keeps_its_place_and_shows_its_error_and_its_next_attempt(store: Store) -> None:
    run = claimed(store, limits=Limits(1, None, 5_000))
    next_attempt = NOW + timedelta(minutes=2)

    after = settled(
        store.postpone(run, RetryLater("overloaded", "529 from the model"), BILL, now=NOW, next_attempt=next_attempt)
    )

    assert after == store.run(run.key)
    assert (after.status, after.reason, after.detail) == (Status.DRAFTING, "overloaded", "529 from the model")
    assert (after.owner, after.lease_until, after.next_attempt) == (None, None, next_attempt)
    assert after.lease_is_dead(NOW)
    assert store.drafter(DIGEST).pending == 1


def test_the_bills_of_all_attempts_add_up(store: Store) -> None:
    first = claimed(store)
    store.postpone(first, RetryLater("timeout", ""), Bill(Usage(1, 2, 3, 4), 10, "model-a"), now=NOW, next_attempt=NOW)

    second = claimed(store, owner="b")
    after = settled(store.store(second, DRAFT, {}, Bill(Usage(10, 20, 30, 40), 100, "model-b"), now=NOW))

    assert (after.usage, after.cost_nanousd, after.model) == (Usage(11, 22, 33, 44), 110, "model-b")
    assert dict(store.week(DIGEST, WEEK)) == {"drafted": 1, "tokens": 110, "cost_nanousd": 110}


def test_an_attempt_without_a_call_leaves_the_model_of_the_one_before(store: Store) -> None:
    store.postpone(claimed(store), RetryLater("timeout", ""), BILL, now=NOW, next_attempt=NOW)

    after = settled(store.release(claimed(store, owner="b"), Status.FAILED, "grace_over", "", Bill(), now=NOW))

    assert (after.model, after.usage) == (BILL.model, BILL.usage)


@pytest.mark.parametrize("reason", SkipReason)
def test_a_skipped_slot_is_a_row_with_its_reason_and_is_counted(store: Store, reason: SkipReason) -> None:
    run = settled(store.skip(message(), reason, "why", now=NOW))

    assert run == store.run(run.key)
    assert (run.status, run.reason, run.detail, run.version, run.attempts) == (Status.SKIPPED, reason, "why", 1, 0)
    assert run.message == message()
    assert store.drafter(DIGEST).pending == 0
    assert dict(store.week(DIGEST, WEEK)) == {"skipped": 1, f"skipped:{reason}": 1}


def test_a_queued_run_can_be_skipped_and_keeps_its_history(store: Store) -> None:
    again = queued(store)

    run = settled(store.skip(again.message, SkipReason.MISFIRED, "too late", now=NOW))

    assert run == store.run(again.key)
    assert run == replace(again, status=Status.SKIPPED, version=4, reason="misfired", detail="too late")
    assert store.watched(Status.QUEUED).runs == ()


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(claimed, id="drafting"),
        pytest.param(pending, id="pending"),
        pytest.param(approved, id="approved"),
        pytest.param(failed, id="failed"),
        pytest.param(lambda store: settled(store.skip(message(), SkipReason.GATE, "", now=NOW)), id="skipped"),
    ],
)
def test_a_slot_with_a_row_is_not_skipped(store: Store, there: Callable[[Store], Run]) -> None:
    run = there(store)
    before = everything(store)

    outcome = store.skip(message(), SkipReason.MISSED, "", now=NOW + timedelta(days=1))

    assert outcome == AlreadyThere(run)
    assert everything(store) == before


SETTLING: dict[str, Callable[[Store, Run], object]] = {
    "store": lambda store, run: store.store(run, DRAFT, CURSORS, BILL, now=NOW),
    "empty": lambda store, run: store.release(run, Status.EMPTY, "nothing_new", "", BILL, now=NOW, cursors=CURSORS),
    "failed": lambda store, run: store.release(run, Status.FAILED, "refusal", "", BILL, now=NOW),
    "postpone": lambda store, run: store.postpone(run, RetryLater("timeout", ""), BILL, now=NOW, next_attempt=NOW),
}


def _taken_over(store: Store) -> tuple[Run, Run | None]:
    first = claimed(store, owner="a")
    return first, claimed(store, owner="b", now=NOW + LEASE)


def _taken_over_under_the_same_name(store: Store) -> tuple[Run, Run | None]:
    first = claimed(store, owner="a")
    return first, claimed(store, owner="a", now=NOW + LEASE)


def _given_up(store: Store) -> tuple[Run, Run | None]:
    first = claimed(store, owner="a")
    return first, settled(store.postpone(first, RetryLater("timeout", ""), Bill(), now=NOW, next_attempt=NOW))


def _settled_already(store: Store) -> tuple[Run, Run | None]:
    first = claimed(store, owner="a")
    return first, settled(store.store(first, DRAFT, {}, BILL, now=NOW))


def _of_another_owner(store: Store) -> tuple[Run, Run | None]:
    run = claimed(store, owner="a")
    return replace(run, owner="b"), run


def _without_a_row(store: Store) -> tuple[Run, Run | None]:
    run = claimed(store, owner="a")
    return replace(run, slot=run.slot + timedelta(days=1)), None


LOST: dict[str, Callable[[Store], tuple[Run, Run | None]]] = {
    "taken over": _taken_over,
    "taken over under the same name": _taken_over_under_the_same_name,
    "given up": _given_up,
    "settled already": _settled_already,
    "another owner's": _of_another_owner,
    "no row": _without_a_row,
}


@pytest.mark.guarantee("G1")
@pytest.mark.guarantee("G6")
@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("operation", SETTLING)
def test_g1_g6_without_the_lease_nothing_is_changed_neither_text_nor_cursor(
    store: Store, operation: str, lost: str
) -> None:
    mine, current = LOST[lost](store)
    before = everything(store)

    assert SETTLING[operation](store, mine) == LeaseLost(current)
    assert everything(store) == before


@pytest.mark.guarantee("G6")
@pytest.mark.parametrize("operation", ["store", "empty"])
def test_g6_cursors_move_with_the_draft_that_was_made_from_them(store: Store, operation: str) -> None:
    run = claimed(store)
    assert dict(store.memory(DIGEST).cursors) == {}

    settled(SETTLING[operation](store, run))

    assert store.memory(DIGEST).cursors == CURSORS
    assert dict(store.memory(REPORT).cursors) == {}


MOVES: dict[str, Callable[[Store, Run, Mapping[str, Cursor]], Settled | LeaseLost]] = {
    "store": lambda store, run, read: store.store(run, DRAFT, {"mail": {"after": "c"}}, BILL, now=NOW, read=read),
    "empty": lambda store, run, read: store.release(
        run, Status.EMPTY, "nothing_new", "", BILL, now=NOW, cursors={"mail": {"after": "c"}}, read=read
    ),
}
"""The operations that move a cursor, from what was read of it."""


@pytest.mark.guarantee("G6")
@pytest.mark.parametrize("operation", MOVES)
@pytest.mark.parametrize(
    "read",
    [
        pytest.param({}, id="there was none"),
        pytest.param({"mail": {"after": "inbox/2026-02-28"}, "feed": CURSORS["feed"]}, id="it was another"),
    ],
)
def test_g6_what_another_run_has_drafted_meanwhile_is_not_drafted_again(
    store: Store, operation: str, read: Mapping[str, Cursor]
) -> None:
    store.store(claimed(store), DRAFT, CURSORS, BILL, now=NOW)
    run = claimed(store, later(1))
    before = everything(store)

    with pytest.raises(CursorMoved, match="cursor of source 'mail'"):
        MOVES[operation](store, run, read)

    assert everything(store) == before
    assert store.run(run.key) == run
    settled(MOVES[operation](store, run, store.memory(DIGEST).cursors))


@pytest.mark.guarantee("G6")
def test_g6_a_cursor_that_is_gone_is_not_what_was_read(store: Store) -> None:
    run = claimed(store)

    with pytest.raises(CursorMoved):
        store.store(run, DRAFT, {"mail": {"after": "b"}}, BILL, now=NOW, read={"mail": {"after": "a"}})

    assert store.run(run.key) == run


@pytest.mark.guarantee("G1")
def test_g1_a_lost_lease_is_told_before_a_moved_cursor(store: Store) -> None:
    run = claimed(store)
    taken = claimed(store, owner="another", now=NOW + LEASE)
    store.store(claimed(store, later(1)), DRAFT, CURSORS, BILL, now=NOW)

    assert store.store(run, DRAFT, CURSORS, BILL, now=NOW) == LeaseLost(taken)


@pytest.mark.guarantee("G6")
def test_g6_a_source_that_is_not_named_keeps_its_cursor_and_one_that_is_gets_the_new_one(store: Store) -> None:
    store.store(claimed(store), DRAFT, CURSORS, BILL, now=NOW)

    moved = {"mail": {"after": "inbox/2026-03-03"}}
    store.store(claimed(store, later(1)), DRAFT, moved, BILL, now=NOW, read=store.memory(DIGEST).cursors)

    assert store.memory(DIGEST).cursors == {"mail": {"after": "inbox/2026-03-03"}, "feed": CURSORS["feed"]}


@pytest.mark.guarantee("G6")
def test_g6_no_cursor_moves_with_a_failure(store: Store) -> None:
    run = claimed(store)
    before = everything(store)

    with pytest.raises(ValueError, match="cursors move only with"):
        store.release(run, Status.FAILED, "refusal", "", BILL, now=NOW, cursors=CURSORS)

    assert everything(store) == before
    settled(store.release(run, Status.FAILED, "refusal", "", BILL, now=NOW, cursors={}))
    assert dict(store.memory(DIGEST).cursors) == {}


@pytest.mark.guarantee("G4")
def test_g4_a_begun_run_is_skipped_with_its_reason_and_gives_its_place_back(store: Store) -> None:
    run = claimed(store)

    after = settled(store.release(run, Status.SKIPPED, SkipReason.PAUSED, "on holiday", BILL, now=NOW))

    assert after == store.run(run.key)
    assert (after.status, after.reason, after.owner) == (Status.SKIPPED, "paused", None)
    assert store.drafter(DIGEST).pending == 0
    assert store.week(DIGEST, iso_week(run.slot))["skipped:paused"] == 1


def test_a_begun_run_is_skipped_for_no_other_reason_than_those_there_are(store: Store) -> None:
    run = claimed(store)

    with pytest.raises(ValueError, match="not a valid SkipReason"):
        store.release(run, Status.SKIPPED, "tired", "", BILL, now=NOW)

    assert store.run(run.key) == run


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.EMPTY, Status.FAILED, Status.SKIPPED}))
def test_a_run_is_released_as_empty_failed_or_skipped_and_nothing_else(store: Store, status: Status) -> None:
    run = claimed(store)

    with pytest.raises(ValueError, match="released as empty, failed or skipped"):
        store.release(run, status, "", "", BILL, now=NOW)

    assert store.run(run.key) == run


def test_the_week_counts_what_became_of_its_slots(store: Store) -> None:
    decide(store, pending(store, later(0)))
    decide(store, pending(store, later(1)), Reject(RejectReason.TONE, "too breezy"))
    failed(store, later(2))
    settled(store.release(claimed(store, later(3)), Status.EMPTY, "nothing_new", "", Bill(), now=NOW))
    settled(store.skip(later(4), SkipReason.GATE, "", now=NOW))
    settled(store.skip(later(5), SkipReason.MISSED, "", now=NOW))
    pending(store, later(7))

    assert dict(store.week(DIGEST, WEEK)) == {
        "drafted": 2,
        "approved": 1,
        "rejected": 1,
        "rejected:tone": 1,
        "failed": 1,
        "empty": 1,
        "skipped": 2,
        "skipped:gate": 1,
        "skipped:missed": 1,
        "tokens": 3 * TOKENS,
        "cost_nanousd": 3 * BILL.cost_nanousd,
    }
    assert dict(store.week(DIGEST, "2026-W11")) == {
        "drafted": 1,
        "tokens": TOKENS,
        "cost_nanousd": BILL.cost_nanousd,
    }
    assert dict(store.week(REPORT, WEEK)) == {}


def test_a_failure_that_was_sent_again_is_told_apart_from_one_that_stands(store: Store) -> None:
    failed(store, later(0))
    run = failed(store, later(1))
    assert store.week(DIGEST, WEEK)["failed"] == 2

    again = settled(store.resend(run.key, now=NOW))
    assert isinstance(store.resend(run.key, now=NOW), Conflict)
    settled(store.skip(again.message, SkipReason.PAUSED, "", now=NOW))

    week = store.week(DIGEST, WEEK)
    assert (week["failed"], week["resent"], week["skipped"]) == (2, 1, 1)


def test_what_a_dead_owner_had_reserved_is_in_the_weeks_cost(store: Store) -> None:
    claimed(store, limits=Limits(3, None, 4_000))

    claimed(store, limits=Limits(3, None, 5_000), owner="b", now=NOW + LEASE)

    assert dict(store.week(DIGEST, WEEK)) == {"cost_nanousd": 4_000}


def test_the_same_operation_twice_is_counted_once(store: Store) -> None:
    run = claimed(store)

    assert isinstance(store.store(run, DRAFT, CURSORS, BILL, now=NOW), Settled)
    assert isinstance(store.store(run, DRAFT, CURSORS, BILL, now=NOW + timedelta(seconds=1)), LeaseLost)

    assert dict(store.week(DIGEST, WEEK)) == {
        "drafted": 1,
        "tokens": TOKENS,
        "cost_nanousd": BILL.cost_nanousd,
    }
