"""What the local store does beside other writers and hands, and what a start writes down."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from contract.material import BILL, CURSORS, DIGEST, DRAFT, NOW, claimed, message
from galley.store import RowsDisagree, StoreBusy
from galley_cli.local.state import StateBusy, StateDirectory
from galley_cli.local.store import SqliteStore


@pytest.fixture
def store(state: StateDirectory) -> SqliteStore:
    return SqliteStore(state)


def test_a_file_that_another_program_holds_is_busy_for_who_reads_too(
    store: SqliteStore, state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def held() -> Iterator[None]:
        raise StateBusy("another program holds it")
        yield

    monkeypatch.setattr(state, "read", held)
    with pytest.raises(StoreBusy, match="another program holds it"):
        store.run(message().key)


def test_what_a_start_notes_in_a_row_is_kept_to_the_second(store: SqliteStore) -> None:
    run = claimed(store)

    assert store.expire_leases(now=NOW + timedelta(seconds=9, microseconds=7)) == (run.key,)

    after = store.run(run.key)
    assert after is not None
    assert after.changed == NOW + timedelta(seconds=9)


def test_a_text_that_somebody_put_there_by_hand_is_not_written_over(store: SqliteStore, state: StateDirectory) -> None:
    run = claimed(store)
    columns = "drafter, slot, title, body, items, warnings, model, channels"
    with state.write() as db:
        db.execute(
            f"INSERT INTO texts ({columns}) VALUES (?, ?, 'By hand', 'Hello.', '[]', '[]', 'none', '[]')",  # noqa: S608
            (DIGEST, "2026-03-02T06:00:00Z"),
        )

    with pytest.raises(RowsDisagree, match="has a text already"):
        store.store(run, DRAFT, CURSORS, BILL, now=NOW)
    assert (store.run(run.key), store.memory(DIGEST).cursors) == (run, {})
    stored = store.draft(run.key)
    assert stored is not None
    assert stored.title == "By hand"


def test_the_error_that_made_sqlite_give_a_transaction_up_is_told_as_it_is(state: StateDirectory) -> None:
    """On a full disk, for one, SQLite rolls back by itself (https://www.sqlite.org/lang_transaction.html)."""

    def given_up() -> None:
        with state.write() as db:
            db.execute("ROLLBACK")
            raise ArithmeticError("the first error")

    with pytest.raises(ArithmeticError, match="the first error"):
        given_up()
