"""What people do with a run: decide, send again, and what is known of its publication."""

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
    EDIT,
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
from galley.drafts import text_hash
from galley.runs import Decision, RejectReason, Run, RunKey, SkipReason, Status
from galley.store import (
    MOST_REJECTIONS,
    MOST_WORDS,
    Approve,
    Bill,
    Conflict,
    Expire,
    Memory,
    NoSuchRun,
    Reject,
    Rejection,
    Store,
    StoredDraft,
)
from galley.texts import CUT_MARK

LATER = NOW + timedelta(minutes=17, seconds=40)
NO = Reject(RejectReason.INACCURATE, "there were four mails")


def test_a_yes_names_the_reviewer_and_the_text_and_gives_the_place_back(store: Store) -> None:
    read = pending(store)

    after = settled(decide(store, read, now=LATER))

    assert after == store.run(read.key)
    assert after == replace(
        read,
        status=Status.APPROVED,
        version=3,
        changed=LATER,
        decision=Decision("anna", LATER, read.text_hash or ""),
    )
    assert store.draft(read.key) == StoredDraft(DRAFT)
    assert store.drafter(DIGEST).pending == 0


def test_a_no_keeps_its_reason_and_its_words(store: Store) -> None:
    read = pending(store)

    after = settled(decide(store, read, NO, now=LATER))

    assert after == store.run(read.key)
    assert (after.status, after.reason) == (Status.REJECTED, "inaccurate")
    assert after.decision == Decision(
        "anna", LATER, read.text_hash or "", reason=RejectReason.INACCURATE, words="there were four mails"
    )
    assert after.text_hash == read.text_hash
    assert store.drafter(DIGEST).pending == 0


def test_an_edit_stands_beside_the_original_and_is_what_was_approved(store: Store) -> None:
    read = pending(store)

    after = settled(decide(store, read, EDIT))

    assert after == store.run(read.key)
    assert (after.title, after.text_hash) == (EDIT.title, text_hash(EDIT.title or "", EDIT.body or ""))
    assert after.decision == Decision("anna", NOW, read.text_hash or "", edited=True)
    stored = store.draft(read.key)
    assert stored == StoredDraft(DRAFT, EDIT.title, EDIT.body)
    assert text_hash(stored.title, stored.body) == after.text_hash


def test_an_edit_that_changes_nothing_is_a_plain_yes(store: Store) -> None:
    read = pending(store)

    after = settled(decide(store, read, Approve(DRAFT.title, DRAFT.body)))

    assert after.decision is not None
    assert not after.decision.edited
    assert store.draft(read.key) == StoredDraft(DRAFT)
    assert "edited" not in store.week(DIGEST, WEEK)


@pytest.mark.parametrize("half", [Approve(title="only a title"), Approve(body="only a body")])
def test_half_an_edit_is_refused(store: Store, half: Approve) -> None:
    read = pending(store)

    with pytest.raises(ValueError, match="give both, or neither"):
        decide(store, read, half)

    assert store.run(read.key) == read


def test_half_an_edit_is_refused_whatever_has_become_of_the_run(store: Store) -> None:
    read = pending(store)
    settled(decide(store, read, Approve()))

    with pytest.raises(ValueError, match="give both, or neither"):
        decide(store, read, Approve(title="only a title"))


@pytest.mark.parametrize(
    ("verdict", "counted"),
    [
        pytest.param(Approve(), {"approved": 1}, id="yes"),
        pytest.param(EDIT, {"approved": 1, "edited": 1}, id="edited"),
        pytest.param(NO, {"rejected": 1, "rejected:inaccurate": 1}, id="no"),
    ],
)
def test_a_decision_is_counted_with_the_minutes_that_it_took(
    store: Store, verdict: Approve | Reject, counted: dict[str, int]
) -> None:
    read = pending(store)
    before = dict(store.week(DIGEST, WEEK))

    decide(store, read, verdict, now=LATER)

    assert dict(store.week(DIGEST, WEEK)) == before | counted | {"minutes_to_decision": 17}


