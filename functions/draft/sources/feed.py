"""RSS and Atom feeds: what they have that was not drafted before.

The cursor remembers what was seen, the validators for a conditional request, and where the feed has moved to. It
is stored with the draft, so a validator never hides entries that no draft has. For the same reason validators are
kept only when every entry of the answer was consumed.
"""

import calendar
import contextlib
import http.client
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from galley.drafts import Item
from galley.instants import format_instant, in_utc
from galley.store import Cursor
from galley.texts import clip, counted, listed
from sources.clean import clean_line, html_to_text, plain_text, web_link
from sources.collected import Collected, CursorState, SourceLimits, read_cursor, short_hash
from sources.fetch import Fetch, Fetched, FetchError, FetchLimits

ACCEPT = "application/atom+xml, application/rss+xml, application/rdf+xml, application/xml;q=0.9, */*;q=0.5"
MAX_TITLE_CHARS = 300
MAX_AUTHOR_CHARS = 200
MAX_ENTRIES = 4_000
"""More entries than these, in the order of the document, are not read; all that are read can be remembered."""
MAX_TAGS = 150_000
"""feedparser takes up to a tenth of a millisecond for each tag, whatever the document."""
MAX_REMEMBERED_GONE = 4_000
"""So many entries are remembered beyond those that the feed still has: some feeds bring old ones back."""
_FETCH_LIMITS = FetchLimits(wire_bytes=5_000_000, body_bytes=5_000_000)
_MAX_VALIDATOR_CHARS = 500
_MAX_TEXT_CHARS = 1_000_000
_DEFERRED_NAMED = 10
NO_TITLE = "(no title)"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNDATED = datetime.min.replace(tzinfo=UTC)
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


class _State(CursorState):
    """``url`` is the configured address that the rest belongs to; ``seen`` outlives a change of it."""

    url: str = ""
    moved_to: str | None = None
    gone: bool = False
    etag: str | None = None
    modified: str | None = None
    seen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    identity: str
    item: Item


def collect(fetch: Fetch, url: str, cursor: Cursor | None, until: datetime, limits: SourceLimits) -> Collected:
    """Return the entries of the feed that are new since the cursor, oldest first; those without a date before them.

    ``until`` is the slot: entries dated later wait for the next draft. Each item's ``source`` is the feed's address.
    A feed that cannot be read has failed, with one warning that names it and why; its cursor stays. A feed that
    answered 410 (gone) is not asked again until its address is changed; one that moved for good is asked there.

    Raises:
        NeverSucceeds: for a cursor that is not one of ours.
    """
    state = read_cursor(_State, cursor, f"the feed {url}")
    if state.url != url:
        state = _State(url=url, seen=state.seen)
    if state.gone:
        return _failed(f"{url}: the feed is gone for good (410); remove it from the drafter's file")
    previous = state.moved_to
    try:
        state, answer = _ask(fetch, state)
    except FetchError as error:
        return _failed(f"the feed {error}")
    if answer.status == 304:
        return Collected((), (), None)
    if answer.status == 410:
        gone = state.model_copy(update={"gone": True, "etag": None, "modified": None})
        return _failed(
            f"{url}: the feed is gone for good (410) and is not asked again; remove it from the drafter's file",
            _stored(gone),
        )
    if not 200 <= answer.status < 300:
        return _failed(f"the feed {url}: {_refusal(answer)}")
    document = _parsed(answer)
    if isinstance(document, str):
        return _failed(f"the feed {url}: {document}")
    collected = _collect(document, answer, state, in_utc(until), limits)
    if state.moved_to is not None and state.moved_to != previous:
        moved = f"the feed {url} has moved for good to {state.moved_to}; write that address in the drafter's file"
        collected = replace(collected, warnings=(clean_line(moved, 1_000), *collected.warnings))
    return collected if collected.cursor != cursor else replace(collected, cursor=None)


def _failed(warning: str, cursor: Cursor | None = None) -> Collected:
    return Collected((), (clean_line(warning, 1_000),), cursor, failed=True)


def _stored(state: _State) -> Cursor:
    return state.model_dump(mode="json", exclude_defaults=True)


def _ask(fetch: Fetch, state: _State) -> tuple[_State, Fetched]:
    """Ask the feed where it moved to; when it is not there, where it was configured, and without validators."""
    accept = {"Accept": ACCEPT}
    if state.moved_to is not None:
        moved = _ask_moved(fetch, state.moved_to, accept | _validators(state))
        if moved is not None:
            return state.model_copy(update={"moved_to": moved.moved_permanently_to or state.moved_to}), moved
        answer = fetch(state.url, headers=accept, limits=_FETCH_LIMITS)
    else:
        answer = fetch(state.url, headers=accept | _validators(state), limits=_FETCH_LIMITS)
    return state.model_copy(update={"moved_to": answer.moved_permanently_to}), answer


def _ask_moved(fetch: Fetch, address: str, headers: Mapping[str, str]) -> Fetched | None:
    try:
        answer = fetch(address, headers=headers, limits=_FETCH_LIMITS)
    except FetchError:
        return None
    return answer if answer.status < 300 or answer.status == 304 else None


def _validators(state: _State) -> dict[str, str]:
    headers = {"If-None-Match": state.etag, "If-Modified-Since": state.modified}
    return {name: value for name, value in headers.items() if value is not None}


