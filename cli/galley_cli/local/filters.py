"""Lambda's event filters, as far as a stream's mapping needs them: does a record fit a pattern?

https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html#filtering-syntax
"""

from collections.abc import Iterator, Mapping
from typing import Any


class UnknownFilter(ValueError):
    """A pattern uses a comparison that one machine does not know. Its text is one line that names it."""


def fits(pattern: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Tell whether every field that the pattern names has one of the values that it allows.

    Raises:
        UnknownFilter: for a comparison other than an exact value, ``prefix``, ``suffix``, ``exists``, ``anything-but``.
    """
    for name, wanted in pattern.items():
        if isinstance(wanted, Mapping):
            inner = record.get(name)
            if not fits(wanted, inner if isinstance(inner, Mapping) else {}):
                return False
        elif not any(_allows(name, rule, record) for rule in wanted):
            return False
    return True


def check(pattern: Mapping[str, Any]) -> None:
    """Refuse a pattern that ``fits`` could not judge.

    Raises:
        UnknownFilter: one line that names the comparison or the field.
    """
    for name, wanted in pattern.items():
        if isinstance(wanted, Mapping):
            check(wanted)
        elif not isinstance(wanted, list) or not wanted:
            raise UnknownFilter(f"pattern of {name!r} is {wanted!r}; it must be a list of allowed values")
        else:
            for rule in _comparisons(wanted):
                _compare(rule, None, present=False)


def _comparisons(rules: list[Any]) -> Iterator[Mapping[str, Any]]:
    return (rule for rule in rules if isinstance(rule, Mapping))


def _allows(name: str, rule: Any, record: Mapping[str, Any]) -> bool:
    value = record.get(name)
    if isinstance(rule, Mapping):
        return _compare(rule, value, present=name in record)
    return name in record and type(value) is type(rule) and bool(value == rule)


def _compare(rule: Mapping[str, Any], value: object, *, present: bool) -> bool:
    match dict(rule):
        case {"prefix": str(text)} if len(rule) == 1:
            return isinstance(value, str) and value.startswith(text)
        case {"suffix": str(text)} if len(rule) == 1:
            return isinstance(value, str) and value.endswith(text)
        case {"exists": bool(wanted)} if len(rule) == 1:
            return present is wanted
        case {"anything-but": list(unwanted)} if len(rule) == 1:
            return present and value not in unwanted
    raise UnknownFilter(f"pattern {dict(rule)!r} is not known on one machine; use a value, prefix, suffix or exists")
