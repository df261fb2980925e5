"""Mail in a bucket: one object for each message, as Amazon SES's S3 action writes it.

The cursor is a place in the order of arrival, and a short memory beyond it. Everything up to the place is done;
of what is later, the objects are done whose hashes are remembered. The memory reaches a day back from the newest
message, because objects do not become visible in order: S3 dates a multipart upload by its beginning, and copies
can keep an old date. So what appears late, or shares its second with another object, is neither lost nor repeated.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pydantic import AwareDatetime, BaseModel, ConfigDict

from galley.bucket import Bucket, ObjectInfo, ObjectMissing, ObjectTooLarge, ObjectUnreadable
from galley.drafts import Item
from galley.instants import format_instant, in_utc
from galley.store import Cursor
from galley.texts import counted, listed
from sources.clean import clean_line
from sources.collected import Collected, CursorState, SourceLimits, read_cursor, short_hash
from sources.message import Message, NotAMessage, read_message

LOOK_BACK = timedelta(days=1)
MAX_REMEMBERED_OBJECTS = 4_000
"""Beyond so many the memory reaches less far back than a day, but never past an object that waits."""
MAX_OBJECTS_BEYOND_PLACE = 8_000
"""Where an object that waits holds the place back, no more than these are consumed beyond it."""
MAX_REMEMBERED_MESSAGES = 4_000
MAX_SET_ASIDE = 200
MAX_DEFERRED_NAMED = 20

_Order = tuple[datetime, str]


class _Place(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    modified: AwareDatetime
    key: str


class _State(CursorState):
    after: _Place | None = None
    seen: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


def collect(
    bucket: Bucket,
    prefix: str,
    cursor: Cursor | None,
    until: datetime,
    limits: SourceLimits,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Collected:
    """Return the messages under the prefix that are new since the cursor, in the order of arrival.

    ``until`` is the slot. A message was there by then if its sender dated it so, unless it arrived before that
    date, or else if it arrived by then; a later one waits for the next draft. An object that is no readable message
    is named once and then counts as done, whenever it arrived: it would neither change nor go away.
    Each item's ``source`` is its object's key, so that every object is an item or named in a warning.
    ``clock`` gives seconds and is never set back: when the limits' time is over, what was not read yet waits.

    Raises:
        NeverSucceeds: for a cursor that is not one of ours.
    """
    until = in_utc(until)
    state = read_cursor(_State, cursor, f"the mail under {prefix!r}")
    after = None if state.after is None else (in_utc(state.after.modified), state.after.key)
    beyond = [info for info in bucket.list(prefix) if after is None or _order(info) > after]
    beyond = sorted((info for info in beyond if not _is_folder(info)), key=_order)
    seen = frozenset(state.seen)
    run = _Run(
        until=until,
        limits=limits,
        clock=clock,
        deadline=clock() + limits.seconds,
        messages=dict.fromkeys(state.messages),
        done=[info for info in beyond if _hash(info) in seen],
    )
    for info in beyond:
        if _hash(info) not in seen:
            run.take(bucket, info)
    return Collected(
        items=tuple(run.items),
        warnings=run.all_warnings(prefix),
        cursor=_moved(after, run, waiting=[]),
        # With objects left out the memory must move on, or the same ones would be looked at for ever.
        cursor_if_empty=_moved(after, run, waiting=[] if run.left_out else run.unreadable),
        left_out=len(run.left_out),
    )


@dataclass
class _Run:
    """One pass over what is new. Every object ends in ``done``, ``deferred`` or ``left_out``, or has vanished."""

    until: datetime
    limits: SourceLimits
    clock: Callable[[], float]
    deadline: float
    messages: dict[str, None]
    done: list[ObjectInfo]
    taken: int = 0
    consumed: int = 0
    stopped_late: bool = False
    items: list[Item] = field(default_factory=list)
    set_aside: int = 0
    unreadable: list[ObjectInfo] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    deferred: list[ObjectInfo] = field(default_factory=list)
    left_out: list[ObjectInfo] = field(default_factory=list)

    def take(self, bucket: Bucket, info: ObjectInfo) -> None:
        if self._is_full():
            self.left_out.append(info)
            return
        self.taken += 1
        try:
            message = _read(bucket, info, self.limits)
        except ObjectMissing:
            self.warnings.append(f"{_name(info)}: it was deleted before it could be read")
        except (NotAMessage, ObjectUnreadable) as reason:
            self.unreadable.append(info)
            self._set_aside(info, f"not read: {reason}")
        else:
            self._consider(info, message)

    def _is_full(self) -> bool:
        # The first object that waits may always be taken: what is done beyond it can then be forgotten.
        something_waits = bool(self.deferred or self.left_out)
        return (
            len(self.items) >= self.limits.max_items
            or self.set_aside >= MAX_SET_ASIDE
            or (something_waits and len(self.done) >= MAX_OBJECTS_BEYOND_PLACE)
            or self._is_late()
        )

    def _is_late(self) -> bool:
        # The first object is read however late it is, so that each pass does something.
        self.stopped_late = self.stopped_late or (self.taken > 0 and self.clock() >= self.deadline)
        return self.stopped_late

    def _consider(self, info: ObjectInfo, message: Message) -> None:
        arrived = in_utc(info.modified)
        written = message.date if message.date is not None and message.date <= arrived else arrived
        if written > self.until:
            self.deferred.append(info)
        elif message.fingerprint in self.messages:
            self._set_aside(info, f"not taken: the same message as an earlier one ({message.title})")
        else:
            self._consume(info)
            self.messages[message.fingerprint] = None
            self.warnings += [f"{_name(info)}: {warning}" for warning in message.warnings]
            self.items.append(
                Item(
                    id=f"m{len(self.items) + 1}",
                    title=message.title,
                    text=message.text,
                    source=info.key,
                    author=message.author,
                    published=written,
                )
            )

    def _set_aside(self, info: ObjectInfo, reason: str) -> None:
        self._consume(info)
        self.set_aside += 1
        self.warnings.append(f"{_name(info)}: {reason}")

    def _consume(self, info: ObjectInfo) -> None:
        self.done.append(info)
        self.consumed += 1

    def all_warnings(self, prefix: str) -> tuple[str, ...]:
        warnings = list(self.warnings)
        if self.deferred:
            names = listed([_name(info) for info in self.deferred], MAX_DEFERRED_NAMED)
            warnings.append(
                f"{counted(len(self.deferred), 'message', 'messages')} arrived after "
                f"{format_instant(self.until)}, for the next draft: {names}"
            )
        if self.left_out:
            bound = (
                f"reading stopped after {self.limits.seconds:g} seconds"
                if self.stopped_late
                else f"one takes at most {self.limits.max_items} messages, and sets aside {MAX_SET_ASIDE} objects"
            )
            names = listed([_name(info) for info in self.left_out], MAX_DEFERRED_NAMED)
            warnings.append(
                f"{counted(len(self.left_out), 'more object', 'more objects')} under {prefix} left for the next "
                f"draft; {bound}: {names}"
            )
        return tuple(warnings)


def _read(bucket: Bucket, info: ObjectInfo, limits: SourceLimits) -> Message:
    too_large = NotAMessage(f"it has {info.size:,} bytes; at most {limits.max_bytes:,} are read")
    if info.size > limits.max_bytes:
        raise too_large
    try:
        return read_message(bucket.get(info.key, max_bytes=limits.max_bytes), limits.max_chars)
    except ObjectTooLarge as error:
        raise too_large from error


def _moved(after: _Order | None, run: _Run, *, waiting: Sequence[ObjectInfo]) -> Cursor | None:
    """Return the cursor once all that was consumed is done, except what still waits; None when it does not move.

    It is a place as late as can be, and what is done beyond it.
    """
    if run.consumed == len(waiting):
        return None
    done = sorted((info for info in run.done if info not in waiting), key=_order)
    place = _place(after, done, waiting=[*run.deferred, *run.left_out, *waiting])
    return {
        "after": None if place is None else {"modified": format_instant(place[0]), "key": place[1]},
        "seen": [_hash(info) for info in done if place is None or _order(info) > place],
        "messages": list(run.messages)[-MAX_REMEMBERED_MESSAGES:],
    }


def _place(after: _Order | None, done: Sequence[ObjectInfo], waiting: Sequence[ObjectInfo]) -> _Order | None:
    """Return the last object that need not be remembered: it never moves back, nor past one that waits."""
    remembered_since = _order(done[-1])[0] - LOOK_BACK
    first_waiting = min(map(_order, waiting), default=None)
    place = after
    for position, info in enumerate(done):
        order = _order(info)
        too_many = len(done) - position > MAX_REMEMBERED_OBJECTS
        if (first_waiting is not None and order > first_waiting) or not (too_many or order[0] < remembered_since):
            break
        place = order
    return place


def _order(info: ObjectInfo) -> _Order:
    # To the second, as the cursor keeps it.
    return in_utc(info.modified).replace(microsecond=0), info.key


def _hash(info: ObjectInfo) -> str:
    # With the ETag: a key that is written anew with other content is another message.
    return short_hash(info.key, info.etag)


def _is_folder(info: ObjectInfo) -> bool:
    # The S3 console marks an empty folder by an object like this one.
    return info.key.endswith("/") and info.size == 0


def _name(info: ObjectInfo) -> str:
    return clean_line(info.key, 200)
