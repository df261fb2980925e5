"""Every test of this folder runs once for each implementation."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import time_machine

from contract.implementations import RunQueueUnderTest, aws, dynamodb_local, local
from galley.bucket import Bucket
from galley.store import Store
from galley_cli.dry_bucket import DryBucket
from support.dynamodb_local import LOOPBACK

START = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
ON_DYNAMODB_LOCAL = pytest.param("dynamodb_local", marks=LOOPBACK)


@pytest.fixture(params=["aws", "local"])
def implementation(request: pytest.FixtureRequest) -> Any:
    """The module whose adapters the test runs on."""
    return {"aws": aws, "local": local}[request.param]


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """Time, which stands still until the test moves it."""
    with time_machine.travel(START, tick=False) as traveller:
        yield traveller


@pytest.fixture(params=["aws", "local", ON_DYNAMODB_LOCAL])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with _empty_store(request, tmp_path) as opened:
        yield opened


@pytest.fixture(params=["local", ON_DYNAMODB_LOCAL, pytest.param("dynamodb_local_contended", marks=LOOPBACK)])
def shared_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store that several threads may use at once: moto is none."""
    with _empty_store(request, tmp_path) as opened:
        yield opened


@pytest.fixture
def queues(implementation: Any, tmp_path: Path, clock: time_machine.Traveller) -> Iterator[RunQueueUnderTest]:
    """Empty queues, both of their ends."""
    with implementation.open_queue(tmp_path) as opened:
        yield opened


@pytest.fixture(params=["aws", "local", "dry"])
def bucket(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bucket]:
    """An empty bucket."""
    with (aws if request.param == "aws" else local).open_bucket(tmp_path) as opened:
        yield DryBucket(opened) if request.param == "dry" else opened


def _empty_store(request: pytest.FixtureRequest, folder: Path) -> AbstractContextManager[Store]:
    match request.param:
        case "aws":
            return aws.open_store(folder)
        case "local":
            return local.open_store(folder)
        case "dynamodb_local":
            return dynamodb_local.open_store(request.getfixturevalue("dynamodb_local"))
        case "dynamodb_local_contended":
            return dynamodb_local.open_contended_store(request.getfixturevalue("dynamodb_local"))
        case other:
            raise AssertionError(f"no implementation is called {other}")
