"""Every setting that a drafter's file may have, shape by shape, found in the models themselves."""

import re
import tomllib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from drafter import SOURCES_OF_SHAPE, Drafter

SHAPES = tuple(SOURCES_OF_SHAPE)


@dataclass(frozen=True)
class Table:
    """A table of the file: how its heading is written, its path, and its ``kind`` where it has one.

    ``shapes`` are those whose files may have it.
    """

    heading: str
    path: tuple[str, ...]
    kind: str | None
    model: type[BaseModel]
    shapes: frozenset[str]

    @property
    def label(self) -> str:
        """The heading, with the kind."""
        return self.heading if self.kind is None else f'{self.heading} kind = "{self.kind}"'

    @property
    def settings(self) -> dict[str, FieldInfo]:
        """The fields that hold values, not tables; a drafter's name is its file's."""
        return {
            name: field
            for name, field in self.model.model_fields.items()
            if not models_in(field.annotation) and (self.path, name) != ((), "name")
        }


def tables() -> Iterator[Table]:
    """Yield every table of every shape's file."""
    yield from _tables(Drafter, (), "", frozenset(SHAPES))


def _tables(model: type[BaseModel], path: tuple[str, ...], heading: str, shapes: frozenset[str]) -> Iterator[Table]:
    kinds = choices(model.model_fields["kind"].annotation) if "kind" in model.model_fields else ()
    if path == ("sources",):
        shapes = frozenset(shape for shape in shapes if SOURCES_OF_SHAPE[shape] & set(kinds))
    yield Table(heading, path, kinds[0] if kinds else None, model, shapes)
    for name, field in model.model_fields.items():
        own = frozenset({name}) if not path and name in SHAPES else shapes
        for inner in models_in(field.annotation):
            here = (*path, name)
            brackets = "[[{}]]" if is_list(field.annotation) else "[{}]"
            yield from _tables(inner, here, brackets.format(".".join(here)), own)


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in models_in(inner)]


def is_list(annotation: Any) -> bool:
    """Tell whether an annotation is a list of something."""
    return get_origin(annotation) is tuple or any(
        is_list(inner)
        for inner in get_args(annotation)
        if get_origin(annotation) in (Annotated, Union, types.UnionType)
    )


def choices(annotation: Any) -> tuple[Any, ...]:
    """Return the few values that an annotation allows, () where they are not few."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return tuple(str(one.value) for one in annotation)
    return tuple(choice for inner in get_args(annotation) for choice in choices(inner))


def bounds(field: FieldInfo) -> dict[str, Any]:
    """Return what bounds a value: gt, ge, lt, le, max_length and so on."""
    found: dict[str, Any] = {}
    for one in _metadata(field.annotation, field.metadata):
        for name in ("gt", "ge", "lt", "le", "min_length", "max_length", "pattern", "decimal_places"):
            if getattr(one, name, None) is not None:
                found[name] = getattr(one, name)
    return found


def _metadata(annotation: Any, outer: list[Any]) -> Iterator[Any]:
    for one in outer:
        yield from (one, *getattr(one, "metadata", ()))
    if get_origin(annotation) is Annotated:
        yield from _metadata(get_args(annotation)[0], list(annotation.__metadata__))
    elif get_origin(annotation) in (Union, types.UnionType):
        for inner in get_args(annotation):
            yield from _metadata(inner, [])


@dataclass(frozen=True)
class Line:
    """A setting as it stands in a file: its table, its name, its value, and whether it is commented out."""

    number: int
    label: str
    name: str
    value: Any
    commented: bool


_HEADING = re.compile(r"(?:# )?(\[\[?[a-z_.]+\]\]?)")
_SETTING = re.compile(r"(# )?([a-z_]+) = (.+)")


def lines_of(text: str) -> Iterator[Line]:
    """Yield the settings of a starter, those that are commented out too."""
    found: list[tuple[int, str, re.Match[str]]] = []
    table = 0
    heading_of, kind_of = {0: ""}, {0: ""}
    for number, line in enumerate(text.splitlines()):
        if heading := _HEADING.fullmatch(line):
            table = number + 1
            heading_of[table], kind_of[table] = heading[1], ""
        elif setting := _SETTING.fullmatch(line):
            if setting[2] == "kind":
                kind_of[table] = f" kind = {setting[3]}"
            found.append((number, str(table), setting))
    for number, key, setting in found:
        label = heading_of[int(key)] + kind_of[int(key)]
        value = None if setting[3] == '"""' else tomllib.loads(f"x = {setting[3]}", parse_float=Decimal)["x"]
        yield Line(number, label, setting[2], value, setting[1] is not None)


def put_in(text: list[str], number: int) -> list[str]:
    """Return the text with one line put in, and all of its paragraph where that is a table that is commented out."""
    begin, end = number, number + 1
    while text[begin - 1].startswith("#"):
        begin -= 1
    while end < len(text) and text[end].startswith("#"):
        end += 1
    headings = {place for place in range(begin, end) if text[place].startswith("# [")}
    settings = {line.number for line in lines_of("\n".join(text)) if begin <= line.number < end}
    shown = {number, *headings, *settings} if headings else {number}
    return [line.removeprefix("# ") if place in shown else line for place, line in enumerate(text)]
