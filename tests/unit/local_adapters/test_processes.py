"""Several processes on one state directory, and processes that are killed at any moment."""

import multiprocessing
import os
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from contract.material import CURSORS, DAY, DIGEST, all_runs, later
from galley.runs import Status
from galley_cli.local.bucket import FolderBucket
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from unit.local_adapters import processes

CHILD = Path(processes.__file__)


def run_beside_each_other(calls: Sequence[tuple[object, ...]]) -> None:
    spawn = multiprocessing.get_context("spawn")
    children = [spawn.Process(target=function, args=arguments) for function, *arguments in calls]  # type: ignore[arg-type]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        assert child.exitcode == 0


def disagreements(root: Path) -> list[tuple[object, ...]]:
    """Look at the tables with other eyes: whatever they say of each other must agree."""
    queries = [
        "SELECT 'places', drafter FROM drafters d WHERE pending <> "
        "(SELECT count(*) FROM runs r WHERE r.drafter = d.drafter AND status IN ('drafting', 'pending'))",
        "SELECT 'no text', drafter, slot FROM runs r WHERE status = 'pending' AND NOT EXISTS "
        "(SELECT 1 FROM texts t WHERE t.drafter = r.drafter AND t.slot = r.slot)",
        "SELECT 'text of nothing', drafter, slot FROM texts t WHERE NOT EXISTS "
        "(SELECT 1 FROM runs r WHERE t.drafter = r.drafter AND t.slot = r.slot AND status = 'pending')",
        "SELECT 'spend', drafter FROM spend s WHERE committed_nanousd <> (SELECT "
        "sum(cost_nanousd + reserved_nanousd) FROM runs r WHERE r.drafter = s.drafter)",
        "SELECT 'stream', drafter, slot FROM runs r WHERE version <> "
        "(SELECT count(*) FROM stream s WHERE s.drafter = r.drafter AND s.slot = r.slot)",
        "SELECT 'week', drafter FROM drafters d WHERE "
        "coalesce((SELECT sum(value) FROM weeks w WHERE w.drafter = d.drafter AND counter = 'drafted'), 0) <> "
        "(SELECT count(*) FROM runs r WHERE r.drafter = d.drafter AND status = 'pending')",
        "SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
        "SELECT * FROM pragma_foreign_key_check",
    ]
    with closing(sqlite3.connect(root / "galley.sqlite")) as db:
        return [row for query in queries for row in db.execute(query)]


def test_processes_draft_beside_each_other_and_lose_nothing(state: StateDirectory) -> None:
    drafters = ["a", "b", "c"]
    run_beside_each_other([(processes.draft_runs, str(state.root), drafter, 30) for drafter in drafters])
    store = SqliteStore(state)
    for drafter in drafters:
        assert [run.status for run in all_runs(store, drafter)] == [Status.PENDING] * 30
        assert store.drafter(drafter).pending == 30
        assert store.memory(drafter).cursors["last"] == {"n": 29}
    assert disagreements(state.root) == []


@pytest.mark.guarantee("G1")
@pytest.mark.guarantee("G2")
def test_g1_g2_processes_that_claim_the_same_runs_get_each_once_and_no_more_than_the_limit(
    state: StateDirectory,
) -> None:
    run_beside_each_other(
        [(processes.claim_everything, str(state.root), f"owner {number}", 20, 11) for number in range(3)]
    )
    store = SqliteStore(state)
    runs = all_runs(store, DIGEST)
    assert len(runs) == store.drafter(DIGEST).pending == 11
    assert {run.attempts for run in runs} == {1}
    assert store.committed_nanousd(DIGEST, DAY) == 1_100
    assert disagreements(state.root) == []


@pytest.mark.guarantee("G3")
def test_g3_processes_share_a_queue_and_no_group_is_handled_twice_at_once(
    state: StateDirectory, tmp_path: Path
) -> None:
    queues = SqliteQueues(state)
    queues.send([later(number, drafter) for number in range(12) for drafter in ("a", "b", "c", "d")])
    notes = [tmp_path / f"notes-{number}" for number in range(3)]
    run_beside_each_other([(processes.handle_messages, str(state.root), str(note)) for note in notes])
    handled = [line.split() for note in notes for line in note.read_text().splitlines()]
    assert len({message for message, _, _ in handled}) == len(handled) == 48
    assert {how for _, _, how in handled} == {"alone"}
    assert Counter(group for _, group, _ in handled) == {"a": 12, "b": 12, "c": 12, "d": 12}


def test_a_process_killed_at_any_moment_loses_nothing_that_was_acknowledged_and_stops_nobody(
    state: StateDirectory,
) -> None:
    chance = random.Random(20260302)
    store, bucket = SqliteStore(state), FolderBucket(state.bucket)
    acknowledged: dict[str, list[str]] = {}
    for number in range(6):
        drafter = f"killed-{number}"
        acknowledged[drafter] = _write_and_kill(state.root, drafter, lines=chance.randint(1, 60), chance=chance)
        processes.draft_runs(str(state.root), f"after-{number}", 1)
        assert disagreements(state.root) == []
    for drafter, lines in acknowledged.items():
        said: dict[str, list[str]] = {word: [] for word in ("stored", "sent", "put", "deleted")}
        for line in lines:
            word, _, rest = line.partition(" ")
            said[word].append(rest)
        pending = {run.key for run in all_runs(store, drafter) if run.status is Status.PENDING}
        assert pending >= {later(int(one), drafter).key for one in said["stored"]}
        for key in pending:
            text = store.draft(key)
            assert text is not None
            assert text.body.startswith(f"{(key.slot - later(0).slot) // timedelta(days=1)} ")
        assert store.memory(drafter).cursors.keys() >= CURSORS.keys()
        _whole(bucket, f"{drafter}/latest", at_least=int(said["put"][-1]) if said["put"] else None)
        with state.read() as db:
            kept = {row[0] for row in db.execute("SELECT body FROM messages WHERE message_group = ?", (drafter,))}
        sent = {later(int(one), drafter).model_dump_json() for one in said["sent"]}
        deleted = {
            body for others in acknowledged.values() for body in (line[8:] for line in others if "deleted" in line)
        }
        assert kept >= sent - deleted - _deleted_without_a_word(sent - deleted - kept)
        assert not kept & deleted
    with state.lock_for_running():
        store.expire_leases(now=later(0).slot)
    assert disagreements(state.root) == []


def _deleted_without_a_word(missing: set[str]) -> set[str]:
    """A process that was killed between its last deletion and its word about it accounts for one message."""
    return missing if len(missing) <= 1 else set()


def _whole(bucket: FolderBucket, key: str, *, at_least: int | None) -> None:
    """An object is one of those that were written, whole, and not older than the last that was acknowledged."""
    if at_least is None:
        return
    body = bucket.get(key, max_bytes=10_000_000)
    number = int(body.split(b" ", 1)[0])
    assert number >= at_least
    assert body == f"{number} ".encode() * 20_000


def _write_and_kill(root: Path, drafter: str, *, lines: int, chance: random.Random) -> list[str]:
    """Let a process write, kill it some microseconds after so many acknowledgements, and return all it acknowledged."""
    child = subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, str(CHILD), "write_until_killed", str(root), drafter],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with child:
        assert child.stdout is not None
        said = [child.stdout.readline() for _ in range(lines)]
        for _ in range(chance.randint(0, 20_000)):
            pass
        child.kill()
        said += child.stdout.readlines()
    assert child.returncode == -9
    return [line.rstrip("\n") for line in said if line.endswith("\n")]
