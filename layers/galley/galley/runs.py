"""A run: one drafter's work for one slot. Its states, their transitions, and the message that asks for it."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_serializer, field_validator

from galley.contract import Contract, DrafterName, Tick, as_slot
from galley.explain import explain
from galley.instants import format_instant, in_utc, parse_instant, to_the_second
from galley.retry import LONGEST_RETRY_AFTER
from galley.rules import NO_RULES, Rules

_DRAFTER_NAME: TypeAdapter[str] = TypeAdapter(DrafterName)


class Status(StrEnum):
    """What has become of a slot."""

    QUEUED = "queued"
    DRAFTING = "drafting"
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    PUBLISHED = "published"
    PUBLISH_UNKNOWN = "publish_unknown"
    EMPTY = "empty"
    FAILED = "failed"
    SKIPPED = "skipped"


class SkipReason(StrEnum):
    """Why a slot was deliberately not drafted."""

    GATE = "gate"
    MISFIRED = "misfired"
    COALESCED = "coalesced"
    MISSED = "missed"
    PAUSED = "paused"
    BUDGET = "budget"


class Origin(StrEnum):
    """How a run came about. Only a backfill ignores the grace, and so does any run that a person sent again."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    CATCH_UP = "catch_up"
    BACKFILL = "backfill"


class RejectReason(StrEnum):
    """Why a reviewer said no; words may stand beside it."""

    INACCURATE = "inaccurate"
    IRRELEVANT = "irrelevant"
    TONE = "tone"
    INCOMPLETE = "incomplete"
    TOO_LATE = "too_late"
    OTHER = "other"


TRANSITIONS: dict[Status | None, frozenset[Status]] = {
    None: frozenset({Status.QUEUED, Status.DRAFTING, Status.SKIPPED}),
    Status.QUEUED: frozenset({Status.DRAFTING, Status.SKIPPED}),
    Status.DRAFTING: frozenset({Status.PENDING, Status.APPROVED, Status.EMPTY, Status.FAILED, Status.SKIPPED}),
    Status.PENDING: frozenset({Status.APPROVED, Status.REJECTED, Status.EXPIRED, Status.SUPERSEDED}),
    Status.APPROVED: frozenset({Status.PUBLISHED, Status.PUBLISH_UNKNOWN}),
    Status.PUBLISH_UNKNOWN: frozenset({Status.PUBLISHED, Status.APPROVED}),
    Status.FAILED: frozenset({Status.QUEUED}),
    Status.REJECTED: frozenset(),
    Status.EXPIRED: frozenset(),
    Status.SUPERSEDED: frozenset(),
    Status.PUBLISHED: frozenset(),
    Status.EMPTY: frozenset(),
    Status.SKIPPED: frozenset(),
}
"""The allowed transitions; ``None`` is a slot without a row."""

WATCHED = frozenset(
    {Status.QUEUED, Status.DRAFTING, Status.PENDING, Status.APPROVED, Status.FAILED, Status.PUBLISH_UNKNOWN}
)
"""The states in which a run still waits for something: a worker, a person, publishing.

Only these are in the index, without the failed runs that a person has dismissed.
"""

MOST_DETAIL = 1_000
"""How many characters of a detail are kept, in a row and beside a dead letter: an error's text can be anything."""

LONGEST_LEASE = timedelta(hours=1)
"""Longer than any invocation lives (15 minutes), and than clocks differ."""

MOST_SENT = 1_000_000
"""The most that a message can say of how often it was sent: more is a mistake, and no database takes any number."""

IN_FLIGHT = frozenset({Status.QUEUED, Status.DRAFTING})
"""The states of a run of which nobody knows yet what becomes of it."""

WITH_A_DRAFT = frozenset(Status) - IN_FLIGHT - {Status.EMPTY, Status.FAILED, Status.SKIPPED}
"""The states of a run that has come to a draft, whatever was decided about it."""

HOLDS_A_PLACE = frozenset({Status.DRAFTING, Status.PENDING})
"""The states that count against the gate."""


class InvalidRunKey(ValueError):
    """A text that is not ``drafter:slot``."""


@dataclass(frozen=True, slots=True, order=True)
class RunKey:
    """``drafter:slot``: what a tick, a message, a row and a draft have in common.

    ``slot`` is the instant at which the schedule was due, in UTC, to the second.
    """

    drafter: str
    slot: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "slot", to_the_second(self.slot))

    def __str__(self) -> str:
        return f"{self.drafter}:{format_instant(self.slot)}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the key that ``str`` of it gave.

        Raises:
            InvalidRunKey: one line that says what a key looks like.
        """
        drafter, colon, slot = text.partition(":")
        try:
            if colon:
                return cls(_DRAFTER_NAME.validate_python(drafter), parse_instant(slot))
        except (ValidationError, ValueError):
            pass
        raise InvalidRunKey(f"{text!r} is not a run; write it as daily-digest:2026-03-29T05:00:00Z")


class InvalidMessage(ValueError):
    """A message that is not JSON or does not fit. Its text is one line for a person."""


class RunMessage(BaseModel):
    """What travels in the queue: which run, on whose behalf, under which contract.

    ``resend`` counts how often a person sent the run again; ``renewal`` how often the message was sent anew under the
    same resend number, mostly to wait longer than one message can; ``trace`` ties the log lines of one tick together.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    drafter: DrafterName
    slot: datetime
    origin: Origin
    contract: Contract
    schedule: str | None = Field(default=None, max_length=2048)
    resend: int = Field(default=0, strict=True, ge=0, le=MOST_SENT)
    renewal: int = Field(default=0, strict=True, ge=0, le=MOST_SENT)
    trace: str | None = Field(default=None, max_length=256)

    @field_validator("slot", mode="before")
    @classmethod
    def _aware(cls, slot: object) -> object:
        return parse_instant(slot) if isinstance(slot, str) else slot

    @field_validator("slot")
    @classmethod
    def _utc(cls, slot: datetime) -> datetime:
        return as_slot(slot)

    @field_serializer("slot")
    def _instant(self, slot: datetime) -> str:
        return format_instant(slot)

    @property
    def key(self) -> RunKey:
        """The run that the message asks for."""
        return RunKey(self.drafter, self.slot)

    @property
    def grace_ends(self) -> datetime | None:
        """Until when the slot is worth drafting; None where no grace binds: a backfill, or what a person sent again."""
        is_bound = self.origin is not Origin.BACKFILL and self.resend == 0
        return self.slot + self.contract.grace if is_bound else None

    def is_late(self, now: datetime) -> bool:
        """Tell whether the slot is past its grace."""
        return self.grace_ends is not None and now > self.grace_ends

    @property
    def renewed(self) -> Self:
        """The same message anew, for a queue that has handed this one out often enough."""
        return self.model_copy(update={"renewal": self.renewal + 1})

    @property
    def deduplication_id(self) -> str:
        """A hash of the run and of how often it was sent: SQS silently swallows a repeated id for five minutes.

        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
        """
        return hashlib.sha256(f"{self.key}#{self.resend}#{self.renewal}".encode()).hexdigest()


