"""What goes with a draft is kept with its text, is part of its hash, and stays when the text is edited."""

from dataclasses import replace

import pytest

from contract.material import BILL, DRAFT, EDIT, NOW, claimed, decide, pending, settled
from galley.drafts import Attachment, attachments_hash, text_hash
from galley.runs import Status
from galley.store import Approve, Conflict, Store, StoredDraft

ATTACHED = replace(
    DRAFT,
    attachments=(
        Attachment("figures.csv", "text/csv", 'Figure,Wert\nÜbrige,"1,5"\n'),
        Attachment("chart.svg", "image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg"/>\n'),
    ),
)
HASH = attachments_hash(ATTACHED.attachments)


def test_attachments_come_back_as_they_were_and_count_in_the_hash(store: Store) -> None:
    run = pending(store, draft=ATTACHED)
    stored = store.draft(run.key)
    assert stored == StoredDraft(ATTACHED)
    assert run.attachments_hash == HASH
    assert run.text_hash == stored.text_hash == text_hash(DRAFT.title, DRAFT.body, HASH)
    assert store.run(run.key) == run


def test_a_draft_without_attachments_has_none_in_its_row(store: Store) -> None:
    run = pending(store)
    assert run.attachments_hash is None
    assert run.text_hash == text_hash(DRAFT.title, DRAFT.body)


@pytest.mark.guarantee("G7")
def test_g7_the_hash_of_the_text_alone_decides_nothing(store: Store) -> None:
    run = pending(store, draft=ATTACHED)
    outcome = decide(store, run, read_hash=text_hash(DRAFT.title, DRAFT.body))
    assert outcome == Conflict(run)


def test_an_edit_keeps_the_attachments_and_its_hash_is_of_them_too(store: Store) -> None:
    after = settled(decide(store, pending(store, draft=ATTACHED), EDIT))
    stored = store.draft(after.key)
    assert stored == StoredDraft(ATTACHED, EDIT.title, EDIT.body)
    assert after.status is Status.APPROVED
    assert after.text_hash == stored.text_hash == text_hash(EDIT.title or "", EDIT.body or "", HASH)


def test_an_edit_of_nothing_is_none_with_attachments_either(store: Store) -> None:
    after = settled(decide(store, pending(store, draft=ATTACHED), Approve(ATTACHED.title, ATTACHED.body)))
    assert after.decision is not None
    assert not after.decision.edited
    assert store.draft(after.key) == StoredDraft(ATTACHED)


def test_attachments_that_fill_a_draft_fit_into_its_row(store: Store) -> None:
    full = replace(DRAFT, attachments=(Attachment("figures.csv", "text/csv", "ä" * 24_000),), body="ä" * 60_000)
    run = settled(store.store(claimed(store), full, {}, BILL, now=NOW))
    assert store.draft(run.key) == StoredDraft(full)
