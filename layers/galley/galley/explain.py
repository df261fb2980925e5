"""One line for a person from a validation error: where, which field, which value, and what to do."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from galley.known_fields import KnownFields
from galley.texts import clip, one_line

MOST_NAMED = 20
"""So many wrong fields are named; of the others, how many there are."""
_MOST_CHARS = 80

_ORDINARY = re.compile(r"[A-Za-z0-9_.@-]{1,60}")
_NAME_PATTERN = re.compile(r"\^\[a-z\]\[a-z0-9-\]\{0,(\d+)\}\$")
_NAMED_BY = ("id", "name")

_GIVE: Mapping[str, str] = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "give a whole number"),
    **dict.fromkeys(("float_type", "float_parsing", "decimal_type", "decimal_parsing"), "give a number"),
    "finite_number": "give a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "give true or false"),
    **dict.fromkeys(("string_type", "string_sub_type"), "give text in quotes"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "give a list"),
    **dict.fromkeys(
        ("dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"), "give named fields"
    ),
    **dict.fromkeys(("datetime_type", "datetime_parsing"), "give an instant like 2026-03-29T05:00:00Z"),
    **dict.fromkeys(("datetime_from_date_parsing", "timezone_aware"), "give an instant like 2026-03-29T05:00:00Z"),
    "greater_than": "give more than {gt}",
    "greater_than_equal": "give at least {ge}",
    "less_than": "give less than {lt}",
    "less_than_equal": "give at most {le}",
    "string_too_long": "give at most {max_length} characters",
    "too_short": "give at least {min_length}",
    "too_long": "give at most {max_length}",
    "decimal_max_digits": "give at most {max_digits} digits",
    "decimal_max_places": "give at most {decimal_places} digits after the point",
    "decimal_whole_digits": "give at most {whole_digits} digits before the point",
}
"""What to do about a value, by pydantic's name for what is wrong with it.

https://docs.pydantic.dev/latest/errors/validation_errors/
"""


def explain(error: ValidationError, where: str, given: object = None, known: KnownFields | None = None) -> str:
    """Return one line that names the wrong fields of ``where`` (a file, a tick, a message) with their values.

    Places in a list count from 1. ``given`` is what was validated: with it they are named by their id too, and what is
    no field of it is left out of the path. ``known`` are the fields that could have been given: with it the nearest is
    named, or all of them once. A value longer than 80 characters is cut. Nothing is raised.
    """
    errors: list[dict[str, Any]] = [dict(one) for one in error.errors(include_url=False)]
    hints = _Hints(known)
    told = [_explain_one(one, given, hints) for one in errors if not _has_deeper(one["loc"], errors)]
    more = [f"and {len(told) - MOST_NAMED} more"] if len(told) > MOST_NAMED else []
    return f"{where}: " + "; ".join((*told[:MOST_NAMED], *more))


def _has_deeper(loc: Sequence[int | str], errors: Sequence[dict[str, Any]]) -> bool:
    """Tell whether something within this field is wrong: then what is said of the whole of it may not even be so."""
    return any(len(one["loc"]) > len(loc) and one["loc"][: len(loc)] == loc for one in errors)


@dataclass(frozen=True, slots=True)
class _Field:
    """Where a field is: the list entries that it lies in, and its name there, "" for the entry (or all) itself."""

    places: tuple[str, ...]
    name: str

    def says(self, text: str) -> str:
        """Return what is wrong, with the field's name before it where it has one."""
        return ": ".join((*self.places, f"{self.name} {text}" if self.name else text))

    def within(self, name: str) -> "_Field":
        """Return the field of that name within this one."""
        return _Field(self.places, f"{self.name}.{name}" if self.name else name)


class _Hints:
    """What could have been meant, told once for each place."""

    def __init__(self, known: KnownFields | None) -> None:
        self._known = known
        self._told: set[tuple[int | str, ...]] = set()

    def about_unknown(self, loc: Sequence[int | str]) -> str:
        """Return what to do about a field that is not known."""
        place, name = tuple(loc[:-1]), str(loc[-1])
        if self._known is None:
            return "is not known; remove it or correct its name"
        if near := self._known.nearest(place, name):
            return f"is not known; did you mean {near}?"
        if place and name in self._known.names(()):
            return "is not known here, but for the whole file; put it above the first [table]"
        if place in self._told:
            return "is not known; remove it"
        self._told.add(place)
        return f"is not known; remove it or use one of {', '.join(self._known.names(place))}"

    def choices(self, loc: Sequence[int | str]) -> str:
        """Return the values of which one is to be added, "" where they are not few."""
        found = () if self._known is None else self._known.choices(loc)
        return f": {_either(', '.join(found))}" if found else ""


