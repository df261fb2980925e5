"""The sync: what changed, what the index holds afterwards, and that neither a crash nor an empty listing harms it."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from drafter import Drafter
from galley.bucket import ObjectInfo
from galley.instants import format_instant
from galley.retry import NeverSucceeds, RetryLater
from galley.runs import Decision, Origin, Run, Status
from offline import OfflineModel
from shapes import sync
from shapes.shape import Cursor, Material
from shapes.sync import manifest, note
from sources.documents import CHUNK_CHARS
from sources.fetch import Fetched, FetchError
from support.briefs import a_brief
from support.memory_bucket import MemoryBucket
from support.outside import CONTRACT, SLOT
from writing import compose, read_answer

DAY = timedelta(days=1)
DRAFTER = Drafter.model_validate(
    {
        "name": "nightly-sync",
        "title": "Handbook",
        "shape": "sync",
        "instructions": "Be short.",
        "sources": [{"kind": "documents", "id": "handbook", "prefix": "docs/"}],
    }
)


def put(bucket: MemoryBucket, **texts: str | None) -> None:
    """Put documents by their names; None deletes one."""
    for name, text in texts.items():
        if text is None:
            bucket.delete(f"docs/{name}.md")
        else:
            bucket.put(f"docs/{name}.md", text.encode(), content_type="text/markdown")


def index(bucket: MemoryBucket) -> dict[str, Any]:
    """Return the entries of the index by the names of their documents."""
    return {
        info.key.removeprefix("index/nightly-sync/handbook/docs/").removesuffix(".md.json"): json.loads(
            bucket.get(info.key, max_bytes=10**9)
        )
        for info in bucket.list("index/")
    }


def chunks_of(bucket: MemoryBucket, name: str) -> list[str]:
    """Return the texts of an entry's chunks."""
    return [chunk["text"] for chunk in index(bucket)[name]["chunks"]]


class Nights:
    """Runs one night after the other, with the cursor that the night before stored, and what became of its draft."""

    def __init__(self, assign: Any) -> None:
        self.assign = assign
        self.slot = SLOT
        self.cursors: Mapping[str, Cursor] = {}
        self.runs: dict[datetime, Run] = {}

    def run(self, *, stored: bool = True, drafter: Drafter = DRAFTER, **more: Any) -> Material:
        """Collect; with ``stored=False`` the run dies before its draft is stored."""
        assignment = self.assign(drafter, cursors=self.cursors, slot=self.slot, earlier_run=self.runs.get, **more)
        material: Material = sync.collect(assignment)
        if stored:
            self.cursors = json.loads(json.dumps({**self.cursors, **material.cursors}))
            if material.nothing_new is None:
                self.runs[self.slot] = a_run(self.slot, Status.PENDING)
        self.slot += DAY
        return material

    def decide(self, status: Status, *, by_a_person: bool = True) -> str:
        """Let the last draft have this status now, and return its slot."""
        slot = max(self.runs)
        decision = Decision("ada", slot + timedelta(hours=3), "hash") if by_a_person else None
        self.runs[slot] = replace(a_run(slot, status), decision=decision)
        return format_instant(slot)


def a_run(slot: datetime, status: Status) -> Run:
    """Return the row of a run of the drafter."""
    return Run(
        drafter=DRAFTER.name,
        slot=slot,
        status=status,
        version=1,
        origin=Origin.SCHEDULE,
        contract=CONTRACT,
        created=slot,
        changed=slot,
    )


@pytest.fixture
def nights(assign: Any) -> Nights:
    """Nights of the sample drafter."""
    return Nights(assign)


def counts(material: Material, place: int = 0) -> str:
    """Return what the figures say of a source: each number that is not zero, with its column's name."""
    header, _, *rows = material.figures.splitlines()
    names, numbers = (line.strip("| ").split(" | ")[1:] for line in (header, rows[place]))
    told = [f"{number} {name.lower()}" for name, number in zip(names, numbers, strict=True) if number != "0"]
    return ", ".join(told)


def test_the_first_night_takes_everything_in(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, leave="# Leave\n\nAsk Tom.", safety="Gloves off.")
    material = nights.run()
    assert [(item.id, item.title, item.source) for item in material.items] == [
        ("d1", "Leave", "docs/leave.md"),
        ("d2", "safety.md", "docs/safety.md"),
    ]
    assert material.items[0].text == "Added: docs/leave.md. It begins:\n\n# Leave\n\nAsk Tom."
    assert counts(material) == "2 added, 2 now in the index"
    assert material.warnings == ()
    assert index(bucket)["leave"] == {
        "id": "docs/leave.md",
        "title": "Leave",
        "link": None,
        "sha256": hashlib.sha256(b"# Leave\n\nAsk Tom.").hexdigest(),
        "chunks": [
            {"id": hashlib.sha256(b"# Leave\n\nAsk Tom.").hexdigest()[:16], "text": "# Leave\n\nAsk Tom."},
        ],
    }


def test_a_night_without_changes_drafts_nothing_and_stores_nothing(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, leave="# Leave", safety="# Safety")
    nights.run()
    material = nights.run()
    assert material == Material(nothing_new="docs/ has not changed, 2 documents")


