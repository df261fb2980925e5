"""A mail as it arrives, read for its words: whatever is broken in it, as much as can be read is.

The standard library parses it under the old policy, ``compat32``: the newer one interprets headers while it parses
and raises on some that are broken. Headers are decoded here, one by one.
"""

import codecs
import email
import email.header
import email.utils
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message as Part
from email.policy import Compat32
from typing import Literal

from galley.instants import in_utc
from galley.texts import clip, listed
from sources.clean import clean_line, html_to_text, plain_text, without_marks
from sources.collected import short_hash
from sources.quoted import without_quotes

MAX_TITLE_CHARS = 300
MAX_AUTHOR_CHARS = 200
MAX_PARTS = 200
MAX_DEPTH = 20
MAX_BOUNDARIES = 10_000
MAX_LINES = 500_000
MAX_LINES_BY_BOUNDARIES = 10_000_000
"""The parser compares each line with every boundary that is open: so many comparisons take about a second."""
_MAX_HEADER_CHARS = 10_000
_MAX_TEXT_CHARS = 1_000_000
_ATTACHMENTS_NAMED = 10

# A file without a single one of these is something else: a picture, a note, a mailbox index.
_MAIL_HEADERS = frozenset(
    "from to cc subject date message-id received return-path reply-to sender mime-version content-type".split()
)
# Text that is not meant to be read as the message's words; it is named like any attachment.
_DATA_TEXTS = frozenset(
    f"text/{kind}" for kind in "calendar css csv javascript rfc822-headers vcard x-vcard xml".split()
)
# What senders call a charset, where Python knows it by another name or the superset is what they mean.
_CHARSETS = {
    "iso-8859-1": "cp1252",
    "latin-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso-8859-8-i": "iso-8859-8",
    "windows-874": "cp874",
    "utf-8mb4": "utf-8",
}
# Python's names for transformations that are no charset of a mail; the first two take quadratic time.
_NO_CHARSETS = frozenset({"punycode", "idna", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem"})


class NotAMessage(Exception):
    """Why the bytes cannot be read as a mail, in words."""


@dataclass(frozen=True, slots=True)
class Message:
    """``date`` is the sender's, in UTC, where there is a valid one. ``warnings`` say what had to be guessed.

    ``fingerprint`` is equal for two copies of one message: by Message-ID, sender and date, or without a Message-ID
    by all its bytes. The Message-ID alone would let anyone who knows it suppress a message by sending another.
    """

    title: str
    author: str | None
    date: datetime | None
    text: str
    fingerprint: str
    warnings: tuple[str, ...] = ()


class _ClippedHeaders(Compat32):
    """The old policy with a bound: the parser takes quadratic time over the parameters of one long header."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_MAX_HEADER_CHARS]


Quotes = Literal["cut", "keep"]
"""What becomes of what a mail quotes of earlier ones, and of its signature."""


def read_message(raw: bytes, max_chars: int, quotes: Quotes = "cut") -> Message:
    """Return what a mail says: its plain text, or its HTML as text; of attachments the names alone.

    What it quotes and its signature are cut out of its text, with a mark in their place, unless ``quotes`` says
    otherwise.

    Raises:
        NotAMessage: when it is empty, has no header of a mail, or cannot be parsed at all.
    """
    if not raw.strip():
        raise NotAMessage("it is empty")
    # The parser makes an object of a kilobyte for each part, and keeps every header line.
    if raw.count(b"\n--") > MAX_BOUNDARIES:
        raise NotAMessage(f"more than {MAX_BOUNDARIES:,} lines in it look like boundaries of parts")
    if raw.count(b"\n") > MAX_LINES:
        raise NotAMessage(f"it has more than {MAX_LINES:,} lines")
    if raw.count(b"\n") * raw.lower().count(b"boundary") > MAX_LINES_BY_BOUNDARIES:
        raise NotAMessage("it has too many lines for as many boundaries of parts as it declares")
    try:
        part = email.message_from_bytes(raw, policy=_ClippedHeaders())
    except Exception as error:  # the parser recurses into what the sender wrote
        raise NotAMessage(f"it cannot be parsed ({type(error).__name__})") from error
    headers = _headers(part)
    if not _MAIL_HEADERS & headers.keys():
        raise NotAMessage("it has none of a mail's headers")
    title = clean_line(_decoded(headers.get("subject", "")), MAX_TITLE_CHARS)
    words = _Words(title, quotes)
    try:
        words.read(part)
    except Exception as error:  # as above, with the parts' headers
        words.warnings.append(f"only in part readable ({type(error).__name__})")
    return Message(
        title=title or "(no subject)",
        author=clean_line(_decoded(headers.get("from", "")), MAX_AUTHOR_CHARS) or None,
        date=_date(headers.get("date", "")),
        text=words.together(max_chars),
        fingerprint=_fingerprint(headers, raw),
        warnings=tuple(dict.fromkeys(words.warnings)),
    )


def _headers(part: Part) -> dict[str, str]:
    """Return the raw headers by lower-case name; of several with one name the first."""
    headers: dict[str, str] = {}
    for name, value in part.raw_items():
        headers.setdefault(name.lower(), str(value))
    return headers


def _decoded(raw: str) -> str:
    """Return a header's text: encoded words (RFC 2047) and bare 8-bit characters decoded, whatever their charset."""
    text, _ = decode(raw.encode("utf-8", "surrogateescape"), None)
    try:
        return "".join(
            chunk if isinstance(chunk, str) else _decoded_word(chunk, charset)
            for chunk, charset in email.header.decode_header(text)
        )
    except ValueError:  # HeaderParseError and binascii.Error are ValueErrors
        return text


def _decoded_word(chunk: bytes, charset: str | None) -> str:
    if charset is not None:
        return decode(chunk, charset)[0]
    try:
        # What decode_header encodes the text between the words with.
        return chunk.decode("raw-unicode-escape")
    except UnicodeDecodeError:
        return chunk.decode("latin-1")


def _date(raw: str) -> datetime | None:
    try:
        moment = email.utils.parsedate_to_datetime(_decoded(raw))
        # RFC 5322, 3.3: -0000 is UTC without a word about the sender's zone, and Python returns it naive.
        return in_utc(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _fingerprint(headers: dict[str, str], raw: bytes) -> str:
    message_id = headers.get("message-id", "").strip()
    if message_id:
        return short_hash("id", message_id, headers.get("from", ""), headers.get("date", ""))
    return short_hash("bytes", hashlib.sha256(raw).hexdigest())


def decode(data: bytes, charset: str | None) -> tuple[str, str | None]:
    """Return the text, and a remark when its charset had to be guessed.

    Without a declared charset, or where the declared one is unknown or wrong, the text is UTF-8 if it is valid as
    that, else Latin-1, which always is.
    """
    declared = (charset or "us-ascii").strip().lower().replace("_", "-")
    codec = text_codec(_CHARSETS.get(declared, declared))
    if codec is not None:
        try:
            return data.decode(codec), None
        except (UnicodeError, ValueError):
            pass
    try:
        text, guess = data.decode("utf-8"), "UTF-8"
    except UnicodeDecodeError:
        text, guess = data.decode("latin-1"), "Latin-1"
    if charset is None:
        return text, None if guess == "UTF-8" else "it declares no charset and is not UTF-8; read as Latin-1"
    problem = "unknown" if codec is None else "not what the text is in"
    return text, f"its charset {clean_line(charset, 40)!r} is {problem}; read as {guess}"


def text_codec(name: str) -> str | None:
    """Return Python's name for a charset, None for what is none, or only transforms text."""
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):  # ValueError for a NUL in the name
        return None
    is_text = getattr(found, "_is_text_encoding", True)
    return found.name if is_text and found.name.replace("_", "-") not in _NO_CHARSETS else None


@dataclass
class _Words:
    """Walks through a message's parts and gathers its words, the names of its attachments, and remarks."""

    subject: str
    quotes: Quotes
    texts: list[str] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    parts_left: Iterator[int] = field(default_factory=lambda: iter(range(MAX_PARTS)))

    def read(self, part: Part, depth: int = 0) -> None:
        if depth > MAX_DEPTH or next(self.parts_left, None) is None:
            self.warnings.append(f"only its first {MAX_PARTS} parts, {MAX_DEPTH} levels deep, are read")
            return
        kind = part.get_content_type()
        children = _children(part)
        if kind == "multipart/alternative" and children:
            self._read_best(children, depth + 1)
        elif part.get_content_maintype() == "multipart" and children:
            for child in children:
                self.read(child, depth + 1)
        elif kind in ("message/rfc822", "message/global") and children:
            for child in children:
                self._read_forwarded(child, depth + 1)
        elif _is_words(part, kind):
            self._read_text(part, kind)
        else:
            self.attachments.append(_attachment_name(part, kind))

    def _read_best(self, children: Sequence[Part], depth: int) -> None:
        """Of alternatives take the plain text, else the last one that says anything (RFC 2046, 5.1.4)."""
        tried: list[tuple[str, _Words]] = []
        for child in children:
            words = _Words(self.subject, self.quotes, parts_left=self.parts_left)
            words.read(child, depth)
            tried.append((child.get_content_type(), words))
            self.attachments += words.attachments
        saying = [(kind, words) for kind, words in tried if any(text.strip() for text in words.texts)]
        plain = [words for kind, words in saying if kind == "text/plain"]
        for words in plain[:1] or [words for _, words in saying[-1:]]:
            self.texts += words.texts
            self.warnings += words.warnings

    def _read_forwarded(self, child: Part, depth: int) -> None:
        headers = _headers(child)
        subject = clean_line(_decoded(headers.get("subject", "")), MAX_TITLE_CHARS) or "(no subject)"
        author = clean_line(_decoded(headers.get("from", "")), MAX_AUTHOR_CHARS) or "unknown"
        self.texts.append(f"[Forwarded message from {author}: {subject}]")
        self.read(child, depth)

    def _read_text(self, part: Part, kind: str) -> None:
        data = part.get_payload(decode=True)
        if not isinstance(data, bytes):
            return
        text, remark = decode(data, part.get_content_charset())
        if remark:
            self.warnings.append(remark)
        self.texts.append(self._own(text, kind))

    def _own(self, text: str, kind: str) -> str:
        """Return the part's words, without what it quotes where that is to be cut."""
        is_html = kind == "text/html"
        if self.quotes == "keep":
            return html_to_text(text) if is_html else plain_text(text, _MAX_TEXT_CHARS)
        whole = html_to_text(text, quotes="marked") if is_html else without_marks(clip(text, _MAX_TEXT_CHARS))
        return plain_text(without_quotes(whole, subject=self.subject), _MAX_TEXT_CHARS)

    def together(self, max_chars: int) -> str:
        """Return the words, clipped, and below them the attachments' names."""
        text = "\n\n".join(text for text in self.texts if text)
        if not self.attachments:
            return clip(text, max_chars)
        names = clip(f"Attachments: {listed(self.attachments, _ATTACHMENTS_NAMED)}", max_chars)
        room = max_chars - len(names) - 2
        return f"{clip(text, room)}\n\n{names}" if text and room > 0 else names


def _children(part: Part) -> list[Part]:
    payload = part.get_payload()
    return [child for child in payload if isinstance(child, Part)] if isinstance(payload, list) else []


def _is_words(part: Part, kind: str) -> bool:
    if part.get_content_disposition() == "attachment" or kind in _DATA_TEXTS:
        return False
    # A multipart without its boundary was left in one piece; it is text to whoever looks at it.
    return part.get_content_maintype() in ("text", "multipart")


def _attachment_name(part: Part, kind: str) -> str:
    name = clean_line(_decoded(part.get_filename() or ""), 100)
    return re.sub(r"[\\/]+", "_", name) or f"unnamed {clean_line(kind, 60)}"
