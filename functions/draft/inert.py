"""Makes text that nobody vouches for inert: Markdown in which it can be read, but links, loads and runs nothing.

What holds is the escaping (``galley.markdown``): after it no character of the text can open a link, an image, a code
span, an entity or a tag. Taking addresses and markup out beforehand keeps the result readable, and keeps mail and chat
programs, which turn bare addresses into links by themselves, from bringing them back to life. For the same reason the
names of hosts and mailboxes that are no item's own are written so that a person can read them and no program does, and
so is what calls people together (``@channel``, ``<!here>``, ``<@U123>``).
"""

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
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
_TOP_LEVELS = frozenset(
    "ac ad ae af ag ai al am ao ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw by bz ca cc cd cf"
    " cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo fr ga gd ge gf"
    " gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki"
    " km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my"
    " mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw qa re ro rs ru rw sa sb sc sd se"
    " sg sh si sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz"
    " va vc ve vg vi vn vu wf ws ye yt za zm zw"
    " aero agency app asia biz blog cafe cat center chat click cloud club com company coop cyou design dev digital edu"
    " email example finance fun fyi global gov group guru help host icu info int jobs life link live ltd media mil mobi"
    " money monster museum name net network news ninja online org page plus pro quest rest rocks sbs services shop site"
    " space store stream studio support systems tech technology test tips today tools top travel vip website win work"
    " world xin xyz zip zone рф".split()
)
"""What the name of a host ends in, where mail and chat programs make a link of the bare name: the countries', and the
generic ones most in use. https://www.iana.org/domains/root/db"""
_DOTTED = re.compile(rf"(?<![\w\-])[\w\-]++(?:{_DOT}[\w\-]++)++")
_MAILBOX = re.compile(rf"(?<![\w.+\-])[\w.+\-]{{1,64}}+@({_LABELS}[a-z]{{2,24}})(?![\w\-])", re.IGNORECASE)
_ANGLE_MENTION = re.compile(
    r"<([@#])[!&]?([a-z0-9_]{1,40})(?:\|([^<>\n]{0,80}))?>"
    r"|<!(channel|here|everyone|group|subteam\^[a-z0-9]{1,40})(?:\|[^<>\n]{0,80})?>",
    re.IGNORECASE,
)
_MENTION = re.compile(r"(?<![^\W_])[@\uff20\ufe6b](\w+)")
_CALLS_MANY = frozenset("all channel everybody everyone group here online room team".split())
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
    """Markdown that is safe to render, and what was taken out of it: addresses, and tags and images by their number.

    ``words`` is what a reader sees, not as Markdown. ``mentions`` are those that would have called people.
    """

    markdown: str
    addresses: tuple[str, ...] = ()
    markup: int = 0
    mentions: tuple[str, ...] = ()
    words: str = ""


@dataclass(frozen=True, slots=True)
class Own:
    """What belongs to the items of a draft, and so may stay: Markdown for their links, their hosts, their mailboxes."""

    links: Mapping[str, str] = field(default_factory=dict)
    hosts: frozenset[str] = frozenset()
    mailboxes: frozenset[str] = frozenset()


NOTHING = Own()


def hosts_of(links: Iterable[str]) -> frozenset[str]:
    """Return the hosts that links lead to, in lower case."""
    return frozenset(urlsplit(link).hostname or "" for link in links if target(link))


def mailboxes_in(texts: Iterable[str]) -> frozenset[str]:
    """Return the mailboxes that stand in texts, in lower case."""
    return frozenset(found[0].casefold() for text in texts for found in _MAILBOX.finditer(strip_invisible(text)))


@dataclass(slots=True)
class _Taken:
    """What was taken out of a text, or made harmless, so far."""

    own: Own
    addresses: list[str] = field(default_factory=list)
    markup: int = 0
    mentions: list[str] = field(default_factory=list)


def defang(address: str) -> str:
    """Return an address as one can read it but no program takes it for a link, at most 120 characters of it."""
    return clip(address, 120).replace(":", "[:]").replace(".", "[.]").replace("@", "[at]")


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


def inert_line(text: str, limit: int, own: Own = NOTHING) -> Inert:
    """Return the text on one line, at most ``limit`` characters of it, as Markdown to stand within a line."""
    plain = plain_line(text, limit, own)
    return replace(plain, markdown=_unstructured(escape(plain.markdown)))


