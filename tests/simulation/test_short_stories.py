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
    Ruled,
    Says,
    Settings,
    Side,
    Slow,
    Step,
    Story,
    Sweep,
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


def _dying_at_each_call(calls: int, *after: Step) -> tuple[Step, ...]:
    """Return so many drafts, whose workers die one call later each time, and what happens after each."""
    return tuple(
        one
        for call in range(1, calls + 1)
        for one in (Crash(Function.DRAFT, call, DIES[call % 2]), ByHand(items=2), Wait(1), *after, Wait(40))
    )


@pytest.mark.parametrize(("open_store", "seeds"), [(OnSqlite, 8), (OnDynamoDb, 3)])
@pytest.mark.parametrize(
    ("ruled", "steps", "accidents"),
    [
        pytest.param(
            Ruled(supersede=True),
            _dying_at_each_call(14),
            ("drafts superseded by draft", "drafts superseded by recover"),
            id="who replaces an older draft dies at any call of it",
        ),
        pytest.param(
            Ruled(supersede=True),
            (
                *(ByHand(), Wait(2), Crash(Function.DRAFT, 8, Side.BEFORE), ByHand(), Wait(1)),
                *(Review(nth=1, verdicts=(Verdict.APPROVE, Verdict.REJECT)), Wait(5)),
            ),
            ("decisions answered 200", "drafts superseded by recover"),
            id="a newer draft is decided before the older one is withdrawn",
        ),
        pytest.param(
            Ruled(names=True),
            _dying_at_each_call(14),
            ("drafts superseded by draft", "drafts superseded by recover"),
            id="a draft names those whose place it takes, and its worker dies",
        ),
        pytest.param(
            Ruled(unread=True),
            _dying_at_each_call(14, Review()),
            ("drafts that nobody reviews", "rows became published"),
            id="whose drafts nobody reviews dies at any call",
        ),
        pytest.param(
            Ruled(expire_hours=1),
            (ByHand(), Wait(60), Sweep(), Review(), Wait(5)) * 6,
            ("rows became expired (undecided)", "rows became approved"),
            id="a draft expires at the moment of its decision",
        ),
    ],
)
def test_an_accident_leaves_no_draft_that_its_rules_take_away(
    open_store: Callable[[World], Opened], seeds: int, ruled: Ruled, steps: tuple[Step, ...], accidents: tuple[str, ...]
) -> None:
    happened: Counter[str] = Counter()
    for seed in range(seeds):
        happened.update(tell(Story(seed, Settings(limits=(3,), rules=(ruled,)), steps), open_store))
    assert not [accident for accident in accidents if not happened[accident]], happened
