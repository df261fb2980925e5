"""digest: what is new in mail and feeds since the last draft."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from drafter_file.digest import DigestSettings, FeedSource, MailSource
from galley.drafts import Item
from galley.retry import RetryLater
from galley.store import Cursor
from galley.texts import clip, listed
from shapes.digest.offered_again import SOURCE as REJECTED
from shapes.digest.offered_again import OfferedAgain, offer_again
from shapes.shape import Assignment, Material
from sources import feed, mail
from sources.collected import Collected, Reading, SourceLimits
from sources.feed import drafted_links, link_hash

MOST_CHARS = 8_000
"""So much of each item's text is read at most."""
SOURCES_WITH_FULL_MEMORY = 5
"""So many sources may remember as much as one may by itself, some 300 KB. They are stored in one transaction, of at
most 4 MB, with the old cursors as conditions:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html"""
_NAMED = 10
_MOST_REASON_CHARS = 4_000
_MOST_SHARE_OFFERED_AGAIN = 4


def collect(assignment: Assignment) -> Material:
    """Return what each source has that is new at the slot, in the order of the drafter's file.

    Ids are ``m1``, ``m2``... for mail, ``f1``, ``f2``... for feed entries, and ``r1``, ``r2``... for what a rejected
    draft had, where the drafter offers that again. An entry is left out and named when another source has its link too,
    or had it in an earlier draft. A source that fails does not hold up the others: a warning names it, and its cursor
    stays where it is.

    With no items there is nothing new, and the reason says what was looked at, what it answered and what was wrong with
    it. Of two things that must not pass in silence, neither does: when no source could be read, that is no quiet day,
    so the run is tried again and fails in the end; and what was set aside or passed over on a quiet day is named by the
    next draft too.

    Raises:
        RetryLater: ``sources_unavailable``, when there are no items, some feed could not be read (it did not answer, or
            not with a feed), and no other source could.
        NeverSucceeds: ``invalid_cursor``.
    """
    settings = assignment.drafter.digest or DigestSettings()
    cursors = assignment.cursors()
    sources = [source for source in assignment.drafter.sources if isinstance(source, MailSource | FeedSource)]
    again = _again(assignment, settings, cursors, len(sources))
    looks: list[_Look] = []
    room = settings.max_items - len(again.items)
    for place, source in enumerate(sources):
        kept_for_the_rest = len(sources) - place - 1
        limits = SourceLimits(
            max_items=min(source.max_items, room - kept_for_the_rest),
            max_chars=MOST_CHARS,
            first_run=source.first_run_items,
            memory=min(1.0, SOURCES_WITH_FULL_MEMORY / len(sources)),
        )
        had = _links_of_others(source.id, cursors)
        look = _without_repeats(_look(source, assignment, cursors.get(source.id), limits), looks, had)
        looks.append(look)
        room -= len(look.collected.items)
    items = (*_numbered(looks), *again.items)
    if not items:
        return _nothing_new(looks, again)
    moved = {look.source.id: look.collected.cursor for look in looks} | {REJECTED: again.cursor}
    return Material(
        items=items,
        warnings=(*again.warnings, *(warning for look in looks for warning in look.all_warnings)),
        cursors={source: cursor for source, cursor in moved.items() if cursor is not None},
    )


def _again(
    assignment: Assignment, settings: DigestSettings, cursors: Mapping[str, Cursor], sources: int
) -> OfferedAgain:
    match settings.rejected_items:
        case "drop":
            return OfferedAgain()
        case "offer_again":
            share = settings.max_items // _MOST_SHARE_OFFERED_AGAIN
            at_most = max(1, min(share, settings.max_items - sources))
            return offer_again(assignment.rejected, cursors.get(REJECTED), at_most)


