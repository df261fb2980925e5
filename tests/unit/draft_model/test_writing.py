"""From an answer to a draft: what is accepted, what code puts in, and what it says about it."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import pytest

from galley.retry import NeverSucceeds, RetryLater
from galley.runs import Usage
from grounding import MOST_FINDINGS
from inert import REMOVED
from support.briefs import a_brief, an_item
from support.model_fake import draft
from writing import OFFLINE_NOTICE, Answer, Brief, Section, Writing, compose, read_answer

BRIEF = a_brief(an_item(1), an_item(2))


def an_answer(text: str, **fields: Any) -> Answer:
    usual: dict[str, Any] = {"model": BRIEF.model, "stop": "end_turn", "usage": Usage(10, 5), "cost_nanousd": 3_500}
    return Answer(text=text, **{**usual, **fields})


def a_part(cites: Sequence[str] = ("m1",), text: str = "It works again.", heading: str = "Press") -> dict[str, Any]:
    return {"heading": heading, "text": text, "cites": list(cites)}


def a_writing(*sections: Section, **fields: Any) -> Writing:
    return Writing(**{"title": "Presses", "sections": sections, **fields})


GOOD = draft("Presses", [a_part()])


@pytest.mark.parametrize(
    "text",
    [GOOD, f"  {GOOD}\n", f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```", f"Here it is:\n{GOOD}\nAll done."],
)
def test_an_answer_is_read_with_or_without_a_wrapping(text: str) -> None:
    writing = read_answer(an_answer(text), BRIEF)
    assert writing == a_writing(Section("Press", "It works again.", ("m1",)))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "not JSON"),
        ("I would rather not.", "not JSON"),
        (GOOD[:-10], "not JSON"),
        ("[]", "answer: give named fields"),
        ('{"title": "A"}', "answer: sections is missing"),
        (json.dumps({"title": "A", "sections": [], "approve": True}), "approve is not known"),
        (json.dumps({"title": 7, "sections": []}), "title is 7: give text"),
        (draft("A", [{**a_part(), "html": "x"}]), "sections\\[1\\]: html is not known"),
        (draft("A", [{**a_part(), "cites": "m1"}]), "sections\\[1\\]: cites is 'm1': give a list"),
        (draft("A", [{**a_part(), "text": None}]), "sections\\[1\\]: text is None: give text"),
        (draft("A" * 301, [a_part()]), "at most 300"),
        (draft("A", [a_part(text="x" * 20_001)]), "at most 20000"),
        (draft("A", [a_part()] * 61), "at most 60"),
    ],
)
def test_an_answer_of_another_form_is_refused_with_the_field_named(text: str, named: str) -> None:
    with pytest.raises(NeverSucceeds, match=named) as raised:
        read_answer(an_answer(text), BRIEF)
    assert raised.value.reason == "unreadable_answer"
    assert len(raised.value.detail) <= 500


@pytest.mark.parametrize("parts", [[], [a_part(text=" \n ")]])
def test_an_answer_without_words_is_empty(parts: list[dict[str, Any]]) -> None:
    with pytest.raises(NeverSucceeds) as raised:
        read_answer(an_answer(draft("A", parts)), BRIEF)
    assert raised.value.reason == "empty_answer"


def test_an_answer_that_broke_off_is_no_draft_however_complete_it_looks() -> None:
    failure = RetryLater("overloaded", "busy")
    with pytest.raises(RetryLater) as raised:
        read_answer(an_answer(GOOD, stop=None, failure=failure), BRIEF)
    assert raised.value is failure


def test_ids_of_no_item_are_dropped_and_named() -> None:
    writing = read_answer(an_answer(draft("A", [a_part(["m1", "m9", "[m2]", "m1"]), a_part(["x" * 99])])), BRIEF)
    assert [section.cites for section in writing.sections] == [("m1", "m2"), ()]
    assert writing.notes == ("no item is cited for section 2",)
    first, second = compose(writing, BRIEF).findings
    assert str(first) == "cited, but no item: 'm9' (section 1 \"Press\")"
    assert str(second).startswith("cited, but no item: 'xxx")
    assert len(str(second)) < 200


def test_figures_alone_need_no_cites() -> None:
    assert read_answer(an_answer(draft("A", [a_part([])])), a_brief(figures="7")).notes == ()


def test_what_the_model_did_not_read_is_said() -> None:
    writing = read_answer(an_answer(GOOD, shortened=("m1",), left_out=("m2",)), BRIEF)
    assert writing.notes == (
        "not read, over the limit of 20000 input tokens: m2",
        "read only in part, over the limit of 20000 input tokens: m1",
    )
    made = compose(writing, BRIEF)
    assert "- m2: [Letter 2](https://mail.example/2) (inbox, Ada, 2026-03-29T17:02:00Z) **not read" in made.body
    assert made.body.count("**not read") == 1
    assert made.warnings == writing.notes


def test_a_draft_has_sections_with_their_sources_and_a_list_of_all() -> None:
    writing = a_writing(
        Section("Press", "It works **again**:\n\n- fast\n- quiet", ("m1", "m2")), Section("", "All is well.", ())
    )
    made = compose(writing, BRIEF)
    assert made.title == "Presses"
    assert made.warnings == ()
    assert made.body == (
        "## Press\n\n"
        "It works **again**:\n\n- fast\n- quiet\n\n"
        "Sources: [m1](https://mail.example/1), [m2](https://mail.example/2)\n\n"
        "All is well.\n\n"
        "## Sources\n\n"
        "- m1: [Letter 1](https://mail.example/1) (inbox, Ada, 2026-03-29T17:01:00Z)\n"
        "- m2: [Letter 2](https://mail.example/2) (inbox, Ada, 2026-03-29T17:02:00Z)\n"
    )


def test_figures_stand_in_the_draft_as_they_were_computed() -> None:
    figures = "| sales | change |\n| ---: | ---: |\n| 7 | +1 |"
    made = compose(a_writing(Section("", "More.", ())), a_brief(figures=figures))
    assert made.body == f"More.\n\n## Figures\n\n{figures}\n"


def test_an_item_without_link_title_author_or_date_is_still_a_source() -> None:
    brief = a_brief(an_item(link=None, title="", author=None, published=None))
    made = compose(a_writing(Section("", "Words.", ("m1",))), brief)
    assert "Sources: m1\n" in made.body
    assert "- m1: (no title) (inbox)\n" in made.body
    assert made.warnings == ()


def test_links_come_from_items_alone() -> None:
    text = "See https://mail.example/1 and [this](https://evil.example/a) and https://mail.example/12."
    made = compose(a_writing(Section("", text, ())), BRIEF)
    assert f"See [m1](https://mail.example/1) and this {REMOVED}  and {REMOVED}." in made.body
    assert made.warnings == (
        "a link that is no item's, taken out: https[:]//evil[.]example/a"
        f" (section 1: See {REMOVED} and this {REMOVED} and {REMOVED}.)",
        "a link that is no item's, taken out: https[:]//mail[.]example/12"
        f" (section 1: …and this {REMOVED} and {REMOVED}.)",
    )


def test_markup_of_the_model_and_of_items_is_taken_out_and_said() -> None:
    brief = a_brief(an_item(title="<b>Sale</b> ![x](https://evil.example/x.png) [now](https://evil.example)"))
    made = compose(a_writing(Section("<i>Big</i>", "<script>x</script>", ())), brief)
    assert "<" not in made.body
    assert "evil" not in made.body
    assert f"[Sale x now {REMOVED}](https://mail.example/1)" in made.body
    assert made.warnings == (
        "taken out of the titles of items, links: https[:]//evil[.]example/x[.]png, https[:]//evil[.]example",
        "taken out of the titles of items, HTML and images: 3",
        'HTML or an image, taken out: 2 pieces (section 1 "Big")',
        'HTML or an image, taken out: 2 pieces (section 1 "Big")',
    )


@pytest.mark.parametrize("link", ["javascript:alert(1)", "https://a.example/ b", "https://bank@evil.example", "x"])
def test_an_address_that_cannot_be_linked_is_left_out_and_named(link: str) -> None:
    made = compose(a_writing(Section("", "Words.", ("m1",))), a_brief(an_item(link=link)))
    assert "](" not in made.body
    assert any(warning.startswith("the address of m1 is not one that can be linked") for warning in made.warnings)


def test_only_the_first_of_many_foreign_links_are_named() -> None:
    text = " ".join(f"https://evil.example/{place}" for place in range(500))
    made = compose(a_writing(Section("", text, ())), BRIEF)
    assert len(made.findings) == 500
    assert len(made.warnings) == MOST_FINDINGS + 1
    assert made.warnings[-1] == "a link that is no item's, taken out: 480 more"
    assert sum(map(len, made.warnings)) < 8_000


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("Presses", "Presses"),
        ("  Presses\nBcc: all@evil.example ", "Presses Bcc: all[at]evil[.]example"),
        ("A & B <i>now</i> in *C* [x](https://evil.example)", f"A & B now in *C* x {REMOVED}"),
        ("", "Morning mail"),
        ("<br>", "Morning mail"),
    ],
)
def test_a_title_is_one_plain_line(written: str, title: str) -> None:
    assert compose(a_writing(Section("", "Words.", ()), title=written), BRIEF).title == title


def test_the_notice_of_the_offline_model_comes_first() -> None:
    writing = read_answer(an_answer(GOOD, model="offline"), BRIEF)
    assert compose(writing, BRIEF).body.startswith(f"{OFFLINE_NOTICE}\n\n## Press")


def test_the_same_answer_makes_the_same_draft() -> None:
    brief: Brief = dataclasses.replace(BRIEF, items=BRIEF.items[::-1])
    assert compose(read_answer(an_answer(GOOD), brief), brief) == compose(read_answer(an_answer(GOOD), brief), brief)
