"""What the index of a source holds, as it is remembered between runs: a sync's cursor, in as many rows as it needs.

All rows of a cursor move in the one transaction that stores the draft, so a manifest is never half the old one.
"""

import json
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import AfterValidator, Field

from drafter_file.sync import DocumentsSource
from galley.instants import parse_instant
from galley.retry import NeverSucceeds
from galley.store import Cursor
from sources.collected import CursorState, read_cursor
from sources.documents import MAX_TAG_CHARS, Listed

PART_BYTES = 250_000
"""How much of a manifest one row of the table holds; it could be 400 KB."""
MOST_BYTES = 7 * PART_BYTES
"""How much all manifests of a drafter may take: one transaction may hold 4 MB, and that counts the old cursors, as the
conditions of the new ones, and the draft's text with them.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
"""
_MOST_PARTS = 8


@dataclass(frozen=True, slots=True)
class Known:
    """A document as it was last taken in: the SHA-256 of its bytes, and the etag of its entry in the index.

    ``tag`` is what its place gave with it. ``asked`` is the slot of the draft that asks to delete it, "" if none does.
    """

    sha256: str
    entry: str
    tag: str = ""
    asked: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """All documents that the index holds, by key; ``last`` is the one after which an unfinished run's next goes on."""

    documents: Mapping[str, Known] = field(default_factory=dict)
    last: str = ""


def at_most(manifest: Manifest, there: Iterable[Listed]) -> Manifest:
    """Return the largest manifest that can become of one when these documents are there."""
    largest = Known("0" * 64, "0" * 34, asked="2026-01-01T00:00:00Z")
    tags = dict.fromkeys(manifest.documents, "0" * MAX_TAG_CHARS)
    tags |= {one.key: "0" * MAX_TAG_CHARS if one.tag is None else one.tag for one in there}
    return Manifest({key: replace(largest, tag=tag) for key, tag in tags.items()})


def _a_slot(text: str) -> str:
    if text:
        parse_instant(text)
    return text


class _Part(CursorState):
    """One row: key -> hash, etag of the entry, tag, slot of the draft that asks."""

    documents: Mapping[str, tuple[str, str, str, Annotated[str, AfterValidator(_a_slot)]]] = Field(default_factory=dict)
    last: str = ""


def read_manifest(cursors: Mapping[str, Cursor], source: DocumentsSource) -> Manifest | None:
    """Return the manifest in a source's cursors, None if there is none or it holds nothing.

    Raises:
        NeverSucceeds: ``invalid_cursor``.
    """
    documents: dict[str, Known] = {}
    last = ""
    for name in _names(source.id):
        part = read_cursor(_Part, cursors.get(name), f"the documents of {source.id!r}")
        documents |= {key: Known(*fields) for key, fields in part.documents.items()}
        last = last or part.last
    return Manifest(documents, last) if documents else None


def adopted(entries: Mapping[str, str], there: Container[str]) -> Manifest:
    """Return the manifest of an index of which nothing is remembered: what nobody can write anew must not be lost.

    ``entries`` are the etags of what is in it, ``there`` the documents that there are: those are taken in as new.
    """
    return Manifest({key: Known("", etag) for key, etag in entries.items() if key not in there})


def moved_cursors(cursors: Mapping[str, Cursor], source: DocumentsSource, manifest: Manifest) -> dict[str, Cursor]:
    """Return those of a source's cursors that must move for the manifest to be stored."""
    parts = _split(manifest.documents)
    moved: dict[str, Cursor] = {}
    for place, name in enumerate(_names(source.id)):
        cursor: Cursor = {"documents": parts[place] if place < len(parts) else {}}
        if place == 0 and manifest.last:
            cursor = {**cursor, "last": manifest.last}
        if cursor != cursors.get(name, {"documents": {}}):
            moved[name] = cursor
    return moved


def left_behind(cursors: Mapping[str, Cursor], sources: Container[str]) -> list[str]:
    """Return the ids under which an index was kept once and which the drafter's file does not name any more."""
    return [name for name, cursor in cursors.items() if "." not in name and name not in sources and _remembers(cursor)]


def forgotten(cursors: Mapping[str, Cursor], source: str) -> dict[str, Cursor]:
    """Return the cursors of a source with nothing in them."""
    return {name: {"documents": {}} for name in _names(source) if name in cursors}


def check_room(manifests: Iterable[Manifest]) -> None:
    """See that these manifests of one drafter can be stored, before anything is done about their documents.

    Raises:
        NeverSucceeds: ``too_many_documents``.
    """
    rows = [_bytes(key, known) for manifest in manifests for key, known in manifest.documents.items()]
    if sum(rows) > MOST_BYTES:
        raise NeverSucceeds(
            "too_many_documents",
            f"there are {len(rows):,} documents; the list of them takes {sum(rows):,} bytes of the {MOST_BYTES:,} that"
            " one drafter may remember. Give some of its sources, or some of their folders, to another drafter",
        )


def _remembers(cursor: Cursor) -> bool:
    return bool(cursor.get("documents"))


def _names(source: str) -> list[str]:
    """Return the ids of a source's cursors. No source can be called what the others are called: it has no dots."""
    return [source, *(f"{source}.{number}" for number in range(2, _MOST_PARTS + 1))]


def _split(documents: Mapping[str, Known]) -> list[dict[str, list[str]]]:
    parts: list[dict[str, list[str]]] = [{}]
    size = 0
    for key, known in sorted(documents.items()):
        takes = _bytes(key, known)
        if size + takes > PART_BYTES and parts[-1]:
            parts.append({})
            size = 0
        parts[-1][key] = _row(known)
        size += takes
    return parts


def _row(known: Known) -> list[str]:
    return [known.sha256, known.entry, known.tag, known.asked]


def _bytes(key: str, known: Known) -> int:
    """Return what a document takes in the JSON text of its row, where it is escaped to ASCII."""
    return len(json.dumps({key: _row(known)}))
