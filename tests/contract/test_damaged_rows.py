"""Rows that somebody changed by hand: what can go on goes on, and nothing is guessed."""

import json

import pytest

from contract.implementations import aws, local
from contract.material import BILL, DIGEST, DRAFT, LEASE, NOW, SLOT, claimed, decide, later, pending, settled
from galley.retry import NeverSucceeds
from galley.runs import RejectReason, Status
from galley.store import CursorMoved, Reject, RowsDisagree, Store, SweptSchedule
from support.outside import schedule

READ = {"mail": {"after": "é", "size": 1}}
MOVED = {"mail": {"after": "f"}}


def set_cursor(store: Store, text: str) -> None:
    if isinstance(store, aws.DynamoStore):
        key = {"pk": {"S": f"DRAFTER#{DIGEST}"}, "sk": {"S": "SOURCE#mail"}}
        store._client.put_item(TableName=store._table, Item={**key, "cursor": {"S": text}})
    else:
        assert isinstance(store, local.SqliteStore)
        with store._state.write() as db:
            db.execute("INSERT OR REPLACE INTO cursors VALUES (?, 'mail', ?)", (DIGEST, text))


def damage_a_rejection(store: Store) -> None:
    if isinstance(store, aws.DynamoStore):
        store._client.update_item(
            TableName=store._table,
            Key={"pk": {"S": f"DRAFTER#{DIGEST}"}, "sk": {"S": "REJECTIONS"}},
            UpdateExpression="SET latest_1.reason = :reason",
            ExpressionAttributeValues={":reason": {"S": "ugly"}},
        )
    else:
        assert isinstance(store, local.SqliteStore)
        with store._state.write() as db:
            db.execute("UPDATE rejections SET reason = 'ugly' WHERE sequence = (SELECT max(sequence) FROM rejections)")


def lose_the_count(store: Store) -> None:
    if isinstance(store, aws.DynamoStore):
        key = {"pk": {"S": f"DRAFTER#{DIGEST}"}, "sk": {"S": "STATE"}}
        store._client.delete_item(TableName=store._table, Key=key)
    else:
        assert isinstance(store, local.SqliteStore)
        with store._state.write() as db:
            db.execute("DELETE FROM drafters WHERE drafter = ?", (DIGEST,))


def spoil_a_schedule(store: Store, name: str, *, as_text: bool) -> None:
    if isinstance(store, aws.DynamoStore):
        store._client.update_item(
            TableName=store._table,
            Key={"pk": {"S": "SCHEDULES"}, "sk": {"S": name}},
            UpdateExpression="SET swept_until = :until",
            ExpressionAttributeValues={":until": {"S": "yesterday"}},
        )
    else:
        assert isinstance(store, local.SqliteStore)
        swept = "not json" if as_text else "{}"
        with store._state.write() as db:
            db.execute("UPDATE schedules SET swept = ? WHERE name = ?", (swept, name))


@pytest.mark.guarantee("G4")
@pytest.mark.parametrize("as_text", [True, False])
def test_g4_a_schedules_row_that_cannot_be_read_is_named_and_hides_no_other(store: Store, as_text: bool) -> None:
    good, bad = (SweptSchedule(schedule(name), SLOT) for name in ("Daily", "Spoiled"))
    for swept in (good, bad):
        store.note_swept(swept, now=NOW)
    spoil_a_schedule(store, "Spoiled", as_text=as_text)

    known = store.swept_schedules()

    assert known.schedules == (good,)
    (told,) = known.unreadable
    assert "Spoiled" in told


@pytest.mark.guarantee("G6")
@pytest.mark.parametrize("text", ['{"after":"é","size":1}', '{ "size": 1, "after": "\\u00e9" }'])
def test_g6_a_cursor_that_was_spelled_in_another_way_is_the_same_cursor(store: Store, text: str) -> None:
    run = claimed(store)
    set_cursor(store, text)
    assert store.memory(DIGEST).cursors == READ

    settled(store.store(run, DRAFT, MOVED, BILL, now=NOW, read=READ))

    assert store.memory(DIGEST).cursors == MOVED


@pytest.mark.guarantee("G6")
def test_g6_a_cursor_that_means_something_else_has_moved(store: Store) -> None:
    run = claimed(store)
    set_cursor(store, json.dumps({"after": "é", "size": 2}))

    with pytest.raises(CursorMoved):
        store.store(run, DRAFT, MOVED, BILL, now=NOW, read=READ)

    assert store.run(run.key) == run


@pytest.mark.parametrize("text", ["null", "[]", "5", "{not json", ""])
def test_a_cursor_that_is_none_is_never_guessed(store: Store, text: str) -> None:
    set_cursor(store, text)

    with pytest.raises(NeverSucceeds, match=r"^invalid_cursor: cursor of source 'mail' of daily-digest is .* put back"):
        store.memory(DIGEST)


def test_a_rejection_that_cannot_be_read_hides_neither_the_others_nor_the_cursors(store: Store) -> None:
    set_cursor(store, json.dumps(READ["mail"]))
    for day in range(3):
        settled(decide(store, pending(store, later(day)), Reject(RejectReason.TONE, f"no {day}")))
        if day == 1:
            damage_a_rejection(store)

    memory = store.memory(DIGEST)

    assert memory.cursors == READ
    assert [rejection.words for rejection in memory.rejections] == ["no 2", "no 0"]
    (named,) = memory.unreadable
    assert "'ugly'" in named
    assert named.endswith("is no rejection of a draft of daily-digest")


@pytest.mark.parametrize("status", [Status.FAILED, Status.SKIPPED])
def test_a_run_ends_although_its_drafters_count_was_lost(store: Store, status: Status) -> None:
    run = claimed(store)
    lose_the_count(store)

    after = settled(store.release(run, status, "misfired", "", BILL, now=NOW))

    assert after == store.run(run.key)
    assert store.drafter(DIGEST).pending == 0


def test_a_run_is_taken_over_though_its_drafters_count_is_lost(store: Store) -> None:
    claimed(store)
    lose_the_count(store)

    again = claimed(store, owner="invocation-2", now=NOW + 2 * LEASE)

    assert (again.attempts, again.owner) == (2, "invocation-2")


def test_a_run_does_not_end_as_empty_while_its_drafters_count_is_lost(store: Store) -> None:
    """It has then found nothing new, but what it would write beside contradicts the count: it fails, and says so."""
    run = claimed(store)
    lose_the_count(store)

    with pytest.raises(RowsDisagree):
        store.release(run, Status.EMPTY, "nothing_new", "", BILL, now=NOW)

    assert store.run(run.key) == run
