"""What every source returns, and the bounds it works within."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, ValidationError

from galley.drafts import Item
from galley.instants import in_utc
from galley.retry import NeverSucceeds
from galley.store import Cursor


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """How much one run takes from one source. What is beyond ``max_items`` waits for the next run.

    ``first_run`` is how much of what is there already a source without a cursor takes, the newest; what is older is
    passed over. None takes everything. ``max_bytes`` is the size of one message as it is stored; ``max_chars`` the
    length of one item's text. ``seconds`` is how long messages are read: those that were not read by then wait too.
    ``memory`` is the share, up to 1, of what a source may remember in its cursor, where several are kept together.
    """

    max_items: int = 50
    max_bytes: int = 10_000_000
    max_chars: int = 8_000
    seconds: float = 60
    first_run: int | None = None
    memory: float = 1.0

    def __post_init__(self) -> None:
        for name in ("max_items", "max_bytes", "max_chars"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 0 < self.memory <= 1:
            raise ValueError(f"memory is {self.memory}; it must be more than 0 and at most 1")

    def remembered(self, at_most: int) -> int:
        """Return this source's share of a number of things that may be remembered."""
        return max(1, int(at_most * self.memory))


class Reading(StrEnum):
    """How a source was found.

    Read: no items mean nothing new. Failed: it gave nothing that could be used. Gone: it said that it never will again.
    """

    READ = "read"
    FAILED = "failed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Collected:
    """What one source has that is new, oldest first.

    ``warnings`` name, in one line each, everything that is not in the items and why.
    ``untold`` are such lines of earlier runs that made no draft: the next draft has them, and no run without one.
    ``cursor`` is the value to store together with the draft; None leaves the stored one as it is.
    ``cursor_if_empty`` is the value to store where no draft is made: it keeps what only a draft's warnings would name.
    ``left_out`` counts what is new but beyond the limit; it is not consumed, the next run takes it.
    ``note`` is what is said of the source itself where it has no items, in a few words; "" if nothing.
    The ids of the items count from 1 within this value: whoever joins several sources numbers them anew.
    """

    items: tuple[Item, ...]
    warnings: tuple[str, ...]
    cursor: Cursor | None
    cursor_if_empty: Cursor | None = None
    left_out: int = 0
    reading: Reading = Reading.READ
    note: str = ""
    untold: tuple[str, ...] = ()


class CursorState(BaseModel):
    """A source's cursor as its module reads it. Without a stored cursor every field has its default."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Instant = Annotated[AwareDatetime, AfterValidator(in_utc)]
"""An instant in a cursor, in UTC."""

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
