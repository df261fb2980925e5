"""Untrusted text: what is not seen is not read, and no markup takes more than a moment."""

import pytest

from galley.texts import CUT_MARK
from sources import clean

HTML = [
    ("<p>Hello&nbsp;<b>bold</b> &amp; a &lt; b<br>next</p>", "Hello bold & a < b\nnext"),
    ("a<script>alert(1)</script><style>p{}</style>b", "ab"),
    ("a<SCRIPT>x</Script >b", "ab"),
    ("a<script>never closed", "a"),
    ("<head><title>T</title></head><h1>H</h1>text", "H\ntext"),
    ("a<!-- hidden -->b<!-->c<!-- open to the end", "abc"),
    ("<![if !mso]>shown<![endif]><!--[if mso]>hidden<![endif]-->", "shown"),
    ('See <a href="https://evil.example/">our page</a>.', "See our page."),
    ('<img src="https://evil.example/p.gif" width="1" height="1" alt="read me">x', "x"),
    ("<ul><li>one<li>two</ul>", "- one\n- two"),
    ("<table><tr><td>a<td>b<tr><td>c</table>", "a b\nc"),
    ("<pre>a\nb</pre>", "a\nb"),
    ("a\nb", "a b"),
    ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
    ("five <a href='x", "five <a href='x"),
    ("<p title='a > b'>text</p>", "text"),
    ("&#x41;&#66;&euro;&unknown;", "AB€&unknown;"),
    ("x&#" + "9" * 5_000 + ";y", "x\ufffdy"),
    ("<p></b></p></p>x</div>", "x"),
    ("", ""),
]


@pytest.mark.parametrize(("markup", "text"), HTML)
def test_html_becomes_the_text_that_a_reader_sees(markup: str, text: str) -> None:
    assert clean.html_to_text(markup) == text


HIDDEN = [
    "hidden",
    "HIDDEN=''",
    'style="display:none"',
    "style='display : NONE !important'",
    "style=display:none",
    'style="color:red;dis/**/play:none"',
    'style="&#100;isplay:none"',
    'style="display:none" style=""',
    'style="visibility:hidden"',
    'style="opacity:0"',
    'style="opacity: 0.0;"',
    'style="font-size:0"',
    'style="font-size:1px"',
    'style="width:1px;height:1px"',
    'style="max-height:0;overflow:hidden"',
    'style="text-indent:-9999px"',
    'style="position:absolute;left:-5000px"',
    'style="color:transparent"',
    'style="color:#FFF;background-color:#fff"',
    'style="mso-hide:all"',
    'width="1" height="1"',
]


@pytest.mark.parametrize("attributes", HIDDEN)
def test_hidden_elements_and_all_within_them_are_dropped(attributes: str) -> None:
    assert clean.html_to_text(f"a<div {attributes}>no <b>never <i>ever</b></div>b") == "a\n\nb"


@pytest.mark.parametrize(
    "attributes",
    [
        'class="hidden"',
        'data-hidden="1"',
        'style="opacity:0.5"',
        'style="font-size:1em"',
        'style="font-size:10px"',
        'style="line-height:0;min-height:0"',
        'style="width:1px"',
        'style="left:-9px"',
        'style="color:#000;background:#fff"',
        'style="" style="display:none"',
        'width="10" height="1"',
    ],
)
def test_what_is_merely_small_or_pale_stays(attributes: str) -> None:
    assert clean.html_to_text(f"<div {attributes}>shown</div>") == "shown"


@pytest.mark.parametrize(
    "markup",
    [
        "<p hidden>no<p>shown",
        "<ul><li hidden>no<li>shown</ul>",
        "<table><tr><td hidden>no<td>shown</table>",
        "<table><tr hidden><td>no<tr><td>shown</table>",
        "<div hidden><p>no</div><p>shown",
    ],
)
def test_an_end_tag_that_may_be_left_out_ends_the_hidden_part(markup: str) -> None:
    assert clean.html_to_text(markup).removeprefix("- ") == "shown"


