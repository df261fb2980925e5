"""Finding a schedule among those that are deployed: by its name, or by a drafter that it names."""

from collections.abc import Sequence
from dataclasses import dataclass

from galley.contract import InvalidTick, Tick, read_tick
from galley.schedule import Calendar, InvalidSchedule
from galley.schedules import ScheduleDefinition


class NoSuchSchedule(Exception):
    """None, or more than one, is what was asked for. Its text is one line that names those that are there."""


@dataclass(frozen=True, slots=True)
class Sending:
    """A schedule, when it is due, and what it sends."""

    schedule: ScheduleDefinition
    calendar: Calendar
    tick: Tick


def schedule_named(schedules: Sequence[ScheduleDefinition], name: str) -> Sending:
    """Return the schedule of that name or ARN, what it sends and when.

    Raises:
        NoSuchSchedule: there is none.
        galley.contract.InvalidTick: its input cannot be read.
        galley.schedule.InvalidSchedule: its expression or its timezone cannot be read.
    """
    return _sending(definition_named(schedules, name))


def definition_named(schedules: Sequence[ScheduleDefinition], name: str) -> ScheduleDefinition:
    """Return the schedule of that name or ARN, whether or not its input and its expression can be read.

    Raises:
        NoSuchSchedule: there is none.
    """
    for one in schedules:
        if name in {one.name, one.arn}:
            return one
    raise NoSuchSchedule(f"no schedule is named {name!r}; {_those(schedules)}")


def schedule_of(schedules: Sequence[ScheduleDefinition], drafter: str, name: str | None = None) -> Sending:
    """Return the one schedule that names a drafter; where several do, ``name`` says which.

    Raises:
        NoSuchSchedule: none names the drafter, or the one that was meant does not, or it is not clear which is meant.
        galley.contract.InvalidTick: the input of the one that was meant cannot be read.
        galley.schedule.InvalidSchedule: its expression or its timezone cannot be read.
    """
    if name is not None:
        found = schedule_named(schedules, name)
        if drafter not in found.tick.drafters:
            raise NoSuchSchedule(
                f"schedule {found.schedule.name} does not name drafter {drafter!r}; "
                f"its drafters are: {', '.join(found.tick.drafters)}"
            )
        return found
    naming: list[ScheduleDefinition] = []
    broken: list[str] = []
    for one in schedules:
        try:
            if drafter in _tick(one).drafters:
                naming.append(one)
        except InvalidTick as error:
            broken.append(str(error))
    if len(naming) == 1:
        return _sending(naming[0])
    if naming:
        names = ", ".join(one.name for one in naming)
        raise NoSuchSchedule(f"more than one schedule names drafter {drafter!r}: {names}; say which with --schedule")
    raise NoSuchSchedule("; ".join([f"no schedule names drafter {drafter!r}", _drafters(schedules, drafter), *broken]))


def _sending(schedule: ScheduleDefinition) -> Sending:
    try:
        return Sending(schedule, schedule.calendar(), _tick(schedule))
    except InvalidSchedule as error:
        raise InvalidSchedule(f"schedule {schedule.name}: {error}") from error


def _tick(schedule: ScheduleDefinition) -> Tick:
    return read_tick(schedule.input, f"input of schedule {schedule.name}")


def _drafters(schedules: Sequence[ScheduleDefinition], asked: str) -> str:
    """Say which drafters may be asked for, where what was asked for is none; it may be a schedule's name."""
    named = {one.name: _named(one) for one in schedules}
    if asked in named:
        return f"{asked} is a schedule, and its drafters are: {', '.join(named[asked]) or 'none that can be read'}"
    drafters = sorted({drafter for those in named.values() for drafter in those})
    return f"the drafters that are scheduled are: {', '.join(drafters)}" if drafters else _those(schedules)


def _named(schedule: ScheduleDefinition) -> tuple[str, ...]:
    try:
        return _tick(schedule).drafters
    except InvalidTick:
        return ()


def _those(schedules: Sequence[ScheduleDefinition]) -> str:
    if not schedules:
        return "none is deployed (on one machine 'galley run' deploys those of template.yaml when it starts)"
    return f"the schedules are: {', '.join(one.name for one in schedules)}"
