"""Claiming a run: who gets it, and what stands in the way."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta, timezone

import pytest

from contract.material import (
    BILL,
    DAY,
    DIGEST,
    DRAFT,
    LEASE,
    NOW,
    REPORT,
    SLOT,
    approved,
    claim,
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
from galley.retry import LONGEST_RETRY_AFTER, Fault, RetryLater
from galley.runs import LONGEST_LEASE, Origin, RejectReason, Run, RunKey, SkipReason, Status
from galley.store import (
    Bill,
    Busy,
    ClaimOutcome,
    DrafterState,
    Duplicate,
    Gated,
    LeaseLost,
    Limits,
    OverBudget,
    Pause,
    Paused,
    Reject,
    Store,
)

ONE_PLACE = Limits(pending=1, daily_budget_nanousd=None, worst_cost_nanousd=0)
AFTER_THE_LEASE = NOW + LEASE


def budget(amount: int, worst: int) -> Limits:
    return Limits(pending=1_000, daily_budget_nanousd=amount, worst_cost_nanousd=worst)


def test_a_claimed_run_is_a_row_with_a_lease_and_says_where_it_came_from(store: Store) -> None:
    asked = message(origin=Origin.CATCH_UP)

    run = claimed(store, asked, Limits(3, 10_000, 4_000), owner="invocation-7")

    assert run == store.run(asked.key)
    assert run == Run(
        drafter=DIGEST,
        slot=SLOT,
        status=Status.DRAFTING,
        version=1,
        origin=Origin.CATCH_UP,
        contract=asked.contract,
        created=NOW,
        changed=NOW,
        schedule=asked.schedule,
        trace=asked.trace,
        attempts=1,
        owner="invocation-7",
        lease_until=NOW + LEASE,
        spend_day=DAY,
        reserved_nanousd=4_000,
    )
    assert store.drafter(DIGEST).pending == 1
    assert store.committed_nanousd(DIGEST, DAY) == 4_000


def test_instants_are_kept_in_utc_and_to_the_second_and_no_lease_is_shortened(store: Store) -> None:
    kathmandu = timezone(timedelta(hours=5, minutes=45))
    now = NOW.astimezone(kathmandu) + timedelta(microseconds=654_321)

    run = claimed(store, now=now)

    assert run == store.run(run.key)
    assert (run.changed, run.lease_until) == (NOW, NOW + LEASE + timedelta(seconds=1))
    assert str(run.changed.tzinfo) == "UTC"


@pytest.mark.guarantee("G1")
def test_g1_of_two_claims_one_gets_the_run_and_the_other_hears_that_it_is_busy(store: Store) -> None:
    first = claimed(store, owner="a")
    before = everything(store)

    assert claim(store, owner="b", now=NOW + timedelta(seconds=1)) == Busy(first)
    assert everything(store) == before


SETTLED_STATES: dict[str, Callable[[Store], Run]] = {
    "pending": pending,
    "approved": approved,
    "rejected": lambda store: settled(decide(store, pending(store), Reject(RejectReason.TONE))),
    "failed": failed,
    "empty": lambda store: settled(store.release(claimed(store), Status.EMPTY, "nothing_new", "", Bill(), now=NOW)),
    "skipped": lambda store: settled(store.skip(message(), SkipReason.GATE, "", now=NOW)),
    "published": lambda store: settled(
        store.settle_publication(approved(store), Status.PUBLISHED, "s3:published", now=NOW)
    ),
}


@pytest.mark.guarantee("G1")
@pytest.mark.parametrize("state", SETTLED_STATES)
def test_g1_a_run_with_an_outcome_is_never_drafted_again_by_a_repeated_message(store: Store, state: str) -> None:
    run = SETTLED_STATES[state](store)
    before = everything(store)

    much_later = NOW + timedelta(days=2)

    assert claim(store, now=much_later) == Duplicate(run)
    assert claim(store, message(resend=1), now=much_later) == Duplicate(run)
    assert everything(store) == before


@pytest.mark.guarantee("G1")
def test_g1_who_lost_the_lease_cannot_put_a_second_draft_beside_the_first(store: Store) -> None:
    first = claimed(store, owner="a")
    second = claimed(store, owner="b", now=AFTER_THE_LEASE)
    stored = settled(store.store(second, DRAFT, {}, BILL, now=AFTER_THE_LEASE))
    before = everything(store)

    late = replace(DRAFT, title="the draft of the one who came too late")

    assert store.store(first, late, {}, BILL, now=AFTER_THE_LEASE) == LeaseLost(stored)
    assert everything(store) == before


def test_a_run_in_the_last_second_of_its_lease_is_busy_and_after_it_is_taken_over(store: Store) -> None:
    first = claimed(store, owner="a")

    assert claim(store, owner="b", now=NOW + LEASE - timedelta(seconds=1)) == Busy(first)
    assert claimed(store, owner="b", now=NOW + LEASE).owner == "b"


def test_a_take_over_counts_the_attempt_but_no_second_place(store: Store) -> None:
    first = claimed(store, limits=ONE_PLACE, owner="a")

    second = claimed(store, limits=ONE_PLACE, owner="b", now=AFTER_THE_LEASE)

    assert second == store.run(first.key)
    assert (second.attempts, second.version, second.owner) == (2, 2, "b")
    assert (second.created, second.lease_until) == (first.created, AFTER_THE_LEASE + LEASE)
    assert store.drafter(DIGEST).pending == 1


def test_a_postponed_run_is_taken_over_before_its_lease_would_have_ended_and_keeps_its_last_error(
    store: Store,
) -> None:
    first = claimed(store, owner="a")
    postponed = settled(
        store.postpone(first, RetryLater("overloaded", "529"), BILL, now=NOW, next_attempt=NOW + timedelta(seconds=30))
    )

    second = claimed(store, owner="b", now=NOW + timedelta(seconds=31))

    assert second == replace(
        postponed,
        version=3,
        changed=NOW + timedelta(seconds=31),
        attempts=2,
        owner="b",
        lease_until=NOW + timedelta(seconds=31) + LEASE,
        next_attempt=None,
    )
    assert (second.reason, second.detail) == ("overloaded", "529")


def test_a_queued_run_is_drafted_again_with_its_resend_number_and_its_first_instant(store: Store) -> None:
    again = queued(store)

    run = claimed(store, again.message, now=NOW + timedelta(hours=1))

    assert run == store.run(run.key)
    assert (run.status, run.resend, run.attempts, run.version) == (Status.DRAFTING, 1, 1, 4)
    assert (run.created, run.cost_nanousd, run.usage) == (NOW, BILL.cost_nanousd, BILL.usage)
    assert store.drafter(DIGEST).pending == 1


@pytest.mark.guarantee("G1")
def test_g1_a_queued_run_is_claimed_by_its_own_message_and_by_none_of_before(store: Store) -> None:
    run = queued(store)
    before = everything(store)

    assert claim(store, message(resend=0), owner="b") == Duplicate(run)
    assert everything(store) == before
    assert claimed(store, run.message, owner="c").resend == 1


def test_a_run_that_waits_is_not_claimed_before_its_next_attempt(store: Store) -> None:
    again = NOW + timedelta(minutes=2)
    waiting = settled(store.postpone(claimed(store), RetryLater("overloaded", ""), Bill(), now=NOW, next_attempt=again))
    before = everything(store)

    assert claim(store, now=again - timedelta(seconds=1)) == Busy(waiting)
    assert everything(store) == before
    assert claimed(store, now=again).attempts == 2


def test_a_wait_that_only_a_clock_set_back_can_explain_is_not_waited_for(store: Store) -> None:
    again = NOW + LONGEST_RETRY_AFTER + timedelta(seconds=1)
    store.postpone(claimed(store), RetryLater("overloaded", ""), Bill(), now=NOW, next_attempt=again)

    assert claimed(store, owner="b", now=NOW).attempts == 2


def test_only_an_attempt_that_met_a_fault_or_ended_without_a_word_is_counted_as_one(store: Store) -> None:
    def postponed(run: Run, error: RetryLater) -> int:
        return settled(store.postpone(run, error, Bill(), now=run.changed, next_attempt=run.changed)).faults

    assert postponed(claimed(store), RetryLater("overloaded", "529")) == 0
    assert postponed(claimed(store, owner="b"), Fault("unexpected_error", "division by zero")) == 1
    crashed = claimed(store, owner="c")
    assert crashed.faults == 1
    after = claimed(store, now=NOW + LEASE)
    assert (after.faults, after.attempts) == (2, 4)
    settled(store.release(after, Status.FAILED, "attempts_exhausted", "", Bill(), now=NOW))
    again = settled(store.resend(after.key, now=NOW))
    assert (again.faults, again.attempts) == (0, 0)


@pytest.mark.guarantee("G2")
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_g2_no_claim_goes_above_the_limit(store: Store, limit: int) -> None:
    limits = Limits(limit, None, 0)
    for number in range(limit):
        claimed(store, later(number), limits)
    before = everything(store)

    assert claim(store, later(limit), limits) == Gated(limit)
    assert claim(store, later(limit + 1), limits) == Gated(limit)
    assert everything(store) == before


@pytest.mark.guarantee("G2")
def test_g2_a_queued_run_needs_a_free_place_like_any_other(store: Store) -> None:
    again = queued(store)
    claimed(store, later(1), ONE_PLACE)

    assert claim(store, again.message, ONE_PLACE) == Gated(1)
    assert store.run(again.key) == again


@pytest.mark.guarantee("G2")
@pytest.mark.parametrize(
    ("give_back", "free"),
    [
        pytest.param(
            lambda store, run: decide(store, settled(store.store(run, DRAFT, {}, BILL, now=NOW))), 1, id="yes"
        ),
        pytest.param(
            lambda store, run: decide(
                store, settled(store.store(run, DRAFT, {}, BILL, now=NOW)), Reject(RejectReason.OTHER)
            ),
            1,
            id="no",
        ),
        pytest.param(lambda store, run: store.release(run, Status.EMPTY, "", "", Bill(), now=NOW), 1, id="empty"),
        pytest.param(lambda store, run: store.release(run, Status.FAILED, "", "", Bill(), now=NOW), 1, id="failed"),
        pytest.param(lambda store, run: store.store(run, DRAFT, {}, BILL, now=NOW), 0, id="a draft waits"),
        pytest.param(
            lambda store, run: store.postpone(run, RetryLater("", ""), Bill(), now=NOW, next_attempt=NOW),
            0,
            id="tried again later",
        ),
    ],
)
def test_g2_a_place_is_given_back_exactly_when_nothing_is_left_to_decide(
    store: Store, give_back: Callable[[Store, Run], object], free: int
) -> None:
    run = claimed(store, limits=ONE_PLACE)

    give_back(store, run)

    assert store.drafter(DIGEST).pending == 1 - free
    outcome = claim(store, later(1), ONE_PLACE)
    assert isinstance(outcome, Gated) == (free == 0), outcome


def test_one_drafters_gate_is_not_anothers(store: Store) -> None:
    claimed(store, limits=ONE_PLACE)

    claimed(store, message(REPORT), ONE_PLACE)

    assert (store.drafter(DIGEST).pending, store.drafter(REPORT).pending) == (1, 1)


def test_a_paused_drafter_claims_nothing_until_it_is_resumed(store: Store) -> None:
    store.pause(DIGEST, "the account's spend limit", now=NOW)
    assert store.drafter(DIGEST).paused == "the account's spend limit"
    before = everything(store)

    assert claim(store) == Paused("the account's spend limit")
    assert everything(store) == before
    claimed(store, message(REPORT))

    store.resume(DIGEST, now=NOW)

    assert store.drafter(DIGEST).paused is None
    claimed(store)


def test_pausing_twice_keeps_the_last_reason_and_resuming_what_runs_changes_nothing(store: Store) -> None:
    store.pause(DIGEST, "first", now=NOW)
    store.pause(DIGEST, "second", now=NOW)
    assert store.drafter(DIGEST).paused == "second"

    store.resume(DIGEST, now=NOW)
    store.resume(DIGEST, now=NOW)

    assert store.drafter(DIGEST).paused is None


def test_when_a_drafter_was_paused_is_known_after_it_was_resumed(store: Store) -> None:
    minute = timedelta(minutes=1)
    claimed(store)
    assert store.drafter(DIGEST).last_pause is None
    store.pause(DIGEST, "first", now=NOW + minute / 7)
    store.pause(DIGEST, "second", now=NOW + 2 * minute)
    assert store.drafter(DIGEST).last_pause is None

    store.resume(DIGEST, now=NOW + 3 * minute)
    store.resume(DIGEST, now=NOW + 4 * minute)

    first = Pause("second", since=NOW + timedelta(seconds=8), until=NOW + 3 * minute)
    assert store.drafter(DIGEST) == DrafterState(DIGEST, pending=1, last_pause=first)

    store.pause(DIGEST, "third", now=NOW + 5 * minute)
    assert store.drafter(DIGEST) == DrafterState(DIGEST, pending=1, paused="third", last_pause=first)
    store.resume(DIGEST, now=NOW + 6 * minute)
    assert store.drafter(DIGEST).last_pause == Pause("third", since=NOW + 5 * minute, until=NOW + 6 * minute)
    assert store.drafter(REPORT) == DrafterState(REPORT)


def test_to_resume_one_drafter_resumes_no_other(store: Store) -> None:
    for drafter in (DIGEST, REPORT):
        store.pause(drafter, "by hand", now=NOW)
    store.resume(DIGEST, now=NOW)
    assert [store.drafter(drafter).paused for drafter in (DIGEST, REPORT)] == [None, "by hand"]


def test_a_drafter_that_never_ran_can_be_paused_and_resumed(store: Store) -> None:
    store.resume(DIGEST, now=NOW)
    assert store.drafter(DIGEST) == DrafterState(DIGEST)
    store.pause(DIGEST, "by hand", now=NOW)
    store.resume(DIGEST, now=NOW)
    assert store.drafter(DIGEST) == DrafterState(DIGEST, last_pause=Pause("by hand", NOW, NOW))
    claimed(store)
    assert store.drafter(DIGEST).pending == 1


def test_a_pause_binds_a_take_over_too(store: Store) -> None:
    run = claimed(store)
    store.pause(DIGEST, "by hand", now=NOW)

    assert claim(store, owner="b", now=AFTER_THE_LEASE) == Paused("by hand")
    assert store.run(run.key) == run


@pytest.mark.guarantee("G2")
def test_g2_a_run_keeps_its_place_through_a_take_over_only_if_the_count_is_within_the_limit(store: Store) -> None:
    """A run that was claimed to be failed, since its drafter's file was broken, was counted whatever the limit."""
    claimed(store, later(1))
    run = claimed(store)

    assert claim(store, limits=Limits(1, None, 0), owner="b", now=AFTER_THE_LEASE) == Gated(2)
    assert store.run(run.key) == run
    assert claimed(store, limits=Limits(2, None, 0), owner="b", now=AFTER_THE_LEASE).attempts == 2


