"""Whether each due slot of each schedule has a row, what becomes of those that have none, and who has gone silent.

How far a schedule was swept is noted after the outcomes are written and the messages sent, and never past a slot that
has no row yet. A sweep that ends anywhere is so made up for by the next one. A silence is told before it is noted: a
sweep that dies in between has it told twice, never not at all.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import assert_never

from catch_up import SETTLING, Leave, Send, Skip, asked_after, catch_up, swept_until
from galley.contract import InvalidTick, Tick, read_tick
from galley.instants import format_instant
from galley.observe import count_at_once, logger, tell_outcome
from galley.queue import QueueUnavailable, RunQueue
from galley.retry import NeverSucceeds
from galley.runs import Origin, RunMessage, SkipReason, Status, message_for
from galley.schedule import InvalidSchedule
from galley.schedules import ScheduleDefinition, ScheduleMissing, Schedules, ScheduleSummary, SchedulesUnavailable
from galley.store import (
    NOTHING_NOTED,
    AlreadyThere,
    Asked,
    RowsDisagree,
    Settled,
    Store,
    StoreBusy,
    SweptDrafter,
    SweptSchedule,
    UnreadableRow,
)
from gone import forget_gone, line_of_made_again
from silence import first_in_flight, silent_since

TIME_TO_FINISH = timedelta(minutes=1)
"""How much of the function's time is left for the request that is under way, and for what is still to be sent."""

BATCH = 10
"""How many messages go into one request to the queue."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did.

    The runs it sent, the slots it recorded as skipped, those without a row past their window, a line for each drafter
    that went silent, one for what it could not read or send, one for what it left to the next sweep, and one for each
    schedule that is deleted.
    """

    caught_up: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    overdue: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


def sweep(
    schedules: Schedules,
    store: Store,
    queue: RunQueue,
    *,
    now: datetime,
    trace: str,
    remaining: Callable[[], timedelta],
) -> Swept:
    """Bring each due slot without a row to what its schedule's contract says (``catch_up``), and tell silences.

    The schedules come in turn (``in_turn``). One that cannot be read stops no other. ``remaining`` tells how much time
    the sweep has; when little is left it ends, and the next one goes on.

    Raises:
        galley.retry.RetryLater: when what was swept cannot be read, or the schedules cannot be listed.
    """
    known = store.swept_schedules()
    noted = {swept.definition.name: swept for swept in known.schedules}
    listed = in_turn(schedules.listed(), known.schedules)
    doing = _Sweep(schedules, store, queue, now, trace, remaining, noted, broken=list(known.unreadable))
    for place, summary in enumerate(listed):
        if doing.is_out_of_time():
            doing.unfinished.append(f"{len(listed) - place} of {len(listed)} schedules wait for the next sweep")
            break
        doing.schedule(summary)
    doing.send()
    doing.note_where_it_stopped()
    gone = forget_gone(schedules, store, known.schedules, listed, now=now, is_out_of_time=doing.is_out_of_time)
    doing.broken += gone.broken
    doing.gone += gone.told
    return doing.done()


def in_turn(listed: Iterable[ScheduleSummary], known: Iterable[SweptSchedule]) -> list[ScheduleSummary]:
    """Return the schedules by name, beginning behind the one at which the last sweep that ran out of time stopped.

    So each has its turn, whatever keeps others from being done with.
    """
    by_name = sorted(listed, key=lambda one: one.name)
    _, last = max(((swept.stopped, swept.definition.name) for swept in known if swept.stopped), default=(None, ""))
    behind = bisect_right(by_name, last, key=lambda one: one.name)
    return by_name[behind:] + by_name[:behind]


def changed_to(definition: ScheduleDefinition, known: SweptSchedule | None) -> SweptSchedule:
    """Return what is known of a schedule by the definition that was read now.

    It is swept by that one from its change on. What it was due for before is swept by the former ones, each up to the
    change that ended it, until each of their slots has its row: at the latest when their grace is over. A silence
    outlasts the change; its slots are counted anew.
    """
    since = max(definition.created, definition.modified)
    if known is None:
        return SweptSchedule(definition, since)
    until = max(known.swept_until, since)
    former = _ended(known, definition.modified)
    if former is None:
        return replace(known, definition=definition, swept_until=until)
    drafters = {name: replace(one, asked=None) for name, one in known.drafters.items()}
    return replace(known, definition=definition, swept_until=until, drafters=drafters, former=(*known.former, former))


