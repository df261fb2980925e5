"""A model that is overloaded for an hour: nothing is lost, nothing dies, and it is not hammered."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from galley.instants import format_instant
from galley.runs import Status
from simulation.model_api import ModelApi
from simulation.stores import OnDynamoDb, OnSqlite, Opened, moto_for_stories
from simulation.story import ModelSays, Says, Settings, Story, Tick, Wait
from simulation.telling import Telling
from simulation.world import BEGIN, World

OUTAGE = timedelta(hours=1)
MOST_CALLS_IN_AN_HOUR = 9
"""Waits of 30, 60, 120, 240, 480 and then 900 seconds, each less a quarter at most: the ninth call is past the hour."""


@dataclass
class _Overloaded(ModelApi):
    """Answers 529 until an instant; ``refused`` are the instants at which it did, for each run."""

    until: datetime = BEGIN + OUTAGE + timedelta(minutes=2)
    refused: dict[str, list[datetime]] = field(default_factory=dict)

    def _next(self, key: str) -> ModelSays:
        if self.world.now >= self.until:
            return ModelSays(Says.ANSWERS)
        self.refused.setdefault(key, []).append(self.world.now)
        return ModelSays(Says.OVERLOADED)


@pytest.mark.parametrize(
    ("open_store", "grace_minutes", "drafted"),
    [(OnSqlite, 240, True), (OnSqlite, 65, True), (OnSqlite, 40, False), (OnDynamoDb, 65, True)],
)
def test_an_hour_of_529_delays_what_its_grace_allows_and_buries_nothing(
    open_store: Callable[[World], Opened], grace_minutes: int, drafted: bool
) -> None:
    story = Story(
        seed=7,
        settings=Settings(limits=(2, 2, 2), budgets=(None, 8, None), grace_minutes=grace_minutes, workers=3),
        steps=(Tick(schedule=0, items=2), Wait(130)),
    )
    with moto_for_stories():
        telling = Telling(story, open_store, api=_Overloaded)
        happened = telling.tell()
        runs = [telling.opened.plain.run(run.key) for run in telling.checks.rows.values()]
    slot = datetime(2026, 11, 27, 21, 0, tzinfo=BEGIN.tzinfo)
    first = [run for run in runs if run is not None and run.slot == slot]
    assert len(first) == 3
    if drafted:
        assert [run.status for run in first] == [Status.PENDING] * 3
    else:
        assert [(run.status, run.reason) for run in first] == [(Status.SKIPPED, "misfired")] * 3
    assert not telling.sqs.dead_runs.accepted
    assert happened["later attempts"] >= 3 * 5
    assert isinstance(telling.api, _Overloaded)
    assert telling.api.refused.keys() >= {str(run.key) for run in first}
    for key, calls in telling.api.refused.items():
        assert len(calls) <= MOST_CALLS_IN_AN_HOUR, (key, [format_instant(at) for at in calls])
        waits = [later - before for before, later in pairwise(calls)]
        assert all(wait >= timedelta(seconds=20) for wait in waits)