def plain_line(text: str, limit: int, own: Own = NOTHING) -> Inert:
    """Return the text on one line, at most ``limit`` characters of it, not as Markdown: for a title or a subject."""
    taken = _Taken(own)
    pieces: list[str] = []
    for piece, address in _split(_literal(text, taken)):
        pieces.append(_harmless(piece, taken))
        if address:
            pieces.append(REMOVED)
            taken.addresses.append(address)
    line = clip(" ".join("".join(pieces).split()), limit)
    return Inert(line, tuple(taken.addresses), taken.markup, tuple(taken.mentions), line)


def inert_text(text: str, own: Own = NOTHING) -> Inert:
    """Return paragraphs, lists and bold as Markdown in which nothing is live.

    Addresses that are the items' own stay, as their Markdown; every other address is taken out and named.
    """
    taken = _Taken(own)
    lines: list[str] = []
    words: list[str] = []
    for line in _literal(text, taken).split("\n"):
        made, said = _line(line.expandtabs(4).rstrip(), taken)
        words.append(said)
        if made or (lines and lines[-1]):
            lines.append(made)
    markdown = "\n".join(lines).strip()
    return Inert(markdown, tuple(taken.addresses), taken.markup, tuple(taken.mentions), "\n".join(words).strip())


def _literal(text: str, taken: _Taken) -> str:
    """Decode entities once, and take tags, images and link syntax out, until nothing more is found."""
    text = strip_invisible(_ENTITY.sub(lambda found: html.unescape(found[0]), strip_invisible(text)))

    def unlink(found: re.Match[str]) -> str:
        image, label, address = found.groups()
        if image:
            taken.markup += 1
        if image or not _ADDRESS.fullmatch(address):
            taken.addresses.extend([address] if address else [])
            return label
        return f"{label} {address} "

    def unmention(found: re.Match[str]) -> str:
        sign, name, label, group = found.groups()
        said = f"@{group}" if group else f"{sign}{label or name}"
        if sign != "#":
            taken.mentions.append(f"@{group or name}")
        return said.replace("<", "").replace("@@", "@")

    for _ in range(_PASSES):
        text, mentions = _ANGLE_MENTION.subn(unmention, text)
        text, tags = _TAG.subn("", _AUTOLINK.sub(r" \1 ", text))
        text, links = _IMAGE_OR_LINK.subn(unlink, text)
        taken.markup += tags
        if not tags and not links and not mentions:
            break
    return text


def _line(line: str, taken: _Taken) -> tuple[str, str]:
    """Return a line as one of a list or a paragraph, and its words; "" when nothing but structure is in it.

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
        return "", ""
    made, words = _spans(text.strip(), taken)
    made = _unstructured(made)
    return (f"{'  ' if mark and len(indent) >= 2 else ''}{mark}{made}", words) if made else ("", "")


def _unstructured(line: str) -> str:
    """Return a line of Markdown that begins no heading, list or quotation of its own."""
    return _NUMBER.sub(r"\1\\\2", _STRUCTURE.sub(r"\\\g<0>", line))


def _spans(text: str, taken: _Taken) -> tuple[str, str]:
    pieces: list[str] = []
    words: list[str] = []
    for piece, address in _split(text):
        harmless = _harmless(piece, taken)
        pieces.append(_escape_but_bold(harmless))
        words.append(_BOLD.sub(r"\1", harmless))
        if not address:
            continue
        if address in taken.own.links:
            pieces.append(taken.own.links[address])
            words.append("(link)")
        else:
            pieces.append(REMOVED)
            words.append(REMOVED)
            taken.addresses.append(address)
    return "".join(pieces), "".join(words)


def _harmless(text: str, taken: _Taken) -> str:
    """Return a text without addresses such that no program makes a link or a mention of what else is in it."""

    def unmention(found: re.Match[str]) -> str:
        if found[1].strip("_").casefold() in _CALLS_MANY:
            taken.mentions.append(f"@{found[1]}")
        return f"[at]{found[1]}"

    def unlink_mailbox(found: re.Match[str]) -> str:
        return found[0] if found[0].casefold() in taken.own.mailboxes else found[0].replace("@", "[at]")

    def unlink_host(found: re.Match[str]) -> str:
        labels = re.split(_DOT, found[0])
        is_of_a_mailbox = "@" in found.string[max(0, found.start() - 1) : found.end() + 1]
        ends_like_a_host = labels[-1].strip("_-").casefold() in _TOP_LEVELS
        is_own = ".".join(labels).casefold() in taken.own.hosts
        return "[.]".join(labels) if ends_like_a_host and not is_of_a_mailbox and not is_own else found[0]

    return _DOTTED.sub(unlink_host, _MAILBOX.sub(unlink_mailbox, _MENTION.sub(unmention, text)))


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
