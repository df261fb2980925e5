"""Every feed of the corpus goes through collection, and yields what the file itself says that it holds.

The files of ``corpus`` bear the headers that they are served with and, as an expression over feedparser's result, what
they should be read as. What that says of an entry's title, text, link, author and date is compared with the item; the
rest (languages, contributors, a feed's own title) has no place in a digest. Each difference is in a table, with its
reason. HTML is made text by another library than Galley's own code, and entries are counted by another parser.
"""

import ast
import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nh3
import pytest

from galley.drafts import Item
from sources import feed, feed_entries
from sources.collected import Collected, Reading, SourceLimits
from sources.fetch import Fetched

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "feeds"
FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file() and path.name != "LICENSE")
CORPUS = [path for path in FILES if path.parent.name == "corpus"]
REAL = [path for path in FILES if path.parent.name == "real"]
SERVED = "http://127.0.0.1:8097/tests/"

if not FILES:
    pytest.skip(f"the folder of real feeds is absent: {FOLDER}", allow_module_level=True)

FAILS = {
    "http__http_redirect_to_304.xml": "it answers 302",
    "http__http_status_302.xml": "it answers 302",
    "http__http_status_307.xml": "it answers 307",
    "http__http_status_404.xml": "it answers 404",
    # The file ends within its last tag. Without an entry it cannot be told from one that was cut short before them.
    "entities__8220.xml": "it is broken",
    "entities__8221.xml": "it is broken",
    "entities__attr_amp.xml": "it is broken",
}
"""What is no feed as it is served: the redirects lead nowhere, since here one answer is all there is."""

DIFFERS = {
    "wellformed__atom10__entry_content_base64_2.xml": ("", "bytes of an unknown kind are no text to be read"),
    "wellformed__sanitize__acceptable_element_li.xml": ("-", "an item of a list has its hyphen"),
    "wellformed__sanitize__entry_content_crazy.xml": (None, "a script that is never closed hides the rest"),
    "wellformed__sanitize__entry_summary_crazy.xml": (None, "a script that is never closed hides the rest"),
    "wellformed__sanitize__entry_summary_object.xml": ("safe", "what an object shows where it cannot is not shown"),
    "wellformed__sanitize__entry_title_object.xml": ("safe", "what an object shows where it cannot is not shown"),
    "wellformed__sanitize__item_content_encoded_iframe.xml": ("safe", "nor what stands in a frame"),
    "wellformed__sanitize__item_content_encoded_script_nested_cdata.xml": ("]]>", "a script ends at its end tag"),
}
"""What an item says otherwise than the file expects, and why; None where it is not compared."""

TITLE, TEXT, LINK, AUTHOR, PUBLISHED = "title", "text", "link", "author", "published"
FIELDS = {
    ("title",): TITLE,
    ("title_detail", "value"): TITLE,
    ("summary",): TEXT,
    ("summary_detail", "value"): TEXT,
    ("description",): TEXT,
    ("content", 0, "value"): TEXT,
    ("link",): LINK,
    ("author",): AUTHOR,
    ("published_parsed",): PUBLISHED,
    ("updated_parsed",): PUBLISHED,
    ("created_parsed",): PUBLISHED,
}