def _ended(known: SweptSchedule, ends: datetime) -> SweptSchedule | None:
    """Return a definition that was changed, with what is needed of it; None where each slot before has its row.

    One that cannot be read was due at none. Nobody asks any more whether its drafters are silent.
    """
    try:
        if not known.definition.due(known.swept_until, ends):
            return None
        tick = read_tick(known.definition.input).model_copy(update={"silence_slots": None})
    except (InvalidSchedule, InvalidTick):
        return None
    definition = replace(known.definition, input=tick.model_dump_json(exclude_none=True))
    drafters = {name: SweptDrafter(asked=one.asked) for name, one in known.drafters.items()}
    return SweptSchedule(definition, known.swept_until, drafters, ends=ends)


@dataclass(slots=True)
class _Sweep:
    """One sweep under way, and what it has done so far. ``noted`` is what is known of each schedule, by its name."""

    schedules: Schedules
    store: Store
    queue: RunQueue
    now: datetime
    trace: str
    remaining: Callable[[], timedelta]
    noted: dict[str, SweptSchedule]
    outbox: list[RunMessage] = field(default_factory=list)
    unsent: set[str] = field(default_factory=set)
    unnoted: list[SweptSchedule] = field(default_factory=list)
    caught_up: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    overdue: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    looked_at: list[str] = field(default_factory=list)
    is_cut_short: bool = False

    def schedule(self, summary: ScheduleSummary) -> None:
        """Sweep one schedule; name it if it cannot be read."""
        self.looked_at.append(summary.name)
        try:
            self._schedule(summary, self.noted.get(summary.name))
        except ScheduleMissing:
            pass  # deleted since the listing
        except (SchedulesUnavailable, StoreBusy, NeverSucceeds) as error:
            self.broken.append(f"{summary.name}: {error.detail}")

    def is_out_of_time(self) -> bool:
        """Tell whether nothing new should be begun."""
        return self.remaining() < TIME_TO_FINISH

    def note_where_it_stopped(self) -> None:
        """Note where the next sweep is to go on, if this one had no time for all.

        That is behind the last schedule that was looked at and is known. One that was cut short is where it goes on,
        unless it had the whole time of this sweep for itself.
        """
        if not self.unfinished:
            return
        looked_at = self.looked_at[:-1] if self.is_cut_short and len(self.looked_at) > 1 else self.looked_at
        last = next((self.noted[name] for name in reversed(looked_at) if name in self.noted), None)
        if last is not None:
            self._note_or_name(replace(last, stopped=self.now))

    def send(self) -> None:
        """Send what waits to be sent, and note what waited for that. What cannot be sent is asked for again next."""
        messages, self.outbox = self.outbox, []
        try:
            if messages:
                self.queue.send(messages)
        except QueueUnavailable as error:
            self.broken.append(error.detail)
            self.unsent.update(error.unsent)
        self.caught_up += [run for run in (str(message.key) for message in messages) if run not in self.unsent]
        unnoted, self.unnoted = self.unnoted, []
        for swept in unnoted:
            self._note_or_name(swept)

    def done(self) -> Swept:
        """Return what was done."""
        return Swept(
            caught_up=tuple(self.caught_up),
            skipped=tuple(self.skipped),
            overdue=tuple(self.overdue),
            silent=tuple(self.silent),
            broken=tuple(self.broken),
            unfinished=tuple(self.unfinished),
            gone=tuple(self.gone),
        )

    def _schedule(self, summary: ScheduleSummary, known: SweptSchedule | None) -> None:
        """Sweep one schedule. It is read again only where the listing shows that it changed.

        One that was deleted meanwhile, and made again under its name, is another schedule: what was known of the old
        one is forgotten, as it is of one that is gone.
        """
        horizon = (self.now - SETTLING).replace(microsecond=0) + timedelta(seconds=1)
        if known is None or known.definition.summary != summary:
            definition = self.schedules.get(summary.arn)
            if known is not None and known.definition.created < definition.created:
                self._tell_made_again(known, definition)
                known = None
            known = changed_to(definition, known)
            self._note(known)
        self._advance(known, horizon)

    def _tell_made_again(self, known: SweptSchedule, made: ScheduleDefinition) -> None:
        """Tell what is left open of the schedule that was deleted; a row that cannot be read does not hold up the new.

        It is told before it is noted: at least once, as a silence is.
        """
        try:
            self.gone.append(line_of_made_again(self.store, known, made))
        except UnreadableRow as error:
            self.broken.append(f"{made.name}: {error}")

    def _advance(self, swept: SweptSchedule, horizon: datetime) -> None:
        """Give the slots before the horizon their outcomes, those of former definitions first; note how far it came."""
        former = (self._former(one, horizon, one.ends) for one in swept.former if one.ends is not None)
        after = replace(swept, former=tuple(one for one in former if one is not None))
        try:
            after = self._outcomes(after, horizon)
        except (InvalidSchedule, InvalidTick) as error:
            self.broken.append(f"{swept.definition.name}: {error}")
        if after == swept:
            return
        if any(message.schedule == swept.definition.arn for message in self.outbox):
            self.unnoted.append(after)
        else:
            self._note(after)

    def _former(self, swept: SweptSchedule, horizon: datetime, ends: datetime) -> SweptSchedule | None:
        """Give the slots of a former definition their outcomes; return what is left of it, None where each has its row.

        Those past the horizon are given theirs by a later sweep.
        """
        after = self._outcomes(swept, min(horizon, ends))
        return after if after.definition.due(after.swept_until, ends) else None

    def _note(self, swept: SweptSchedule) -> None:
        """Note what is known of a schedule now. What could not be sent was not asked for."""
        swept = self._without_unsent(replace(swept, former=tuple(map(self._without_unsent, swept.former))))
        self.store.note_swept(swept, now=self.now)
        self.noted[swept.definition.name] = swept

    def _without_unsent(self, swept: SweptSchedule) -> SweptSchedule:
        drafters = {
            name: replace(one, asked=None) if self._has_unsent(name) else one for name, one in swept.drafters.items()
        }
        return replace(swept, drafters=drafters)

    def _has_unsent(self, drafter: str) -> bool:
        return any(run.startswith(f"{drafter}:") for run in self.unsent)

    def _note_or_name(self, swept: SweptSchedule) -> None:
        try:
            self._note(swept)
        except (StoreBusy, NeverSucceeds) as error:
            self.broken.append(f"{swept.definition.name}: {error.detail}")

    def _outcomes(self, swept: SweptSchedule, horizon: datetime) -> SweptSchedule:
        """Give the slots before the horizon their outcomes; return what is known of the schedule then."""
        definition = swept.definition
        tick = read_tick(definition.input, f"input of schedule {definition.name}")
        due = definition.due(swept.swept_until, horizon)
        marks = [horizon if due else swept.swept_until]
        drafters = {}
        for drafter in tick.drafters:
            known = swept.drafters.get(drafter, NOTHING_NOTED)
            look = _Look(definition, tick, drafter, known, due, horizon)
            drafters[drafter] = known
            try:
                if slots := look.slots():
                    drafters[drafter], until = self._drafter(look, slots)
                    marks.append(until)
            except (StoreBusy, RowsDisagree) as error:
                self.broken.append(f"{definition.name}, {drafter}: {error.detail}")
                marks.append(swept.swept_until)
            except UnreadableRow as error:
                self.broken.append(f"{definition.name}, {drafter}: {error}")
                marks.append(swept.swept_until)
        noted = {name: one for name, one in drafters.items() if one != NOTHING_NOTED}
        return replace(swept, swept_until=max(swept.swept_until, min(marks)), drafters=noted)

    def _drafter(self, look: "_Look", slots: tuple[datetime, ...]) -> tuple[SweptDrafter, datetime]:
        """Do for one drafter what ``_outcomes`` does for all: what is noted of it, and up to where it has rows."""
        known, due = look.known, look.due
        statuses = dict(self.store.slot_statuses(look.drafter, slots[0], slots[-1]))
        if statuses.keys() >= set(due):
            return self._heard(look, slots, statuses, None), look.horizon
        gate = self.store.drafter(look.drafter)
        contract = look.tick.contract
        decisions = catch_up(
            contract,
            due,
            statuses.keys(),
            now=self.now,
            paused=gate.paused,
            last_pause=gate.last_pause,
            asked=known.asked,
        )
        for decision in decisions:
            message = message_for(
                look.tick,
                look.drafter,
                decision.slot,
                origin=Origin.CATCH_UP,
                schedule=look.definition.arn,
                trace=self.trace,
            )
            match decision:
                case Skip(slot, reason, why):
                    if self.is_out_of_time():
                        self.unfinished.append(f"{look.definition.name} goes on with {message.key}")
                        self.is_cut_short = True
                        return known, min(slot, swept_until(decisions, look.horizon))
                    statuses[slot] = self._skip(message, reason, why)
                case Send():
                    self._ask_for(message)
                    self._see(message)
                case Leave():
                    self._see(message)
                case _:
                    assert_never(decision)
        asked = asked_after(known.asked, decisions, now=self.now)
        return self._heard(look, slots, statuses, asked), swept_until(decisions, look.horizon)

    def _heard(
        self,
        look: "_Look",
        slots: Sequence[datetime],
        statuses: Mapping[datetime, Status | None],
        asked: Asked | None,
    ) -> SweptDrafter:
        """Return what is noted of a drafter; tell it where it has just gone silent."""
        watched, known = look.tick.silence_slots, look.known.silent_since
        if watched is None:
            return SweptDrafter(asked=asked)
        since = silent_since(slots, statuses, silence_slots=watched, known=known)
        if since is not None and since != known:
            line = (
                f"{look.drafter}: no draft for {watched} due slots of {look.definition.name} or more, "
                f"since {format_instant(since)}"
            )
            logger.warning("silent: %s", line)
            count_at_once("drafter_silent")
            self.silent.append(line)
        if since is None and known is not None:
            logger.info("%s drafts again; it was silent since %s", look.drafter, format_instant(known))
        return SweptDrafter(since, first_in_flight(slots, statuses), asked)

    def _skip(self, message: RunMessage, reason: SkipReason, why: str) -> Status:
        """Record a slot as skipped, where it has no row; return what its row says now."""
        match self.store.skip(message, reason, why, now=self.now):
            case Settled(run):
                tell_outcome(run)
                self.skipped.append(str(message.key))
                return run.status
            case AlreadyThere(run):
                return run.status

    def _ask_for(self, message: RunMessage) -> None:
        self.outbox.append(message)
        if len(self.outbox) == BATCH:
            self.send()

    def _see(self, message: RunMessage) -> None:
        """Note a run that has no row though its window is over."""
        if self.now > message.slot + message.contract.window:
            self.overdue.append(str(message.key))


@dataclass(frozen=True, slots=True)
class _Look:
    """One drafter of a schedule, what is known of it, and the slots before the horizon that have no row for all."""

    definition: ScheduleDefinition
    tick: Tick
    drafter: str
    known: SweptDrafter
    due: tuple[datetime, ...]
    horizon: datetime

    def slots(self) -> tuple[datetime, ...]:
        """Return the slots to look at, oldest first; none where there is nothing to look for.

        Where silence is watched, that begins with the first run that was in flight, and with as many slots before as
        make a silence.
        """
        if self.tick.silence_slots is None:
            return self.due
        begins = [slot for slot in (self.known.in_flight, *self.due[:1]) if slot is not None]
        if not begins:
            return ()
        first = min(begins)
        before = self.definition.due_before(first, self.tick.silence_slots)
        return (*before, *self.definition.due(first, self.horizon))