def test_a_drafter_remembers_its_latest_rejections_the_last_one_first(store: Store) -> None:
    slots = [9, *range(1, MOST_REJECTIONS + 2)]
    for number, day in enumerate(slots):
        words = f" {day}:\n\tthe price is {'very ' * 200}wrong" if number == MOST_REJECTIONS else f"{day}"
        decide(store, pending(store, later(day)), Reject(RejectReason.TONE, words), now=NOW + timedelta(minutes=number))
        assert len(store.memory(DIGEST).rejections) == min(number + 1, MOST_REJECTIONS)

    memory = store.memory(DIGEST)

    assert memory.unreadable == ()
    assert [rejection.slot for rejection in memory.rejections] == [later(day).slot for day in slots[:-6:-1]]
    assert memory.rejections[0] == Rejection(later(slots[-1]).slot, RejectReason.TONE, str(slots[-1]))
    clipped = memory.rejections[1].words
    assert clipped.startswith(f"{slots[-2]}: the price is very very")
    assert len(clipped) <= MOST_WORDS
    assert clipped.endswith(CUT_MARK)

    assert store.memory(REPORT).rejections == ()
    for day in range(2):
        decide(store, pending(store, later(day, REPORT)), NO)
    assert store.memory(DIGEST) == memory
    assert len(store.memory(REPORT).rejections) == 2
    decide(store, pending(store, later(20)), NO)
    assert len(store.memory(DIGEST).rejections) == MOST_REJECTIONS, "another drafter's push none of its own out"


def test_what_is_remembered_of_rejections_and_of_sources_does_not_touch_each_other(store: Store) -> None:
    settled(decide(store, settled(store.store(claimed(store), DRAFT, CURSORS, BILL, now=NOW)), NO))
    told = (Rejection(later(0).slot, RejectReason.INACCURATE, "there were four mails"),)
    assert store.memory(DIGEST) == Memory(CURSORS, told)

    moved = {"mail": {"after": "inbox/2026-03-03"}}
    settled(store.store(claimed(store, later(1)), DRAFT, moved, BILL, now=NOW, read=CURSORS))
    assert store.memory(DIGEST) == Memory({**CURSORS, **moved}, told)


@pytest.mark.parametrize("verdict", [Approve(), EDIT], ids=["yes", "edited"])
def test_what_was_not_rejected_is_not_remembered(store: Store, verdict: Approve) -> None:
    settled(decide(store, pending(store), verdict))
    settled(store.withdraw(pending(store, later(1)), Expire(), now=NOW))
    assert store.memory(DIGEST) == Memory()


VERDICTS: dict[str, Approve | Reject] = {"yes": Approve(), "edited": EDIT, "no": NO}


@pytest.mark.guarantee("G7")
@pytest.mark.parametrize("second", VERDICTS)
@pytest.mark.parametrize("first", VERDICTS)
def test_g7_a_second_decision_gets_a_conflict_and_the_first_ones_decision(
    store: Store, first: str, second: str
) -> None:
    read = pending(store)
    decided = settled(decide(store, read, VERDICTS[first], reviewer="anna"))
    before = everything(store)

    a_second_later = NOW + timedelta(seconds=1)

    assert decide(store, read, VERDICTS[second], reviewer="ben", now=a_second_later) == Conflict(decided)
    assert decide(store, read, VERDICTS[second], reviewer="anna", now=a_second_later) == Conflict(decided)
    assert everything(store) == before


@pytest.mark.guarantee("G7")
@pytest.mark.parametrize(
    "read_instead",
    [
        {"version": 1},
        {"version": 3},
        {"read_hash": text_hash(DRAFT.title, DRAFT.body + " ")},
        {"read_hash": ""},
    ],
    ids=["an older version", "a newer version", "another text", "no text"],
)
@pytest.mark.parametrize("verdict", VERDICTS)
def test_g7_a_decision_on_anything_but_what_stands_there_is_a_conflict(
    store: Store, read_instead: dict[str, Any], verdict: str
) -> None:
    read = pending(store)
    before = everything(store)

    assert decide(store, read, VERDICTS[verdict], **read_instead) == Conflict(read)
    assert everything(store) == before


UNDECIDABLE: dict[str, Callable[[Store], Run]] = {
    "drafting": claimed,
    "failed": failed,
    "queued": queued,
    "empty": lambda store: settled(store.release(claimed(store), Status.EMPTY, "", "", Bill(), now=NOW)),
    "skipped": lambda store: settled(store.skip(message(), SkipReason.GATE, "", now=NOW)),
    "published": lambda store: settled(store.settle_publication(approved(store), Status.PUBLISHED, "", now=NOW)),
}


@pytest.mark.guarantee("G7")
@pytest.mark.parametrize("state", UNDECIDABLE)
def test_g7_only_a_pending_run_can_be_decided(store: Store, state: str) -> None:
    run = UNDECIDABLE[state](store)
    before = everything(store)

    assert decide(store, run) == Conflict(run)
    assert everything(store) == before


