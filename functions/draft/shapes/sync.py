"""sync: the documents that changed are taken into the index, the counts are reconciled, and a note is drafted."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from drafter_file.sync import DocumentsSource
from galley.bucket import Bucket
from galley.drafts import Item
from galley.retry import NeverSucceeds
from galley.store import Cursor
from galley.texts import listed
from shapes.shape import Assignment, Material
from sources.clean import clean_line, plain_text
from sources.collected import CursorState, read_cursor
from sources.documents import Document, Unreadable, chunks, list_documents, read_document

MAX_CURSOR_BYTES = 250_000
"""The list of documents is kept in one table row, which holds 400 KB."""
MAX_KEY_BYTES = 1_024
"""https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html"""
MOST_ITEMS = 40
ITEM_CHARS = 2_000
_NAMED = 10


@dataclass(frozen=True, slots=True)
class Known:
    """A document as it was last taken in: the SHA-256 of its bytes, and the etag of its entry in the index."""

    sha256: str
    entry: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What has become of the documents since they were last taken in. Keys are in order."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]
    unchanged: tuple[str, ...]

    @property
    def any(self) -> bool:
        """Whether there is something to write about."""
        return bool(self.added or self.changed or self.deleted)


def compare(before: Mapping[str, str], after: Mapping[str, str]) -> Changes:
    """Return what changed between two sets of documents, each given as key -> hash."""
    return Changes(
        added=tuple(sorted(after.keys() - before.keys())),
        changed=tuple(sorted(key for key in after.keys() & before.keys() if after[key] != before[key])),
        deleted=tuple(sorted(before.keys() - after.keys())),
        unchanged=tuple(sorted(key for key in after.keys() & before.keys() if after[key] == before[key])),
    )


def collect(assignment: Assignment) -> Material:
    """Bring the index up to date and return a note's material: one item for each document added, changed or deleted.

    ``index/<drafter>/<key>.json`` is a document's entry: its key, title, hash and text in chunks. Entries are written
    and removed here, before the cursor moves (it does so in the transaction that stores the draft). A run that dies or
    fails in between leaves the old cursor: the next one finds the same changes, writes the same entries again and
    drafts the note. The cursor also holds the etag of each entry, so an entry that such a run (or anyone else) left in
    another state is seen in the listing of the index and written anew, even if its document has meanwhile gone back to
    what it was. Nothing is removed unless both listings were complete, nor when the prefix is suddenly empty.

    Raises:
        NeverSucceeds: ``documents_gone``, ``too_many_documents`` or ``invalid_cursor``.
    """
    index = _Index(assignment.bucket, assignment.drafter.name)
    synced = [
        _sync(assignment.bucket, index, source, assignment.cursors().get(source.id))
        for source in assignment.drafter.sources
        if isinstance(source, DocumentsSource)
    ]
    cursors = {one.source.id: one.cursor for one in synced if one.cursor is not None}
    warnings = tuple(warning for one in synced for warning in one.warnings)
    if not any(one.changes.any for one in synced):
        return Material(cursors=cursors, nothing_new="; ".join((*(_quiet(one) for one in synced), *warnings)))
    notes = [note for one in synced for note in one.notes]
    notes.sort(key=lambda note: note.rank)
    if left_out := [note.key for note in notes[MOST_ITEMS:]]:
        warnings += (f"{len(left_out)} more documents changed; they are not shown here: {listed(left_out, _NAMED)}",)
    items = tuple(note.item(f"d{place}") for place, note in enumerate(notes[:MOST_ITEMS], start=1))
    return Material(items=items, figures=_counts(synced), warnings=warnings, cursors=cursors)


class _State(CursorState):
    """The cursor: key -> hash and etag."""

    documents: Mapping[str, tuple[str, str]] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Note:
    """One document that was added, changed or deleted; ``rank`` puts the changed ones first."""

    rank: int
    key: str
    title: str
    text: str

    def item(self, item_id: str) -> Item:
        return Item(id=item_id, title=self.title, text=self.text, source=self.key)


@dataclass(frozen=True, slots=True)
class _Synced:
    """One source, after the index was brought up to date. ``cursor`` is None when it need not move."""

    source: DocumentsSource
    changes: Changes
    notes: Sequence[_Note]
    before: int
    after: int
    cursor: Cursor | None
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Index:
    """The drafter's part of the index."""

    bucket: Bucket
    drafter: str

    def entry_key(self, key: str) -> str:
        return f"index/{self.drafter}/{key}.json"

    def etags(self, prefix: str) -> dict[str, str]:
        """Return the etag of each entry whose document is under the prefix, by the document's key."""
        root = f"index/{self.drafter}/"
        return {
            info.key.removeprefix(root).removesuffix(".json"): info.etag
            for info in self.bucket.list(root + prefix)
            if info.key.endswith(".json")
        }

    def write(self, document: Document) -> None:
        entry = {
            "id": document.key,
            "title": document.title,
            "sha256": document.sha256,
            "chunks": list(chunks(document.text)),
        }
        body = json.dumps(entry, ensure_ascii=False, sort_keys=True, indent=1).encode()
        self.bucket.put(self.entry_key(document.key), body, content_type="application/json")

    def remove(self, key: str) -> None:
        self.bucket.delete(self.entry_key(key))


