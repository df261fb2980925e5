"""monitor: an alert when something goes wrong, a notice when that is over, and nothing in between."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Literal, assert_never

from pydantic import Field

from drafter_file.monitor import HealthSource, MonitorSettings
from galley.instants import format_instant, to_the_second
from galley.retry import NeverSucceeds, RetryLater
from galley.store import Cursor
from galley.texts import counted
from shapes.monitor.alarms import (
    TOLD,
    Bad,
    Finding,
    Good,
    Look,
    NoData,
    Policy,
    Standing,
    State,
    Streak,
    Told,
    What,
    decide,
    is_open,
)
from shapes.monitor.news import Concern, Heard, Looked, figures_of, item_of, quiet_line
from shapes.shape import Assignment, Material
from sources.collected import CursorState, Instant, read_cursor
from sources.health import Down, Health, Unseen, Up, address_of, check

THE_SAME_LOOK = timedelta(seconds=30)
"""Looks that are no further apart say the same twice: as when several late slots are drafted one after the other."""

LATE = timedelta(minutes=15)
"""From when on a draft warns that it tells of another time than its slot's."""


def collect(assignment: Assignment) -> Material:
    """Look at every source at once and return what is news: one item for each alert or notice.

    How things stand is kept in the cursors, and they move with the draft: an alert that was not stored (the model
    failed, the place was lost) is not announced, and the next run drafts it. What is looked at is the present, whatever
    the slot: items and instants say when that was. A draft replaces the undecided ones of which everything that they
    told is told anew.

    Raises:
        NeverSucceeds: ``invalid_address``, when a source's own address is at fault; ``invalid_cursor``.
    """
    sources = [source for source in assignment.drafter.sources if isinstance(source, HealthSource)]
    settings = assignment.drafter.monitor or MonitorSettings()
    stored = assignment.cursors()
    before = [_watched(stored.get(source.id), source) for source in sources]
    look = Look(at=to_the_second(assignment.looked_at), slot=assignment.slot)
    found = _check_all(sources, assignment)
    slots = _PreviousSlot(assignment)
    looks = [
        _judge(source, watched, health, look, settings, slots, assignment.desk_url)
        for source, watched, health in zip(sources, before, found, strict=True)
    ]
    cursors = {looked.source.id: _cursor(looked.alarms, looked.at) for looked in looks}
    told = [(looked, heard) for looked in looks for heard in looked.heard if heard.news in TOLD]
    if not told:
        return Material(cursors=cursors, nothing_new="; ".join(quiet_line(looked) for looked in looks))
    return Material(
        items=tuple(item_of(f"h{place}", *one, look.at) for place, one in enumerate(told, start=1)),
        figures=figures_of(looks),
        warnings=(*_lateness(look), *slots.warnings),
        cursors=cursors,
        supersedes=_told_anew(before, looks),
        urgent=True,
        expire_hours=settings.alert_expire_hours,
    )


@dataclass(frozen=True, slots=True)
class _Watched:
    """How a source stood after the last look, and when that was, if it is known (in UTC)."""

    at: datetime | None
    alarms: Mapping[Concern, Standing]


@dataclass(slots=True)
class _PreviousSlot:
    """When the slot before this one was, asked of the schedule only where it matters."""

    assignment: Assignment
    warnings: list[str] = field(default_factory=list)
    asked: bool = False
    start: datetime | None = None

    def is_after(self, moment: datetime) -> bool:
        """Tell whether a slot was due between a moment and this slot; not, where the schedule cannot be had."""
        if not self.asked:
            self.asked = True
            try:
                self.start = self.assignment.window().start
            except (NeverSucceeds, RetryLater) as error:
                self.warnings.append(f"whether a look was missed cannot be told, the schedule cannot be had: {error}")
        return self.start is not None and moment < self.start


def _check_all(sources: Sequence[HealthSource], assignment: Assignment) -> list[Health]:
    """Look at all sources beside each other, so that the slowest one's time limit bounds them all."""
    with ThreadPoolExecutor(max_workers=len(sources), thread_name_prefix="health") as pool:
        return list(pool.map(partial(check, fetch=assignment.fetch, desk_url=assignment.desk_url), sources))


def _judge(
    source: HealthSource,
    watched: _Watched,
    found: Health,
    look: Look,
    settings: MonitorSettings,
    slots: _PreviousSlot,
    desk_url: str,
) -> Looked:
    """Return what a look at a source means to each of its alarms."""
    address = address_of(source, desk_url)
    if watched.at is not None and abs(look.at - watched.at) < THE_SAME_LOOK:
        return Looked(source, address, found, watched.at, (), watched.alarms)
    policy = _policy(source, settings)
    heard = [
        _hear(concern, finding, watched, look, policy, slots) for concern, finding in _findings(source, found, look.at)
    ]
    return Looked(source, address, found, look.at, heard, {one.concern: one.now for one in heard})


def _hear(
    concern: Concern, finding: Finding, watched: _Watched, look: Look, policy: Policy, slots: _PreviousSlot
) -> Heard:
    before = known = watched.alarms.get(concern)
    missed = None
    if known is not None and watched.at is not None and is_open(known) and slots.is_after(watched.at):
        missed = watched.at
        _, known = decide(known, NoData("a look was missed"), look, policy)
    news, now = decide(known, finding, look, policy)
    return Heard(concern, finding, news, before, now, policy, missed)