def test_what_has_no_row_can_be_neither_decided_nor_sent_again_nor_published(store: Store) -> None:
    nobody = RunKey("nobody", NOW)
    published = replace(approved(store), drafter="nobody")

    assert store.decide(nobody, Approve(), version=1, read_hash="", reviewer="anna", now=NOW) == NoSuchRun()
    assert store.resend(nobody, now=NOW) == NoSuchRun()
    assert store.settle_publication(published, Status.PUBLISHED, "", now=NOW) == NoSuchRun()


def test_a_failed_run_is_queued_with_the_next_resend_number_and_its_attempts_counted_anew(store: Store) -> None:
    run = failed(store)

    after = settled(store.resend(run.key, now=LATER))

    assert after == store.run(run.key)
    assert after == replace(
        run, status=Status.QUEUED, version=3, changed=LATER, resend=1, attempts=0, reason=None, detail=None
    )
    assert after.message == message(resend=1)
    assert after.message.deduplication_id != run.message.deduplication_id
    assert store.drafter(DIGEST).pending == 0


def test_a_run_can_fail_and_be_sent_again_more_than_once(store: Store) -> None:
    again = queued(store)
    run = claimed(store, again.message)
    store.release(run, Status.FAILED, "refusal", "", BILL, now=NOW)

    assert settled(store.resend(run.key, now=NOW)).resend == 2


@pytest.mark.guarantee("G1")
@pytest.mark.parametrize(
    "state",
    [
        pytest.param(claimed, id="drafting"),
        pytest.param(pending, id="pending"),
        pytest.param(approved, id="approved"),
        pytest.param(queued, id="queued"),
        pytest.param(UNDECIDABLE["empty"], id="empty"),
        pytest.param(UNDECIDABLE["skipped"], id="skipped"),
    ],
)
def test_g1_only_a_failed_run_is_sent_again(store: Store, state: Callable[[Store], Run]) -> None:
    run = state(store)
    before = everything(store)

    assert store.resend(run.key, now=LATER) == Conflict(run)
    assert everything(store) == before


def test_a_publication_is_settled_with_where_it_went_and_when(store: Store) -> None:
    run = approved(store)

    after = settled(store.settle_publication(run, Status.PUBLISHED, "s3:published/digest", now=LATER))

    assert after == store.run(run.key)
    assert after == replace(
        run, status=Status.PUBLISHED, version=4, changed=LATER, detail="s3:published/digest", published=LATER
    )


def test_a_publication_of_which_nothing_is_known_waits_for_a_person(store: Store) -> None:
    run = approved(store)

    after = settled(store.settle_publication(run, Status.PUBLISH_UNKNOWN, "timed out", now=LATER))

    assert after == store.run(run.key)
    assert (after.status, after.detail, after.published) == (Status.PUBLISH_UNKNOWN, "timed out", None)
    assert store.watched(Status.PUBLISH_UNKNOWN).runs == (after,)


@pytest.mark.guarantee("G8")
@pytest.mark.parametrize("again", [Status.PUBLISHED, Status.PUBLISH_UNKNOWN])
def test_g8_a_publication_is_settled_once_and_for_the_text_that_was_sent(store: Store, again: Status) -> None:
    run = approved(store)
    other_text = replace(run, text_hash=text_hash("another", "text"))
    other_version = replace(run, version=run.version - 1)

    assert store.settle_publication(other_text, again, "", now=LATER) == Conflict(run)
    assert store.settle_publication(other_version, again, "", now=LATER) == Conflict(run)
    published = settled(store.settle_publication(run, Status.PUBLISHED, "s3", now=LATER))
    before = everything(store)

    assert store.settle_publication(run, again, "", now=LATER + timedelta(seconds=1)) == Conflict(published)
    assert everything(store) == before


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.PUBLISHED, Status.PUBLISH_UNKNOWN, Status.APPROVED}))
def test_an_approved_run_comes_to_no_state_but_published_or_unknown(store: Store, status: Status) -> None:
    run = approved(store)

    with pytest.raises(ValueError, match="cannot go from approved"):
        store.settle_publication(run, status, "", now=NOW)

    assert store.run(run.key) == run


def test_one_runs_decision_leaves_the_other_slots_alone(store: Store) -> None:
    first, second = pending(store, later(0)), pending(store, later(1))

    decide(store, first, NO)

    assert store.run(second.key) == second
    assert store.drafter(DIGEST).pending == 1
