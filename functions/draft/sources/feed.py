"""RSS and Atom feeds: what they have that was not drafted before.

The cursor remembers what was seen, the validators for a conditional request, and where the feed has moved to. It
is stored with the draft, so a validator never hides entries that no draft has. For the same reason validators are
kept only when every entry of the answer was consumed.

A permanent redirect is believed when two answers in a row give the same one: a hotel's network or a mistaken server
redirects for an hour. Until then nothing is lost, since every redirect is followed. One from https to http is followed
and never kept. Where a feed moved to is asked anew each time under the rules of ``sources.fetch``, which reach no
private address, and is forgotten when there is no feed.
"""

import http.client
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, assert_never

from pydantic import Field

from galley.drafts import Item
from galley.instants import format_instant, in_utc
from galley.store import Cursor
from galley.texts import clip, counted, listed
from sources.clean import clean_line
from sources.collected import Collected, CursorState, Instant, Reading, SourceLimits, read_cursor, short_hash
from sources.feed_entries import Entry, read_entries, says_something
from sources.fetch import Fetch, Fetched, FetchError, FetchLimits
from sources.links import canonical

ACCEPT = "application/atom+xml, application/rss+xml, application/rdf+xml, application/xml;q=0.9, */*;q=0.5"
MAX_ENTRIES = 4_000
"""More entries than these, in the order of the document, are not read; all that are read can be remembered."""
MAX_TAGS = 150_000
"""feedparser takes up to a tenth of a millisecond for each tag, whatever the document."""
MAX_ATTRIBUTES_SQUARED = 200_000_000
"""feedparser takes quadratic time over the attributes of one tag: for so many, squared and added up, some seconds."""
MAX_REMEMBERED_GONE = 2_000
"""So many entries are remembered beyond those that the feed still has: some feeds bring old ones back."""
MAX_REMEMBERED_LINKS = 2_000
"""So many links of its items are remembered, for the other feeds that link there later."""
GONE_NAMED_EVERY = timedelta(days=7)
_FETCH_LIMITS = FetchLimits(wire_bytes=5_000_000, body_bytes=5_000_000)
_MAX_VALIDATOR_CHARS = 500
_DEFERRED_NAMED = 10
EDITED = "[This entry was in an earlier draft; it has changed since.]"
_CLOSED = re.compile(rb"</(?:\w+:)?(?:rss|feed|rdf)\s*>\s*(?:<!--[^<>]*-->\s*)*\Z", re.IGNORECASE)
_CLOSED_WITHIN = 1_000
_XML_ENCODING = re.compile(rb"(?:\xef\xbb\xbf)?<\?.*encoding=['\"](.*?)['\"].*\?>")
"""How feedparser finds what encoding a document declares: in its first line, and there the last one."""
_QUADRATIC_CODECS = (b"punycode", b"idna")
"""Python's codecs that decode in quadratic time. They are for names of hosts, and no feed is written in them."""


class _State(CursorState):
    """``url`` is the configured address that the rest belongs to; ``seen`` and ``links`` outlive a change of it.

    ``moving_to`` is where the last answer says that the feed has moved for good, ``moved_to`` where two of them did.
    ``gone_named`` is the slot whose draft said last that it is gone. ``versions`` holds a hash of each entry's text by
    its identity, where edits are taken.
    """

    url: str = ""
    moving_to: str | None = None
    moved_to: str | None = None
    gone: bool = False
    gone_named: Instant | None = None
    etag: str | None = None
    modified: str | None = None
    seen: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)


Edits = Literal["ignore", "take"]
"""What becomes of an entry that has another title or text than when it was drafted."""


@dataclass(frozen=True, slots=True)
class _Document:
    """A feed, as feedparser read it."""

    parsed: Any
    answer: Fetched


@dataclass(frozen=True, slots=True)
class _Unchanged:
    """The feed has not changed since the validators that were sent came from it (304)."""

    answer: Fetched


@dataclass(frozen=True, slots=True)
class _Gone:
    """The feed is gone for good (410)."""


@dataclass(frozen=True, slots=True)
class _Bad:
    """There is no feed to be had, for this reason; it names the feed."""

    reason: str


_Found = _Document | _Unchanged | _Gone | _Bad