def test_the_index_of_a_source_that_is_named_no_more_is_told_until_somebody_removes_it(
    bucket: MemoryBucket, nights: Nights
) -> None:
    put(bucket, leave="# Leave", pay="# Pay")
    nights.run()
    renamed = DRAFTER.model_copy(update={"sources": (DRAFTER.sources[0].model_copy(update={"id": "rules"}),)})
    told = (
        "the index still holds 2 documents of source 'handbook', which the drafter's file does not name any more:"
        " remove index/nightly-sync/handbook/ from the bucket, or name the source again"
    )
    assert told in nights.run(drafter=renamed).warnings
    assert told in str(nights.run(drafter=renamed).nothing_new), "a quiet night says so too"
    for info in list(bucket.list("index/nightly-sync/handbook/")):
        bucket.delete(info.key)
    assert told not in str(nights.run(drafter=renamed).nothing_new)
    assert nights.cursors["handbook"] == {"documents": {}}


def test_an_empty_prefix_is_no_news(nights: Nights) -> None:
    assert nights.run() == Material(nothing_new="docs/ has not changed, no documents")


def test_what_was_added_changed_and_deleted(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, a="# A", b="# B", c="# C", d="# D")
    nights.run()
    put(bucket, b="# B\n\nNow other.", c=None, e="# E")
    material = nights.run()
    assert [(item.id, item.text) for item in material.items] == [
        ("d1", "Changed: docs/b.md. It now begins:\n\n# B\n\nNow other."),
        ("d2", "Added: docs/e.md. It begins:\n\n# E"),
        ("d3", "Deleted: docs/c.md. It is no longer there and was taken out of the index."),
    ]
    assert counts(material) == "4 before, 1 added, 1 changed, 1 deleted, 2 unchanged, 4 now in the index"
    assert sorted(index(bucket)) == ["a", "b", "d", "e"]
    assert chunks_of(bucket, "b") == ["# B\n\nNow other."]
    assert material.warnings == ()


def test_the_same_text_written_again_is_no_change(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, a="# A")
    nights.run()
    put(bucket, a="# A")
    assert nights.run().nothing_new


@pytest.mark.guarantee("G6")
def test_g6_a_run_that_dies_after_writing_the_index_is_made_up_by_the_next(
    bucket: MemoryBucket, nights: Nights
) -> None:
    put(bucket, a="# A", b="# B")
    nights.run()
    put(bucket, a="# A, new", b=None, c="# C")
    died = nights.run(stored=False)
    again = nights.run()
    assert again == died
    assert counts(again) == "2 before, 1 added, 1 changed, 1 deleted, 2 now in the index"
    assert sorted(index(bucket)) == ["a", "c"]
    assert nights.run().nothing_new == "docs/ has not changed, 2 documents"


def test_a_document_that_went_back_after_a_run_died_is_right_in_the_index_again(
    bucket: MemoryBucket, nights: Nights
) -> None:
    put(bucket, a="# A")
    nights.run()
    put(bucket, a="# A, a mistake", b="# B")
    nights.run(stored=False)
    put(bucket, a="# A", b=None)
    material = nights.run()
    assert index(bucket) == {"a": index(bucket)["a"]}
    assert chunks_of(bucket, "a") == ["# A"]
    assert material.nothing_new == (
        "docs/ has not changed, 1 document; handbook: entries of the index were missing or not as they had been stored,"
        " written anew: docs/a.md; handbook: entries of the index that belonged to no document, removed: docs/b.md"
    )


def test_what_others_did_to_the_index_is_repaired(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, a="# A", b="# B", c="# C")
    nights.run()
    bucket.delete("index/nightly-sync/handbook/docs/a.md.json")
    bucket.put("index/nightly-sync/handbook/docs/b.md.json", b"{}", content_type="application/json")
    bucket.put("index/nightly-sync/handbook/docs/stray.md.json", b"{}", content_type="application/json")
    bucket.put("index/other-sync/docs/a.md.json", b"{}", content_type="application/json")
    put(bucket, c="# C, new")
    material = nights.run()
    assert material.warnings == (
        "handbook: entries of the index were missing or not as they had been stored, written anew:"
        " docs/a.md, docs/b.md",
        "handbook: entries of the index that belonged to no document, removed: docs/stray.md",
    )
    assert sorted(info.key for info in bucket.list("index/")) == [
        "index/nightly-sync/handbook/docs/a.md.json",
        "index/nightly-sync/handbook/docs/b.md.json",
        "index/nightly-sync/handbook/docs/c.md.json",
        "index/other-sync/docs/a.md.json",
    ]
    assert chunks_of(bucket, "b") == ["# B"]


@pytest.mark.parametrize("number", [1, 2, 60])
def test_a_suddenly_empty_prefix_removes_nothing_without_approval(
    bucket: MemoryBucket, nights: Nights, number: int
) -> None:
    names = [f"a{one:02}" for one in range(number)]
    put(bucket, **dict.fromkeys(names, "# A"))
    nights.run()
    put(bucket, **dict.fromkeys(names))
    material = nights.run()
    assert counts(material) == f"{number} before, {number} held, {number} now in the index"
    assert f"{number} of {number} documents are gone and still in the index." in material.figures
    assert sorted(index(bucket)) == names


class BreaksOff(MemoryBucket):
    """A bucket whose listings break off after so many objects."""

    whole = 10**9

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        for place, info in enumerate(super().list(prefix)):
            if place == self.whole:
                raise ConnectionError("the listing broke off")
            yield info


