"""Looks through the project's own files, so that a mistake is told before it costs a run."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from galley.contract import InvalidTick, read_tick
from galley.instants import utc_now
from galley.money import usd
from galley.schedule import InvalidSchedule
from galley.schedules import ScheduleDefinition
from galley_cli.checkout import Checkout, put_on_path
from galley_cli.template import Template, read_template

if TYPE_CHECKING:
    from drafter import Drafter


LOOKED_AHEAD = timedelta(days=366)
"""How far ahead a schedule is checked for days without its slot: every change of the clocks lies within it once."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The template with its schedules, the good drafters, and a line for everything that is wrong.

    ``names`` are those of all drafters that have a file, good or not. ``notes`` are lines on what may well be meant.
    """

    template: Template
    schedules: tuple[ScheduleDefinition, ...]
    drafters: tuple["Drafter", ...]
    names: frozenset[str]
    problems: tuple[str, ...]
    notes: tuple[str, ...]


def inspect(checkout: Checkout) -> Inspection:
    """Read the template and every drafter's file; what is broken is a line of ``problems`` and stops nothing else.

    Raises:
        galley_cli.template.InvalidTemplate: when nothing at all could run from the template.
    """
    template = read_template(checkout.template)
    drafters, broken = _read_drafters(checkout)
    names = frozenset({*(drafter.name for drafter in drafters), *broken})
    now = utc_now()
    schedules = tuple(schedule.definition(now, now) for schedule in template.schedules)
    wrong = schedule_problems(schedules, names, lambda name: f"{template.path}: DispatchFunction.Events.{name}")
    problems = (*template.problems, *broken.values(), *wrong)
    # What a broken schedule names is not known.
    idle = () if template.problems else unscheduled(schedules, names)
    notes = (*idle, *schedule_notes(schedules, now), *budget_notes(drafters, now))
    return Inspection(template, schedules, drafters, names, problems, notes)


def unscheduled(schedules: Iterable[ScheduleDefinition], drafters: Iterable[str]) -> Iterator[str]:
    """Yield a line for each drafter that no schedule names."""
    named: set[str] = set()
    for schedule in schedules:
        with suppress(InvalidTick):
            named.update(read_tick(schedule.input, "Input").drafters)
    for name in sorted(set(drafters) - named):
        yield f"drafter {name!r} is named by no schedule, so it never drafts by itself"


def watched_for_silence(schedules: Iterable[ScheduleDefinition]) -> dict[str, int]:
    """Return after how many due slots without a draft a schedule's drafters are silent, where that is watched."""
    watched: dict[str, int] = {}
    for schedule in schedules:
        with suppress(InvalidTick):
            slots = read_tick(schedule.input, "Input").silence_slots
            watched |= {} if slots is None else {schedule.name: slots}
    return watched


def schedule_notes(schedules: Iterable[ScheduleDefinition], now: datetime) -> Iterator[str]:
    """Yield a line for what may not be meant by good schedules, within a year from now."""
    for schedule in schedules:
        with suppress(InvalidSchedule):
            for line in schedule.calendar().warnings(now, now + LOOKED_AHEAD):
                yield f"schedule {schedule.name}: {line}"


def budget_notes(drafters: Iterable["Drafter"], now: datetime) -> Iterator[str]:
    """Yield a line for each good drafter whose daily budget does not hold the worst cost of one call."""
    from prices import BEDROCK_PERCENT, US_PERCENT, worst_cost

    dearest = max(BEDROCK_PERCENT, US_PERCENT)
    for drafter in drafters:
        worst = worst_cost(drafter.model, drafter.max_input_tokens, drafter.max_output_tokens, now.date(), dearest)
        if drafter.daily_budget_nanousd is not None and drafter.daily_budget_nanousd < worst:
            yield (
                f"drafter {drafter.name!r}: one call of {drafter.model} may cost {usd(worst)}, more than its "
                f"daily_budget_usd = {drafter.daily_budget_usd}, so all its slots would be skipped"
            )


def _read_drafters(checkout: Checkout) -> tuple[tuple["Drafter", ...], dict[str, str]]:
    put_on_path(checkout)
    from drafter import InvalidDrafter, drafter_names, read_drafter

    good: list[Drafter] = []
    broken: dict[str, str] = {}
    for name in drafter_names(checkout.drafters):
        try:
            good.append(read_drafter(checkout.drafters / f"{name}.toml"))
        except InvalidDrafter as error:
            broken[name] = str(error)
    return tuple(good), broken


def schedule_problems(
    schedules: Iterable[ScheduleDefinition], drafters: Collection[str], place: Callable[[str], str]
) -> Iterator[str]:
    """Yield a line for everything that is wrong with schedules, in the template or deployed.

    ``drafters`` are those that have a file, and ``place`` says where a schedule of that name stands.
    """
    for schedule in schedules:
        try:
            tick = read_tick(schedule.input, "Input")
            schedule.calendar()
        except (InvalidTick, InvalidSchedule) as error:
            yield f"{place(schedule.name)}: {error}"
            continue
        for name in tick.drafters:
            if name not in drafters:
                yield (
                    f"{place(schedule.name)}: Input names drafter {name!r}, which has no file; "
                    f"the drafters are: {', '.join(sorted(drafters)) or 'none'}"
                )
