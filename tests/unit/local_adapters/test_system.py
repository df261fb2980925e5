"""The system of one machine, as functions see it."""

from pathlib import Path

import pytest

from contract.material import NOW
from galley import system
from galley_cli.local.state import StateDirectory
from galley_cli.local.system import LocalSystem
from support.outside import FixedSchedules
from unit.local_adapters.conftest import Clock


def test_it_is_a_system_that_opens_without_any_io(state: StateDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    schedules = FixedSchedules()
    local = LocalSystem(state, schedules, {}, now=lambda: NOW)
    undo = system.install(local)
    state.close()
    outside = system.current()
    assert outside.now() == NOW
    assert outside.schedules("any group") is schedules
    assert outside.store("any table") is outside.store("another") is local.local_store
    assert outside.queue("runs") is outside.queue("runs", "dead-runs", "dead-ticks") is local.local_queues
    assert outside.bucket("any bucket") is local.local_bucket
    undo()


def test_its_clock_is_that_of_its_queues_and_its_bucket(state: StateDirectory, clock: Clock, root: Path) -> None:
    local = LocalSystem(state, FixedSchedules(), {}, now=clock)
    local.bucket("").put("a", b"", content_type="text/plain")
    (found,) = local.bucket("").list("")
    assert found.modified == clock()
    assert (root / "bucket" / "a").exists()


def test_a_secret_is_told_by_its_name_and_a_missing_one_is_named(state: StateDirectory) -> None:
    local = LocalSystem(state, FixedSchedules(), {"local:key": "s3cret"})
    assert local.secret("local:key") == local.secret("local:key", refresh=True) == "s3cret"
    with pytest.raises(LookupError, match="secret local:other: there is none on this machine"):
        local.secret("local:other")
