"""``galley run`` as a person starts it: a real process, the project's own template, drafters and sample material."""

import json
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from galley.instants import utc_now
from galley.runs import Run
from galley_cli.local.deployment import deploy
from galley_cli.local.state import SCHEMA_VERSION, StateDirectory
from galley_cli.local.store import SqliteStore
from galley_cli.template import read_template
from support.real_system import ROOT, RunningGalley, environment, galley, wait_for_no_process

SLOW_HANDLER = """

_quick = handler


def handler(event, context):
    import time

    print("begins slowly", flush=True)
    time.sleep(1.5)
    return _quick(event, context)
"""

DRAFTERS = {"daily-digest", "hourly-monitor", "nightly-sync", "weekly-report"}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def copy_of_the_project(folder: Path) -> Path:
    copy = folder / "project"
    for part in ("cli", "functions", "layers"):
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "template.yaml", copy)
    return copy


def test_once_gives_each_drafter_an_outcome_and_a_second_time_drafts_nothing_anew(state: Path) -> None:
    first = galley("run", "--once", "--state", str(state), "--json")
    assert first.returncode == 0, first.stderr
    runs = json.loads(first.stdout)["runs"]
    assert {run["drafter"] for run in runs} == DRAFTERS
    assert {run["status"] for run in runs} <= {"pending", "empty"}
    assert {run["status"] for run in runs if run["drafter"] == "daily-digest"} == {"pending"}
    assert all(run["model"] == "offline" and run["title"] for run in runs if run["status"] == "pending")

    invoked = (state / "logs" / "draft.log").read_text(encoding="utf-8").count("REPORT")
    second = galley("run", "--once", "--state", str(state), "--json")
    assert second.returncode == 0, second.stderr
    again = json.loads(second.stdout)["runs"]
    if [run["run"] for run in again] == [run["run"] for run in runs]:  # unless an hour has passed between the two
        assert again == runs
        assert (state / "logs" / "draft.log").read_text(encoding="utf-8").count("REPORT") == invoked
    assert wait_for_no_process(state) == []


def test_once_prints_a_table_for_people(state: Path) -> None:
    printed = galley("run", "--once", "--state", str(state))
    assert printed.returncode == 0, printed.stderr
    for drafter in DRAFTERS:
        assert f"{drafter}:" in printed.stdout


