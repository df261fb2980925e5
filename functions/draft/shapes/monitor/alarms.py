"""When a monitor tells that something has gone wrong, and when that it is over: decided without looking at anything.

One alarm is about one thing that can go wrong with one source. It is decided anew with each look, from how it stood
after the last look whose outcome was stored; what is told and what is remembered of it are stored together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

MOST_COUNTED = 100
"""Looks in a row are counted up to here. More are never asked for."""


@dataclass(frozen=True, slots=True)
class Good:
    """A look found it well; ``how`` is told when that is news."""

    how: str


@dataclass(frozen=True, slots=True)
class Bad:
    """A look found it not well; ``why`` is told when that is news."""

    why: str


@dataclass(frozen=True, slots=True)
class NoData:
    """A look found nothing out, or was not made; ``why`` says what hindered it."""

    why: str


Finding = Good | Bad | NoData


class State(StrEnum):
    """What is known: it is so once enough looks in a row have said it, and unknown once a look found nothing out."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"


class What(StrEnum):
    """What a draft told of an alarm."""

    TROUBLE = "trouble"
    FLAPPING = "flapping"
    END = "end"


@dataclass(frozen=True, slots=True)
class Told:
    """What the last draft about this alarm told.

    ``slot`` is the slot of that draft's run, ``at`` when it looked; ``since`` is when what it told of had begun. All
    three are in UTC.
    """

    what: What
    slot: datetime
    at: datetime
    since: datetime


