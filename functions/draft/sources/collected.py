"""What every source returns, and the bounds it works within."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from galley.drafts import Item
from galley.retry import NeverSucceeds

Cursor = Mapping[str, object]
"""A source's place, as JSON values. It is kept in one table item of at most 400 KB, so sources bound it well below."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one run takes from one source. What is beyond ``max_items`` waits for the next run.

    ``max_bytes`` is the size of one message as it is stored; ``max_chars`` the length of one item's text.
    """

    max_items: int = 50
    max_bytes: int = 10_000_000
    max_chars: int = 8_000

    def __post_init__(self) -> None:
        for name in ("max_items", "max_bytes", "max_chars"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")


@dataclass(frozen=True, slots=True)
class Collected:
    """What one source has that is new, oldest first.

    ``warnings`` name, in one line each, everything that is not in the items and why.
    ``cursor`` is the value to store together with the draft; None leaves the stored one as it is.
    ``left_out`` counts what is new but beyond the limit; it is not consumed, the next run takes it.
    The ids of the items count from 1 within this value: whoever joins several sources numbers them anew.
    """

    items: tuple[Item, ...]
    warnings: tuple[str, ...]
    cursor: Cursor | None
    left_out: int = 0


class CursorState(BaseModel):
    """A source's cursor as its module reads it. Without a stored cursor every field has its default."""

    model_config = ConfigDict(extra="forbid", frozen=True)


State = TypeVar("State", bound=CursorState)


def read_cursor(model: type[State], cursor: Cursor | None, source: str) -> State:
    """Return the state that a stored cursor holds.

    Raises:
        NeverSucceeds: when it is not one of ours. To begin anew instead would draft everything a second time.
    """
    try:
        return model.model_validate(dict(cursor or {}))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise NeverSucceeds(
            "invalid_cursor",
            f"the stored cursor of {source}, field {field!r}: {first['msg']}; "
            "was it written by a newer version? Delete it to begin anew",
        ) from error


def short_hash(*parts: str) -> str:
    """Return 16 hex digits of the parts' SHA-256, for the sets of seen things in a cursor.

    Each part is preceded by its length, so that no two lists of parts run into each other.
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()[:16]


def listed(names: Sequence[str], at_most: int) -> str:
    """Return the names joined by commas, the first ``at_most`` of them, and how many more there are."""
    shown = ", ".join(names[:at_most])
    return shown if len(names) <= at_most else f"{shown} and {len(names) - at_most} more"


def counted(number: int, one: str, many: str) -> str:
    """Return the number with its noun: ``1 message``, ``1,200 messages``."""
    return f"{number:,} {one if number == 1 else many}"