def collect(
    fetch: Fetch,
    url: str,
    cursor: Cursor | None,
    until: datetime,
    limits: SourceLimits,
    edits: Edits = "ignore",
) -> Collected:
    """Return the entries of the feed that are new since the cursor, oldest first; those without a date before them.

    ``until`` is the slot: entries dated later wait for the next draft. Each item's ``source`` is the feed's address.
    With ``edits`` taken an entry is new again when its title or text has changed.
    Without a cursor, or with one of another address, only the newest entries are taken, as many as
    ``limits.first_run`` says; the older ones are passed over, and a warning says how many.
    A feed that cannot be read has failed, with one warning that names it and why; its cursor stays. A feed that
    answered 410 (gone) is not asked again until its address is changed, and is named once a week; one that moved for
    good is asked there.

    Raises:
        NeverSucceeds: for a cursor that is not one of ours.
    """
    until = in_utc(until)
    state = read_cursor(_State, cursor, f"the feed {url}")
    is_first = state.url != url
    if is_first:
        state = _State(url=url, seen=state.seen, links=state.links)
    if state.gone:
        return _if_new(_gone(state, until), cursor)
    previous = state.moved_to
    state, found = _ask(fetch, state)
    match found:
        case _Bad(reason):
            return Collected((), (clean_line(reason, 1_000),), None, reading=Reading.FAILED)
        case _Gone():
            return _gone(state.model_copy(update={"gone": True, "etag": None, "modified": None}), until)
        case _Unchanged():
            collected = Collected((), (), _stored(state), _stored(state), note="not changed, 304")
        case _Document():
            first_run = limits.first_run if is_first else None
            collected = _Pass(state, until, limits, edits, first_run, frozenset(state.seen)).over(found)
        case _:
            assert_never(found)
    if state.moved_to is not None and state.moved_to != previous:
        moved = f"the feed {url} has moved for good to {state.moved_to}; write that address in the drafter's file"
        collected = replace(collected, warnings=(clean_line(moved, 1_000), *collected.warnings))
    return _if_new(collected, cursor)


def _if_new(collected: Collected, stored: Cursor | None) -> Collected:
    """Return the same, with no cursor where the stored one says so already."""
    kept = [None if cursor == stored else cursor for cursor in (collected.cursor, collected.cursor_if_empty)]
    return replace(collected, cursor=kept[0], cursor_if_empty=kept[1])


def drafted_links(cursor: Cursor) -> frozenset[str]:
    """Return the hashes (``link_hash``) of the links that a feed's drafts had; none for a cursor of another kind."""
    links = cursor.get("links")
    return frozenset(str(link) for link in links) if isinstance(links, list | tuple) else frozenset()


def link_hash(link: str) -> str:
    """Return what is remembered of a link: equal for two that lead to the same place."""
    return short_hash("link", canonical(link))


def _gone(state: _State, until: datetime) -> Collected:
    """Return that there is nothing, and each week a warning; a run without a draft does not count as having told it."""
    note = "gone for good, 410, and not asked again"
    untold = _stored(state)
    if state.gone_named is not None and until - state.gone_named < GONE_NAMED_EVERY:
        return Collected((), (), untold, untold, reading=Reading.GONE, note=note)
    warning = (
        f"the feed {state.url}: it is gone for good (410) and is not asked again; "
        "remove it from the drafter's file, or give it another id to ask it once more"
    )
    return Collected(
        (),
        (clean_line(warning, 1_000),),
        _stored(state.model_copy(update={"gone_named": until})),
        untold,
        reading=Reading.GONE,
        note=note,
    )


def _stored(state: _State) -> Cursor:
    return state.model_dump(mode="json", exclude_defaults=True)


def _ask(fetch: Fetch, state: _State) -> tuple[_State, _Found]:
    """Ask the feed where it moved to; when it is not there, where it was configured, and without validators."""
    if state.moved_to is not None:
        there = _look(fetch, state.moved_to, state.url, _validators(state))
        if isinstance(there, _Document | _Unchanged):
            return _moved(state, state.moved_to, there.answer), there
        found = _look(fetch, state.url, state.url, {})
        if isinstance(found, _Gone):
            # The old address may well be given up once all have moved: what counts is the new one.
            return state, there
        state = state.model_copy(update={"moved_to": None, "moving_to": None, "etag": None, "modified": None})
    else:
        found = _look(fetch, state.url, state.url, _validators(state))
    if isinstance(found, _Document | _Unchanged):
        state = _moved(state, state.url, found.answer)
    return state, found


