"""What is deployed on one machine: the schedules as they were when the system started, and since when.

Starting the system deploys template.yaml. Until the next start an edit of the file changes nothing that runs, and a
schedule keeps the instants of its creation and of its last real change, as in EventBridge Scheduler: the sweep looks
at no slot from before them.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from galley.instants import format_instant, parse_instant, to_the_second
from galley.schedules import ScheduleDefinition
from galley_cli.local.state import write_whole
from galley_cli.template import TemplateSchedule, TemplateSchedules

FILE = "schedules.json"

_INSTANTS = ("created", "modified", "start", "end")


def deploy(state: Path, schedules: Iterable[TemplateSchedule], now: datetime) -> TemplateSchedules:
    """Write the schedules down in the state directory and return them.

    One that was not there is created now; one that differs from what was there is changed now.
    """
    now = to_the_second(now)
    before = {definition.name: definition for definition in deployed(state).all()}
    definitions = [_since(before.get(schedule.name), schedule.definition(now, now)) for schedule in schedules]
    text = json.dumps([_as_json(definition) for definition in definitions], indent=1)
    write_whole(state / FILE, text)
    return TemplateSchedules(definitions)


def deployed(state: Path) -> TemplateSchedules:
    """Return the schedules that ``deploy`` wrote down last; none where it never did."""
    try:
        found = json.loads((state / FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return TemplateSchedules([])
    return TemplateSchedules([_from_json(one) for one in found])


def _since(before: ScheduleDefinition | None, now: ScheduleDefinition) -> ScheduleDefinition:
    if before is None:
        return now
    kept = replace(now, created=before.created, modified=before.modified)
    return kept if kept == before else replace(now, created=before.created)


def _as_json(definition: ScheduleDefinition) -> dict[str, Any]:
    fields = asdict(definition)
    return fields | {name: fields[name] and format_instant(fields[name]) for name in _INSTANTS}


def _from_json(fields: Mapping[str, Any]) -> ScheduleDefinition:
    instants = {name: fields[name] and parse_instant(fields[name]) for name in _INSTANTS}
    return ScheduleDefinition(**{**fields, **instants})
