"""A list of addresses: a sitemap, in either of the forms that https://www.sitemaps.org/protocol.html gives it."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urldefrag
from xml.parsers import expat

from sources.clean import clean_line, web_link

_BLANKS = re.compile(r"\s+")


class UnreadableList(ValueError):
    """What is there is not a whole list. Its text is one line that says why."""


def read_addresses(body: bytes) -> tuple[str, ...]:
    """Return the addresses of a list, each once, in its order and without fragments.

    The list is a text in UTF-8 with one address on each line, or an XML sitemap, whose ``<loc>`` elements are taken.
    It is read whole or not at all: an address that went unread would pass for a document that is gone.

    Raises:
        UnreadableList: when it is anything else, or empty.
    """
    found = _in_xml(body) if body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") else _in_text(body)
    addresses = tuple(dict.fromkeys(_checked(found)))
    if not addresses:
        raise UnreadableList("has no addresses in it")
    return addresses


def _checked(found: Iterable[tuple[int, str]]) -> Iterator[str]:
    for line, text in found:
        address = web_link(text)
        if address != text:
            raise UnreadableList(f"line {line}: {clean_line(text, 100)!r} is not an http or https address")
        yield urldefrag(text).url


def _in_text(body: bytes) -> Iterator[tuple[int, str]]:
    try:
        lines = body.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UnreadableList(f"is not text in UTF-8 (byte {error.start})") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, line.strip()


def _in_xml(body: bytes) -> list[tuple[int, str]]:
    reader = _Sitemap()
    try:
        reader.parser.Parse(body, True)
    except UnreadableList:
        raise
    except expat.ExpatError as error:
        raise UnreadableList(f"is neither a sitemap nor a list of addresses ({error})") from error
    except (LookupError, ValueError) as error:
        # What expat itself does not read it asks Python for, and that knows no such encoding, or only a transformation.
        raise UnreadableList("says that it is in an encoding that is not read; use UTF-8") from error
    return reader.found


class _Sitemap:
    """Collects the ``<loc>`` of each ``<url>``. Without a document type there are no entities that could grow."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self._open: list[str] = []
        self._pieces: list[str] = []

    def _doctype(self, *_: object) -> None:
        raise UnreadableList("has a document type; it is a page, or a sitemap with entities, and neither is read")

    def _start(self, name: str, _: object) -> None:
        self._open.append(name)
        if len(self._open) == 1 and name.rpartition(" ")[2] != "urlset":
            kind = "an index of sitemaps; name one of them" if name.endswith("sitemapindex") else "no sitemap"
            raise UnreadableList(f"is {kind} (its element is {clean_line(name, 100)!r})")
        self._pieces = []

    def _text(self, text: str) -> None:
        self._pieces.append(text)

    def _end(self, _: str) -> None:
        space = self._open[0].rpartition("urlset")[0]
        if self._open == [f"{space}urlset", f"{space}url", f"{space}loc"]:
            self.found.append((self.parser.CurrentLineNumber, _BLANKS.sub(" ", "".join(self._pieces)).strip()))
        self._open.pop()
