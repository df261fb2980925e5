"""The state directory: who may open it, who may run on it, and how its writers take turns."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from galley.drafts import text_hash
from galley.instants import parse_instant
from galley.rules import NO_RULES
from galley.runs import Status
from galley.store import Approve, DrafterState, Pause, Settled
from galley_cli.local import state as state_module
from galley_cli.local.state import SCHEMA_VERSION, StateBusy, StateDirectory, StateError, StateInUse, write_whole
from galley_cli.local.store import SqliteStore

CREATED = datetime(2026, 3, 2, 6, 0, 0, 5, tzinfo=UTC)
CHILD = Path(__file__).with_name("processes.py")


@contextmanager
def holder(root: Path, kind: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds a lock of the directory; it is killed at the end."""
    child = subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, str(CHILD), "hold_the_lock", str(root), kind],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child
        child.kill()


def as_one_line(raised: pytest.ExceptionInfo[StateError]) -> str:
    text = str(raised.value)
    assert "\n" not in text
    return text


def test_a_new_directory_is_for_its_owner_alone_and_remembers_when_it_was_made(root: Path) -> None:
    StateDirectory.open(root, now=lambda: CREATED).close()
    again = StateDirectory.open(root, now=lambda: datetime(2030, 1, 1, tzinfo=UTC))
    assert again.created == CREATED
    assert root.stat().st_mode & 0o777 == 0o700
    assert again.bucket.is_dir()
    again.close()


def test_a_directory_that_others_could_read_is_closed_to_them(state: StateDirectory, root: Path) -> None:
    root.chmod(0o755)
    StateDirectory.open(root).close()
    assert root.stat().st_mode & 0o777 == 0o700


def test_a_bucket_may_be_filled_before_the_first_start(root: Path) -> None:
    mails = root / "bucket" / "mail"
    mails.mkdir(parents=True)
    (mails / "1.eml").write_text("From: a@example.com\n\nHello\n")
    StateDirectory.open(root).close()
    assert (mails / "1.eml").exists()


def test_a_directory_with_other_things_in_it_is_refused_and_left_alone(root: Path) -> None:
    root.mkdir(mode=0o755)
    (root / "thesis.tex").write_text("")
    with pytest.raises(StateError, match=r"holds other things \('thesis.tex'\).*--state") as raised:
        StateDirectory.open(root)
    assert str(root) in as_one_line(raised)
    assert [path.name for path in root.iterdir()] == ["thesis.tex"]
    assert root.stat().st_mode & 0o777 == 0o755


def test_a_directory_that_must_be_there_is_not_made(root: Path) -> None:
    with pytest.raises(StateError, match=r"is no state directory; give .* or make one with: galley run --state"):
        StateDirectory.open_existing(root)
    assert not root.exists()


def test_a_newer_version_is_refused_with_both_versions_and_the_remedy(state: StateDirectory, root: Path) -> None:
    with state.write() as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 6}")
    state.close()
    with pytest.raises(StateError) as raised:
        StateDirectory.open(root)
    assert as_one_line(raised) == (
        f"{root}: was written by a newer galley (state version {SCHEMA_VERSION + 6}, this one reads up to "
        f"{SCHEMA_VERSION}); update galley, or name another directory with --state"
    )


def test_a_database_of_another_program_is_refused_and_left_alone(root: Path) -> None:
    root.mkdir()
    with closing(sqlite3.connect(root / "galley.sqlite")) as db:
        db.execute("CREATE TABLE bookmarks (address TEXT)")
    before = (root / "galley.sqlite").read_bytes()
    with pytest.raises(StateError, match=r"galley\.sqlite: is a database of another program"):
        StateDirectory.open(root)
    assert (root / "galley.sqlite").read_bytes() == before
    assert [path.name for path in root.iterdir()] == ["galley.sqlite"]


