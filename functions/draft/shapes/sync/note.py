"""What a sync found and what it tells: a note of each document, the figures, and the warnings. Pure."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field

from drafter_file.sync import DocumentsSource
from galley.drafts import Item
from galley.store import Cursor
from galley.texts import clip, counted, listed
from shapes.sync.deletes import REFUSAL_HOLDS, Deletes, most_deletes
from shapes.sync.manifest import Known, Manifest
from sources.clean import clean_line, plain_text, web_link
from sources.documents import Document

ITEM_CHARS = 2_000
NAMED = 10
_HELD_NAMED = 50

_ADDRESS = re.compile(r"https?://([^/?]*)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Note:
    """What is told of one document; the lowest ``rank`` comes first. ``name`` is on one line."""

    rank: int
    name: str
    title: str
    text: str
    source: str
    link: str | None = None

    def item(self, item_id: str) -> Item:
        """Return the note as an item of a draft."""
        return Item(id=item_id, title=self.title, text=self.text, source=self.source, link=self.link)


@dataclass(slots=True)
class Found:
    """What reading the documents gave, each under its key.

    ``added``, ``changed`` and ``repaired`` have new entries in the index; ``same`` did not change. ``failed`` says why
    one cannot be read. ``vanished`` were listed and are gone, ``unread`` were not reached; ``last`` is the document
    after which the next run goes on, "" if there is none.
    """

    added: dict[str, Known] = field(default_factory=dict)
    changed: dict[str, Known] = field(default_factory=dict)
    repaired: dict[str, Known] = field(default_factory=dict)
    same: dict[str, Known] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    vanished: set[str] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)
    last: str = ""
    notes: dict[str, Note] = field(default_factory=dict)

    @property
    def written(self) -> dict[str, Known]:
        """Every document whose entry was written in this run."""
        return self.added | self.changed | self.repaired


@dataclass(frozen=True, slots=True)
class Counts:
    """How many documents were and are in the index, and what became of each, in the order of the figures' columns.

    ``held`` are gone and still in the index; ``failed`` and ``unread`` stay in it if they were.
    """

    before: int
    added: int
    changed: int
    moved: int
    deleted: int
    unchanged: int
    failed: int
    held: int
    unread: int
    after: int


@dataclass(frozen=True, slots=True)
class Synced:
    """One source, after the index was brought up to date. ``cursors`` are those that must move."""

    source: DocumentsSource
    counts: Counts
    deletes: Deletes
    notes: Sequence[Note]
    cursors: Mapping[str, Cursor]
    warnings: Sequence[str]

    @property
    def is_news(self) -> bool:
        """Whether there is something to write about."""
        counts = self.counts
        return bool(counts.added or counts.changed or counts.moved or counts.deleted or self.deletes.ask)


def _name(key: str, limit: int = 200) -> str:
    """Return a document's key for a person: on one line, and an address so that no program takes it for a link."""
    web = _ADDRESS.fullmatch(key)
    return clean_line(f"{web[1].replace('.', '[.]')}{web[2]}" if web else key, limit)


def _note(source: DocumentsSource, rank: int, key: str, title: str, text: str) -> Note:
    name = _name(key, 300)
    link = web_link(key)
    return Note(rank, name, title, text, name if link is None else source.id, link)


def taken(source: DocumentsSource, document: Document, *, is_new: bool) -> Note:
    """Return the note of a document that was added or changed."""
    name = _name(document.key, 300)
    what = f"Added: {name}. It begins:" if is_new else f"Changed: {name}. It now begins:"
    text = f"{what}\n\n{plain_text(document.text, ITEM_CHARS)}"
    return _note(source, 2 if is_new else 1, document.key, document.title, text)


def notes_of(
    source: DocumentsSource, found: Found, moved: Mapping[str, str], deletes: Deletes, counts: Counts
) -> list[Note]:
    """Return the notes of a source; ``moved`` is new key -> old key."""
    notes = [note for key, note in found.notes.items() if key not in moved]
    for key, old in moved.items():
        text = f"Moved: {_name(old, 300)} is now {_name(key, 300)}. Its content is the same."
        notes.append(_note(source, 3, key, found.notes[key].title, text))
    for key in deletes.now:
        name = _name(key, 300)
        text = f"Deleted: {name}. It is no longer there and was taken out of the index."
        notes.append(_note(source, 4, key, name, text))
    if deletes.ask:
        what = counted(len(deletes.ask), "document is", "documents are")
        text = f"{_request(source, deletes, counts)} They are: {listed([*map(_name, deletes.ask)], _HELD_NAMED)}"
        title = f"{source.id}: {what} gone and still in the index"
        notes.append(Note(0, title, title, clip(text, ITEM_CHARS), source.id))
    return notes


