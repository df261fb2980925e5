"""A state directory of its own for each test, and time that the test moves."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from galley_cli.local.state import StateDirectory


@dataclass
class Clock:
    """An instant that moves when it is told to."""

    at: datetime = datetime(2026, 3, 2, 6, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at

    def forward(self, **span: float) -> None:
        self.at += timedelta(**span)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def state(root: Path) -> Iterator[StateDirectory]:
    with closing(StateDirectory.open(root)) as opened:
        yield opened
