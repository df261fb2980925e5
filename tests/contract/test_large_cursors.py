"""A sync's manifest takes several rows, and all of them move together with the draft that was made from it."""

from datetime import timedelta

import pytest

from contract.material import BILL, DRAFT, NOW, claimed, message, settled
from galley.drafts import Draft
from galley.runs import Status
from galley.store import Cursor, CursorMoved, Store
from shapes.sync.manifest import MOST_BYTES, PART_BYTES
from support.outside import SLOT


def manifest(sign: str) -> dict[str, Cursor]:
    """Return the largest manifest there is."""
    rows = range(MOST_BYTES // PART_BYTES)
    return {f"handbook.{row}": {"documents": {"key": sign * PART_BYTES}} for row in rows}


def test_the_largest_manifest_moves_with_the_largest_draft_or_not_at_all(store: Store) -> None:
    largest = Draft(DRAFT.title, "b" * 380_000, DRAFT.items, DRAFT.warnings, DRAFT.model)
    run = claimed(store)
    first = settled(store.store(run, largest, manifest("1"), BILL, now=NOW))
    assert first.status is Status.PENDING
    assert store.memory(run.drafter).cursors == manifest("1")

    other = claimed(store, message(slot=SLOT + timedelta(days=1)))
    stale = {**manifest("1"), "handbook.6": {"documents": {}}}
    with pytest.raises(CursorMoved):
        store.store(other, largest, manifest("2"), BILL, now=NOW, read=stale)
    assert store.memory(run.drafter).cursors == manifest("1")

    settled(store.store(other, largest, manifest("2"), BILL, now=NOW, read=manifest("1")))
    assert store.memory(run.drafter).cursors == manifest("2")
