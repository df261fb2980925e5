"""Many at once: what one operation promises holds when thirty-two of them meet on the same rows.

Not on moto, which is not safe under threads: a cancelled transaction there puts back the whole table. DynamoDB Local
lets one transaction after the other in, so there is a second one, on which they conflict as they do in AWS.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import pytest

from contract.material import (
    BILL,
    DAY,
    DIGEST,
    DRAFT,
    EDIT,
    LEASE,
    NOW,
    WEEK,
    all_runs,
    claim,
    claimed,
    decide,
    later,
    pending,
)
from galley.drafts import text_hash
from galley.retry import RetryLater
from galley.runs import HOLDS_A_PLACE, RejectReason, Run, Status
from galley.store import (
    MOST_REJECTIONS,
    Approve,
    Bill,
    Busy,
    Claimed,
    Conflict,
    Duplicate,
    Expire,
    Gated,
    LeaseLost,
    Limits,
    OverBudget,
    Reject,
    Settled,
    Store,
    StoreBusy,
)

THREADS = 32
PLACES = 5
AFTER_THE_LEASE = NOW + LEASE
VERDICTS: list[Approve | Reject] = [Approve(), Reject(RejectReason.TONE), EDIT]
T = TypeVar("T")


def together(work: Callable[[int], T], threads: int = THREADS) -> list[T]:
    """Have so many threads do a piece of work each, beginning at the same moment, and return what each came to."""
    start = threading.Barrier(threads)

    def run(number: int) -> T:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


def insisting(operation: Callable[[], T], tries: int = 20) -> T:
    """Do what a worker does when others hold the rows: try again. It waits in the queue; here there is no time."""
    for _ in range(tries - 1):
        try:
            return operation()
        except StoreBusy:
            pass
    return operation()


def kinds(outcomes: list[Any]) -> Counter[str]:
    return Counter(type(outcome).__name__ for outcome in outcomes)


@pytest.mark.guarantee("G2")
def test_g2_of_many_claims_as_many_win_as_there_are_places(shared_store: Store) -> None:
    limits = Limits(PLACES, None, 0)

    outcomes = together(
        lambda number: insisting(lambda: claim(shared_store, later(number), limits, owner=f"invocation-{number}"))
    )

    assert kinds(outcomes) == {"Claimed": PLACES, "Gated": THREADS - PLACES}
    assert {outcome for outcome in outcomes if isinstance(outcome, Gated)} == {Gated(PLACES)}
    assert shared_store.drafter(DIGEST).pending == PLACES
    assert sorted(all_runs(shared_store, DIGEST), key=lambda run: run.slot) == [
        outcome.run for outcome in outcomes if isinstance(outcome, Claimed)
    ]


@pytest.mark.guarantee("G1")
def test_g1_of_many_claims_of_one_run_one_wins_and_makes_its_only_draft(shared_store: Store) -> None:
    def work(number: int) -> object:
        outcome = insisting(lambda: claim(shared_store, owner=f"invocation-{number}"))
        if isinstance(outcome, Claimed):
            draft = replace(DRAFT, title=f"by invocation-{number}")
            return insisting(lambda: shared_store.store(outcome.run, draft, {}, BILL, now=NOW))
        return outcome

    outcomes = together(work)

    (winner,) = (outcome.run for outcome in outcomes if isinstance(outcome, Settled))
    others = [outcome for outcome in outcomes if not isinstance(outcome, Settled)]
    assert all(isinstance(outcome, Busy | Duplicate) for outcome in others), kinds(outcomes)
    assert shared_store.run(winner.key) == winner
    stored = shared_store.draft(winner.key)
    assert stored is not None
    assert stored.text_hash == winner.text_hash
    assert shared_store.drafter(DIGEST).pending == 1
    assert shared_store.week(DIGEST, WEEK)["drafted"] == 1


@pytest.mark.guarantee("G7")
def test_g7_of_many_decisions_on_one_draft_one_counts_and_the_others_see_it(shared_store: Store) -> None:
    read = pending(shared_store)

    outcomes = together(
        lambda number: insisting(
            lambda: decide(shared_store, read, VERDICTS[number % len(VERDICTS)], reviewer=f"reviewer-{number}")
        )
    )

    assert kinds(outcomes) == {"Settled": 1, "Conflict": THREADS - 1}
    (winner,) = (outcome.run for outcome in outcomes if isinstance(outcome, Settled))
    assert {outcome.run for outcome in outcomes if isinstance(outcome, Conflict)} == {winner}
    assert shared_store.run(read.key) == winner
    assert winner.decision is not None
    assert winner.decision.read_hash == text_hash(DRAFT.title, DRAFT.body)
    stored = shared_store.draft(read.key)
    assert stored is not None
    assert stored.text_hash == winner.text_hash
    assert (stored.edited_title is not None) == winner.decision.edited
    assert shared_store.drafter(DIGEST).pending == 0
    week = shared_store.week(DIGEST, WEEK)
    assert week.get("approved", 0) + week.get("rejected", 0) == 1
    assert week.get("edited", 0) == int(winner.decision.edited)


def test_of_many_rejections_at_once_none_is_forgotten_while_there_is_room(shared_store: Store) -> None:
    read = [pending(shared_store, later(number)) for number in range(MOST_REJECTIONS)]

    outcomes = together(
        lambda number: insisting(lambda: decide(shared_store, read[number], Reject(RejectReason.TONE, f"no {number}"))),
        threads=len(read),
    )

    assert kinds(outcomes) == {"Settled": len(read)}
    told = shared_store.memory(DIGEST).rejections
    assert {(rejection.slot, rejection.words) for rejection in told} == {
        (run.slot, f"no {number}") for number, run in enumerate(read)
    }


@pytest.mark.guarantee("G7")
def test_g7_between_decisions_and_withdrawals_of_one_draft_one_counts(shared_store: Store) -> None:
    read = pending(shared_store)
    ways: list[Callable[[int], object]] = [
        lambda number: shared_store.withdraw(read, Expire(), now=NOW + timedelta(seconds=number)),
        lambda number: decide(shared_store, read, VERDICTS[number % len(VERDICTS)], reviewer=f"reviewer-{number}"),
    ]

    outcomes = together(lambda number: insisting(lambda: ways[number % len(ways)](number)))

    assert kinds(outcomes) == {"Settled": 1, "Conflict": THREADS - 1}
    (winner,) = (outcome.run for outcome in outcomes if isinstance(outcome, Settled))
    assert shared_store.run(read.key) == winner
    assert (winner.decision is None) == (winner.status is Status.EXPIRED)
    assert shared_store.drafter(DIGEST).pending == 0
    week = shared_store.week(DIGEST, WEEK)
    assert sum(week.get(name, 0) for name in ("approved", "rejected", "expired")) == 1


@pytest.mark.guarantee("G1")
def test_g1_of_many_take_overs_of_a_dead_lease_one_wins(shared_store: Store) -> None:
    first = claimed(shared_store, owner="dead", limits=Limits(1, 100_000, 1_000))

    outcomes = together(
        lambda number: insisting(
            lambda: claim(
                shared_store, limits=Limits(1, 100_000, 1_000), owner=f"invocation-{number}", now=AFTER_THE_LEASE
            )
        )
    )

    assert kinds(outcomes) == {"Claimed": 1, "Busy": THREADS - 1}
    (winner,) = (outcome.run for outcome in outcomes if isinstance(outcome, Claimed))
    assert {outcome.run for outcome in outcomes if isinstance(outcome, Busy)} == {winner}
    assert (winner.attempts, winner.version) == (first.attempts + 1, first.version + 1)
    assert shared_store.drafter(DIGEST).pending == 1
    assert shared_store.committed_nanousd(DIGEST, DAY) == 2_000


@pytest.mark.guarantee("G1")
def test_g1_between_an_owner_who_stores_late_and_those_who_take_over_there_is_one_draft(shared_store: Store) -> None:
    late = claimed(shared_store, owner="late")

    def work(number: int) -> object:
        if number == 0:
            return insisting(lambda: shared_store.store(late, DRAFT, {}, BILL, now=AFTER_THE_LEASE))
        return insisting(lambda: claim(shared_store, owner=f"invocation-{number}", now=AFTER_THE_LEASE))

    first, *others = together(work)

    run = shared_store.run(late.key)
    match first:
        case Settled():
            assert kinds(others) == {"Duplicate": THREADS - 1}
            assert run == first.run
            assert shared_store.draft(late.key) is not None
        case LeaseLost(seen):
            assert kinds(others) == {"Claimed": 1, "Busy": THREADS - 2}
            assert run == seen
            assert shared_store.draft(late.key) is None
        case other:
            pytest.fail(f"the late owner came to {other}")
    assert shared_store.drafter(DIGEST).pending == 1


@pytest.mark.guarantee("G11")
def test_g11_of_many_claims_as_many_win_as_the_budget_pays_for(shared_store: Store) -> None:
    limits = Limits(1_000, PLACES * 2_000 + 1_999, 2_000)

    outcomes = together(
        lambda number: insisting(lambda: claim(shared_store, later(number), limits, owner=f"invocation-{number}"))
    )

    assert kinds(outcomes) == {"Claimed": PLACES, "OverBudget": THREADS - PLACES}
    assert {outcome for outcome in outcomes if isinstance(outcome, OverBudget)} == {OverBudget(PLACES * 2_000)}
    assert shared_store.committed_nanousd(DIGEST, DAY) == PLACES * 2_000
    assert shared_store.drafter(DIGEST).pending == PLACES


@dataclass
class Worker:
    """Somebody who claims slots and does with a run whatever may be done, over and over."""

    store: Store
    number: int
    limits: Limits

    def work(self, rounds: int) -> Counter[str]:
        chance = random.Random(self.number)
        done: Counter[str] = Counter()
        for turn in range(rounds):
            asked = partial(claim, self.store, later(chance.randrange(rounds * 4)), self.limits)
            outcome = insisting(partial(asked, owner=f"invocation-{self.number}-{turn}"))
            done[type(outcome).__name__] += 1
            if isinstance(outcome, Claimed):
                self._end(outcome.run, chance)
        return done

    def _end(self, run: Run, chance: random.Random) -> None:
        bill = Bill(cost_nanousd=chance.randrange(self.limits.worst_cost_nanousd))
        store = self.store

        def drafted() -> object:
            stored = insisting(lambda: store.store(run, DRAFT, {str(run.key): {"by": self.number}}, bill, now=NOW))
            assert isinstance(stored, Settled)
            read = stored.run
            verdict = chance.choice(VERDICTS)
            return insisting(lambda: decide(store, read, verdict)) if chance.random() < 0.8 else stored

        ends: list[Callable[[], object]] = [
            drafted,
            drafted,
            lambda: insisting(lambda: store.release(run, Status.EMPTY, "nothing_new", "", bill, now=NOW)),
            lambda: insisting(lambda: store.release(run, Status.FAILED, "refusal", "", bill, now=NOW)),
            lambda: insisting(
                lambda: store.postpone(
                    run, RetryLater("overloaded", "529"), bill, now=NOW, next_attempt=NOW + timedelta(minutes=1)
                )
            ),
        ]
        assert isinstance(chance.choice(ends)(), Settled)


@pytest.mark.guarantee("G2")
@pytest.mark.guarantee("G11")
def test_g2_g11_in_mixed_traffic_the_counts_equal_the_rows_and_no_limit_is_passed(shared_store: Store) -> None:
    limits = Limits(PLACES, 10_000_000, 1_000)
    over: list[int] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            held = shared_store.drafter(DIGEST).pending
            if not 0 <= held <= PLACES:
                over.append(held)
            done.wait(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        outcomes = sum(together(lambda number: Worker(shared_store, number, limits).work(rounds=6)), Counter())
    finally:
        done.set()
        watcher.join()

    assert over == []
    assert outcomes["Claimed"] >= PLACES, outcomes
    runs = all_runs(shared_store, DIGEST)
    assert len(runs) == outcomes["Claimed"]
    held = sum(run.status in HOLDS_A_PLACE for run in runs)
    assert shared_store.drafter(DIGEST).pending == held <= PLACES
    assert shared_store.committed_nanousd(DIGEST, DAY) == sum(run.cost_nanousd for run in runs)
    assert all(run.reserved_nanousd == 0 for run in runs)
    drafted = [run for run in runs if run.drafted is not None]
    assert [shared_store.draft(run.key) is not None for run in runs] == [run in drafted for run in runs]
