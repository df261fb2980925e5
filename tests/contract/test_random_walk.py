"""A seeded random walk through the operations, and what must hold after each step."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from contract.material import DAY, DIGEST, DRAFT, EDIT, LEASE, NOW, REPORT, all_runs, message
from galley.retry import RetryLater
from galley.rules import Review, Rules
from galley.runs import HOLDS_A_PLACE, TRANSITIONS, RejectReason, Run, RunMessage, SkipReason, Status, Usage
from galley.store import Approve, Bill, Claimed, Expire, Limits, Reject, Store, Supersede
from support.counted import as_rows_tell, counted_in_rows

DRAFTERS = (DIGEST, REPORT)
SLOTS = 4
STEPS = 60
LIMITS = Limits(pending=2, daily_budget_nanousd=60_000, worst_cost_nanousd=7_000)


class Walk:
    """Somebody who does whatever anybody might do, with what they have read now or some time before."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.chance = random.Random(seed)
        self.now: datetime = NOW
        self.leases: list[Run] = []
        self.read: list[Run] = []
        self.done: Counter[str] = Counter()

    def step(self) -> None:
        operation = self.chance.choices(
            [
                *(self.claim, self.settle, self.decide, self.withdraw, self.resend, self.skip),
                *(self.publish, self.pause, self.wait),
            ],
            weights=[9, 8, 5, 2, 2, 1, 2, 1, 3],
        )[0]
        outcome = operation()
        self.done[f"{operation.__name__} {type(outcome).__name__}"] += 1

    def message(self) -> RunMessage:
        slot = NOW + timedelta(days=self.chance.randrange(SLOTS))
        return message(self.chance.choice(DRAFTERS), slot)

    def claim(self) -> object:
        owner = f"invocation-{self.chance.random()}"
        outcome = self.store.claim(self.message(), LIMITS, owner=owner, now=self.now, lease_until=self.now + LEASE)
        if isinstance(outcome, Claimed):
            self.leases.append(outcome.run)
        return outcome

    def settle(self) -> object:
        if not self.leases:
            return None
        run = self.chance.choice(self.leases)
        bill = Bill(Usage(input_tokens=self.chance.randrange(100)), cost_nanousd=self.chance.randrange(7_000))
        ends: list[Callable[[], object]] = [
            lambda: self.store.store(run, DRAFT, {"mail": {"at": run.attempts}}, bill, now=self.now),
            lambda: self.store.store(run, DRAFT, {}, bill, now=self.now),
            lambda: self.store.store(run, DRAFT, {}, bill, now=self.now, rules=Rules(review=Review.NONE)),
            lambda: self.store.release(run, Status.EMPTY, "nothing_new", "", bill, now=self.now),
            lambda: self.store.release(run, Status.FAILED, "refusal", "", bill, now=self.now),
            lambda: self.store.postpone(run, RetryLater("timeout", ""), bill, now=self.now, next_attempt=self.now),
        ]
        return self.chance.choice(ends)()

    def decide(self) -> object:
        if not self.read:
            return None
        run = self.chance.choice(self.read)
        verdicts: list[Approve | Reject] = [Approve(), EDIT, Reject(RejectReason.TONE)]
        verdict = self.chance.choice(verdicts)
        return self.store.decide(
            run.key, verdict, version=run.version, read_hash=run.text_hash or "", reviewer="anna", now=self.now
        )

    def withdraw(self) -> object:
        waiting = [run for run in self.read if run.status is Status.PENDING]
        if not waiting:
            return None
        run = self.chance.choice(waiting)
        return self.store.withdraw(run, self.chance.choice([Expire(), Supersede(run.key)]), now=self.now)

    def resend(self) -> object:
        return self.store.resend(self.message().key, now=self.now)

    def skip(self) -> object:
        return self.store.skip(self.message(), SkipReason.COALESCED, "", now=self.now)

    def publish(self) -> object:
        approved = [run for run in self.read if run.status is Status.APPROVED]
        if not approved:
            return None
        return self.store.settle_publication(self.chance.choice(approved), Status.PUBLISHED, "", now=self.now)

    def pause(self) -> object:
        drafter = self.chance.choice(DRAFTERS)
        if self.chance.random() < 0.3:
            self.store.pause(drafter, "by hand", now=self.now)
        else:
            self.store.resume(drafter, now=self.now)
        return None

    def wait(self) -> object:
        self.now += timedelta(seconds=self.chance.randrange(2 * int(LEASE.total_seconds())))
        return None


@pytest.mark.guarantee("G2")
@pytest.mark.guarantee("G11")
@pytest.mark.parametrize("seed", range(3))
def test_g2_g11_the_counts_equal_the_rows_and_no_limit_is_passed_after_any_step(store: Store, seed: int) -> None:
    walk = Walk(store, seed)
    seen: dict[object, Run] = {}

    for number in range(STEPS):
        walk.step()
        for drafter in DRAFTERS:
            runs = all_runs(store, drafter)
            where = f"seed {seed}, step {number}, {drafter}"
            held = sum(run.status in HOLDS_A_PLACE for run in runs)
            assert store.drafter(drafter).pending == held <= LIMITS.pending, where
            spent = sum(run.cost_nanousd + run.reserved_nanousd for run in runs)
            assert store.committed_nanousd(drafter, DAY) == spent <= (LIMITS.daily_budget_nanousd or 0), where
            for week, told in counted_in_rows(runs).items():
                assert as_rows_tell(store.week(drafter, week)) == told, where
            walk.read += walk.chance.sample(runs, min(1, len(runs)))
            for run in runs:
                _came_from(seen.get(run.key), run)
                seen[run.key] = run

    told = {outcome for outcome, times in walk.done.items() if times}
    assert told >= {"claim Claimed", "claim Duplicate", "settle Settled", "settle LeaseLost"}, walk.done


def _came_from(before: Run | None, after: Run) -> None:
    if before is None:
        assert after.version == 1
        assert after.status in TRANSITIONS[None]
    elif before != after:
        assert after.version == before.version + 1
        assert after.status in TRANSITIONS[before.status] or after.status is before.status is Status.DRAFTING
