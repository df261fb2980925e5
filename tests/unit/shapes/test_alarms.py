"""Alarms: when trouble is told, and when its end, over every sequence of looks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapes.monitor.alarms import (
    TOLD,
    Bad,
    Finding,
    Good,
    Look,
    News,
    NoData,
    Policy,
    Standing,
    State,
    Streak,
    Told,
    What,
    decide,
)

START = datetime(2026, 11, 27, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
GOOD, BAD, NO_DATA = Good("it answered 200"), Bad("it answered 503"), NoData("no route")
POLICY = Policy(failures=2, successes=2, flapping=3, flapping_within=6 * HOUR, remind=None)
ONE = replace(POLICY, failures=1, successes=1)

FINDINGS = {"g": GOOD, "b": BAD, "?": NO_DATA}
TROUBLE = {News.WENT_BAD, News.FLAPS, News.SETTLED_BAD}
ENDS = {News.IS_GOOD_AGAIN, News.SETTLED_GOOD}


def look_at(hours: float) -> Look:
    return Look(at=START + hours * HOUR, slot=START + hours * HOUR - timedelta(seconds=7))


def news_of(findings: str, policy: Policy = POLICY, every: float = 1) -> list[News]:
    """Return what looks mean that were made so many hours apart and all stored."""
    standing: Standing | None = None
    heard = []
    for place, finding in enumerate(findings):
        news, standing = decide(standing, FINDINGS[finding], look_at(place * every), policy)
        heard.append(news)
    return heard


def told(findings: str, policy: Policy = POLICY, every: float = 1) -> dict[int, News]:
    """Return what is told, by the place of the look."""
    return {place: news for place, news in enumerate(news_of(findings, policy, every)) if news in TOLD}


@pytest.mark.parametrize(
    ("findings", "policy", "expected"),
    [
        pytest.param("gggg", POLICY, {}, id="all is well"),
        pytest.param("bb", POLICY, {1: News.WENT_BAD}, id="bad from the first look"),
        pytest.param("ggbgbgb", POLICY, {}, id="never twice in a row"),
        pytest.param("ggbbbb", POLICY, {3: News.WENT_BAD}, id="an outage is told once"),
        pytest.param("ggbbgg", POLICY, {3: News.WENT_BAD, 5: News.IS_GOOD_AGAIN}, id="and so is its end"),
        pytest.param("ggbbgbgg", POLICY, {3: News.WENT_BAD, 7: News.IS_GOOD_AGAIN}, id="a bounce ends nothing"),
        pytest.param("gb", ONE, {1: News.WENT_BAD}, id="one failure is enough where the policy says so"),
        pytest.param("gb?g", ONE, {1: News.WENT_BAD, 3: News.IS_GOOD_AGAIN}, id="what was seen after no data ends it"),
        pytest.param("ggbb????", POLICY, {3: News.WENT_BAD}, id="no data ends nothing"),
        pytest.param("ggbbg?g", POLICY, {3: News.WENT_BAD}, id="good looks are counted anew after no data"),
        pytest.param("ggbbg?gg", POLICY, {3: News.WENT_BAD, 7: News.IS_GOOD_AGAIN}, id="and then end it"),
        pytest.param("ggb?b", POLICY, {4: News.WENT_BAD}, id="bad looks around no data are in a row"),
        pytest.param("ggbb?bb", POLICY, {3: News.WENT_BAD}, id="it is the same outage after no data"),
        pytest.param("????", POLICY, {}, id="nothing is known at all"),
    ],
)
def test_what_is_told(findings: str, policy: Policy, expected: dict[int, News]) -> None:
    assert told(findings, policy) == expected


@pytest.mark.parametrize(
    ("finding", "state"), [(GOOD, State.GOOD), (BAD, State.BAD), (NO_DATA, State.UNKNOWN)], ids=["good", "bad", "?"]
)
def test_the_state_is_as_the_looks_in_a_row_say_and_since_the_first_of_them(finding: Finding, state: State) -> None:
    first_news, first = decide(None, finding, look_at(0), POLICY)
    _, second = decide(first, finding, look_at(1), POLICY)
    assert first.state is State.UNKNOWN
    assert first_news in {News.NOT_YET_GOOD, News.NOT_YET_BAD, News.NO_DATA}
    assert (second.state, second.since) == (state, START)


@pytest.mark.parametrize(
    ("findings", "state", "since"),
    [
        pytest.param("ggbgg", State.GOOD, 0, id="one failed look changes nothing"),
        pytest.param("bbgbb", State.BAD, 0, id="nor does one good look"),
        pytest.param("gg??", State.UNKNOWN, 2, id="unknown since the first look without data"),
        pytest.param("gg?gg", State.GOOD, 3, id="good anew after it"),
        pytest.param("bb?b", State.BAD, 0, id="bad all the while"),
    ],
)
def test_since_when_the_state_is_what_it_is(findings: str, state: State, since: int) -> None:
    standing: Standing | None = None
    for place, finding in enumerate(findings):
        _, standing = decide(standing, FINDINGS[finding], look_at(place), POLICY)
    assert standing is not None
    assert (standing.state, standing.since) == (state, look_at(since).at)


def test_trouble_is_told_again_once_its_time_has_passed() -> None:
    policy = replace(ONE, remind=timedelta(hours=3))
    assert told("bbbbbbbb", policy) == {0: News.WENT_BAD, 3: News.REMINDER, 6: News.REMINDER}
    assert told("bbb?bb", policy) == {0: News.WENT_BAD, 4: News.REMINDER}
    two = replace(policy, successes=2)
    assert told("bbbgbb", two) == {0: News.WENT_BAD, 4: News.REMINDER}, "a good look is not told as still bad"


def test_a_reminder_knows_since_when_it_is_and_what_was_told_last() -> None:
    standing: Standing | None = None
    for place in range(4):
        news, standing = decide(standing, BAD, look_at(place), replace(ONE, remind=3 * HOUR))
    assert news is News.REMINDER
    assert standing is not None
    assert standing.told == Told(What.TROUBLE, look_at(3).slot, look_at(3).at, START)


@pytest.mark.parametrize(
    ("findings", "every", "expected"),
    [
        pytest.param(
            "bgbgb" + "gbgb" * 3,
            1,
            {0: News.WENT_BAD, 1: News.IS_GOOD_AGAIN, 2: News.WENT_BAD, 3: News.IS_GOOD_AGAIN, 4: News.FLAPS},
            id="the third outage within the time is told as flapping, and no other",
        ),
        pytest.param(
            "bgbgb" + "g" * 8,
            1,
            {
                0: News.WENT_BAD,
                1: News.IS_GOOD_AGAIN,
                2: News.WENT_BAD,
                3: News.IS_GOOD_AGAIN,
                4: News.FLAPS,
                11: News.SETTLED_GOOD,
            },
            id="it ends when it was good for the time",
        ),
        pytest.param(
            "bgbgb" + "b" * 8,
            1,
            {
                0: News.WENT_BAD,
                1: News.IS_GOOD_AGAIN,
                2: News.WENT_BAD,
                3: News.IS_GOOD_AGAIN,
                4: News.FLAPS,
                10: News.SETTLED_BAD,
            },
            id="or when it was bad for the time, which is told as trouble",
        ),
        pytest.param(
            "bgbgb",
            1.5,
            {0: News.WENT_BAD, 1: News.IS_GOOD_AGAIN, 2: News.WENT_BAD, 3: News.IS_GOOD_AGAIN, 4: News.WENT_BAD},
            id="three outages of which the last begins when the time is over are three",
        ),
        pytest.param(
            "bgbgb",
            3,
            {0: News.WENT_BAD, 1: News.IS_GOOD_AGAIN, 2: News.WENT_BAD, 3: News.IS_GOOD_AGAIN, 4: News.WENT_BAD},
            id="three outages in more than the time are three",
        ),
        pytest.param(
            "bgbgb" + "ggg?ggggggg",
            1,
            {
                0: News.WENT_BAD,
                1: News.IS_GOOD_AGAIN,
                2: News.WENT_BAD,
                3: News.IS_GOOD_AGAIN,
                4: News.FLAPS,
                15: News.SETTLED_GOOD,
            },
            id="no data is not steady",
        ),
    ],
)
def test_flapping(findings: str, every: float, expected: dict[int, News]) -> None:
    assert told(findings, ONE, every) == expected


def test_flapping_is_reminded_of_and_settles_no_later_for_that() -> None:
    heard = told("bgbgb" + "gb" * 6 + "g" * 8, replace(ONE, remind=4 * HOUR))
    assert {place: news for place, news in heard.items() if place > 3} == {
        4: News.FLAPS,
        8: News.FLAPPING_REMINDER,
        12: News.FLAPPING_REMINDER,
        16: News.FLAPPING_REMINDER,
        20: News.FLAPPING_REMINDER,
        23: News.SETTLED_GOOD,
    }


def test_what_flapped_and_settled_as_bad_ends_like_any_trouble() -> None:
    heard = told("bgbgb" + "b" * 7 + "gb", ONE)
    assert heard[10] is News.SETTLED_BAD
    assert heard[12] is News.IS_GOOD_AGAIN
    assert heard[13] is News.WENT_BAD


def test_an_end_is_told_only_where_the_trouble_was() -> None:
    untold = Standing(State.BAD, START, Streak(State.BAD, 9, START))
    assert decide(untold, GOOD, look_at(1), ONE)[0] is News.FINE
    assert decide(untold, BAD, look_at(1), ONE)[0] is News.WENT_BAD


@dataclass(frozen=True)
class Step:
    """A look that found something, some minutes after the last, and whether what it means was stored."""

    minutes: int
    finding: Finding
    stored: bool


@dataclass(frozen=True)
class Heard:
    step: Step
    at: datetime
    news: News
    before: Standing | None
    after: Standing


POLICIES = st.builds(
    Policy,
    failures=st.integers(1, 4),
    successes=st.integers(1, 4),
    flapping=st.integers(2, 4),
    flapping_within=st.integers(1, 12).map(lambda hours: timedelta(hours=hours)),
    remind=st.none() | st.integers(1, 24).map(lambda hours: timedelta(hours=hours)),
)
RUNS_OF_LOOKS = st.lists(
    st.tuples(st.sampled_from([GOOD, BAD, NO_DATA]), st.integers(1, 8)).map(lambda run: [run[0]] * run[1]), max_size=20
).map(lambda runs: [finding for run in runs for finding in run])


@st.composite
def stories(draw: st.DrawFn) -> tuple[Policy, list[Heard]]:
    """Draw a policy and looks, some of which were not stored, and what each of them means."""
    policy = draw(POLICIES)
    heard: list[Heard] = []
    standing: Standing | None = None
    at = START
    for finding in draw(RUNS_OF_LOOKS):
        step = Step(draw(st.sampled_from([1, 5, 60, 400])), finding, draw(st.integers(0, 7)) > 0)
        at += timedelta(minutes=step.minutes)
        news, after = decide(standing, finding, Look(at, at), policy)
        heard.append(Heard(step, at, news, standing, after))
        standing = after if step.stored else standing
    return policy, heard


def stored(heard: Sequence[Heard]) -> list[Heard]:
    return [one for one in heard if one.step.stored]


def says_the_same(heard: Sequence[Heard], finding: Finding, *, over_no_data: bool) -> int:
    """Return how many of the last looks found this, in a row."""
    looks = 0
    for one in reversed(heard):
        if one.step.finding == finding:
            looks += 1
        elif not (over_no_data and isinstance(one.step.finding, NoData)):
            break
    return looks


@given(stories())
def test_an_end_follows_a_trouble_that_was_stored_and_there_is_one_for_each(story: tuple[Policy, list[Heard]]) -> None:
    _, heard = story
    is_told = False
    for one in heard:
        if one.news in ENDS:
            assert is_told, "an end was told of what nobody was told"
        if one.news in {News.WENT_BAD, News.FLAPS}:
            assert not is_told, "an outage was told twice"
        if one.step.stored and one.news in TROUBLE | ENDS:
            is_told = one.news in TROUBLE


@given(stories())
def test_no_data_ends_nothing_and_tells_nothing(story: tuple[Policy, list[Heard]]) -> None:
    _, heard = story
    for one in heard:
        if isinstance(one.step.finding, NoData):
            assert one.news is News.NO_DATA
            assert one.after.state is State.UNKNOWN
            assert one.after.told == (one.before.told if one.before else None)


@given(stories())
def test_so_many_looks_in_a_row_say_it_before_it_is_so(story: tuple[Policy, list[Heard]]) -> None:
    policy, heard = story
    for place, one in enumerate(heard):
        known = [*stored(heard[:place]), one]
        if one.after.state is State.BAD and (one.before is None or one.before.state is not State.BAD):
            assert says_the_same(known, BAD, over_no_data=True) >= policy.failures
        if one.after.state is State.GOOD and (one.before is None or one.before.state is not State.GOOD):
            assert says_the_same(known, GOOD, over_no_data=False) >= policy.successes
        if one.news in TROUBLE | {News.REMINDER}:
            assert one.step.finding == BAD
            assert one.after.state is State.BAD
        if one.news in ENDS:
            assert one.step.finding == GOOD
            assert one.after.state is State.GOOD


@given(stories())
def test_what_is_looked_at_long_enough_is_told(story: tuple[Policy, list[Heard]]) -> None:
    policy, heard = story
    for place, one in enumerate(heard):
        known = [*stored(heard[:place]), one]
        if says_the_same(known, BAD, over_no_data=True) >= policy.failures:
            assert one.step.finding == NO_DATA or (one.after.told is not None and one.after.told.what is not What.END)
        if says_the_same(known, GOOD, over_no_data=False) >= policy.successes:
            assert one.after.told is None or one.after.told.what is not What.TROUBLE


@given(stories())
def test_no_more_troubles_are_told_within_the_time_of_flapping_than_it_takes(story: tuple[Policy, list[Heard]]) -> None:
    policy, heard = story
    troubles = [one.at for one in stored(heard) if one.news in TROUBLE]
    for first in troubles:
        assert sum(first <= at < first + policy.flapping_within for at in troubles) <= policy.flapping


@given(stories())
def test_a_standing_stays_small(story: tuple[Policy, list[Heard]]) -> None:
    policy, heard = story
    for one in heard:
        assert len(one.after.troubles) <= policy.flapping


@given(stories())
def test_the_same_is_told_again_only_once_its_time_has_passed(story: tuple[Policy, list[Heard]]) -> None:
    policy, heard = story
    last: datetime | None = None
    for one in heard:
        if one.news is News.REMINDER:
            assert policy.remind is not None
            assert last is not None
            assert one.at - last >= policy.remind
        if one.step.stored and one.news in TROUBLE | {News.REMINDER}:
            last = one.at