def _refusal(answer: Fetched) -> str:
    if answer.status == 429:
        retry_after = answer.headers.get("retry-after")
        return "it asks for fewer requests (429)" + (f", to come back after {retry_after}" if retry_after else "")
    return f"it answers {answer.status} {http.client.responses.get(answer.status, '')}".rstrip()


def _parsed(answer: Fetched) -> Any:
    """Return feedparser's document, or why the answer is no feed, as text.

    The bytes go in as a stream: feedparser opens text and bare bytes as an address or a file of that name.
    """
    import feedparser

    if not answer.body.strip():
        return "its answer is empty"
    if answer.body.count(b"<") > MAX_TAGS:
        return f"it has more than {MAX_TAGS:,} tags"
    content_type = answer.headers.get("content-type", "")
    headers = {"content-type": content_type, "content-location": answer.url}
    try:
        document = feedparser.parse(
            io.BytesIO(answer.body), response_headers=headers, resolve_relative_uris=False, sanitize_html=False
        )
    except Exception as error:  # its parsers raise whatever a strange document leads them to
        return f"it cannot be parsed ({type(error).__name__})"
    if document.entries:
        return document
    if not document.version:
        return f"it is not a feed (Content-Type: {content_type or 'none'})"
    if _is_broken(document):
        return f"it is broken, nothing in it can be read ({document.bozo_exception})"
    return document


def _is_broken(document: Any) -> bool:
    """Whether the document is not well formed; a wrong content type or declared encoding alone does no harm."""
    import feedparser

    harmless = (feedparser.CharacterEncodingOverride, feedparser.NonXMLContentType)
    return bool(document.bozo) and not isinstance(document.bozo_exception, harmless)


def _collect(document: Any, answer: Fetched, state: _State, until: datetime, limits: SourceLimits) -> Collected:
    entries = _entries(document, answer.url, state.url, limits.max_chars)
    seen = set(state.seen)
    new = [entry for entry in entries if entry.identity not in seen]
    due = [entry for entry in new if not _is_later(entry, until)]
    deferred = [entry for entry in new if _is_later(entry, until)]
    taken, left_out = due[: limits.max_items], due[limits.max_items :]
    mute = [entry for entry in taken if not _says_something(entry.item)]
    items = [entry.item for entry in taken if _says_something(entry.item)]

    seen.update(entry.identity for entry in taken)
    present = [entry.identity for entry in entries if entry.identity in seen]
    still_there = set(present)
    gone = [identity for identity in state.seen if identity not in still_there]
    whole = not (deferred or left_out or _is_broken(document))
    cursor = state.model_copy(
        update={
            "etag": _validator(answer.headers.get("etag")) if whole else None,
            "modified": _validator(answer.headers.get("last-modified")) if whole else None,
            "seen": (*present, *gone[:MAX_REMEMBERED_GONE]),
        }
    )
    return Collected(
        items=tuple(replace(item, id=f"f{number}") for number, item in enumerate(items, 1)),
        warnings=tuple(
            clean_line(f"the feed {state.url}: {warning}", 1_500)
            for warning in _remarks(document, mute, deferred, left_out, until, limits)
        ),
        cursor=_stored(cursor),
        left_out=len(left_out),
    )


def _remarks(
    document: Any,
    mute: Sequence[_Entry],
    deferred: Sequence[_Entry],
    left_out: Sequence[_Entry],
    until: datetime,
    limits: SourceLimits,
) -> Iterator[str]:
    if len(document.entries) > MAX_ENTRIES:
        yield f"it has {len(document.entries):,} entries; only the first {MAX_ENTRIES:,} are read"
    if mute:
        yield f"{counted(len(mute), 'entry', 'entries')} without title, text and link passed over"
    if deferred:
        titles = listed([repr(clean_line(entry.item.title, 80)) for entry in deferred], _DEFERRED_NAMED)
        yield (
            f"{counted(len(deferred), 'entry', 'entries')} dated after {format_instant(until)}, "
            f"for the next draft: {titles}"
        )
    if left_out:
        yield (
            f"{counted(len(left_out), 'more entry', 'more entries')} left for the next draft; "
            f"one takes at most {limits.max_items}"
        )


def _entries(document: Any, base: str, source: str, max_chars: int) -> list[_Entry]:
    """Return each entry once, oldest first. Feeds list the newest first, so that is the order of equal dates."""
    entries = document.entries[:MAX_ENTRIES]
    # Some feeds give one guid to all their entries; then it identifies none of them.
    uses = Counter(guid for guid, _ in {(dict.get(entry, "id"), dict.get(entry, "link")) for entry in entries})
    by_identity: dict[str, _Entry] = {}
    for entry in reversed(entries):
        item = _item(entry, base, source, max_chars)
        guid = dict.get(entry, "id")
        identity = _identity(guid if uses[guid] == 1 else None, item)
        by_identity.setdefault(identity, _Entry(identity, item))
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


def _is_later(entry: _Entry, until: datetime) -> bool:
    return entry.item.published is not None and entry.item.published > until


def _says_something(item: Item) -> bool:
    return item.title != NO_TITLE or bool(item.text or item.link)


def _validator(value: str | None) -> str | None:
    """Return a validator that can be sent back as it came, or None."""
    usable = value is not None and value.isascii() and value.isprintable() and 0 < len(value) <= _MAX_VALIDATOR_CHARS
    return value if usable else None
