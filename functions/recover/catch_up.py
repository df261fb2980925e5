"""What the contract makes of due slots that have no row: pure decisions, each with its reason in words."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from galley.contract import CatchUp, Contract
from galley.instants import format_instant
from galley.runs import SkipReason
from galley.store import Asked, Pause

SETTLING = timedelta(minutes=2)
"""A slot younger than this is left alone: its own tick may still be on its way (Scheduler's precision is a minute)."""

MOST_CAUGHT_UP = 24
"""How many slots of a drafter one sweep of a schedule sends, where each missed slot is to be drafted."""


ASK_AGAIN = timedelta(hours=1)
"""After how long a run that was asked for and has no row yet is asked for again: its message may wait for its turn."""


@dataclass(frozen=True, slots=True)
class Send:
    """The slot is still worth drafting: its run is asked for once more."""

    slot: datetime
    why: str


@dataclass(frozen=True, slots=True)
class Skip:
    """The slot is not drafted any more, and its row says so."""

    slot: datetime
    reason: SkipReason
    why: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Nothing is done about the slot in this sweep; a later one sees it again."""

    slot: datetime
    why: str


Decision = Send | Skip | Leave


def catch_up(
    contract: Contract,
    due: Sequence[datetime],
    with_row: Collection[datetime],
    *,
    now: datetime,
    paused: str | None = None,
    last_pause: Pause | None = None,
    asked: Asked | None = None,
) -> tuple[Decision, ...]:
    """Return what becomes of each due slot of one drafter that has no row, oldest first.

    ``due`` are the schedule's slots, oldest first; ``with_row`` those of them that have a row. ``paused`` is why the
    drafter is paused, None where it is not; ``last_pause`` is the one before, which may have ended before anybody
    looked at its slots (but for one whose own tick was still to come when it ended). ``asked`` is what was asked for
    before. Whether a slot's own message still waits for its turn in the queue cannot be seen. A run that is asked for
    twice is drafted once; so a slot is sent again once an hour, and left meanwhile, for as long as it may be drafted,
    and skipped only when it is not to be drafted, whatever is in the queue.
    """
    missing = [slot for slot in due if slot not in with_row]
    if paused is not None:
        return tuple(Skip(slot, SkipReason.PAUSED, paused) for slot in missing)
    waiting = _still_waits(asked, now)
    pause = None if last_pause is None else replace(last_pause, until=last_pause.until - SETTLING)
    newest = max((slot for slot in due if pause is None or not pause.holds(slot)), default=None)
    decisions: list[Decision] = []
    asked_for = 0
    for slot in missing:
        if pause is not None and pause.holds(slot):
            why = f"{pause.reason}; it was resumed at {format_instant(pause.until + SETTLING)}"
            decisions.append(Skip(slot, SkipReason.PAUSED, why))
            continue
        decision = _decide(contract, slot, newest=newest or slot, asked_for=asked_for, now=now)
        if isinstance(decision, Send):
            asked_for += 1
            if waiting is not None and slot <= waiting.through:
                decision = Leave(slot, f"asked for at {format_instant(waiting.at)}; its message may wait for its turn")
        decisions.append(decision)
    return tuple(decisions)


def asked_after(asked: Asked | None, decisions: Sequence[Decision], *, now: datetime) -> Asked | None:
    """Return what is asked for once the decisions are carried out; None where nothing is."""
    waiting = _still_waits(asked, now)
    sent = [decision.slot for decision in decisions if isinstance(decision, Send)]
    if waiting is None:
        return Asked(now, sent[-1]) if sent else None
    is_left = any(isinstance(decision, Leave) for decision in decisions)
    return replace(waiting, through=max([waiting.through, *sent])) if sent or is_left else None


def swept_until(decisions: Sequence[Decision], horizon: datetime) -> datetime:
    """Return up to where each slot has its row once the decisions are carried out: at most the horizon."""
    return min((decision.slot for decision in decisions if not isinstance(decision, Skip)), default=horizon)


def _still_waits(asked: Asked | None, now: datetime) -> Asked | None:
    """Return what was asked for within the last hour; an instant that has not come yet is a clock's mistake."""
    is_fresh = asked is not None and timedelta() <= now - asked.at < ASK_AGAIN
    return asked if is_fresh else None


def _decide(contract: Contract, slot: datetime, *, newest: datetime, asked_for: int, now: datetime) -> Decision:
    minutes = (now - slot) // timedelta(minutes=1)
    found = f"found {minutes} minutes after its slot"
    is_late = now > slot + contract.grace
    match contract.catch_up:
        case CatchUp.NONE if is_late:
            return Skip(slot, SkipReason.MISSED, f"{found}; its schedule catches nothing up")
        case CatchUp.NONE:
            return Leave(slot, "its schedule catches nothing up; until its grace is over, its own message may come")
        case CatchUp.ALL | CatchUp.LATEST if is_late:
            return Skip(slot, SkipReason.MISFIRED, f"{found}, past its grace")
        case CatchUp.ALL if asked_for < MOST_CAUGHT_UP:
            return Send(slot, found)
        case CatchUp.ALL:
            return Leave(slot, f"{MOST_CAUGHT_UP} older slots go first")
        case CatchUp.LATEST if slot < newest:
            return Skip(
                slot, SkipReason.COALESCED, f"{found}; only the latest is drafted, and {format_instant(newest)} is due"
            )
        case CatchUp.LATEST:
            return Send(slot, found)
    assert_never(contract.catch_up)
