"""The rules that a draft is stored with, and what they do to the drafter's older drafts."""

from datetime import datetime, timedelta

from drafter import Drafter
from galley.observe import logger
from galley.retry import NeverSucceeds
from galley.rules import Review, Rules
from galley.runs import Run
from galley.store import Store, StoreBusy, Supersede, UnreadableRow
from galley.withdrawing import replaces, withdraw
from shapes.shape import Material

LOOKED_AT = 50
"""How many of a drafter's newest runs are looked at for drafts to replace. The sweep finds what lies further back."""

UNREVIEWED = "*Nobody has reviewed this text: it is sent as the model wrote it.*"
"""What a text begins with, as Markdown, that is sent unread: its readers must know."""


def rules_of(drafter: Drafter, material: Material, now: datetime) -> Rules:
    """Return the rules of a draft that is stored now. The shorter time counts, the shape's own or the drafter's.

    A draft that nobody reviews is never undecided, and so never expires.
    """
    hours = [hours for hours in (drafter.expire_hours, material.expire_hours) if hours is not None]
    may_expire = bool(hours) and drafter.review is Review.REQUIRED
    return Rules(
        expires=now + timedelta(hours=min(hours)) if may_expire else None,
        supersedes=material.supersedes,
        supersedes_earlier=drafter.supersede,
        urgent=material.urgent,
        review=drafter.review,
    )


def marked(body: str, review: Review) -> str:
    """Return a draft's body. If nobody reviews it, it says so at its top: that is the text that every channel sends."""
    match review:
        case Review.REQUIRED:
            return body
        case Review.NONE:
            return f"{UNREVIEWED}\n\n{body}"


def replace_older(store: Store, newer: Run, now: datetime) -> None:
    """Withdraw the undecided drafts whose place a draft takes that was just stored.

    It is stored, whatever becomes of the older ones: what cannot be withdrawn now is left to the sweep.
    """
    if not newer.rules.supersedes and not newer.rules.supersedes_earlier:
        return
    try:
        for older in store.history(newer.drafter, limit=LOOKED_AT).runs:
            if replaces(newer, older):
                withdraw(store, older, Supersede(newer.key), now=now)
    except (StoreBusy, NeverSucceeds, UnreadableRow) as error:
        logger.warning("what %s replaces is left to the sweep: %s", newer.key, error)
