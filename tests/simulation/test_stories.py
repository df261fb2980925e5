"""The run protocol, proven by stories: the real handlers over the real stores, in a world where anything may happen.

The tests tell a few hundred. ``make simulate`` tells tens of thousands, in chunks that each have a seed of their own:
STORIES and STORIES_ON_DYNAMODB say how many, SIMULATION_SEED which. The stories on DynamoDB are those that SQLite is
told too, as far as they go. With STORY='Story(...)', as a failure prints it, that one alone is told again.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, seed, settings

from simulation import story as words
from simulation.stores import OnDynamoDb, OnSqlite, Opened, moto_for_stories
from simulation.story import Story, stories
from simulation.telling import StoryFailed, tell
from simulation.world import World

STORIES = int(os.environ.get("STORIES", "150"))
ON_DYNAMODB = int(os.environ.get("STORIES_ON_DYNAMODB", "15"))
FIRST_SEED = int(os.environ.get("SIMULATION_SEED", "1"))
CHUNK = 250
"""So many stories are one test."""
GROUP = 10
"""So many stories are drawn from one seed. After ten, Hypothesis makes most of its stories out of those that it has."""
LEAST_OF_A_HUNDRED = {
    "crashes before a call of draft": 5,
    "crashes after a call of draft": 5,
    "crashes before a call of operator": 4,
    "deliveries doubled": 20,
    "redeliveries": 50,
    "later attempts": 10,
    "store answers lost": 20,
    "store calls turned away": 20,
    "rows became pending": 60,
    "rows became published": 25,
    "rows became skipped (gate)": 8,
    "dead: sent": 10,
    "dead: discarded": 8,
    "rows became expired (undecided)": 5,
    "rows became superseded (replaced)": 2,
    "drafts that nobody reviews": 5,
}
"""What must at least have happened in a hundred stories that are not idle: a quarter to a third of what does."""
ENOUGH = 100
"""Of fewer stories nothing is asked."""
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
AGAIN = os.environ.get("STORY", "")


def _chunks(total: int) -> Iterator[tuple[int, int]]:
    """Yield the seed of each chunk, and how many of its stories are told."""
    for number, begun in enumerate(range(0, total, CHUNK)):
        yield FIRST_SEED + number, min(CHUNK, total - begun)


@pytest.fixture(scope="module")
def moto() -> Iterator[None]:
    with moto_for_stories():
        yield


Recorded = Callable[[str, object], None]


@pytest.mark.skipif(bool(AGAIN), reason="one story is told again")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("chunk", "number"), list(_chunks(STORIES)))
def test_whatever_happens_every_guarantee_holds_on_sqlite(chunk: int, number: int, record_property: Recorded) -> None:
    _tell_many(OnSqlite, chunk, number, record_property)


@pytest.mark.skipif(bool(AGAIN), reason="one story is told again")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("chunk", "number"), list(_chunks(ON_DYNAMODB)))
def test_whatever_happens_every_guarantee_holds_on_dynamodb(
    chunk: int, number: int, record_property: Recorded, moto: None
) -> None:
    _tell_many(OnDynamoDb, chunk, number, record_property)


if AGAIN:

    @pytest.mark.parametrize("open_store", [OnSqlite, OnDynamoDb])
    def test_the_story_again(open_store: Callable[[World], Opened], moto: None) -> None:
        _tell(eval(AGAIN, vars(words)), open_store)  # noqa: S307 - a developer's own words


def _tell_many(
    open_store: type[OnSqlite] | type[OnDynamoDb], chunk: int, number: int, record_property: Recorded
) -> None:
    happened: Counter[str] = Counter()
    told: set[Story] = set()

    @settings(max_examples=GROUP, derandomize=False, database=None, deadline=None, suppress_health_check=_SLOW)
    @given(story=stories)
    def tell_one(story: Story) -> None:
        if story not in told and len(told) < number:
            told.add(story)
            happened.update(_tell(story, open_store))

    for group in range(number):
        if len(told) < number:
            seed(chunk * 10_000 + group)(tell_one)()
    for what, times in LEAST_OF_A_HUNDRED.items() if len(told) >= ENOUGH else ():
        assert happened[what] >= times * len(told) // 100, f"{len(told)} stories, and hardly any {what}"
    record_property("happened", [open_store.name, {**happened, "stories": len(told)}])


def _tell(story: Story, open_store: Callable[[World], Opened]) -> Counter[str]:
    try:
        return tell(story, open_store)
    except StoryFailed as failure:
        again = f"STORY='{story!r}' .venv/bin/python -m pytest tests/simulation"
        raise AssertionError(f"{failure}\n\nto tell it again:\n{again}") from None
