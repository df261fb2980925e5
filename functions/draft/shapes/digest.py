"""digest: what is new in mail and feeds since the last draft."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode, urlsplit

from drafter_file.digest import FeedSource, MailSource
from galley.drafts import Item
from galley.retry import RetryLater
from galley.store import Cursor
from galley.texts import clip, listed
from shapes.shape import Assignment, Material
from sources import feed, mail
from sources.collected import Collected, SourceLimits

MOST_ITEMS = 200
"""So many items are in one draft at most, from all sources together; the others wait for the next one."""
MOST_CHARS = 8_000
"""So much of each item's text is read at most."""
_NAMED = 10
_MOST_REASON_CHARS = 4_000

_TRACKING = frozenset({"fbclid", "gclid", "dclid", "msclkid", "mc_cid", "mc_eid", "igshid", "yclid"})


def collect(assignment: Assignment) -> Material:
    """Return what each source has that is new at the slot, in the order of the drafter's file.

    Ids are ``m1``, ``m2``... for mail and ``f1``, ``f2``... for feed entries. An entry whose link another source has
    too is left out and named. A source that fails does not hold up the others: a warning names it, and its cursor
    stays where it is.

    With no items there is nothing new, and the reason says what was looked at and what was wrong with it. Of two things
    that must not pass in silence, neither does: when no source could be read, that is no quiet day, so the run is tried
    again and fails in the end; and the cursor of a mail source does not pass objects that could not be read, so that
    the next draft names them in its warnings. A copy of a message that was taken before is named once.

    Raises:
        RetryLater: ``sources_unavailable``, when there are no items and every source is a feed that could not be
            read: it did not answer, or not with a feed.
        NeverSucceeds: ``invalid_cursor``.
    """
    looks: list[_Look] = []
    items: list[Item] = []
    sources = [source for source in assignment.drafter.sources if isinstance(source, MailSource | FeedSource)]
    for place, source in enumerate(sources):
        kept_for_the_rest = len(sources) - place - 1
        room = MOST_ITEMS - len(items) - kept_for_the_rest
        look = _without_repeats(_look(source, assignment, room), looks)
        looks.append(look)
        items += look.collected.items
    warnings = tuple(f"{look.source.id}: {warning}" for look in looks for warning in look.collected.warnings)
    if not items:
        return _nothing_new(looks, warnings)
    cursors = {look.source.id: look.collected.cursor for look in looks if look.collected.cursor is not None}
    return Material(items=_numbered(looks), warnings=warnings, cursors=cursors)


@dataclass(frozen=True, slots=True)
class _Look:
    """What one source gave; ``links`` are its items' links, as they are compared with other sources'."""

    source: MailSource | FeedSource
    collected: Collected
    links: frozenset[str] = frozenset()

    @property
    def cursor_if_empty(self) -> Cursor | None:
        """The cursor that may move without a draft: not past mails that only a draft's warnings would name."""
        return self.collected.cursor_if_empty if isinstance(self.source, MailSource) else self.collected.cursor

    def __str__(self) -> str:
        match self.source:
            case MailSource(id=source_id, prefix=place) | FeedSource(id=source_id, url=place):
                return f"{source_id} ({place})"


def _look(source: MailSource | FeedSource, assignment: Assignment, room: int) -> _Look:
    cursor = assignment.cursors().get(source.id)
    limits = SourceLimits(max_items=min(source.max_items, room), max_chars=MOST_CHARS)
    match source:
        case MailSource():
            return _Look(source, mail.collect(assignment.bucket, source.prefix, cursor, assignment.slot, limits))
        case FeedSource():
            return _Look(source, feed.collect(assignment.fetch, source.url, cursor, assignment.slot, limits))


def _without_repeats(look: _Look, before: Sequence[_Look]) -> _Look:
    """Leave out what sources before this one have already; the same link twice in one source is the source's affair."""
    others = frozenset(link for other in before for link in other.links)
    collected = look.collected
    links = [canonical(item.link) if item.link else None for item in collected.items]
    repeats = [item.title for item, link in zip(collected.items, links, strict=True) if link in others]
    if repeats:
        named = listed([repr(title) for title in repeats], _NAMED)
        collected = replace(
            collected,
            items=tuple(item for item, link in zip(collected.items, links, strict=True) if link not in others),
            warnings=(*collected.warnings, f"{len(repeats)} left out, another source has the same link: {named}"),
        )
    return replace(look, collected=collected, links=frozenset(link for link in links if link is not None))


def canonical(link: str) -> str:
    """Return what stays of a link when all is left out that does not change where it leads.

    That is: the scheme, a leading ``www.``, the default port, the fragment, a slash at the end, and the parameters by
    which newsletters and networks follow their readers.
    """
    try:
        parts = urlsplit(link)
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    except ValueError:
        return link
    host = (parts.hostname or "").removeprefix("www.")
    kept = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if not (name.lower() in _TRACKING or name.lower().startswith("utm_"))
    ]
    query = f"?{urlencode(kept)}" if kept else ""
    return f"{host}{port}{parts.path.rstrip('/')}{query}"


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


def _nothing_new(looks: Sequence[_Look], warnings: Sequence[str]) -> Material:
    told = (*warnings[:_NAMED], f"and {len(warnings) - _NAMED} more") if len(warnings) > _NAMED else warnings
    if all(look.collected.failed for look in looks):
        raise RetryLater("sources_unavailable", clip("; ".join(("no source can be read", *told)), _MOST_REASON_CHARS))
    return Material(
        cursors={look.source.id: cursor for look in looks if (cursor := look.cursor_if_empty) is not None},
        nothing_new=clip("; ".join((f"nothing new in {', '.join(map(str, looks))}", *told)), _MOST_REASON_CHARS),
    )