@pytest.mark.guarantee("G11")
def test_g11_the_worst_cost_is_reserved_and_what_does_not_fit_into_the_day_is_refused(store: Store) -> None:
    claimed(store, later(0), budget(10_000, worst=4_000))
    claimed(store, later(1), budget(10_000, worst=6_000))
    before = everything(store)

    assert claim(store, later(2), budget(10_000, worst=1)) == OverBudget(10_000)
    assert everything(store) == before
    claimed(store, later(2), budget(10_000, worst=0))
    claimed(store, message(REPORT), budget(10_000, worst=1))


@pytest.mark.guarantee("G11")
def test_g11_a_call_that_costs_more_than_the_whole_budget_is_refused_even_on_an_untouched_day(store: Store) -> None:
    assert claim(store, limits=budget(10_000, worst=10_001)) == OverBudget(0)
    assert store.run(message().key) is None


@pytest.mark.guarantee("G11")
@pytest.mark.parametrize(
    "settle",
    [
        pytest.param(lambda store, run: store.store(run, DRAFT, {}, BILL, now=NOW), id="store"),
        pytest.param(lambda store, run: store.release(run, Status.FAILED, "", "", BILL, now=NOW), id="failed"),
        pytest.param(lambda store, run: store.release(run, Status.EMPTY, "", "", BILL, now=NOW), id="empty"),
        pytest.param(
            lambda store, run: store.postpone(run, RetryLater("", ""), BILL, now=NOW, next_attempt=NOW), id="postpone"
        ),
    ],
)
def test_g11_a_settled_call_frees_what_it_did_not_cost(store: Store, settle: Callable[[Store, Run], object]) -> None:
    run = claimed(store, limits=budget(10_000, worst=9_000))

    after = settled(settle(store, run))

    assert (after.reserved_nanousd, after.cost_nanousd, after.usage) == (0, BILL.cost_nanousd, BILL.usage)
    assert store.committed_nanousd(DIGEST, DAY) == BILL.cost_nanousd
    assert claim(store, later(1), budget(10_000, worst=7_001)) == OverBudget(BILL.cost_nanousd)
    claimed(store, later(1), budget(10_000, worst=7_000))