def test_a_listing_that_breaks_off_removes_nothing(assign: Any) -> None:
    bucket = BreaksOff()
    nights = Nights(lambda *args, **named: replace(assign(*args, **named), bucket=bucket))
    put(bucket, a="# A", b="# B", c="# C")
    nights.run()
    put(bucket, a="# A, new")
    bucket.whole = 1
    with pytest.raises(ConnectionError):
        nights.run()
    bucket.whole = 10**9
    assert sorted(index(bucket)) == ["a", "b", "c"]
    assert counts(nights.run()) == "3 before, 1 changed, 2 unchanged, 3 now in the index"


class Forgets(MemoryBucket):
    """A bucket that loses what is written to one key."""

    forgets = ""

    def put(self, key: str, body: bytes, *, content_type: str) -> None:
        if key != self.forgets:
            super().put(key, body, content_type=content_type)


def test_a_document_that_goes_while_it_is_read_counts_as_deleted(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, a="# A", b="# B")
    nights.run()
    put(bucket, b="# B, new")
    bucket.vanishing = {"docs/b.md"}
    assert counts(nights.run()) == "2 before, 1 deleted, 1 unchanged, 1 now in the index"
    assert sorted(index(bucket)) == ["a"]


def test_counts_that_do_not_agree_are_told_and_mended_the_next_night(assign: Any) -> None:
    bucket = Forgets()
    bucket.forgets = "index/nightly-sync/handbook/docs/b.md.json"
    nights = Nights(lambda *args, **named: replace(assign(*args, **named), bucket=bucket))
    put(bucket, a="# A", b="# B")
    assert nights.run().warnings == (
        "handbook: the counts do not agree: 0 before + 2 added - 0 deleted, but 1 are in the index;"
        " missing there or too many: docs/b.md",
    )
    bucket.forgets = ""
    assert "written anew: docs/b.md" in str(nights.run().nothing_new)
    assert sorted(index(bucket)) == ["a", "b"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"\xff\xfe\x00", "docs/odd.md is not text in UTF-8 (byte 0); convert it"),
        (b"PK\x03\x04\x00\x00", "docs/odd.md is not text, it has zero bytes in it; move it out of the prefix"),
        (b"x" * 101, "docs/odd.md has more than 100 bytes; split it"),
    ],
)
def test_a_document_that_cannot_be_read_is_named_and_the_others_are_taken(
    bucket: MemoryBucket, nights: Nights, monkeypatch: pytest.MonkeyPatch, body: bytes, said: str
) -> None:
    monkeypatch.setattr("sources.documents.MAX_BYTES", 100)
    put(bucket, a="# A", odd="# Odd")
    nights.run()
    put(bucket, a="# A, new")
    bucket.put("docs/odd.md", body, content_type="text/markdown")
    material = nights.run()
    assert material.warnings == (f"handbook: not taken in: {said}",)
    assert counts(material) == "2 before, 1 changed, 1 failed, 2 now in the index"
    assert chunks_of(bucket, "odd") == ["# Odd"], "what the index had of it stays"
    assert said in str(nights.run().nothing_new)


def test_a_name_too_long_for_the_index_is_told(bucket: MemoryBucket, nights: Nights) -> None:
    name = "n" * 1_000
    put(bucket, **{"a": "# A", name: "# Long"})
    material = nights.run()
    assert "has too long a name for the index; shorten it" in material.warnings[0]
    assert sorted(index(bucket)) == ["a"]


def test_folder_markers_are_no_documents(bucket: MemoryBucket, nights: Nights) -> None:
    bucket.put("docs/", b"", content_type="application/x-directory")
    bucket.put("docs/old/", b"", content_type="application/x-directory")
    assert nights.run().nothing_new == "docs/ has not changed, no documents"


def test_too_many_documents_are_refused_before_anything_is_written(
    bucket: MemoryBucket, nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, **{f"n{number}": "# N" for number in range(200)})
    monkeypatch.setattr(manifest, "MOST_BYTES", 20_000)
    with pytest.raises(NeverSucceeds, match=r"there are 200 documents; .* to another drafter") as failure:
        nights.run()
    assert failure.value.reason == "too_many_documents"
    assert index(bucket) == {}


def test_a_long_list_of_documents_takes_several_rows_of_which_each_fits(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, **{f"{number:04}-{'läng-name' * 6}": f"# {number}" for number in range(2_000)})
    material = nights.run()
    assert sorted(material.cursors) == ["handbook", "handbook.2"]
    assert all(len(json.dumps(cursor)) < 300_000 for cursor in material.cursors.values())
    assert len(material.items) == sync.MOST_ITEMS
    assert material.warnings[0].startswith("1960 more documents changed; they are not shown here: docs/")
    assert counts(material) == "2000 added, 2000 now in the index"
    assert nights.run().nothing_new == "docs/ has not changed, 2,000 documents"
    last = f"1999-{'läng-name' * 6}"
    put(bucket, **{last: "# Other"})
    material = nights.run()
    assert sorted(material.cursors) == ["handbook.2"], "only the row that changed moves"
    assert counts(material) == "2000 before, 1 changed, 1999 unchanged, 2000 now in the index"


