"""Makes text that nobody vouches for inert: Markdown in which it can be read, but links, loads and runs nothing.

What holds is the escaping (``galley.markdown``): after it no character of the text can open a link, an image, a code
span, an entity or a tag. Taking addresses and markup out beforehand keeps the result readable, and keeps mail and chat
programs, which turn bare addresses into links by themselves, from bringing them back to life.
"""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from galley.markdown import escape, escape_entities
from galley.texts import clip
from sources.clean import strip_invisible

REMOVED = "(link removed)"

_DOT = r"[.\u3002\uff0e\uff61\u2024]"
_REST = r"[^\s<>]*+"
_LABELS = rf"(?:[\w\-]{{1,63}}+{_DOT}){{1,12}}"
_NO_HOST_ENDS_SO = "|".join(
    "asp aspx cpp css csv doc docx eml exe gif go htm html ini java jpe?g js json jsx kt log md pdf php png "
    "rb sql svg toml ts tsx txt xlsx? xml ya?ml".split()
)
_ADDRESS = re.compile(
    rf"""
      [a-z][a-z0-9+.\-]{{1,30}}:[/\\]+{_REST}                         # any scheme and a host; browsers take \ for /
    | (?<![\w:/]) /[/\\]++ [\w\[] {_REST}                               # the page's own scheme, and any host
    | (?:javascript|vbscript) : [^\s<>]++
    | (?<![^\W_]) (?:mailto|tel|sms|file|blob|about|callto|xmpp|magnet|intent|slack|tg) : [^\s<>]++
    | \b data: [\w.+\-]{{0,60}}+ [/;,] {_REST}
    | (?<![^\W_]) www\d{{0,3}} {_DOT} [^\s<>]++
    | \b {_LABELS} (?!(?:{_NO_HOST_ENDS_SO})\b) [a-z]{{2,24}} (?::\d{{1,5}})? [/?\#] {_REST} # a host and more
    """,
    re.IGNORECASE | re.VERBOSE,
)
_TRAILING = ".,;:!?'\"*_)]}»”’"

_ENTITY = re.compile(r"&(?:#\d{1,8}|#x[0-9a-f]{1,8}|[a-z][a-z0-9]{1,31});", re.IGNORECASE)
_TAG = re.compile(
    r"<!--(?:(?!-->|<!--).)*+-->|<[!?][a-z\[][^<>]*+>"
    # An attribute's value in quotes may hold < and >. Its length and number are bounded, so that the time is too.
    r"|</?[a-z][a-z0-9:\-]*+(?:[\s/](?:[^<>=]++|=\s*+(?:\"[^\"]{0,300}+\"|'[^']{0,300}+')?+){0,60}+)?>",
    re.IGNORECASE | re.DOTALL,
)
_AUTOLINK = re.compile(r"<([a-z][a-z0-9+.\-]{1,30}:[^\s<>]*+)>", re.IGNORECASE)
_IMAGE_OR_LINK = re.compile(
    r"(!?)\[((?:[^\[\]\\]++|\\.){0,200}+)\]"
    r"\(\s*+<?+([^\s()<>]*+(?:\([^\s()<>]*+\)[^\s()<>]*+)*+)>?+[^()]*+\)",
    re.DOTALL,
)
_PASSES = 20  # markup within markup; what is nested deeper stays as text, escaped like the rest

_RULE = re.compile(r"[\s\-=*_|:+~`]*")
_BULLET = re.compile(r"(\s*)[-*+•]\s+(.*)")
_NUMBERED = re.compile(r"(\s*)(\d{1,3})[.)]\s+(.*)")
_HEADING = re.compile(r"\s*#{1,6}\s+(.*)")
_STRUCTURE = re.compile(r"^(?:#{1,6}(?=\s|$)|[+-](?=\s|$)|>)")
_NUMBER = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
_BOLD = re.compile(r"\*\*(?=[^\s*])([^*]*[^\s*])\*\*")


@dataclass(frozen=True, slots=True)
class Inert:
    """Markdown that is safe to render, and what was taken out of it: addresses, and tags and images by their number."""

    markdown: str
    addresses: tuple[str, ...] = ()
    markup: int = 0


def defang(address: str) -> str:
    """Return an address as one can read it but no program takes it for a link, at most 120 characters of it."""
    return clip(address, 120).replace(":", "[:]", 1).replace(".", "[.]")


def target(link: str | None) -> str | None:
    """Return an item's own address as it may stand in ``[text](address)``, or None when it is not an http(s) one."""
    if not link or not link.isprintable() or any(character.isspace() for character in link):
        return None
    try:
        parts = urlsplit(link)
        usable = parts.scheme.lower() in {"http", "https"} and bool(parts.hostname) and parts.username is None
    except ValueError:
        return None
    return escape_entities(quote(link, safe="/:?#@!$&'*+,;=%~-._")) if usable else None


