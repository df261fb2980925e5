"""What becomes of a draft by its drafter's rules: it may expire, give way to a newer one, or be sent unread."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from galley.instants import to_the_second


class Review(StrEnum):
    """Whether a person must approve a drafter's drafts before they are sent."""

    REQUIRED = "required"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that one draft was stored with. Without any it waits for a person, for as long as that takes.

    From ``expires`` on, an instant in UTC, it expires if it is undecided. ``supersedes`` names slots of the drafter's
    own runs whose undecided drafts it replaces; with ``supersedes_earlier`` it replaces those of every earlier slot
    that waited when it was stored. ``urgent`` ones are listed before the others. ``review`` is stored with each draft,
    so that a draft's row alone says whether a person had to approve it. Instants are kept to the second.
    """

    expires: datetime | None = None
    supersedes: tuple[datetime, ...] = ()
    supersedes_earlier: bool = False
    urgent: bool = False
    review: Review = Review.REQUIRED

    def __post_init__(self) -> None:
        expires = None if self.expires is None else to_the_second(self.expires)
        object.__setattr__(self, "expires", expires)
        object.__setattr__(self, "supersedes", tuple(map(to_the_second, self.supersedes)))


NO_RULES = Rules()