def test_rows_that_a_list_no_longer_needs_are_emptied(
    bucket: MemoryBucket, nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "PART_BYTES", 500)
    put(bucket, **{f"n{number}": "# N" for number in range(10)})
    assert len(nights.run().cursors) > 2
    put(bucket, **{f"n{number}": None for number in range(5, 10)})
    nights.run()
    assert nights.cursors["handbook.2"] != {"documents": {}}
    put(bucket, **{f"n{number}": None for number in range(1, 5)})
    assert counts(nights.run()) == "5 before, 4 deleted, 1 unchanged, 1 now in the index"
    assert nights.cursors["handbook.2"] == {"documents": {}}
    assert nights.run().nothing_new == "docs/ has not changed, 1 document"


def test_a_long_document_is_shown_by_its_beginning_and_kept_whole(bucket: MemoryBucket, nights: Nights) -> None:
    paragraphs = [f"Paragraph {number}: " + "word " * 60 for number in range(40)]
    put(bucket, long="# Long\n\n" + "\n\n".join(paragraphs))
    material = nights.run()
    assert len(material.items[0].text) < note.ITEM_CHARS + 200
    chunks = chunks_of(bucket, "long")
    assert all(len(chunk) <= CHUNK_CHARS for chunk in chunks)
    assert [part.strip() for chunk in chunks for part in chunk.split("\n\n")][1:] == [
        part.strip() for part in paragraphs
    ]


def test_two_folders_are_two_sources(bucket: MemoryBucket, nights: Nights) -> None:
    sources = [{"kind": "documents", "id": name, "prefix": f"docs/{name}/"} for name in ("one", "two")]
    drafter = Drafter.model_validate({**DRAFTER.model_dump(), "sources": sources})
    put(bucket, **{"one/a": "# A", "two/a": "# Other A"})
    material = nights.run(drafter=drafter)
    assert [(item.id, item.source) for item in material.items] == [
        ("d1", "docs/one/a.md"),
        ("d2", "docs/two/a.md"),
    ]
    assert set(material.cursors) == {"one", "two"}
    put(bucket, **{"two/a": None, "two/b": "# B"})
    material = nights.run(drafter=drafter)
    assert set(material.cursors) == {"two"}
    assert counts(material) == "1 before, 1 unchanged, 1 now in the index"
    assert counts(material, 1) == "1 before, 1 added, 1 deleted, 1 now in the index"


@pytest.mark.parametrize(
    "cursor",
    [
        {"pages": 3},
        *(
            {"documents": {"docs/b.md": ["", "", "", slot]}}
            for slot in ("soon", "2026-11-27", "0001-01-01T00:00:00+12")
        ),
    ],
)
def test_a_cursor_of_another_version_is_refused(bucket: MemoryBucket, assign: Any, cursor: Cursor) -> None:
    put(bucket, a="# A")
    with pytest.raises(NeverSucceeds) as failure:
        sync.collect(assign(DRAFTER, cursors={"handbook": cursor}))
    assert failure.value.reason == "invalid_cursor"
    assert index(bucket) == {}


def test_a_document_under_another_name_has_moved(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, a="# A", b="# B", same="# A")
    nights.run()
    put(bucket, a=None, **{"new/a": "# A", "c": "# C"})
    material = nights.run()
    assert [(item.title, item.text.partition("\n")[0]) for item in material.items] == [
        ("C", "Added: docs/c.md. It begins:"),
        ("A", "Moved: docs/a.md is now docs/new/a.md. Its content is the same."),
    ]
    assert counts(material) == "3 before, 1 added, 1 moved, 2 unchanged, 4 now in the index"
    assert sorted(index(bucket)) == ["b", "c", "new/a", "same"]
    assert index(bucket)["new/a"]["id"] == "docs/new/a.md"
    assert index(bucket)["new/a"]["chunks"] == index(bucket)["same"]["chunks"]
    assert material.warnings == ()


def test_a_move_of_a_whole_folder_needs_no_approval(bucket: MemoryBucket, nights: Nights) -> None:
    names = [f"n{number:02}" for number in range(30)]
    put(bucket, **{f"old/{name}": f"# {name}" for name in names})
    nights.run()
    put(bucket, **{f"old/{name}": None for name in names}, **{f"new/{name}": f"# {name}" for name in names})
    material = nights.run()
    assert counts(material) == "30 before, 30 moved, 30 now in the index"
    assert sorted(index(bucket)) == [f"new/{name}" for name in names]


MANY = [f"n{number:02}" for number in range(20)]


def lose(bucket: MemoryBucket, nights: Nights, *names: str) -> Material:
    """Take twenty documents in, remove some of them, and return the next night."""
    put(bucket, **{name: f"# {name}" for name in MANY})
    nights.run()
    put(bucket, **dict.fromkeys(names))
    return nights.run()


def test_a_few_documents_are_deleted_without_asking(bucket: MemoryBucket, nights: Nights) -> None:
    assert counts(lose(bucket, nights, *MANY[:5])) == "20 before, 5 deleted, 15 unchanged, 15 now in the index"
    assert sorted(index(bucket)) == MANY[5:]