def read_message(body: str) -> RunMessage:
    """Return the message in a queue record's body.

    Raises:
        InvalidMessage: one line that names every wrong field with its value.
    """
    try:
        return RunMessage.model_validate_json(body)
    except ValidationError as error:
        raise InvalidMessage(explain(error, "run message")) from error


def messages_for(
    tick: Tick, slot: datetime, *, origin: Origin, schedule: str | None, trace: str | None
) -> list[RunMessage]:
    """Return the run messages of a tick's drafters for a slot, in the tick's order; ``schedule`` is an ARN."""
    return [
        message_for(tick, drafter, slot, origin=origin, schedule=schedule, trace=trace) for drafter in tick.drafters
    ]


def message_for(
    tick: Tick, drafter: str, slot: datetime, *, origin: Origin, schedule: str | None, trace: str | None
) -> RunMessage:
    """Return the message of one of a tick's drafters."""
    return RunMessage(drafter=drafter, slot=slot, origin=origin, contract=tick.contract, schedule=schedule, trace=trace)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of the model calls of one run, as the model's API reports them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """What a reviewer decided: who, when, and for exactly which text.

    ``read_hash`` is the hash of the text that was read; an edit gives the run another ``text_hash``.
    """

    reviewer: str
    at: datetime
    read_hash: str
    edited: bool = False
    reason: RejectReason | None = None
    words: str = ""


NOBODY = "none (review = none)"
"""Who decided on a draft that is sent unread. Such a decision names no text that was read."""


@dataclass(frozen=True, slots=True)
class Run:
    """One row: what has become of one slot of one drafter. Instants are in UTC, money is in nano-dollars.

    ``version`` rises by one at each change. While the run is drafting, ``owner`` holds the lease until
    ``lease_until``; ``next_attempt`` is set while it waits to be tried again. ``faults`` counts the attempts that met a
    fault or ended without a word. ``reserved_nanousd`` is what the call under way may cost at worst, counted in the
    spend of ``spend_day`` (a UTC date); ``cost_nanousd`` is what was paid. ``attachments_hash`` is the part of
    ``text_hash`` that an edit keeps; None without attachments. ``dismissed`` is when a person was done with a failed
    run. ``rules`` are those that its draft was stored with.
    """

    drafter: str
    slot: datetime
    status: Status
    version: int
    origin: Origin
    contract: Contract
    created: datetime
    changed: datetime
    schedule: str | None = None
    trace: str | None = None
    reason: str | None = None
    detail: str | None = None
    resend: int = 0
    attempts: int = 0
    faults: int = 0
    owner: str | None = None
    lease_until: datetime | None = None
    next_attempt: datetime | None = None
    spend_day: str | None = None
    reserved_nanousd: int = 0
    cost_nanousd: int = 0
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    title: str | None = None
    text_hash: str | None = None
    attachments_hash: str | None = None
    drafted: datetime | None = None
    decision: Decision | None = None
    published: datetime | None = None
    dismissed: datetime | None = None
    rules: Rules = NO_RULES

    @property
    def key(self) -> RunKey:
        """The run's key."""
        return RunKey(self.drafter, self.slot)

    @property
    def message(self) -> RunMessage:
        """The message that asks for this run (again)."""
        return RunMessage(
            drafter=self.drafter,
            slot=self.slot,
            origin=self.origin,
            contract=self.contract,
            schedule=self.schedule,
            resend=self.resend,
            trace=self.trace,
        )

    def lease_is_dead(self, now: datetime) -> bool:
        """Tell whether nobody works on this drafting run any more: its lease was given up or has run out.

        A lease that ends later than any can is a clock's mistake.
        """
        lives = self.lease_until is not None and now < self.lease_until <= now + LONGEST_LEASE
        return self.status is Status.DRAFTING and not lives

    def waits(self, now: datetime) -> bool:
        """Tell whether the next attempt's time has not come. A wait longer than any can be is a clock's mistake."""
        return self.next_attempt is not None and now < self.next_attempt <= now + LONGEST_RETRY_AFTER


def iso_week(slot: datetime) -> str:
    """Return the ISO week of a slot in UTC, like ``2026-W13``; a run is counted in the week of its slot."""
    year, week, _ = in_utc(slot).isocalendar()
    return f"{year}-W{week:02d}"
