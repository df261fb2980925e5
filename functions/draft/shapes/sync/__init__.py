"""sync: the documents that changed are taken into the index, the counts are reconciled, and a note is drafted."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import assert_never

from drafter_file.sync import DocumentsSource
from galley.instants import format_instant, parse_instant
from galley.retry import RetryLater
from galley.store import Cursor
from galley.texts import clip, counted, listed
from shapes.shape import Assignment, Material
from shapes.sync.deletes import Deletes, Permission, judge_deletes, moves, permission
from shapes.sync.index import Index
from shapes.sync.manifest import (
    Known,
    Manifest,
    adopted,
    at_most,
    check_room,
    forgotten,
    left_behind,
    moved_cursors,
    read_manifest,
)
from shapes.sync.note import (
    NAMED,
    Counts,
    Found,
    Synced,
    about_deletes,
    about_documents,
    figures_of,
    notes_of,
    quiet,
    reconcile,
    taken,
)
from sources.clean import clean_line
from sources.documents import (
    AtAddresses,
    Document,
    Gone,
    Listed,
    ListingFailed,
    Place,
    Reading,
    Same,
    UnderPrefix,
    Unreadable,
)

RESERVED = timedelta(seconds=120)
"""What is kept of the run's time for deleting, listing, the model's call and storing; a fetch may run over by 20 s."""
MOST_ITEMS = 40
_MOST_REASON_CHARS = 1_000


def collect(assignment: Assignment) -> Material:
    """Bring the index up to date and return a note's material: one item for each document added, changed or deleted.

    Entries of the index are written and removed here, before the cursor moves (it does so in the transaction that
    stores the draft). A run that dies or fails in between leaves the old cursor: the next one finds the same changes,
    writes the same entries again and drafts the note. The cursor also holds the etag of each entry, so an entry that
    such a run (or anyone else) left in another state is seen in the listing of the index and written anew, even if its
    document has meanwhile gone back to what it was.

    Nothing is deleted unless both listings were complete and every new document was read: only then it is known that a
    document did not just move. What is too much to delete at once (``shapes.sync.deletes``) stays in the index, the
    draft asks, and the next run after its approval deletes what is still gone.

    New documents are read first, then the others from where the last run stopped. What is not reached before the run's
    time is nearly up is named, stays as it is, and comes first in the next run.

    A source whose list cannot be read does not hold up the others; a warning names it. So does one name what the index
    still holds of a source that the drafter's file does not name any more, until somebody removes it.

    Raises:
        RetryLater: ``sources_unavailable``, when no source's list can be read.
        NeverSucceeds: ``too_many_documents`` or ``invalid_cursor``.
    """
    sources = [source for source in assignment.drafter.sources if isinstance(source, DocumentsSource)]
    listings = [_list(assignment, source) for source in sources]
    whole = [listing for listing in listings if isinstance(listing, _Listing)]
    unlisted = tuple(listing for listing in listings if isinstance(listing, str))
    if not whole:
        told = f"no list of documents can be read: {'; '.join(unlisted)}"
        raise RetryLater("sources_unavailable", clip(told, _MOST_REASON_CHARS))
    check_room(at_most(listing.manifest, listing.there.values()) for listing in whole)
    synced = [_sync(assignment, listing, len(whole) - place) for place, listing in enumerate(whole)]
    left, forgotten_cursors = _left_behind(assignment, sources)
    warnings = (*unlisted, *(warning for one in synced for warning in one.warnings), *left)
    cursors = {**forgotten_cursors, **{name: cursor for one in synced for name, cursor in one.cursors.items()}}
    if not any(one.is_news for one in synced):
        told = "; ".join((*(quiet(one) for one in synced), *warnings))
        return Material(cursors=cursors, nothing_new=clip(told, _MOST_REASON_CHARS))
    notes = sorted((note for one in synced for note in one.notes), key=lambda note: note.rank)
    if left_out := [note.name for note in notes[MOST_ITEMS:]]:
        warnings += (f"{len(left_out)} more documents changed; they are not shown here: {listed(left_out, NAMED)}",)
    items = tuple(note.item(f"d{place}") for place, note in enumerate(notes[:MOST_ITEMS], start=1))
    return Material(items=items, figures=figures_of(synced), warnings=warnings, cursors=cursors)


def _left_behind(
    assignment: Assignment, sources: Iterable[DocumentsSource]
) -> tuple[tuple[str, ...], dict[str, Cursor]]:
    """Return a warning for each index that no source keeps any more, and the cursors of those that are gone."""
    warnings: list[str] = []
    cursors: dict[str, Cursor] = {}
    for name in left_behind(assignment.cursors(), {source.id for source in sources}):
        index = Index(assignment.bucket, assignment.drafter.name, name)
        if entries := index.etags():
            documents = counted(len(entries), "document", "documents")
            warnings.append(
                f"the index still holds {documents} of source {name!r}, which the drafter's file does not name any"
                f" more: remove {index.root} from the bucket, or name the source again"
            )
        else:
            cursors |= forgotten(assignment.cursors(), name)
    return tuple(warnings), cursors


@dataclass(frozen=True, slots=True)
class _Listing:
    """A source of which all documents are listed, and all entries of its index, by the documents' keys.

    ``manifest`` is what the last run knew of the index, ``entries`` are the etags of what is in it now.
    """

    source: DocumentsSource
    place: Place
    index: Index
    there: Mapping[str, Listed]
    entries: Mapping[str, str]
    manifest: Manifest


def _list(assignment: Assignment, source: DocumentsSource) -> _Listing | str:
    """Return a source's listing, or a warning that there is none."""
    place = _place(assignment, source)
    try:
        there = {one.key: one for one in place.list()}
    except ListingFailed as error:
        return f"{source.id}: {clean_line(str(error), 500)}; nothing of it was compared"
    index = Index(assignment.bucket, assignment.drafter.name, source.id)
    entries = index.etags()
    manifest = read_manifest(assignment.cursors(), source) or adopted(entries, there)
    return _Listing(source, place, index, there, entries, manifest)