def _sync(bucket: Bucket, index: _Index, source: DocumentsSource, cursor: Cursor | None) -> _Synced:
    known = _known(cursor, source)
    keys = list_documents(bucket, source.prefix)
    _check_listing(keys, known, source)
    entries = index.etags(source.prefix)
    hashes: dict[str, str] = {}
    notes: list[_Note] = []
    unreadable: list[str] = []
    repaired: list[str] = []
    for key in keys:
        document = _read(bucket, index, key)
        if document is None:
            continue
        was = known.get(key)
        if isinstance(document, Unreadable):
            unreadable.append(f"{clean_line(key, 200)} {document.why}")
            if was is not None:
                hashes[key] = was.sha256
            continue
        hashes[key] = document.sha256
        if was is None or was.sha256 != document.sha256:
            notes.append(_note(document, is_new=was is None))
        elif entries.get(key) == was.entry:
            continue
        else:
            repaired.append(key)
        index.write(document)
    for key in sorted(entries.keys() - hashes.keys()):
        index.remove(key)
    changes = compare({key: one.sha256 for key, one in known.items()}, hashes)
    notes += [_gone(key) for key in changes.deleted]
    entries = index.etags(source.prefix)
    now_known = {key: Known(sha256, entries.get(key, "")) for key, sha256 in hashes.items()}
    return _Synced(
        source=source,
        changes=changes,
        notes=notes,
        before=len(known),
        after=len(entries),
        cursor=None if now_known == known else _cursor(now_known),
        warnings=[
            *_about_documents(source, unreadable, repaired),
            *_reconcile(source, changes, len(known), hashes.keys(), entries.keys()),
        ],
    )


def _known(cursor: Cursor | None, source: DocumentsSource) -> dict[str, Known]:
    state = read_cursor(_State, cursor, f"the documents under {source.prefix!r}")
    return {key: Known(sha256, entry) for key, (sha256, entry) in state.documents.items()}


def _cursor(documents: Mapping[str, Known]) -> Cursor:
    return {"documents": {key: [one.sha256, one.entry] for key, one in sorted(documents.items())}}


def _check_listing(keys: Sequence[str], known: Mapping[str, Known], source: DocumentsSource) -> None:
    if known and not keys:
        raise NeverSucceeds(
            "documents_gone",
            f"{source.prefix} holds no documents, but {len(known)} were there before, and all are still in the index;"
            f" put them back, or take source {source.id!r} out of the drafter's file",
        )
    size = len(json.dumps(_cursor({key: Known("0" * 64, "0" * 34) for key in keys}), ensure_ascii=False).encode())
    if size > MAX_CURSOR_BYTES:
        raise NeverSucceeds(
            "too_many_documents",
            f"{source.prefix} holds {len(keys)} documents; the list of them takes {size:,} bytes, and one source may"
            f" take {MAX_CURSOR_BYTES:,}. Give each of its folders a source of its own in place of {source.id!r}",
        )


def _read(bucket: Bucket, index: _Index, key: str) -> Document | Unreadable | None:
    if len(index.entry_key(key).encode()) > MAX_KEY_BYTES:
        return Unreadable(key, "has too long a name for the index; shorten it")
    return read_document(bucket, key)


def _note(document: Document, *, is_new: bool) -> _Note:
    key = clean_line(document.key, 300)
    what = f"Added: {key}. It begins:" if is_new else f"Changed: {key}. It now begins:"
    text = f"{what}\n\n{plain_text(document.text, ITEM_CHARS)}"
    return _Note(1 if is_new else 0, key, document.title, text)


def _gone(key: str) -> _Note:
    name = clean_line(key, 300)
    return _Note(2, name, name, f"Deleted: {name}. It is no longer there and was taken out of the index.")


def _about_documents(source: DocumentsSource, unreadable: list[str], repaired: list[str]) -> Iterable[str]:
    if unreadable:
        yield f"{source.id}: not taken in: {listed(unreadable, _NAMED)}"
    if repaired:
        names = listed([clean_line(key, 200) for key in repaired], _NAMED)
        yield f"{source.id}: entries of the index were missing or not as they had been stored, written anew: {names}"


def _reconcile(
    source: DocumentsSource, changes: Changes, before: int, expected: Iterable[str], found: Iterable[str]
) -> Iterable[str]:
    """Say where the index is not what it must be: before + added - deleted entries, one for each document."""
    expected, found = set(expected), set(found)
    if before + len(changes.added) - len(changes.deleted) == len(found) and expected == found:
        return
    differing = listed([clean_line(key, 200) for key in sorted(expected ^ found)], _NAMED)
    yield (
        f"{source.id}: the counts do not agree: {before} before + {len(changes.added)} added - {len(changes.deleted)}"
        f" deleted, but {len(found)} are in the index; missing there or too many: {differing}"
    )


def _quiet(one: _Synced) -> str:
    documents = "1 document" if one.after == 1 else f"{one.after or 'no'} documents"
    return f"{one.source.prefix} has not changed, {documents}"


def _counts(synced: Sequence[_Synced]) -> str:
    lines = [
        "| Documents | Before | Added | Changed | Deleted | Unchanged | Now in the index |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for one in synced:
        changes = one.changes
        counts = (changes.added, changes.changed, changes.deleted, changes.unchanged)
        name = " ".join(one.source.prefix.replace("`", "'").replace("|", "\\|").split())
        lines.append(f"| `{name}` | {one.before} | {' | '.join(str(len(keys)) for keys in counts)} | {one.after} |")
    return "\n".join(lines)
