"""What only the desk's HTTP API gives: listings in pages, and a draft as its page shows it."""

import csv
import io
from datetime import datetime
from typing import Any

from desk_reads import Waiting
from galley.answers import draft_answer, gate_answer, run_answer
from galley.instants import format_instant
from galley.runs import Run
from galley.store import DrafterState, Page, StoredDraft
from render import link_host, to_html


def waiting_answer(waiting: Waiting, now: datetime) -> dict[str, Any]:
    """Return a page of the waiting drafts."""
    return {
        "drafts": [
            {
                "run": str(one.run.key),
                "drafter": one.run.drafter,
                "slot": format_instant(one.run.slot),
                "title": one.run.title,
                "warnings": one.warnings,
                "urgent": one.run.rules.urgent,
                "expires": None if one.run.rules.expires is None else format_instant(one.run.rules.expires),
                "waiting_seconds": waiting_seconds(one.run, now),
                "cost_nanousd": one.run.cost_nanousd,
                "model": one.run.model,
                "version": one.run.version,
                "text_hash": one.run.text_hash,
            }
            for one in waiting.drafts
        ],
        "unreadable": list(waiting.unreadable),
        "next": waiting.next,
    }


def draft_page(run: Run, stored: StoredDraft, now: datetime) -> dict[str, Any]:
    """Return a draft as the page shows it: its text as safe HTML, each link's host, and for how long it has waited."""
    answer = draft_answer(run, stored)
    return {
        **answer,
        "html": to_html(stored.body),
        "items": [{**item, "link_host": _host(item["link"])} for item in answer["items"]],
        "attachments": [{**one, "rows": _rows(one["media_type"], one["text"])} for one in answer["attachments"]],
        "waiting_seconds": waiting_seconds(run, now),
    }


def _host(link: str | None) -> str | None:
    return None if link is None else link_host(link)


def _rows(media_type: str, text: str) -> list[list[str]] | None:
    """Return the cells of a table; None for an attachment that is none."""
    return list(csv.reader(io.StringIO(text))) if media_type == "text/csv" else None


def runs_answer(page: Page) -> dict[str, Any]:
    """Return a page of runs."""
    return {
        "runs": [run_answer(run) for run in page.runs],
        "unreadable": list(page.unreadable),
        "next": page.next,
    }


def gates_answer(states: list[DrafterState]) -> dict[str, Any]:
    """Return the gates of some drafters."""
    return {"drafters": [gate_answer(state) for state in states]}


def waiting_seconds(run: Run, now: datetime) -> int:
    """Return for how long the draft has waited, in whole seconds; never less than none."""
    return max(0, int((now - (run.drafted or run.changed)).total_seconds()))
