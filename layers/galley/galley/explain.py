"""One line for a person from a validation error: where, which field, which value, what is allowed."""

from typing import Any

from pydantic import ValidationError


def explain(error: ValidationError, where: str) -> str:
    """Return one line that names every wrong field of ``where`` (a file, a tick, a message) with its value.

    A value longer than 80 characters is cut. Nothing is raised.
    """
    return f"{where}: " + "; ".join(_explain_one(dict(one)) for one in error.errors(include_url=False))


def _explain_one(one: dict[str, Any]) -> str:
    field = ".".join(str(part) for part in one["loc"]) or "the whole"
    match one["type"]:
        case "missing":
            return f"field {field!r} is missing; add it"
        case "extra_forbidden":
            return f"field {field!r} is not known; remove it or correct its name"
        case "json_invalid":
            return f"is not JSON ({one['ctx']['error']})"
        case _:
            message = one["msg"].removeprefix("Value error, ")
            return f"field {field!r} is {_short(one['input'])}: {message[:1].lower()}{message[1:]}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
