"""Text documents, in the bucket or on the web: which there are, what they say, and the chunks they are kept in."""

import hashlib
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from galley.bucket import Bucket, ObjectMissing, ObjectTooLarge, ObjectUnreadable
from sources.address_list import UnreadableList, read_addresses
from sources.clean import MAX_HTML_CHARS, clean_line, html_to_text, strip_invisible
from sources.fetch import Fetch, Fetched, FetchError, FetchLimits
from sources.message import text_codec

MAX_BYTES = 5_000_000
CHUNK_CHARS = 1_500
MAX_TAG_CHARS = 100
"""A longer tag is not kept: the document is read and hashed each time."""

_LIST_LIMITS = FetchLimits(wire_bytes=10_000_000, body_bytes=10_000_000)
_MARKDOWN_HEADING = re.compile(r"#{1,6}[ \t]+(.+)")
_UNDERLINE = re.compile(r"([=\-~^\"'*+#`:.])\1{2,}")
_LINES_BEFORE_A_TITLE = 40
_PARAGRAPH_BREAK = re.compile(r"\n(?:[ \t]*\n)+")
_HTML_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,1000})</title", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Listed:
    """A document of a listing. ``tag`` changes with its content, None where a listing does not tell."""

    key: str
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """One document. ``sha256`` is of its bytes, in hex; ``text`` has no invisible characters, and no markup if HTML.

    ``tag`` is what its place gave with it, "" if nothing: the same tag later means the same content.
    """

    key: str
    sha256: str
    title: str
    text: str
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that is there but cannot be taken in; ``why`` is one line."""

    key: str
    why: str


@dataclass(frozen=True, slots=True)
class Same:
    """A document that is what it was when it was given the tag."""


@dataclass(frozen=True, slots=True)
class Gone:
    """A document that has been removed since it was listed."""


Reading = Document | Unreadable | Same | Gone


class ListingFailed(Exception):
    """There is no complete listing of the documents. Its text is one line that says why."""


class Place(Protocol):
    """Where documents are."""

    def list(self) -> tuple[Listed, ...]:
        """Return all documents there are, each once.

        A listing that fails on the way raises: what was listed until then must not pass for all there is.

        Raises:
            ListingFailed: when there is none.
        """
        ...

    def read(self, listed: Listed, tag: str) -> Reading:
        """Return what has become of a document. ``tag`` is that of the copy one has, "" to have it whole anyway."""
        ...


@dataclass(frozen=True, slots=True)
class UnderPrefix:
    """The objects under a prefix of the bucket. What a console makes to stand for a folder is none."""

    bucket: Bucket
    prefix: str

    def list(self) -> tuple[Listed, ...]:
        """Return every document under the prefix."""
        return tuple(Listed(info.key, info.etag) for info in self.bucket.list(self.prefix) if info.key[-1:] != "/")

    def read(self, listed: Listed, tag: str) -> Reading:
        """Return the document whole; one that its listing shows to be the same need not be read."""
        key = listed.key
        try:
            body = self.bucket.get(key, max_bytes=MAX_BYTES)
        except ObjectMissing:
            return Gone()
        except ObjectUnreadable as error:
            return Unreadable(key, str(error))
        except ObjectTooLarge:
            return Unreadable(key, f"has more than {MAX_BYTES:,} bytes; split it")
        return read_document(key, body, listed.tag or "", is_html=key.lower().endswith((".html", ".htm")))


@dataclass(frozen=True, slots=True)
class AtAddresses:
    """The documents at the addresses that a list names. A document's key is its address."""

    fetch: Fetch
    url: str

    def list(self) -> tuple[Listed, ...]:
        """Return a document for each address in the list."""
        try:
            answer = self.fetch(self.url, limits=_LIST_LIMITS)
            if answer.status != 200:
                raise ListingFailed(f"{self.url}: it answers {answer.status}")
            return tuple(Listed(address) for address in read_addresses(answer.body))
        except FetchError as error:
            raise ListingFailed(str(error)) from error
        except UnreadableList as error:
            raise ListingFailed(f"{self.url}: {error}") from error

    def read(self, listed: Listed, tag: str) -> Reading:
        """Ask for the document if it is not what the tag says. One that does not answer as it should is unreadable.

        An answer that it is not there (404, 410) does not make it gone: that is for the list to say.
        """
        headers = {"If-None-Match": tag} if tag else {}
        limits = FetchLimits(wire_bytes=MAX_BYTES, body_bytes=MAX_BYTES)
        try:
            answer = self.fetch(listed.key, headers=headers, limits=limits)
        except FetchError as error:
            return Unreadable(listed.key, error.reason)
        if answer.status == 304 and tag:
            return Same()
        if answer.status != 200:
            return Unreadable(listed.key, f"answers {answer.status}; mend it, or take it off the list")
        content_type = answer.headers.get("content-type", "").lower()
        charset = _CHARSET.search(content_type)
        return read_document(
            listed.key,
            answer.body,
            _tag_of(answer),
            is_html=content_type.startswith(("text/html", "application/xhtml+xml")),
            charset=charset[1] if charset else "utf-8",
        )


