"""What the index of a source holds, as it is remembered between runs: a sync's cursor, in as many rows as it needs.

All rows of a cursor move in the one transaction that stores the draft, so a manifest is never half the old one.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pydantic import Field

from drafter_file.sync import DocumentsSource
from galley.retry import NeverSucceeds
from galley.store import Cursor
from sources.collected import CursorState, read_cursor
from sources.documents import MAX_TAG_CHARS

PART_BYTES = 250_000
"""How much of a manifest one row of the table holds; it could be 400 KB."""
MOST_PARTS = 8
"""How many rows a manifest may have: what one transaction changes may be 4 MB.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html"""


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


class _Part(CursorState):
    """One row: key -> hash, etag of the entry, tag, slot of the draft that asks."""

    documents: Mapping[str, tuple[str, str, str, str]] = Field(default_factory=dict)
    last: str = ""


def read_manifest(cursors: Mapping[str, Cursor], source: DocumentsSource) -> Manifest:
    """Return the manifest in a source's cursors.

    Raises:
        NeverSucceeds: ``invalid_cursor``.
    """
    documents: dict[str, Known] = {}
    last = ""
    for name in _names(source.id):
        part = read_cursor(_Part, cursors.get(name), f"the documents of {source.id!r}")
        documents |= {key: Known(*fields) for key, fields in part.documents.items()}
        last = last or part.last
    return Manifest(documents, last)


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


def check_room(source: DocumentsSource, keys: Collection[str]) -> None:
    """See that a manifest of so many documents can be stored, before anything is done about them.

    Raises:
        NeverSucceeds: ``too_many_documents``.
    """
    largest = Known("0" * 64, "0" * 34, "0" * MAX_TAG_CHARS, "2026-01-01T00:00:00Z")
    if len(_split(dict.fromkeys(keys, largest))) > MOST_PARTS:
        raise NeverSucceeds(
            "too_many_documents",
            f"{source.place} holds {len(keys)} documents; the list of them takes more than the"
            f" {MOST_PARTS * PART_BYTES:,} bytes that one source may take. Give each of its parts a source of its own"
            f" in place of {source.id!r}",
        )


def _names(source: str) -> list[str]:
    """Return the ids of a source's cursors. No source can be called what the others are called: it has no dots."""
    return [source, *(f"{source}.{number}" for number in range(2, MOST_PARTS + 1))]


def _split(documents: Mapping[str, Known]) -> list[dict[str, list[str]]]:
    parts: list[dict[str, list[str]]] = [{}]
    size = 0
    for key, known in sorted(documents.items()):
        row = [known.sha256, known.entry, known.tag, known.asked]
        takes = len(json.dumps({key: row}))
        if size + takes > PART_BYTES and parts[-1]:
            parts.append({})
            size = 0
        parts[-1][key] = row
        size += takes
    return parts