@pytest.mark.guarantee("G11")
def test_g11_a_call_that_cost_more_than_its_worst_is_booked_as_it_was(store: Store) -> None:
    run = claimed(store, limits=budget(10_000, worst=1_000))

    settled(store.store(run, DRAFT, {}, Bill(cost_nanousd=12_000), now=NOW))

    assert store.committed_nanousd(DIGEST, DAY) == 12_000
    assert claim(store, later(1), budget(10_000, worst=0)) == OverBudget(12_000)


@pytest.mark.guarantee("G11")
def test_g11_what_a_dead_owner_had_reserved_is_booked_as_paid(store: Store) -> None:
    claimed(store, limits=budget(10_000, worst=4_000), owner="a")

    second = claimed(store, limits=budget(10_000, worst=5_000), owner="b", now=AFTER_THE_LEASE)

    assert (second.cost_nanousd, second.reserved_nanousd) == (4_000, 5_000)
    assert store.committed_nanousd(DIGEST, DAY) == 9_000
    stored = settled(store.store(second, DRAFT, {}, BILL, now=AFTER_THE_LEASE))
    assert stored.cost_nanousd == 4_000 + BILL.cost_nanousd
    assert store.committed_nanousd(DIGEST, DAY) == 4_000 + BILL.cost_nanousd


