"""What failed for good, runs and ticks: how it is listed, sent again and discarded.

A dead run is known by its letters in the queue, by its failed row, or by both. To send it again takes three steps: the
row, the message, the letters. They are done in this order, so that a crash between two of them loses nothing, and the
same again repairs it: a queued row's message may be sent twice, and a letter that is older than its row's resend number
was answered before. Where there is no row, it is made: a slot without one is the sweep's, which would give it up before
the message is handled. A dead tick is sent run by run, in the same steps. What was sent goes through the claim like any
other message, so it drafts no slot twice and passes no gate.

To dismiss (the row) and to remove (the letters) is to discard, which only a person does.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import assert_never

from galley.contract import InvalidTick, Tick, read_tick
from galley.listing import all_watched
from galley.queue import DeadLetter, DeadTick, RemovalFailed, RunQueue
from galley.retry import NeverSucceeds, RetryLater
from galley.runs import (
    InvalidMessage,
    InvalidRunKey,
    Origin,
    Run,
    RunKey,
    RunMessage,
    Status,
    messages_for,
    read_message,
)
from galley.store import AlreadyThere, Conflict, NoSuchRun, Settled, Store, UnreadableRow

MOST_LISTED = 1_000
"""How many letters, and how many ticks, are looked at in one listing."""

MOST_ROUNDS = 200
"""How many listings one command goes through that sends all again or discards all: see ``new_things``."""

SHORT_ID = 8
"""How many characters of a queue's id a person types."""

_TRIES = 3


@dataclass(frozen=True, slots=True)
class DeadRun:
    """A run that failed for good, as the queue and the table each know it; one of them may not.

    ``name`` is what a person calls it: its key, or ``letter-`` and an id for a letter that names no run; then ``key``
    is None.
    """

    name: str
    key: RunKey | None
    letters: tuple[DeadLetter, ...] = ()
    row: Run | None = None


@dataclass(frozen=True, slots=True)
class NamedTick:
    """A dead tick and what a person calls it: ``tick-`` and an id."""

    name: str
    tick: DeadTick


DeadThing = DeadRun | NamedTick


