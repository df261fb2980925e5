"""What every shape gets and gives: an assignment in, material out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Protocol
from zoneinfo import ZoneInfo

from drafter import Drafter
from galley.bucket import Bucket
from galley.drafts import Attachment, Item
from galley.runs import Run
from galley.store import Cursor
from sources.fetch import Fetch


@dataclass(frozen=True, slots=True)
class Window:
    """The time a run is about: ``(start, end]`` in UTC, where ``end`` is the slot; ``zone`` is the schedule's.

    ``earlier_start`` is where the window of the slot at ``start`` began; None where no schedule tells.
    """

    start: datetime
    end: datetime
    zone: ZoneInfo
    earlier_start: datetime | None = None


class RejectedDrafts(Protocol):
    """The drafter's drafts that a reviewer rejected not long ago."""

    def slots(self) -> Sequence[datetime]:
        """Return their slots, in UTC, oldest first."""
        ...

    def items(self, slot: datetime) -> tuple[Item, ...] | None:
        """Return the items kept beside one of them, or None when they cannot be had any more."""
        ...


class NoRejectedDrafts:
    """None: where a run is tried out, without a store."""

    def slots(self) -> Sequence[datetime]:
        """Return none."""
        return ()

    def items(self, slot: datetime) -> None:
        """Return None."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One run, as a shape sees it: what it is about is bounded by its slot, never by "now".

    ``looked_at`` is when the shape looks, in UTC: to be told beside what can only be seen at that moment, no more.
    ``window`` is asked for only by the shapes that need it, since the schedule must then be looked up, and ``cursors``
    (each source's, as stored with the last draft made from it) only by those that keep any. ``rejected`` asks the store
    anew with each question, so it is for drafters that offer such items again.
    ``desk_url`` is the review desk's own address, what ``desk:`` stands for in a source.
    ``time_left`` is what the run still has of its time, the model's call included. ``earlier_run`` returns what has
    become of another run of the drafter, by its slot; each time it is asked it costs a request.
    """

    drafter: Drafter
    slot: datetime
    looked_at: datetime
    window: Callable[[], Window]
    cursors: Callable[[], Mapping[str, Cursor]]
    bucket: Bucket
    fetch: Fetch
    desk_url: str
    time_left: Callable[[], timedelta]
    earlier_run: Callable[[datetime], Run | None]
    rejected: RejectedDrafts = field(default_factory=NoRejectedDrafts)


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that code computed, exact: rounded it is what ``figures`` show.

    ``unit`` is what stands behind it: ``%`` (then the value counts hundredths: 4.2 is 4.2%), ``USD``, or "" for none.
    ``label`` says what it is: ``Orders, 2026-11-16 to 2026-11-22``.
    """

    value: Decimal
    unit: str
    label: str


@dataclass(frozen=True, slots=True)
class Material:
    """What a shape collected for the model, or why there is nothing to write about.

    ``figures`` is Markdown that code computed, so it is trusted; ``items`` are not. ``values`` are the numbers in it.
    ``attachments`` go with the draft, and the model never sees them. ``cursors`` are the new values of the sources that
    moved: they are stored with the draft, or with the empty outcome, and otherwise forgotten.
    ``supersedes`` names slots of the drafter's own runs whose undecided drafts this one replaces; an ``urgent`` draft
    stands first in the review queue; after ``expire_hours`` it expires, if the drafter does not let it sooner.
    """

    items: tuple[Item, ...] = ()
    figures: str = ""
    values: tuple[Figure, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    warnings: tuple[str, ...] = ()
    cursors: Mapping[str, Cursor] = field(default_factory=dict)
    nothing_new: str | None = None
    supersedes: tuple[datetime, ...] = ()
    urgent: bool = False
    expire_hours: int | None = None


class Shape(Protocol):
    """A module with ``collect``: it reads the sources and calls no model."""

    def collect(self, assignment: Assignment) -> Material:
        """Return the material of the run.

        Raises:
            galley.retry.RetryLater: when the sources may answer later and the draft would be wrong without them.
            galley.retry.NeverSucceeds: when they never will as they are; one line that names what to change.
        """
        ...