def _moved(state: _State, asked: str, answer: Fetched) -> _State:
    """Keep where the feed has moved to when it is said a second time."""
    target = answer.moved_permanently_to
    if target is not None and asked.startswith("https:") and not target.startswith("https:"):
        target = None
    if target is not None and target == state.moving_to:
        return state.model_copy(update={"moved_to": target, "moving_to": None})
    return state.model_copy(update={"moving_to": target})


def _look(fetch: Fetch, address: str, url: str, validators: Mapping[str, str]) -> _Found:
    """Ask an address for the feed that is configured as ``url``."""
    try:
        answer = fetch(address, headers={"Accept": ACCEPT, **validators}, limits=_FETCH_LIMITS)
    except FetchError as error:
        return _Bad(f"the feed {error}")
    if answer.status == 304 and validators:
        return _Unchanged(answer)
    if answer.status == 410:
        return _Gone()
    if not 200 <= answer.status < 300:
        return _Bad(f"the feed {url}: {_refusal(answer)}")
    parsed = _parsed(answer)
    return _Bad(f"the feed {url}: {parsed}") if isinstance(parsed, str) else _Document(parsed, answer)


def _validators(state: _State) -> dict[str, str]:
    headers = {"If-None-Match": state.etag, "If-Modified-Since": state.modified}
    return {name: value for name, value in headers.items() if value is not None}


_NO_VALIDATORS: Mapping[str, str | None] = {"etag": None, "modified": None}


def _validators_in(answer: Fetched) -> Mapping[str, str | None]:
    return {
        "etag": _validator(answer.headers.get("etag")),
        "modified": _validator(answer.headers.get("last-modified")),
    }


def _refusal(answer: Fetched) -> str:
    if answer.status == 429:
        retry_after = answer.headers.get("retry-after")
        return "it asks for fewer requests (429)" + (f", to come back after {retry_after}" if retry_after else "")
    if answer.status == 304:
        return "it answers 304 (not changed) to a request that asked for no such answer"
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
    if sum(piece.count(b"=") ** 2 for piece in answer.body.split(b"<")) > MAX_ATTRIBUTES_SQUARED:
        return "it has tags with too many attributes"
    content_type = answer.headers.get("content-type", "")
    if _is_quadratic(content_type, answer.body):
        return "it says that it is in an encoding that is none of text"
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
    # Without an entry it counts as a feed that has none only when it goes on to its end; an entity that XML does not
    # know, or a prefix that nobody declared, cuts nothing off.
    if _is_broken(document) and not _CLOSED.search(answer.body[-_CLOSED_WITHIN:]):
        return f"it is broken, nothing in it can be read ({document.bozo_exception})"
    return document


def _is_quadratic(content_type: str, body: bytes) -> bool:
    """Whether a feed declares an encoding that would take hours to decode, in its header or in its XML."""
    in_xml = _XML_ENCODING.match(body)
    declared = content_type.encode(errors="replace").lower() + (b" " + in_xml[1].lower() if in_xml else b"")
    return any(codec in declared for codec in _QUADRATIC_CODECS)


def _is_broken(document: Any) -> bool:
    """Whether the document is not well formed; a wrong content type or declared encoding alone does no harm."""
    import feedparser

    harmless = (feedparser.CharacterEncodingOverride, feedparser.NonXMLContentType)
    return bool(document.bozo) and not isinstance(document.bozo_exception, harmless)