@dataclass(frozen=True, slots=True)
class Streak:
    """How many of the last looks in a row said the same, good or bad, and when the first of them was (in UTC)."""

    says: State
    looks: int
    began: datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """How an alarm stands after a look.

    ``since`` is the first of the looks that made the state what it is; ``troubles`` are the latest looks that told of
    trouble, oldest first, no more of them than flapping takes. Instants are in UTC.
    """

    state: State
    since: datetime
    streak: Streak | None = None
    told: Told | None = None
    troubles: tuple[datetime, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """When a look was made, in UTC, and for which slot."""

    at: datetime
    slot: datetime


@dataclass(frozen=True, slots=True)
class Policy:
    """How sure an alarm must be before it tells, and how often it tells the same. ``remind`` of None is never."""

    failures: int
    successes: int
    flapping: int
    flapping_within: timedelta
    remind: timedelta | None


class News(StrEnum):
    """What a look means. Only what is in ``TOLD`` is drafted."""

    FINE = "fine"
    NO_DATA = "no_data"
    NOT_YET_BAD = "not_yet_bad"
    NOT_YET_GOOD = "not_yet_good"
    WENT_BAD = "went_bad"
    STILL_BAD = "still_bad"
    REMINDER = "reminder"
    IS_GOOD_AGAIN = "is_good_again"
    FLAPS = "flaps"
    STILL_FLAPS = "still_flaps"
    FLAPPING_REMINDER = "flapping_reminder"
    SETTLED_BAD = "settled_bad"
    SETTLED_GOOD = "settled_good"


TOLD = frozenset(
    {
        News.WENT_BAD,
        News.REMINDER,
        News.IS_GOOD_AGAIN,
        News.FLAPS,
        News.FLAPPING_REMINDER,
        News.SETTLED_BAD,
        News.SETTLED_GOOD,
    }
)


def is_open(standing: Standing) -> bool:
    """Tell whether trouble was told whose end was not."""
    return standing.told is not None and standing.told.what is not What.END


def decide(before: Standing | None, finding: Finding, look: Look, policy: Policy) -> tuple[News, Standing]:
    """Return what a look means, and how the alarm stands after it.

    Trouble is told once it was found so often in a row as the policy says, and its end likewise, if the trouble was
    told. A look that finds nothing out makes the state unknown and ends nothing: the good looks are counted anew after
    it, while bad ones on both sides of it count as in a row. What goes bad too often is told as flapping, and then only
    reminded of until its state has been the same for as long as flapping takes.
    """
    standing = before or Standing(State.UNKNOWN, look.at)
    match finding:
        case NoData():
            return News.NO_DATA, _without_data(standing, look)
        case Bad():
            counted = _count(standing, State.BAD, look, policy.failures)
            if counted.state is not State.BAD:
                return News.NOT_YET_BAD, counted
            return _tell_bad(counted, look, policy)
        case Good():
            counted = _count(standing, State.GOOD, look, policy.successes)
            if counted.state is not State.GOOD:
                return News.NOT_YET_GOOD, counted
            return _tell_good(counted, look, policy)
    assert_never(finding)


def _without_data(standing: Standing, look: Look) -> Standing:
    streak = standing.streak
    if streak is not None and streak.says is State.GOOD:
        streak = None
    since = standing.since if standing.state is State.UNKNOWN else look.at
    return replace(standing, state=State.UNKNOWN, since=since, streak=streak)


def _count(standing: Standing, says: State, look: Look, enough: int) -> Standing:
    """Return the alarm with one look more in its streak, and with what enough of them in a row make of its state."""
    streak = standing.streak
    if streak is None or streak.says is not says:
        streak = Streak(says, 1, look.at)
    else:
        streak = replace(streak, looks=min(streak.looks + 1, MOST_COUNTED))
    if standing.state is says or streak.looks < enough:
        return replace(standing, streak=streak)
    return replace(standing, streak=streak, state=says, since=streak.began)


def _tell_bad(standing: Standing, look: Look, policy: Policy) -> tuple[News, Standing]:
    told = standing.told
    if told is not None and told.what is What.TROUBLE:
        if not _is_time_to_remind(told, look, policy):
            return News.STILL_BAD, standing
        return News.REMINDER, _reminding(standing, told, look)
    if told is not None and told.what is What.FLAPPING:
        if not _is_steady(standing, told, look, policy):
            return _still_flapping(standing, told, look, policy)
        return News.SETTLED_BAD, _telling(standing, What.TROUBLE, look, standing.since, (look.at,))
    troubles = (*_recent(standing.troubles, look, policy), look.at)
    if len(troubles) < policy.flapping:
        return News.WENT_BAD, _telling(standing, What.TROUBLE, look, standing.since, troubles)
    return News.FLAPS, _telling(standing, What.FLAPPING, look, troubles[0], troubles[-policy.flapping :])


def _tell_good(standing: Standing, look: Look, policy: Policy) -> tuple[News, Standing]:
    told = standing.told
    if told is not None and told.what is What.TROUBLE:
        return News.IS_GOOD_AGAIN, _telling(standing, What.END, look, standing.since, standing.troubles)
    if told is not None and told.what is What.FLAPPING:
        if not _is_steady(standing, told, look, policy):
            return _still_flapping(standing, told, look, policy)
        return News.SETTLED_GOOD, _telling(standing, What.END, look, standing.since, ())
    return News.FINE, standing


def _telling(standing: Standing, what: What, look: Look, since: datetime, troubles: tuple[datetime, ...]) -> Standing:
    return replace(standing, told=Told(what, look.slot, look.at, since), troubles=troubles)


def _still_flapping(standing: Standing, told: Told, look: Look, policy: Policy) -> tuple[News, Standing]:
    if not _is_time_to_remind(told, look, policy):
        return News.STILL_FLAPS, standing
    return News.FLAPPING_REMINDER, _reminding(standing, told, look)


def _is_time_to_remind(told: Told, look: Look, policy: Policy) -> bool:
    return policy.remind is not None and look.at - told.at >= policy.remind


def _reminding(standing: Standing, told: Told, look: Look) -> Standing:
    return replace(standing, told=replace(told, slot=look.slot, at=look.at))


def _is_steady(standing: Standing, told: Told, look: Look, policy: Policy) -> bool:
    """Tell whether the state has been the same since long enough before, and flapping was found as long ago.

    It was found at the last of the troubles that are kept; a reminder since then does not put this off.
    """
    found = standing.troubles[-1] if standing.troubles else told.at
    return look.at - max(standing.since, found) >= policy.flapping_within


def _recent(troubles: Sequence[datetime], look: Look, policy: Policy) -> list[datetime]:
    return [at for at in troubles if look.at - at < policy.flapping_within]
