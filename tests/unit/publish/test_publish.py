"""What is published, and what is not."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import publish
from galley import system
from galley.drafts import Attachment, Channel, Draft, attachments_hash, text_hash
from galley.rules import NO_RULES, Review, Rules
from galley.runs import Decision, RejectReason, Run, RunKey, Status
from galley.store import (
    Approve,
    Bill,
    Claimed,
    Expire,
    Limits,
    Reject,
    Settled,
    Store,
    StoredDraft,
    Supersede,
    UnreadableRow,
    Withdrawal,
)
from galley_cli.local.bucket import FolderBucket
from support.outside import SLOT, Context, Outside, event, message

KEY = RunKey("daily-digest", SLOT)
DRAFT = Draft("Friday", "Two mails.", (), (), "offline", (Channel("s3", "published/"),))
UNREAD = Rules(review=Review.NONE)
PUBLISHED = "published/daily-digest/2026-11-27T06:00:00Z.md"


@pytest.fixture
def bucket(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> FolderBucket:
    for name in ("TABLE", "BUCKET"):
        monkeypatch.setenv(f"GALLEY_{name}", "test")
    bucket = FolderBucket(tmp_path / "bucket")
    system.install(Outside(store_=store, bucket_=bucket))
    return bucket


def drafted(store: Store, draft: Draft = DRAFT) -> str:
    """Store a pending draft and return its hash."""
    claimed = store.claim(message(), Limits(3, None, 0), owner="me", now=SLOT, lease_until=SLOT + timedelta(minutes=5))
    assert isinstance(claimed, Claimed)
    stored = store.store(claimed.run, draft, {}, Bill(), now=SLOT)
    assert isinstance(stored, Settled)
    return text_hash(draft.title, draft.body, attachments_hash(draft.attachments))


def decided(store: Store, verdict: Approve | Reject, draft: Draft = DRAFT) -> None:
    read_hash = drafted(store, draft)
    run = store.run(KEY)
    assert run is not None
    outcome = store.decide(KEY, verdict, version=run.version, read_hash=read_hash, reviewer="ada", now=SLOT)
    assert isinstance(outcome, Settled)


def status(store: Store) -> Status:
    run = store.run(KEY)
    assert run is not None
    return run.status


def test_an_approved_draft_goes_to_its_channel_and_its_row_says_so(store: Store, bucket: FolderBucket) -> None:
    decided(store, Approve())
    assert publish.handler(event("publish-approved"), Context()) == {"batchItemFailures": []}
    assert bucket.get(PUBLISHED, max_bytes=1000) == b"# Friday\n\nTwo mails.\n"
    assert status(store) is Status.PUBLISHED


def test_what_the_reviewer_wrote_is_what_is_published(store: Store, bucket: FolderBucket) -> None:
    decided(store, Approve(title="Friday, shorter", body="One mail."))
    publish.handler(event("publish-approved"), Context())
    assert bucket.get(PUBLISHED, max_bytes=1000) == b"# Friday, shorter\n\nOne mail.\n"


CHART = Attachment("chart.svg", "image/svg+xml", "<svg/>\n")
TABLE = Attachment("figures.csv", "text/csv", "Größe\n1\n")
WITH_FIGURES = replace(DRAFT, attachments=(TABLE, CHART))


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        pytest.param(Approve(), b"# Friday\n\nTwo mails.\n", id="as it was drafted"),
        pytest.param(Approve("Friday", "One mail."), b"# Friday\n\nOne mail.\n", id="edited"),
    ],
)
def test_attachments_are_published_beside_the_text(
    store: Store, bucket: FolderBucket, verdict: Approve, text: bytes
) -> None:
    decided(store, verdict, WITH_FIGURES)
    for _ in range(2):
        publish.handler(event("publish-approved"), Context())
    stem = PUBLISHED.removesuffix(".md")
    there = {info.key: bucket.get(info.key, max_bytes=1000) for info in bucket.list("published/")}
    assert there == {
        f"{stem}.chart.svg": b"<svg/>\n",
        f"{stem}.figures.csv": "Größe\n1\n".encode(),
        PUBLISHED: text,
    }


@pytest.mark.guarantee("G8")
@pytest.mark.parametrize(
    "altered",
    [
        pytest.param((TABLE, replace(CHART, text="<svg></svg>\n")), id="another chart"),
        pytest.param((TABLE,), id="one is gone"),
        pytest.param((), id="all are gone"),
    ],
)
def test_g8_attachments_that_are_not_the_approved_ones_are_not_published(
    store: Store, bucket: FolderBucket, monkeypatch: pytest.MonkeyPatch, altered: tuple[Attachment, ...]
) -> None:
    decided(store, Approve(), WITH_FIGURES)
    monkeypatch.setattr(store, "draft", lambda key: StoredDraft(replace(WITH_FIGURES, attachments=altered)))
    publish.handler(event("publish-approved"), Context())
    assert list(bucket.list("published/")) == []
    assert status(store) is Status.PUBLISH_UNKNOWN


@pytest.mark.guarantee("G8")
@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(lambda store: drafted(store), id="pending"),
        pytest.param(lambda store: decided(store, Reject(RejectReason.TONE)), id="rejected"),
        pytest.param(lambda store: None, id="without a row"),
    ],
)
def test_g8_what_no_person_approved_is_not_published(
    store: Store, bucket: FolderBucket, prepare: Callable[[Store], object]
) -> None:
    prepare(store)
    before = store.run(KEY)
    assert publish.handler(event("publish-approved"), Context()) == {"batchItemFailures": []}
    assert list(bucket.list("published/")) == []
    assert store.run(KEY) == before


@pytest.mark.guarantee("G8")
def test_g8_a_text_that_is_not_the_approved_one_is_not_published(
    store: Store, bucket: FolderBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided(store, Approve())
    altered = StoredDraft(replace(DRAFT, body="Something else."))
    monkeypatch.setattr(store, "draft", lambda key: altered)
    publish.handler(event("publish-approved"), Context())
    assert list(bucket.list("published/")) == []
    assert status(store) is Status.PUBLISH_UNKNOWN


def unread(store: Store, rules: Rules = UNREAD) -> Run:
    """Store a draft that nobody reviews."""
    claimed = store.claim(message(), Limits(3, None, 0), owner="me", now=SLOT, lease_until=SLOT + timedelta(minutes=5))
    assert isinstance(claimed, Claimed)
    stored = store.store(claimed.run, DRAFT, {}, Bill(), now=SLOT, rules=rules)
    assert isinstance(stored, Settled)
    return stored.run


@pytest.mark.guarantee("G8")
def test_g8_a_text_that_need_not_be_reviewed_is_published_by_its_own_field(store: Store, bucket: FolderBucket) -> None:
    unread(store)
    publish.handler(event("publish-approved"), Context())
    assert bucket.get(PUBLISHED, max_bytes=1000) == b"# Friday\n\nTwo mails.\n"
    assert status(store) is Status.PUBLISHED


@pytest.mark.guarantee("G8")
def test_g8_a_text_that_need_not_be_reviewed_is_sent_only_as_it_was_stored(
    store: Store, bucket: FolderBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread(store)
    monkeypatch.setattr(store, "draft", lambda key: StoredDraft(replace(DRAFT, body="Something else.")))
    publish.handler(event("publish-approved"), Context())
    assert list(bucket.list("published/")) == []
    assert status(store) is Status.PUBLISH_UNKNOWN


@pytest.mark.guarantee("G8")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"decision": None}, id="approved by nobody"),
        pytest.param({"rules": NO_RULES}, id="let through unread, and not by its own field"),
        pytest.param({"rules": NO_RULES, "decision": Decision("ada", SLOT, text_hash("a", "b"))}, id="another text"),
    ],
)
def test_g8_what_says_approved_and_was_neither_read_nor_need_not_be_is_not_published(
    store: Store, bucket: FolderBucket, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    if "rules" in change:
        unread(store)
    else:
        decided(store, Approve())
    read = store.run
    monkeypatch.setattr(store, "run", lambda key: replace(read(key), **change))  # type: ignore[type-var]
    publish.handler(event("publish-approved"), Context())
    assert list(bucket.list("published/")) == []
    row = read(KEY)
    assert row is not None
    assert (row.status, row.detail) == (Status.PUBLISH_UNKNOWN, "nothing was sent: no person approved this text")


@pytest.mark.guarantee("G8")
@pytest.mark.parametrize("why", [Expire(), Supersede(RunKey("daily-digest", SLOT + timedelta(days=1)))])
def test_g8_what_was_withdrawn_is_never_published(store: Store, bucket: FolderBucket, why: Withdrawal) -> None:
    drafted(store)
    run = store.run(KEY)
    assert run is not None
    store.withdraw(run, why, now=SLOT)
    publish.handler(event("publish-approved"), Context())
    assert list(bucket.list("published/")) == []


def test_a_repeated_record_publishes_once(store: Store, bucket: FolderBucket) -> None:
    decided(store, Approve())
    publish.handler(event("publish-approved"), Context())
    row = store.run(KEY)
    publish.handler(event("publish-approved"), Context())
    assert store.run(KEY) == row
    assert len(list(bucket.list("published/"))) == 1


@pytest.mark.guarantee("G8")
def test_g8_a_channel_that_is_not_known_is_a_persons_to_settle_and_nothing_is_sent(
    store: Store, bucket: FolderBucket
) -> None:
    decided(store, Approve(), replace(DRAFT, channels=(*DRAFT.channels, Channel("pigeon", "roof"))))
    assert publish.handler(event("publish-approved"), Context()) == {"batchItemFailures": []}
    assert list(bucket.list("published/")) == []
    run = store.run(KEY)
    assert run is not None
    assert run.status is Status.PUBLISH_UNKNOWN
    assert "channel 'pigeon' is not known" in str(run.detail)


def test_a_draft_that_cannot_be_sent_comes_again_and_stays_approved(
    store: Store, bucket: FolderBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    decided(store, Approve())
    monkeypatch.setattr(FolderBucket, "put", full)
    records = event("publish-approved")
    answer = publish.handler(records, Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": records["Records"][0]["dynamodb"]["SequenceNumber"]}]}
    assert status(store) is Status.APPROVED


def test_a_damaged_row_holds_up_none_of_the_runs_behind_it(
    store: Store, bucket: FolderBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided(store, Approve())
    damaged = json.loads(json.dumps(event("publish-approved")).replace("daily-digest", "weekly-report"))
    records = {"Records": [*damaged["Records"], *event("publish-approved")["Records"]]}
    read = store.run

    def run(key: RunKey) -> Run | None:
        if key.drafter == "weekly-report":
            raise UnreadableRow(f"run {key}: its contract is not JSON")
        return read(key)

    monkeypatch.setattr(store, "run", run)
    assert publish.handler(records, Context()) == {"batchItemFailures": []}
    assert status(store) is Status.PUBLISHED


def test_a_row_whose_name_is_no_drafters_is_named_and_holds_up_none_of_the_runs_behind_it(
    store: Store, bucket: FolderBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided(store, Approve())
    misnamed = json.loads(json.dumps(event("publish-approved")).replace("RUN#daily-digest", "RUN#Bad Name"))
    told: list[str] = []
    monkeypatch.setattr(publish.logger, "error", lambda text, *values: told.append(text % values))
    records = {"Records": [*misnamed["Records"], *event("publish-approved")["Records"]]}
    assert publish.handler(records, Context()) == {"batchItemFailures": []}
    assert status(store) is Status.PUBLISHED
    (line,) = told
    assert "RUN#Bad Name" in line


def test_a_row_of_another_kind_is_not_a_run(store: Store, bucket: FolderBucket) -> None:
    text = json.dumps(event("publish-approved")).replace("RUN#", "TEXT#")
    decided(store, Approve())
    assert publish.handler(json.loads(text), Context()) == {"batchItemFailures": []}
    assert status(store) is Status.APPROVED