@dataclass(frozen=True, slots=True)
class _Look:
    """What one source gave; ``links`` are hashes of its items' links, to be compared with other sources'."""

    source: MailSource | FeedSource
    collected: Collected
    links: frozenset[str] = frozenset()

    @property
    def warnings(self) -> Sequence[str]:
        """What this run has to say of the source."""
        return [f"{self.source.id}: {warning}" for warning in self.collected.warnings]

    @property
    def all_warnings(self) -> Sequence[str]:
        """What a draft has to say of the source: what runs without a draft had to say too."""
        return [*(f"{self.source.id}: {line}" for line in self.collected.untold), *self.warnings]

    def __str__(self) -> str:
        note = f"; {self.collected.note}" if self.collected.note else ""
        match self.source:
            case MailSource(id=source_id, prefix=place) | FeedSource(id=source_id, url=place):
                return f"{source_id} ({place}{note})"


def _look(
    source: MailSource | FeedSource, assignment: Assignment, cursor: Cursor | None, limits: SourceLimits
) -> _Look:
    slot = assignment.slot
    match source:
        case MailSource():
            return _Look(
                source, mail.collect(assignment.bucket, source.prefix, cursor, slot, limits, source.quoted_text)
            )
        case FeedSource():
            return _Look(source, feed.collect(assignment.fetch, source.url, cursor, slot, limits, source.edits))


def _links_of_others(source: str, cursors: Mapping[str, Cursor]) -> frozenset[str]:
    """Return the links that drafts had from other sources; also from those that are not in the file any more."""
    links = (drafted_links(cursor) for other, cursor in cursors.items() if other != source)
    return frozenset[str]().union(*links)


def _without_repeats(look: _Look, before: Sequence[_Look], had: frozenset[str]) -> _Look:
    """Leave out what sources before this one have already, or any other had in an earlier draft.

    The same link twice in one source is the source's affair.
    """
    have = frozenset(link for other in before for link in other.links)
    collected = look.collected
    linked = [(item, link_hash(item.link) if item.link else None) for item in collected.items]
    repeats = [item.title for item, link in linked if link in have]
    late = [item.title for item, link in linked if link in had and link not in have]
    warnings = [
        f"{len(titles)} left out, another source {how}: {listed([repr(title) for title in titles], _NAMED)}"
        for titles, how in ((repeats, "has the same link"), (late, "had the same link in an earlier draft"))
        if titles
    ]
    kept = [(item, link) for item, link in linked if link not in have and link not in had]
    return replace(
        look,
        collected=replace(collected, items=tuple(item for item, _ in kept), warnings=(*collected.warnings, *warnings)),
        links=frozenset(link for _, link in linked if link is not None),
    )


def _numbered(looks: Sequence[_Look]) -> tuple[Item, ...]:
    """Give the items ids that are unique within the draft."""
    counts: Counter[str] = Counter()
    items: list[Item] = []
    for look in looks:
        letter = "m" if isinstance(look.source, MailSource) else "f"
        for item in look.collected.items:
            counts[letter] += 1
            items.append(replace(item, id=f"{letter}{counts[letter]}"))
    return tuple(items)


def _nothing_new(looks: Sequence[_Look], again: OfferedAgain) -> Material:
    warnings = [*again.warnings, *(warning for look in looks for warning in look.warnings)]
    told = [*warnings[:_NAMED], f"and {len(warnings) - _NAMED} more"] if len(warnings) > _NAMED else warnings
    readings = {look.collected.reading for look in looks}
    if Reading.FAILED in readings and Reading.READ not in readings:
        raise RetryLater("sources_unavailable", clip("; ".join(("no source can be read", *told)), _MOST_REASON_CHARS))
    moved = {look.source.id: look.collected.cursor_if_empty for look in looks} | {REJECTED: again.cursor}
    return Material(
        cursors={source: cursor for source, cursor in moved.items() if cursor is not None},
        nothing_new=clip("; ".join((f"nothing new in {', '.join(map(str, looks))}", *told)), _MOST_REASON_CHARS),
    )