@pytest.mark.parametrize(
    "piece",
    [
        *("<a ", "<!--", "<!", "</", "<", "<div>", "<b><p>", "</b>", "<a '\">", "<script></script", "<td><tr>", "&#"),
        *('<a ">"', "<p style='", "<x style='/*a", "<b a=", "<p hidden>", "<a b='c>"),
    ],
)
@pytest.mark.timeout(20)  # the standard library's parser needs a minute for some of these
def test_hostile_markup_takes_no_more_time_than_its_length(piece: str) -> None:
    clean.html_to_text(piece * (150_000 // len(piece)))


@pytest.mark.timeout(20)
def test_a_deep_nest_is_closed_in_time() -> None:
    assert clean.html_to_text("<div>" * 50_000 + "deep" + "</b>" * 50_000 + "</div>" * 50_000) == "deep"


def test_html_beyond_the_limit_is_cut_and_says_so() -> None:
    text = clean.html_to_text("word " * 300_000)
    assert text.startswith("word word")
    assert text.endswith(CUT_MARK)
    assert len(text) <= clean.MAX_HTML_CHARS + len(CUT_MARK)


@pytest.mark.parametrize(
    ("name", "characters"),
    [
        ("controls", "\x00\x08\x1b\x7f\x9f"),
        ("zero width", "\u200b\u200c\u200d\u2060\ufeff"),
        ("direction", "\u202a\u202e\u2066\u2069\u200e\u061c"),
        ("tags", "\U000e0041\U000e0042\U000e007f"),
        ("variation selectors", "\ufe00\ufe0f\U000e0100\U000e01ef"),
        ("fillers", "\u3164\uffa0\u115f\u2800\u034f\u00ad"),
    ],
)
def test_invisible_characters_are_removed(name: str, characters: str) -> None:
    assert clean.strip_invisible(f"a{characters}b") == "ab", name
    assert clean.html_to_text(f"a{characters}b") == "ab", name
    assert clean.html_to_text("a" + "".join(f"&#{ord(c)};" for c in characters) + "b").replace(" ", "") in (
        "ab",
        "a\ufffd\u0178b",  # HTML reads numbers of control characters as U+FFFD and as Windows-1252
        "a\ufffdb",
    ), name


def test_visible_text_of_every_script_stays() -> None:
    text = "Grüße, Ελλάδα, Привет, שלום, مرحبا, नमस्ते, 你好, 日本語, 한국어, 🙂"
    assert clean.strip_invisible(text) == text


def test_line_breaks_of_every_kind_become_newlines() -> None:
    assert clean.strip_invisible("a\r\nb\rc\x0bd\x85e\u2028f\u2029g") == "a\nb\nc\nd\ne\nf\ng"


def test_half_a_surrogate_pair_cannot_reach_the_store() -> None:
    assert clean.strip_invisible("a\ud83db").encode() == "a\ufffdb".encode()


def test_squeeze_leaves_one_blank_and_one_empty_line() -> None:
    assert clean.squeeze("  a \t\xa0 b  \n \n\n\n c ") == "a b\n\nc"


def test_a_clean_line_has_no_line_breaks() -> None:
    assert clean.clean_line(" a\r\n\tb\u2028c ", 100) == "a b c"


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("https://example.org/a?b=c#d", "https://example.org/a?b=c#d"),
        ("/news/1", "https://feeds.example/news/1"),
        ("2", "https://feeds.example/dir/2"),
        ("//cdn.example/x", "https://cdn.example/x"),
        (" https://example.org/\u200b ", "https://example.org/"),
        ("javascript:alert(1)", None),
        ("data:text/html,x", None),
        ("file:///etc/passwd", None),
        ("mailto:a@example.org", None),
        ("https://user:word@example.org/", None),
        ("https://trusted.example@evil.example/", None),
        ("http://:80/", None),
        ("https://[::1", None),
        ('https://example.org/"><script>', None),
        ("https://example.org/a b", None),
        ("https://example.org/" + "a" * 3_000, None),
        ("", None),
        (None, None),
    ],
)
def test_only_web_addresses_are_links(link: str | None, address: str | None) -> None:
    assert clean.web_link(link, "https://feeds.example/dir/feed.xml") == address
