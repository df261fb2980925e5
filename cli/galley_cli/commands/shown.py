"""Runs, drafts and letters as JSON for programs and as lines for people. Instants are in UTC."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from galley.instants import format_instant
from galley.queue import DeadLetter, DeadTick
from galley.runs import Run, Status
from galley.store import Page, Store, StoredDraft

if TYPE_CHECKING:
    from rich.table import Table

_JSON: TypeAdapter[Any] = TypeAdapter(Any)


def as_json(value: object) -> Any:
    """Return a dataclass as plain JSON values."""
    return _JSON.dump_python(value, mode="json", fallback=str)


def run_json(run: Run) -> dict[str, Any]:
    """Return every field of a row, its key first."""
    return {"run": str(run.key), **as_json(run), "slot": format_instant(run.slot)}


def draft_json(run: Run, stored: StoredDraft) -> dict[str, Any]:
    """Return a draft with what one needs to decide it: its version and its hash."""
    return {
        **run_json(run),
        "title": stored.title,
        "body": stored.body,
        "warnings": list(stored.draft.warnings),
        "items": as_json(stored.draft.items),
        "channels": as_json(stored.draft.channels),
        "original": None if stored.edited_body is None else {"title": stored.draft.title, "body": stored.draft.body},
    }


def letter_json(letter: DeadLetter) -> dict[str, Any]:
    """Return every field of a dead letter."""
    shown: dict[str, Any] = as_json(letter)
    return shown


def tick_json(tick: DeadTick) -> dict[str, Any]:
    """Return every field of a dead tick."""
    shown: dict[str, Any] = as_json(tick)
    return shown


def columns(*names: str) -> "Table":
    """Return an empty table that folds what is too wide: nothing is cut, and the first column stays whole."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False)
    for number, name in enumerate(names):
        made.add_column(name, overflow="fold", no_wrap=number == 0, min_width=10)
    return made


def state_of(run: Run) -> str:
    """Return the state, with the reason of a skip or a failure."""
    return f"{run.status}: {run.reason}" if run.status in {Status.SKIPPED, Status.FAILED} else str(run.status)


def watched(store: Store, status: Status) -> Page:
    """Return all runs in a watched state, from all pages."""
    runs: list[Run] = []
    unreadable: list[str] = []
    for page in _pages(store, status):
        runs.extend(page.runs)
        unreadable.extend(page.unreadable)
    return Page(tuple(runs), tuple(unreadable))


def _pages(store: Store, status: Status) -> Iterator[Page]:
    after: str | None = None
    while True:
        page = store.watched(status, after=after)
        yield page
        if page.next is None:
            return
        after = page.next
