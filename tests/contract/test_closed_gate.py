"""A gate that is shut: by a limit of zero, or by one that was lowered below what is there."""

from dataclasses import replace

import pytest

from contract.material import BILL, DIGEST, LEASE, NOW, claim, claimed, everything, later, pending, settled
from galley.runs import Status
from galley.store import Gated, Limits, Store


@pytest.mark.guarantee("G2")
def test_g2_a_limit_of_zero_lets_nobody_in_though_the_drafter_once_had_drafts(store: Store) -> None:
    settled(store.release(claimed(store), Status.EMPTY, "nothing_new", "", BILL, now=NOW))
    assert store.drafter(DIGEST).pending == 0
    before = everything(store)

    assert claim(store, later(1), Limits(pending=0, daily_budget_nanousd=None, worst_cost_nanousd=0)) == Gated(0)
    assert everything(store) == before


@pytest.mark.guarantee("G2")
def test_g2_a_dead_lease_is_taken_over_only_while_what_is_counted_is_within_the_limit(store: Store) -> None:
    pending(store, later(1))
    begun = claimed(store)
    lease_is_over = NOW + LEASE
    before = everything(store)

    lowered = Limits(pending=1, daily_budget_nanousd=None, worst_cost_nanousd=0)
    assert claim(store, limits=lowered, owner="invocation-2", now=lease_is_over) == Gated(2)
    assert everything(store) == before

    within = replace(lowered, pending=2)
    taken_over = claimed(store, limits=within, owner="invocation-2", now=lease_is_over)
    assert (taken_over.key, taken_over.attempts, store.drafter(DIGEST).pending) == (begun.key, 2, 2)
