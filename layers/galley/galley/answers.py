"""Runs, drafts and gates as JSON for whoever asks, the desk's page or a program; and the line that tells of a conflict.

Instants are texts like ``2026-03-29T05:00:00Z``, money is whole nano-dollars.
"""

from datetime import datetime
from typing import Any

from galley.drafts import Attachment, Item
from galley.instants import format_instant
from galley.rules import Review
from galley.runs import Decision, Run, Status
from galley.store import DrafterState, StoredDraft


def run_answer(run: Run) -> dict[str, Any]:
    """Return a run's row. Who holds its lease stays out: that token lets its bearer store a draft."""
    return {
        "run": str(run.key),
        "drafter": run.drafter,
        "slot": format_instant(run.slot),
        "status": str(run.status),
        "reason": run.reason,
        "detail": run.detail,
        "version": run.version,
        "origin": str(run.origin),
        "schedule": run.schedule,
        "contract": run.contract.model_dump(mode="json"),
        "created": format_instant(run.created),
        "changed": format_instant(run.changed),
        "drafted": _instant(run.drafted),
        "published": _instant(run.published),
        "dismissed": _instant(run.dismissed),
        "expires": _instant(run.rules.expires),
        "urgent": run.rules.urgent,
        "review": str(run.rules.review),
        "next_attempt": _instant(run.next_attempt),
        "lease_until": _instant(run.lease_until),
        "attempts": run.attempts,
        "faults": run.faults,
        "resend": run.resend,
        "title": run.title,
        "text_hash": run.text_hash,
        "model": run.model,
        "cost_nanousd": run.cost_nanousd,
        "reserved_nanousd": run.reserved_nanousd,
        "spend_day": run.spend_day,
        "usage": {
            "input_tokens": run.usage.input_tokens,
            "output_tokens": run.usage.output_tokens,
            "cache_write_tokens": run.usage.cache_write_tokens,
            "cache_read_tokens": run.usage.cache_read_tokens,
        },
        "decision": None if run.decision is None else _decision(run.decision),
        "trace": run.trace,
    }


def _decision(decision: Decision) -> dict[str, Any]:
    return {
        "reviewer": decision.reviewer,
        "at": format_instant(decision.at),
        "read_hash": decision.read_hash,
        "edited": decision.edited,
        "reason": None if decision.reason is None else str(decision.reason),
        "words": decision.words,
    }


def draft_answer(run: Run, stored: StoredDraft) -> dict[str, Any]:
    """Return all that a reviewer needs to decide: the exact text, what it was made from, and where it will go.

    ``version`` and ``text_hash`` are what a decision names; ``original`` is the draft before a reviewer's edit.
    """
    edited = stored.edited_title is not None or stored.edited_body is not None
    return {
        "title": stored.title,
        "body": stored.body,
        "original": {"title": stored.draft.title, "body": stored.draft.body} if edited else None,
        "status": str(run.status),
        "version": run.version,
        "text_hash": run.text_hash,
        "items": [_item(item) for item in stored.draft.items],
        "warnings": list(stored.draft.warnings),
        "channels": [{"kind": channel.kind, "target": channel.target} for channel in stored.draft.channels],
        "attachments": [_attachment(attachment) for attachment in stored.draft.attachments],
        "model": stored.draft.model,
        "run": run_answer(run),
    }


def _item(item: Item) -> dict[str, Any]:
    return {
        "id": item.id,
        "title": item.title,
        "text": item.text,
        "source": item.source,
        "author": item.author,
        "published": _instant(item.published),
        "link": item.link,
    }


def _attachment(attachment: Attachment) -> dict[str, Any]:
    return {
        "name": attachment.name,
        "media_type": attachment.media_type,
        "bytes": attachment.size,
        "text": attachment.text,
    }


def gate_answer(state: DrafterState) -> dict[str, Any]:
    """Return a drafter's gate: how many of its drafts are undecided, and why it is paused, if it is."""
    return {"drafter": state.drafter, "pending": state.pending, "paused": state.paused}


def conflict_line(run: Run, read_version: int) -> str:
    """Say why a decision did not take: who was first, and when, or what became of the text that was read."""
    if run.status is Status.PENDING:
        return (
            f"the text of {run.key} is not the one that was read (version {read_version}; now version {run.version});"
            " nothing was decided, read it again"
        )
    if run.decision is None:
        because = f" ({run.reason})" if run.reason else ""
        withdrawn = f": {run.detail}" if run.status in {Status.EXPIRED, Status.SUPERSEDED} else ""
        return f"{run.key} is {run.status}{because}{withdrawn}; there is nothing to decide"
    if run.rules.review is Review.NONE:
        return f"{run.key} is {run.status} and was never to be reviewed (review = none); there is nothing to decide"
    return (
        f"{run.key} was already {verdict(run.decision)} by {run.decision.reviewer} at"
        f" {format_instant(run.decision.at)}; nothing was changed"
    )


def verdict(decision: Decision) -> str:
    """Say what was decided: approved, approved with an edit, or rejected with the reason."""
    if decision.reason is not None:
        return f"rejected ({decision.reason})"
    return "approved with an edit" if decision.edited else "approved"


def _instant(moment: datetime | None) -> str | None:
    return None if moment is None else format_instant(moment)