def read_document(key: str, body: bytes, tag: str, *, is_html: bool, charset: str = "utf-8") -> Document | Unreadable:
    """Return the document that these bytes are, or why it cannot be taken in."""
    name = "UTF-8" if charset in ("utf-8", "utf8") else charset
    codec = "utf-8-sig" if name == "UTF-8" else text_codec(charset)
    if codec is None:
        return Unreadable(key, f"says that it is written in {clean_line(charset, 40)}, which is not known")
    try:
        text = body.decode(codec)
    except UnicodeDecodeError as error:
        return Unreadable(key, f"is not text in {name} (byte {error.start}); convert it")
    except ValueError:  # some codecs do not say where it is
        return Unreadable(key, f"is not text in {clean_line(name, 40)}; convert it")
    if "\0" in text:
        return Unreadable(key, "is not text, it has zero bytes in it; move it out of the prefix")
    if is_html and len(text) > MAX_HTML_CHARS:
        return Unreadable(key, f"has more than {MAX_HTML_CHARS:,} characters of HTML; split it")
    title = clean_line(html.unescape(found[1]), 200) if is_html and (found := _HTML_TITLE.search(text)) else ""
    text = html_to_text(text) if is_html else strip_invisible(text)
    last_part = key.rstrip("/").rpartition("/")[2]
    title = title or _title(text) or clean_line(last_part, 200)
    return Document(key, hashlib.sha256(body).hexdigest(), title, text, tag if len(tag) <= MAX_TAG_CHARS else "")


def _tag_of(answer: Fetched) -> str:
    tag = answer.headers.get("etag", "")
    return tag if tag.isascii() and tag.isprintable() else ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document. ``id`` is made of its text alone and is unique within the document."""

    id: str
    text: str


def chunks_of(text: str) -> Iterator[Chunk]:
    """Yield the chunks of a text in their order. A chunk keeps its id for as long as its text is in the document."""
    uses: dict[str, int] = {}
    for piece in chunks(text):
        name = hashlib.sha256(piece.encode()).hexdigest()[:16]
        uses[name] = uses.get(name, 0) + 1
        yield Chunk(name if uses[name] == 1 else f"{name}-{uses[name]}", piece)


def chunks(text: str) -> Iterator[str]:
    """Yield the text in pieces of at most ``CHUNK_CHARS`` characters that end with a paragraph where one fits.

    A heading begins a piece: a change in one section then leaves the pieces of the others as they are.
    """
    piece = ""
    for paragraph in _PARAGRAPH_BREAK.split(text.strip("\n")):
        joined = f"{piece}\n\n{paragraph}" if piece else paragraph
        if len(joined) <= CHUNK_CHARS and not (piece and _heading(paragraph.split("\n", 3)[:3])):
            piece = joined
            continue
        if piece:
            yield piece
        *whole, piece = _cut(paragraph)
        yield from whole
    if piece.strip():
        yield piece


def _cut(paragraph: str) -> list[str]:
    """Cut a paragraph that is too long after a line, a sentence or a word in the last half of each piece."""
    pieces: list[str] = []
    start = 0
    while len(paragraph) - start > CHUNK_CHARS:
        end = start + CHUNK_CHARS
        for mark in ("\n", ". ", " "):
            found = paragraph.rfind(mark, end - CHUNK_CHARS // 2, end)
            if found > 0:
                end = found + len(mark.strip(" "))
                break
        if piece := paragraph[start:end].strip():
            pieces.append(piece)
        start = end
    return [*pieces, paragraph[start:].strip()]


def _title(text: str) -> str:
    """Return the first heading."""
    lines = text.split("\n", _LINES_BEFORE_A_TITLE)[:_LINES_BEFORE_A_TITLE]
    headings = (_heading(lines[place : place + 2]) for place in range(len(lines)))
    return next((heading for heading in headings if heading), "")


def _heading(lines: list[str]) -> str:
    """Return the heading that the lines begin with, "" if none.

    That is Markdown's ``#``, or a line with a line of signs below it as long as itself; one may stand above it too.
    """
    first, second = ([line.rstrip() for line in lines] + [""])[:2]
    if heading := _MARKDOWN_HEADING.fullmatch(first):
        return clean_line(heading[1].rstrip(" \t#") or heading[1][0], 200)
    if first and not _UNDERLINE.fullmatch(first) and _UNDERLINE.fullmatch(second) and len(second) >= len(first) - 1:
        return clean_line(first, 200)
    return _heading(lines[1:]) if len(lines) > 2 and _UNDERLINE.fullmatch(first) else ""
