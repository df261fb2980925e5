"""Untrusted text made fit to be read: nothing invisible in it, no markup, and no longer than asked for.

What a person cannot see must not reach a model either, so hidden elements and invisible characters are removed
here. Styles that hide by class in a style sheet are not resolved; that text stays.
"""

import html
import re
from collections import Counter
from typing import Literal
from urllib.parse import urljoin, urlsplit

from galley.texts import CUT_MARK, clip, one_line

MAX_HTML_CHARS = 1_000_000
MAX_LINK_CHARS = 2_000
QUOTE_BEGINS = "\ue0f0"
QUOTE_ENDS = "\ue0f1"
"""Lines of one such character enclose what a mail's HTML marks as quoted, where that is asked for."""

_LINE_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SURROGATES = re.compile("[\ud800-\udfff]")
# Control characters, Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties.txt: soft hyphen, zero width,
# bidirectional marks, fillers, variation selectors, tags), interlinear annotation and the blank Braille pattern.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_QUOTE_MARKS = re.compile(f"[{QUOTE_BEGINS}{QUOTE_ENDS}]")
_BLANKS = re.compile(r"[^\S\n]+")
_BLANKS_AT_BREAK = re.compile(r" ?\n ?")
_MANY_BREAKS = re.compile(r"\n{3,}")
_WHITESPACE = re.compile(r"\s+")


def strip_invisible(text: str) -> str:
    """Return the text without control, zero-width, bidirectional, tag and other invisible characters.

    Every kind of line break becomes a newline; half a surrogate pair becomes U+FFFD.
    """
    text = _LINE_BREAKS.sub("\n", text)
    return _SURROGATES.sub("\ufffd", _INVISIBLE.sub("", text))


def without_marks(text: str) -> str:
    """Return the text as ``strip_invisible`` does, and without characters that would mark a quotation."""
    return _QUOTE_MARKS.sub("", strip_invisible(text))


def squeeze(text: str) -> str:
    """Return the text with single spaces, no blanks at the ends of lines and at most one empty line in a row."""
    text = _BLANKS_AT_BREAK.sub("\n", _BLANKS.sub(" ", text))
    return _MANY_BREAKS.sub("\n\n", text).strip()


def plain_text(text: str, limit: int) -> str:
    """Return text that is no markup, cleaned and clipped."""
    return clip(squeeze(strip_invisible(text)), limit)


def clean_line(text: str, limit: int) -> str:
    """Return the text cleaned, on one line and clipped: for titles, names and warnings."""
    return one_line(strip_invisible(text), limit)


def web_link(link: str | None, base: str = "") -> str | None:
    """Return the link as an absolute http or https address, or None when it is anything else.

    Addresses with a user name in them are refused: what a reader takes for the host would be none.
    """
    if not link:
        return None
    try:
        address = urljoin(base, strip_invisible(link).strip())
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return None
    if not usable or len(address) > MAX_LINK_CHARS or re.search(r"[\s\\<>\"]", address):
        return None
    return address


# The standard library's HTMLParser takes quadratic time on unclosed tags and comments (60 KB of "<a " took ten
# seconds on Python 3.11.7), so tags are found here, in one pass. Each search either moves on or ends the pass.
_TAG_NAME = re.compile(r"</?([a-zA-Z][^\s/>]*)")
_TAG_REST = re.compile(r"(?:[^\"'>]++|\"[^\"]*+\"|'[^']*+')*+>")
_ATTRIBUTE = re.compile(r"([^\s=/>\"']++)(?:\s*+=\s*+(\"[^\"]*+\"|'[^']*+'|[^\s>]*+))?+")
_LONG_NUMBER = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")

