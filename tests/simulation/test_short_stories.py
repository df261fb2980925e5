"""Short stories, each about one accident that random ones meet too rarely. What happens when is up to the seed."""

from collections.abc import Callable, Iterator

import pytest

from simulation.stores import OnDynamoDb, OnSqlite, Opened, moto_for_stories
from simulation.story import (
    Backfill,
    ByHand,
    Crash,
    Function,
    Leap,
    ModelSays,
    Review,
    Says,
    Settings,
    Side,
    Step,
    Story,
    Twice,
    Unknown,
    Wait,
)
from simulation.telling import tell
from simulation.world import World


@pytest.fixture(scope="module", autouse=True)
def moto() -> Iterator[None]:
    with moto_for_stories():
        yield


@pytest.mark.parametrize(("open_store", "seeds"), [(OnSqlite, 16), (OnDynamoDb, 4)])
@pytest.mark.parametrize(
    ("limit", "steps"),
    [
        pytest.param(
            3,
            (ModelSays(Says.BROKEN), ByHand(items=2), Backfill(hours=3), Twice(), Wait(5)),
            id="the second of two invocations of one message deletes it while the first is at work",
        ),
        pytest.param(
            1,
            (ByHand(), Unknown(), Crash(Function.DRAFT, 2, Side.BEFORE), Backfill(hours=3), Unknown(), Wait(35)),
            id="a run claimed while its drafter's file is broken is taken over after it is mended",
        ),
        pytest.param(
            3,
            (ByHand(items=2), Leap(35), Wait(60)),
            id="a worker that was frozen wakes up after its run was taken over",
        ),
        pytest.param(
            1,
            (ByHand(), Review(tampers=True), Wait(5)),
            id="a text is changed by hand between its reading and its approval",
        ),
    ],
)
def test_an_accident_breaks_no_guarantee(
    open_store: Callable[[World], Opened], seeds: int, limit: int, steps: tuple[Step, ...]
) -> None:
    for seed in range(seeds):
        tell(Story(seed, Settings(limits=(limit,)), steps), open_store)
