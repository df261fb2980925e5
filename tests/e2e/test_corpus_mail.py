"""A mailbox of real messages, broken ones among them: each is in a digest or named beside one, and in one alone."""

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

import draft
from drafter import load_drafter
from galley import system
from galley.runs import Run, RunKey, Status
from galley_cli.local.environment import function_environment
from galley_cli.local.state import StateDirectory
from galley_cli.local.system import LocalSystem
from galley_cli.template import DRAFT, TemplateSchedules, read_template
from support.outside import ROOT, Context, message

PREFIX = "mail/daily-digest/"
FIRST_SLOT = datetime(2026, 11, 27, 6, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


@dataclass
class Mailbox:
    """The bucket of a local system, and a digest that is drafted from it slot after slot, as the runner would."""

    outside: LocalSystem
    now: datetime = FIRST_SLOT

    @property
    def keys(self) -> set[str]:
        return {info.key for info in self.outside.local_bucket.list(PREFIX)}

    def copy(self, corpus: Path, arrived: datetime, name: str = "{}") -> None:
        """Copy the files of a folder to where the digest looks."""
        for path in sorted(corpus.iterdir()):
            copied = self.outside.state.bucket / PREFIX / name.format(path.name)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copied)
            os.utime(copied, (arrived.timestamp(), arrived.timestamp()))

    def draft(self) -> "Told":
        """Have the digest of this morning drafted, and let the next morning come."""
        key = RunKey("daily-digest", self.now)
        body = message(slot=key.slot, schedule=None).model_dump_json()
        received = {"ApproximateReceiveCount": "1"}
        record = {"messageId": "m-1", "receiptHandle": "r-1", "body": body, "attributes": received}
        assert draft.handler({"Records": [record]}, Context(aws_request_id=str(key))) == {"batchItemFailures": []}
        run, stored = self.outside.local_store.run(key), self.outside.local_store.draft(key)
        assert run is not None
        self.now += DAY
        if stored is None:
            return Told(run, (), ())
        aside = [
            key
            for key in self.keys
            for warning in stored.draft.warnings
            if warning.startswith((f"inbox: {key}: not read", f"inbox: {key}: not taken"))
        ]
        return Told(run, tuple(item.source for item in stored.draft.items), tuple(aside))


@dataclass(frozen=True)
class Told:
    """What a run tells: the keys of its items, and the keys that its warnings say were set aside, and why."""

    run: Run
    items: tuple[str, ...]
    aside: tuple[str, ...]


@pytest.fixture
def mailbox(tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    """A mailbox to which the corpus was copied the evening before."""
    template = read_template(ROOT / "template.yaml")
    variables = function_environment(
        template.functions[DRAFT], template.path, desk_url="http://127.0.0.1:8700", inherited={}
    )
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with closing(StateDirectory.open(tmp_path / "state")) as state:
        outside = LocalSystem(state, TemplateSchedules([]), {}, now=lambda: mailbox.now)
        mailbox = Mailbox(outside)
        mailbox.copy(shared_data / "mail", FIRST_SLOT - 9 * HOUR)
        undo = system.install(outside)
        yield mailbox
        undo()


@pytest.mark.guarantee("G6")
def test_g6_every_message_of_the_corpus_is_in_the_digest_or_named_beside_it(mailbox: Mailbox) -> None:
    told = mailbox.draft()
    assert told.run.status is Status.PENDING
    assert len(told.items) > 20
    assert Counter((*told.items, *told.aside)) == Counter(mailbox.keys)

    again = mailbox.draft()
    assert (again.run.status, again.run.reason) == (Status.EMPTY, "nothing_new"), "it was all told"


@pytest.mark.guarantee("G6")
def test_g6_what_is_too_much_for_one_digest_is_in_the_next_ones_and_in_one_of_them_alone(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = load_drafter("daily-digest")
    (inbox,) = whole.sources
    small = whole.model_copy(update={"sources": (inbox.model_copy(update={"max_items": 6}),), "pending_limit": 100})
    monkeypatch.setattr(draft, "Workplace", partial(draft.Workplace, drafter=lambda name: small))
    told = []
    while (one := mailbox.draft()).run.status is Status.PENDING:
        assert 0 < len(one.items) <= 6
        told.append(one)
    assert one.run.status is Status.EMPTY
    assert len(told) >= 4
    assert Counter(key for one in told for key in (*one.items, *one.aside)) == Counter(mailbox.keys)


def test_a_second_copy_of_the_mailbox_is_named_once_and_not_digested_again(mailbox: Mailbox, shared_data: Path) -> None:
    first = mailbox.draft()
    mailbox.copy(shared_data / "mail", mailbox.now - HOUR, "again-{}")
    held = mailbox.draft()
    assert (held.run.status, held.items) == (Status.EMPTY, ())
    assert "the same message as an earlier one" in str(held.run.detail)
    assert "the same message as an earlier one" not in str(mailbox.draft().run.detail)
    new = b"From: a@example.com\nTo: b@example.com\nSubject: New\nMessage-ID: <new@example.com>\n\nSomething new.\n"
    mailbox.outside.local_bucket.put(f"{PREFIX}new.eml", new, content_type="message/rfc822")
    second = mailbox.draft()
    assert second.items == (f"{PREFIX}new.eml",)
    unreadable = {key.replace(PREFIX, f"{PREFIX}again-") for key in first.aside}
    assert set(second.aside) == unreadable, "what could not be read is named by the next draft"
    assert not set(first.items) & set(second.items)