@pytest.mark.guarantee("G11")
def test_g11_a_take_over_that_does_not_fit_is_refused_and_the_row_stays(store: Store) -> None:
    first = claimed(store, limits=budget(10_000, worst=6_000), owner="a")
    before = everything(store)

    assert claim(store, limits=budget(10_000, worst=6_000), owner="b", now=AFTER_THE_LEASE) == OverBudget(6_000)
    assert everything(store) == before
    assert store.run(first.key) == first


@pytest.mark.guarantee("G11")
def test_g11_each_utc_day_has_its_own_budget_and_a_take_over_past_midnight_moves_to_the_new_one(store: Store) -> None:
    tomorrow = NOW + timedelta(days=1)
    next_day = "2026-03-03"
    claimed(store, limits=budget(10_000, worst=10_000), owner="a")

    second = claimed(store, limits=budget(10_000, worst=9_000), owner="b", now=tomorrow)

    assert second.spend_day == next_day
    assert store.committed_nanousd(DIGEST, DAY) == 10_000
    assert store.committed_nanousd(DIGEST, next_day) == 9_000
    settled(store.store(second, DRAFT, {}, BILL, now=tomorrow + timedelta(days=1)))
    assert store.committed_nanousd(DIGEST, DAY) == 10_000
    assert store.committed_nanousd(DIGEST, next_day) == BILL.cost_nanousd