@dataclass(frozen=True, slots=True)
class Dead:
    """All that is dead, oldest first, and a line for each row that cannot be read."""

    runs: tuple[DeadRun, ...]
    ticks: tuple[NamedTick, ...]
    unreadable: tuple[str, ...]

    @property
    def all(self) -> tuple[DeadThing, ...]:
        """The runs, and the ticks after them."""
        return (*self.runs, *self.ticks)

    def listed(self, name: str) -> DeadThing | None:
        """Return what is listed under a name.

        Raises:
            InvalidRunKey: when nothing could be called so.
        """
        kind, dash, rest = name.partition("-")
        if dash and ":" not in name and kind in {"letter", "tick"}:
            letters = (run for run in self.runs if run.key is None and rest in {_id(run.name), run.letters[0].id})
            ticks = (tick for tick in self.ticks if rest in {_id(tick.name), tick.tick.id})
            return next(letters, None) if kind == "letter" else next(ticks, None)
        key = RunKey.parse(name)
        return next((run for run in self.runs if run.key == key), None)

    def named(self, name: str) -> DeadThing | None:
        """Return what a person calls so: what is listed, or any other run, without letters and row.

        Raises:
            InvalidRunKey: when nothing could be called so.
        """
        thing = self.listed(name)
        if thing is None and ":" in name:
            key = RunKey.parse(name)
            return DeadRun(str(key), key)
        return thing


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent again: the runs of a dead run (one) or of a dead tick."""

    name: str
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotDone:
    """What was not done, and why, in one line."""

    name: str
    why: str


@dataclass(slots=True)
class Report:
    """What became of what was to be sent again or discarded, each by its name.

    ``sent_before``: only the letters were left, of runs that were sent again before. ``not_found``: a letter or a tick
    was not there any more to be taken away; somebody else took it, or looks at it at the moment. ``notes``: what may
    keep that which was sent from being drafted.
    """

    sent: list[Sent] = field(default_factory=list)
    sent_before: list[str] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    refused: list[NotDone] = field(default_factory=list)
    not_found: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def list_dead(store: Store, queue: RunQueue) -> Dead:
    """Return the letters joined with their rows, the failed rows without a letter, and the dead ticks."""
    failed = all_watched(store, Status.FAILED)
    rows = {row.key: row for row in failed.runs}
    unreadable = list(failed.unreadable)
    letters: dict[RunKey, list[DeadLetter]] = {}
    nameless: list[DeadLetter] = []
    for letter in queue.dead_runs(limit=MOST_LISTED):
        key = run_of(letter)
        if key is None:
            nameless.append(letter)
        else:
            letters.setdefault(key, []).append(letter)
    runs = []
    for key, found in letters.items():
        row = rows.pop(key, None)
        if row is None:
            try:
                row = store.run(key)
            except UnreadableRow as error:
                if str(error) not in unreadable:
                    unreadable.append(str(error))
        runs.append(DeadRun(str(key), key, tuple(found), row))
    short = _short([letter.id for letter in nameless])
    runs += [DeadRun(f"letter-{short[letter.id]}", None, (letter,)) for letter in nameless]
    runs.sort(key=lambda run: run.letters[0].last)
    runs += [DeadRun(str(key), key, (), row) for key, row in rows.items()]
    ticks = queue.dead_ticks(limit=MOST_LISTED)
    short = _short([tick.id for tick in ticks])
    named = tuple(NamedTick(f"tick-{short[tick.id]}", tick) for tick in ticks)
    return Dead(tuple(runs), named, tuple(unreadable))


def new_things(store: Store, queue: RunQueue, report: Report) -> Iterator[tuple[DeadThing, ...]]:
    """Yield what each listing shows that none before did, until one shows nothing new.

    One listing is not enough: of the letters of one drafter that SQS itself buried it shows ten, and the next ones only
    once those are gone. If even ``MOST_ROUNDS`` are not enough, the report says so.
    """
    seen: set[tuple[str, str]] = set()
    for _ in range(MOST_ROUNDS):
        new = tuple(thing for thing in list_dead(store, queue).all if not _marks(thing) <= seen)
        if not new:
            return
        seen.update(*map(_marks, new))
        yield new
    report.refused.append(NotDone("--all", "more is dead than one command goes through; repeat it"))


def _marks(thing: DeadThing) -> set[tuple[str, str]]:
    """Return what tells a thing from others, and from itself with more letters."""
    ids = [letter.id for letter in thing.letters] if isinstance(thing, DeadRun) else [thing.tick.id]
    return {(thing.name, one) for one in ("", *ids)}


def run_of(letter: DeadLetter) -> RunKey | None:
    """Return the run that a letter is about: its message's, since that is what would be sent, else the one it names."""
    try:
        return read_message(letter.body).key
    except InvalidMessage:
        pass
    try:
        return None if letter.run is None else RunKey.parse(letter.run)
    except InvalidRunKey:
        return None


@dataclass(frozen=True, slots=True)
class Requeue:
    """Let the failed row of this key be queued, and send its message."""

    key: RunKey


@dataclass(frozen=True, slots=True)
class Queue:
    """Make a queued row for this message, since there is none, and send the message."""

    message: RunMessage


@dataclass(frozen=True, slots=True)
class Send:
    """Send this message; the row is queued for it already."""

    message: RunMessage


@dataclass(frozen=True, slots=True)
class SentBefore:
    """The run was sent again since it died, and the row is past it: only the letters are left over."""

    row: Run


@dataclass(frozen=True, slots=True)
class Refuse:
    """Send nothing; ``why`` is one line."""

    why: str


@dataclass(frozen=True, slots=True)
class Left:
    """What could not be sent this time, and could be at another; ``why`` and ``remedy`` are parts of one line."""

    why: str
    remedy: str = ""


Step = Requeue | Queue | Send | SentBefore | Refuse


