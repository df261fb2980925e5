"""What the contract suite runs against. ``aws`` (moto) and ``local`` (one machine) offer the same three functions:

``open_store(folder)``, ``open_queue(folder)`` and ``open_bucket(folder)``, each a context manager over an empty, fresh
adapter. ``folder`` is the test's own directory. ``dynamodb_local`` has a store alone, at the endpoint of a server.
Where a test needs time it stands still and is moved by the test (``clock`` in conftest.py), so adapters must read it
where time-machine can set it: ``datetime.now(UTC)`` or ``time.time()``, at each call.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from galley.queue import RunQueue

VISIBILITY = timedelta(minutes=30)
"""How long a message that was received stays hidden, as template.yaml declares it."""


@dataclass(frozen=True, slots=True)
class Received:
    """A run message as a worker gets it; ``receives`` counts how often it was received, this time included."""

    receipt: str
    body: str
    receives: int


class RunQueueUnderTest(Protocol):
    """A queue, and the other end of it: what Lambda's poller does in AWS, and the runner on one machine."""

    @property
    def queue(self) -> RunQueue:
        """The adapter under test."""
        ...

    def receive(self) -> Received | None:
        """Receive the next run message and hide it for ``VISIBILITY``; None when there is none to be had now.

        A message that has been received five times is moved to the dead instead.
        """
        ...

    def delete(self, receipt: str) -> None:
        """Remove a message that was received."""
        ...

    def send_raw(self, body: str, *, group: str) -> None:
        """Put any text into the queue of run messages, as only somebody's mistake does."""
        ...
