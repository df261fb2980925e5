"""Event filters: which records of the table's stream reach publish."""

from pathlib import Path
from typing import Any

import pytest

from galley_cli.local.filters import UnknownFilter, check, fits
from galley_cli.template import read_template

PROJECT = Path(__file__).parents[3]


def record(pk: str, status: str | None) -> dict[str, Any]:
    image = {"pk": {"S": pk}, **({} if status is None else {"status": {"S": status}})}
    return {"eventName": "MODIFY", "dynamodb": {"NewImage": image}}


@pytest.mark.parametrize(
    ("pk", "status", "wanted"),
    [
        ("RUN#daily-digest", "approved", True),
        ("RUN#daily-digest", "pending", False),
        ("RUN#daily-digest", None, False),
        ("DRAFTER#daily-digest", "approved", False),
    ],
)
def test_only_approved_runs_pass_the_templates_own_filter(pk: str, status: str | None, wanted: bool) -> None:
    (pattern,) = read_template(PROJECT / "template.yaml").stream.patterns
    check(pattern)
    assert fits(pattern, record(pk, status)) is wanted


@pytest.mark.parametrize(
    ("rules", "value", "wanted"),
    [
        (["a", "b"], "b", True),
        (["a"], "A", False),
        ([1], True, False),
        ([{"prefix": "ab"}], "abc", True),
        ([{"prefix": "ab"}], 5, False),
        ([{"suffix": "bc"}], "abc", True),
        ([{"exists": True}], None, True),
        ([{"exists": False}], "x", False),
        ([{"anything-but": ["a"]}], "b", True),
        ([{"anything-but": ["a"]}], "a", False),
    ],
)
def test_comparisons(rules: list[Any], value: object, wanted: bool) -> None:
    assert fits({"field": rules}, {"field": value}) is wanted


def test_a_field_that_is_not_there_fits_only_what_says_so() -> None:
    assert fits({"gone": [{"exists": False}]}, {})
    assert not fits({"gone": [{"exists": True}]}, {})
    assert not fits({"gone": ["x"]}, {})
    assert not fits({"gone": {"inner": ["x"]}}, {"gone": "text"})


@pytest.mark.parametrize("rules", [[{"numeric": [">", 1]}], "text", [], [{"prefix": 1}]])
def test_a_comparison_that_one_machine_does_not_know_is_refused(rules: Any) -> None:
    with pytest.raises(UnknownFilter, match="pattern"):
        check({"dynamodb": {"field": rules}})