@dataclass(frozen=True)
class Expected:
    """What a file says of itself: how it is served, and the fields of its first entry that an item has too."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[tuple[str, Any], ...] = ()


def _expected(path: Path) -> Expected:
    text = _readable(path.read_bytes())
    headers = {name.lower(): value for name, value in re.findall(r"^Header:\s+([\w-]+):\s*(.*?)\s*$", text, re.M)}
    expression = re.search(r"Expect:\s*(.*?)\s*$", text, re.M)
    assert expression, "the file says what it should be read as"
    fields = tuple(_comparisons(ast.parse(expression[1], mode="eval").body))
    return Expected(int(headers.get("status", 200)), {"content-type": "application/xml", **headers}, fields)


def _readable(data: bytes) -> str:
    for encoding in (
        "utf-8",
        "utf-16",
        "utf-32",
        "utf-16-le",
        "utf-32-be",
        "utf-32-le",
        "utf-16-be",
        "cp500",
        "latin-1",
    ):
        try:
            text = data.decode(encoding)
        except UnicodeError:
            continue
        if "Expect:" in text:
            return text
    raise AssertionError("no encoding shows what the file expects")


def _comparisons(node: ast.expr) -> Iterator[tuple[str, Any]]:
    match node:
        case ast.BoolOp(values=values):
            for value in values:
                yield from _comparisons(value)
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            path = _path(left)
            if path[:2] == ("entries", 0) and path[2:] in FIELDS:
                yield FIELDS[path[2:]], _literal(right)


def _literal(node: ast.expr) -> Any:
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _literal(left) + _literal(right)
    return ast.literal_eval(node)


def _path(node: ast.expr) -> tuple[Any, ...]:
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=value, attr=name):
            return (*_path(value), name)
        case ast.Subscript(value=value, slice=ast.Constant(value=key)):
            return (*_path(value), key)
    return ("something else",)


def _collect(path: Path, expected: Expected | None = None) -> Collected:
    expected = expected or Expected(headers={"content-type": "application/xml"})

    def fetch(url: str, **_: Any) -> Fetched:
        return Fetched(expected.status, expected.headers, path.read_bytes(), url)

    until = datetime(2099, 1, 1, tzinfo=UTC)
    return feed.collect(fetch, SERVED + path.name, None, until, SourceLimits(max_items=500))


def _passed_over(collected: Collected) -> int:
    counts = [re.search(r"(\d+) entr(?:y|ies) without title, text and link", line) for line in collected.warnings]
    return sum(int(count[1]) for count in counts if count)


def _entries(path: Path) -> int | None:
    """Return how many entries the document has, or None when it is not well formed."""
    try:
        root = ElementTree.fromstring(path.read_bytes())  # noqa: S314 - files of the tests, read by no one else
    except (ElementTree.ParseError, ValueError, LookupError):
        return None
    return sum(element.tag.rpartition("}")[2].lower() in ("item", "entry") for element in root.iter())


def _words(text: str) -> str:
    return " ".join(text.split())


def _shown(markup: str) -> str:
    return _words(html.unescape(nh3.clean(markup, tags=set(), clean_content_tags={"script", "style"})))


@pytest.mark.parametrize("path", CORPUS, ids=[path.stem for path in CORPUS])
def test_a_feed_of_the_corpus_yields_what_it_says(path: Path) -> None:
    expected = _expected(path)
    collected = _collect(path, expected)
    if path.name in FAILS:
        assert collected.reading is Reading.FAILED
        assert FAILS[path.name] in collected.warnings[0]
        return
    assert collected.reading is Reading.READ
    entries = _entries(path)
    if entries is not None:
        assert len(collected.items) + _passed_over(collected) == entries, "every entry is an item or named"
    for name, value in expected.fields:
        if collected.items:
            _compare(path, collected.items[0], name, value)
        else:
            says_nothing = name in (AUTHOR, PUBLISHED) or not _shown(value) or path.name in DIFFERS
            assert says_nothing, f"{name} should be {value!r}"
            assert _passed_over(collected) == 1, "an entry with nothing else says nothing"


def _compare(path: Path, item: Item, name: str, value: Any) -> None:
    have: Any = getattr(item, name)
    if path.name in DIFFERS:
        differently, _ = DIFFERS[path.name]
        assert _words(have) == (_words(have) if differently is None else differently)
    elif name == PUBLISHED:
        assert have == datetime(*value[:6], tzinfo=UTC)
    elif name in (TEXT, TITLE):
        assert _words(have) in {_shown(value), _words(value), *_named_instead(item, name, value)}
    else:
        assert have == value


def _named_instead(item: Item, name: str, value: str) -> set[str]:
    """Return what stands for a title that says nothing."""
    return {feed_entries.NO_TITLE, _words(item.text)} if name == TITLE and not _shown(value) else set()


def test_the_corpus_was_compared_in_hundreds_of_fields() -> None:
    compared = [name for path in CORPUS for name, _ in _expected(path).fields]
    assert len(CORPUS) > 600
    assert len(compared) > 230
    assert {TITLE, TEXT, LINK, AUTHOR, PUBLISHED} == set(compared)


BASE = SERVED.rpartition("/")[0]
REAL_ENTRIES = {
    "empty.atom": [],
    "empty.rss": [],
    "feed1.atom": [
        # Where the entry itself can be read as Atom is no page for a reader.
        ("Self-referenced link", "Some text.", None),
        ("Atom-Powered Robots Run Amok", "Some text.", "http://example.org/2003/12/13/atom03"),
    ],
    "feed2.rss": [
        (
            "Example entry",
            "Here is some text containing an interesting description.",
            "http://www.example.com/blog/post/1",
        )
    ],
    # Only the title of an entry's source, or its address: they say nothing of their own.
    "full.atom": [
        ("Atom-Powered Robots Run Amok Again", "", None),
        ("Atom-Powered Robots Run Amok", "content", "http://example.org/2003/12/13/atom03"),
    ],
    "full.rss": [
        ("Example entry, again", "", None),
        ("Example entry", "Example content", "http://www.example.com/blog/post/1"),
    ],
    "relative.atom": [("<script>evil</script> content", "<script>evil</script> content", f"{BASE}/entries/entry.html")],
    "relative.rss": [("<script>evil</script> content", "<script>evil</script> content", f"{BASE}/blog/post/1")],
}


@pytest.mark.parametrize("path", REAL, ids=[path.name for path in REAL])
def test_a_real_feed_yields_its_entries(path: Path) -> None:
    collected = _collect(path)
    assert [(item.title, item.text, item.link) for item in collected.items] == REAL_ENTRIES[path.name]
    entries = _entries(path)
    assert entries is not None
    assert len(collected.items) + _passed_over(collected) == entries