_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_RAW_TEXT = frozenset("script style title textarea iframe noembed noframes xmp".split())
_DROPPED = frozenset("head template object svg math canvas audio video applet select datalist".split())
_BLOCKS = frozenset(
    "address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table tbody tfoot thead tr ul".split()
)
_CELLS = frozenset({"td", "th"})
# Which open element a start tag closes without an end tag, and where the search for it stops (HTML standard,
# 13.1.2.4 "Optional tags"). Without it text after <p hidden>...<p> would count as hidden.
_CLOSES: dict[str, frozenset[str]] = {
    **{block: frozenset({"p"}) for block in _BLOCKS},
    "li": frozenset({"li"}),
    "dt": frozenset({"dt", "dd"}),
    "dd": frozenset({"dt", "dd"}),
    "td": _CELLS,
    "th": _CELLS,
    "tr": frozenset({"tr"}),
}
_SCOPE_ENDS: dict[str, frozenset[str]] = {
    "li": frozenset({"ul", "ol", "table", "td", "th"}),
    "dt": frozenset({"dl", "table", "td", "th"}),
    "dd": frozenset({"dl", "table", "td", "th"}),
    "td": frozenset({"tr", "table"}),
    "th": frozenset({"tr", "table"}),
    "tr": frozenset({"table"}),
}
_TABLE_SCOPE = frozenset({"table", "td", "th", "caption", "button"})
_IMPLIED_SEARCH_DEPTH = 32


def html_to_text(markup: str, *, quotes: Literal["plain", "marked"] = "plain") -> str:
    """Return what a reader would see of an HTML text: its words, one line for each block, entities decoded.

    Scripts, styles, comments, images and hidden or one-pixel elements are dropped; links keep their text only.
    ``quotes`` says whether what mail programs enclose as a quotation gets its marks, ``QUOTE_BEGINS`` and
    ``QUOTE_ENDS``. Takes time in proportion to the text, whatever is in it; beyond ``MAX_HTML_CHARS`` it is cut, with a
    mark.
    """
    cut = len(markup) > MAX_HTML_CHARS
    builder = _TextBuilder(marks_quotes=quotes == "marked")
    _scan(strip_invisible(markup[:MAX_HTML_CHARS]), builder)
    text = squeeze(strip_invisible("".join(builder.chunks)))
    return text + CUT_MARK if cut else text


def _scan(markup: str, builder: "_TextBuilder") -> None:
    """Cut the markup into texts and tags. What is never closed (a comment, a script) lasts to the end."""
    position = 0
    quotes_pair = True
    while (start := markup.find("<", position)) >= 0:
        name = _TAG_NAME.match(markup, start)
        builder.text(markup[position:start])
        if name is None:
            end = _end_of_declaration(markup, start)
            if end is None:
                return
            if end == start:
                builder.text("<")
            position = max(end, start + 1)
            continue
        rest = _TAG_REST.match(markup, name.end()) if quotes_pair else None
        if rest is None:
            # A quote that never closes: from here on tags end at the first ">", so no second look to the end.
            quotes_pair = False
        end = rest.end() if rest else markup.find(">", name.end()) + 1
        if end == 0:
            builder.text(markup[start:])
            return
        position = end
        tag = name.group(1).lower()
        if markup[start + 1] == "/":
            builder.end(tag)
        elif tag in _RAW_TEXT:
            closing = re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE).search(markup, position)
            if closing is None:
                return
            position = closing.start()
        else:
            builder.start(tag, markup[name.end() : end - 1])
    builder.text(markup[position:])


def _end_of_declaration(markup: str, start: int) -> int | None:
    """Return where a comment or declaration ends, ``start`` itself for a plain "<", None when it never ends."""
    if markup.startswith("<!--", start):
        closing, width = "-->", 3
    elif markup.startswith(("<!", "<?", "</"), start):
        closing, width = ">", 1
    else:
        return start
    end = markup.find(closing, start + 2)
    return None if end < 0 else end + width


