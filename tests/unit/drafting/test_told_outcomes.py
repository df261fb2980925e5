"""Whatever becomes of a run is counted under its name: silence is a defect."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from attempt import Delivery, Workplace
from drafter import InvalidDrafter
from drafting import draft_run
from galley import observe
from galley.store import Limits, Store
from support.outside import SLOT, FixedSchedules, RecordingQueue, message

MINUTE = timedelta(minutes=1)
LIMITS = Limits(pending=3, daily_budget_nanousd=None, worst_cost_nanousd=0)


def unknown(name: str) -> Any:
    raise InvalidDrafter(f"drafter {name!r} is not known")


def nothing(store: Store) -> None:
    """Leave the store as it is."""


def pause(store: Store) -> None:
    store.pause("daily-digest", "on holiday", now=SLOT)


def crash_and_pause(store: Store) -> None:
    store.claim(message(), LIMITS, owner="crashed", now=SLOT, lease_until=SLOT + MINUTE)
    pause(store)


@pytest.mark.parametrize(
    ("before", "counted"),
    [
        pytest.param(nothing, "run_failed", id="failed"),
        pytest.param(pause, "run_skipped_paused", id="skipped before it was begun"),
        pytest.param(crash_and_pause, "run_skipped_paused", id="skipped after it was begun"),
    ],
)
def test_an_outcome_of_drafting_is_counted_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, before: Callable[[Store], None], counted: str
) -> None:
    told: list[str] = []
    monkeypatch.setattr(observe, "count", told.append)
    before(store)
    outside: Any = {"bucket": None, "model": None, "fetch": None}
    place = Workplace(
        store=store,
        queue=RecordingQueue(),
        schedules=FixedSchedules(),
        desk_url="https://desk.example",
        now=lambda: SLOT + MINUTE,
        drafter=unknown,
        **outside,
    )

    draft_run(Delivery(message().model_dump_json(), "receipt", 1), place, "worker", 5 * MINUTE)

    assert told == [counted]
