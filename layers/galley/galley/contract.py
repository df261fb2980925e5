"""The contract of a schedule, and the tick that carries it."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from galley.explain import explain
from galley.instants import parse_instant, to_the_second

SCHEDULE_PLACEHOLDER = "<aws.scheduler.schedule-arn>"
SLOT_PLACEHOLDER = "<aws.scheduler.scheduled-time>"

DrafterName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
"""A drafter's name: the stem of its file, 1 to 63 of ``a-z 0-9 -``, beginning with a letter."""

WEEK_MINUTES = 7 * 24 * 60

MOST_SILENCE_SLOTS = 366
"""A year of daily slots: what is looked back over stays one short query."""


FIRST_YEAR, LAST_YEAR = 1970, 2199
"""The years of EventBridge's cron expressions.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
"""

FIRST_INSTANT = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC) - timedelta(days=1)
LAST_INSTANT = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC) + timedelta(days=1)
"""No slot of these years is outside the two: no clock is a whole day from UTC's."""


def as_slot(moment: datetime) -> datetime:
    """Return an instant as a slot: in UTC, to the second.

    Raises:
        ValueError: when it is naive, or lies in no year in which a schedule can be due.
    """
    slot = to_the_second(moment)
    if not FIRST_INSTANT <= slot <= LAST_INSTANT:
        raise ValueError(f"must lie in the years {FIRST_YEAR} to {LAST_YEAR}")
    return slot


class CatchUp(StrEnum):
    """What becomes of slots that were missed."""

    ALL = "all"
    LATEST = "latest"
    NONE = "none"


class Contract(BaseModel):
    """What a schedule promises. Minutes are counted from the slot.

    ``window_minutes``: how long a run is expected to take; past it the run is overdue.
    ``grace_minutes``: how old a slot may be and still be worth drafting; past it only a backfill, or a run that a
    person sent again, drafts it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    window_minutes: int = Field(strict=True, ge=1, le=WEEK_MINUTES)
    grace_minutes: int = Field(strict=True, ge=1, le=5 * WEEK_MINUTES)
    catch_up: CatchUp

    @property
    def window(self) -> timedelta:
        """How long a run is expected to take."""
        return timedelta(minutes=self.window_minutes)

    @property
    def grace(self) -> timedelta:
        """How old a slot may be and still be worth drafting."""
        return timedelta(minutes=self.grace_minutes)


class InvalidTick(ValueError):
    """A tick that is not JSON or does not fit the contract. Its text is one line for a person."""


class Tick(Contract):
    """The input of a schedule, as EventBridge Scheduler sends it when the schedule is due.

    Scheduler replaces the placeholders in ``schedule`` and ``slot``
    (https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html).
    Where they are missing or left as they stand, somebody sent the tick by hand: both are None.

    ``silence_slots``: after how many due slots without a draft a drafter is silent; None where nobody wants to know.
    Only the sweep asks for it, so it stays with the schedule and is in no message and no run's row.
    """

    drafters: tuple[DrafterName, ...] = Field(min_length=1, max_length=100)
    silence_slots: int | None = Field(default=None, strict=True, ge=1, le=MOST_SILENCE_SLOTS)
    schedule: str | None = Field(default=None, max_length=2048)
    slot: datetime | None = None

    @field_validator("drafters")
    @classmethod
    def _named_once(cls, drafters: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(drafters)) != len(drafters):
            raise ValueError("names a drafter twice; name each once")
        return drafters

    @field_validator("schedule", mode="before")
    @classmethod
    def _schedule_or_none(cls, schedule: object) -> object:
        return None if schedule == SCHEDULE_PLACEHOLDER else schedule

    @field_validator("slot", mode="before")
    @classmethod
    def _slot_or_none(cls, slot: object) -> object:
        if slot is None or slot == SLOT_PLACEHOLDER:
            return None
        if not isinstance(slot, str):
            raise ValueError("must be an instant like 2026-03-29T05:00:00Z")
        return as_slot(parse_instant(slot))

    @property
    def contract(self) -> Contract:
        """The three promises of the tick, apart from what it names."""
        return Contract(window_minutes=self.window_minutes, grace_minutes=self.grace_minutes, catch_up=self.catch_up)


def read_tick(event: Any, where: str = "tick") -> Tick:
    """Return the tick in a Lambda event (a JSON object already decoded) or in a schedule's input (JSON text).

    Raises:
        InvalidTick: one line that names every wrong field with its value.
    """
    try:
        return Tick.model_validate_json(event) if isinstance(event, str) else Tick.model_validate(event)
    except ValidationError as error:
        raise InvalidTick(explain(error, where)) from error
