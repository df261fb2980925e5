"""Text that nobody vouches for, rendered by the most permissive renderer there is: nothing in it is live."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from inert import REMOVED, Own, defang, hosts_of, inert_line, inert_text, mailboxes_in, plain_line, target

HARMLESS = {"p", "ul", "ol", "li", "strong", "br"}


class Rendered(HTMLParser):
    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.shown = ""
        self.feed(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.shown += data


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.example/x",
        "HTTPS://EVIL.example",
        "http:\\\\evil.example\\x",
        "http:/evil.example",
        "<https://evil.example>",
        "<mailto:evil@evil.example>",
        "[a bank](https://evil.example)",
        "[a bank](<https://evil.example/a b>)",
        "[a bank](https://evil.example 'title')",
        "[a [bank](https://evil.example)](https://evil.example/2)",
        "![pixel](https://evil.example/p.png?q=secret)",
        "![pixel][p]\n\n[p]: https://evil.example/p.png",
        "[p]: //evil.example/p.png\n\n[p]",
        "[a](javascript:alert(1))",
        "[a](java\tscript:alert(1))",
        "[a](&#106;avascript:alert(1))",
        "[a](data:text/html;base64,PHNjcmlwdD4=)",
        "[a](relative/page)",
        "[a](#anchor)",
        "&#104;ttps://evil.example/x",
        "https&colon;//evil.example/x",
        "ht\u200btps://evil.example/x",
        "ht<b></b>tps://evil.example/x",
        "//evil.example/x",
        "///evil.example/x",
        "/\\evil.example/x",
        r"![a\]](///evil.example)",
        r"[Click \] here](//evil.example)",
        "<img alt='<' src=//evil.example/p.png>",
        '<img alt="a > b" src="//evil.example/p.png">',
        "www.evil.example",
        "_www.evil.example_",
        "evil.example/login",
        "evil\u3002example/login",
        "evil.example:8080/login?q=1",
        "<img src=x onerror=alert(1)>",
        "<scr<script>ipt>alert(1)</script>",
        "<a href='https://evil.example'>bank</a>",
        "&lt;a href=https://evil.example&gt;bank&lt;/a&gt;",
        "<iframe src=//evil.example/x",
        "<!-- <img src=https://evil.example> -->",
        "`<https://evil.example>`",
        "```\n<https://evil.example>\n```",
        "    <https://evil.example>",
        "\\<https://evil.example>",
        "\\\\[a](https://evil.example)",
        "a | b\n--- | ---\n[c](https://evil.example) | d",
        "> [a](https://evil.example)",
        "1986. [a](https://evil.example)",
        "- - # [a](https://evil.example)",
        "**[a](https://evil.example)**",
        "[^1]\n\n[^1]: https://evil.example",
        "steam://run/1 ftp://evil.example/x file:/etc/passwd tel:0900 mailto:evil@evil.example",
    ],
)
def test_hostile_text_links_and_loads_nothing(text: str) -> None:
    for markdown in (inert_text(text).markdown, f"- m1: {inert_line(text, 500).markdown}"):
        rendered = Rendered(markdown)
        assert rendered.tags <= HARMLESS
        assert rendered.links == []
        assert "evil.example" not in markdown
        assert "javascript:" not in markdown


SIGNS = "[]()<>!`\\*_#>|~=-+:&;.\"'/ \n\tax1é漢^@\u200b\u202e\U000e0041\x00\u2028"
PIECES = (
    "** ]( ![ ``` ~~~ --- </ <? ]: ]]> {{ $$ <!-- --> <script> <![CDATA[ &lt; &#60; &amp; &#x5b; &colon; https: "
    "http://evil.example/ //evil.example www.evil.example evil.example/x javascript:"
).split()
STARTS = ["    ", "- ", "1. ", "> ", "# ", "<a href="]
NASTY = st.lists(st.sampled_from([*SIGNS, *PIECES, *STARTS]), max_size=40).map("".join)


@settings(max_examples=400)
@given(NASTY)
@example("<a<a<a<a>>>>")
@example("[a](b)[a](http://evil.example/)")
@example("_a_ __b__ *c* ***d*** ~~e~~")
def test_no_text_whatsoever_becomes_live(text: str) -> None:
    for markdown in (inert_text(text).markdown, f"- m1: {inert_line(text, 500).markdown}"):
        rendered = Rendered(markdown)
        assert rendered.tags <= HARMLESS
        assert rendered.links == []
        assert not re.search("[a-z]{2,}://evil", rendered.shown)
        assert not re.search(r"(?<![^\W_])www\.evil", rendered.shown)


@given(st.text(alphabet="ab .,:;()[]<>*_-#&|`~\\!?\n", max_size=80).filter(str.strip))
def test_ordinary_words_survive(text: str) -> None:
    words = [word for word in "".join(letter if letter in "ab" else " " for letter in text).split() if len(word) > 2]
    if "<" not in text and "](" not in text and "[" not in text:
        shown = Rendered(inert_text(text).markdown).shown
        assert all(word in shown for word in words)


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("Plain words, nothing else.", "Plain words, nothing else."),
        ("R&D at AT&T in C# and C++ costs 5 < 6 & 7 > 3", "R&D at AT&T in C# and C++ costs 5 &lt; 6 & 7 > 3"),
        (
            "&amp;copy; and &amp;#60;b&amp;#62; stay as they were written",
            "&amp;copy; and &amp;#60;b&amp;#62; stay as they were written",
        ),
        ("<scr<script></script>ipt>x", "x"),
        ("snake_case and _stress_", "snake_case and \\_stress\\_"),
        ("**bold** and 2 * 3 * 4", "**bold** and 2 \\* 3 \\* 4"),
        ("* one\n* two\n\n1) three", "- one\n- two\n\n1. three"),
        ("- one\n   - two", "- one\n  - two"),
        ("## A heading\ntext", "A heading\ntext"),
        ("1986. A great year", "1986\\. A great year"),
        ("> quoted", "\\> quoted"),
        ("one\n\n\n\ntwo", "one\n\ntwo"),
        ("Title\n=====", "Title"),
        ("Node.js/Express and file.py, e.g. v1.2/3", "Node.js/Express and file.py, e.g. v1.2/3"),
        ("either/or, 24.5km/h, 10:30, ratio 3:1", "either/or, 24.5km/h, 10:30, ratio 3:1"),
        ("Write to ben@press.example.", r"Write to ben\[at\]press\[.\]example."),
        ("Visit Booking.com today", r"Visit Booking\[.\]com today"),
        ("models.py, django.db.models and U.S. law, i.e. 1.5", "models.py, django.db.models and U.S. law, i.e. 1.5"),
        ("[1] says so", "\\[1\\] says so"),
        ("See https://evil.example/x, or not.", f"See {REMOVED}, or not."),
        ("(https://evil.example/a_(b))", f"({REMOVED})"),
        ("[our bank](https://evil.example)!", f"our bank {REMOVED} !"),
    ],
)
def test_text_stays_readable(text: str, markdown: str) -> None:
    assert inert_text(text).markdown == markdown


def test_an_address_that_is_known_becomes_what_code_says() -> None:
    known = {"https://a.example/x_(y)?q=1&r=2": "[m1](https://a.example)"}
    text = "See https://a.example/x_(y)?q=1&r=2. Or [this](https://a.example/x_(y)?q=1&amp;r=2)."
    inert = inert_text(text, Own(links=known))
    assert inert.markdown.count("[m1](https://a.example)") == 2
    assert inert.addresses == ()


def test_what_was_taken_out_is_reported() -> None:
    inert = inert_text("<b>x</b> ![p](https://evil.example/p.png) [q](javascript:x) evil.example/y")
    assert inert.addresses == ("https://evil.example/p.png", "javascript:x", "evil.example/y")
    assert inert.markup == 3


@pytest.mark.parametrize("host", ["evil.example", "localhost/x", "3232235777/p.png", "0x7f.1", "[::1]/x", "xn--e1a:80"])
@pytest.mark.parametrize("slashes", ["//", "///", "/\\", "//\\/"])
def test_an_address_on_the_pages_own_scheme_is_taken_out_whatever_its_host(host: str, slashes: str) -> None:
    made = plain_line(f"see {slashes}{host} and/or this // that", 200)
    assert made.markdown == f"see {REMOVED} and/or this // that"
    assert made.addresses == (f"{slashes}{host}",)


def test_a_plain_line_is_one_line_without_escapes() -> None:
    line = plain_line("A *title*\r\nBcc: all@evil.example <b>x</b> http://evil.example", 200).markdown
    assert line == f"A *title* Bcc: all[at]evil[.]example x {REMOVED}"
    assert len(plain_line("x" * 300, 200).markdown) == 200


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("https://a.example/p?q=1&r=2#s", "https://a.example/p?q=1&r=2#s"),
        ("https://a.example/a(b)[c]", "https://a.example/a%28b%29%5Bc%5D"),
        ("https://a.example/é%20", "https://a.example/%C3%A9%20"),
        ("https://a.example/?a=1&copy;=2", "https://a.example/?a=1&amp;copy;=2"),
        ("https://a.example/><script>", "https://a.example/%3E%3Cscript%3E"),
        ("javascript:alert(1)", None),
        ("ftp://a.example", None),
        ("//a.example", None),
        ("https://", None),
        ("https://bank.example@evil.example/", None),
        ("https://a.example/a b", None),
        ("https://a.example/\n[x](y)", None),
        ("https://[broken", None),
        ("", None),
        (None, None),
    ],
)
def test_only_web_addresses_can_be_linked(link: str | None, expected: str | None) -> None:
    assert target(link) == expected


def test_a_defanged_address_can_be_read_but_not_followed() -> None:
    assert defang("https://evil.example/x") == "https[:]//evil[.]example/x"
    assert len(defang("https://evil.example/" + "x" * 5_000)) < 140


@pytest.mark.parametrize(
    "piece",
    [
        "[a](",
        "<!--",
        "<a ",
        "\\[",
        "[\\]",
        '<a "=',
        '<a ="',
        "<a b='<' ",
        "//a",
        "/",
        "a.",
        "a-",
        "((",
        "**",
        "# ",
        "&#",
        "![",
        "http:",
        "_",
        "](",
    ],
)
@pytest.mark.timeout(30)
def test_it_takes_time_in_proportion_to_the_text(piece: str) -> None:
    inert_text(piece * (40_000 // len(piece)))


@pytest.mark.parametrize(
    ("text", "shown", "mentions"),
    [
        ("Hello @channel!", "Hello [at]channel!", ("@channel",)),
        ("(@here) _@everyone_", "([at]here) _[at]everyone_", ("@here", "@everyone_")),
        ("<!channel> <!here|here> now", "[at]channel [at]here now", ("@channel", "@channel", "@here", "@here")),
        ("Ask <@U024BE7LH> or <@W1|ada>", "Ask [at]U024BE7LH or [at]ada", ("@U024BE7LH", "@W1")),
        ("<!subteam^S123|@all>", "[at]subteam^S123", ("@subteam^S123",)),
        ("&lt;!channel&gt; &#64;here", "[at]channel [at]here", ("@channel", "@channel", "@here")),
        ("<!chan<b></b>nel>", "[at]channel", ("@channel", "@channel")),
        ("\uff20channel", "[at]channel", ("@channel",)),
        ("in <#C12|general>", "in #general", ()),
        ("@ada wrote to ada@press.example", "[at]ada wrote to ada[at]press[.]example", ()),
        ("R@D, a @ b", "R@D, a @ b", ()),
    ],
)
def test_nobody_is_called_by_a_mention(text: str, shown: str, mentions: tuple[str, ...]) -> None:
    line, block = plain_line(text, 200), inert_text(text)
    assert line.markdown == shown
    assert block.words == shown
    assert set(line.mentions) == set(block.mentions) == set(mentions)


def test_what_is_the_items_own_stays_as_it_is() -> None:
    own = Own(
        hosts=hosts_of(["https://press.example/1", "ftp://evil.example"]),
        mailboxes=mailboxes_in(["Ada de Wit <ada.de@press.example>"]),
    )
    text = "Press.example is down, says ada.de@press.example; evil.example and eve@press.example are up."
    told = "Press.example is down, says ada.de@press.example; evil[.]example and eve[at]press.example are up."
    assert plain_line(text, 200, own).markdown == told
