"""What the tests of this folder do in processes of their own. Each function is a process's whole life."""

import os
import sys
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from contract.material import CURSORS, DRAFT, NOW, later
from galley.drafts import Draft
from galley.store import Bill, Claimed, Limits, Settled
from galley_cli.local.bucket import FolderBucket
from galley_cli.local.queue import SqliteQueues, StaleReceipt
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore

COST = 7
LIMITS = Limits(pending=1_000_000, daily_budget_nanousd=None, worst_cost_nanousd=100)


def draft_runs(root: str, drafter: str, count: int) -> None:
    """Claim and store so many runs of one drafter."""
    with closing(StateDirectory.open(Path(root))) as state:
        for number in range(count):
            _draft(SqliteStore(state), drafter, number)


def claim_everything(root: str, owner: str, count: int, limit: int) -> None:
    """Claim as many of the same runs as there is room for at the gate; say nothing about how it went."""
    with closing(StateDirectory.open(Path(root))) as state:
        store = SqliteStore(state)
        limits = Limits(pending=limit, daily_budget_nanousd=None, worst_cost_nanousd=100)
        for number in range(count):
            store.claim(later(number), limits, owner=owner, now=NOW, lease_until=NOW + timedelta(hours=1))


def handle_messages(root: str, received: str) -> None:
    """Receive and delete until nothing is left; note each message, and whether another of its group was at work."""
    with closing(StateDirectory.open(Path(root))) as state, Path(received).open("w", encoding="utf-8") as notes:
        queues = SqliteQueues(state)
        deadline = time.monotonic() + 20
        while queues.waiting():
            assert time.monotonic() < deadline, "messages are left, and none is handed out"
            for delivery in queues.receive(visibility=timedelta(minutes=5)):
                at_work = Path(root) / "bucket" / f"{delivery.group}.at-work"
                alone = _claim_file(at_work)
                time.sleep(0.001)
                at_work.unlink(missing_ok=True)
                notes.write(f"{delivery.id} {delivery.group} {'alone' if alone else 'together'}\n")
                queues.delete(delivery.receipt)


def write_until_killed(root: str, drafter: str) -> None:
    """Draft, send, receive and put without end; say on standard output what was acknowledged."""
    state = StateDirectory.open(Path(root))
    store, queues, bucket = SqliteStore(state), SqliteQueues(state), FolderBucket(state.bucket)
    number = 0
    while True:
        _draft(store, drafter, number)
        _say(f"stored {number}")
        queues.send([later(number, drafter)])
        _say(f"sent {number}")
        bucket.put(f"{drafter}/latest", f"{number} ".encode() * 20_000, content_type="text/plain")
        _say(f"put {number}")
        if number % 3 == 2:
            for delivery in queues.receive(visibility=timedelta(hours=1)):
                try:
                    queues.delete(delivery.receipt)
                except StaleReceipt:
                    continue
                _say(f"deleted {delivery.body}")
        number += 1


def hold_the_lock(root: str, kind: str) -> None:
    """Hold one of the directory's locks until killed; say so on standard output."""
    state = StateDirectory.open(Path(root))
    locks = {"running": state.lock_for_running, "working": state.lock_for_working, "writing": state.write}
    with locks[kind]():
        if kind == "running":
            state.announce({"address": "http://127.0.0.1:8700/", "pid": os.getpid()})
        _say("held")
        time.sleep(60)


def _draft(store: SqliteStore, drafter: str, number: int) -> None:
    outcome = store.claim(
        later(number, drafter), LIMITS, owner=f"{drafter} {number}", now=NOW, lease_until=NOW + timedelta(minutes=5)
    )
    assert isinstance(outcome, Claimed), outcome
    draft = Draft(DRAFT.title, f"{number} " * 1_000, DRAFT.items, (), DRAFT.model)
    cursors, read = {**CURSORS, "last": {"n": number}}, store.memory(drafter).cursors
    stored = store.store(outcome.run, draft, cursors, Bill(cost_nanousd=COST), now=NOW, read=read)
    assert isinstance(stored, Settled), stored


def _claim_file(path: Path) -> bool:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the test reads it


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
