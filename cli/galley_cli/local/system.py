"""The outside world of a function on one machine: everything that AWS is elsewhere, out of one state directory."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property

from galley.bucket import Bucket
from galley.instants import utc_now
from galley.queue import RunQueue
from galley.schedules import Schedules
from galley.store import Store
from galley_cli.local.bucket import FolderBucket
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore


class LocalSystem:
    """A ``galley.system.System``. One machine has one table, one bucket and one of each queue, whatever their names."""

    def __init__(
        self,
        state: StateDirectory,
        schedules: Schedules,
        secrets: Mapping[str, str],
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Take what there is; ``secrets`` are texts by the names that functions ask for."""
        self.state = state
        self.local_schedules = schedules
        self._secrets = dict(secrets)
        self._now = now

    @cached_property
    def local_store(self) -> SqliteStore:
        """The store, with its stream."""
        return SqliteStore(self.state)

    @cached_property
    def local_queues(self) -> SqliteQueues:
        """The queues, with their consumer's side."""
        return SqliteQueues(self.state, now=self._now)

    @cached_property
    def local_bucket(self) -> FolderBucket:
        """The bucket."""
        return FolderBucket(self.state.bucket, now=self._now)

    def now(self) -> datetime:
        """Return the present instant in UTC."""
        return self._now()

    def store(self, table: str) -> Store:
        """Return the store."""
        return self.local_store

    def queue(self, runs_url: str, dead_runs_url: str = "", dead_ticks_url: str = "") -> RunQueue:
        """Return the queues."""
        return self.local_queues

    def bucket(self, name: str) -> Bucket:
        """Return the bucket."""
        return self.local_bucket

    def schedules(self, group: str) -> Schedules:
        """Return the schedules."""
        return self.local_schedules

    def secret(self, name: str, *, refresh: bool = False) -> str:
        """Return a secret's text."""
        try:
            return self._secrets[name]
        except KeyError:
            raise LookupError(f"secret {name}: there is none on this machine; set it in the environment") from None
