"""Text documents under a prefix of the bucket: which there are, what they say, and the chunks they are kept in."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from galley.bucket import Bucket, ObjectMissing, ObjectTooLarge, ObjectUnreadable
from sources.clean import clean_line, html_to_text, strip_invisible

MAX_BYTES = 5_000_000
CHUNK_CHARS = 1_500

_MARKDOWN_HEADING = re.compile(r"#{1,6}[ \t]+(.+?)[ \t#]*")
_UNDERLINE = re.compile(r"([=\-~^\"'*+#`:.])\1{2,}")
_LINES_BEFORE_A_TITLE = 40
_PARAGRAPH_BREAK = re.compile(r"\n(?:[ \t]*\n)+")


@dataclass(frozen=True, slots=True)
class Document:
    """One document. ``sha256`` is of its bytes, in hex; ``text`` has no invisible characters, and no markup if HTML."""

    key: str
    sha256: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that is there but cannot be taken in; ``why`` is one line."""

    key: str
    why: str


def list_documents(bucket: Bucket, prefix: str) -> tuple[str, ...]:
    """Return the key of every document under the prefix. What a console makes to stand for a folder is none.

    A listing that fails on the way raises: what was listed until then must not pass for all there is.
    """
    return tuple(info.key for info in bucket.list(prefix) if not info.key.endswith("/"))


def read_document(bucket: Bucket, key: str) -> Document | Unreadable | None:
    """Return the document, why it cannot be read, or None when it has been removed since it was listed."""
    try:
        body = bucket.get(key, max_bytes=MAX_BYTES)
    except ObjectMissing:
        return None
    except ObjectUnreadable as error:
        return Unreadable(key, str(error))
    except ObjectTooLarge:
        return Unreadable(key, f"has more than {MAX_BYTES:,} bytes; split it")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Unreadable(key, f"is not text in UTF-8 (byte {error.start}); convert it")
    if "\0" in text:
        return Unreadable(key, "is not text, it has zero bytes in it; move it out of the prefix")
    name = key.rpartition("/")[2]
    text = html_to_text(text) if name.lower().endswith((".html", ".htm")) else strip_invisible(text)
    return Document(key, hashlib.sha256(body).hexdigest(), _title(text) or clean_line(name, 200), text)


def chunks(text: str) -> Iterator[str]:
    """Yield the text in pieces of at most ``CHUNK_CHARS`` characters that end with a paragraph where one fits."""
    piece = ""
    for paragraph in _PARAGRAPH_BREAK.split(text.strip("\n")):
        joined = f"{piece}\n\n{paragraph}" if piece else paragraph
        if len(joined) <= CHUNK_CHARS:
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
    """Return the first heading: Markdown's ``#``, or a line with a line of signs below it as long as itself."""
    lines = [line.rstrip() for line in text.split("\n", _LINES_BEFORE_A_TITLE)[:_LINES_BEFORE_A_TITLE]]
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if heading := _MARKDOWN_HEADING.fullmatch(line):
            return clean_line(heading[1], 200)
        if line and not _UNDERLINE.fullmatch(line) and _UNDERLINE.fullmatch(below) and len(below) >= len(line) - 1:
            return clean_line(line, 200)
    return ""
