"""The table's stream -> the terminal: what became of each run, as it happens."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from galley.runs import Run, RunKey
from galley.store import UnreadableRow
from galley_cli.local.runner import IDLE, Report
from galley_cli.local.store import SqliteStore, StreamRecord

CONSUMER = "terminal"

_logger = logging.getLogger(__name__)

Tell = Callable[[StreamRecord, Run], None]
"""Tells a person about a change of a run, and how the run stands now."""


class OutcomesFeed:
    """Tells each change of a run once, whichever process made it."""

    name = "outcomes"

    def __init__(self, store: SqliteStore, tell: Tell, *, since: datetime, report: Report = _logger.warning) -> None:
        """Tell what happens from ``since`` on; what is older was told before, or is history.

        ``report`` is told one line, once, for each run whose row cannot be read.
        """
        self._store = store
        self._tell = tell
        self._since = since
        self._report = report
        self._unreadable: set[RunKey] = set()
        store.advance(CONSUMER, 0)

    def step(self) -> timedelta:
        """Tell what happened since the last step."""
        records = self._store.stream_after(self._store.stream_position(CONSUMER))
        if not records:
            return IDLE
        done = None
        try:
            for record in records:
                if record.at >= self._since:
                    self._tell_of(record)
                done = record.sequence
        finally:
            if done is not None:
                self._store.advance(CONSUMER, done)
        return timedelta()

    def _tell_of(self, record: StreamRecord) -> None:
        try:
            run = self._store.run(record.key)
        except UnreadableRow as error:
            if record.key not in self._unreadable:
                self._unreadable.add(record.key)
                self._report(f"a run changed and cannot be read: {error}")
            return
        if run is not None:
            self._tell(record, run)

    def close(self) -> None:
        """Nothing is handled beside ``step``."""