def test_what_is_broken_is_named_and_everything_else_is_drafted(tmp_path: Path, state: Path) -> None:
    copy = copy_of_the_project(tmp_path)
    template = (ROOT / "template.yaml").read_text(encoding="utf-8").replace("Australia/Sydney", "Australia/Sidney")
    (copy / "template.yaml").write_text(template, encoding="utf-8")
    digest = copy / "functions" / "draft" / "drafters" / "daily-digest.toml"
    digest.write_text(f"wake_up = true\n{digest.read_text(encoding='utf-8')}", encoding="utf-8")
    ran = galley("run", "--once", "--state", str(state), "--json", root=copy)
    assert ran.returncode == 0
    lines = ran.stderr.splitlines()
    assert [f"galley: {problem}" for problem in json.loads(ran.stdout)["problems"]] == lines
    assert len(lines) == 2
    assert any("NightlySync" in line and "'Australia/Sidney'" in line for line in lines)
    assert any("daily-digest.toml" in line and "wake_up" in line for line in lines)
    runs = {run["drafter"]: run for run in json.loads(ran.stdout)["runs"]}
    assert runs.keys() == DRAFTERS - {"nightly-sync"}
    assert runs["weekly-report"]["status"] == "pending"
    assert runs["daily-digest"]["status"] == "failed"
    assert "wake_up" in runs["daily-digest"]["detail"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_drafts_at_once_tells_each_outcome_and_stops_cleanly(state: Path, number: int) -> None:
    running = RunningGalley(state)
    running.wait_until_it_runs()
    assert running.wait_for(lambda lines: {line.get("drafter") for line in lines[1:]} == DRAFTERS), running.errors
    assert running.stop(number) == 0
    assert running.errors == ""
    assert wait_for_no_process(state) == []


@pytest.mark.timeout(100)
def test_two_signals_close_together_always_end_it(state: Path) -> None:
    for _ in range(6):
        running = RunningGalley(state)
        running.wait_until_it_runs()
        running.process.send_signal(signal.SIGINT)
        assert running.stop(signal.SIGTERM, seconds=10) in (0, 128 + signal.SIGTERM)
    assert wait_for_no_process(state) == []


def test_drafts_under_way_finish_after_a_stop_with_the_desk_up_and_are_told(tmp_path: Path, state: Path) -> None:
    copy = copy_of_the_project(tmp_path)
    with (copy / "functions" / "draft" / "draft.py").open("a", encoding="utf-8") as code:
        code.write(SLOW_HANDLER)
    running = RunningGalley(state, PYTHONPATH=f"{copy / 'cli'}:{copy / 'layers' / 'galley'}")
    running.wait_until_it_runs()
    log = state / "logs" / "draft.log"
    deadline = time.monotonic() + 20
    while (log.read_text(encoding="utf-8") if log.exists() else "").count("begins slowly") < len(DRAFTERS):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert running.stop() == 0
    assert running.wait_for(lambda lines: {line.get("drafter") for line in lines[1:]} == DRAFTERS), running.lines
    told = {line["drafter"]: line["status"] for line in running.lines[1:]}
    assert told["daily-digest"] == "pending"
    assert told["hourly-monitor"] == "empty", "the desk was up until the monitor had looked at it"
    assert running.errors == ""


def test_another_address_is_given_without_a_stop(state: Path) -> None:
    running = RunningGalley(state)
    first = running.wait_until_it_runs()
    running.process.send_signal(signal.SIGUSR1)
    assert running.wait_for(lambda lines: sum("desk" in line for line in lines) == 2)
    second = next(line["desk"] for line in running.lines[1:] if "desk" in line)
    assert running.stop() == 0
    assert second.partition("token=")[0] == first.partition("token=")[0]
    assert second != first


def test_once_publishes_what_was_approved_before_it_prints(state: Path) -> None:
    first = galley("run", "--once", "--state", str(state), "--json")
    run = next(one["run"] for one in json.loads(first.stdout)["runs"] if one["status"] == "pending")
    assert galley("drafts", "approve", run, "--yes", "--state", str(state)).returncode == 0
    second = galley("run", "--once", "--state", str(state), "--json")
    assert second.returncode == 0, second.stderr
    assert {one["run"]: one["status"] for one in json.loads(second.stdout)["runs"]}[run] == "published"


def test_a_start_with_nothing_to_draft_says_what_is_due_next(state: Path) -> None:
    galley("run", "--once", "--state", str(state))
    code = (
        "import os, signal, sys, threading; from galley_cli.main import invoke; "
        "threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start(); sys.exit(invoke(sys.argv[1:]))"
    )
    ran = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code, "run", "--port", "0", "--state", str(state)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "are taken up at the next start" in ran.stdout
    assert "Nothing is due until " in ran.stdout
    assert "(HourlyMonitor)." in ran.stdout


def test_a_start_drafts_no_slot_from_before_its_schedule_was_moved(state: Path) -> None:
    StateDirectory.open(state).close()
    schedules = read_template(ROOT / "template.yaml").schedules
    moved = [replace(one, expression="cron(0 6 1 1 ? 2199)") if one.name == "DailyDigest" else one for one in schedules]
    deploy(state, moved, utc_now() - timedelta(days=1))
    running = RunningGalley(state)
    running.wait_until_it_runs()
    others = DRAFTERS - {"daily-digest"}
    assert running.wait_for(lambda lines: {line.get("drafter") for line in lines[1:]} >= others), running.errors
    assert running.stop() == 0
    assert {run.drafter for run in _rows(state)} == others


def _rows(state: Path) -> list[Run]:
    opened = StateDirectory.open_existing(state)
    try:
        return [run for drafter in DRAFTERS for run in SqliteStore(opened).history(drafter).runs]
    finally:
        opened.close()


def test_a_second_system_on_the_same_state_is_refused_in_one_line(state: Path) -> None:
    running = RunningGalley(state)
    running.wait_until_it_runs()
    second = galley("run", "--state", str(state), "--port", "0")
    running.stop()
    assert second.returncode == 1
    assert len(second.stderr.splitlines()) == 1
    assert str(running.process.pid) in second.stderr


@pytest.mark.enable_socket
def test_a_port_in_use_is_bad_input_and_leaves_nothing_behind(state: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = galley("run", "--state", str(state), "--port", str(port))
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert str(port) in refused.stderr
    assert "--port" in refused.stderr
    assert not state.exists(), "nothing is made before it is known that the system can run"
    assert wait_for_no_process(state) == []


def test_a_state_directory_of_a_newer_version_is_bad_input_and_is_not_touched(state: Path) -> None:
    StateDirectory.open(state).close()
    database = sqlite3.connect(state / "galley.sqlite")
    database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    database.close()
    before = sorted(path.name for path in state.iterdir())
    refused = galley("run", "--once", "--state", str(state))
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert "newer" in refused.stderr
    assert sorted(path.name for path in state.iterdir()) == before


def test_an_approved_draft_is_published_by_the_running_system(state: Path) -> None:
    running = RunningGalley(state)
    running.wait_until_it_runs()
    assert running.wait_for(lambda lines: any(line.get("status") == "pending" for line in lines)), running.errors
    run = next(line["run"] for line in running.lines if line.get("status") == "pending")
    decided = galley("drafts", "approve", run, "--yes", "--state", str(state))
    assert decided.returncode == 0, decided.stderr
    published = running.wait_for(
        lambda lines: any(line.get("run") == run and line.get("status") == "published" for line in lines)
    )
    assert published, running.errors
    running.stop()
    assert any(path.is_file() for path in (state / "bucket" / "published").rglob("*"))


def test_a_decision_made_while_nothing_runs_is_published_at_the_next_start(state: Path) -> None:
    galley("run", "--once", "--state", str(state))
    run = json.loads(galley("drafts", "list", "--state", str(state), "--json").stdout)["drafts"][0]["run"]
    assert galley("drafts", "approve", run, "--yes", "--state", str(state)).returncode == 0
    running = RunningGalley(state)
    published = running.wait_for(
        lambda lines: any(line.get("run") == run and line.get("status") == "published" for line in lines)
    )
    running.stop()
    assert published, running.errors
