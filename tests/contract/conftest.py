"""Every test of this folder runs once for each implementation that is there."""

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import time_machine

from contract.implementations import RunQueueUnderTest
from galley.bucket import Bucket
from galley.store import Store

IMPLEMENTATIONS = [name for name in ("aws", "local") if find_spec(f"contract.implementations.{name}") is not None]
START = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)


@pytest.fixture(params=IMPLEMENTATIONS)
def implementation(request: pytest.FixtureRequest) -> Any:
    """The module whose adapters the test runs on."""
    return import_module(f"contract.implementations.{request.param}")


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """Time, which stands still until the test moves it."""
    with time_machine.travel(START, tick=False) as traveller:
        yield traveller


@pytest.fixture
def store(implementation: Any, tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with implementation.open_store(tmp_path) as opened:
        yield opened


@pytest.fixture
def queues(implementation: Any, tmp_path: Path, clock: time_machine.Traveller) -> Iterator[RunQueueUnderTest]:
    """Empty queues, both of their ends."""
    with implementation.open_queue(tmp_path) as opened:
        yield opened


@pytest.fixture
def bucket(implementation: Any, tmp_path: Path) -> Iterator[Bucket]:
    """An empty bucket."""
    with implementation.open_bucket(tmp_path) as opened:
        yield opened
