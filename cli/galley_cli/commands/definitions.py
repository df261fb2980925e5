"""What the commands know of schedules: those of a deployed stack, or those of template.yaml."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from galley.contract import InvalidTick, read_tick
from galley.instants import utc_now
from galley.schedules import ScheduleDefinition
from galley_cli.checkout import find_checkout, put_on_path
from galley_cli.commands.common import Operating, Refused
from galley_cli.silences import Silences, silences

if TYPE_CHECKING:
    from galley_cli.template import TemplateSchedule


@dataclass(frozen=True, slots=True)
class Definitions:
    """The schedules that can be read, a line for each that cannot, and the instant by the system's clock."""

    schedules: tuple[ScheduleDefinition, ...]
    problems: tuple[str, ...]
    now: datetime


def definitions(operating: Operating) -> Definitions:
    """Return what the stack deployed, or what template.yaml says."""
    if operating.stack is not None:
        opened = operating.open()
        return Definitions(opened.schedules.all(), (), opened.now())
    from galley_cli.template import read_template

    template = read_template(find_checkout().template)
    now = utc_now()
    created = _created(operating, now)
    schedules = tuple(schedule.definition(created, created) for schedule in template.schedules)
    return Definitions(schedules, template.problems, now)


def changed_since_start(operating: Operating) -> tuple[ScheduleDefinition, ...]:
    """Return the schedules that the system on this machine adds, changes or drops when it starts again.

    Empty where nothing has run yet, and for a stack, of which template.yaml says nothing.
    """
    if operating.stack is not None:
        return ()
    from galley_cli.local.deployment import deployed
    from galley_cli.local.state import StateDirectory, StateError
    from galley_cli.template import read_template

    try:
        root = StateDirectory.open_existing(operating.state).root
    except StateError:
        return ()
    running = {one.name: one for one in deployed(root).all()}
    written = {one.name: one for one in read_template(find_checkout().template).schedules}
    now = utc_now()
    return (
        *(one.definition(now, now) for one in written.values() if not _runs_as_written(running.get(one.name), one)),
        *(one for one in running.values() if one.name not in written),
    )


def _runs_as_written(running: ScheduleDefinition | None, written: "TemplateSchedule") -> bool:
    return running is not None and running == written.definition(running.created, running.modified)


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
    scheduled = drafters_of(definitions(operating).schedules)
    checkout = find_checkout()
    put_on_path(checkout)
    from drafter import drafter_names

    return tuple(sorted({*scheduled, *drafter_names(checkout.drafters)}))


def refuse_unknown(drafter: str, known: Sequence[str]) -> None:
    """Refuse a drafter that the system may have no runs of.

    Raises:
        Refused: with one line that names those it may have runs of.
    """
    if drafter not in known:
        raise Refused(
            f"drafter {drafter!r} neither has a file nor is scheduled; the drafters are: {', '.join(known) or 'none'}"
        )


def known_silences(operating: Operating) -> Silences:
    """Return which drafters the sweep found silent; none where nothing has run yet on this machine."""
    from galley_cli.local.state import StateError

    try:
        return silences(operating.open().store)
    except StateError:
        return {}


def _created(operating: Operating, now: datetime) -> datetime:
    """Return since when schedules count on this machine: from now on where nothing has run yet."""
    from galley_cli.local.state import StateDirectory, StateError

    try:
        return StateDirectory.open_existing(operating.state).created
    except StateError:
        return now
