"""Markdown of a draft as HTML that is safe to show.

A draft is written by a model from collected text, so it is hostile until proven otherwise. Raw HTML stays text,
images do not exist (one request to a stranger's server tells what was read), and a link is an absolute http(s)
address that shows its host beside it. Link definitions, which Markdown keeps out of sight, stay text. What
markdown-it makes passes through an allow list once more.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from nh3 import Cleaner

_TAGS = frozenset(
    "a blockquote br code em h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul".split()
)
_HEADINGS = {"h1": "h3", "h2": "h4", "h3": "h5", "h4": "h6", "h5": "h6", "h6": "h6"}
"""The page's own headings are h1 and h2, and those of a draft come below them."""

_READ_DIFFERENTLY = re.compile(r"[\x00-\x20\x7f\\]")
_HOST = re.compile(r"[a-z0-9._:-]+")


def to_html(markdown: str) -> str:
    """Return the Markdown as HTML without scripts, styles, images or links to anything but http(s)."""
    return _cleaner().clean(_markdown().render(markdown))


def link_host(link: str) -> str | None:
    """Return the host that a link really leads to, in ASCII; None for anything but an absolute http(s) address.

    ``https://bank.example@evil.example`` leads to evil.example, and a host of look-alike letters shows as xn--.
    What browsers and Python read differently (a backslash, blanks, escapes in the host) counts as no address.
    """
    if _READ_DIFFERENTLY.search(link):
        return None
    try:
        parts = urlsplit(link)
        host = (parts.hostname or "").encode("idna").decode("ascii")
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host):
        return None
    shown = f"[{host}]" if ":" in host else host
    return shown if port is None else f"{shown}:{port}"


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    class Galley(MarkdownIt):
        def validateLink(self, url: str) -> bool:
            return link_host(url) is not None

    markdown = Galley("commonmark", {"html": False, "linkify": False, "maxNesting": 100})
    markdown.enable(["table", "strikethrough"]).disable(["image", "reference"])
    markdown.core.ruler.push("galley", _adapt)
    return markdown


def _adapt(state: Any) -> None:
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = _HEADINGS[token.tag]
        if token.children:
            token.children = _with_hosts(token.children)


def _with_hosts(tokens: "list[Token]") -> "list[Token]":
    """Put the host of each link right behind it."""
    from markdown_it.token import Token

    shown: list[Token] = []
    host: str | None = None
    for token in tokens:
        shown.append(token)
        if token.type == "link_open":
            host = link_host(str(token.attrGet("href")))
        elif token.type == "link_close":
            shown += [
                Token("text", "", 0, content=" "),
                Token("host_open", "span", 1, attrs={"class": "host"}),
                Token("text", "", 0, content=host or ""),
                Token("host_close", "span", -1),
            ]
    return shown


@cache
def _cleaner() -> "Cleaner":
    from nh3 import Cleaner

    forced: Mapping[str, Mapping[str, str]] = {"a": {"target": "_blank"}}
    return Cleaner(
        tags=_TAGS,
        clean_content_tags={"script", "style"},
        attributes={"*": set(), "a": {"href"}, "ol": {"start"}},
        allowed_classes={"span": {"host"}},
        set_tag_attribute_values=forced,
        link_rel="noopener noreferrer nofollow",
        url_schemes={"http", "https"},
        url_relative="deny",
    )