def _sync(assignment: Assignment, listing: _Listing, sources_left: int) -> Synced:
    """Bring the index of one source up to date, in its share of the time that is left for so many sources."""
    source, index, there, manifest = listing.source, listing.index, listing.there, listing.manifest
    found = _read_all(listing, _is_time_up(assignment, sources_left))
    gone = {key: known.sha256 for key, known in manifest.documents.items() if key not in there or key in found.vanished}
    moved = moves(gone, {key: known.sha256 for key, known in found.added.items()})
    unmoved = gone.keys() - set(moved.values())
    are_all_new_read = all(key in manifest.documents for key in found.unread)
    deletes = Deletes()
    if are_all_new_read:
        deletes = _judge(assignment, source, manifest, len(there) - len(found.vanished), unmoved)
    kept = unmoved - set(deletes.now)
    documents = _documents(assignment, manifest, found, kept, deletes)
    taken_out = listing.entries.keys() - documents.keys()
    for key in sorted(taken_out):
        index.remove(key)
    after = index.etags()
    documents |= {key: replace(one, entry=after.get(key, "")) for key, one in found.written.items()}
    counts = _counts(manifest, found, moved, deletes, kept, len(after))
    return Synced(
        source=source,
        counts=counts,
        deletes=deletes,
        notes=notes_of(source, found, moved, deletes, counts),
        cursors=moved_cursors(assignment.cursors(), source, Manifest(documents, found.last)),
        warnings=[
            f"{source.id}: {warning}"
            for warning in (
                *about_documents(found, sorted(taken_out - manifest.documents.keys())),
                *about_deletes(manifest, deletes, [] if are_all_new_read else sorted(kept)),
                *reconcile(counts, documents.keys(), after.keys()),
            )
        ],
    )


def _place(assignment: Assignment, source: DocumentsSource) -> Place:
    if source.url is not None:
        return AtAddresses(assignment.fetch, source.url)
    return UnderPrefix(assignment.bucket, source.place)


def _is_time_up(assignment: Assignment, sources_left: int) -> Callable[[], bool]:
    """Return what tells whether this source's share of the run's time is used up."""
    left = assignment.time_left()
    until = left - max(left - RESERVED, timedelta()) / sources_left
    return lambda: assignment.time_left() <= until


