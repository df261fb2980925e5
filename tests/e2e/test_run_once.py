"""``galley run --once`` as a real process: it drafts each slot once, and what is broken stops nothing else."""

import json
import os
import shutil
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from galley.queue import DeadLetter
from galley.runs import Run, Status
from galley.store import StoredDraft
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from support.model_fake import ModelFake
from support.outside import ROOT, SLOT, message
from support.real_system import galley, wait_for_no_process

DRAFTERS = ("daily-digest", "hourly-monitor", "nightly-sync", "weekly-report")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


class Copy:
    """A copy of the project, whose files a test may break."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("functions", "layers", "cli"):
            shutil.copytree(ROOT / name, root / name)
        shutil.copy2(ROOT / "template.yaml", root)

    def change(self, file: str, old: str, new: str) -> None:
        """Replace a text that stands in a file exactly once."""
        path = self.root / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file} has {old!r} {text.count(old)} times"
        path.write_text(text.replace(old, new))

    def once(self, state: Path) -> "tuple[int, dict[str, dict[str, Any]], list[str]]":
        """Run the copy's own command; return its exit code, what it said of each drafter, and its lines of error."""
        code = os.pathsep.join([str(self.root / "cli"), str(self.root / "layers" / "galley")])
        done = galley("run", "--once", "--state", str(state), "--json", PYTHONPATH=code)
        assert done.stdout, done.stderr
        runs = {run["drafter"]: run for run in json.loads(done.stdout)["runs"]}
        return done.returncode, runs, done.stderr.splitlines()


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path / "copy")


def rows_of(state: Path) -> dict[str, tuple[Run, StoredDraft | None]]:
    """Return every row of a state directory, with the draft beside it."""
    with closing(StateDirectory.open(state)) as opened:
        store = SqliteStore(opened)
        runs = [run for drafter in DRAFTERS for run in store.history(drafter).runs]
        return {str(run.key): (run, store.draft(run.key)) for run in runs}


def dead_runs_of(state: Path) -> tuple[DeadLetter, ...]:
    with closing(StateDirectory.open(state)) as opened:
        return SqliteQueues(opened).dead_runs()


@pytest.mark.enable_socket
@pytest.mark.guarantee("G1")
def test_g1_a_second_time_changes_no_row_and_calls_no_model(state: Path, fake: ModelFake) -> None:
    first = galley("run", "--once", "--state", str(state), "--json", ANTHROPIC_API_KEY="key-1")
    assert (first.returncode, first.stderr) == (0, "")
    told = {run["drafter"]: run for run in json.loads(first.stdout)["runs"]}
    assert tuple(sorted(told)) == DRAFTERS
    drafted = {drafter for drafter, run in told.items() if run["status"] == "pending"}
    assert drafted == {"daily-digest", "nightly-sync", "weekly-report"}
    assert {(told[drafter]["model"], told[drafter]["title"]) for drafter in drafted} == {
        ("claude-haiku-5-5", "A draft")
    }
    assert told["hourly-monitor"]["status"] == "empty"
    assert len(fake.requests) == 3
    assert {request.key for request in fake.requests} == {"key-1"}
    before = rows_of(state)
    assert before.keys() == {run["run"] for run in told.values()}

    second = galley("run", "--once", "--state", str(state), "--json", ANTHROPIC_API_KEY="key-1")
    assert (second.returncode, second.stderr) == (0, "")
    assert len(fake.requests) == 3
    after = rows_of(state)
    assert {key: after[key] for key in before} == before
    new = {key.partition(":")[0] for key in after.keys() - before.keys()}
    assert new <= {"hourly-monitor"}, "only its next hour may have come meanwhile"
    assert wait_for_no_process(state) == []