def test_many_deletes_at_once_are_held_and_the_draft_says_what_its_approval_allows(
    bucket: MemoryBucket, nights: Nights
) -> None:
    material = lose(bucket, nights, *MANY[:6])
    assert counts(material) == "20 before, 14 unchanged, 6 held, 20 now in the index"
    assert sorted(index(bucket)) == MANY
    assert [item.title for item in material.items] == ["handbook: 6 documents are gone and still in the index"]
    names = ", ".join(f"`docs/{name}.md`" for name in MANY[:6])
    assert material.figures.splitlines()[-1] == (
        "**`handbook`: Held for approval: 6 of 20 documents are gone and still in the index. More than 5 at once are"
        " deleted only with approval. Approving this draft lets the next run take out those that are still gone;"
        f" rejecting it keeps them.** They are: {names}"
    )
    assert "approving this draft lets these leave the index: docs/n00.md" in material.warnings[0]


def test_while_the_draft_is_undecided_the_deletes_wait_and_nothing_is_asked_again(
    bucket: MemoryBucket, nights: Nights
) -> None:
    lose(bucket, nights, *MANY[:6])
    asked = format_instant(max(nights.runs))
    material = nights.run()
    assert material.nothing_new == (
        f"docs/ has not changed, 20 documents; handbook: 6 deletes wait for the decision on the draft of {asked}"
    )
    assert material.cursors == {}
    put(bucket, n19="# Other")
    assert counts(nights.run()) == "20 before, 1 changed, 13 unchanged, 6 held, 20 now in the index"


@pytest.mark.parametrize("status", [Status.APPROVED, Status.PUBLISHED, Status.PUBLISH_UNKNOWN])
def test_after_approval_exactly_those_that_are_still_gone_are_deleted(
    bucket: MemoryBucket, nights: Nights, status: Status
) -> None:
    lose(bucket, nights, *MANY[:8])
    put(bucket, n00="# n00", n01="# Now other")
    put(bucket, **dict.fromkeys(MANY[10:17]))
    nights.decide(status)
    material = nights.run()
    assert counts(material) == "20 before, 1 changed, 6 deleted, 6 unchanged, 7 held, 14 now in the index"
    assert sorted(index(bucket)) == [*MANY[:2], *MANY[8:]]
    assert "`handbook`: deleted by approval: 6" in material.figures
    assert "7 of 20 documents are gone and still in the index" in material.figures, "they were not asked about"
    nights.decide(status)
    assert counts(nights.run()) == "14 before, 7 deleted, 7 unchanged, 7 now in the index"


def test_an_approval_that_no_person_gave_allows_nothing(bucket: MemoryBucket, nights: Nights) -> None:
    lose(bucket, nights, *MANY[:6])
    nights.decide(Status.PUBLISHED, by_a_person=False)
    assert counts(nights.run()) == "20 before, 14 unchanged, 6 held, 20 now in the index"
    assert sorted(index(bucket)) == MANY


@pytest.mark.guarantee("G6")
def test_g6_a_run_that_dies_after_deleting_by_approval_is_made_up_by_the_next(
    bucket: MemoryBucket, nights: Nights
) -> None:
    lose(bucket, nights, *MANY[:6])
    nights.decide(Status.APPROVED)
    died = nights.run(stored=False)
    assert nights.run() == died
    assert counts(died) == "20 before, 6 deleted, 14 unchanged, 14 now in the index"


@pytest.mark.guarantee("G6")
def test_g6_a_draft_that_was_never_stored_asked_nobody(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, **{name: f"# {name}" for name in MANY})
    nights.run()
    put(bucket, **dict.fromkeys(MANY[:6]))
    nights.run(stored=False)
    assert "6 of 20 documents are gone and still in the index" in nights.run().figures


def test_after_a_rejection_the_deletes_stay_held_and_are_not_asked_again(bucket: MemoryBucket, nights: Nights) -> None:
    lose(bucket, nights, *MANY[:6])
    asked = nights.decide(Status.REJECTED)
    material = nights.run()
    assert material.nothing_new == (
        "docs/ has not changed, 20 documents; handbook: 6 documents are gone and stay in the index, since the draft of"
        f" {asked} was rejected; asked again 30 days after that"
    )
    put(bucket, n19=None)
    assert counts(nights.run()) == "20 before, 1 deleted, 13 unchanged, 6 held, 19 now in the index"
    assert set(MANY[:6]) < set(index(bucket))


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        pytest.param(dict.fromkeys(MANY[6:12]), 12, id="others are held too"),
        pytest.param({"n00": "# n00"}, 5, id="one of them is there again"),
    ],
)
def test_after_a_rejection_another_set_is_asked_about(
    bucket: MemoryBucket, nights: Nights, change: dict[str, str | None], asked: int
) -> None:
    lose(bucket, nights, *MANY[:6])
    nights.decide(Status.REJECTED)
    put(bucket, **change)
    assert f"{asked} of 20 documents are gone and still in the index" in nights.run().figures
    nights.decide(Status.APPROVED)
    assert f"{20 - asked} now in the index" in counts(nights.run())


def test_after_a_rejection_the_same_is_asked_again_after_a_month(bucket: MemoryBucket, nights: Nights) -> None:
    lose(bucket, nights, *MANY[:6])
    nights.decide(Status.REJECTED)
    nights.slot += 28 * DAY
    nights.run()
    assert nights.run().nothing_new
    assert "6 of 20 documents" in nights.run().figures


