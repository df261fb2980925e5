"""The state directory: one SQLite file and one folder, shared by every process of the system on one machine.

Whatever a transaction has committed survives kill -9: the file is in WAL mode with full synchronisation
(https://www.sqlite.org/wal.html, https://www.sqlite.org/pragma.html#pragma_synchronous). Writers take turns by a
lock file, which the kernel releases when its holder dies; SQLite's own busy handler sleeps and lets the lucky one
go first, so it is only the backstop.
"""

import fcntl
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from galley.instants import in_utc, utc_now

APPLICATION_ID = 0x474C4C59
"""What marks an SQLite file as Galley's: ``GLLY`` (https://www.sqlite.org/pragma.html#pragma_application_id)."""

TURN_SECONDS = 10.0
"""How long a writer waits for its turn before it gives up."""

_SHORTEST_POLL_SECONDS = 0.0002
_LONGEST_POLL_SECONDS = 0.005
_START_SECONDS = 1.0
_OTHER_WORKERS_SECONDS = 10.0
_DATABASE = "galley.sqlite"
_OWN_NAMES = frozenset(
    {"bucket", "logs", "run.lock", "workers.lock", "turn.lock", "write.lock"}
    | {f"{name}{suffix}" for name in ("running.json", "schedules.json") for suffix in ("", ".new")}
    | {f"{_DATABASE}{suffix}" for suffix in ("", "-wal", "-shm", "-journal")}
)

_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        """CREATE TABLE runs (
            drafter TEXT NOT NULL, slot TEXT NOT NULL, status TEXT NOT NULL, version INTEGER NOT NULL,
            origin TEXT NOT NULL, contract TEXT NOT NULL, created TEXT NOT NULL, changed TEXT NOT NULL,
            schedule TEXT, trace TEXT, reason TEXT, detail TEXT, resend INTEGER NOT NULL, attempts INTEGER NOT NULL,
            owner TEXT, lease_until TEXT, next_attempt TEXT,
            spend_day TEXT, reserved_nanousd INTEGER NOT NULL, cost_nanousd INTEGER NOT NULL, usage TEXT NOT NULL,
            model TEXT, title TEXT, text_hash TEXT, drafted TEXT, decision TEXT, published TEXT,
            queue_at TEXT,
            PRIMARY KEY (drafter, slot)
        ) WITHOUT ROWID""",
        "CREATE INDEX runs_watched ON runs (status, queue_at, drafter, slot) WHERE queue_at IS NOT NULL",
        """CREATE TABLE texts (
            drafter TEXT NOT NULL, slot TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL,
            items TEXT NOT NULL, warnings TEXT NOT NULL, model TEXT NOT NULL, channels TEXT NOT NULL,
            edited_title TEXT, edited_body TEXT,
            PRIMARY KEY (drafter, slot),
            FOREIGN KEY (drafter, slot) REFERENCES runs (drafter, slot)
        )""",
        """CREATE TABLE drafters (
            drafter TEXT PRIMARY KEY, pending INTEGER NOT NULL CHECK (pending >= 0), paused TEXT
        ) WITHOUT ROWID""",
        """CREATE TABLE spend (
            drafter TEXT NOT NULL, day TEXT NOT NULL, committed_nanousd INTEGER NOT NULL, PRIMARY KEY (drafter, day)
        ) WITHOUT ROWID""",
        """CREATE TABLE weeks (
            drafter TEXT NOT NULL, week TEXT NOT NULL, counter TEXT NOT NULL, value INTEGER NOT NULL,
            PRIMARY KEY (drafter, week, counter)
        ) WITHOUT ROWID""",
        """CREATE TABLE cursors (
            drafter TEXT NOT NULL, source TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (drafter, source)
        ) WITHOUT ROWID""",
        """CREATE TABLE stream (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT, drafter TEXT NOT NULL, slot TEXT NOT NULL,
            old_status TEXT, new_status TEXT NOT NULL, version INTEGER NOT NULL, at TEXT NOT NULL
        )""",
        "CREATE TABLE consumers (name TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID",
        """CREATE TABLE messages (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, id TEXT NOT NULL UNIQUE,
            message_group TEXT NOT NULL, deduplication_id TEXT, body TEXT NOT NULL, sent TEXT NOT NULL,
            visible_at TEXT, put_off INTEGER NOT NULL DEFAULT 0, receives INTEGER NOT NULL DEFAULT 0,
            first_received TEXT, last_received TEXT, receipt TEXT UNIQUE
        )""",
        "CREATE INDEX messages_by_group ON messages (queue, message_group, sequence, visible_at)",
        """CREATE TABLE deduplication (
            queue TEXT NOT NULL, id TEXT NOT NULL, sent TEXT NOT NULL, PRIMARY KEY (queue, id)
        ) WITHOUT ROWID""",
        """CREATE TABLE dead_runs (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL, run TEXT, reason TEXT NOT NULL,
            detail TEXT NOT NULL, error_type TEXT NOT NULL, attempts INTEGER NOT NULL,
            first TEXT NOT NULL, last TEXT NOT NULL, UNIQUE (last, reason, body)
        )""",
        """CREATE TABLE dead_ticks (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL, reason TEXT NOT NULL,
            detail TEXT NOT NULL, at TEXT NOT NULL
        )""",
    ),
    ("ALTER TABLE runs ADD COLUMN faults INTEGER NOT NULL DEFAULT 0",),
    ("ALTER TABLE runs ADD COLUMN dismissed TEXT",),
    ("CREATE TABLE schedules (name TEXT PRIMARY KEY, swept TEXT NOT NULL) WITHOUT ROWID",),
    ("ALTER TABLE runs ADD COLUMN attachments_hash TEXT", "ALTER TABLE texts ADD COLUMN attachments TEXT"),
    ("ALTER TABLE runs ADD COLUMN rules TEXT",),
    (
        """CREATE TABLE rejections (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT, drafter TEXT NOT NULL, slot TEXT NOT NULL,
            reason TEXT NOT NULL, words TEXT NOT NULL
        )""",
        "CREATE INDEX rejections_by_drafter ON rejections (drafter, sequence)",
    ),
    tuple(
        f"ALTER TABLE drafters ADD COLUMN {name} TEXT"
        for name in ("paused_since", "was_paused", "was_paused_since", "was_paused_until")
    ),
)

