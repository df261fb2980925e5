"""What the commands know of schedules: those of a deployed stack, or those of template.yaml."""

from collections.abc import Sequence
from datetime import datetime

from galley.contract import InvalidTick, read_tick
from galley.instants import utc_now
from galley.schedules import ScheduleDefinition
from galley_cli.checkout import find_checkout, put_on_path
from galley_cli.commands.common import Operating


def definitions(operating: Operating) -> tuple[tuple[ScheduleDefinition, ...], tuple[str, ...]]:
    """Return the schedules that can be read, and a line for each that cannot."""
    if operating.stack is not None:
        return operating.open().schedules.all(), ()
    from galley_cli.template import read_template

    template = read_template(find_checkout().template)
    created = _created(operating)
    return tuple(schedule.definition(created, created) for schedule in template.schedules), template.problems


def drafters_of(schedules: Sequence[ScheduleDefinition]) -> tuple[str, ...]:
    """Return the drafters that the schedules name, in order; those of an unreadable input are left out."""
    named: set[str] = set()
    for schedule in schedules:
        try:
            named.update(read_tick(schedule.input).drafters)
        except InvalidTick:
            continue
    return tuple(sorted(named))


def known_drafters(operating: Operating) -> tuple[str, ...]:
    """Return every drafter that the system may have runs of: those that have a file, and those that are scheduled."""
    scheduled = drafters_of(definitions(operating)[0])
    if operating.stack is not None:
        return scheduled
    checkout = find_checkout()
    put_on_path(checkout)
    from drafter import drafter_names

    return tuple(sorted({*scheduled, *drafter_names(checkout.drafters)}))


def _created(operating: Operating) -> datetime:
    from galley_cli.local.state import StateDirectory, StateError

    try:
        return StateDirectory.open_existing(operating.state).created
    except StateError:
        return utc_now()
