"""Reading one run or one draft for somebody who named it: it is there and whole, or one line says why not."""

from galley.runs import Run, RunKey
from galley.store import Store, StoredDraft


class NotFound(Exception):
    """There is nothing by that name. Its text is one line."""


class TextMismatch(Exception):
    """The stored text is not the one its row was made with, so nobody could know what they decide on."""


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
        because = ": ".join(part for part in (run.reason, run.detail) if part)
        raise NotFound(f"{key} has no draft: it is {run.status}{f' ({because})' if because else ''}")
    if run.text_hash != stored.text_hash:
        run = read_run(store, key)
        if run.text_hash != stored.text_hash:
            raise TextMismatch(f"the stored text of {key} is not the text its row was made with; do not decide on it")
    return run, stored
