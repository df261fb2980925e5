"""What a reviewer may write is said once; the page's forms and every door keep to it."""

import re
from collections.abc import Callable

import pytest

from galley.edits import MAX_BODY, MAX_TITLE, MAX_WORDS, checked_body, checked_title, checked_words
from support.outside import ROOT

CHECKS: dict[str, tuple[Callable[[str], str], int]] = {
    "title": (checked_title, MAX_TITLE),
    "body": (checked_body, MAX_BODY),
    "words": (checked_words, MAX_WORDS),
}


def test_the_pages_forms_take_as_much_as_the_desk() -> None:
    views = (ROOT / "functions" / "review" / "assets" / "desk-views.js").read_text(encoding="utf-8")
    allowed = dict(re.findall(r'id: "(?:edit|reject)-(\w+)"[^}]*maxlength: "(\d+)"', views))
    assert {name: int(most) for name, most in allowed.items()} == {name: most for name, (_, most) in CHECKS.items()}


@pytest.mark.parametrize("part", CHECKS)
def test_what_is_long_is_kept_and_what_is_longer_is_refused(part: str) -> None:
    checked, most = CHECKS[part]
    assert checked("x" * most) == "x" * most
    with pytest.raises(ValueError, match=f"at most {most} characters, not {most + 1}"):
        checked("x" * (most + 1))


@pytest.mark.parametrize("part", CHECKS)
@pytest.mark.parametrize("character", ["\0", "\x1b", "\u2028", "\ud800"])
def test_what_no_reader_sees_is_refused(part: str, character: str) -> None:
    with pytest.raises(ValueError, match="control characters"):
        CHECKS[part][0](f"a{character}b")


def test_line_ends_are_of_one_kind() -> None:
    assert checked_body("a\r\nb\rc") == "a\nb\nc"
    assert checked_words(" a\r\nb ") == "a\nb"
    with pytest.raises(ValueError, match="one line"):
        checked_title("a\r\nb")


@pytest.mark.parametrize("part", ["title", "body"])
def test_an_edit_is_not_blank(part: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        CHECKS[part][0](" \n\t")