def next_step(name: str, row: Run | None, letters: Sequence[DeadLetter] = (), ticked: RunMessage | None = None) -> Step:
    """Decide how a dead run of this name is sent again, from its row as it is now and its letters.

    ``ticked`` is the message of a dead tick that asks for it.
    A message whose letter lies there is not on its way any more. Where the row still waits for that very message, it
    is sent as a renewal: under the same deduplication id the queue might swallow it.
    """
    read = [_read(letter) for letter in letters]
    messages = [one for one in read if isinstance(one, RunMessage)]
    errors = [one for one in read if isinstance(one, InvalidMessage)]
    if row is None:
        if messages:
            resend = max(message.resend for message in messages) + 1
            return Queue(messages[-1].model_copy(update={"resend": resend, "renewal": 0}))
        if ticked is not None:
            return Queue(ticked)
        return Refuse(_unreadable(name, errors[-1]) if errors else f"there is no run {name} and no dead letter of it")
    match row.status:
        case Status.FAILED:
            return Requeue(row.key)
        case Status.QUEUED:
            lost = [message.renewal for message in messages if message.resend >= row.resend]
            return Send(row.message.model_copy(update={"renewal": max(lost) + 1}) if lost else row.message)
    if messages and not errors and all(message.resend < row.resend for message in messages):
        return SentBefore(row)
    return Refuse(f"run {name} is {_state(row)}; {_remedy(row, letters)}")


@dataclass(frozen=True, slots=True)
class Unpublished:
    """No tick, but the record of an approved run that publish could not handle."""

    run: str


@dataclass(frozen=True, slots=True)
class DeadSweep:
    """No tick, but the event of a sweep that failed."""


@dataclass(frozen=True, slots=True)
class UnreadableTick:
    """What cannot be read as a tick; ``why`` is one line."""

    why: str


def read_dead_tick(dead: DeadTick) -> Tick | Unpublished | DeadSweep | UnreadableTick:
    """Return what lies among the dead ticks."""
    try:
        body = json.loads(dead.body)
    except (ValueError, RecursionError):  # the latter where it is nested too deep
        body = None
    match body:
        case {"run": run}:
            return Unpublished(str(run))
        case {"sweep": _}:
            return DeadSweep()
    try:
        return read_tick(dead.body, "its body")
    except InvalidTick as error:
        return UnreadableTick(str(error))


def messages_of(tick: Tick, dead: DeadTick, trace: str) -> list[RunMessage]:
    """Return the run messages of a dead tick, for its own slot and as sent again by a person.

    Where the tick has no slot, it is the minute that the queue knows: that of the schedule, or of the tick's death for
    one that somebody had sent by hand.
    """
    by_hand = tick.slot is None and dead.schedule is None
    messages = messages_for(
        tick,
        tick.slot or dead.at.replace(second=0, microsecond=0),
        origin=Origin.MANUAL if by_hand else Origin.SCHEDULE,
        schedule=tick.schedule or dead.schedule,
        trace=trace,
    )
    return [message.model_copy(update={"resend": 1}) for message in messages]


