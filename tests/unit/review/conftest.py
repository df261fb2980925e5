"""A review desk over a real store on disk."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from galley import system
from galley.store import Store
from support.outside import SLOT, Outside
from unit.review.asking import DeskClient


@pytest.fixture
def outside(store: Store) -> Iterator[Outside]:
    outside = Outside(store_=store, at=SLOT + timedelta(minutes=10))
    undo = system.install(outside)
    yield outside
    undo()


@pytest.fixture
def desk(store: Store, outside: Outside, monkeypatch: pytest.MonkeyPatch) -> DeskClient:
    monkeypatch.setenv("GALLEY_TABLE", "table")
    return DeskClient(store, outside)
