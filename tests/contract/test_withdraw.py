"""What becomes of drafts by their drafter's rules: they expire, give way to others, or are sent unread."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta, timezone

import pytest

from contract.material import (
    BILL,
    CURSORS,
    DIGEST,
    DRAFT,
    NOW,
    WEEK,
    approved,
    claimed,
    decide,
    everything,
    failed,
    later,
    pending,
    queued,
    settled,
)
from contract.test_damaged_rows import lose_the_count
from galley.drafts import text_hash
from galley.rules import NO_RULES, Review, Rules
from galley.runs import NOBODY, Decision, RejectReason, Run, RunKey, Status
from galley.store import (
    Approve,
    Conflict,
    Expire,
    Limits,
    NoSuchRun,
    Reject,
    RowsDisagree,
    Store,
    StoredDraft,
    Supersede,
    Withdrawal,
)

HOUR = timedelta(hours=1)
UNREAD = Rules(review=Review.NONE)
NEWER = RunKey(DIGEST, NOW + timedelta(days=1))
WITHDRAWALS: dict[str, Withdrawal] = {"expire": Expire(), "supersede": Supersede(NEWER)}


def test_a_draft_keeps_the_rules_it_was_stored_with(store: Store) -> None:
    rules = Rules(expires=NOW + HOUR, supersedes=(NOW - HOUR, NOW), supersedes_earlier=True, urgent=True)

    run = pending(store, rules=rules)

    assert run.rules == rules
    assert store.run(run.key) == run
    assert settled(decide(store, run)).rules == rules


def test_the_instants_of_rules_are_kept_in_utc_and_to_the_second(store: Store) -> None:
    east = NOW.astimezone(timezone(timedelta(hours=9))) + timedelta(milliseconds=3)

    run = pending(store, rules=Rules(expires=east, supersedes=(east,)))

    assert run.rules == Rules(expires=NOW, supersedes=(NOW,))
    assert store.run(run.key) == run
    with pytest.raises(ValueError, match="has no timezone"):
        Rules(expires=NOW.replace(tzinfo=None))


@pytest.mark.parametrize(
    ("why", "status", "reason", "detail"),
    [
        (Expire(), Status.EXPIRED, "undecided", "nobody decided on it until 2026-03-02T07:01:00Z"),
        (
            Supersede(NEWER),
            Status.SUPERSEDED,
            "replaced",
            "the draft of daily-digest:2026-03-03T06:01:00Z took its place",
        ),
    ],
)
def test_a_withdrawn_draft_says_why_and_is_listed_no_longer(
    store: Store, why: Withdrawal, status: Status, reason: str, detail: str
) -> None:
    read = pending(store, rules=Rules(expires=NOW + HOUR))

    after = settled(store.withdraw(read, why, now=NOW + HOUR))

    assert after == replace(
        read, status=status, version=read.version + 1, changed=NOW + HOUR, reason=reason, detail=detail
    )
    assert store.run(read.key) == after
    assert store.draft(read.key) == StoredDraft(DRAFT)
    assert store.watched(Status.PENDING).runs == store.watched(status).runs == ()


@pytest.mark.guarantee("G2")
@pytest.mark.parametrize("why", WITHDRAWALS)
def test_g2_a_withdrawn_draft_gives_its_place_back_once(store: Store, why: str) -> None:
    first, second = pending(store, later(0)), pending(store, later(1))
    assert store.drafter(DIGEST).pending == 2

    after = settled(store.withdraw(first, WITHDRAWALS[why], now=NOW))
    assert store.drafter(DIGEST).pending == 1

    assert store.withdraw(first, WITHDRAWALS[why], now=NOW + HOUR) == Conflict(after)
    assert store.drafter(DIGEST).pending == 1
    assert store.run(second.key) == second


@pytest.mark.parametrize(("why", "counted"), [("expire", "expired"), ("supersede", "superseded")])
def test_a_withdrawn_draft_is_counted_apart_from_what_a_person_rejected(store: Store, why: str, counted: str) -> None:
    read = pending(store)
    before = dict(store.week(DIGEST, WEEK))

    store.withdraw(read, WITHDRAWALS[why], now=NOW + HOUR)

    assert dict(store.week(DIGEST, WEEK)) == before | {counted: 1}


@pytest.mark.guarantee("G7")
@pytest.mark.parametrize("verdict", [Approve(), Reject(RejectReason.TONE)], ids=["yes", "no"])
@pytest.mark.parametrize("why", WITHDRAWALS)
def test_g7_of_a_decision_and_a_withdrawal_the_first_takes_and_the_other_is_a_conflict(
    store: Store, why: str, verdict: Approve | Reject
) -> None:
    read, other = pending(store, later(0)), pending(store, later(1))
    decided = settled(decide(store, read, verdict))
    withdrawn = settled(store.withdraw(other, WITHDRAWALS[why], now=NOW))
    before = everything(store)

    assert store.withdraw(read, WITHDRAWALS[why], now=NOW) == Conflict(decided)
    assert decide(store, other, verdict) == Conflict(withdrawn)
    assert everything(store) == before


def test_only_the_version_that_was_read_is_withdrawn(store: Store) -> None:
    read = pending(store)
    before = everything(store)

    assert store.withdraw(replace(read, version=1), Expire(), now=NOW) == Conflict(read)
    assert store.withdraw(replace(read, text_hash=text_hash("another", "text")), Expire(), now=NOW) == Conflict(read)
    assert store.withdraw(replace(read, drafter="nobody"), Expire(), now=NOW) == NoSuchRun()
    assert everything(store) == before


@pytest.mark.parametrize("state", [claimed, approved, failed, queued])
def test_only_a_draft_that_waits_is_withdrawn(store: Store, state: Callable[[Store], Run]) -> None:
    run = state(store)

    with pytest.raises(ValueError, match=f"cannot go from {run.status} to expired"):
        store.withdraw(run, Expire(), now=NOW)

    assert store.run(run.key) == run


def test_a_draft_is_not_withdrawn_while_its_drafters_count_is_lost(store: Store) -> None:
    run = pending(store)
    lose_the_count(store)

    with pytest.raises(RowsDisagree, match=DIGEST):
        store.withdraw(run, Expire(), now=NOW)

    assert store.run(run.key) == run


@pytest.mark.guarantee("G8")
def test_g8_a_draft_that_nobody_reviews_says_so_and_is_approved_as_it_is_stored(store: Store) -> None:
    run = claimed(store)

    after = settled(store.store(run, DRAFT, CURSORS, BILL, now=NOW, rules=UNREAD))

    assert (after.status, after.rules) == (Status.APPROVED, UNREAD)
    assert after.decision == Decision(NOBODY, NOW, read_hash="")
    assert after.text_hash == text_hash(DRAFT.title, DRAFT.body)
    assert store.run(run.key) == after
    assert store.draft(run.key) == StoredDraft(DRAFT)
    assert store.memory(DIGEST).cursors == CURSORS
    assert store.watched(Status.APPROVED).runs == (after,)
    assert store.watched(Status.PENDING).runs == ()


@pytest.mark.guarantee("G2")
def test_g2_a_draft_that_nobody_reviews_holds_no_place(store: Store) -> None:
    for number in range(3):
        run = claimed(store, later(number), Limits(1, None, 0))
        settled(store.store(run, DRAFT, {}, BILL, now=NOW, rules=UNREAD))
        assert store.drafter(DIGEST).pending == 0


def test_a_draft_that_nobody_reviews_is_not_counted_as_approved(store: Store) -> None:
    pending(store, rules=UNREAD)

    assert dict(store.week(DIGEST, WEEK)) == {"drafted": 1, "unreviewed": 1, "tokens": 1_000, "cost_nanousd": 3_000}


@pytest.mark.guarantee("G7")
def test_g7_a_draft_that_nobody_reviews_cannot_be_decided(store: Store) -> None:
    run = pending(store, rules=UNREAD)

    assert decide(store, run) == Conflict(run)
    assert decide(store, run, Reject(RejectReason.TONE)) == Conflict(run)


def test_urgent_drafts_are_listed_before_all_others_on_whatever_page(store: Store) -> None:
    oldest = pending(store, later(0), now=NOW)
    second = pending(store, later(1), now=NOW + HOUR)
    urgent = [pending(store, later(n), now=NOW + n * HOUR, rules=Rules(urgent=True)) for n in (2, 3)]

    listed: list[Run] = []
    after: str | None = None
    for _ in range(4):
        page = store.watched(Status.PENDING, limit=1, after=after)
        listed += page.runs
        after = page.next

    assert listed == [*urgent, oldest, second]
    assert after is None


def test_a_row_without_rules_is_a_run_without_rules(store: Store) -> None:
    read = store.run(pending(store).key)
    assert read is not None
    assert read.rules == NO_RULES