class Resending:
    """Sends the dead again, each once, and reports what became of each. A failure of one stops no other."""

    def __init__(self, store: Store, queue: RunQueue, *, now: Callable[[], datetime], trace: str) -> None:
        """Prepare; ``trace`` ties together what is sent for ticks."""
        self.report = Report()
        self._store = store
        self._queue = queue
        self._now = now
        self._trace = trace
        self._resends: dict[str, int] = {}  # of each run looked at, the number it was sent under; 0 if it was not

    def resend(self, things: Iterable[DeadThing]) -> None:
        """Send runs and ticks again, then take their letters and ticks away."""
        letters: dict[str, str] = {}
        ticks: dict[str, str] = {}
        try:
            for thing in things:
                match thing:
                    case DeadRun(name):
                        letters |= {letter.id: name for letter in self._send_run(thing)}
                    case NamedTick(name, tick):
                        if self._send_tick(name, tick):
                            ticks[tick.id] = name
                    case _:
                        assert_never(thing)
        finally:
            _remove(self._queue.remove_dead_runs, letters, self.report)
            _remove(self._queue.remove_dead_ticks, ticks, self.report)

    def resend_all(self) -> None:
        """Send all of the dead again. One run is sent once, even if it fails again meanwhile: its new letter stays."""
        for things in new_things(self._store, self._queue, self.report):
            self.resend(things)

    def _send_run(self, dead: DeadRun) -> Sequence[DeadLetter]:
        """Send a run again, or refuse to; return the letters that are answered by it.

        Of a run that was looked at before, those are answered that are older than what was sent.
        """
        if dead.name in self._resends:
            sent = self._resends[dead.name]
            return [letter for letter in dead.letters if _is_older(letter, sent)]
        self._resends[dead.name] = 0
        match self._try(dead.name, dead.key, dead.letters):
            case RunMessage() as message:
                self.report.sent.append(Sent(dead.name, (str(message.key),)))
                return dead.letters
            case SentBefore():
                self.report.sent_before.append(dead.name)
                return dead.letters
            case Left(why, remedy):
                self._refuse(dead.name, f"{why}; {remedy}" if remedy else why)
            case Refuse(why):
                self._refuse(dead.name, why)
        return ()

    def _try(
        self, name: str, key: RunKey | None, letters: Sequence[DeadLetter] = (), ticked: RunMessage | None = None
    ) -> RunMessage | SentBefore | Refuse | Left:
        """Take the steps, and return what could not be done as a value."""
        try:
            return self._take_steps(name, key, letters, ticked)
        except RetryLater as error:
            return Left(f"{name}: {error.detail}", "nothing is lost, send it again by its name")
        except NeverSucceeds as error:
            return Left(f"{name}: {error.detail}")
        except UnreadableRow as error:
            return Left(str(error))

    def _take_steps(
        self, name: str, key: RunKey | None, letters: Sequence[DeadLetter], ticked: RunMessage | None
    ) -> RunMessage | SentBefore | Refuse | Left:
        """Do what is left of the steps up to the message, and return it where it was sent."""
        for _ in range(_TRIES):
            step = next_step(name, None if key is None else self._store.run(key), letters, ticked)
            match step:
                case Requeue(failed):
                    match self._store.resend(failed, now=self._now()):
                        case Settled(run):
                            return self._send(name, run.message)
                        case Conflict() | NoSuchRun():
                            continue  # somebody else was first: look again
                case Queue(message):
                    match self._store.queue(message, now=self._now()):
                        case Settled(run):
                            return self._send(name, run.message)
                        case AlreadyThere():
                            continue
                case Send(message):
                    return self._send(name, message)
                case SentBefore(row):
                    self._resends[name] = row.resend
                    return step
                case Refuse():
                    return step
                case _:
                    assert_never(step)
        return Left(f"run {name} was changed by somebody else each time", "try again")

    def _send(self, name: str, message: RunMessage) -> RunMessage:
        self._queue.send([message])
        self._resends[name] = message.resend
        return message

    def _send_tick(self, name: str, dead: DeadTick) -> bool:
        """Send the runs of a tick, or refuse to; tell whether the tick is answered by that.

        It is when a run of it was sent and none is left that could be: it stays for what could not be sent now, and
        where nothing was sent at all.
        """
        tick = read_dead_tick(dead)
        match tick:
            case Tick():
                return self._send_runs(name, messages_of(tick, dead, self._trace))
            case Unpublished(run):
                why = f"is no tick: publish could not handle run {run}, which stays approved; its log says why"
            case DeadSweep():
                why = "is no tick but a sweep, and the next sweep does what it left undone"
            case UnreadableTick(line):
                why = f"cannot be sent: {line}"
            case _:
                assert_never(tick)
        self._refuse(name, f"{name} {why}; 'galley dlq discard {name}' takes it away")
        return False

    def _send_runs(self, name: str, messages: Sequence[RunMessage]) -> bool:
        """Send what a tick of this name asks for, and report it; tell whether the tick is answered by that."""
        sent: list[str] = []
        refused: list[NotDone] = []
        is_left = False
        try:
            for message in messages:
                run = str(message.key)
                if self._resends.get(run):
                    sent.append(run)  # by this very command
                    continue
                match self._try(run, message.key, ticked=message):
                    case RunMessage() | SentBefore():
                        sent.append(run)
                    case Refuse(why):
                        refused.append(NotDone(run, why))
                    case Left(why):
                        refused.append(NotDone(run, why))
                        is_left = True
        finally:
            if sent:
                self.report.sent.append(Sent(name, tuple(sent)))
        is_answered = bool(sent) and not is_left
        remedy = "the tick stays, send it again" if is_left else f"'galley dlq discard {name}' takes the tick away"
        for one in refused:
            self._refuse(one.name, f"{name}: {one.why}" if is_answered else f"{name}: {one.why}; {remedy}")
        return is_answered

    def _refuse(self, name: str, why: str) -> None:
        self.report.refused.append(NotDone(name, why))