def _policy(source: HealthSource, settings: MonitorSettings) -> Policy:
    return Policy(
        failures=source.failures,
        successes=source.successes,
        flapping=settings.flapping,
        flapping_within=timedelta(hours=settings.flapping_hours),
        remind=timedelta(hours=settings.remind_hours) if settings.remind_hours else None,
    )


def _findings(source: HealthSource, found: Health, at: datetime) -> Iterator[tuple[Concern, Finding]]:
    """Yield what a look says of everything that the source is to be watched for."""
    match found:
        case Up(status, milliseconds):
            answer = f"it answered {status} in {milliseconds} ms"
            yield Concern.ANSWER, Good(answer)
            yield Concern.SIGHT, Good(answer)
            if source.slow_milliseconds is not None:
                limit = f"{answer}, and more than {source.slow_milliseconds} ms are slow"
                yield Concern.SPEED, Bad(limit) if milliseconds > source.slow_milliseconds else Good(answer)
        case Down(why, _, milliseconds):
            yield Concern.ANSWER, Bad(f"{why}, after {milliseconds} ms")
            yield Concern.SIGHT, Good(f"{why}, after {milliseconds} ms")
            if source.slow_milliseconds is not None:
                yield Concern.SPEED, NoData(why)
        case Unseen(why):
            yield Concern.ANSWER, NoData(why)
            yield Concern.SIGHT, Bad(f"this machine's own network failed, or so it seems: {why}")
            if source.slow_milliseconds is not None:
                yield Concern.SPEED, NoData(why)
        case _:
            assert_never(found)
    if source.certificate_days is not None:
        yield Concern.CERTIFICATE, _certificate(found, source.certificate_days, at)


def _certificate(found: Health, enough_days: int, at: datetime) -> Finding:
    ends = None if isinstance(found, Unseen) else found.certificate_ends
    if ends is None:
        return NoData("no valid certificate was seen")
    left = ends - at
    words = f"its certificate ends {format_instant(ends)}, in {counted(left.days, 'day', 'days')}"
    return Bad(words) if left < timedelta(days=enough_days) else Good(words)


def _lateness(look: Look) -> Iterator[str]:
    late = look.at - look.slot
    if late > LATE:
        minutes = counted(int(late.total_seconds() // 60), "minute", "minutes")
        yield f"it was looked at {minutes} after the slot: this tells of {format_instant(look.at)}, not of the slot"


def _told_anew(before: Sequence[_Watched], looks: Sequence[Looked]) -> tuple[datetime, ...]:
    """Return the slots of the runs whose drafts told nothing but what this one tells anew: it is so no more, or still.

    A draft may have told of several alarms. It is replaced once the last of them has been told anew.
    """
    had = {alarm.told.slot for watched in before for alarm in watched.alarms.values() if alarm.told is not None}
    have = {alarm.told.slot for looked in looks for alarm in looked.alarms.values() if alarm.told is not None}
    return tuple(sorted(had - have))


class _StreakState(CursorState):
    says: Literal[State.GOOD, State.BAD]
    looks: int = Field(ge=1)
    began: Instant


class _ToldState(CursorState):
    what: What
    slot: Instant
    at: Instant
    since: Instant


class _AlarmState(CursorState):
    state: State
    since: Instant
    streak: _StreakState | None = None
    told: _ToldState | None = None
    troubles: tuple[Instant, ...] = ()


class _WatchedState(CursorState):
    looked_at: Instant
    alarms: dict[Concern, _AlarmState]


class _UpOrDown(CursorState):
    """The cursor of a source that was looked at before alarms were kept: its instants are slots."""

    state: Literal["up", "down"]
    since: Instant
    announced: bool


def _watched(cursor: Cursor | None, source: HealthSource) -> _Watched:
    if cursor is None:
        return _Watched(None, {})
    name = f"the health of {source.id!r}"
    if "state" in cursor:
        return _Watched(None, {Concern.ANSWER: _from_up_or_down(read_cursor(_UpOrDown, cursor, name))})
    state = read_cursor(_WatchedState, cursor, name)
    return _Watched(state.looked_at, {concern: _standing(alarm) for concern, alarm in state.alarms.items()})


def _from_up_or_down(known: _UpOrDown) -> Standing:
    since = known.since
    if known.state == "up":
        return Standing(State.GOOD, since)
    return Standing(State.BAD, since, told=Told(What.TROUBLE, since, since, since) if known.announced else None)


def _standing(alarm: _AlarmState) -> Standing:
    streak, told = alarm.streak, alarm.told
    return Standing(
        state=alarm.state,
        since=alarm.since,
        streak=Streak(streak.says, streak.looks, streak.began) if streak is not None else None,
        told=Told(told.what, told.slot, told.at, told.since) if told is not None else None,
        troubles=alarm.troubles,
    )


def _cursor(alarms: Mapping[Concern, Standing], looked_at: datetime) -> Cursor:
    states = {
        concern: _AlarmState(
            state=alarm.state,
            since=alarm.since,
            streak=alarm.streak and _StreakState.model_validate(alarm.streak, from_attributes=True),
            told=alarm.told and _ToldState.model_validate(alarm.told, from_attributes=True),
            troubles=alarm.troubles,
        )
        for concern, alarm in alarms.items()
    }
    return _WatchedState(looked_at=looked_at, alarms=states).model_dump(mode="json", exclude_defaults=True)