@pytest.mark.parametrize("content", [b"no database at all " * 300, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_refused_in_one_line(root: Path, content: bytes) -> None:
    root.mkdir()
    (root / "galley.sqlite").write_bytes(content)
    with pytest.raises(StateError, match=r"galley\.sqlite: is damaged or no database .*; put back a copy") as raised:
        StateDirectory.open(root)
    as_one_line(raised)
    assert (root / "galley.sqlite").read_bytes() == content


def test_damage_within_the_file_stops_the_system_from_starting(state: StateDirectory, root: Path) -> None:
    with state.write() as db:
        db.executemany(
            "INSERT INTO cursors VALUES ('d', ?, ?)", [(f"source {number}", "x" * 900) for number in range(200)]
        )
    state.close()
    file = root / "galley.sqlite"
    content = bytearray(file.read_bytes())
    for page in range(30, len(content) // 4096 - 1):
        content[page * 4096 : page * 4096 + 400] = b"\xa5" * 400
    file.write_bytes(bytes(content))
    with closing(StateDirectory.open(root)) as damaged:
        with (
            pytest.raises(StateError, match=r"galley\.sqlite: is damaged .*; put back a copy") as raised,
            damaged.lock_for_running(),
        ):
            pytest.fail("it must not run")
        as_one_line(raised)
        with pytest.raises(StateError, match="is damaged"), damaged.read() as db:
            db.execute("SELECT sum(length(value)) FROM cursors").fetchall()


def test_a_file_in_the_place_of_the_directory_is_one_line(root: Path) -> None:
    root.write_text("")
    with pytest.raises(StateError, match=f"{root}: .*; make it usable, or name another directory with --state"):
        StateDirectory.open(root)


@pytest.fixture
def without_permission(root: Path) -> Iterator[None]:
    """Nobody may enter the directory: its permissions are gone, and root is somebody else for a while."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    else:
        root.parent.chmod(0)
    yield
    if is_root:
        os.seteuid(0)
    else:
        root.parent.chmod(0o700)


def test_a_directory_without_permission_is_one_line(root: Path, without_permission: None) -> None:
    for attempt in (StateDirectory.open, StateDirectory.open_existing):
        with pytest.raises(StateError, match=f"{root}.*: Permission denied; make it usable") as raised:
            attempt(root)
        as_one_line(raised)


def test_a_file_that_cannot_be_opened_is_one_line(state: StateDirectory, root: Path) -> None:
    state.close()
    (root / "galley.sqlite").rename(root / "elsewhere.sqlite")
    (root / "galley.sqlite").mkdir()
    with pytest.raises(StateError, match=r"galley\.sqlite: unable to open.*writable for this user") as raised:
        StateDirectory.open(root)
    as_one_line(raised)


def test_an_older_version_is_brought_forward_all_or_nothing(
    state: StateDirectory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = state.created
    state.close()
    good, bad = "CREATE TABLE later (name TEXT)", "CREATE TABLE later (name TEXT)"
    monkeypatch.setattr(state_module, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    monkeypatch.setattr(state_module, "_MIGRATIONS", (*state_module._MIGRATIONS, (good, bad)))
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        StateDirectory.open(root)
    monkeypatch.setattr(state_module, "_MIGRATIONS", (*state_module._MIGRATIONS[:-1], (good,)))
    with closing(StateDirectory.open(root)) as migrated, migrated.read() as db:
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION + 1,)
        assert db.execute("SELECT count(*) FROM later").fetchone() == (0,)
        assert migrated.created == created


def test_an_older_version_is_not_changed_under_a_running_system(
    state: StateDirectory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "_START_SECONDS", 0)
    monkeypatch.setattr(state_module, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    monkeypatch.setattr(state_module, "_MIGRATIONS", (*state_module._MIGRATIONS, ("CREATE TABLE later (name TEXT)",)))
    with state.lock_for_running(), pytest.raises(StateInUse, match="the system runs on it already"):
        StateDirectory.open(root)


def test_one_system_runs_on_a_directory_and_the_other_is_told_its_process(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "_START_SECONDS", 0.05)
    assert state.running() is None
    with holder(state.root, "running") as child:
        with (
            pytest.raises(StateInUse, match=rf"runs on it already \(process {child.pid}\)") as raised,
            state.lock_for_running(),
        ):
            pytest.fail("it must not run")
        as_one_line(raised)
        assert raised.value.pid == child.pid
        assert state.running() == {"address": "http://127.0.0.1:8700/", "pid": child.pid}
    with state.lock_for_running():
        assert state.running() is None


def test_a_worker_that_outlives_its_system_keeps_the_next_one_from_starting(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "_OTHER_WORKERS_SECONDS", 0.05)
    with (
        holder(state.root, "working"),
        pytest.raises(StateInUse, match="a worker of an earlier system still lives"),
        state.lock_for_running(),
    ):
        pytest.fail("it must not run")
    with state.lock_for_running(), state.lock_for_working():
        pass


def test_what_is_committed_is_on_the_disk_before_the_writer_goes_on(state: StateDirectory) -> None:
    with state.read() as db:
        settings = {name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")}
        assert db.execute("PRAGMA foreign_keys").fetchone() == (1,)
    assert settings == {"journal_mode": "wal", "synchronous": 2}


def test_a_transaction_that_fails_leaves_nothing(state: StateDirectory) -> None:
    def fail() -> None:
        with state.write() as db:
            db.execute("INSERT INTO consumers VALUES ('publish', 5)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with state.read() as db:
        assert db.execute("SELECT count(*) FROM consumers").fetchone() == (0,)


def test_a_writer_gives_up_when_its_turn_does_not_come_and_others_are_not_harmed(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "TURN_SECONDS", 0.05)
    with holder(state.root, "writing"):
        with pytest.raises(StateBusy, match="try again") as raised, state.write():
            pytest.fail("it is not its turn")
        as_one_line(raised)
        with state.read() as db:
            assert db.execute("SELECT count(*) FROM consumers").fetchone() == (0,)
    with state.write() as db:
        db.execute("INSERT INTO consumers VALUES ('publish', 5)")


def test_a_writer_without_a_pause_lets_another_one_in(state: StateDirectory) -> None:
    stop = threading.Event()
    written = 0

    def write(to: StateDirectory) -> None:
        with to.write() as db:
            db.execute("INSERT INTO dead_ticks (body, reason, detail, at) VALUES ('', '', '', '')")

    def write_without_pause() -> None:
        nonlocal written
        while not stop.is_set():
            write(state)
            written += 1

    busy = threading.Thread(target=write_without_pause)
    with closing(StateDirectory.open(state.root)) as other:
        busy.start()
        meanwhile = []
        for _ in range(50):
            before = written
            write(other)
            meanwhile.append(written - before)
        stop.set()
        busy.join()
    assert max(meanwhile) < 50


def test_a_program_that_ignores_the_turns_and_holds_the_file_is_named_as_such(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "TURN_SECONDS", 0.05)
    with closing(StateDirectory.open(root)) as state, closing(sqlite3.connect(root / "galley.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StateBusy, match="another program holds it"), state.write():
            pytest.fail("the file is held")


def test_a_file_is_replaced_whole_and_for_its_owner_alone(state: StateDirectory) -> None:
    file = state.root / "schedules.json"
    write_whole(file, "old")
    write_whole(file, "new")
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not list(state.root.glob("*.new"))
    with pytest.raises(StateError, match="nowhere"):
        write_whole(state.root / "nowhere" / "schedules.json", "new")


@pytest.mark.parametrize("name", ["schedules.json", "schedules.json.new", "running.json", "running.json.new"])
def test_what_a_state_directory_holds_beside_its_database_is_its_own(tmp_path: Path, name: str) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / name).touch()
    StateDirectory.open(tmp_path / "state").close()


def test_threads_share_an_opened_directory(state: StateDirectory) -> None:
    def count() -> None:
        for _ in range(20):
            with state.write() as db:
                db.execute(
                    "INSERT INTO consumers VALUES ('publish', 1) "
                    "ON CONFLICT (name) DO UPDATE SET position = position + 1"
                )

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with state.read() as db:
        assert db.execute("SELECT position FROM consumers").fetchone() == (160,)


def test_a_watch_notices_what_anybody_commits_and_nothing_else(state: StateDirectory) -> None:
    watch = state.watch()
    with closing(StateDirectory.open(state.root)) as other:
        assert not watch.changed()
        with other.read() as db:
            db.execute("SELECT * FROM consumers").fetchall()
        assert not watch.changed()
        for writer in (other, state):
            with writer.write() as db:
                db.execute("INSERT INTO dead_ticks (body, reason, detail, at) VALUES ('', '', '', '')")
            assert watch.changed()
            assert not watch.changed()
    watch.close()


def test_waiting_ends_with_a_commit_or_when_it_is_told_to(state: StateDirectory) -> None:
    watch, stop = state.watch(), threading.Event()

    def write() -> None:
        with state.write() as db:
            db.execute("INSERT INTO consumers VALUES ('publish', 1)")

    writer = threading.Timer(0.02, write)
    writer.start()
    assert watch.wait(10, stop, poll=0.005)
    writer.join()
    assert not watch.wait(0.01, stop, poll=0.005)
    stop.set()
    assert not watch.wait(10, stop)
    watch.close()


def test_a_directory_is_not_used_across_a_fork_or_after_its_end(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        with pytest.raises(RuntimeError, match="does not cross a fork"), state.read():
            pytest.fail("a connection crossed the fork")
    state.close()
    with pytest.raises(RuntimeError, match="was closed"), state.read():
        pytest.fail("it was closed")


PENDING_IN_VERSION_1 = (
    "INSERT INTO runs (drafter, slot, status, version, origin, contract, created, changed, resend, attempts, "
    "reserved_nanousd, cost_nanousd, usage, model, title, text_hash, drafted, queue_at) VALUES ('daily-digest', "
    "'2026-11-27T06:00:00Z', 'pending', 2, 'schedule', "
    '\'{"window_minutes": 30, "grace_minutes": 120, "catch_up": "latest"}\', '
    "'2026-11-27T06:00:01Z', '2026-11-27T06:00:09Z', 0, 1, 0, 0, '{}', 'offline', 'Friday', ?, "
    "'2026-11-27T06:00:09Z', '2026-11-27T06:00:09Z')"
)


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_what_each_older_version_wrote_can_be_decided_and_its_pauses_ended(
    root: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    with monkeypatch.context() as older:
        older.setattr(state_module, "SCHEMA_VERSION", version)
        older.setattr(state_module, "_MIGRATIONS", state_module._MIGRATIONS[:version])
        with closing(StateDirectory.open(root)) as state, state.write() as db:
            db.execute(PENDING_IN_VERSION_1, (text_hash("Friday", "Two mails."),))
            db.execute(
                "INSERT INTO texts (drafter, slot, title, body, items, warnings, model, channels) VALUES "
                "('daily-digest', '2026-11-27T06:00:00Z', 'Friday', 'Two mails.', '[]', '[]', 'offline', '[]')"
            )
            db.execute("INSERT INTO drafters (drafter, pending, paused) VALUES ('daily-digest', 1, 'by hand')")
    now = parse_instant("2026-11-27T09:00:00Z")
    with closing(StateDirectory.open(root)) as state:
        store = SqliteStore(state)
        store.resume("daily-digest", now=now)
        assert store.drafter("daily-digest") == DrafterState("daily-digest", 1, None, Pause("by hand", now, now))
        (run,) = store.watched(Status.PENDING).runs
        assert run.rules == NO_RULES
        stored = store.draft(run.key)
        assert stored is not None
        assert stored.text_hash == run.text_hash
        decided = store.decide(
            run.key, Approve(), version=run.version, read_hash=str(run.text_hash), reviewer="ada", now=now
        )
        assert isinstance(decided, Settled)
        assert store.drafter("daily-digest").pending == 0