def _request(source: DocumentsSource, deletes: Deletes, counts: Counts) -> str:
    """Return what approving this draft allows, in a sentence or two that stand in the draft itself."""
    number, limit = len(deletes.ask), most_deletes(source, counts.before)
    because = f" More than {limit} at once are deleted only with approval." if number > limit else ""
    return (
        f"Held for approval: {number} of {counts.before} documents are gone and still in the index.{because} Approving"
        " this draft lets the next run take out those that are still gone; rejecting it keeps them."
    )


def about_documents(found: Found, stray: Sequence[str]) -> Iterator[str]:
    """Warn of documents that were not taken in, and of entries that were not as they must be."""
    if found.failed:
        yield f"not taken in: {listed([f'{_name(key)} {why}' for key, why in found.failed.items()], NAMED)}"
    if found.repaired:
        names = listed([*map(_name, found.repaired)], NAMED)
        yield f"entries of the index were missing or not as they had been stored, written anew: {names}"
    if stray:
        yield f"entries of the index that belonged to no document, removed: {listed([*map(_name, stray)], NAMED)}"
    if found.unread:
        yield (
            f"{counted(len(found.unread), 'document', 'documents')} not looked at before the run's time was nearly up;"
            " the next run begins with them"
        )


def about_deletes(manifest: Manifest, deletes: Deletes, undecided: Sequence[str]) -> Iterator[str]:
    """Warn of documents that are gone and stay in the index; ``undecided`` may have moved."""
    if undecided:
        yield (
            f"{counted(len(undecided), 'document', 'documents')} no longer listed; whether they moved or are gone is"
            f" known when all new ones are read: {listed([*map(_name, undecided)], NAMED)}"
        )
    if deletes.ask:
        yield f"approving this draft lets these leave the index: {listed([*map(_name, deletes.ask)], _HELD_NAMED)}"
    for slot, keys in _by_slot(manifest, deletes.open):
        yield f"{counted(len(keys), 'delete waits', 'deletes wait')} for the decision on the draft of {slot}"
    for slot, keys in _by_slot(manifest, deletes.refused):
        yield (
            f"{counted(len(keys), 'document is gone and stays', 'documents are gone and stay')} in the index, since the"
            f" draft of {slot} was rejected; asked again {REFUSAL_HOLDS.days} days after that"
        )


def _by_slot(manifest: Manifest, keys: Iterable[str]) -> list[tuple[str, list[str]]]:
    slots: dict[str, list[str]] = {}
    for key in keys:
        slots.setdefault(manifest.documents[key].asked, []).append(key)
    return sorted(slots.items())


def reconcile(counts: Counts, expected: Collection[str], found: Collection[str]) -> Iterator[str]:
    """Say where the index is not what it must be: before + added - deleted entries, one for each document."""
    if counts.before + counts.added - counts.deleted == counts.after and set(expected) == set(found):
        return
    differing = listed([_name(key) for key in sorted({*expected} ^ {*found})], NAMED)
    yield (
        f"the counts do not agree: {counts.before} before + {counts.added} added - {counts.deleted} deleted, but"
        f" {counts.after} are in the index; missing there or too many: {differing}"
    )


def quiet(one: Synced) -> str:
    """Return that there is nothing to tell of a source."""
    documents = counted(one.counts.after, "document", "documents") if one.counts.after else "no documents"
    told = "shows no change so far" if one.counts.unread else "has not changed"
    return f"{one.source.place} {told}, {documents}"


def figures_of(synced: Sequence[Synced]) -> str:
    """Return the counts of all sources, as Markdown in which nothing is live, and what the draft's approval allows."""
    columns = ("Added", "Changed", "Moved", "Deleted", "Unchanged", "Failed", "Held", "Not read")
    lines = [
        f"| Documents | Before | {' | '.join(columns)} | Now in the index |",
        f"| --- |{' ---: |' * (len(columns) + 2)}",
    ]
    for one in synced:
        place = _code(one.source.place).replace("|", "\\|")
        lines.append(f"| {place} | {' | '.join(map(str, astuple(one.counts)))} |")
    asking = [one for one in synced if one.deletes.ask]
    for one in asking:
        names = listed([_code(key) for key in one.deletes.ask], max(1, _HELD_NAMED // len(asking)))
        lines += ["", f"**{_code(one.source.id)}: {_request(one.source, one.deletes, one.counts)}** They are: {names}"]
    for one in synced:
        if one.deletes.allowed:
            lines += ["", f"{_code(one.source.id)}: deleted by approval: {len(one.deletes.allowed)}"]
    return "\n".join(lines)


def _code(text: str) -> str:
    """Return a name as Markdown in which nothing of it is live."""
    return f"`{_name(text, 120).replace('`', chr(39))}`"
