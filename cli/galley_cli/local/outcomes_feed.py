"""The table's stream -> the terminal: what became of each run, as it happens."""

from collections.abc import Callable
from datetime import datetime, timedelta

from galley.runs import Run
from galley_cli.local.runner import IDLE
from galley_cli.local.store import SqliteStore, StreamRecord

CONSUMER = "terminal"

Tell = Callable[[StreamRecord, Run], None]
"""Tells a person about a change of a run, and how the run stands now."""


class OutcomesFeed:
    """Tells each change of a run once, whichever process made it."""

    name = "outcomes"

    def __init__(self, store: SqliteStore, tell: Tell, *, since: datetime) -> None:
        """Tell what happens from ``since`` on; what is older was told before, or is history."""
        self._store = store
        self._tell = tell
        self._since = since
        store.advance(CONSUMER, 0)

    def step(self) -> timedelta:
        """Tell what happened since the last step."""
        records = self._store.stream_after(self._store.stream_position(CONSUMER))
        if not records:
            return IDLE
        for record in records:
            run = self._store.run(record.key)
            if record.at >= self._since and run is not None:
                self._tell(record, run)
        self._store.advance(CONSUMER, records[-1].sequence)
        return timedelta()

    def close(self) -> None:
        """Nothing is handled beside ``step``."""
