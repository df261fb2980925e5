"""What is published is counted, and what somebody else settled meanwhile is left to him."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from galley import observe
from galley.drafts import Channel, Draft, text_hash
from galley.runs import Run, RunKey, Status
from galley.store import Approve, Bill, Claimed, Limits, Settled, Store
from galley_cli.local.bucket import FolderBucket
from publishing import Press, publish
from support.outside import SLOT, message

KEY = RunKey("daily-digest", SLOT)
DRAFT = Draft("Friday", "Two mails.", (), (), "offline", (Channel("s3", "published"),))


@pytest.fixture(params=[pytest.param(DRAFT, id="one channel")])
def approved(store: Store, request: pytest.FixtureRequest) -> Run:
    """A run that a person said yes to."""
    draft: Draft = request.param
    claimed = store.claim(message(), Limits(3, None, 0), owner="me", now=SLOT, lease_until=SLOT + timedelta(minutes=5))
    assert isinstance(claimed, Claimed)
    store.store(claimed.run, draft, {}, Bill(), now=SLOT)
    read_hash = text_hash(draft.title, draft.body)
    decided = store.decide(KEY, Approve(), version=2, read_hash=read_hash, reviewer="ada", now=SLOT)
    assert isinstance(decided, Settled)
    return decided.run


def test_a_publication_is_counted(store: Store, approved: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(observe, "count", told.append)
    published = publish(KEY, Press(store, FolderBucket(tmp_path / "bucket"), lambda: SLOT))
    assert published is not None
    assert (published.status, published.detail, told) == (Status.PUBLISHED, "s3:published", ["run_published"])


@pytest.mark.parametrize("approved", [replace(DRAFT, channels=())], indirect=True, ids=["no channel"])
def test_a_draft_that_goes_nowhere_is_published_all_the_same_and_says_so(
    store: Store, approved: Run, tmp_path: Path
) -> None:
    published = publish(KEY, Press(store, FolderBucket(tmp_path / "bucket"), lambda: SLOT))
    assert published is not None
    assert (published.status, published.detail) == (Status.PUBLISHED, "no channel")


def test_a_publication_that_somebody_else_settled_meanwhile_stays_as_he_settled_it(
    store: Store, approved: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = store.settle_publication

    def overtaken(run: Run, status: Status, detail: str, **named: object) -> object:
        settle(run, Status.PUBLISH_UNKNOWN, "by hand", now=SLOT)
        return settle(run, status, detail, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "settle_publication", overtaken)
    left = publish(KEY, Press(store, FolderBucket(tmp_path / "bucket"), lambda: SLOT))
    assert left == store.run(KEY)
    assert left is not None
    assert (left.status, left.detail) == (Status.PUBLISH_UNKNOWN, "by hand")


@pytest.mark.guarantee("G8")
def test_g8_an_approved_run_without_a_text_is_a_persons_to_settle(
    store: Store, approved: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "draft", lambda key: None)
    left = publish(KEY, Press(store, FolderBucket(tmp_path / "bucket"), lambda: SLOT))
    assert left is not None
    assert left.status is Status.PUBLISH_UNKNOWN
    assert not list((tmp_path / "bucket").rglob("*.md"))
