"""What failed for good is sent again while the system runs, from another process."""

import json
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from galley.queue import DeadLetter, DeadTick
from galley.runs import RunMessage, Status
from galley.store import Bill, Claimed, Limits
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from support.outside import CONTRACT, SLOT, message
from support.real_system import RunningGalley, galley, wait_for_no_process

PROMPT_SECONDS = 15


def die(root: Path, asked: RunMessage) -> None:
    """Let a run fail for good before the system starts, and a tick of the day before die."""
    with closing(StateDirectory.open(root)) as state:
        letter = DeadLetter(
            asked.model_dump_json(), str(asked.key), "refusal", "no", "NeverSucceeds", 1, asked.slot, asked.slot
        )
        SqliteQueues(state).bury(letter)
        claimed = SqliteStore(state).claim(asked, Limits(9, None, 0), owner="o", now=asked.slot, lease_until=asked.slot)
        assert isinstance(claimed, Claimed)
        SqliteStore(state).release(claimed.run, Status.FAILED, "refusal", "no", Bill(), now=asked.slot)
        slot = (SLOT - timedelta(days=1)).isoformat()
        tick = {"drafters": ["daily-digest"], "slot": slot, **CONTRACT.model_dump(mode="json")}
        SqliteQueues(state).bury_tick(DeadTick(json.dumps(tick), "RetriesExhausted", "no answer", SLOT))


@pytest.mark.guarantee("G5")
@pytest.mark.timeout(120)
def test_g5_a_running_system_drafts_at_once_what_another_process_sends_again(tmp_path: Path) -> None:
    root = tmp_path / "state"
    asked = message(schedule=None)
    die(root, asked)
    running = RunningGalley(root)
    running.wait_until_it_runs()
    try:
        sent = galley("dlq", "resend", "--all", "--state", str(root), "--json")
        assert sent.returncode == 0, sent.stderr
        ticked = str(asked.key).replace("2026-11-27", "2026-11-26")
        assert [one["runs"] for one in json.loads(sent.stdout)["resent"]] == [[str(asked.key)], [ticked]]
        for run in (str(asked.key), ticked):
            assert running.wait_for(
                lambda lines, run=run: any(  # type: ignore[misc]
                    line.get("run") == run and line["status"] in {"pending", "empty"} for line in lines
                ),
                PROMPT_SECONDS,
            ), running.lines
        listed = json.loads(galley("dlq", "list", "--state", str(root), "--json").stdout)
        assert (listed["runs"], listed["ticks"]) == ([], [])
    finally:
        running.stop()
    assert wait_for_no_process(root) == []
