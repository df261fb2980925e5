"""What the system on one machine begins with."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine

from galley.runs import Origin
from galley_cli.checkout import CheckoutMissing, find_checkout, put_on_path
from galley_cli.inspection import inspect
from galley_cli.local.deployment import deploy
from galley_cli.local.pool import Invocation, LambdaPool, Returned
from galley_cli.local.running import AFTER_A_TICK, FIRST_SWEEP, Running, latest_due_runs
from galley_cli.local.state import StateDirectory
from galley_cli.template import TemplateSchedules, read_template
from support.outside import ROOT, schedule
from support.real_system import galley

NOW = datetime(2026, 11, 29, 18, 30, tzinfo=UTC)
CONTRACT = {"window_minutes": 30, "grace_minutes": 120, "catch_up": "latest"}


def test_the_latest_due_slot_of_each_enabled_schedule_is_backfilled_for_each_of_its_drafters() -> None:
    schedules = TemplateSchedules(
        [
            schedule("Daily", input=json.dumps({"drafters": ["a", "b"], **CONTRACT})),
            schedule("Weekly", expression="cron(0 8 ? * MON *)", timezone="America/New_York"),
            schedule("Off", enabled=False),
            schedule("Later", start=NOW + timedelta(days=1)),
        ]
    )
    runs = latest_due_runs(schedules, NOW)
    assert [str(run.key) for run in runs] == [
        "a:2026-11-29T06:00:00Z",
        "b:2026-11-29T06:00:00Z",
        "daily-digest:2026-11-23T13:00:00Z",
    ]
    assert {run.origin for run in runs} == {Origin.BACKFILL}, "however old the slot is, it is drafted"
    assert [run.schedule for run in runs] == [schedules.all()[0].arn, schedules.all()[0].arn, schedules.all()[3].arn]


def test_a_sweep_follows_the_start_each_tick_and_its_own_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = NOW
    sweeps = []

    def invoke(pool: LambdaPool, function: str, event: object) -> Invocation:
        sweeps.append((function, time - NOW))
        return Returned({})

    monkeypatch.setattr(LambdaPool, "invoke", invoke)
    with time_machine.travel(NOW, tick=False):
        state = StateDirectory.open(tmp_path / "state")
    template = read_template(ROOT / "template.yaml")
    running = Running(find_checkout(), template, state, port=0, report=print, tell=lambda *_: None, now=lambda: time)
    clock = running._clock(deploy(state.root, template.schedules, NOW), NOW)
    while time < NOW + timedelta(minutes=46):
        clock.step()
        running._sweeps.step()
        time += timedelta(seconds=20)
    state.close()

    hour = timedelta(minutes=30)  # the hourly schedule's tick
    assert sweeps == [
        ("recover", FIRST_SWEEP),
        ("recover", timedelta(minutes=15)),
        ("recover", hour),
        ("recover", hour + AFTER_A_TICK),
        ("recover", timedelta(minutes=45)),
    ]


def test_the_project_is_found_from_anywhere_and_its_code_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    checkout = find_checkout()
    assert checkout.root == ROOT
    put_on_path(checkout)
    import drafter

    assert checkout.drafters == drafter.DRAFTERS


def test_where_there_is_no_project_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("galley_cli.checkout.__file__", str(tmp_path / "site" / "galley_cli" / "checkout.py"))
    with pytest.raises(CheckoutMissing, match=r"no template\.yaml"):
        find_checkout(tmp_path)


def test_the_projects_own_files_have_no_problems() -> None:
    inspection = inspect(find_checkout())
    assert inspection.problems == ()
    assert len(inspection.drafters) >= 4


@pytest.mark.parametrize(
    ("text", "told"), [("def handler(:\n", "SyntaxError"), (None, "No module named 'draft'"), ("", "handler")]
)
def test_a_function_that_cannot_be_imported_is_told_at_once_and_once_ends(
    tmp_path: Path, text: str | None, told: str
) -> None:
    copy = tmp_path / "project"
    for part in ("cli", "functions", "layers"):
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "template.yaml", copy)
    code = copy / "functions" / "draft" / "draft.py"
    if text is None:
        code.unlink()
    else:
        code.write_text(text, encoding="utf-8")
    ran = galley("run", "--once", "--state", str(tmp_path / "state"), root=copy, timeout=30)
    assert ran.returncode == 1
    failures = [line for line in ran.stderr.splitlines() if "draft failed on a message of daily-digest" in line]
    assert len(failures) == 1
    assert told in failures[0]
    assert "Traceback" not in ran.stdout + ran.stderr