@dataclass(frozen=True, slots=True)
class _Pass:
    """One pass over a feed's entries; ``first_run`` is how many of them a first one takes, None for any other."""

    state: _State
    until: datetime
    limits: SourceLimits
    edits: Edits
    first_run: int | None
    seen: frozenset[str]

    def over(self, found: _Document) -> Collected:
        """Return what is new in the document."""
        most = self.limits.remembered(MAX_ENTRIES)
        entries = read_entries(found.parsed.entries[:most], found.answer.url, self.state.url, self.limits.max_chars)
        new = [entry for entry in entries if self._is_new(entry)]
        due = [entry for entry in new if not self._is_later(entry)]
        deferred = [entry for entry in new if self._is_later(entry)]
        passed = due[: -self.first_run] if self.first_run is not None else []
        due = due[len(passed) :]
        taken, left_out = due[: self.limits.max_items], due[self.limits.max_items :]
        mute = [entry for entry in taken if not says_something(entry.item)]
        items = [self._item(entry) for entry in taken if says_something(entry.item)]
        is_whole = not (deferred or left_out or _is_broken(found.parsed))
        state = self._after(entries, passed, taken)
        cursor = _stored(state.model_copy(update=_validators_in(found.answer) if is_whole else _NO_VALIDATORS))
        remarks = (
            *_about_entries(len(found.parsed.entries), most, passed, mute),
            *_about_waiting(deferred, left_out, self.until, self.limits),
        )
        return Collected(
            items=tuple(replace(item, id=f"f{number}") for number, item in enumerate(items, 1)),
            warnings=tuple(clean_line(f"the feed {self.state.url}: {remark}", 1_500) for remark in remarks),
            cursor=cursor,
            cursor_if_empty=cursor,
            left_out=len(left_out),
        )

    def _is_new(self, entry: Entry) -> bool:
        return entry.identity not in self.seen or self._is_edited(entry)

    def _is_edited(self, entry: Entry) -> bool:
        """Whether it was drafted with another text. An entry from before edits were taken has no text to compare."""
        drafted = self.state.versions.get(entry.identity)
        return self.edits == "take" and drafted is not None and drafted != entry.version

    def _is_later(self, entry: Entry) -> bool:
        return entry.item.published is not None and entry.item.published > self.until

    def _item(self, entry: Entry) -> Item:
        if not self._is_edited(entry):
            return entry.item
        return replace(entry.item, text=clip(f"{EDITED}\n\n{entry.item.text}", self.limits.max_chars))

    def _after(self, entries: Sequence[Entry], passed: Sequence[Entry], taken: Sequence[Entry]) -> _State:
        """Return the state in which these are done."""
        seen = {*self.seen, *(entry.identity for entry in (*passed, *taken))}
        present = [entry for entry in entries if entry.identity in seen]
        still_there = dict.fromkeys(entry.identity for entry in present)
        gone = [identity for identity in self.state.seen if identity not in still_there]
        links = [link_hash(entry.item.link) for entry in reversed(taken) if entry.item.link]
        links = list(dict.fromkeys((*links, *self.state.links)))
        return self.state.model_copy(
            update={
                "seen": (*still_there, *gone[: self.limits.remembered(MAX_REMEMBERED_GONE)]),
                "links": tuple(links[: self.limits.remembered(MAX_REMEMBERED_LINKS)]),
                "versions": self._versions(present, taken) if self.edits == "take" else {},
            }
        )

    def _versions(self, present: Sequence[Entry], taken: Sequence[Entry]) -> dict[str, str]:
        """Return the text that each entry was drafted with; of one that waits it is the one before."""
        drafted = {entry.identity: entry.version for entry in taken}
        return {
            entry.identity: drafted.get(entry.identity) or self.state.versions.get(entry.identity) or entry.version
            for entry in present
        }


def _about_entries(number: int, most: int, passed: Sequence[Entry], mute: Sequence[Entry]) -> Iterator[str]:
    if number > most:
        yield f"it has {number:,} entries; only the first {most:,} are read"
    if passed:
        yield (
            f"{counted(len(passed), 'older entry', 'older entries')} passed over: "
            "this is the first draft from this address"
        )
    if mute:
        yield f"{counted(len(mute), 'entry', 'entries')} without title, text and link passed over"


def _about_waiting(
    deferred: Sequence[Entry], left_out: Sequence[Entry], until: datetime, limits: SourceLimits
) -> Iterator[str]:
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


def _validator(value: str | None) -> str | None:
    """Return a validator that can be sent back as it came, or None."""
    usable = value is not None and value.isascii() and value.isprintable() and 0 < len(value) <= _MAX_VALIDATOR_CHARS
    return value if usable else None