@pytest.mark.parametrize("status", [Status.EXPIRED, Status.SUPERSEDED, None])
def test_a_draft_that_nobody_decided_on_is_asked_anew(
    bucket: MemoryBucket, nights: Nights, status: Status | None
) -> None:
    lose(bucket, nights, *MANY[:6])
    if status is None:
        nights.runs.clear()
    else:
        nights.decide(status, by_a_person=False)
    assert "6 of 20 documents" in nights.run().figures


def test_what_came_back_and_went_again_is_asked_about_anew(bucket: MemoryBucket, nights: Nights) -> None:
    lose(bucket, nights, *MANY[:6])
    put(bucket, **{name: f"# {name}" for name in MANY[:6]})
    assert nights.run().nothing_new == "docs/ has not changed, 20 documents"
    nights.decide(Status.APPROVED)
    put(bucket, **dict.fromkeys(MANY[:6]))
    assert counts(nights.run()) == "20 before, 14 unchanged, 6 held, 20 now in the index"


def limited(**settings: float) -> Drafter:
    """Return the drafter with other limits."""
    source = {"kind": "documents", "id": "handbook", "prefix": "docs/", **settings}
    return Drafter.model_validate({**DRAFTER.model_dump(), "sources": [source]})


@pytest.mark.parametrize(
    ("settings", "gone", "held"),
    [
        ({"max_deletes": 0}, 1, True),
        ({"max_deletes": 3}, 3, False),
        ({"max_deletes": 3}, 4, True),
        ({"max_delete_share": 0.5}, 10, False),
        ({"max_delete_share": 0.5}, 11, True),
        ({"max_delete_share": 1, "max_deletes": 100}, 19, False),
        ({"max_delete_share": 1, "max_deletes": 100}, 20, True),
    ],
)
def test_how_many_deletes_are_held_is_a_setting_but_never_all(
    bucket: MemoryBucket, nights: Nights, settings: dict[str, float], gone: int, held: bool
) -> None:
    drafter = limited(**settings)
    put(bucket, **{name: f"# {name}" for name in MANY})
    nights.run(drafter=drafter)
    put(bucket, **dict.fromkeys(MANY[:gone]))
    nights.run(drafter=drafter)
    assert len(index(bucket)) == (20 if held else 20 - gone)


class Slow:
    """A run's time, of which each question takes a part."""

    def __init__(self, questions: int) -> None:
        self.left = sync.RESERVED + questions * timedelta(seconds=1)

    def __call__(self) -> timedelta:
        now = self.left
        self.left -= timedelta(seconds=1)
        return now


def test_a_run_whose_time_is_up_drafts_what_it_has_done_and_the_next_goes_on(
    bucket: MemoryBucket, nights: Nights
) -> None:
    put(bucket, **{name: f"# {name}" for name in MANY})
    material = nights.run(time_left=Slow(8))
    assert counts(material) == "7 added, 13 not read, 7 now in the index"
    assert material.warnings == (
        "handbook: 13 documents not looked at before the run's time was nearly up; the next run begins with them",
    )
    assert counts(nights.run(time_left=Slow(10))) == "7 before, 9 added, 7 unchanged, 4 not read, 16 now in the index"
    assert counts(nights.run()) == "16 before, 4 added, 16 unchanged, 20 now in the index"
    assert nights.run().nothing_new == "docs/ has not changed, 20 documents"


def test_nothing_is_deleted_before_all_new_documents_are_read_since_it_may_have_moved(
    bucket: MemoryBucket, nights: Nights
) -> None:
    put(bucket, a="# A", b="# B")
    nights.run()
    put(bucket, a=None, b=None, x="# X", y="# A")
    material = nights.run(time_left=Slow(2))
    assert counts(material) == "2 before, 1 added, 2 held, 1 not read, 3 now in the index"
    assert "2 documents no longer listed; whether they moved or are gone is known when all new ones are read" in str(
        material.warnings
    )
    assert counts(nights.run()) == "3 before, 1 moved, 1 deleted, 1 unchanged, 2 now in the index"


def test_a_bucket_shows_what_did_not_change_without_reading_it(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, **{name: f"# {name}" for name in MANY})
    nights.run()
    bucket.reads.clear()
    put(bucket, n03="# Other")
    nights.run(time_left=Slow(3))
    assert bucket.reads == ["docs/n03.md"]


def test_the_figures_are_inert_whatever_the_documents_are_called(bucket: MemoryBucket, nights: Nights) -> None:
    names = [f"`x` | <img src=https://evil.example/{number}> [a](https://evil.example)" for number in range(6)]
    lines = lose_named(bucket, nights, names)
    assert all(line.count("`") % 2 == 0 for line in lines)
    assert "`docs/'x' | <img" in lines[-1]


def lose_named(bucket: MemoryBucket, nights: Nights, names: list[str]) -> list[str]:
    """Take documents of these names in, remove them, and return the lines of the next night's figures."""
    put(bucket, stays="# Stays", **dict.fromkeys(names, "# A"))
    nights.run()
    put(bucket, **dict.fromkeys(names))
    return nights.run().figures.splitlines()


LIST = "https://docs.example/list.txt"
WEB = Drafter.model_validate({**DRAFTER.model_dump(), "sources": [{"kind": "documents", "id": "site", "url": LIST}]})


