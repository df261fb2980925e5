"""The entries of a feed, as feedparser read them, made into items. Pure."""

import calendar
import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from galley.drafts import Item
from galley.instants import format_instant
from galley.texts import clip
from sources.clean import clean_line, html_to_text, plain_text, web_link
from sources.collected import short_hash

MAX_TITLE_CHARS = 300
MAX_AUTHOR_CHARS = 200
NO_TITLE = "(no title)"
_MAX_TEXT_CHARS = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNDATED = datetime.min.replace(tzinfo=UTC)
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry, as an item, and what it is known by."""

    identity: str
    item: Item

    @property
    def version(self) -> str:
        """A hash of what it says."""
        return short_hash(self.item.title, self.item.text)[:6]


def read_entries(entries: Sequence[Any], base: str, source: str, max_chars: int) -> list[Entry]:
    """Return each entry once, oldest first. Feeds list the newest first, so that is the order of equal dates."""
    # Some feeds give one guid to all their entries; then it identifies none of them.
    uses = Counter(guid for guid, _ in {(dict.get(entry, "id"), dict.get(entry, "link")) for entry in entries})
    by_identity: dict[str, Entry] = {}
    for entry in reversed(entries):
        item = _item(entry, base, source, max_chars)
        guid = dict.get(entry, "id")
        identity = _identity(guid if uses[guid] == 1 else None, item)
        by_identity.setdefault(identity, Entry(identity, item))
    return sorted(by_identity.values(), key=lambda entry: entry.item.published or _UNDATED)


def _identity(guid: str | None, item: Item) -> str:
    if guid:
        return short_hash("guid", guid)
    if item.link:
        return short_hash("link", item.link)
    published = "" if item.published is None else format_instant(item.published)
    return short_hash("content", item.title, published, item.text)


def _item(entry: Any, base: str, source: str, max_chars: int) -> Item:
    # dict.get, because feedparser's own get answers "updated" with "published" and warns about it.
    link = web_link(dict.get(entry, "link"), base)
    text = _text(entry, max_chars)
    title = _cleaned(dict.get(entry, "title_detail"), _MAX_TEXT_CHARS)
    return Item(
        id="f",
        title=clean_line(title, MAX_TITLE_CHARS) or clean_line(text, 80) or NO_TITLE,
        text=text,
        source=source,
        link=link,
        author=clean_line(dict.get(entry, "author") or "", MAX_AUTHOR_CHARS) or None,
        published=_date(entry),
    )


def _text(entry: Any, max_chars: int) -> str:
    """Return the entry's full text where it has one, else its summary."""
    for detail in (*dict.get(entry, "content", ()), dict.get(entry, "summary_detail")):
        text = _cleaned(detail, max_chars)
        if text:
            return text
    return ""


def _cleaned(detail: Any, max_chars: int) -> str:
    kind, value = (dict.get(detail, "type"), dict.get(detail, "value")) if detail else (None, None)
    if not isinstance(value, str) or not str(kind or "text/plain").startswith(("text/", "application/xhtml")):
        return ""
    if kind in _HTML_TYPES:
        return clip(html_to_text(value), max_chars)
    return plain_text(value[:_MAX_TEXT_CHARS], max_chars)


def _date(entry: Any) -> datetime | None:
    """Return when the entry was published, else last changed. feedparser gives both in UTC."""
    for name in ("published_parsed", "updated_parsed", "created_parsed"):
        parsed = dict.get(entry, name)
        if parsed:
            with contextlib.suppress(ValueError, OverflowError, TypeError):
                return _EPOCH + timedelta(seconds=calendar.timegm(parsed))
    return None


def says_something(item: Item) -> bool:
    """Tell whether an entry has a title, a text or a link."""
    return item.title != NO_TITLE or bool(item.text or item.link)
