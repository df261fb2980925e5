"""What the desk reads from the store: the waiting drafts, one draft as a whole, and listings of runs."""

from collections.abc import Callable
from dataclasses import dataclass

from galley.drafts import text_hash
from galley.runs import Run, RunKey, Status
from galley.store import Page, Store, StoredDraft
from galley.store.rows import UnreadableRow

WAITING_ON_A_PAGE = 25
RUNS_ON_A_PAGE = 100


class NoSuchPlace(ValueError):
    """A listing cannot go on where it is asked to. Its text is one line."""


class NotFound(Exception):
    """There is nothing by that name. Its text is one line."""


class TextMismatch(Exception):
    """The stored text is not the one its row was made with, so nobody could know what they decide on."""


@dataclass(frozen=True, slots=True)
class WaitingDraft:
    """A pending run, and how many warnings stand beside its text (None where the text is missing)."""

    run: Run
    warnings: int | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A page of the waiting drafts, longest waiting first; ``unreadable`` names rows that could not be read."""

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


def read_run(store: Store, key: RunKey) -> Run:
    """Return one run.

    Raises:
        NotFound: when there is no such run.
    """
    run = store.run(key)
    if run is None:
        raise NotFound(f"there is no run {key}")
    return run


def read_draft(store: Store, key: RunKey) -> tuple[Run, StoredDraft]:
    """Return a run and its text, which belong together: the text has the hash that the row says.

    Row and text are two reads. A decision with an edit may fall between them, so the row is read once more
    before the two are said not to belong together.

    Raises:
        NotFound: when there is no such run, or it has no draft.
        TextMismatch: when the text is not the row's.
    """
    run = read_run(store, key)
    stored = store.draft(key)
    if stored is None:
        because = f" ({run.reason})" if run.reason else ""
        raise NotFound(f"{key} has no draft: it is {run.status}{because}")
    if run.text_hash != text_hash(stored.title, stored.body):
        run = read_run(store, key)
        if run.text_hash != text_hash(stored.title, stored.body):
            raise TextMismatch(f"the stored text of {key} is not the text its row was made with; do not decide on it")
    return run, stored


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
