"""What the unit tests of operations share: a real store on disk, since its transactions are what they rest on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from galley.store import Store
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    state = StateDirectory.open(tmp_path / "state")
    yield SqliteStore(state)
    state.close()