def test_a_broken_drafter_and_broken_schedules_are_told_and_stop_none_of_the_others(copy: Copy, state: Path) -> None:
    copy.change("functions/draft/drafters/weekly-report.toml", 'shape = "report"', 'shape = "essay"')
    copy.change("template.yaml", "cron(0 6 ? * MON-FRI *)", "cron(0 6 * * MON-FRI)")
    copy.change("template.yaml", "Australia/Sydney", "Australia/Sidney")
    code, runs, errors = copy.once(state)

    assert code == 0, "every run has an outcome"
    assert {drafter: run["status"] for drafter, run in runs.items()} == {
        "hourly-monitor": "empty",
        "weekly-report": "failed",
    }
    assert len(errors) == 3
    for words in (
        ("template.yaml", "DailyDigest", "cron(0 6 * * MON-FRI)"),
        ("template.yaml", "NightlySync", "Australia/Sidney"),
        ("weekly-report.toml", "shape is", "'essay'"),
    ):
        assert any(all(word in line for word in words) for line in errors), f"no line of {errors} has all of {words}"

    assert runs["weekly-report"]["reason"] == "invalid_drafter"
    (letter,) = dead_runs_of(state)
    assert (letter.run, letter.reason) == (runs["weekly-report"]["run"], "invalid_drafter")
    for word in ("weekly-report.toml", "shape is", "'essay'"):
        assert word in letter.detail
        assert word in runs["weekly-report"]["detail"]
    (failed, _) = rows_of(state)[runs["weekly-report"]["run"]]
    assert failed.status is Status.FAILED


@pytest.mark.timeout(40)
def test_a_function_that_cannot_be_imported_is_told_at_once_and_loses_no_run(copy: Copy, state: Path) -> None:
    draft = copy.root / "functions" / "draft" / "draft.py"
    whole = draft.read_text()
    draft.write_text(f"{whole}\ndef broken(:\n")
    code, runs, errors = copy.once(state)
    assert code == 1, "no run has an outcome"
    assert {run["status"] for run in runs.values()} == {None}
    assert sum("SyntaxError" in line and "draft.py" in line for line in errors) == len(DRAFTERS)
    for drafter in DRAFTERS:
        assert any(drafter in line and "SyntaxError" in line for line in errors)
    assert wait_for_no_process(state) == []

    draft.write_text(whole)
    code, runs, errors = copy.once(state)
    assert (code, errors) == (0, [])
    assert {run["status"] for run in runs.values()} <= {"pending", "empty"}, "what waited was drafted"


def test_what_was_sent_by_hand_is_drafted_too_and_shown(state: Path) -> None:
    assert galley("run", "--once", "--state", str(state)).returncode == 0
    sent = galley(
        *("backfill", "daily-digest", "--from", "2026-03-23T00:00:00Z", "--to", "2026-03-28T00:00:00Z", "--json"),
        *("--state", str(state)),
    )
    asked = [slot["run"] for slot in json.loads(sent.stdout)["slots"]]
    assert len(asked) == 5

    once = galley("run", "--once", "--state", str(state), "--json")

    assert (once.returncode, once.stderr) == (0, "")
    told = json.loads(once.stdout)
    assert told["waiting"] == 0
    runs = {run["run"]: run["status"] for run in told["runs"]}
    assert asked == [run for run in runs if run in asked]
    assert {runs[run] for run in asked} <= {"pending", "empty", "skipped"}
    assert {run.partition(":")[0] for run in runs} == set(DRAFTERS), "and the latest slots as before"


def test_what_still_waits_is_counted(state: Path) -> None:
    assert galley("run", "--once", "--state", str(state)).returncode == 0
    with closing(StateDirectory.open(state)) as opened:
        queues = SqliteQueues(opened)
        queues.send([message(slot=SLOT - timedelta(days=day)) for day in (200, 201)])
        (held,) = queues.receive(visibility=timedelta(minutes=30))
        queues.put_off(held.receipt, timedelta(hours=2))

    once = galley("run", "--once", "--state", str(state), "--json")

    assert (once.returncode, json.loads(once.stdout)["waiting"]) == (1, 2)
    assert once.stderr == "galley: 2 more messages wait for draft; galley run goes on\n"
