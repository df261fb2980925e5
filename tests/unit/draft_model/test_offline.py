import json
from datetime import timedelta

import pytest

from galley.runs import Usage
from offline import OfflineModel
from support.briefs import a_brief, an_item
from writing import OFFLINE_NOTICE, Brief, Writing, compose, read_answer

FIRST = (
    "Hi Ben,\n\nHope you are well. The guillotine's blade broke on Thursday and cut no paper since. "
    "A new blade arrives on Monday from Leeds. Have a nice weekend.\n\nBest\nAda"
)
SECOND = "Hi Ben,\n\nHope you are well. Invoice 4711 over 320 pounds is due on Friday. Have a nice weekend.\n\nBest\nCy"


def extract(brief: Brief) -> Writing:
    return read_answer(OfflineModel().write(brief, remaining=timedelta(seconds=1)), brief)


def test_it_picks_what_sets_an_item_apart() -> None:
    writing = extract(a_brief(an_item(1, text=FIRST), an_item(2, text=SECOND)))
    assert "blade" in writing.sections[0].text
    assert "Invoice 4711" in writing.sections[1].text
    assert "Hope you are well" not in writing.sections[0].text


def test_what_every_item_ends_with_is_not_picked() -> None:
    footer = " This newsletter reaches newsletter subscribers, newsletter preferences live on the newsletter page."
    writing = extract(a_brief(an_item(1, text=FIRST + footer), an_item(2, text=SECOND + footer)))
    assert not any("newsletter" in section.text for section in writing.sections)


def test_it_cites_each_item_and_warns_of_nothing() -> None:
    writing = extract(a_brief(an_item(1), an_item(2)))
    assert [section.cites for section in writing.sections] == [("m1",), ("m2",)]
    assert writing.title == "Morning mail: 2 items"
    assert writing.notes == ()


def test_it_is_deterministic_and_costs_nothing() -> None:
    brief = a_brief(an_item(1, text=FIRST), an_item(2, text=SECOND))
    first, second = (OfflineModel().write(brief, remaining=timedelta(0)) for _ in range(2))
    assert first == second
    assert (first.cost_nanousd, first.usage) == (0, Usage())


def test_the_draft_begins_by_saying_what_made_it() -> None:
    brief = a_brief(an_item())
    body = compose(extract(brief), brief).body
    assert body.startswith(OFFLINE_NOTICE)
    assert "offline model" in OFFLINE_NOTICE


def test_many_items_are_named_where_they_are_not_extracted() -> None:
    items = [an_item(place) for place in range(1, 61)]
    writing = extract(a_brief(*items))
    assert len(writing.sections) == 13
    assert "Letter 13" in writing.sections[-1].text
    assert "18 more" in writing.sections[-1].text


@pytest.mark.parametrize(
    ("brief", "said"),
    [
        (a_brief(figures="| sales | 7 |"), "figures were computed"),
        (a_brief(), "no material"),
        (a_brief(an_item(text="", title="")), "(no text)"),
        (a_brief(an_item(text="word " * 5_000, title="t" * 5_000), title="T" * 5_000), "word word"),
    ],
)
def test_it_says_something_about_whatever_there_is(brief: Brief, said: str) -> None:
    assert said in extract(brief).sections[0].text


def test_what_it_answers_has_the_form_of_a_models_answer() -> None:
    answer = OfflineModel().write(a_brief(an_item()), remaining=timedelta(0))
    assert set(json.loads(answer.text)) == {"title", "sections"}
