"""What the contract makes of due slots that have no row: pure decisions, each with its reason in words."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from galley.contract import CatchUp, Contract
from galley.instants import format_instant
from galley.runs import SkipReason

MOST_CAUGHT_UP = 24
"""How many slots of a drafter one sweep of a schedule sends, where each missed slot is to be drafted."""


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
) -> tuple[Decision, ...]:
    """Return what becomes of each due slot of one drafter that has no row, oldest first.

    ``due`` are the schedule's slots, oldest first; ``with_row`` those of them that have a row. ``paused`` is why the
    drafter is paused, None where it is not. Whether a slot's own message still waits for its turn in the queue cannot
    be seen. A run that is asked for twice is drafted once; so a slot is sent, or left, for as long as it may be
    drafted, and skipped only when it is not to be drafted, whatever is in the queue.
    """
    missing = [slot for slot in due if slot not in with_row]
    if paused is not None:
        return tuple(Skip(slot, SkipReason.PAUSED, paused) for slot in missing)
    decisions: list[Decision] = []
    sent = 0
    for slot in missing:
        decision = _decide(contract, slot, newest=due[-1], sent=sent, now=now)
        sent += isinstance(decision, Send)
        decisions.append(decision)
    return tuple(decisions)


def swept_until(decisions: Sequence[Decision], horizon: datetime) -> datetime:
    """Return up to where each slot has its row once the decisions are carried out: at most the horizon."""
    return min((decision.slot for decision in decisions if not isinstance(decision, Skip)), default=horizon)


def _decide(contract: Contract, slot: datetime, *, newest: datetime, sent: int, now: datetime) -> Decision:
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
        case CatchUp.ALL if sent < MOST_CAUGHT_UP:
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
