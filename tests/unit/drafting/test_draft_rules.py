"""The rules that a draft is stored with, what its text says of them, and the older drafts that it replaces."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

import authoring
import draft_rules
from attempt import Done
from drafter import Drafter
from galley.rules import NO_RULES, Review, Rules
from galley.runs import Run, RunKey, Status
from galley.store import Page, RowsDisagree, Store, StoreBusy, UnreadableRow
from galley_cli.local.bucket import FolderBucket
from shapes.shape import Assignment, Material
from support.outside import SLOT, message
from unit.drafting.test_run_protocol import DRAFTER, MATERIAL, Bench

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
NOW = SLOT + timedelta(minutes=1)
MONITOR = Drafter.model_validate(
    {
        "name": "daily-digest",
        "title": "Health",
        "shape": "monitor",
        "instructions": "Be short.",
        "review": "none",
        "expire_hours": 2,
        "sources": [{"kind": "health", "id": "desk", "url": "desk:/health"}],
    }
)


class Collecting:
    """A shape that gives what a test says."""

    def __init__(self) -> None:
        self.material = MATERIAL

    def collect(self, assignment: Assignment) -> Material:
        return replace(self.material, cursors={})


@pytest.fixture
def shape(monkeypatch: pytest.MonkeyPatch) -> Collecting:
    shape = Collecting()
    for name in ("digest", "monitor"):
        monkeypatch.setitem(authoring.SHAPES, name, shape)
    return shape


@pytest.fixture
def bench(store: Store, shape: Collecting, tmp_path: object) -> Bench:
    return Bench(store, FolderBucket(tmp_path / "bucket"))  # type: ignore[operator]


def drafted(bench: Bench, day: int = 0) -> Run:
    """Have the run of a day's slot drafted, a minute after it."""
    slot = SLOT + day * DAY
    bench.at = slot + timedelta(minutes=1)
    assert bench.deliver(message(slot=slot)) == Done()
    return row(bench, slot)


def row(bench: Bench, slot: datetime = SLOT) -> Run:
    run = bench.store.run(RunKey("daily-digest", slot))
    assert run is not None
    return run


@pytest.mark.parametrize(
    ("own", "shapes", "expires"),
    [(None, None, None), (5, None, 5), (None, 2, 2), (5, 2, 2), (2, 5, 2)],
)
def test_the_shorter_time_counts(own: int | None, shapes: int | None, expires: int | None) -> None:
    drafter = DRAFTER.model_copy(update={"expire_hours": own})
    rules = draft_rules.rules_of(drafter, replace(MATERIAL, expire_hours=shapes), NOW)
    assert rules == Rules(expires=None if expires is None else NOW + expires * HOUR)


def test_a_draft_is_stored_with_its_drafters_rules_and_its_shapes(bench: Bench, shape: Collecting) -> None:
    bench.drafter = DRAFTER.model_copy(update={"supersede": True, "expire_hours": 3})
    shape.material = replace(MATERIAL, supersedes=(SLOT - DAY,), urgent=True)

    run = drafted(bench)

    assert run.status is Status.PENDING
    assert run.rules == Rules(NOW + 3 * HOUR, (SLOT - DAY,), supersedes_earlier=True, urgent=True)


def test_without_rules_a_draft_has_none_and_costs_no_listing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.store, "history", lambda *_, **__: pytest.fail("there is nothing to replace"))
    assert drafted(bench).rules == NO_RULES


@pytest.mark.guarantee("G8")
def test_g8_a_text_that_nobody_reviews_says_so_in_itself(bench: Bench) -> None:
    bench.drafter = MONITOR

    run = drafted(bench)

    assert (run.status, run.rules) == (Status.APPROVED, Rules(review=Review.NONE))
    stored = bench.store.draft(run.key)
    assert stored is not None
    assert stored.body.startswith("*Nobody has reviewed this text: it is sent as the model wrote it.*\n\n")
    assert stored.text_hash == run.text_hash
    assert bench.store.drafter("daily-digest").pending == 0


def test_a_text_that_is_reviewed_says_nothing_of_it(bench: Bench) -> None:
    stored = bench.store.draft(drafted(bench).key)
    assert stored is not None
    assert "reviewed" not in stored.body


@pytest.mark.guarantee("G2")
def test_g2_a_newer_draft_takes_the_place_of_the_older_ones_at_once(bench: Bench) -> None:
    bench.drafter = DRAFTER.model_copy(update={"supersede": True, "pending_limit": 2})

    runs = [drafted(bench, day) for day in range(3)]

    assert [row(bench, run.slot).status for run in runs] == [Status.SUPERSEDED, Status.SUPERSEDED, Status.PENDING]
    assert row(bench, runs[1].slot).detail == f"the draft of {runs[2].key} took its place"
    assert bench.store.drafter("daily-digest").pending == 1


def test_a_draft_replaces_those_that_its_shape_names_and_no_others(bench: Bench, shape: Collecting) -> None:
    bench.drafter = DRAFTER.model_copy(update={"pending_limit": 3})
    drafted(bench, 0)
    drafted(bench, 1)
    shape.material = replace(MATERIAL, supersedes=(SLOT + DAY,))
    drafted(bench, 2)

    statuses = [row(bench, SLOT + day * DAY).status for day in range(3)]
    assert statuses == [Status.PENDING, Status.SUPERSEDED, Status.PENDING]


@pytest.mark.parametrize("error", [StoreBusy("held"), RowsDisagree("by hand"), UnreadableRow("run x: no")])
def test_a_draft_is_stored_although_what_it_replaces_cannot_be_withdrawn_now(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(*_: object, **__: object) -> Page:
        raise error

    bench.drafter = DRAFTER.model_copy(update={"supersede": True})
    drafted(bench, 0)
    monkeypatch.setattr(bench.store, "withdraw", broken)

    assert drafted(bench, 1).status is Status.PENDING
    assert row(bench).status is Status.PENDING
    assert bench.queue.buried == []
