"""Mail in a bucket: one object for each message, as Amazon SES's S3 action writes it.

The cursor is a place in the order of arrival, and a short memory beyond it. Everything up to the place is done;
of what is later, the objects are done whose hashes are remembered. The memory reaches a day back from the newest
message, because objects do not become visible in order: S3 dates a multipart upload by its beginning, and copies
can keep an old date. So what appears late, or shares its second with another object, is neither lost nor repeated.

What cannot be read does not hold up what can. Bytes that are no message stay so: they are set aside at once. What the
bucket does not hand out, or what meets an error that nobody foresaw, is tried with three drafts. Each is named when it
is set aside and once beside the next draft, and not on every quiet day in between.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict, Field

from galley.bucket import Bucket, ObjectInfo, ObjectMissing, ObjectTooLarge, ObjectUnreadable
from galley.drafts import Item
from galley.instants import format_instant, in_utc, to_the_second
from galley.store import Cursor
from galley.texts import clip, counted, listed
from sources.clean import clean_line
from sources.collected import Collected, CursorState, Instant, SourceLimits, read_cursor, short_hash
from sources.message import Message, NotAMessage, Quotes, read_message

LOOK_BACK = timedelta(days=1)
MAX_REMEMBERED_OBJECTS = 4_000
"""Beyond so many the memory reaches less far back than a day, but never past an object that waits."""
MAX_OBJECTS_BEYOND_PLACE = 8_000
"""Where an object that waits holds the place back, no more than these are consumed beyond it."""
MAX_REMEMBERED_MESSAGES = 3_000
MAX_SET_ASIDE = 200
MAX_TRIES = 3
"""So often is an object tried that may be readable later, before it is set aside."""
MAX_TRIED = 200
"""So many objects are tried again at most; further ones are set aside at once."""
MAX_UNTOLD = 30
MAX_UNTOLD_CHARS = 200
"""So many lines, of so many characters, wait for the next draft to name them."""
MAX_DEFERRED_NAMED = 20

_Order = tuple[datetime, str]


class _Place(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    modified: Instant
    key: str


class _State(CursorState):
    """``prefix`` is where the rest belongs to; without one it was written before that was kept.

    ``tries`` counts, by an object's hash, how often it could not be read; ``untold`` are lines that no draft had yet.
    """

    prefix: str = ""
    after: _Place | None = None
    seen: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    tries: dict[str, int] = Field(default_factory=dict)
    untold: tuple[str, ...] = ()


def collect(
    bucket: Bucket,
    prefix: str,
    cursor: Cursor | None,
    until: datetime,
    limits: SourceLimits,
    quotes: Quotes = "cut",
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Collected:
    """Return the messages under the prefix that are new since the cursor, in the order of arrival.

    ``until`` is the slot. A message was there by then if its sender dated it so, unless it arrived before that
    date, or else if it arrived by then; a later one waits for the next draft. An object that is no readable message
    is named and then counts as done, whenever it arrived.
    Without a cursor, or with one of another prefix, only the newest objects count, as many as ``limits.first_run``
    says; the older ones are passed over, and a warning says how many.
    Each item's ``source`` is its object's key, so that every object is an item or named in a warning.
    ``quotes`` says what becomes of quoted text and signatures.
    ``clock`` gives seconds and is never set back: when the limits' time is over, what was not read yet waits.

    Raises:
        NeverSucceeds: for a cursor that is not one of ours.
    """
    until = in_utc(until)
    state = read_cursor(_State, cursor, f"the mail under {prefix!r}")
    is_first = cursor is None or state.prefix not in ("", prefix)
    if is_first:
        state = _State(messages=state.messages, untold=state.untold)
    after = None if state.after is None else (state.after.modified, state.after.key)
    beyond = [info for info in bucket.list(prefix) if after is None or _order(info) > after]
    beyond = sorted((info for info in beyond if not _is_folder(info)), key=_order)
    passed: list[ObjectInfo] = []
    if is_first and limits.first_run is not None and len(beyond) > limits.first_run:
        passed, beyond = beyond[: -limits.first_run], beyond[-limits.first_run :]
        after = _order(passed[-1])
    seen = frozenset(state.seen)
    run = _Run(
        until=until,
        limits=limits,
        quotes=quotes,
        clock=clock,
        deadline=clock() + limits.seconds,
        messages=dict.fromkeys(state.messages),
        tries=state.tries,
        done=[info for info in beyond if _hash(info) in seen],
    )
    if passed:
        run.tell_with_a_draft(_passed_over(passed, prefix))
    for info in beyond:
        if _hash(info) not in seen:
            run.take(bucket, info)
    moved = _moved(state, after, run, prefix)
    untold = _bounded([*state.untold, *run.untold], limits.remembered(MAX_UNTOLD))
    return Collected(
        items=tuple(run.items),
        warnings=run.all_warnings(prefix),
        untold=state.untold,
        cursor=_if_new({**moved, "untold": []}, cursor),
        cursor_if_empty=_if_new({**moved, "untold": untold}, cursor),
        left_out=len(run.left_out),
    )


def _if_new(new: Cursor, stored: Cursor | None) -> Cursor | None:
    """Return the cursor, or None when the stored one says the same.

    The first one is stored even though it says nothing: what comes later to an empty mailbox is no history.
    """
    if stored is None:
        return new
    said, before = ({name: value for name, value in one.items() if value} for one in (new, stored))
    return None if said == {"prefix": new["prefix"], **before} else new


def _passed_over(passed: Sequence[ObjectInfo], prefix: str) -> str:
    days = f"{format_instant(passed[0].modified)} to {format_instant(passed[-1].modified)}"
    objects = counted(len(passed), "older object", "older objects")
    return f"{objects} under {clean_line(prefix, 100)} passed over ({days}): this is the first draft from there"


def _bounded(lines: Sequence[str], at_most: int) -> list[str]:
    """Return the lines that wait for the next draft, no more and no longer than can be kept."""
    kept = [clip(line, MAX_UNTOLD_CHARS) for line in lines[:at_most]]
    return kept if len(lines) <= at_most else [*kept[:-1], _AND_MORE]


_AND_MORE = "and more objects that were not read, which earlier runs named"


@dataclass
class _Run:
    """One pass over what is new. Every object ends in ``done`` or among what waits, or has vanished.

    What waits is ``deferred`` to a later slot, ``left_out`` by a limit, or in ``tried``, with how often it was.
    """

    until: datetime
    limits: SourceLimits
    quotes: Quotes
    clock: Callable[[], float]
    deadline: float
    messages: dict[str, None]
    tries: Mapping[str, int]
    done: list[ObjectInfo]
    taken: int = 0
    stopped_late: bool = False
    items: list[Item] = field(default_factory=list)
    set_aside: int = 0
    tried: dict[ObjectInfo, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    deferred: list[ObjectInfo] = field(default_factory=list)
    left_out: list[ObjectInfo] = field(default_factory=list)

    def take(self, bucket: Bucket, info: ObjectInfo) -> None:
        if self._is_full():
            self.left_out.append(info)
            return
        self.taken += 1
        try:
            message = _read(bucket, info, self.limits, self.quotes)
        except ObjectMissing:
            self.warnings.append(f"{_name(info)}: it was deleted before it could be read")
        except NotAMessage as reason:
            self._give_up(info, f"not read: {reason}")
        except (ObjectUnreadable, _Unforeseen) as reason:
            self._try_again(info, str(reason))
        else:
            self._consider(info, message)

    def _try_again(self, info: ObjectInfo, reason: str) -> None:
        times = self.tries.get(_hash(info), 0) + 1
        if times >= MAX_TRIES or len(self.tried) >= self.limits.remembered(MAX_TRIED):
            self._give_up(info, f"not read: {reason}; set aside after {counted(times, 'try', 'tries')}")
            return
        self.tried[info] = times
        if times == 1:
            self.warnings.append(f"{_name(info)}: not read yet: {reason}; it is tried with {MAX_TRIES} drafts in all")

    def _give_up(self, info: ObjectInfo, reason: str) -> None:
        self.done.append(info)
        self.set_aside += 1
        self.tell_with_a_draft(f"{_name(info)}: {reason}")

    def tell_with_a_draft(self, line: str) -> None:
        """Tell it with this run, and if that makes no draft with the next one that does."""
        self.warnings.append(line)
        self.untold.append(line)

    def _is_full(self) -> bool:
        # The first object that waits may always be taken: what is done beyond it can then be forgotten.
        something_waits = bool(self.waiting)
        return (
            len(self.items) >= self.limits.max_items
            or self.set_aside >= MAX_SET_ASIDE
            or (something_waits and len(self.done) >= self.limits.remembered(MAX_OBJECTS_BEYOND_PLACE))
            or self._is_late()
        )

    @property
    def waiting(self) -> list[ObjectInfo]:
        return [*self.deferred, *self.left_out, *self.tried]

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
            self.done.append(info)
            self.set_aside += 1
            copy = f"not taken: the same message as an earlier one ({message.title})"
            self.warnings.append(f"{_name(info)}: {copy}")
        else:
            self.done.append(info)
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


class _Unforeseen(Exception):
    """An error that reading a message met and that nobody foresaw, in words: one message must not hold up the rest."""


def _read(bucket: Bucket, info: ObjectInfo, limits: SourceLimits, quotes: Quotes) -> Message:
    too_large = NotAMessage(f"it has {info.size:,} bytes; at most {limits.max_bytes:,} are read")
    if info.size > limits.max_bytes:
        raise too_large
    try:
        raw = bucket.get(info.key, max_bytes=limits.max_bytes)
    except ObjectTooLarge as error:
        raise too_large from error
    try:
        return read_message(raw, limits.max_chars, quotes)
    except NotAMessage:
        raise
    except Exception as error:
        raise _Unforeseen(f"reading it met an unexpected error ({type(error).__name__})") from error


def _moved(state: _State, after: _Order | None, run: _Run, prefix: str) -> Cursor:
    """Return the cursor once all that was read is done, except what still waits, without its untold lines.

    It is a place as late as can be, and what is done beyond it.
    """
    done = sorted(run.done, key=_order)
    place = _place(after, done, run.waiting, run.limits) if done else after
    return {
        "prefix": prefix,
        "after": None if place is None else {"modified": format_instant(place[0]), "key": place[1]},
        "seen": [_hash(info) for info in done if place is None or _order(info) > place],
        "messages": list(run.messages)[-run.limits.remembered(MAX_REMEMBERED_MESSAGES) :],
        "tries": _tries(state, run),
    }


def _tries(state: _State, run: _Run) -> dict[str, int]:
    """Return how often each object was tried that still waits; one that was not tried now keeps its count."""
    waiting = {_hash(info): run.tried.get(info, state.tries.get(_hash(info), 0)) for info in run.waiting}
    return {key: times for key, times in waiting.items() if times}


def _place(
    after: _Order | None, done: Sequence[ObjectInfo], waiting: Sequence[ObjectInfo], limits: SourceLimits
) -> _Order | None:
    """Return the last object that need not be remembered: it never moves back, nor past one that waits."""
    remembered_since = _order(done[-1])[0] - LOOK_BACK
    first_waiting = min(map(_order, waiting), default=None)
    most = limits.remembered(MAX_REMEMBERED_OBJECTS)
    place = after
    for position, info in enumerate(done):
        order = _order(info)
        too_many = len(done) - position > most
        if (first_waiting is not None and order > first_waiting) or not (too_many or order[0] < remembered_since):
            break
        place = order
    return place


def _order(info: ObjectInfo) -> _Order:
    # To the second, as the cursor keeps it.
    return to_the_second(info.modified), info.key


def _hash(info: ObjectInfo) -> str:
    # With the ETag: a key that is written anew with other content is another message.
    return short_hash(info.key, info.etag)


def _is_folder(info: ObjectInfo) -> bool:
    # The S3 console marks an empty folder by an object like this one.
    return info.key.endswith("/") and info.size == 0


def _name(info: ObjectInfo) -> str:
    return clean_line(info.key, 200)
