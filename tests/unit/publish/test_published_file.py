"""A published file in the hands of the most permissive renderer there is: its title and its text are words, no more."""

import random
from datetime import timedelta
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from channels import s3
from galley.drafts import Item
from galley.runs import RunKey
from offline import OfflineModel
from support.briefs import a_brief, an_item
from support.hostile import PIECES, SHARED, shared_texts
from support.memory_bucket import MemoryBucket
from support.outside import SLOT
from writing import Brief, Section, Writing, compose, read_answer

KEY = RunKey("daily-digest", SLOT)
TAGS = {"h1", "h2", "p", "ul", "ol", "li", "strong", "a", "br"}

TITLES = (
    '<img alt="<" src=//3232235777/p.png>',
    "<img src=//3232235777/p.png>",
    r"![a\]](///evil.example)",
    r"[Click \] here](///evil.example)",
    "[Click](//localhost/x)",
    "![p](//0x7f000001/p.png)",
    "![p](p.png) and [here](relative)",
    "![[a]](x) [a [b] c](///evil.example)",
    "<script>alert(1)</script>",
    "<a title='<>' href=//evil>x</a>",
    "<//evil.example>",
    "<https://evil.example> <me@evil.example>",
    "&lt;img src=x&gt; &#60;img src=x&#62;",
    "x\n\n<img src=x>\n\n[a]: //evil.example\n",
    "x\n===\n![p](/p.png)",
    "[a]\n\n[a]: ///evil.example",
    "`code` **bold** _stress_ ~~gone~~ \\",
    "ends in marks ##",
    "#",
    "- 1. > x",
)


class Rendered(HTMLParser):
    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: set[str] = set()
        self.heading = ""
        self._within_heading = False
        self.feed(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses |= {value or "" for name, value in attrs if name != "start"}
        self._within_heading = self._within_heading or tag == "h1"

    def handle_endtag(self, tag: str) -> None:
        self._within_heading = self._within_heading and tag != "h1"

    def handle_data(self, data: str) -> None:
        self.heading += data if self._within_heading else ""


def published(title: str, body: str = "Words.") -> Rendered:
    bucket = MemoryBucket()
    s3.send(bucket, "published/", KEY, title, body)
    return Rendered(bucket.get(s3.object_key("published/", KEY), max_bytes=10_000_000).decode())


def check(title: str, body: str, brief: Brief) -> None:
    rendered = published(title, body)
    assert rendered.tags <= TAGS
    assert rendered.addresses <= {item.link for item in brief.items}


def drafts_of(text: str) -> tuple[str, str, Brief]:
    """Return the draft in which a text is everything: the model's title, heading and words, and the item's too."""
    item: Item = an_item(1, title=text[:250], text=text, author=text[:200], source=text[:90])
    brief = a_brief(item)
    writing = Writing(title=text, sections=(Section(heading=text, text=text, cites=("m1",)),))
    made = compose(writing, brief)
    title, body = made.title, made.body
    return title, body, brief


@pytest.mark.parametrize("title", TITLES)
def test_a_title_is_shown_as_it_is_and_nothing_in_it_is_live(title: str) -> None:
    rendered = published(title)
    assert rendered.tags <= {"h1", "p"}
    assert rendered.addresses == set()
    assert rendered.heading == " ".join(title.split())


@pytest.mark.parametrize("text", TITLES)
def test_a_hostile_subject_is_nowhere_live(text: str) -> None:
    check(*drafts_of(text))


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no shared data at {SHARED}")
def test_shared_hostile_material_is_nowhere_live() -> None:
    seen = 0
    for text in shared_texts():
        check(*drafts_of(text))
        check(text[:300], "Words.", a_brief())
        seen += 1
    assert seen > 100


def test_no_generated_text_becomes_live() -> None:
    dice = random.Random(20261127)
    for _ in range(3_000):
        text = "".join(dice.choices(PIECES, k=dice.randint(1, 14)))
        check(*drafts_of(text))
        rendered = published(text)
        assert rendered.tags <= {"h1", "p"}
        assert rendered.addresses == set()


def test_the_offline_models_draft_is_as_harmless() -> None:
    for text in TITLES:
        brief = a_brief(an_item(1, title=text, text=text))
        made = compose(read_answer(OfflineModel().write(brief, remaining=timedelta()), brief), brief)
        title, body = made.title, made.body
        check(title, body, brief)
