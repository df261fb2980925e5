"""Documentation at two versions: the counts are right each time, the index equals the folder, and much is held."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import draft
from galley import system
from galley.runs import RejectReason, Run, RunKey, Status
from galley.store import Approve, Reject, Settled
from galley_cli.local.environment import function_environment
from galley_cli.local.state import StateDirectory
from galley_cli.local.system import LocalSystem
from galley_cli.template import DRAFT, TemplateSchedules, read_template
from support.outside import ROOT, Context, message

PREFIX = "documents/handbook/"
FIRST_SLOT = datetime(2026, 11, 26, 16, tzinfo=UTC)
DAY = timedelta(days=1)
Tree = Mapping[str, bytes]


@dataclass
class Library:
    """The bucket of a local system, and a sync that is drafted from it night after night, as the runner would.

    ``words_of`` keeps a hash of each version's words, by the document's name.
    """

    outside: LocalSystem
    now: datetime = FIRST_SLOT
    words_of: dict[str, set[str]] = field(default_factory=dict)

    def become(self, tree: Tree) -> None:
        """Let the documents be those of a folder, and no others."""
        bucket = self.outside.local_bucket
        for info in list(bucket.list(PREFIX)):
            if info.key.removeprefix(PREFIX) not in tree:
                bucket.delete(info.key)
        for name, body in tree.items():
            bucket.put(PREFIX + name, body, content_type="text/plain")
            words = " ".join(body.decode(errors="replace").split())
            self.words_of.setdefault(name, set()).add(hashlib.sha256(words.encode()).hexdigest())

    def night(self) -> "Told":
        """Have the note of this night drafted, and let the next night come."""
        key = RunKey("nightly-sync", self.now)
        body = message("nightly-sync", key.slot, schedule=None).model_dump_json()
        received = {"ApproximateReceiveCount": "1"}
        record = {"messageId": "m-1", "receiptHandle": "r-1", "body": body, "attributes": received}
        assert draft.handler({"Records": [record]}, Context(aws_request_id=str(key))) == {"batchItemFailures": []}
        run, stored = self.outside.local_store.run(key), self.outside.local_store.draft(key)
        assert run is not None
        self.now += DAY
        return Told(run, "" if stored is None else stored.body, () if stored is None else stored.draft.warnings)

    def decide(self, run: Run, verdict: Approve | Reject) -> None:
        """Decide about a draft, as it was read."""
        decided = self.outside.local_store.decide(
            run.key,
            verdict,
            version=run.version,
            read_hash=str(run.text_hash),
            reviewer="ada",
            now=self.now - DAY / 2,
        )
        assert isinstance(decided, Settled)

    def index(self) -> dict[str, str]:
        """Return the hash in each entry of the index, by the document's name. Its chunks have all of its words."""
        hashes: dict[str, str] = {}
        bucket = self.outside.local_bucket
        for info in bucket.list("index/nightly-sync/"):
            entry = json.loads(bucket.get(info.key, max_bytes=10**7))
            name = entry["id"].removeprefix(PREFIX)
            hashes[name] = entry["sha256"]
            assert info.key == f"index/nightly-sync/handbook/{PREFIX}{name}.json"
            assert len({chunk["id"] for chunk in entry["chunks"]}) == len(entry["chunks"])
            words = " ".join(chunk["text"] for chunk in entry["chunks"]).split()
            assert hashlib.sha256(" ".join(words).encode()).hexdigest() in self.words_of[name]
        return hashes


@dataclass(frozen=True)
class Told:
    """What a night came to."""

    run: Run
    body: str
    warnings: tuple[str, ...]

    @property
    def counts(self) -> str:
        """Return the numbers of the figures that are not zero, each with its column's name."""
        rows = [line.strip("| ").split(" | ")[1:] for line in self.body.splitlines() if line.startswith("| ")]
        header, _, numbers = rows
        return ", ".join(f"{number} {name}" for name, number in zip(header, numbers, strict=True) if number != "0")


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """A local system without documents."""
    template = read_template(ROOT / "template.yaml")
    variables = function_environment(
        template.functions[DRAFT], template.path, desk_url="http://127.0.0.1:8700", inherited={}
    )
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with closing(StateDirectory.open(tmp_path / "state")) as state:
        outside = LocalSystem(state, TemplateSchedules([]), {}, now=lambda: library.now)
        library = Library(outside)
        undo = system.install(outside)
        yield library
        undo()