def discard_dead(store: Store, queue: RunQueue, things: Iterable[DeadThing], *, now: datetime, report: Report) -> None:
    """Dismiss failed rows, then remove letters and ticks; add what became of each to the report.

    The row comes first, so that what a crash leaves is still listed.
    """
    letters: dict[str, str] = {}
    ticks: dict[str, str] = {}
    for thing in things:
        match thing:
            case DeadRun(name, _, found):
                why = _dismiss(store, thing, now)
                if why is not None:
                    report.refused.append(NotDone(name, why))
                elif found:
                    letters |= {letter.id: name for letter in found}
                else:
                    report.discarded.append(name)
            case NamedTick(name, tick):
                ticks[tick.id] = name
            case _:
                assert_never(thing)
    report.discarded += _remove(queue.remove_dead_runs, letters, report)
    report.discarded += _remove(queue.remove_dead_ticks, ticks, report)


def _dismiss(store: Store, dead: DeadRun, now: datetime) -> str | None:
    """Let a failed row be listed no longer; return why nothing of the run can be discarded, where that is so.

    Letters can, where the row has gone on, cannot be read or is none.
    """
    if dead.key is None:
        return None
    try:
        outcome = store.dismiss(dead.key, now=now)
    except UnreadableRow as error:
        return None if dead.letters else str(error)
    except (NeverSucceeds, RetryLater) as error:
        return f"{dead.name}: {error.detail}; nothing of it was discarded"
    match outcome:
        case Settled():
            return None
        case Conflict(run) if run.dismissed is not None:
            return None
        case Conflict(run):
            return None if dead.letters else f"run {run.key} is {_state(run)}; there is nothing to discard"
        case NoSuchRun():
            return None if dead.letters else f"there is no run {dead.key} and no dead letter of it"
    assert_never(outcome)


def _remove(
    remove: Callable[[Collection[str]], frozenset[str]], names: dict[str, str], report: Report
) -> tuple[str, ...]:
    """Remove by the ids, each with its name; report the names of what was not removed, and return the others."""
    if not names:
        return ()
    failure = None
    try:
        removed = remove(names.keys())
    except RemovalFailed as error:
        removed, failure = error.removed, str(error)
    left = dict.fromkeys(name for one, name in names.items() if one not in removed)
    if failure is None:
        report.not_found.extend(left)
    else:
        why = f"still lies among the dead: {failure}; the same again removes it"
        report.refused.extend(NotDone(name, f"{name} {why}") for name in left)
    return tuple(name for name in dict.fromkeys(names.values()) if name not in left)


def _read(letter: DeadLetter) -> RunMessage | InvalidMessage:
    try:
        return read_message(letter.body)
    except InvalidMessage as error:
        return error


def _is_older(letter: DeadLetter, resend: int) -> bool:
    """Tell whether a letter's message is older than the one of this resend number."""
    message = _read(letter)
    return isinstance(message, RunMessage) and message.resend < resend


def _unreadable(name: str, error: InvalidMessage) -> str:
    cannot = f"the message of {name} cannot be read, so it cannot be sent: {error}"
    return f"{cannot}; 'galley dlq discard {name}' takes it away"


def _state(run: Run) -> str:
    return f"{run.status} ({run.reason})" if run.reason else str(run.status)


def _remedy(row: Run, letters: Sequence[DeadLetter]) -> str:
    if row.status is Status.DRAFTING:
        return "it is sent again once it has failed, and a sweep fails it when nobody works on it any more"
    return "there is nothing to send" + ("; its letters can be discarded" if letters else "")


def _id(name: str) -> str:
    return name.partition("-")[2]


def _short(ids: Sequence[str]) -> dict[str, str]:
    """Return the beginning of each id, or the whole where several begin alike."""
    beginnings = Counter(one[:SHORT_ID] for one in ids)
    return {one: one[:SHORT_ID] if beginnings[one[:SHORT_ID]] == 1 else one for one in ids}
