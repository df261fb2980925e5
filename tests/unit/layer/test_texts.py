"""Text and money as a person reads them."""

import pytest

from galley.money import usd
from galley.texts import CUT_MARK, clip, clip_bytes, counted, listed, one_line


@pytest.mark.parametrize(
    ("text", "limit", "clipped"),
    [
        ("short", 5, "short"),
        ("a longer text", 12, "a lo" + CUT_MARK),
        ("word     word word", 13, "word" + CUT_MARK),
        ("abcdefghij", 3, "abc"),
    ],
)
def test_clip_marks_what_it_cut_and_keeps_the_limit(text: str, limit: int, clipped: str) -> None:
    assert clip(text, limit) == clipped
    assert len(clipped) <= limit


def test_bytes_are_never_cut_within_a_character() -> None:
    assert clip_bytes("長い", 6) == "長い"
    cut = clip_bytes("長い" * 10, 20)
    assert cut == "長い" + "長" * (len(cut.removesuffix(CUT_MARK)) - 2) + CUT_MARK
    assert len(cut.encode()) <= 20


def test_one_line_is_clipped_only_where_there_is_a_limit() -> None:
    assert one_line(" a\r\n\tb\u2028c ") == "a b c"
    assert one_line("word " * 10, 12) == "word" + CUT_MARK


@pytest.mark.parametrize(("things", "shown"), [([], ""), ([1, 2], "1, 2"), (["a", "b", "c"], "a, b and 1 more")])
def test_a_list_says_how_many_more_there_are(things: list[object], shown: str) -> None:
    assert listed(things, 2) == shown


def test_a_number_stands_with_its_noun() -> None:
    assert counted(1, "entry", "entries") == "1 entry"
    assert counted(1_200, "entry", "entries") == "1,200 entries"


def test_money_is_shown_in_dollars() -> None:
    assert usd(115_000_000) == "$0.1150"
    assert usd(12_000_000_000) == "$12.0000"
