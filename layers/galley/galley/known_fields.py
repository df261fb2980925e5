"""Which fields a pydantic model knows at a place within it, and which values a field there may have."""

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

Place = Sequence[int | str]
"""The way to a field, as an error of pydantic's gives it: names, places in lists, and the tags of unions."""

_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class KnownFields:
    """The fields of a model and of the models within it; ``hidden`` ones of its own are given by nobody."""

    model: type[BaseModel]
    hidden: frozenset[str] = frozenset()

    def names(self, place: Place) -> tuple[str, ...]:
        """Return the names of the fields that there are at a place."""
        hidden = frozenset[str]() if place else self.hidden
        models = [one for one in self._at(place) if _is_model(one)]
        return tuple(dict.fromkeys(name for one in models for name in one.model_fields if name not in hidden))

    def nearest(self, place: Place, name: str) -> str | None:
        """Return the field at a place whose name is nearest to one that is none; None where none is near."""
        near = get_close_matches(name[:_LONGEST_NAME], self.names(place), n=1)
        return near[0] if near else None

    def choices(self, place: Place) -> tuple[str, ...]:
        """Return the values that a field may have, where they are few and named; () where they are not."""
        return tuple(dict.fromkeys(choice for one in self._at(place) for choice in _choices(one)))

    def _at(self, place: Place) -> list[Any]:
        found: list[Any] = [self.model]
        for part in place:
            found = [inner for one in found for inner in _within(one, part)]
        return [one for some in found for one in _members(some)]


def _members(annotation: Any) -> Iterator[Any]:
    """Yield what an annotation may be: itself, or the members of a union."""
    if get_origin(annotation) is Annotated:
        yield from _members(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _members(member)
    else:
        yield annotation


def _within(annotation: Any, part: int | str) -> Iterator[Any]:
    members = list(_members(annotation))
    tagged = [one for one in members if _is_model(one) and part in _tags(one)]
    if len(members) > 1 and tagged:
        yield from tagged
        return
    for one in members:
        origin, inner = get_origin(one), get_args(one)
        if _is_model(one) and part in one.model_fields:
            yield one.model_fields[part].annotation
        elif isinstance(part, int) and origin in (list, tuple, Sequence, set, frozenset):
            yield inner[0]
        elif isinstance(part, str) and origin in (dict, Mapping):
            yield inner[1]


def _tags(model: type[BaseModel]) -> set[str]:
    return {tag for field in model.model_fields.values() for tag in _choices(field.annotation)}


def _choices(annotation: Any) -> Iterator[str]:
    for one in _members(annotation):
        if get_origin(one) is Literal:
            yield from map(str, get_args(one))
        elif isinstance(one, type) and issubclass(one, Enum):
            yield from (str(member.value) for member in one)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
