"""Short stories, each about one accident that random ones meet too rarely. What happens when is up to the seed.

Each names what its accident is counted as, and fails where none of its seeds met it.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from simulation.stores import OnDynamoDb, OnSqlite, Opened, moto_for_stories
from simulation.story import (
    Backfill,
    ByHand,
    Crash,
    Discard,
    Function,
    Leap,
    ModelSays,
    Resend,
    ResendAll,
    Review,
    Says,
    Settings,
    Side,
    Slow,
    Step,
    Story,
    Throttle,
    Tick,
    Twice,
    Undeleted,
    Unknown,
    Verdict,
    Wait,
)
from simulation.telling import tell
from simulation.world import World


@pytest.fixture(scope="module", autouse=True)
def moto() -> Iterator[None]:
    with moto_for_stories():
        yield


DIES = (Side.BEFORE, Side.AFTER)


def _at_each_call(step: Step, calls: int, *before: Step) -> tuple[Step, ...]:
    """Return a step so often that its person dies once at each call of it, and somebody who lives does it again."""
    return tuple(
        one
        for call in range(1, calls + 1)
        for one in (*before, Wait(2), Crash(Function.OPERATOR, call, DIES[call % 2]), step, Wait(1), step, Wait(1))
    )


@pytest.mark.parametrize(("open_store", "seeds"), [(OnSqlite, 16), (OnDynamoDb, 5)])
@pytest.mark.parametrize(
    ("limit", "steps", "accidents"),
    [
        pytest.param(
            3,
            (Twice(8), Slow(1), Slow(200), ModelSays(Says.BROKEN), ByHand(items=2), Backfill(hours=3), Wait(8)),
            ("redeliveries doubled",),
            id="a message whose receives must be saved is handed to two invocations at once",
        ),
        pytest.param(
            3,
            (Slow(200), ByHand(items=4), Wait(1), Throttle(4, seconds=2), Backfill(hours=3), Leap(35), Wait(40)),
            ("frozen invocations", "messages buried by SQS", "drafts whose cursor another run had moved"),
            id="a worker that was frozen wakes up after its message was buried and the next run moved its cursor",
        ),
        pytest.param(
            1,
            (ByHand(), Unknown(), Crash(Function.DRAFT, 2, Side.BEFORE), Backfill(hours=3), Unknown(), Wait(35)),
            ("crashes before a call of draft", "takes-over of a dead lease"),
            id="a run claimed while its drafter's file is broken is taken over after it is mended",
        ),
        pytest.param(
            3,
            (ByHand(items=2), Leap(35), Wait(60)),
            ("frozen invocations", "takes-over of a dead lease"),
            id="a worker that was frozen wakes up after its run was taken over",
        ),
        pytest.param(
            1,
            (ByHand(), Review(tampers=True), Wait(5)),
            ("texts changed by hand", "rows became publish_unknown"),
            id="a text is changed by hand between its reading and its approval",
        ),
        pytest.param(
            1,
            (Undeleted(3), ByHand(), Wait(2), Review(verdicts=(Verdict.REJECT,)), ByHand(), Wait(35)),
            ("messages not deleted", "redeliveries", "rows became rejected (other)"),
            id="a message comes back after its run was decided",
        ),
        pytest.param(
            30,
            _at_each_call(Resend(), 12, ModelSays(Says.BAD_REQUEST), ByHand()),
            (
                "crashes before a call of operator",
                "crashes after a call of operator",
                "dead: sent",
                "dead: sent before",
            ),
            id="who sends a failed run again dies at any call of it",
        ),
        pytest.param(
            30,
            _at_each_call(Discard(), 10, ModelSays(Says.BAD_REQUEST), ByHand()),
            ("crashes before a call of operator", "crashes after a call of operator", "failed runs dismissed"),
            id="who discards failed runs dies at any call of it",
        ),
        pytest.param(
            1,
            (
                ModelSays(Says.BAD_REQUEST, times=50),
                *(step for _ in range(3) for step in (ByHand(), Wait(2))),
                *(ResendAll(), Resend(1), Discard(2), ResendAll(), Wait(5)) * 2,
            ),
            ("dead: not found", "dead: discarded", "dead: sent"),
            id="several people send the same runs again at once, or discard them",
        ),
        pytest.param(
            1,
            (Tick(times=0), Tick(times=0), Crash(Function.OPERATOR, 6, Side.BEFORE), Resend(), Wait(1), ResendAll()),
            ("dead ticks taken away", "crashes before a call of operator"),
            id="a tick that Scheduler could not deliver is sent again, and again",
        ),
    ],
)
def test_an_accident_breaks_no_guarantee(
    open_store: Callable[[World], Opened], seeds: int, limit: int, steps: tuple[Step, ...], accidents: tuple[str, ...]
) -> None:
    happened: Counter[str] = Counter()
    for seed in range(seeds):
        happened.update(tell(Story(seed, Settings(limits=(limit,)), steps), open_store))
    assert not [accident for accident in accidents if not happened[accident]], happened