SCHEMA_VERSION = len(_MIGRATIONS)
"""The version of the state directory that this code reads and writes."""


class StateError(Exception):
    """The state directory cannot be used. Its text is one line that names it and says what to do."""


class StateBusy(StateError):
    """Other writers held the file for longer than a writer waits. Nothing happened; try again later."""


class StateInUse(StateError):
    """Another process runs the system on this directory. ``pid`` is its process, where it is known."""

    def __init__(self, text: str, pid: int | None) -> None:
        super().__init__(text)
        self.pid = pid


def stamp(moment: datetime) -> str:
    """Return an instant as it is kept: UTC with microseconds, so that it sorts as it reads.

    Raises:
        ValueError: for a naive datetime.
    """
    return in_utc(moment).isoformat(timespec="microseconds")


def unstamp(text: str) -> datetime:
    """Return the instant that ``stamp`` wrote.

    Raises:
        ValueError: when it did not.
    """
    return datetime.fromisoformat(text).astimezone(UTC)


def unstamp_or_none(text: str | None) -> datetime | None:
    """Return what ``unstamp`` does, or None."""
    return None if text is None else unstamp(text)


def write_whole(path: Path, text: str) -> None:
    """Write a file of the state directory. A reader sees the old text or the new one, even after a power cut.

    Raises:
        StateError: it cannot be written; one line that names it.
    """
    temporary = path.with_name(f"{path.name}.new")
    with _explained(path.parent):
        with open(temporary, "w", encoding="utf-8", opener=_private) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)


