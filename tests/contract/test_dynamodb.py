"""What is DynamoDB's own: how many requests an operation takes, conflicts, sizes, the rows themselves."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from contract.material import (
    BILL,
    CURSORS,
    DAY,
    DIGEST,
    DRAFT,
    EDIT,
    LEASE,
    NOW,
    claim,
    claimed,
    decide,
    later,
    pending,
    queued,
    settled,
)
from galley.retry import NeverSucceeds, RetryLater
from galley.runs import RejectReason, SkipReason, Status
from galley.store import (
    AlreadyThere,
    Approve,
    Bill,
    Busy,
    Claimed,
    Conflict,
    Duplicate,
    Expire,
    Gated,
    LeaseLost,
    Limits,
    Memory,
    OverBudget,
    Paused,
    Reject,
    RowsDisagree,
    Settled,
    StoreBusy,
    UnreadableRow,
)
from galley.store.dynamodb import MOST_ITEM_BYTES, TRIES, DynamoStore
from support.aws import Requests, client, create_table, error, watched

TRANSACTION, READ, QUERY = "TransactWriteItems", "GetItem", "Query"
CONFLICT = {"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}
FINE = {"Code": "None"}


@dataclass
class Table:
    """A table in moto, the store over it, what the store asks of it, and how long it waited."""

    client: Any
    name: str
    requests: Requests
    waits: list[float] = field(default_factory=list)

    @property
    def store(self) -> DynamoStore:
        return DynamoStore(self.client, self.name, sleep=self.waits.append, jitter=lambda: 0.5)

    def row(self, pk: str, sk: str) -> dict[str, Any] | None:
        answer = self.client.get_item(TableName=self.name, Key={"pk": {"S": pk}, "sk": {"S": sk}})
        found: dict[str, Any] | None = answer.get("Item")
        return found

    def put(self, row: dict[str, Any]) -> None:
        self.client.put_item(TableName=self.name, Item=row)

    def delete(self, pk: str, sk: str) -> None:
        self.client.delete_item(TableName=self.name, Key={"pk": {"S": pk}, "sk": {"S": sk}})

    def rows(self) -> list[dict[str, Any]]:
        found = self.client.scan(TableName=self.name)["Items"]
        return sorted(found, key=lambda row: (row["pk"]["S"], row["sk"]["S"]))

    def cancel(self, *reasons: dict[str, Any], times: int = 1) -> None:
        cancelled = error("TransactionCanceledException", "cancelled", CancellationReasons=list(reasons))
        self.requests.answer_with(400, cancelled, times=times)


@pytest.fixture
def table() -> Iterator[Table]:
    with mock_aws():
        name = create_table(client("dynamodb"))
        with watched(client("dynamodb")) as requests:
            yield Table(client("dynamodb"), name, requests)


def test_each_operation_takes_as_few_requests_as_it_can(table: Table) -> None:
    store, requests = table.store, table.requests

    def asked(outcome: object, kind: type, *expected: str) -> Any:
        assert isinstance(outcome, kind), outcome
        assert requests.made == list(expected)
        requests.forget()
        return outcome

    limits = Limits(1, 100_000, 10_000)
    requests.forget()
    run = asked(claim(store, limits=limits), Claimed, TRANSACTION).run
    asked(claim(store, limits=limits, owner="b"), Busy, TRANSACTION)
    asked(claim(store, later(1), limits), Gated, TRANSACTION)
    asked(store.skip(later(1), SkipReason.GATE, "", now=NOW), object, TRANSACTION)
    asked(store.skip(later(1), SkipReason.GATE, "", now=NOW), AlreadyThere, TRANSACTION)
    asked(store.postpone(run, RetryLater("timeout", ""), BILL, now=NOW, next_attempt=NOW), object, TRANSACTION)
    run = asked(claim(store, limits=limits, owner="b"), Claimed, TRANSACTION, TRANSACTION).run
    asked(store.store(run, DRAFT, CURSORS, BILL, now=NOW), object, TRANSACTION)
    asked(claim(store, limits=limits), Duplicate, TRANSACTION)
    asked(store.memory(DIGEST), Memory, QUERY)
    read = asked(store.run(run.key), object, READ)
    asked(store.draft(run.key), object, READ)
    asked(decide(store, read, EDIT), object, READ, TRANSACTION)
    rejected = pending(store, later(3))
    requests.forget()
    asked(decide(store, rejected, Reject(RejectReason.TONE)), Settled, READ, TRANSACTION)
    asked(store.watched(Status.APPROVED), object, QUERY)
    waiting = pending(store, later(2))
    requests.forget()
    asked(store.withdraw(waiting, Expire(), now=NOW), Settled, TRANSACTION)
    asked(store.withdraw(waiting, Expire(), now=NOW + LEASE), Conflict, TRANSACTION)
    asked(store.history(DIGEST), object, QUERY)
    asked(store.drafter(DIGEST), object, READ)


def test_no_expression_is_empty_since_dynamodb_refuses_those(table: Table) -> None:
    table.requests.forget()
    decide(table.store, pending(table.store), EDIT)
    writes = [
        write for one in table.requests.parameters for item in one.get("TransactItems", ()) for write in item.values()
    ]
    assert len(writes) > 5
    for write in writes:
        assert all(value for name, value in write.items() if name.startswith(("Condition", "Expression", "Update")))


def test_slots_that_run_backwards_are_none_and_are_not_asked_for(table: Table) -> None:
    claimed(table.store)
    table.requests.forget()
    assert table.store.slot_statuses(DIGEST, later(1).slot, later(0).slot) == {}
    assert table.requests.made == []


def test_what_decides_is_read_consistently_and_what_lists_pending_runs_need_not_be(table: Table) -> None:
    run = pending(table.store)
    table.requests.forget()

    table.store.run(run.key)
    table.store.draft(run.key)
    table.store.memory(DIGEST)
    table.store.drafter(DIGEST)
    table.store.history(DIGEST)
    assert [asked.get("ConsistentRead") for asked in table.requests.parameters] == [True] * 5

    table.requests.forget()
    table.store.watched(Status.PENDING)
    assert "ConsistentRead" not in table.requests.parameters[0]


def test_a_row_reads_like_what_it_is(table: Table) -> None:
    store = table.store
    run = claimed(store, limits=Limits(3, 10_000, 4_000))
    row = table.row(f"RUN#{DIGEST}", "2026-03-02T06:00:00Z")
    assert row is not None
    assert row["status"] == row["queue"] == {"S": "drafting"}
    assert row["queue_at"] == row["lease_until"] == {"S": "2026-03-02T06:06:00Z"}
    assert row["contract"]["M"]["window_minutes"] == {"N": "30"}

    read = settled(store.store(run, DRAFT, CURSORS, BILL, now=NOW))
    row = table.row(f"RUN#{DIGEST}", "2026-03-02T06:00:00Z")
    assert row is not None
    assert row["queue"] == {"S": "pending"}
    assert {"owner", "lease_until", "reason", "next_attempt", "rules"}.isdisjoint(row)
    cursor = table.row(f"DRAFTER#{DIGEST}", "SOURCE#mail")
    assert cursor is not None
    assert json.loads(cursor["cursor"]["S"]) == CURSORS["mail"]

    settled(decide(store, read, Reject(RejectReason.TONE)))
    row = table.row(f"RUN#{DIGEST}", "2026-03-02T06:00:00Z")
    assert row is not None
    assert {"queue", "queue_at"}.isdisjoint(row)
    assert row["decision"]["M"]["reason"] == {"S": "tone"}
    rejections = table.row(f"DRAFTER#{DIGEST}", "REJECTIONS")
    assert rejections is not None
    assert rejections["latest_1"] == {
        "M": {"slot": {"S": "2026-03-02T06:00:00Z"}, "reason": {"S": "tone"}, "words": {"S": ""}}
    }


@pytest.mark.guarantee("G11")
def test_g11_a_days_spend_is_forgotten_sixty_days_later(table: Table) -> None:
    claimed(table.store, limits=Limits(3, 10_000, 4_000))

    row = table.row(f"DRAFTER#{DIGEST}", f"SPEND#{DAY}")

    assert row is not None
    assert row["committed"] == {"N": "4000"}
    assert datetime.fromtimestamp(int(row["expires"]["N"]), UTC) == datetime(2026, 5, 1, tzinfo=UTC)


def test_a_newer_versions_attributes_survive_an_older_versions_change(table: Table) -> None:
    run = pending(table.store)
    row = table.row(f"RUN#{DIGEST}", "2026-03-02T06:00:00Z") or {}
    table.put({**row, "priority": {"S": "high"}})

    settled(decide(table.store, run))

    row = table.row(f"RUN#{DIGEST}", "2026-03-02T06:00:00Z") or {}
    assert row["priority"] == {"S": "high"}


@pytest.mark.parametrize(
    "in_the_way",
    [
        error("TransactionCanceledException", CancellationReasons=[CONFLICT, FINE, FINE]),
        error("TransactionCanceledException", CancellationReasons=[FINE, CONFLICT, FINE]),
        error("TransactionCanceledException", CancellationReasons=[FINE, {"Code": "ThrottlingError"}, FINE]),
        error("TransactionCanceledException", CancellationReasons=[{"Code": "ProvisionedThroughputExceeded"}, FINE]),
        error("ThrottlingException"),
        error("TransactionInProgressException"),
        error("ProvisionedThroughputExceededException"),
    ],
    ids=lambda answer: f"{answer['Error']['Code']} {[one['Code'] for one in answer.get('CancellationReasons', [])]}",
)
def test_what_stands_in_the_way_for_a_moment_is_waited_out(table: Table, in_the_way: dict[str, Any]) -> None:
    table.requests.answer_with(400, in_the_way, times=TRIES - 1)

    run = claimed(table.store, limits=Limits(3, 10_000, 4_000))

    assert table.store.run(run.key) == run
    assert table.store.drafter(DIGEST).pending == 1
    assert table.waits == sorted(table.waits)
    assert len(table.waits) == TRIES - 1
    assert 0.5 < sum(table.waits) < 5


def test_the_same_request_bears_the_same_token_each_time_and_another_one_another(table: Table) -> None:
    table.cancel(CONFLICT, FINE, FINE, times=2)
    table.requests.forget()
    claimed(table.store)
    tokens = [asked["ClientRequestToken"] for asked in table.requests.parameters]
    assert len(tokens) == 3
    assert len(set(tokens)) == 1
    assert len(tokens[0]) <= 36

    read = pending(table.store, later(1))
    table.requests.forget()
    decide(table.store, read, now=NOW)
    decide(table.store, replace(read, version=1), now=NOW)
    claim(table.store, later(2), now=NOW)
    claim(table.store, later(2), owner="b", now=NOW)
    table.store.skip(later(3), SkipReason.GATE, "", now=NOW)
    table.store.skip(later(3), SkipReason.GATE, "", now=NOW + timedelta(microseconds=1))
    tokens = [asked["ClientRequestToken"] for asked in table.requests.parameters if "ClientRequestToken" in asked]
    assert len(tokens) == len(set(tokens)) == 5


BUSY: dict[str, Any] = {
    "claim": lambda store, run: claim(store, later(5)),
    "store": lambda store, run: store.store(run, DRAFT, CURSORS, BILL, now=NOW),
    "release": lambda store, run: store.release(run, Status.FAILED, "refusal", "", BILL, now=NOW),
    "postpone": lambda store, run: store.postpone(run, RetryLater("timeout", ""), BILL, now=NOW, next_attempt=NOW),
    "skip": lambda store, run: store.skip(later(5), SkipReason.GATE, "", now=NOW),
    "pause": lambda store, run: store.pause(DIGEST, "by hand", now=NOW),
    "resume": lambda store, run: store.resume(DIGEST, now=NOW),
}


@pytest.mark.parametrize("operation", BUSY)
def test_what_stays_in_the_way_is_told_and_nothing_has_happened(table: Table, operation: str) -> None:
    run = claimed(table.store)
    before = table.rows()
    table.requests.answer_with(400, error("TransactionCanceledException", CancellationReasons=[CONFLICT]), times=TRIES)

    with pytest.raises(StoreBusy, match="TransactionConflict at each of 8 tries"):
        BUSY[operation](table.store, run)

    assert table.rows() == before


def test_what_is_nobodys_conflict_is_not_tried_again(table: Table) -> None:
    table.requests.forget()
    table.requests.answer_with(400, error("AccessDeniedException", "not authorized"))
    with pytest.raises(ClientError, match="AccessDenied"):
        claim(table.store)
    assert table.requests.made == [TRANSACTION]

    table.cancel({"Code": "ItemCollectionSizeLimitExceeded"}, FINE)
    with pytest.raises(ClientError, match="TransactionCanceled"):
        claim(table.store)
    table.cancel()
    with pytest.raises(ClientError, match="TransactionCanceled"):
        claim(table.store)
    assert table.waits == []


def test_the_place_of_a_reason_tells_what_stood_in_the_way(table: Table) -> None:
    """DynamoDB names every part that failed; what stands first in the transaction is told."""
    failed = {"Code": "ConditionalCheckFailed"}
    full = {**failed, "Item": {"pending": {"N": "3"}}}
    paused = {**failed, "Item": {"pending": {"N": "3"}, "paused": {"S": "by hand"}}}
    spent = {**failed, "Item": {"committed": {"N": "9000"}}}
    limits = Limits(3, 10_000, 4_000)

    answers: list[tuple[tuple[dict[str, Any], ...], object]] = [
        ((FINE, full, FINE), Gated(3)),
        ((FINE, full, spent), Gated(3)),
        ((FINE, paused, spent), Paused("by hand")),
        ((FINE, FINE, spent), OverBudget(9_000)),
        ((FINE, FINE, failed), OverBudget(0)),
    ]
    for reasons, told in answers:
        table.cancel(*reasons)
        assert claim(table.store, limits=limits) == told
    assert table.waits == []

    run = pending(table.store, later(1))
    own_row = table.row(f"RUN#{DIGEST}", "2026-03-03T06:00:00Z")
    table.cancel({**failed, "Item": own_row}, paused, spent)
    assert claim(table.store, later(1), limits) == Duplicate(run)


def test_a_claim_under_which_the_row_keeps_changing_gives_up(table: Table) -> None:
    run = queued(table.store)
    row = table.row(f"RUN#{DIGEST}", "2026-03-02T06:00:00Z")
    table.cancel({"Code": "ConditionalCheckFailed", "Item": row}, FINE, times=5)

    with pytest.raises(StoreBusy, match="kept changing"):
        claim(table.store, run.message)

    assert table.store.run(run.key) == run


@pytest.mark.guarantee("G7")
def test_g7_a_decision_that_was_overtaken_between_reading_and_writing_is_a_conflict(table: Table) -> None:
    read = pending(table.store)
    winner = settled(decide(table.store, read, reviewer="ben"))
    stale = table.row(f"RUN#{DIGEST}", "2026-03-02T06:00:00Z") or {}
    stale = {**stale, "status": {"S": "pending"}, "version": {"N": str(read.version)}}
    table.requests.answer_with(200, {"Item": stale})

    outcome = decide(table.store, read, EDIT, now=NOW + timedelta(seconds=1))

    assert outcome == Conflict(winner)
    assert "edited_title" not in (table.row(f"TEXT#{DIGEST}", "2026-03-02T06:00:00Z") or {})


GIVING_BACK: dict[str, Any] = {
    "empty": lambda store, run, _: store.release(run, Status.EMPTY, "", "", BILL, now=NOW, cursors=CURSORS),
    "yes": lambda store, _, read: decide(store, read, EDIT),
    "no": lambda store, _, read: decide(store, read, Reject(RejectReason.TONE)),
}


@pytest.mark.guarantee("G2")
@pytest.mark.parametrize("count", [None, "0"], ids=["no count", "a count of zero"])
@pytest.mark.parametrize("operation", GIVING_BACK)
def test_g2_a_place_that_is_not_counted_is_loud_and_changes_nothing(
    table: Table, operation: str, count: str | None
) -> None:
    run, read = claimed(table.store), pending(table.store, later(1))
    table.delete(f"DRAFTER#{DIGEST}", "STATE")
    if count is not None:
        table.put({"pk": {"S": f"DRAFTER#{DIGEST}"}, "sk": {"S": "STATE"}, "pending": {"N": count}})
    before = table.rows()

    with pytest.raises(RowsDisagree, match=rf"run {DIGEST}:\S+ holds a place, but {DIGEST} has 0"):
        GIVING_BACK[operation](table.store, run, read)

    assert table.rows() == before


def test_an_edit_of_a_draft_that_is_gone_is_loud_and_makes_no_half_a_draft(table: Table) -> None:
    read = pending(table.store)
    table.delete(f"TEXT#{DIGEST}", "2026-03-02T06:00:00Z")
    before = table.rows()

    with pytest.raises(RowsDisagree, match="its draft is missing"):
        decide(table.store, read, EDIT)

    assert table.rows() == before


@pytest.mark.guarantee("G6")
@pytest.mark.parametrize("body", ["x" * MOST_ITEM_BYTES, "ä" * (MOST_ITEM_BYTES // 2), "☕" * (MOST_ITEM_BYTES // 3)])
def test_g6_a_draft_larger_than_a_row_never_succeeds_and_moves_no_cursor(table: Table, body: str) -> None:
    run = claimed(table.store)
    before = table.rows()
    table.requests.forget()

    with pytest.raises(NeverSucceeds, match=rf"draft of {DIGEST}:\S+ takes \d+ bytes of the 409600") as raised:
        table.store.store(run, replace(DRAFT, body=body), CURSORS, BILL, now=NOW)

    assert raised.value.reason == "draft_too_large"
    assert table.requests.made == []
    assert table.rows() == before


def test_a_draft_that_fits_is_stored(table: Table) -> None:
    run = claimed(table.store)

    settled(table.store.store(run, replace(DRAFT, body="x" * 400_000), CURSORS, BILL, now=NOW))


@pytest.mark.guarantee("G6")
def test_g6_a_draft_that_dynamodb_itself_finds_too_large_is_refused_like_one_that_is(table: Table) -> None:
    """moto draws the line a little earlier than the documentation."""
    run = claimed(table.store)
    before = table.rows()

    with pytest.raises(NeverSucceeds, match=r"draft_too_large: .*Item size has exceeded the maximum"):
        table.store.store(run, replace(DRAFT, body="x" * 406_000), CURSORS, BILL, now=NOW)

    assert table.rows() == before


def test_an_edit_that_does_not_fit_beside_its_original_is_refused_and_the_run_waits_on(table: Table) -> None:
    read = pending(table.store)

    with pytest.raises(NeverSucceeds, match="draft_too_large: edit of"):
        decide(table.store, read, Approve("title", "x" * MOST_ITEM_BYTES))

    too_large = {"Code": "ValidationError", "Message": "Item size to update has exceeded the maximum allowed size"}
    row = table.row(f"RUN#{DIGEST}", "2026-03-02T06:00:00Z")
    table.requests.answer_with(200, {"Item": row})
    table.cancel(FINE, FINE, too_large, FINE)
    with pytest.raises(NeverSucceeds, match="draft_too_large: a row would be larger"):
        decide(table.store, read, EDIT)
    assert table.store.run(read.key) == read


UNREADABLE: dict[str, dict[str, Any]] = {
    "an unknown status": {"status": {"S": "resting"}},
    "no version": {"version": None},
    "a version that is no number": {"version": {"N": "1.5"}},
    "a naive instant": {"created": {"S": "2026-03-02T06:00:00"}},
    "a broken contract": {"contract": {"M": {"window_minutes": {"N": "0"}}}},
    "a contract that is a text": {"contract": {"S": "daily"}},
    "a decision without a reviewer": {"decision": {"M": {"at": {"S": "2026-03-02T06:00:00Z"}}}},
    "a set": {"usage": {"NS": ["1", "2"]}},
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_row_that_cannot_be_read_is_named_and_hides_no_other(table: Table, what: str) -> None:
    broken, good = pending(table.store, later(0)), pending(table.store, later(1))
    row = {**(table.row(f"RUN#{DIGEST}", "2026-03-02T06:00:00Z") or {}), **UNREADABLE[what]}
    table.put({name: value for name, value in row.items() if value is not None})

    for page in (table.store.watched(Status.PENDING), table.store.history(DIGEST)):
        assert page.runs == (good,)
        (line,) = page.unreadable
        assert line.startswith(f"row RUN#{DIGEST} 2026-03-02T06:00:00Z: ")
        assert "\n" not in line
    with pytest.raises(UnreadableRow):
        table.store.run(broken.key)
    with pytest.raises(UnreadableRow):
        claim(table.store)


def test_an_unreadable_row_at_the_end_of_a_page_does_not_end_the_listing(table: Table) -> None:
    runs = [pending(table.store, later(number)) for number in range(3)]
    row = table.row(f"RUN#{DIGEST}", "2026-03-03T06:00:00Z") or {}
    table.put({**row, "status": {"S": "resting"}})

    first = table.store.history(DIGEST, limit=2)
    second = table.store.history(DIGEST, limit=2, after=first.next)

    assert (first.runs, len(first.unreadable), second.runs) == ((runs[2],), 1, (runs[0],))


@pytest.mark.parametrize("edited", [{"edited_title": {"S": "half"}}, {"body": None}])
def test_a_draft_that_cannot_be_read_is_named(table: Table, edited: dict[str, Any]) -> None:
    run = pending(table.store)
    row = {**(table.row(f"TEXT#{DIGEST}", "2026-03-02T06:00:00Z") or {}), **edited}
    table.put({name: value for name, value in row.items() if value is not None})

    with pytest.raises(UnreadableRow, match="draft 'Montag"):
        table.store.draft(run.key)


def test_a_place_in_a_listing_cannot_lead_into_another_one(table: Table) -> None:
    runs = [pending(table.store, later(number)) for number in range(2)]
    token = table.store.history(DIGEST, limit=1).next
    assert token is not None

    assert json.loads(base64.urlsafe_b64decode(token)) == ["2026-03-03T06:00:00Z"]
    assert table.store.history("nobody", after=token).runs == ()
    assert table.store.history(DIGEST, after=token).runs == (runs[0],)


def test_a_listing_reads_on_where_dynamodb_cut_its_answer(table: Table) -> None:
    """An answer ends after a megabyte, however few rows that are."""
    runs = [pending(table.store, later(number)) for number in range(3)]
    rows = [table.row(f"RUN#{DIGEST}", f"2026-03-0{day}T06:00:00Z") for day in (4, 3, 2)]
    table.requests.forget()
    place = {"pk": {"S": f"RUN#{DIGEST}"}, "sk": {"S": "2026-03-04T06:00:00Z"}}
    table.requests.answer_with(200, {"Items": rows[:1], "LastEvaluatedKey": place})

    page = table.store.history(DIGEST, limit=2)

    assert page.runs == (runs[2], runs[1])
    assert page.next is not None
    assert [asked["Limit"] for asked in table.requests.parameters] == [3, 2]


def test_a_lost_lease_costs_one_request_and_tells_whose_run_it_is_now(table: Table) -> None:
    mine = claimed(table.store, owner="a")
    theirs = claimed(table.store, owner="b", now=NOW + LEASE)
    table.requests.forget()

    assert table.store.store(mine, DRAFT, CURSORS, BILL, now=NOW) == LeaseLost(theirs)
    assert table.requests.made == [TRANSACTION]


def test_an_idle_model_costs_no_row_for_the_spend(table: Table) -> None:
    """Without a budget and with a model that costs nothing there is nothing to keep of the day."""
    run = claimed(table.store, limits=Limits(3, None, 0))
    settled(table.store.release(run, Status.EMPTY, "nothing_new", "", Bill(), now=NOW))

    assert table.row(f"DRAFTER#{DIGEST}", f"SPEND#{DAY}") is None
    assert table.store.committed_nanousd(DIGEST, DAY) == 0


def test_every_row_that_a_run_leaves_is_under_one_of_the_known_keys(table: Table) -> None:
    store = table.store
    run = claimed(store, limits=Limits(3, 10_000, 4_000))
    decide(store, settled(store.store(run, DRAFT, CURSORS, BILL, now=NOW)), Reject(RejectReason.TONE))
    store.pause(DIGEST, "by hand", now=NOW)

    assert [(row["pk"]["S"], row["sk"]["S"]) for row in table.rows()] == [
        (f"DRAFTER#{DIGEST}", "REJECTIONS"),
        (f"DRAFTER#{DIGEST}", "SOURCE#feed"),
        (f"DRAFTER#{DIGEST}", "SOURCE#mail"),
        (f"DRAFTER#{DIGEST}", f"SPEND#{DAY}"),
        (f"DRAFTER#{DIGEST}", "STATE"),
        (f"DRAFTER#{DIGEST}", "WEEK#2026-W10"),
        (f"RUN#{DIGEST}", "2026-03-02T06:00:00Z"),
        (f"TEXT#{DIGEST}", "2026-03-02T06:00:00Z"),
    ]


def test_opening_the_store_asks_for_nothing(table: Table) -> None:
    table.requests.forget()

    DynamoStore(table.client, "no-such-table")

    assert table.requests.made == []
