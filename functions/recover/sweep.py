"""Whether each due slot of each schedule has a row, and what becomes of those that have none.

How far a schedule was swept is noted after the outcomes are written, and never past a slot that has no row yet. A sweep
that ends anywhere is so made up for by the next one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import assert_never

from catch_up import Leave, Send, Skip, catch_up, swept_until
from galley.contract import InvalidTick, Tick, read_tick
from galley.observe import tell_outcome
from galley.queue import QueueUnavailable, RunQueue
from galley.runs import Origin, RunMessage, SkipReason
from galley.schedule import InvalidSchedule
from galley.schedules import ScheduleDefinition, ScheduleMissing, Schedules, ScheduleSummary, SchedulesUnavailable
from galley.store import AlreadyThere, RowsDisagree, Settled, Store, StoreBusy, SweptSchedule, UnreadableRow
from gone import forget_gone

SETTLING = timedelta(minutes=2)
"""A slot younger than this is left alone: its own tick may still be on its way (Scheduler's precision is a minute)."""

TIME_TO_FINISH = timedelta(minutes=1)
"""How much of the function's time is left for the request that is under way, and for what is still to be sent."""

BATCH = 10
"""How many messages go into one request to the queue."""

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did.

    The runs it sent, the slots it recorded as skipped, those without a row past their window, a line for what it could
    not read or send, a line for what it left to the next one, and a line for each schedule that is deleted.
    """

    caught_up: tuple[str, ...]
    skipped: tuple[str, ...]
    overdue: tuple[str, ...]
    broken: tuple[str, ...]
    unfinished: tuple[str, ...]
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
    """Bring each due slot without a row to what its schedule's contract says (``catch_up``).

    The schedules that were swept longest ago come first. One that cannot be read stops no other. ``remaining`` tells
    how much time the sweep has; when little is left it ends, and the next one goes on.

    Raises:
        galley.retry.RetryLater: when what was swept cannot be read, or the schedules cannot be listed.
    """
    known = store.swept_schedules()
    marks = {swept.definition.name: swept for swept in known.schedules}
    listed = sorted(schedules.listed(), key=lambda one: (_mark(marks.get(one.name)), one.name))
    doing = _Sweep(schedules, store, queue, now, trace, remaining, broken=list(known.unreadable))
    for place, summary in enumerate(listed):
        if doing.is_out_of_time():
            doing.unfinished.append(f"{len(listed) - place} of {len(listed)} schedules wait for the next sweep")
            break
        try:
            doing.schedule(summary, marks.get(summary.name))
        except ScheduleMissing:
            continue  # deleted since the listing
        except (SchedulesUnavailable, StoreBusy) as error:
            doing.broken.append(f"{summary.name}: {error.detail}")
        except (InvalidSchedule, InvalidTick) as error:
            doing.broken.append(f"{summary.name}: {error}")
    doing.send()
    gone = forget_gone(schedules, store, known.schedules, listed, now=now, is_out_of_time=doing.is_out_of_time)
    doing.broken += gone.broken
    return replace(doing.done(), gone=gone.told)


def _mark(swept: SweptSchedule | None) -> datetime:
    return _NEVER if swept is None else swept.swept_until


@dataclass(slots=True)
class _Sweep:
    """One sweep under way, and what it has done so far."""

    schedules: Schedules
    store: Store
    queue: RunQueue
    now: datetime
    trace: str
    remaining: Callable[[], timedelta]
    outbox: list[RunMessage] = field(default_factory=list)
    caught_up: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    overdue: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)

    def schedule(self, summary: ScheduleSummary, known: SweptSchedule | None) -> None:
        """Sweep one schedule. It is read again only where the listing shows that it changed.

        What it was due for before the change comes first: once the new definition is noted, nobody knows those slots.
        So it is swept by its new one as soon as each of them has its row, at the latest when their grace is over.
        """
        horizon = (self.now - SETTLING).replace(microsecond=0) + timedelta(seconds=1)
        if known is not None and known.definition.modified < summary.modified:
            is_closed = self._closes(known, min(horizon, summary.modified))
            if not is_closed:
                return
        if known is None or known.definition.summary != summary:
            definition = self.schedules.get(summary.arn)
            known = SweptSchedule(definition, max(_mark(known), definition.created, definition.modified))
            self.store.note_swept(known, now=self.now)
        self._advance(known, horizon)

    def _closes(self, swept: SweptSchedule, end: datetime) -> bool:
        """Give the slots before a schedule's change their outcomes; tell whether each has its row now.

        A definition that cannot be read was due at none.
        """
        try:
            return not swept.definition.due(swept.swept_until, end) or self._advance(swept, end) >= end
        except (InvalidSchedule, InvalidTick):
            return True

    def _advance(self, swept: SweptSchedule, end: datetime) -> datetime:
        """Give the slots before ``end`` their outcomes, note up to where each has a row, and return that."""
        until = self._outcomes(swept, end)
        if until > swept.swept_until:
            self.store.note_swept(SweptSchedule(swept.definition, until), now=self.now)
        return until

    def is_out_of_time(self) -> bool:
        """Tell whether nothing new should be begun."""
        return self.remaining() < TIME_TO_FINISH

    def send(self) -> None:
        """Send what waits to be sent. What cannot be sent stays in view of the next sweep: it has no row."""
        messages, self.outbox = self.outbox, []
        unsent: tuple[str, ...] = ()
        try:
            if messages:
                self.queue.send(messages)
        except QueueUnavailable as error:
            self.broken.append(error.detail)
            unsent = error.unsent
        self.caught_up += [run for run in (str(message.key) for message in messages) if run not in unsent]

    def done(self) -> Swept:
        """Return what was done."""
        lines = (self.caught_up, self.skipped, self.overdue, self.broken, self.unfinished)
        return Swept(*map(tuple, lines))

    def _outcomes(self, swept: SweptSchedule, horizon: datetime) -> datetime:
        """Give the slots before the horizon their outcomes; return up to where each of them has a row."""
        definition = swept.definition
        tick = read_tick(definition.input, f"input of schedule {definition.name}")
        due = definition.due(swept.swept_until, horizon)
        if not due:
            return swept.swept_until
        marks = [horizon]
        for drafter in tick.drafters:
            try:
                marks.append(self._drafter(definition, tick, drafter, due, horizon))
            except (StoreBusy, RowsDisagree) as error:
                self.broken.append(f"{definition.name}, {drafter}: {error.detail}")
                marks.append(swept.swept_until)
            except UnreadableRow as error:
                self.broken.append(f"{definition.name}, {drafter}: {error}")
                marks.append(swept.swept_until)
        return min(marks)

    def _drafter(
        self, definition: ScheduleDefinition, tick: Tick, drafter: str, due: tuple[datetime, ...], horizon: datetime
    ) -> datetime:
        """Do for one drafter what ``_outcomes`` does for all."""
        with_row = self.store.slots_with_a_row(drafter, due[0], due[-1])
        if with_row.issuperset(due):
            return horizon
        paused = self.store.drafter(drafter).paused
        decisions = catch_up(tick.contract, due, with_row, now=self.now, paused=paused)
        for decision in decisions:
            message = RunMessage(
                drafter=drafter,
                slot=decision.slot,
                origin=Origin.CATCH_UP,
                contract=tick.contract,
                schedule=definition.arn,
                trace=self.trace,
            )
            match decision:
                case Skip(slot, reason, why):
                    if self.is_out_of_time():
                        self.unfinished.append(f"{definition.name} goes on with {message.key}")
                        return min(slot, swept_until(decisions, horizon))
                    self._skip(message, reason, why)
                case Send():
                    self._ask_for(message)
                    self._see(message)
                case Leave():
                    self._see(message)
                case _:
                    assert_never(decision)
        return swept_until(decisions, horizon)

    def _skip(self, message: RunMessage, reason: SkipReason, why: str) -> None:
        match self.store.skip(message, reason, why, now=self.now):
            case Settled(run):
                tell_outcome(run)
                self.skipped.append(str(message.key))
            case AlreadyThere():
                pass

    def _ask_for(self, message: RunMessage) -> None:
        self.outbox.append(message)
        if len(self.outbox) == BATCH:
            self.send()

    def _see(self, message: RunMessage) -> None:
        """Note a run that has no row though its window is over."""
        if self.now > message.slot + message.contract.window:
            self.overdue.append(str(message.key))
