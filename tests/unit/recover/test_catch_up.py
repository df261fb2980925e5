"""What the contract makes of due slots that have no row."""

from datetime import timedelta

import pytest

from catch_up import MOST_CAUGHT_UP, Decision, Leave, Send, Skip, asked_after, catch_up, swept_until
from galley.contract import CatchUp, Contract
from galley.runs import SkipReason
from galley.store import Asked, Pause
from support.outside import SLOT

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
SLOTS = tuple(SLOT + number * HOUR for number in range(4))
HORIZON = SLOTS[-1] + HOUR


def contract(policy: CatchUp, grace: timedelta = 2 * HOUR) -> Contract:
    return Contract(window_minutes=10, grace_minutes=grace // timedelta(minutes=1), catch_up=policy)


def said(policy: CatchUp, **change: object) -> list[str]:
    """Return what becomes of the four hourly slots that were missed, ten minutes after the last; their grace is 2 h."""
    fields: dict[str, object] = {"due": SLOTS, "with_row": (), "now": SLOTS[-1] + timedelta(minutes=10), **change}
    decisions = catch_up(contract(policy), **fields)  # type: ignore[arg-type]
    return [str(one.reason) if isinstance(one, Skip) else type(one).__name__.lower() for one in decisions]


@pytest.mark.parametrize(
    ("policy", "becomes"),
    [
        (CatchUp.ALL, ["misfired", "misfired", "send", "send"]),
        (CatchUp.LATEST, ["misfired", "misfired", "coalesced", "send"]),
        (CatchUp.NONE, ["missed", "missed", "leave", "leave"]),
    ],
)
def test_missed_slots_become_what_the_contract_says(policy: CatchUp, becomes: list[str]) -> None:
    assert said(policy) == becomes


@pytest.mark.parametrize("policy", CatchUp)
def test_a_slot_with_a_row_is_nobodys_business(policy: CatchUp) -> None:
    assert said(policy, with_row=SLOTS) == []


def test_an_older_slot_is_coalesced_though_the_newest_has_its_row() -> None:
    assert said(CatchUp.LATEST, with_row=(SLOTS[0], SLOTS[1], SLOTS[3])) == ["coalesced"]


def test_a_slot_that_waits_for_its_turn_is_not_coalesced_before_a_newer_one_is_due() -> None:
    assert said(CatchUp.LATEST, due=SLOTS[:3], with_row=SLOTS[:2], now=SLOTS[2] + 2 * HOUR) == ["send"]


@pytest.mark.parametrize(("policy", "late"), [("all", "misfired"), ("latest", "misfired"), ("none", "missed")])
def test_the_grace_ends_after_its_last_moment(policy: str, late: str) -> None:
    last = SLOT + 2 * HOUR
    assert said(CatchUp(policy), due=(SLOT,), now=last) != [late]
    assert said(CatchUp(policy), due=(SLOT,), now=last + SECOND) == [late]


@pytest.mark.parametrize("policy", CatchUp)
def test_the_slots_of_a_paused_drafter_are_recorded_as_paused_and_not_caught_up(policy: CatchUp) -> None:
    assert said(policy, paused="on holiday") == ["paused"] * 4
    first, *_ = catch_up(contract(policy), SLOTS, (), now=HORIZON, paused="on holiday")
    assert first == Skip(SLOTS[0], SkipReason.PAUSED, "on holiday")


@pytest.mark.parametrize(
    ("since", "until", "policy", "becomes"),
    [
        (0.5, 3.1, CatchUp.ALL, ["misfired", "paused", "paused", "paused"]),
        (0.5, 2.5, CatchUp.ALL, ["misfired", "paused", "paused", "send"]),
        (0.0, 2.5, CatchUp.LATEST, ["paused", "paused", "paused", "send"]),
        (0.5, 2.0, CatchUp.LATEST, ["misfired", "paused", "coalesced", "send"]),
        (2.5, 3.1, CatchUp.LATEST, ["misfired", "misfired", "send", "paused"]),
        (2.5, 3.1, CatchUp.NONE, ["missed", "missed", "leave", "paused"]),
        (3.1, 3.1, CatchUp.LATEST, ["misfired", "misfired", "coalesced", "send"]),
        (2.5, 3 + 2 / 60, CatchUp.LATEST, ["misfired", "misfired", "coalesced", "send"]),
        (2.5, 3 + 2.1 / 60, CatchUp.LATEST, ["misfired", "misfired", "send", "paused"]),
    ],
)
def test_slots_of_a_pause_that_ended_before_anybody_looked_are_paused_too(
    since: float, until: float, policy: CatchUp, becomes: list[str]
) -> None:
    pause = Pause("on holiday", SLOT + since * HOUR, SLOT + until * HOUR)
    assert said(policy, last_pause=pause) == becomes


def test_a_slot_of_a_pause_that_is_over_says_so() -> None:
    pause = Pause("on holiday", SLOT, SLOT + HOUR)
    (decided,) = catch_up(contract(CatchUp.ALL), (SLOT,), (), now=HORIZON, last_pause=pause)
    assert decided == Skip(SLOT, SkipReason.PAUSED, "on holiday; it was resumed at 2026-11-27T07:00:00Z")


def test_where_each_slot_is_drafted_the_oldest_are_sent_first_and_not_all_at_once() -> None:
    due = tuple(SLOT + number * HOUR for number in range(MOST_CAUGHT_UP + 2))
    decisions = catch_up(contract(CatchUp.ALL, 48 * HOUR), due, (), now=due[-1] + HOUR)
    assert [type(one) for one in decisions] == [Send] * MOST_CAUGHT_UP + [Leave] * 2
    assert [one.slot for one in decisions] == list(due)
    after = catch_up(contract(CatchUp.ALL, 48 * HOUR), due, due[:MOST_CAUGHT_UP], now=due[-1] + HOUR)
    assert [type(one) for one in after] == [Send] * 2


WAITS = Asked(at=SLOTS[-1], through=SLOTS[1])
SOON = SLOTS[-1] + timedelta(minutes=10)


@pytest.mark.parametrize(
    ("decisions", "asked"),
    [
        pytest.param((Leave(SLOTS[0], ""), Send(SLOTS[2], "")), Asked(SLOTS[-1], SLOTS[2]), id="one more"),
        pytest.param((Send(SLOTS[2], ""),), Asked(SLOTS[-1], SLOTS[2]), id="the others have their rows"),
        pytest.param((Leave(SLOTS[0], ""),), WAITS, id="one waits still"),
        pytest.param((Skip(SLOTS[0], SkipReason.PAUSED, ""),), None, id="none is to be drafted"),
        pytest.param((), None, id="each has its row"),
    ],
)
def test_what_was_asked_for_is_remembered_for_as_long_as_one_of_them_waits(
    decisions: tuple[Decision, ...], asked: Asked | None
) -> None:
    assert asked_after(WAITS, decisions, now=SOON) == asked


@pytest.mark.parametrize(
    ("since", "becomes"),
    [
        pytest.param(-SECOND, "send", id="by a clock that went ahead"),
        pytest.param(timedelta(), "leave", id="just now"),
        pytest.param(HOUR - SECOND, "leave", id="less than an hour ago"),
        pytest.param(HOUR, "send", id="an hour ago"),
    ],
)
def test_what_was_asked_for_is_left_for_an_hour(since: timedelta, becomes: str) -> None:
    asked = Asked(at=SOON - since, through=SLOTS[-1])
    assert said(CatchUp.LATEST, now=SOON, asked=asked)[-1] == becomes


def test_after_an_hour_all_is_asked_for_anew() -> None:
    sent = (Send(SLOTS[0], ""), Send(SLOTS[1], ""))
    assert asked_after(WAITS, sent, now=SLOTS[-1] + HOUR) == Asked(SLOTS[-1] + HOUR, SLOTS[1])
    assert asked_after(None, sent, now=SOON) == Asked(SOON, SLOTS[1])


def test_nothing_due_is_nothing_to_decide() -> None:
    assert said(CatchUp.LATEST, due=()) == []


@pytest.mark.parametrize(
    ("policy", "until"),
    [(CatchUp.ALL, SLOTS[2]), (CatchUp.LATEST, SLOTS[3]), (CatchUp.NONE, SLOTS[2])],
)
def test_the_mark_stops_at_the_first_slot_that_has_no_row_yet(policy: CatchUp, until: object) -> None:
    decisions = catch_up(contract(policy), SLOTS, (), now=SLOTS[-1] + timedelta(minutes=10))
    assert swept_until(decisions, HORIZON) == until


def test_the_mark_goes_to_the_horizon_once_every_slot_has_a_row() -> None:
    skipped = catch_up(contract(CatchUp.ALL), SLOTS, (), now=SLOTS[-1] + 3 * HOUR)
    assert swept_until(skipped, HORIZON) == HORIZON
    assert swept_until((), HORIZON) == HORIZON


@pytest.mark.parametrize("policy", CatchUp)
def test_each_decision_says_why(policy: CatchUp) -> None:
    for decision in catch_up(contract(policy), SLOTS, (), now=SLOTS[-1] + timedelta(minutes=10)):
        assert decision.why
