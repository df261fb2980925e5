"""Backfills through whole systems: on one machine from another process, and on a stack."""

import json
import os
import pty
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from e2e.on_moto import Moto
from e2e.on_one_machine import OneMachine, one_machine
from galley.runs import Origin, Run, RunMessage, SkipReason, Status, read_message
from galley.store import Bill, Claimed, Limits, Reject, RejectReason
from galley_cli.local.deployment import deploy
from galley_cli.main import invoke
from galley_cli.stack import Stack
from support.aws import GROUP, client, watched
from support.outside import CONTRACT, ROOT, SLOT
from support.real_system import environment, galley

MONDAY = datetime(2026, 11, 23, 12, 30, tzinfo=UTC)
LAST = datetime(2026, 11, 23, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DRAFTER = "daily-digest"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose digest is hourly, puts five mails into each draft, and lets two drafts wait."""
    root = tmp_path / "project"
    for name in ("functions", "layers", "cli"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    change(ROOT / "template.yaml", root / "template.yaml", "cron(0 6 ? * MON-FRI *)", "cron(0 * * * ? *)")
    file = root / "functions" / "draft" / "drafters" / f"{DRAFTER}.toml"
    change(file, file, "pending_limit = 3", "pending_limit = 2")
    change(file, file, "max_items = 60", "max_items = 5")
    return root


def change(source: Path, target: Path, old: str, new: str) -> None:
    text = source.read_text()
    assert text.count(old) == 1
    target.write_text(text.replace(old, new))


def backfill(stage: OneMachine, first: datetime, end: datetime, *more: str) -> dict[str, Any]:
    """Run the command as a process of its own, by the system's clock."""
    done = galley(
        "backfill", DRAFTER, "--from", first.isoformat(), "--to", end.isoformat(), *more, "--json",
        "--state", str(stage.state.root), root=stage.clock.path.parent / "checkout",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def rows(stage: OneMachine) -> list[Run]:
    """Return the drafter's rows, oldest slot first."""
    page = stage.store.history(DRAFTER, limit=500)
    assert (page.unreadable, page.next) == ((), None)
    return list(reversed(page.runs))


def put_mail(stage: OneMachine, number: int, sent: datetime) -> None:
    headers = [
        ("From", "Ada <ada@example.org>"), ("Subject", f"Order {number}"), ("Message-ID", f"<{number}@example.org>"),
        ("Date", format_datetime(sent)),
    ]  # fmt: skip
    text = "".join(f"{name}: {value}\r\n" for name, value in headers) + f"\r\nWhere is order {number}?\r\n"
    stage.bucket.put(f"mail/{DRAFTER}/order-{number:02}.eml", text.encode(), content_type="message/rfc822")


def fail(stage: OneMachine, slot: datetime) -> None:
    asked = RunMessage(drafter=DRAFTER, slot=slot, origin=Origin.SCHEDULE, contract=CONTRACT)
    claimed = stage.store.claim(asked, Limits(9, None, 0), owner=str(slot), now=slot, lease_until=slot)
    assert isinstance(claimed, Claimed)
    stage.store.release(claimed.run, Status.FAILED, "refusal", "no", Bill(), now=slot)


@pytest.mark.guarantee("G2")
@pytest.mark.enable_socket
def test_g2_a_backfill_of_three_days_drafts_as_much_as_the_gate_lets_through(tmp_path: Path, project: Path) -> None:
    first, end = LAST - 71 * HOUR, LAST + HOUR
    with one_machine(tmp_path, MONDAY, project) as stage:
        deploy(stage.state.root, stage.template.schedules, MONDAY)
        failures = [first - 2 * HOUR, first - HOUR]
        for slot in failures:
            fail(stage, slot)
        for number in range(15):
            put_mail(stage, number, failures[0] - HOUR)
        shown = backfill(stage, first, end, "--dry-run")
        assert ([one["step"] for one in shown["slots"]], stage.queue.waiting()) == (["send"] * 72, 0)
        assert backfill(stage, first, end)["sent"] == 72

        stage.start()
        stage.settle()
        made = rows(stage)[2:]
        assert [run.slot for run in made] == [first + number * HOUR for number in range(72)]
        assert [run.status for run in made] == [Status.PENDING] * 2 + [Status.SKIPPED] * 70
        assert {run.reason for run in made[2:]} == {SkipReason.GATE}
        assert {run.origin for run in made} == {Origin.BACKFILL}
        assert stage.store.drafter(DRAFTER).pending == 2

        before = rows(stage)
        again = backfill(stage, first, end, "--rerun", "failed")
        stage.settle()
        assert (again["sent"], rows(stage)) == (0, before), "a second time changes nothing"

        waiting = made[0]
        stage.store.decide(
            waiting.key,
            Reject(RejectReason.TOO_LATE),
            version=waiting.version,
            read_hash=waiting.text_hash or "",
            reviewer="ada",
            now=MONDAY,
        )
        assert backfill(stage, failures[0], end)["sent"] == 0
        rerun = backfill(stage, failures[0], end, "--rerun", "failed")
        assert [one["slot"] for one in rerun["slots"] if one["sent"]] == [
            f"{slot:%Y-%m-%dT%H:%M:%SZ}" for slot in failures
        ]
        stage.settle()
        assert [(run.status, run.reason, run.resend) for run in rows(stage)[:2]] == [
            (Status.PENDING, None, 1),
            (Status.SKIPPED, SkipReason.GATE, 1),
        ], "the gate has one place, whoever asks for more"
        assert rows(stage)[3:] == before[3:]


@pytest.fixture
def stack(moto: Moto, monkeypatch: pytest.MonkeyPatch) -> Moto:
    """A stack whose schedules are deployed, and which the commands find."""
    moto.deploy_schedules()
    monkeypatch.setattr("galley_cli.stack.open_stack", lambda name: Stack(moto.store, moto.queue, moto.schedules))
    return moto


def test_a_stacks_slots_are_backfilled_and_ticked_in_its_own_calendar(
    stack: Moto, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["backfill", "nightly-sync", "--from", "2026-09-30T00:00:00Z", "--to", "2026-10-12T00:00:00Z"]
    with watched(client("sqs")) as requests:
        assert invoke([*arguments, "--stack", "galley-test", "--json"]) == 0
    assert requests.made == ["SendMessageBatch"] * 2
    told = json.loads(capsys.readouterr().out)
    assert [one["slot"] for one in told["slots"]][2:4] == ["2026-10-02T16:30:00Z", "2026-10-04T15:30:00Z"], (
        "02:30 in Sydney, where 4 October has no such minute, and summer time begins"
    )
    record = stack.receive()
    assert record is not None
    asked = read_message(record["Records"][0]["body"])
    assert (asked.origin, asked.schedule, told["sent"]) == (
        Origin.BACKFILL,
        f"arn:aws:scheduler:eu-west-2:123456789012:schedule/{GROUP}/NightlySync",
        len(told["slots"]),
    )

    assert invoke(["tick", "WeeklyReport", "--stack", "galley-test"]) == 0
    assert capsys.readouterr().out == f"sent: weekly-report:{SLOT + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}\n"
    stack.deliver_runs()
    assert [run.origin for run in stack.store.history("weekly-report").runs] == [Origin.MANUAL]


def test_the_calendar_of_a_stack_begins_when_it_was_deployed(stack: Moto, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["calendar", "--days", "5", "--stack", "galley-test", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {one["status"] for one in told["slots"]} == {"coming"}
    assert (told["holes"], told["broken"]) == (0, [])


def test_at_a_terminal_a_bar_shows_how_far_it_is(tmp_path: Path) -> None:
    with one_machine(tmp_path, MONDAY) as stage:
        deploy(stage.state.root, stage.template.schedules, MONDAY)
        root, state = stage.clock.path.parent / "checkout", str(stage.state.root)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "galley_cli", "backfill", "hourly-monitor", "--json", "--state", state]
    done = subprocess.run(  # noqa: S603 - our own command
        [*command, "--from", (LAST - 30 * HOUR).isoformat(), "--to", LAST.isoformat()],
        env=environment(root, TERM="xterm", COLUMNS="100"),
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=theirs,
        timeout=60,
        check=True,
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "30/30" in shown
    assert json.loads(done.stdout)["sent"] == 30