@pytest.mark.guarantee("G11")
def test_g11_without_a_budget_the_spend_is_still_booked(store: Store) -> None:
    run = claimed(store, limits=Limits(3, None, 4_000))
    assert store.committed_nanousd(DIGEST, DAY) == 4_000

    settled(store.store(run, DRAFT, {}, BILL, now=NOW))

    assert store.committed_nanousd(DIGEST, DAY) == BILL.cost_nanousd


IN_THE_WAY: list[tuple[str, Limits, bool, type[ClaimOutcome]]] = [
    ("the run's own state", Limits(0, 0, 1), True, Duplicate),
    ("then the pause", Limits(0, 0, 1), True, Paused),
    ("then the gate", Limits(0, 0, 1), False, Gated),
    ("then the budget", Limits(1_000, 0, 1), False, OverBudget),
]


@pytest.mark.parametrize(("what", "limits", "paused", "told"), IN_THE_WAY, ids=[row[0] for row in IN_THE_WAY])
def test_of_several_things_in_the_way_the_first_is_told(
    store: Store, what: str, limits: Limits, paused: bool, told: type[ClaimOutcome]
) -> None:
    if told is Duplicate:
        pending(store)
    if paused:
        store.pause(DIGEST, "by hand", now=NOW)

    assert isinstance(claim(store, limits=limits), told)


def test_a_naive_instant_is_refused_and_nothing_happens(store: Store) -> None:
    with pytest.raises(ValueError, match="no timezone"):
        claim(store, now=NOW.replace(tzinfo=None))

    assert store.run(RunKey(DIGEST, SLOT)) is None
    assert store.drafter(DIGEST).pending == 0


def test_what_nobody_has_touched_is_zero_and_empty(store: Store) -> None:
    assert store.run(message().key) is None
    assert store.draft(message().key) is None
    assert (store.drafter(DIGEST).pending, store.drafter(DIGEST).paused) == (0, None)
    assert store.committed_nanousd(DIGEST, DAY) == 0
    assert dict(store.memory(DIGEST).cursors) == {}
    assert dict(store.week(DIGEST, "2026-W10")) == {}


def test_a_lease_that_only_a_clock_set_back_can_explain_is_dead(store: Store) -> None:
    ahead = NOW + LONGEST_LEASE + timedelta(seconds=1)
    store.claim(message(), Limits(1, None, 0), owner="in the future", now=NOW, lease_until=ahead)

    assert claimed(store, owner="b").attempts == 2