def reading_order(keys: Iterable[str], known: Collection[str], last: str) -> list[str]:
    """Return in which order documents are read: new ones first, then those after the last one that was, around."""
    return sorted(keys, key=lambda key: (key in known, key in known and key <= last, key))


def _read_all(listing: _Listing, is_time_up: Callable[[], bool]) -> Found:
    """Read what may have changed, and write its entries."""
    known = listing.manifest.documents
    found = Found(last=listing.manifest.last)
    for key in reading_order(listing.there, known, listing.manifest.last):
        was = known.get(key)
        one = listing.there[key]
        stands = was if was is not None and listing.entries.get(key) == was.entry else None
        if stands is not None and one.tag and one.tag == stands.tag:
            found.same[key] = stands
        elif found.unread or is_time_up():
            found.unread.append(key)
        else:
            found.last = found.last if was is None else key
            reading = _read(listing.place, listing.index, one, "" if stands is None else stands.tag)
            _take(listing, found, key, stands, reading)
    if not found.unread:
        found.last = ""
    return found


def _read(place: Place, index: Index, one: Listed, tag: str) -> Reading:
    if not index.has_room_for(one.key):
        return Unreadable(one.key, "has too long a name for the index; shorten it")
    if index.would_leave(one.key):
        return Unreadable(one.key, "has more .. in its name than folders before them; give it a plain one")
    return place.read(one, tag)


def _take(listing: _Listing, found: Found, key: str, stands: Known | None, reading: Reading) -> None:
    """Note what was read, and write its entry unless the one that stands is right."""
    was = listing.manifest.documents.get(key)
    match reading:
        case Gone():
            found.vanished.add(key)
        case Unreadable(why=why):
            found.failed[key] = why
        case Same():
            if stands is not None:
                found.same[key] = stands
        case Document() as document:
            now = Known(document.sha256, "", document.tag)
            if was is None:
                found.added[key] = now
            elif was.sha256 != now.sha256:
                found.changed[key] = now
            elif stands is not None:
                found.same[key] = replace(stands, tag=now.tag)
                return
            else:
                found.repaired[key] = now
            listing.index.write(document)
            if key not in found.repaired:
                found.notes[key] = taken(listing.source, document, is_new=was is None)
        case _:
            assert_never(reading)


def _judge(
    assignment: Assignment,
    source: DocumentsSource,
    manifest: Manifest,
    left: int,
    gone: Collection[str],
) -> Deletes:
    """Return what becomes of the documents that are gone, by what was asked and decided about each."""

    @cache
    def said(slot: str) -> Permission:
        return permission(assignment.earlier_run(parse_instant(slot)), assignment.slot)

    asked = {key: known.asked for key, known in manifest.documents.items() if known.asked}
    return judge_deletes(
        {key: said(asked[key]) if key in asked else None for key in gone},
        source=source,
        before=len(manifest.documents),
        left=left,
        returned=[key for key in asked if key not in gone and said(asked[key]) is Permission.REFUSED],
    )


def _documents(
    assignment: Assignment, manifest: Manifest, found: Found, kept: Collection[str], deletes: Deletes
) -> dict[str, Known]:
    """Return what the index is to hold. What is there again is asked about no longer."""
    known = manifest.documents
    slot = format_instant(assignment.slot)
    unseen = {key: known[key] for key in (*found.failed, *found.unread) if key in known}
    there = {key: replace(one, asked="") for key, one in (found.same | unseen).items()}
    asked = set(deletes.ask)
    gone = {key: replace(known[key], asked=slot) if key in asked else known[key] for key in kept}
    return {**there, **found.written, **gone}


def _counts(
    manifest: Manifest, found: Found, moved: Mapping[str, str], deletes: Deletes, kept: Collection[str], after: int
) -> Counts:
    return Counts(
        before=len(manifest.documents),
        added=len(found.added) - len(moved),
        changed=len(found.changed),
        moved=len(moved),
        deleted=len(deletes.now),
        unchanged=len(found.same) + len(found.repaired),
        failed=len(found.failed),
        held=len(kept),
        unread=len(found.unread),
        after=after,
    )
