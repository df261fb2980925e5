"""The same work with APScheduler, SQLAlchemy and SQLite, as one would write it: gate, claim, model call, store.

Each run is a job that is due now, kept in APScheduler's own job store. Jobs, runs and drafts are in one SQLite file, in
WAL mode and with full synchronisation like the local system's. Nothing is collected, and drafters do not wait for
each other: it does less than the local system does.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import ConflictingIdError
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import Engine, ForeignKey, String, create_engine, event, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from bench.figures import wait_until
from bench.slow_model import call
from galley.runs import RunMessage

LIMIT = 1_000


class Base(DeclarativeBase):
    """The tables."""


class Run(Base):
    """A run: one drafter's work for one slot."""

    __tablename__ = "runs"
    key: Mapped[str] = mapped_column(String, primary_key=True)
    drafter: Mapped[str] = mapped_column(String, index=True)
    slot: Mapped[str]
    status: Mapped[str]
    created: Mapped[datetime]
    drafted: Mapped[datetime | None]


class Draft(Base):
    """A draft's text."""

    __tablename__ = "drafts"
    key: Mapped[str] = mapped_column(ForeignKey("runs.key"), primary_key=True)
    text: Mapped[str]


@dataclass(frozen=True)
class Worker:
    """What a job needs."""

    engine: Engine
    calls: Path


_worker: Worker | None = None
"""APScheduler's job store keeps a job as the name of its function and its arguments, so the rest is global."""


def work(key: str, drafter: str, slot: str) -> None:
    """Draft one run, unless somebody has it already or the drafter has too many drafts undecided."""
    assert _worker is not None
    if not _claim(_worker.engine, key, drafter, slot):
        return
    text = call(_worker.calls)
    with Session(_worker.engine) as session, session.begin():
        run = session.get_one(Run, key)
        run.status, run.drafted = "pending", datetime.now(UTC)
        session.add(Draft(key=key, text=text))


def _claim(engine: Engine, key: str, drafter: str, slot: str) -> bool:
    try:
        with Session(engine) as session, session.begin():
            undecided = select(func.count()).where(Run.drafter == drafter, Run.status.in_(("drafting", "pending")))
            if session.scalar(undecided) >= LIMIT:  # type: ignore[operator]
                return False
            session.add(Run(key=key, drafter=drafter, slot=slot, status="drafting", created=datetime.now(UTC)))
    except IntegrityError:
        return False
    return True


@dataclass
class WithApscheduler:
    """A scheduler that runs."""

    engine: Engine
    scheduler: BackgroundScheduler
    calls: Path

    def send(self, messages: Sequence[RunMessage]) -> None:
        for message in messages:
            arguments = (str(message.key), message.drafter, message.slot.isoformat())
            try:
                self.scheduler.add_job(work, "date", args=arguments, id=str(message.key), misfire_grace_time=None)
            except ConflictingIdError:
                continue

    def hold(self) -> None:
        """Keep what is sent from now on in the job store, until ``let_go``."""
        self.scheduler.pause()

    def let_go(self) -> None:
        self.scheduler.resume()

    def drafts(self) -> int:
        with Session(self.engine) as session:
            return session.scalar(select(func.count()).where(Run.status == "pending")) or 0

    def model_calls(self) -> int:
        return self.calls.stat().st_size if self.calls.exists() else 0

    def wait_for_drafts(self, count: int) -> None:
        wait_until(lambda: self.drafts() >= count, lambda: f"{self.drafts()} of {count} drafts")


@contextmanager
def with_apscheduler(folder: Path, at_once: int) -> Iterator[WithApscheduler]:
    """Start a scheduler that works on so many jobs at once."""
    global _worker
    engine = durable_engine(folder / "apscheduler.sqlite", at_once)
    Base.metadata.create_all(engine)
    scheduler = BackgroundScheduler(
        jobstores={"default": SQLAlchemyJobStore(engine=engine)},
        executors={"default": ThreadPoolExecutor(at_once)},
        timezone=UTC,
    )
    _worker = Worker(engine, folder / "calls")
    scheduler.start()
    try:
        yield WithApscheduler(engine, scheduler, folder / "calls")
    finally:
        scheduler.shutdown()
        engine.dispose()
        _worker = None


def durable_engine(path: Path, at_once: int) -> Engine:
    """Return an engine whose transactions survive a power cut, as the local system's do, and whose writers queue up.

    https://docs.sqlalchemy.org/en/20/dialects/sqlite.html#pysqlite-serializable
    """
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 30}, pool_size=at_once + 4)

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