class StateDirectory:
    """A state directory, opened. It is shared freely between threads; every process opens its own.

    ``created`` is the instant at which the directory was made: schedules count from it on this machine.
    """

    def __init__(self, root: Path, created: datetime) -> None:
        self.root = root
        self.created = created
        self._pid = os.getpid()
        self._idle: list[sqlite3.Connection] = []
        self._turn = _Turn(root)
        self._closed = False

    @classmethod
    def open(cls, root: Path, *, now: Callable[[], datetime] = utc_now) -> Self:
        """Open the directory; where there is none, or an empty one, it is made, for its owner alone.

        Raises:
            StateError: it cannot be made, is not one of ours, is damaged, or is of a newer version.
        """
        root = root.absolute()
        with _explained(root):
            created = _created_if_current(root)
            if not (root / _DATABASE).exists():
                _refuse_foreign(root)
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if root.stat().st_mode & 0o077:
                root.chmod(0o700)
            (root / "bucket").mkdir(mode=0o700, exist_ok=True)
            if created is None:
                created = _bring_up_to_date(root, now())
            return cls(root, created)

    @staticmethod
    def is_there(root: Path) -> bool:
        """Tell whether there is a state directory already.

        Raises:
            StateError: when that cannot be seen.
        """
        with _explained(root):
            return (root / _DATABASE).exists()

    @classmethod
    def open_existing(cls, root: Path) -> Self:
        """Open a directory that is there already.

        Raises:
            StateError: there is none, or what ``open`` raises.
        """
        if not cls.is_there(root):
            raise StateError(
                f"{root}: is no state directory; give --state DIR of the system that runs, "
                f"or make one with: galley run --state {root}"
            )
        return cls.open(root)

    @property
    def bucket(self) -> Path:
        """The folder that is the bucket."""
        return self.root / "bucket"

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Do all of the block in one transaction, or nothing of it; other writers wait.

        Raises:
            StateBusy: when the turn did not come in time.
            StateError: when the file cannot be written or is damaged.
        """
        with self._turn.take(), self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Give a connection for reading; each statement sees one state, the last that was committed.

        Raises:
            StateError: when the file cannot be read or is damaged.
        """
        with self._connection() as db:
            yield db

    def watch(self) -> "ChangeWatch":
        """Return a watch that notices every transaction of every process."""
        self._refuse_misuse()
        with _explained(self.root):
            return ChangeWatch(_connect(self.root))

    @contextmanager
    def lock_for_running(self) -> Iterator[None]:
        """Hold the directory for the one system that runs on it, and prove that nothing of an earlier one lives.

        The kernel lets go of it when the process dies, however it dies. The file is checked for damage first.

        Raises:
            StateInUse: another process runs the system, or a worker of an earlier one still lives.
            StateError: the file is damaged.
        """
        with _locked(self.root / "run.lock") as lock:
            _lock_for_running(self.root, lock)
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
            self._wait_for_workers()
            self._check()
            yield

    @contextmanager
    def lock_for_working(self) -> Iterator[None]:
        """Say, for as long as it is held, that this process works for the running system.

        A worker that outlives its system (kill -9 of the parent) so keeps the next one from starting beside it.

        Raises:
            StateInUse: the next one is starting already.
        """
        with _locked(self.root / "workers.lock") as lock:
            if not _try_for(lock, fcntl.LOCK_SH, _OTHER_WORKERS_SECONDS):
                raise StateInUse(f"{self.root}: another system is starting on it; try again", None)
            yield

    def announce(self, facts: Mapping[str, object]) -> None:
        """Write down how the running system is reached, for ``running``. Call it with the lock held."""
        write_whole(self.root / "running.json", json.dumps(dict(facts)))

    def running(self) -> Mapping[str, object] | None:
        """Return what the running system announced; None when none runs, or it has not said anything yet."""
        with _locked(self.root / "run.lock") as lock:
            if _try_for(lock, fcntl.LOCK_SH, 0):
                return None
            holder = _number(os.pread(lock, 32, 0))
        try:
            facts = json.loads((self.root / "running.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return facts if isinstance(facts, dict) and facts.get("pid", holder) == holder else None

    def close(self) -> None:
        """Close every connection that is not in use. The directory cannot be used afterwards."""
        self._closed = True
        if os.getpid() == self._pid:
            while self._idle:
                self._idle.pop().close()

    def __del__(self) -> None:
        self.close()

    def _wait_for_workers(self) -> None:
        with _locked(self.root / "workers.lock") as lock:
            if not _try_for(lock, fcntl.LOCK_EX, _OTHER_WORKERS_SECONDS):
                raise StateInUse(
                    f"{self.root}: a worker of an earlier system still lives; wait for it to end, or end it", None
                )

    def _check(self) -> None:
        """Look for damage through the whole file (https://www.sqlite.org/pragma.html#pragma_quick_check)."""
        with self.read() as db:
            found = [str(row[0]) for row in db.execute("PRAGMA quick_check(1)")]
        if found != ["ok"]:
            raise StateError(f"{self.root / _DATABASE}: is damaged ({' '.join(found[0].split())}); {_REMEDY}")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        self._refuse_misuse()
        with _explained(self.root):
            try:
                db = self._idle.pop()
            except IndexError:
                db = _connect(self.root)
            try:
                yield db
            finally:
                if self._closed:
                    db.close()
                else:
                    self._idle.append(db)

    def _refuse_misuse(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError("a state directory does not cross a fork; open it again in the child process")
        if self._closed:
            raise RuntimeError("the state directory was closed")


class ChangeWatch:
    """Tells whether anything was committed since it was last asked, by whichever process. For one thread.

    It costs a few microseconds: https://www.sqlite.org/pragma.html#pragma_data_version.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._seen = self._version()

    def changed(self) -> bool:
        """Tell whether anything was committed since the last call."""
        version = self._version()
        changed, self._seen = version != self._seen, version
        return changed

    def wait(self, seconds: float, stop: threading.Event, *, poll: float = 0.02) -> bool:
        """Wait until something was committed, the time is over or ``stop`` is set; tell whether it was the first."""
        deadline = time.monotonic() + seconds
        while not self.changed():
            left = deadline - time.monotonic()
            if left <= 0 or stop.wait(min(poll, left)):
                return self.changed()
        return True

    def close(self) -> None:
        """Give the connection back."""
        self._db.close()

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])


class _Turn:
    """Writers take turns: between threads by a lock, between processes by two lock files.

    Who waits for the write lock holds the turn lock, so who has just written cannot overtake him.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._threads = threading.Lock()
        self._files: tuple[int, int] | None = None

    @contextmanager
    def take(self) -> Iterator[None]:
        deadline = time.monotonic() + TURN_SECONDS
        if not self._threads.acquire(timeout=TURN_SECONDS):
            raise self._busy()
        try:
            turn, write = self._opened()
            try:
                self._lock(turn, deadline)
                try:
                    self._lock(write, deadline)
                finally:
                    fcntl.flock(turn, fcntl.LOCK_UN)
                yield
            finally:
                fcntl.flock(write, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def _opened(self) -> tuple[int, int]:
        if self._files is None:
            with _explained(self._root):
                self._files = (_open_lock(self._root / "turn.lock"), _open_lock(self._root / "write.lock"))
        return self._files

    def _lock(self, file: int, deadline: float) -> None:
        if not _try_for(file, fcntl.LOCK_EX, deadline - time.monotonic()):
            raise self._busy()

    def _busy(self) -> StateBusy:
        return StateBusy(f"{self._root}: other writers held it for {TURN_SECONDS:.0f} s; try again")

    def __del__(self) -> None:
        for file in self._files or ():
            with suppress(OSError):
                os.close(file)


_REMEDY = "put back a copy of the directory, or name another one with --state"


def _refuse_foreign(root: Path) -> None:
    """Refuse a directory with other things in it. A bucket with something in it may be there before the first start."""
    if not root.exists():
        return
    others = sorted(path.name for path in root.iterdir() if path.name not in _OWN_NAMES)
    if others:
        raise StateError(
            f"{root}: holds other things ({others[0]!r}) and is no state directory; "
            "name an empty or a new one with --state"
        )


def _created_if_current(root: Path) -> datetime | None:
    """Return when the directory was made; None when its file is missing or of an older version.

    Raises:
        StateError: it is somebody else's, or of a newer version. Nothing was written to it.
    """
    if not (root / _DATABASE).exists():
        return None
    with closing(_connect(root)) as db:
        return _created(root, db) if _version(root, db) == SCHEMA_VERSION else None


def _created(root: Path, db: sqlite3.Connection) -> datetime:
    row = db.execute("SELECT value FROM meta WHERE name = 'created'").fetchone()
    if row is None:
        raise StateError(f"{root / _DATABASE}: is damaged (it does not say when it was made); {_REMEDY}")
    return unstamp(row[0])


def _version(root: Path, db: sqlite3.Connection) -> int:
    application = int(db.execute("PRAGMA application_id").fetchone()[0])
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if application == 0 and version == 0 and db.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
        return 0
    if application != APPLICATION_ID:
        raise StateError(f"{root / _DATABASE}: is a database of another program; name another directory with --state")
    if version > SCHEMA_VERSION:
        raise StateError(
            f"{root}: was written by a newer galley (state version {version}, this one reads up to "
            f"{SCHEMA_VERSION}); update galley, or name another directory with --state"
        )
    return version


def _bring_up_to_date(root: Path, now: datetime) -> datetime:
    """Make the tables, or change those of an older version, in one transaction; return when they were first made."""
    with _Turn(root).take(), _locked(root / "run.lock") as lock, closing(_connect(root, create=True)) as db:
        version = _version(root, db)
        if version > 0:
            _lock_for_running(root, lock)  # a system of the older version must not lose its tables while it runs
        mode = str(db.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        if mode != "wal":
            raise StateError(
                f"{root}: its file system cannot share a database between processes (journal mode {mode}); "
                "name a directory on a local disk with --state"
            )
        _migrate(db, version, now)
        created = _created(root, db)
    _sync_folder(root)
    return created


def _migrate(db: sqlite3.Connection, version: int, now: datetime) -> None:
    db.execute("BEGIN IMMEDIATE")
    for migration in _MIGRATIONS[version:]:
        for statement in migration:
            db.execute(statement)
    if version == 0:
        db.execute("INSERT INTO meta (name, value) VALUES ('created', ?)", (stamp(now),))
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    db.execute("COMMIT")


def _connect(root: Path, *, create: bool = False) -> sqlite3.Connection:
    db = sqlite3.connect(
        f"{(root / _DATABASE).as_uri()}?mode={'rwc' if create else 'rw'}",
        uri=True,
        timeout=TURN_SECONDS,
        isolation_level=None,
        check_same_thread=False,  # a connection is handed from thread to thread, never shared by two at once
        cached_statements=256,
    )
    try:
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def _explained(root: Path) -> Iterator[None]:
    """Turn what SQLite and the file system say into one line for a person."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        explained = _explain(root, error)
        if explained is None:
            raise
        raise explained from error
    except OSError as error:
        raise StateError(
            f"{error.filename or root}: {error.strerror or error}; "
            "make it usable, or name another directory with --state"
        ) from error


def _explain(root: Path, error: sqlite3.DatabaseError) -> StateError | None:
    """Return what a person can do about an error of SQLite's; None for an error of ours.

    Primary result codes: https://www.sqlite.org/rescode.html.
    """
    file = root / _DATABASE
    match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StateBusy(f"{file}: another program holds it ({error}); close that program, then try again")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StateError(f"{file}: is damaged or no database ({error}); {_REMEDY}")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return StateError(f"{file}: {error}; make the directory and its files writable for this user")
        case sqlite3.SQLITE_FULL:
            return StateError(f"{file}: the disk is full; make room, then try again")
        case sqlite3.SQLITE_IOERR:
            return StateError(f"{file}: cannot be read or written ({error}); check the disk")
    return None


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open a lock file; what is locked on it is let go of at the end."""
    with _explained(path.parent):
        file = _open_lock(path)
    try:
        yield file
    finally:
        os.close(file)


def _lock_for_running(root: Path, lock: int) -> None:
    if not _try_for(lock, fcntl.LOCK_EX, _START_SECONDS):
        pid = _number(os.pread(lock, 32, 0))
        raise StateInUse(
            f"{root}: the system runs on it already (process {pid or 'unknown'}); stop that one, "
            "or name another directory with --state",
            pid,
        )


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try_for(file: int, kind: int, seconds: float) -> bool:
    """Try to lock a file for so long, at least once; tell whether it is locked. Dies with its holder (flock(2))."""
    deadline = time.monotonic() + seconds
    poll = _SHORTEST_POLL_SECONDS
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(poll)
            poll = min(poll * 1.1, _LONGEST_POLL_SECONDS)
        else:
            return True


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _sync_folder(path: Path) -> None:
    """Make a new name in a folder outlast a power cut."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _number(text: bytes) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