def tree(shared_data: Path, version: str) -> Tree:
    """Return all files of a version, the two pictures too."""
    root = shared_data / "documents" / f"django-{version}"
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def texts(files: Tree) -> dict[str, str]:
    """Return the hash of each file that is text."""
    return {name: hashlib.sha256(body).hexdigest() for name, body in files.items() if name.endswith(".txt")}


def test_5_1_then_5_2_then_5_1_again(library: Library, shared_data: Path) -> None:
    older, newer = tree(shared_data, "5.1"), tree(shared_data, "5.2")
    assert (len(texts(older)), len(texts(newer))) == (60, 76)
    both = texts(older).keys() & texts(newer).keys()
    changed = sum(texts(older)[name] != texts(newer)[name] for name in both)
    added = len(texts(newer)) - len(both)
    assert (changed, added, len(both)) == (21, 16, 60), "16 of 76 are more than a tenth, and more than five"

    library.become(older)
    first = library.night()
    assert first.run.status is Status.PENDING
    assert first.counts == "60 Added, 2 Failed, 60 Now in the index"
    assert library.index() == texts(older)
    pictures = "howto/_images/postmortem.png is not text in UTF-8"
    assert [pictures in warning for warning in first.warnings if "not taken in" in warning] == [True]
    library.decide(first.run, Approve())

    library.become(newer)
    second = library.night()
    assert second.counts == "60 Before, 16 Added, 21 Changed, 39 Unchanged, 2 Failed, 76 Now in the index"
    assert library.index() == texts(newer)
    library.decide(second.run, Approve())

    library.become(older)
    third = library.night()
    assert third.counts == "76 Before, 21 Changed, 39 Unchanged, 2 Failed, 16 Held, 76 Now in the index"
    only_newer = {name: one for name, one in texts(newer).items() if name not in both}
    assert library.index() == texts(older) | only_newer, "what changed is taken in, what is gone is held"
    assert "Held for approval: 16 of 76 documents are gone and still in the index." in third.body
    assert "Approving this draft lets the next run take out those that are still gone" in third.body
    for name in only_newer:
        assert f"`{PREFIX}{name}`" in third.body

    undecided = library.night()
    assert (undecided.run.status, undecided.run.reason) == (Status.EMPTY, "nothing_new")
    assert "16 deletes wait for the decision on the draft of 2026-11-28T16:00:00Z" in str(undecided.run.detail)
    assert len(library.index()) == 76

    library.decide(third.run, Approve())
    fifth = library.night()
    assert fifth.counts == "76 Before, 16 Deleted, 60 Unchanged, 2 Failed, 60 Now in the index"
    assert "deleted by approval: 16" in fifth.body
    assert library.index() == texts(older)
    assert library.night().run.status is Status.EMPTY


def test_what_a_person_does_not_let_go_stays(library: Library, shared_data: Path) -> None:
    older, newer = tree(shared_data, "5.1"), tree(shared_data, "5.2")
    library.become(newer)
    library.decide(library.night().run, Approve())
    library.become(older)
    asked = library.night()
    library.decide(asked.run, Reject(RejectReason.OTHER, "They are still needed."))
    for _ in range(3):
        quiet = library.night()
        assert quiet.run.status is Status.EMPTY
        assert (
            "16 documents are gone and stay in the index, since the draft of 2026-11-27T16:00:00Z was rejected"
            in str(quiet.run.detail)
        )
    assert library.index().keys() == texts(newer).keys()


def test_a_folder_that_is_moved_is_no_delete(library: Library, shared_data: Path) -> None:
    files = tree(shared_data, "5.1")
    library.become(files)
    library.decide(library.night().run, Approve())
    moved = {f"django/{name}": body for name, body in files.items()}
    library.become(moved)
    told = library.night()
    assert told.counts == "60 Before, 60 Moved, 2 Failed, 60 Now in the index"
    assert library.index() == texts(moved)
