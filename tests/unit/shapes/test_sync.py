"""The sync: what changed, what the index holds afterwards, and that neither a crash nor an empty listing harms it."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drafter import Drafter
from galley.bucket import ObjectInfo
from galley.retry import NeverSucceeds
from shapes import sync
from shapes.shape import Cursor, Material
from shapes.sync import Changes, compare
from sources.documents import CHUNK_CHARS
from support.memory_bucket import MemoryBucket

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
        info.key.removeprefix("index/nightly-sync/docs/").removesuffix(".md.json"): json.loads(
            bucket.get(info.key, max_bytes=10**9)
        )
        for info in bucket.list("index/")
    }


class Nights:
    """Runs one night after the other, with the cursor that the night before stored."""

    def __init__(self, assign: Any) -> None:
        self.assign = assign
        self.cursors: Mapping[str, Cursor] = {}

    def run(self, *, stored: bool = True, drafter: Drafter = DRAFTER) -> Material:
        """Collect; with ``stored=False`` the run dies before its draft is stored."""
        material: Material = sync.collect(self.assign(drafter, cursors=self.cursors))
        if stored:
            self.cursors = json.loads(json.dumps({**self.cursors, **material.cursors}))
        return material


@pytest.fixture
def nights(assign: Any) -> Nights:
    """Nights of the sample drafter."""
    return Nights(assign)


def counts(material: Material) -> str:
    """Return the row of numbers of the only source."""
    return material.figures.splitlines()[2]


def test_compare() -> None:
    assert compare({"a": "1", "b": "1", "c": "1"}, {"b": "1", "c": "2", "d": "1"}) == Changes(
        added=("d",), changed=("c",), deleted=("a",), unchanged=("b",)
    )
    assert not compare({"a": "1"}, {"a": "1"}).any


def test_the_first_night_takes_everything_in(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, leave="# Leave\n\nAsk Tom.", safety="Gloves off.")
    material = nights.run()
    assert [(item.id, item.title, item.source) for item in material.items] == [
        ("d1", "Leave", "docs/leave.md"),
        ("d2", "safety.md", "docs/safety.md"),
    ]
    assert material.items[0].text == "Added: docs/leave.md. It begins:\n\n# Leave\n\nAsk Tom."
    assert counts(material) == "| `docs/` | 0 | 2 | 0 | 0 | 0 | 2 |"
    assert material.warnings == ()
    assert index(bucket)["leave"] == {
        "id": "docs/leave.md",
        "title": "Leave",
        "sha256": hashlib.sha256(b"# Leave\n\nAsk Tom.").hexdigest(),
        "chunks": ["# Leave\n\nAsk Tom."],
    }


def test_a_night_without_changes_drafts_nothing_and_stores_nothing(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, leave="# Leave", safety="# Safety")
    nights.run()
    material = nights.run()
    assert material == Material(nothing_new="docs/ has not changed, 2 documents")


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
    assert counts(material) == "| `docs/` | 4 | 1 | 1 | 1 | 2 | 4 |"
    assert sorted(index(bucket)) == ["a", "b", "d", "e"]
    assert index(bucket)["b"]["chunks"] == ["# B\n\nNow other."]
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
    assert counts(again) == "| `docs/` | 2 | 1 | 1 | 1 | 0 | 2 |"
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
    assert index(bucket)["a"]["chunks"] == ["# A"]
    assert material.nothing_new == (
        "docs/ has not changed, 1 document; handbook: entries of the index were missing or not as they had been stored,"
        " written anew: docs/a.md"
    )


def test_what_others_did_to_the_index_is_repaired(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, a="# A", b="# B", c="# C")
    nights.run()
    bucket.delete("index/nightly-sync/docs/a.md.json")
    bucket.put("index/nightly-sync/docs/b.md.json", b"{}", content_type="application/json")
    bucket.put("index/nightly-sync/docs/stray.md.json", b"{}", content_type="application/json")
    bucket.put("index/other-sync/docs/a.md.json", b"{}", content_type="application/json")
    put(bucket, c="# C, new")
    material = nights.run()
    assert material.warnings == (
        "handbook: entries of the index were missing or not as they had been stored, written anew:"
        " docs/a.md, docs/b.md",
    )
    assert sorted(info.key for info in bucket.list("index/")) == [
        "index/nightly-sync/docs/a.md.json",
        "index/nightly-sync/docs/b.md.json",
        "index/nightly-sync/docs/c.md.json",
        "index/other-sync/docs/a.md.json",
    ]
    assert index(bucket)["b"]["chunks"] == ["# B"]


def test_a_suddenly_empty_prefix_removes_nothing(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, a="# A", b="# B")
    nights.run()
    put(bucket, a=None, b=None)
    with pytest.raises(NeverSucceeds, match=r"docs/ holds no documents, but 2 were there before") as failure:
        nights.run()
    assert failure.value.reason == "documents_gone"
    assert sorted(index(bucket)) == ["a", "b"]


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
    nights = Nights(lambda drafter, cursors: replace(assign(drafter, cursors=cursors), bucket=bucket))
    put(bucket, a="# A", b="# B", c="# C")
    nights.run()
    put(bucket, a="# A, new")
    bucket.whole = 1
    with pytest.raises(ConnectionError):
        nights.run()
    bucket.whole = 10**9
    assert sorted(index(bucket)) == ["a", "b", "c"]
    assert counts(nights.run()) == "| `docs/` | 3 | 0 | 1 | 0 | 2 | 3 |"


class Forgets(MemoryBucket):
    """A bucket that loses what is written to one key."""

    forgets = ""

    def put(self, key: str, body: bytes, *, content_type: str) -> None:
        if key != self.forgets:
            super().put(key, body, content_type=content_type)


def test_a_document_that_goes_while_it_is_read_counts_as_deleted(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, a="# A", b="# B")
    nights.run()
    bucket.vanishing = {"docs/b.md"}
    assert counts(nights.run()) == "| `docs/` | 2 | 0 | 0 | 1 | 1 | 1 |"
    assert sorted(index(bucket)) == ["a"]


def test_counts_that_do_not_agree_are_told_and_mended_the_next_night(assign: Any) -> None:
    bucket = Forgets()
    bucket.forgets = "index/nightly-sync/docs/b.md.json"
    nights = Nights(lambda drafter, cursors: replace(assign(drafter, cursors=cursors), bucket=bucket))
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
    assert counts(material) == "| `docs/` | 2 | 0 | 1 | 0 | 1 | 2 |"
    assert index(bucket)["odd"]["chunks"] == ["# Odd"], "what the index had of it stays"
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
    put(bucket, **{f"n{number}": "# N" for number in range(20)})
    monkeypatch.setattr(sync, "MAX_CURSOR_BYTES", 2_000)
    with pytest.raises(
        NeverSucceeds, match=r"docs/ holds 20 documents; .* Give each of its folders a source"
    ) as failure:
        nights.run()
    assert failure.value.reason == "too_many_documents"
    assert index(bucket) == {}


def test_the_largest_list_of_documents_fits_a_table_row(bucket: MemoryBucket, nights: Nights) -> None:
    put(bucket, **{f"{number:04}-{'long-name' * 6}": f"# {number}" for number in range(1_300)})
    material = nights.run()
    assert 200_000 < len(json.dumps(material.cursors)) < 300_000
    assert len(material.items) == sync.MOST_ITEMS
    assert material.warnings[0].startswith("1260 more documents changed; they are not shown here: docs/")
    assert counts(material) == "| `docs/` | 0 | 1300 | 0 | 0 | 0 | 1300 |"


def test_a_long_document_is_shown_by_its_beginning_and_kept_whole(bucket: MemoryBucket, nights: Nights) -> None:
    paragraphs = [f"Paragraph {number}: " + "word " * 60 for number in range(40)]
    put(bucket, long="# Long\n\n" + "\n\n".join(paragraphs))
    material = nights.run()
    assert len(material.items[0].text) < sync.ITEM_CHARS + 200
    chunks = index(bucket)["long"]["chunks"]
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
    assert material.figures.splitlines()[2:] == [
        "| `docs/one/` | 1 | 0 | 0 | 0 | 1 | 1 |",
        "| `docs/two/` | 1 | 1 | 0 | 1 | 0 | 1 |",
    ]


def test_a_cursor_of_another_version_is_refused(bucket: MemoryBucket, assign: Any) -> None:
    put(bucket, a="# A")
    with pytest.raises(NeverSucceeds) as failure:
        sync.collect(assign(DRAFTER, cursors={"handbook": {"pages": 3}}))
    assert failure.value.reason == "invalid_cursor"
    assert index(bucket) == {}


def put_tree(bucket: MemoryBucket, folder: Path) -> None:
    """Let the documents be those of a folder, and no others."""
    for info in list(bucket.list("docs/")):
        bucket.delete(info.key)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            key = f"docs/{path.relative_to(folder).as_posix()}"
            bucket.put(key, path.read_bytes(), content_type="text/plain")


@pytest.mark.parametrize("versions", [("django-5.1", "django-5.2"), ("django-5.2", "django-5.1")])
def test_real_documents_of_two_versions(
    bucket: MemoryBucket, nights: Nights, shared_data: Path, versions: tuple[str, str]
) -> None:
    trees = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*.txt")}
        for root in (shared_data / "documents" / version for version in versions)
    ]
    before, after = trees
    put_tree(bucket, shared_data / "documents" / versions[0])
    nights.run()
    put_tree(bucket, shared_data / "documents" / versions[1])
    material = nights.run()
    both = before.keys() & after.keys()
    changed = sum(before[path] != after[path] for path in both)
    added, deleted = len(after.keys() - before.keys()), len(before.keys() - after.keys())
    assert changed
    assert added or deleted
    assert counts(material) == (
        f"| `docs/` | {len(before)} | {added} | {changed} | {deleted} | {len(both) - changed} | {len(after)} |"
    )
    assert len(list(bucket.list("index/nightly-sync/docs/"))) == len(after)
    assert not any("counts do not agree" in warning for warning in material.warnings)
    assert [item for item in material.items if item.title.endswith(".txt")] == [
        item for item in material.items if item.text.startswith("Deleted")
    ], "every document that is there has a heading"