class Site:
    """A web server with a list of its pages; each page's tag is the hash of its text."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.answers: dict[str, Fetched | FetchError] = {}
        self.read: list[str] = []

    def __call__(self, url: str, *, headers: Mapping[str, str] | None = None, **_: Any) -> Fetched:
        known = self.answers.get(url)
        if isinstance(known, FetchError):
            raise known
        if known is not None:
            return known
        if url == LIST:
            return Fetched(200, {}, "".join(f"{page}\n" for page in self.pages).encode(), url)
        tag = f'"{hashlib.sha256(self.pages[url].encode()).hexdigest()}"'
        if (headers or {}).get("If-None-Match") == tag:
            return Fetched(304, {"etag": tag}, b"", url)
        self.read.append(url)
        return Fetched(200, {"etag": tag, "content-type": "text/plain"}, self.pages[url].encode(), url)

    def put(self, **texts: str | None) -> None:
        """Put pages by their names; None removes one from the list."""
        for name, text in texts.items():
            if text is None:
                del self.pages[f"https://docs.example/{name}"]
            else:
                self.pages[f"https://docs.example/{name}"] = text


@pytest.fixture
def site(nights: Nights, assign: Any) -> Site:
    """A web server, whose documents the nights sync."""
    site = Site()
    nights.assign = lambda drafter, **named: assign(WEB, fetch=site, **named)
    return site


def test_pages_of_a_list_are_taken_in_with_their_links(bucket: MemoryBucket, nights: Nights, site: Site) -> None:
    site.put(a="# A", b="# B")
    material = nights.run()
    assert [(item.title, item.source, item.link) for item in material.items] == [
        ("A", "site", "https://docs.example/a"),
        ("B", "site", "https://docs.example/b"),
    ]
    (first, _) = bucket.list("index/nightly-sync/site/")
    entry = json.loads(bucket.get(first.key, max_bytes=10_000))
    assert (entry["id"], entry["link"]) == ("https://docs.example/a", "https://docs.example/a")


class _AsS3(MemoryBucket):
    """Refuses the keys that S3 refuses: those with more ``..`` than other elements, counted from the left."""

    def put(self, key: str, body: bytes, *, content_type: str) -> None:
        elements = [element for element in key.split("/") if element]
        ups = [elements[: place + 1].count("..") for place in range(len(elements))]
        if any(up > place + 1 - up for place, up in enumerate(ups)):
            raise ValueError(f"400 Bad Request: {key}")
        super().put(key, body, content_type=content_type)


@pytest.mark.parametrize(("ups", "taken"), [(1, True), (5, True), (6, False), (40, False)])
def test_a_page_whose_address_leads_out_of_the_bucket_holds_up_no_other(
    nights: Nights, site: Site, assign: Any, ups: int, taken: bool
) -> None:
    name = "../" * ups + "published/x"
    site.put(**{"a": "# A", name: "# X"})
    bucket = _AsS3()
    nights.assign = lambda drafter, **named: replace(assign(WEB, fetch=site, **named), bucket=bucket)
    material = nights.run()
    assert len(list(bucket.list("index/nightly-sync/site/"))) == 1 + taken
    told = "has more .. in its name than folders before them; give it a plain one"
    assert [told in warning for warning in material.warnings] == ([] if taken else [True])


def test_a_page_that_did_not_change_is_not_sent_again(nights: Nights, site: Site) -> None:
    site.put(a="# A", b="# B", c="# C")
    nights.run()
    site.read.clear()
    site.put(b="# B, new", c=None)
    assert counts(nights.run()) == "3 before, 1 changed, 1 deleted, 1 unchanged, 2 now in the index"
    assert site.read == ["https://docs.example/b"]


def test_a_page_whose_entry_was_lost_is_asked_for_whole(bucket: MemoryBucket, nights: Nights, site: Site) -> None:
    site.put(a="# A")
    nights.run()
    bucket.delete("index/nightly-sync/site/https://docs.example/a.json")
    assert "written anew: docs[.]example/a" in str(nights.run().nothing_new)
    assert len(site.read) == 2


def test_a_run_that_found_no_change_in_its_time_says_so_and_the_next_goes_on(nights: Nights, site: Site) -> None:
    site.put(**{name: f"# {name}" for name in MANY})
    nights.run()
    material = nights.run(time_left=Slow(9))
    assert material.nothing_new == (
        f"{LIST} shows no change so far, 20 documents; site: 12 documents not looked at before the run's time was"
        " nearly up; the next run begins with them"
    )
    assert material.cursors["site"]["last"] == "https://docs.example/n07"


def test_a_draft_about_pages_has_no_links_but_their_own(nights: Nights, site: Site) -> None:
    site.put(**{f"{name}.html": f"# {name}" for name in MANY})
    nights.run()
    site.put(**{f"{name}.html": None for name in MANY[:4]}, other="See https://elsewhere.example/ now.")
    assert warnings_of(nights.run()) == (
        "a link that is no item's, taken out: https[:]//elsewhere[.]example/"
        ' (section 1 "other": See (link removed) now.)',
    )
    site.put(**{f"{name}.html": None for name in MANY[4:14]})
    material = nights.run()
    assert "Held for approval: 10 of 17 documents" in material.figures
    assert [one for one in warnings_of(material) if "link" in one] == []


def warnings_of(material: Material) -> tuple[str, ...]:
    """Return the warnings of the draft that the offline model makes of it."""
    brief = a_brief(*material.items, figures=material.figures)
    return compose(read_answer(OfflineModel().write(brief, remaining=DAY), brief), brief).warnings


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Fetched(404, {}, b"", ""), "docs[.]example/a answers 404; mend it, or take it off the list"),
        (Fetched(304, {}, b"", ""), "docs[.]example/a answers 304"),
        (FetchError("https://docs.example/a", "10.0.0.1 is not a public address"), "is not a public address"),
        (Fetched(200, {}, b"\xff", ""), "docs[.]example/a is not text in UTF-8 (byte 0); convert it"),
        (
            Fetched(200, {"content-type": "text/plain; charset=idna"}, b"a", ""),
            "is written in idna, which is not known",
        ),
    ],
)
def test_a_page_that_cannot_be_read_is_named_and_stays_in_the_index(
    bucket: MemoryBucket, nights: Nights, site: Site, answer: Fetched | FetchError, said: str
) -> None:
    site.put(a="# A", b="# B")
    if isinstance(answer, Fetched) and answer.status == 304:
        bucket.put("index/nightly-sync/site/https://docs.example/a.json", b"{}", content_type="application/json")
    else:
        nights.run()
    site.put(b="# B, new")
    site.answers["https://docs.example/a"] = answer
    material = nights.run()
    assert said in material.warnings[0]
    assert "1 failed" in counts(material)


@pytest.mark.parametrize(
    "answer",
    [
        Fetched(500, {}, b"", LIST),
        Fetched(200, {}, b"", LIST),
        Fetched(200, {}, b"<html>Sorry</html>", LIST),
        Fetched(200, {}, b"https://docs.example/a\nsorry\n", LIST),
        FetchError(LIST, "the answer was cut short"),
    ],
)
def test_a_list_that_is_not_whole_deletes_nothing_and_is_tried_again(
    bucket: MemoryBucket, nights: Nights, site: Site, answer: Fetched | FetchError
) -> None:
    site.put(a="# A", b="# B")
    nights.run()
    site.answers[LIST] = answer
    with pytest.raises(RetryLater, match="no list of documents can be read: site: https:"):
        nights.run()
    assert len(list(bucket.list("index/"))) == 2


def test_a_list_that_cannot_be_read_does_not_hold_up_the_other_sources(
    bucket: MemoryBucket, nights: Nights, site: Site, assign: Any
) -> None:
    both = Drafter.model_validate({**DRAFTER.model_dump(), "sources": [*WEB.sources, *DRAFTER.sources]})
    nights.assign = lambda drafter, **named: assign(both, fetch=site, **named)
    put(bucket, a="# A")
    site.answers[LIST] = Fetched(503, {}, b"", LIST)
    material = nights.run()
    assert counts(material) == "1 added, 1 now in the index"
    assert material.warnings == (f"site: {LIST}: it answers 503; nothing of it was compared",)


def test_pages_that_are_always_asked_for_are_asked_in_turn(nights: Nights, site: Site) -> None:
    site.put(**{name: f"# {name}" for name in MANY})
    nights.run()
    for name in MANY:
        site.put(**{name: f"# {name}, new"})
    site.read.clear()
    told = [counts(nights.run(time_left=Slow(9))) for _ in range(3)]
    assert told[0] == "20 before, 8 changed, 12 not read, 20 now in the index"
    assert told[1] == "20 before, 8 changed, 12 not read, 20 now in the index"
    assert site.read == [f"https://docs.example/{name}" for name in MANY]
    assert nights.run().nothing_new


def test_an_index_of_which_nothing_is_remembered_is_not_emptied_without_approval(
    bucket: MemoryBucket, nights: Nights
) -> None:
    put(bucket, **{name: f"# {name}" for name in MANY})
    nights.run()
    nights.cursors = {}
    put(bucket, **dict.fromkeys(MANY[:8]))
    assert counts(nights.run()) == "8 before, 12 added, 8 held, 20 now in the index"
    nights.decide(Status.APPROVED)
    assert counts(nights.run()) == "20 before, 8 deleted, 12 unchanged, 12 now in the index"


def test_each_source_has_its_share_of_the_time(bucket: MemoryBucket, nights: Nights) -> None:
    sources = [{"kind": "documents", "id": name, "prefix": f"docs/{name}/"} for name in ("one", "two")]
    drafter = Drafter.model_validate({**DRAFTER.model_dump(), "sources": sources})
    put(bucket, **{f"{source}/{name}": f"# {name}" for source in ("one", "two") for name in MANY})
    material = nights.run(drafter=drafter, time_left=Slow(20))
    assert counts(material) == "9 added, 11 not read, 9 now in the index"
    assert counts(material, 1) == "8 added, 12 not read, 8 now in the index"


def test_a_held_document_that_turns_up_elsewhere_has_moved(bucket: MemoryBucket, nights: Nights) -> None:
    lose(bucket, nights, *MANY[:6])
    put(bucket, elsewhere="# n00")
    assert counts(nights.run()) == "20 before, 1 moved, 14 unchanged, 5 held, 20 now in the index"
    asked = sorted(nights.runs)[-2]
    nights.runs = {asked: nights.runs[asked]}
    nights.decide(Status.APPROVED)
    assert counts(nights.run()) == "20 before, 5 deleted, 15 unchanged, 15 now in the index"
    assert sorted(index(bucket)) == ["elsewhere", *MANY[6:]]
