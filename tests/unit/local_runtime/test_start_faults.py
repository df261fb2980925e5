"""Faults that users of other schedulers met when they started again with a changed schedule, each with its report."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from galley.instants import parse_instant
from galley.runs import RunKey
from galley_cli.local.deployment import deploy, deployed
from galley_cli.local.running import is_from_before_a_change, latest_due_runs
from galley_cli.template import TemplateSchedule, TemplateSchedules
from support.outside import schedule

DAY = timedelta(days=1)
MONDAY = parse_instant("2026-06-08T07:00:00Z")
NIGHTLY = TemplateSchedule(
    name="Nightly",
    function="dispatch",
    expression="cron(15 1 * * ? *)",
    timezone="UTC",
    input=schedule().input,
    enabled=True,
    start=None,
    end=None,
    retry_age=timedelta(hours=1),
)


def asked_for(schedules: TemplateSchedules, now: object = MONDAY) -> list[str]:
    """Return the runs that a start asks for whose slots have come since their schedule's last change."""
    runs = latest_due_runs(schedules, now)  # type: ignore[arg-type]
    return [str(run.key) for run in runs if not is_from_before_a_change(run, schedules)]


def test_a_start_with_a_moved_schedule_asks_for_no_slot_from_before_the_move(tmp_path: Path) -> None:
    """https://github.com/dagster-io/dagster/issues/13329

    A new expression was given the slots that it would have had before, and the latest of them was run at once.
    """
    first = deploy(tmp_path, [NIGHTLY], MONDAY)
    assert asked_for(first) == [str(RunKey("daily-digest", MONDAY.replace(hour=1, minute=15)))], "to have something"
    moved = deploy(tmp_path, [replace(NIGHTLY, expression="cron(15 2 * * ? *)")], MONDAY + DAY)
    assert asked_for(moved, MONDAY + DAY) == []
    again = deploy(tmp_path, [replace(NIGHTLY, expression="cron(15 2 * * ? *)")], MONDAY + DAY + timedelta(hours=1))
    assert asked_for(again, MONDAY + DAY + timedelta(hours=1)) == []
    assert asked_for(again, MONDAY + 2 * DAY) == ["daily-digest:2026-06-10T02:15:00Z"]


def test_a_start_with_a_schedule_that_is_enabled_again_asks_for_none_of_the_days_between(tmp_path: Path) -> None:
    """https://github.com/dagster-io/dagster/issues/7010

    A schedule that was turned on again ran for all the days that it had been off.
    """
    deploy(tmp_path, [NIGHTLY], MONDAY)
    deploy(tmp_path, [replace(NIGHTLY, enabled=False)], MONDAY)
    enabled = deploy(tmp_path, [NIGHTLY], MONDAY + 10 * DAY)
    assert asked_for(enabled, MONDAY + 10 * DAY) == []


@pytest.mark.parametrize("changed", [{}, {"expression": "cron(30 1 * * ? *)"}])
def test_a_start_with_a_renamed_schedule_leaves_one_for_each_drafter(tmp_path: Path, changed: dict[str, str]) -> None:
    """https://github.com/langchain-ai/managed-deepagents/issues/1

    Each deployment added a second, identical schedule, and the old ones went on.
    """
    deploy(tmp_path, [NIGHTLY], MONDAY)
    for _ in range(2):
        deploy(tmp_path, [replace(NIGHTLY, name="EveryNight", **changed)], MONDAY + DAY)
    (one,) = deployed(tmp_path).all()
    assert (one.name, json.loads(one.input)["drafters"]) == ("EveryNight", ["daily-digest"])
