"""The desk's listings: the drafts that wait, and runs."""

from collections.abc import Callable
from dataclasses import dataclass

from galley.runs import Run, Status
from galley.store import Page, Store, UnreadableRow

WAITING_ON_A_PAGE = 25
RUNS_ON_A_PAGE = 100


class NoSuchPlace(ValueError):
    """A listing cannot go on where it is asked to. Its text is one line."""


@dataclass(frozen=True, slots=True)
class WaitingDraft:
    """A pending run, and how many warnings stand beside its text (None where the text is missing)."""

    run: Run
    warnings: int | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A page of the waiting drafts, the urgent ones first, then the longest waiting.

    ``unreadable`` names rows that could not be read.
    """

    drafts: tuple[WaitingDraft, ...]
    unreadable: tuple[str, ...]
    next: str | None


def waiting(store: Store, after: str | None) -> Waiting:
    """List the drafts that wait for a person.

    Raises:
        NoSuchPlace: when ``after`` is no place in the listing.
    """
    page = _page(lambda: store.watched(Status.PENDING, limit=WAITING_ON_A_PAGE, after=after), after)
    drafts: list[WaitingDraft] = []
    unreadable = list(page.unreadable)
    for run in page.runs:
        try:
            stored = store.draft(run.key)
        except UnreadableRow as error:
            unreadable.append(str(error))
        else:
            drafts.append(WaitingDraft(run, None if stored is None else len(stored.draft.warnings)))
    return Waiting(tuple(drafts), tuple(unreadable), page.next)


def _page(read: Callable[[], Page], after: str | None) -> Page:
    try:
        return read()
    except ValueError as error:
        if after is None:
            raise
        raise NoSuchPlace(
            f"query: field 'after' is {after[:80]!r}: it is no place in this listing; start it again without one"
        ) from error


def list_runs(store: Store, drafter: str | None, status: Status | None, after: str | None) -> Page:
    """List a drafter's runs, newest slot first, or every run in a watched state; both given, both hold.

    A page may then be short while ``next`` goes on.

    Raises:
        NoSuchPlace: when ``after`` is no place in the listing.
    """
    if drafter is None:
        if status is None:
            raise ValueError("a listing needs a drafter or a status")
        return _page(lambda: store.watched(status, limit=RUNS_ON_A_PAGE, after=after), after)
    page = _page(lambda: store.history(drafter, limit=RUNS_ON_A_PAGE, after=after), after)
    if status is None:
        return page
    return Page(tuple(run for run in page.runs if run.status is status), page.unreadable, page.next)
