"""kill -9 of the whole system at random moments: nothing that was stored is lost, changed, doubled or miscounted."""

import random
import signal
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from galley.contract import CatchUp, Contract
from galley.instants import utc_now
from galley.runs import HOLDS_A_PLACE, Origin, Run, RunKey, RunMessage, Status
from galley.schedule import calendar_of
from galley.store import Approve, Settled
from galley_cli.local.deployment import deployed
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from galley_cli.local.stream_feed import CONSUMER
from support.real_system import RunningGalley, processes_of, wait_for_no_process

KILLS = 20
CONTRACT = Contract(window_minutes=30, grace_minutes=120, catch_up=CatchUp.LATEST)
DRAFTERS = ("daily-digest", "hourly-monitor", "nightly-sync", "weekly-report")
DONE = frozenset({Status.APPROVED, Status.PUBLISHED})


@dataclass
class Witness:
    """Somebody who looks at the state between a kill and the next start, gives it work, and remembers all drafts."""

    root: Path
    texts: dict[RunKey, tuple[str, str]] = field(default_factory=dict)
    approved: set[RunKey] = field(default_factory=set)
    asked: set[RunKey] = field(default_factory=set)

    def look(self) -> None:
        """See that the file is whole, and that every draft that was ever seen is there as it was."""
        with sqlite3.connect(self.root / "galley.sqlite") as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        database.close()
        state = StateDirectory.open(self.root)
        store = SqliteStore(state)
        for key, text in self.texts.items():
            assert text_of(store, key) == text, f"the draft of {key} was lost or changed"
        for key in self.approved:
            run = store.run(key)
            assert run is not None
            assert run.status in DONE, f"the decision on {key} was lost"
        for run in all_runs(store):
            if run.drafted is not None:
                self.texts[run.key] = text_of(store, run.key)
        assert_counts_equal_rows(store)
        state.close()

    def give_work(self, round_number: int) -> None:
        """Ask for two older weekly reports, and approve what waits, so that the gate is open for them."""
        state = StateDirectory.open(self.root)
        store = SqliteStore(state)
        weekly = next((one for one in deployed(state.root).all() if one.name == "WeeklyReport"), None)
        if weekly is not None:
            calendar = calendar_of(weekly.expression, weekly.timezone, weekly.created)
            slots = list(calendar.between(utc_now() - timedelta(weeks=2 * KILLS + 4), utc_now() - timedelta(weeks=1)))
            messages = [
                RunMessage(drafter="weekly-report", slot=slot, origin=Origin.BACKFILL, contract=CONTRACT)
                for slot in slots[2 * round_number : 2 * round_number + 2]
            ]
            SqliteQueues(state).send(messages)
            self.asked.update(message.key for message in messages)
        for run in all_runs(store):
            if run.status is not Status.PENDING:
                continue
            assert run.text_hash is not None
            decided = store.decide(
                run.key, Approve(), version=run.version, read_hash=run.text_hash, reviewer="ann", now=utc_now()
            )
            assert isinstance(decided, Settled)
            self.approved.add(run.key)
        state.close()


def all_runs(store: SqliteStore) -> list[Run]:
    runs: list[Run] = []
    for drafter in DRAFTERS:
        page = store.history(drafter, limit=1000)
        assert page.unreadable == ()
        runs += page.runs
    return runs


def text_of(store: SqliteStore, key: RunKey) -> tuple[str, str]:
    stored = store.draft(key)
    assert stored is not None, f"the text of {key} is gone"
    return stored.title, stored.body


def assert_counts_equal_rows(store: SqliteStore) -> None:
    rows = all_runs(store)
    for drafter in DRAFTERS:
        mine = [run for run in rows if run.drafter == drafter]
        assert store.drafter(drafter).pending == sum(run.status in HOLDS_A_PLACE for run in mine)


def is_quiet(state: StateDirectory) -> bool:
    """Tell whether every message was handled and every change was delivered."""
    store = SqliteStore(state)
    return (
        SqliteQueues(state).waiting() == 0
        and store.stream_after(store.stream_position(CONSUMER)) == ()
        and all(run.status is not Status.APPROVED for run in all_runs(store))
    )


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def wait_for_commits(root: Path, count: int, seconds: float) -> None:
    """Wait until so many transactions were committed, by whichever process, or the time is over."""
    state = StateDirectory.open(root)
    watch = state.watch()
    deadline = time.monotonic() + seconds
    while count > 0 and time.monotonic() < deadline:
        if watch.changed():
            count -= 1
        time.sleep(0.0005)
    watch.close()
    state.close()


@pytest.mark.guarantee("G1")
@pytest.mark.guarantee("G2")
@pytest.mark.guarantee("G6")
def test_g1_g2_g6_twenty_kills_lose_no_draft_double_none_and_leave_counts_equal_to_rows(tmp_path: Path) -> None:
    root = tmp_path / "state"
    dice = random.Random(20260329)
    witness = Witness(root)
    for round_number in range(KILLS):
        running = RunningGalley(root)
        if round_number % 5 == 0:
            time.sleep(dice.uniform(0.1, 0.9))  # while it starts
        else:
            wait_for_commits(root, 2, seconds=20)  # however long it takes to start on a busy machine
            wait_for_commits(root, dice.randint(0, 14), seconds=2.5)  # while it works
            time.sleep(dice.uniform(0, 0.01))
        assert running.stop(signal.SIGKILL) == -signal.SIGKILL
        assert wait_for_no_process(root) == [], "a function outlived its system"
        if root.joinpath("galley.sqlite").exists():
            witness.look()
            witness.give_work(round_number)

    running = RunningGalley(root)
    running.wait_until_it_runs()
    state = StateDirectory.open(root)
    quiet = wait_until(lambda: is_quiet(state), 45)
    code = running.stop()
    assert quiet, running.errors
    assert code == 0
    assert processes_of(root) == []
    witness.look()

    store = SqliteStore(state)
    rows = {run.key: run for run in all_runs(store)}
    dead = {letter.run for letter in SqliteQueues(state).dead_runs(limit=1000)}
    for key in witness.asked:
        run = rows.get(key)
        assert (run is not None and run.status not in {Status.DRAFTING, Status.QUEUED}) or str(key) in dead
    with state.read() as database:
        made = database.execute("SELECT sum(value) FROM weeks WHERE counter = 'drafted'").fetchone()[0]
        texts = database.execute("SELECT count(*) FROM texts").fetchone()[0]
    assert made == texts == sum(run.drafted is not None for run in rows.values()), "a draft was made twice"
    assert len(witness.texts) >= 5
    state.close()
