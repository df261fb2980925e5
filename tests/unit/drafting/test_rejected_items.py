"""What becomes of the items of a rejected draft, from the mail to the next draft, over a real store."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from attempt import Delivery, Done, Workplace
from drafter import Drafter
from drafting import draft_run
from galley.retry import NeverSucceeds
from galley.runs import RejectReason, Run, RunKey, Status
from galley.store import Approve, Reject, Settled, Store
from galley_cli.local.bucket import FolderBucket
from model import Model
from offline import OfflineModel
from rejected_drafts import StoredRejections
from support.outside import SLOT, FixedSchedules, RecordingQueue, message
from writing import Answer, Brief

DAY = timedelta(days=1)


class Refusing(OfflineModel):
    """A model that writes nothing."""

    def write(self, brief: Brief, *, remaining: timedelta) -> Answer:
        raise NeverSucceeds("refusal", "the model refused to write this draft")


def _drafter(rejected_items: str) -> Drafter:
    return Drafter.model_validate(
        {
            "name": "daily-digest",
            "title": "Morning digest",
            "shape": "digest",
            "instructions": "Be short.",
            "pending_limit": 9,
            "digest": {"rejected_items": rejected_items},
            "sources": [{"kind": "mail", "id": "inbox", "prefix": "mail/"}],
        }
    )


@dataclass
class Mornings:
    """A digest that is drafted morning after morning."""

    store: Store
    bucket: FolderBucket
    drafter: Drafter
    slot: datetime = SLOT - DAY

    def mail(self, subject: str) -> None:
        """Deliver a mail that was written long before every slot."""
        head = f"From: ann@example.com\nSubject: {subject}\nDate: Mon, 2 Mar 2026 06:00:00 +0000"
        raw = f"{head}\nMessage-ID: <{subject}@example.com>\n\nAbout {subject}.\n".encode()
        self.bucket.put(f"mail/{subject}.eml", raw, content_type="message/rfc822")

    def draft(self, model: Model | None = None) -> Run:
        """Have the next morning's digest drafted."""
        self.slot += DAY
        place = Workplace(
            store=self.store,
            queue=RecordingQueue(),
            bucket=self.bucket,
            schedules=FixedSchedules(()),
            model=model or OfflineModel(),
            fetch=None,  # type: ignore[arg-type]
            desk_url="https://desk.example",
            now=lambda: self.slot + timedelta(minutes=1),
            drafter=lambda name: self.drafter,
        )
        body = message(slot=self.slot, schedule=None).model_dump_json()
        done = draft_run(Delivery(body, "receipt", 1), place, f"request-{self.slot}", timedelta(minutes=5))
        assert done == Done()
        run = self.store.run(RunKey("daily-digest", self.slot))
        assert run is not None
        return run

    def decide(self, run: Run, verdict: Approve | Reject) -> None:
        """Decide on a draft, as its reviewer read it."""
        decided = self.store.decide(
            run.key,
            verdict,
            version=run.version,
            read_hash=str(run.text_hash),
            reviewer="ann",
            now=self.slot + timedelta(hours=2),
        )
        assert isinstance(decided, Settled)

    def reject(self, run: Run) -> None:
        """Reject a draft."""
        self.decide(run, Reject(RejectReason.IRRELEVANT))

    def titles(self, run: Run) -> list[str]:
        """Return the titles of a draft's items."""
        stored = self.store.draft(run.key)
        assert stored is not None
        return [item.title for item in stored.draft.items]


def _mornings(store: Store, folder: Path, rejected_items: str) -> Mornings:
    return Mornings(store, FolderBucket(folder / "bucket"), _drafter(rejected_items))


def test_items_of_a_rejected_draft_are_dropped(store: Store, tmp_path: Path) -> None:
    mornings = _mornings(store, tmp_path, "drop")
    mornings.mail("Rent")
    mornings.reject(mornings.draft())
    assert mornings.draft().status is Status.EMPTY


@pytest.mark.guarantee("G6")
def test_g6_items_of_a_rejected_draft_are_offered_once_more_and_only_with_a_draft_that_is_stored(
    store: Store, tmp_path: Path
) -> None:
    mornings = _mornings(store, tmp_path, "offer_again")
    mornings.mail("Rent")
    mornings.reject(mornings.draft())
    mornings.mail("Lunch")
    assert mornings.draft(Refusing()).status is Status.FAILED
    third = mornings.draft()
    assert mornings.titles(third) == ["Lunch", "Rent"], "what the failed run had is offered by the next"
    mornings.reject(third)
    fourth = mornings.draft()
    assert mornings.titles(fourth) == ["Lunch"], "the rent was offered twice"
    mornings.reject(fourth)
    assert mornings.draft().status is Status.EMPTY


def test_items_of_an_approved_draft_are_not_offered_again(store: Store, tmp_path: Path) -> None:
    mornings = _mornings(store, tmp_path, "offer_again")
    mornings.mail("Rent")
    mornings.decide(mornings.draft(), Approve())
    assert mornings.draft().status is Status.EMPTY


def test_a_draft_that_is_rejected_days_later_is_offered_then(store: Store, tmp_path: Path) -> None:
    mornings = _mornings(store, tmp_path, "offer_again")
    mornings.mail("Rent")
    first = mornings.draft()
    assert [mornings.draft().status for _ in range(3)] == [Status.EMPTY] * 3
    mornings.reject(first)
    assert mornings.titles(mornings.draft()) == ["Rent"]


def test_a_rejected_draft_whose_text_is_not_there_has_no_items(store: Store) -> None:
    assert StoredRejections(store, "daily-digest").items(SLOT) is None
    assert StoredRejections(store, "daily-digest").slots() == []