class _TextBuilder:
    """Collects the visible text. Knows which elements are open, so that what a hidden one contains is dropped."""

    def __init__(self, *, marks_quotes: bool) -> None:
        self.chunks: list[str] = []
        self._marks_quotes = marks_quotes
        self._open: list[tuple[str, bool, bool]] = []
        self._count: Counter[str] = Counter()
        self._hidden = 0

    def text(self, data: str) -> None:
        if not data or self._hidden:
            return
        # html.unescape raises for a number of more than 4,300 digits.
        data = _QUOTE_MARKS.sub("", html.unescape(_LONG_NUMBER.sub("\ufffd", data)))
        self.chunks.append(data if self._count["pre"] else _WHITESPACE.sub(" ", data))

    def start(self, tag: str, attributes: str) -> None:
        self._close_implied(tag)
        if not self._hidden:
            self._separate(tag)
        if tag in _VOID:
            return
        hides = tag in _DROPPED or _hides(attributes)
        quotes = self._marks_quotes and not self._hidden and _quotes(tag, attributes)
        if quotes:
            self.chunks.append(f"\n{QUOTE_BEGINS}\n")
        self._open.append((tag, hides, quotes))
        self._count[tag] += 1
        self._hidden += hides
        if tag == "li" and not self._hidden:
            self.chunks.append("- ")

    def end(self, tag: str) -> None:
        if self._count[tag]:
            self._close_through(tag)
        if not self._hidden:
            self._separate(tag)

    def _separate(self, tag: str) -> None:
        if tag in _BLOCKS or tag == "br":
            self.chunks.append("\n")
        elif tag in _CELLS:
            self.chunks.append(" ")

    def _close_implied(self, tag: str) -> None:
        closes = _CLOSES.get(tag)
        if closes is None:
            return
        scope_ends = _SCOPE_ENDS.get(tag, _TABLE_SCOPE)
        for name, *_ in self._open[: -_IMPLIED_SEARCH_DEPTH - 1 : -1]:
            if name in closes:
                self._close_through(name)
                return
            if name in scope_ends:
                return

    def _close_through(self, tag: str) -> None:
        while True:
            name, hides, quotes = self._open.pop()
            self._count[name] -= 1
            self._hidden -= hides
            if quotes:
                self.chunks.append(f"\n{QUOTE_ENDS}\n")
            if name == tag:
                return


_HIDING_DECLARATION = re.compile(
    r"(?:^|;)(?:"
    r"display:none|visibility:(?:hidden|collapse)|mso-hide:all|color:transparent"
    r"|opacity:(?:0++(?:\.0*+)?|\.0++)(?=;|$|!)"
    r"|font-size:(?:(?:0++(?:\.0*+)?|\.0++)(?:[a-z]++|%)?|0?1(?:\.0*+)?(?:px|pt))(?=;|$|!)"
    r"|(?:text-indent|left|top|right|margin-left):-\d{3,}|clip:rect\(0|clip-path:inset\((?:50|100)%|transform:scale\(0\)"
    r")"
)
_TINY_SIDE = re.compile(r"(?:^|;)(?:max-)?(width|height):0?[01](?:\.0++)?(?:px|pt)?(?=;|$|!)")
_CSS_COMMENT_OR_SPACE = re.compile(r"/\*(?:[^*]++|\*(?!/))*+(?:\*/)?|\s++")
_COLOUR = re.compile(r"(?:^|;)(color|background(?:-color)?):([#\w(),.%]+)")


def _hides(attributes: str) -> bool:
    """Whether an element with these attributes shows nothing: hidden, transparent, tiny or far off the page."""
    if not attributes:
        return False
    values = _values(attributes)
    if "hidden" in values or (_tiny(values.get("width")) and _tiny(values.get("height"))):
        return True
    style = _CSS_COMMENT_OR_SPACE.sub("", values.get("style", "").lower())
    if _HIDING_DECLARATION.search(style):
        return True
    tiny_sides = set(_TINY_SIDE.findall(style))
    if len(tiny_sides) == 2 or (tiny_sides and "overflow:hidden" in style):
        return True
    colours = dict(_COLOUR.findall(style))
    background = colours.get("background-color", colours.get("background"))
    return "color" in colours and colours["color"] == background


def _values(attributes: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, value in _ATTRIBUTE.findall(attributes):
        # As in a browser, the first of two attributes with one name counts.
        values.setdefault(name.lower(), html.unescape(_LONG_NUMBER.sub("", value.strip("\"'"))))
    return values


# What mail programs put around the mail that is answered: Gmail, Yahoo, Thunderbird and Apple Mail, ProtonMail, Zoho.
_QUOTING_CLASSES = frozenset({"gmail_quote", "yahoo_quoted", "protonmail_quote", "zmail_extra", "moz-cite-prefix"})


def _quotes(tag: str, attributes: str) -> bool:
    """Whether an element encloses what a mail quotes of another one."""
    if tag not in ("blockquote", "div") or not attributes:
        return False
    values = _values(attributes)
    cites = tag == "blockquote" and values.get("type", "").strip().lower() == "cite"
    return cites or not _QUOTING_CLASSES.isdisjoint(values.get("class", "").lower().split())


def _tiny(length: str | None) -> bool:
    return length is not None and length.strip().removesuffix("px") in ("0", "1")
