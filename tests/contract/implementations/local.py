"""The adapters of one machine."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from contract.implementations import VISIBILITY, Received
from galley.bucket import Bucket
from galley.store import Store
from galley_cli.local.bucket import FolderBucket
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore


@contextmanager
def open_store(folder: Path) -> Iterator[Store]:
    """Open the store of a new state directory."""
    with closing(StateDirectory.open(folder / "state")) as state:
        yield SqliteStore(state)


@dataclass(frozen=True)
class SqliteUnderTest:
    """The queues, and what the runner does."""

    queue: SqliteQueues

    def receive(self) -> Received | None:
        """Receive the next message."""
        for delivery in self.queue.receive(visibility=VISIBILITY):
            return Received(delivery.receipt, delivery.body, delivery.receives)
        return None

    def delete(self, receipt: str) -> None:
        """Remove a message that was received."""
        self.queue.delete(receipt)

    def send_raw(self, body: str, *, group: str) -> None:
        """Put any text into the queue."""
        self.queue.send_text(body, group=group, deduplication_id=f"raw-{group}")


@contextmanager
def open_queue(folder: Path) -> Iterator[SqliteUnderTest]:
    """Open the queues of a new state directory."""
    with closing(StateDirectory.open(folder / "state")) as state:
        yield SqliteUnderTest(SqliteQueues(state))


@contextmanager
def open_bucket(folder: Path) -> Iterator[Bucket]:
    """Open a folder as a bucket."""
    yield FolderBucket(folder / "bucket")