def inert_line(text: str, limit: int) -> Inert:
    """Return the text on one line, at most ``limit`` characters of it, as Markdown to stand within a line."""
    plain = plain_line(text, limit)
    return Inert(_unstructured(escape(plain.markdown)), plain.addresses, plain.markup)


def plain_line(text: str, limit: int) -> Inert:
    """Return the text on one line, at most ``limit`` characters of it, not as Markdown: for a title or a subject."""
    literal, addresses, markup = _literal(text)
    pieces: list[str] = []
    for piece, address in _split(literal):
        pieces.append(piece)
        if address:
            pieces.append(REMOVED)
            addresses.append(address)
    return Inert(clip(" ".join("".join(pieces).split()), limit), tuple(addresses), markup)


def inert_text(text: str, known: Mapping[str, str]) -> Inert:
    """Return paragraphs, lists and bold as Markdown in which nothing is live.

    ``known`` gives Markdown for the addresses that may stay; every other address is taken out and named.
    """
    literal, addresses, markup = _literal(text)
    lines: list[str] = []
    for line in literal.split("\n"):
        made = _line(line.expandtabs(4).rstrip(), known, addresses)
        if made or (lines and lines[-1]):
            lines.append(made)
    return Inert("\n".join(lines).strip(), tuple(addresses), markup)


def _literal(text: str) -> tuple[str, list[str], int]:
    """Decode entities once, and take tags, images and link syntax out, until nothing more is found."""
    text = strip_invisible(_ENTITY.sub(lambda found: html.unescape(found[0]), strip_invisible(text)))
    addresses: list[str] = []
    markup = 0

    def unlink(found: re.Match[str]) -> str:
        nonlocal markup
        image, label, address = found.groups()
        if image:
            markup += 1
        if image or not _ADDRESS.fullmatch(address):
            addresses.extend([address] if address else [])
            return label
        return f"{label} {address} "

    for _ in range(_PASSES):
        text, tags = _TAG.subn("", _AUTOLINK.sub(r" \1 ", text))
        text, links = _IMAGE_OR_LINK.subn(unlink, text)
        markup += tags
        if not tags and not links:
            break
    return text, addresses, markup


def _line(line: str, known: Mapping[str, str], addresses: list[str]) -> str:
    """Return a line as one of a list or a paragraph; "" when nothing but structure is in it.

    An empty list entry below a paragraph would make a heading of it, and a row of signs a rule or a table.
    """
    indent, mark, text = "", "", line
    if bullet := _BULLET.fullmatch(line):
        indent, mark, text = bullet[1], "- ", bullet[2]
    elif numbered := _NUMBERED.fullmatch(line):
        indent, mark, text = numbered[1], f"{numbered[2]}. ", numbered[3]
    elif heading := _HEADING.fullmatch(line):
        text = heading[1]
    if _RULE.fullmatch(text):
        return ""
    made = _unstructured(_spans(text.strip(), known, addresses))
    return f"{'  ' if mark and len(indent) >= 2 else ''}{mark}{made}" if made else ""


def _unstructured(line: str) -> str:
    """Return a line of Markdown that begins no heading, list or quotation of its own."""
    return _NUMBER.sub(r"\1\\\2", _STRUCTURE.sub(r"\\\g<0>", line))


def _spans(text: str, known: Mapping[str, str], addresses: list[str]) -> str:
    pieces: list[str] = []
    for piece, address in _split(text):
        pieces.append(_escape_but_bold(piece))
        if not address:
            continue
        if address in known:
            pieces.append(known[address])
        else:
            pieces.append(REMOVED)
            addresses.append(address)
    return "".join(pieces)


def _split(text: str) -> list[tuple[str, str]]:
    """Return the text in pieces, each with the address that follows it ("" after the last)."""
    pieces: list[tuple[str, str]] = []
    start = 0
    for found in _ADDRESS.finditer(text):
        address = _without_punctuation(found[0])
        pieces.append((text[start : found.start()], address))
        start = found.start() + len(address)
    pieces.append((text[start:], ""))
    return pieces


def _without_punctuation(address: str) -> str:
    while address and address[-1] in _TRAILING:
        if address[-1] == ")" and address.count("(") >= address.count(")"):
            break
        address = address[:-1]
    return address


def _escape_but_bold(text: str) -> str:
    pieces: list[str] = []
    start = 0
    for found in _BOLD.finditer(text):
        pieces += [escape(text[start : found.start()]), f"**{escape(found[1])}**"]
        start = found.end()
    pieces.append(escape(text[start:]))
    return "".join(pieces)
