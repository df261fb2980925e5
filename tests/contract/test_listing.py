"""Listings: what waits, and what was. They list, they never decide."""

from datetime import timedelta

import pytest

from contract.material import (
    BILL,
    DIGEST,
    DRAFT,
    LEASE,
    NOW,
    REPORT,
    approved,
    claimed,
    decide,
    failed,
    later,
    message,
    pending,
    queued,
    settled,
)
from galley.retry import RetryLater
from galley.runs import WATCHED, RejectReason, Run, SkipReason, Status
from galley.store import Bill, Page, Reject, Store


def test_each_state_that_somebody_must_look_at_is_listed_and_no_other(store: Store) -> None:
    runs = {
        Status.DRAFTING: claimed(store, later(0)),
        Status.PENDING: pending(store, later(1)),
        Status.APPROVED: approved(store, later(2)),
        Status.FAILED: failed(store, later(3)),
        Status.QUEUED: queued(store, later(4)),
        Status.PUBLISH_UNKNOWN: settled(
            store.settle_publication(approved(store, later(5)), Status.PUBLISH_UNKNOWN, "", now=NOW)
        ),
    }
    settled(store.settle_publication(approved(store, later(6)), Status.PUBLISHED, "", now=NOW))
    decide(store, pending(store, later(7)), Reject(RejectReason.TONE))
    settled(store.skip(later(8), SkipReason.GATE, "", now=NOW))
    settled(store.release(claimed(store, later(9)), Status.EMPTY, "", "", Bill(), now=NOW))

    assert set(runs) == WATCHED
    for status in Status:
        listed = store.watched(status)
        assert listed == Page((runs[status],) if status in runs else ()), status


def test_what_has_waited_longest_is_listed_first_whatever_its_slot(store: Store) -> None:
    newer_slot = pending(store, later(3), now=NOW)
    older_slot = pending(store, later(1), now=NOW + timedelta(minutes=1))
    other_drafter = pending(store, message(REPORT), now=NOW + timedelta(seconds=30))

    assert store.watched(Status.PENDING).runs == (newer_slot, other_drafter, older_slot)


def test_of_the_runs_being_drafted_the_first_to_lose_its_lease_is_listed_first(store: Store) -> None:
    second = claimed(store, later(0), now=NOW + timedelta(minutes=1))
    first = claimed(store, later(1), now=NOW)
    asked = claimed(store, later(2), now=NOW - timedelta(minutes=1))
    waiting = settled(
        store.postpone(
            asked, RetryLater("overloaded", ""), BILL, now=NOW, next_attempt=NOW + LEASE + timedelta(seconds=30)
        )
    )

    assert store.watched(Status.DRAFTING).runs == (first, waiting, second)


def test_a_history_is_listed_newest_slot_first_and_is_one_drafters_own(store: Store) -> None:
    oldest = pending(store, later(0), now=NOW + timedelta(hours=1))
    newest = settled(store.skip(later(2), SkipReason.MISSED, "", now=NOW))
    middle = failed(store, later(1))
    pending(store, message(REPORT))
    pending(store, message(DIGEST + "-2"))

    assert store.history(DIGEST) == Page((newest, middle, oldest))
    assert store.history("nobody") == Page(())


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
@pytest.mark.parametrize("listing", ["watched", "history"])
def test_the_pages_of_a_listing_hold_every_run_once_and_the_last_says_so(
    store: Store, listing: str, limit: int
) -> None:
    runs = [pending(store, later(number), now=NOW + timedelta(minutes=number // 2)) for number in range(4)]
    pending(store, message(REPORT), now=NOW + timedelta(days=1))
    decide(store, pending(store, message(REPORT, NOW)), now=NOW)

    def page(after: str | None) -> Page:
        if listing == "watched":
            return store.watched(Status.PENDING, limit=limit, after=after)
        return store.history(DIGEST, limit=limit, after=after)

    pages = [page(None)]
    while pages[-1].next is not None:
        pages.append(page(pages[-1].next))

    listed = [run for one in pages for run in one.runs if run.drafter == DIGEST]
    assert sorted(listed, key=lambda run: run.slot) == runs
    assert len(listed) == len({run.key for run in listed})
    assert all(len(one.runs) == limit for one in pages[:-1])
    assert 1 <= len(pages[-1].runs) <= limit


def test_a_listing_that_ends_with_a_full_page_says_that_it_ends(store: Store) -> None:
    for number in range(2):
        pending(store, later(number))

    assert store.watched(Status.PENDING, limit=2).next is None
    assert store.history(DIGEST, limit=2).next is None


def test_a_listing_goes_on_where_it_was_though_its_runs_have_changed(store: Store) -> None:
    runs = [pending(store, later(number), now=NOW + timedelta(minutes=number)) for number in range(3)]
    page = store.watched(Status.PENDING, limit=1)
    decide(store, runs[0])

    assert store.watched(Status.PENDING, limit=5, after=page.next).runs == tuple(runs[1:])


@pytest.mark.parametrize("after", ["", "no such place", "e30=", "W10=", "WzEsIDIsIDNd", "\udcff", "☕"])
def test_a_place_that_no_page_gave_is_refused(store: Store, after: str) -> None:
    pending(store)

    with pytest.raises(ValueError, match=r"."):
        store.watched(Status.PENDING, after=after)
    with pytest.raises(ValueError, match=r"."):
        store.history(DIGEST, after=after)


def test_a_run_is_listed_as_it_is_now(store: Store) -> None:
    run = pending(store)
    after = settled(decide(store, run))

    assert store.watched(Status.APPROVED).runs == (after,)
    assert store.history(DIGEST).runs == (after,)
    assert isinstance(after, Run)
    assert store.draft(run.key) is not None
    assert DRAFT.title == after.title
