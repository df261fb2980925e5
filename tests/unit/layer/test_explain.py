"""What a person is told of a value that does not fit: where it is, what it is, and what to do, in one line."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from galley.explain import MOST_NAMED, explain
from galley.known_fields import KnownFields


class Mail(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["mail"]
    id: str
    limit: int = Field(default=1, strict=True, ge=1, le=9)

    @model_validator(mode="after")
    def _not_seven(self) -> "Mail":
        if self.limit == 7:
            raise ValueError("Seven is taken; give another limit")
        return self


class Feed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["feed"]
    id: str


class Inner(BaseModel):
    minutes: int


class Thing(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,9}$")] = "a"
    code: Annotated[str, StringConstraints(pattern=r"^\d+$")] = "1"
    on: bool = False
    share: float = 0
    words: tuple[str, ...] = ()
    inner: Inner | None = None
    sources: Annotated[tuple[Annotated[Mail | Feed, Field(discriminator="kind")], ...], Field(min_length=1)] = (
        Feed(kind="feed", id="f"),
    )

    @model_validator(mode="after")
    def _not_on(self) -> "Thing":
        if self.on:
            raise ValueError("A thing is never on; turn it off")
        return self


def told(given: object, *, with_ids: bool = True) -> str:
    with pytest.raises(ValidationError) as refusal:
        Thing.model_validate(given)
    return explain(refusal.value, "thing", given if with_ids else None)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        pytest.param([], "give named fields", id="no fields at all"),
        pytest.param({"on": True, "words": ["x"] * 99}, "a thing is never on; turn it off", id="about the whole"),
        pytest.param({"colour": 1}, "colour is not known; remove it or correct its name", id="unknown"),
        pytest.param({"a\nb": 1}, "'a\\nb' is not known; remove it or correct its name", id="a name of two lines"),
        pytest.param({"on": "perhaps"}, "on is 'perhaps': give true or false", id="yes or no"),
        pytest.param({"share": "half"}, "share is 'half': give a number", id="a number"),
        pytest.param({"words": 5}, "words is 5: give a list", id="a list"),
        pytest.param({"words": ["a", 7]}, "words[2] is 7: give text in quotes", id="an entry"),
        pytest.param({"inner": {}}, "inner.minutes is missing; add it", id="within"),
        pytest.param({"inner": {"minutes": "x"}}, "inner.minutes is 'x': give a whole number", id="a whole number"),
        pytest.param(
            {"name": "No Name"},
            "name is 'No Name': use a-z, 0-9 and -, beginning with a letter, at most 10 characters",
            id="a name",
        ),
        pytest.param({"code": "x"}, "code is 'x': must match ^\\d+$", id="another pattern"),
        pytest.param({"code": "x" * 999}, f"code is '{'x' * 71} [… cut]: must match ^\\d+$", id="a long value"),
        pytest.param({"sources": []}, "sources is []: give at least 1", id="an empty list"),
        pytest.param(
            {"sources": [{"kind": "mail", "id": "inbox", "max": 3}]},
            "sources[1] 'inbox': max is not known; remove it or correct its name",
            id="one thing wrong in a list is one thing told",
        ),
        pytest.param(
            {"sources": [{"kind": "feed", "id": "f"}, {"kind": "mail", "id": "inbox", "limit": 10}]},
            "sources[2] 'inbox': limit is 10: give at most 9",
            id="a bound",
        ),
        pytest.param(
            {"sources": [{"kind": "mail", "id": "inbox", "limit": 7}]},
            "sources[1] 'inbox': seven is taken; give another limit",
            id="about the whole of an entry",
        ),
        pytest.param({"sources": [{"kind": "mail"}]}, "sources[1]: id is missing; add it", id="without an id"),
        pytest.param({"sources": [5]}, "sources[1] is 5: give named fields", id="an entry without fields"),
        pytest.param(
            {"sources": [{"kind": "mial", "id": "x"}]}, "sources[1] 'x': kind is 'mial': use mail or feed", id="a kind"
        ),
        pytest.param({"sources": [{"id": "x"}]}, "sources[1] 'x': kind is missing; add it", id="no kind"),
        pytest.param(
            {"sources": [{"kind": "mail", "id": "x", "mail": 1}]},
            "sources[1] 'x': mail is not known; remove it or correct its name",
            id="a field that is called like its kind",
        ),
    ],
)
def test_what_is_wrong_is_told_once_with_its_place_its_value_and_what_to_do(given: object, line: str) -> None:
    assert told(given) == f"thing: {line}"


def test_without_what_was_given_the_places_are_still_told() -> None:
    given = {"sources": [{"kind": "mail", "id": "inbox", "limit": "x"}], "words": [1]}
    assert told(given, with_ids=False) == (
        "thing: words[1] is 1: give text in quotes; sources[1]: mail.limit is 'x': give a whole number"
    )


def test_twenty_are_named_and_the_others_counted() -> None:
    line = told({f"x{number}": 1 for number in range(MOST_NAMED + 3)})
    assert line.count("is not known") == MOST_NAMED
    assert line.endswith("; and 3 more")
    assert "more" not in told({f"x{number}": 1 for number in range(MOST_NAMED)}).replace("remove", "")


def test_a_value_that_python_will_not_write_out_is_no_traceback() -> None:
    """Python writes out no whole number of more than 4,300 digits."""
    assert told({"words": 1 << 20_000}) == "thing: words is an int too large to show: give a list"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"nme": "a"}, "nme is not known; did you mean name?"),
        ({"zz": 1, "qq": 2}, "zz is not known; remove it or use one of name, code, on, share, words, inner, sources; "),
        ({"zz": 1, "qq": 2}, "; qq is not known; remove it"),
        (
            {"sources": [{"kind": "mail", "id": "m", "limt": 2}]},
            "sources[1] 'm': limt is not known; did you mean limit?",
        ),
        ({"sources": [{"kind": "feed", "id": "f", "limit": 2}]}, "remove it or use one of kind, id"),
        (
            {"sources": [{"kind": "feed", "id": "f", "share": 2}]},
            "sources[1] 'f': share is not known here, but for the whole file; put it above the first [table]",
        ),
        ({"sources": [{"id": "m"}]}, "sources[1] 'm': kind is missing; add it: mail or feed"),
        ({"sources": [{"kind": "mail"}]}, "sources[1]: id is missing; add it"),
    ],
)
def test_what_could_have_been_meant_is_named_where_it_is_known(given: object, said: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        Thing.model_validate(given)
    assert said in explain(refusal.value, "thing", given, KnownFields(Thing))


def test_a_field_that_nobody_gives_is_not_named() -> None:
    known = KnownFields(Thing, hidden=frozenset({"name"}))
    assert "name" not in known.names(())
    assert known.nearest((), "nam") is None
    assert known.names(("inner",)) == ("minutes",)
    assert known.choices(("sources", 0, "kind")) == ("mail", "feed")
    assert known.names(("nowhere", 3, "at all")) == ()