def _explain_one(one: dict[str, Any], given: object, hints: _Hints) -> str:
    field = _field(one["loc"], given)
    context = one.get("ctx", {})
    match one["type"]:
        case "missing":
            return field.says(f"is missing; add it{hints.choices(one['loc'])}")
        case "extra_forbidden":
            return field.says(hints.about_unknown(one["loc"]))
        case "json_invalid":
            return f"is not JSON ({one_line(str(context['error']), 200)})"
        case "union_tag_not_found":
            name = _bare(context["discriminator"])
            return field.within(name).says(f"is missing; add it{hints.choices((*one['loc'], name))}")
        case "union_tag_invalid":
            name = _bare(context["discriminator"])
            tag = one["input"].get(name) if isinstance(one["input"], Mapping) else context["tag"]
            return field.within(name).says(f"is {_shown(tag)}: use {_either(context['expected_tags'])}")
        case "too_short" | "too_long" as problem if isinstance(one["input"], str):
            # What a text is called where pydantic does not know beforehand that it is one.
            return _about_value(field, one["input"], _remedy(f"string_{problem}", one["msg"], context))
        case problem:
            return _about_value(field, one["input"], _remedy(problem, one["msg"], context))


def _about_value(field: _Field, value: object, remedy: str) -> str:
    """Return the value and what to do. What holds other values is not shown: its own fields would be a page."""
    holds_others = isinstance(value, Mapping | list | tuple | set | frozenset) and len(value) > 0
    is_said = remedy.startswith(f"{_shown(value)} ")
    if not holds_others and not is_said and (field.name or field.places):
        return field.says(f"is {_shown(value)}: {remedy}")
    return ": ".join(part for part in (*field.places, field.name, remedy) if part)


def _remedy(problem: str, message: str, context: Mapping[str, Any]) -> str:
    if problem in _GIVE:
        return _GIVE[problem].format_map(context)
    match problem:
        case "literal_error" | "enum":
            return f"use {_either(context['expected'])}"
        case "string_too_short":
            least = context["min_length"]
            return "must not be empty" if least == 1 else f"give at least {least} characters"
        case "string_pattern_mismatch":
            if name := _NAME_PATTERN.fullmatch(context["pattern"]):
                return f"use a-z, 0-9 and -, beginning with a letter, at most {int(name[1]) + 1} characters"
            return f"must match {context['pattern']}"
        case _:
            sentence = message.removeprefix("Value error, ").replace("Input should be", "must be", 1)
            return one_line(f"{sentence[:1].lower()}{sentence[1:]}")


def _field(loc: Sequence[int | str], given: object) -> _Field:
    places: list[str] = []
    name = ""
    node = given
    for position, part in enumerate(loc):
        is_last = position == len(loc) - 1
        if isinstance(part, int):
            node = node[part] if isinstance(node, list | tuple) and part < len(node) else None
            name = f"{name}[{part + 1}]"
            entry = _id(node)
            if entry or not is_last:
                places.append(f"{name} {entry}" if entry else name)
                name = ""
        elif isinstance(node, Mapping) and _is_tag(part, node, is_last=is_last):
            continue
        else:
            node = node.get(part) if isinstance(node, Mapping) else None
            name = f"{name}.{_name(part)}" if name else _name(part)
    return _Field(tuple(places), name)


def _is_tag(part: str, node: Mapping[Any, Any], *, is_last: bool) -> bool:
    """Tell whether a part of a path is no field but what pydantic puts there: which one of several models was meant."""
    return node.get("kind") == part and not (is_last and part in node) if "kind" in node else False


def _id(node: object) -> str:
    """Return what a list's entry is called, in quotes; "" when it has no name."""
    if isinstance(node, Mapping):
        for key in _NAMED_BY:
            if isinstance(node.get(key), str):
                return _shown(clip(node[key], 40))
    return ""


def _name(part: str) -> str:
    return part if _ORDINARY.fullmatch(part) else _shown(part)


def _shown(value: object) -> str:
    try:
        return clip(repr(value), _MOST_CHARS)
    except (ValueError, RecursionError):  # a number of more than 4,300 digits; lists within lists without end
        return f"an {type(value).__name__} too large to show"


def _bare(quoted: str) -> str:
    return quoted.replace("'", "")


def _either(expected: str) -> str:
    """Return pydantic's list of what is allowed (``'a', 'b' or 'c'``) as one reads it: ``a, b or c``."""
    values = [_bare(value) for value in re.split(r", | or ", expected)]
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"
