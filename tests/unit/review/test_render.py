"""A draft's Markdown becomes HTML that cannot run, load or hide anything."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render import to_html
from support.outside import ROOT

HOSTILE = ROOT.parent / "shared" / "data" / "hostile" / "xss"
CORPUS = sorted(HOSTILE.glob("*.test"))
TAGS = set("a blockquote br code em h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul".split())


class _Checker(HTMLParser):
    """Fails on whatever a rendered draft must not hold."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert tag in TAGS
        given = dict(attrs)
        if tag == "a":
            assert urlsplit(given["href"] or "").scheme in ("http", "https")
            assert given["rel"] == "noopener noreferrer nofollow"
            assert set(given) == {"href", "rel", "target"}
        elif tag == "ol":
            assert set(given) <= {"start"}
        elif tag == "span":
            assert given == {"class": "host"}
        else:
            assert given == {}

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment came through")


def checked(markdown: str) -> _Checker:
    checker = _Checker()
    checker.feed(to_html(markdown))
    checker.close()
    return checker


OWN_CASES = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=alert(1)>",
    "![pixel](https://tracker.example/p.png?who=you)",
    "![pixel][p]\n\n[p]: https://tracker.example/p.png",
    '![x](https://a.example/"onerror="alert(1))',
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](java\tscript:alert(1))",
    "[click](&#106;avascript:alert(1))",
    "[click](\x01javascript:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[click](data:image/png;base64,AAAA)",
    "[click](vbscript:msgbox(1))",
    "[click](file:///etc/passwd)",
    "[click](//evil.example/)",
    "[click](/drafts/daily-digest/2026-11-27T06:00:00Z/approve)",
    "[click](#draft)",
    "[click](mailto:ana@galley.example)",
    "<javascript:alert(1)>",
    "<https://ok.example/><svg onload=alert(1)>",
    "[a](https://ok.example 'x\" onmouseover=\"alert(1)')",
    '[a](https://ok.example/"onmouseover="alert(1))',
    "[a](<https://ok.example/ onmouseover=alert(1)>)",
    "```html\n<script>alert(1)</script>\n```",
    '```x" onclick=alert(1)\ny\n```',
    "`<iframe src=https://evil.example>`",
    "<!-- --><style>*{background:url(https://evil.example)}</style>",
    "<base href=https://evil.example/><form action=https://evil.example><input name=x>",
    "<a href=https://evil.example/ style=position:fixed>x</a>",
    "<math><mtext></p><style><img src onerror=alert(1)></style>",
    "| a | b |\n|:-:|--:|\n| <script>1</script> | ![x](https://e.example/p) |",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\x00<script>alert(1)</script>",
    "<span class=host>bank.example</span>",
    "> [x](javascript:alert(1))\n> - <img src=x>",
]


@pytest.mark.parametrize("markdown", OWN_CASES)
def test_hostile_markdown_becomes_harmless(markdown: str) -> None:
    checker = checked(markdown)
    assert "script" not in checker.tags
    assert "img" not in checker.tags


@pytest.mark.skipif(not CORPUS, reason="../shared/data/hostile/xss is not beside this checkout")
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_markup_known_to_run_scripts_becomes_text(path: Path) -> None:
    markup = path.read_text(encoding="utf-8").split("\n--\n")[0]
    checked(markup)
    checked(f"Before.\n\n{markup}\n\nAfter [link]({markup}) ![image]({markup})")


@given(st.text(alphabet=st.sampled_from("<>[]()!`\"'&#:/\\\n\t =ajvscriptonhe.x-|*_~"), max_size=200))
def test_no_markdown_makes_anything_else(markdown: str) -> None:
    checked(markdown)


def test_ordinary_markdown_looks_as_meant() -> None:
    assert to_html("# News\n\nIt is **due** on *Friday*.\n\n1. one\n2. two\n\n> quoted\n") == (
        "<h3>News</h3>\n<p>It is <strong>due</strong> on <em>Friday</em>.</p>\n"
        "<ol>\n<li>one</li>\n<li>two</li>\n</ol>\n<blockquote>\n<p>quoted</p>\n</blockquote>\n"
    )


def test_headings_come_below_those_of_the_page() -> None:
    checker = checked("# 1\n\n## 2\n\n### 3\n\n#### 4\n\n##### 5\n\n###### 6\n\nSetext\n======\n")
    assert checker.tags == ["h3", "h4", "h5", "h6", "h6", "h6", "h3"]


def test_raw_html_is_shown_as_the_text_it_is() -> None:
    assert checked("<b>bold</b>").text.strip() == "<b>bold</b>"


@pytest.mark.parametrize(
    "markdown",
    ["[a]: https://evil.example/ 'pay here'", "> " * 60 + "pay here", "<!-- pay here -->", "- " * 40 + "pay here"],
)
def test_no_text_is_kept_out_of_sight(markdown: str) -> None:
    assert "pay here" in checked(markdown).text


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("[your bank](https://evil.example/)", "your bank evil.example"),
        ("[https://bank.example](https://evil.example/)", "https://bank.example evil.example"),
        ("[x](https://bank.example@evil.example:8443/)", "x evil.example:8443"),
        ("<https://ok.example/path>", "https://ok.example/path ok.example"),
        ("[a *b*](https://раураl.com/)", "a b xn--l-7sba6dbr.com"),
        ("![alt](https://ok.example/p.png)", "!alt ok.example"),
    ],
)
def test_a_link_shows_the_host_that_it_leads_to(markdown: str, text: str) -> None:
    checker = checked(markdown)
    assert checker.text.strip() == text
    assert checker.tags.count("a") == checker.tags.count("span") == 1


def test_an_address_in_plain_text_is_no_link() -> None:
    assert "a" not in checked("See https://ok.example/ and www.ok.example.").tags
