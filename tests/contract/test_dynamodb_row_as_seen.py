"""What a person changed in the table by hand is noticed by whoever writes next; and how a refusal is told."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ParamValidationError
from moto import mock_aws

from contract.material import BILL, CURSORS, DAY, DIGEST, DRAFT, NOW, WEEK, claimed, decide, later, pending, settled
from galley.runs import Status
from galley.store import Conflict, Cursor, LeaseLost, Limits, StoreBusy
from galley.store.dynamodb import DynamoStore
from support.aws import client, create_table, error, watched

RUN = {"pk": {"S": f"RUN#{DIGEST}"}, "sk": {"S": "2026-03-02T06:00:00Z"}}


@dataclass(frozen=True)
class Table:
    """A table in moto, and the store over it."""

    client: Any
    name: str
    store: DynamoStore

    def row(self) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get_item(TableName=self.name, Key=RUN)["Item"]
        return found

    def change(self, attribute: str, value: dict[str, str]) -> dict[str, Any]:
        """Change one attribute of the run's row, and return the row."""
        row = {**self.row(), attribute: value}
        self.client.put_item(TableName=self.name, Item=row)
        return row


def _cancelled(code: str, text: str) -> dict[str, Any]:
    """Return the answer to a transaction whose first write was refused, and whose second had a condition."""
    reasons = [{"Code": code, "Message": text}, {"Code": "ConditionalCheckFailed"}, {"Code": "None"}]
    return error("TransactionCanceledException", "cancelled", CancellationReasons=reasons)


@pytest.fixture
def table() -> Iterator[Table]:
    with mock_aws():
        dynamodb = client("dynamodb")
        name = create_table(dynamodb)
        yield Table(dynamodb, name, DynamoStore(dynamodb, name))


@pytest.mark.guarantee("G1")
@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("version", {"N": "2"}),
        ("status", {"S": "queued"}),
        ("owner", {"S": "somebody"}),
        ("text_hash", {"S": "another text's"}),
    ],
)
def test_g1_a_claimed_row_that_was_changed_by_hand_is_not_its_owners_any_more(
    table: Table, attribute: str, value: dict[str, str]
) -> None:
    run = claimed(table.store)
    changed = table.change(attribute, value)

    assert isinstance(table.store.store(run, DRAFT, CURSORS, BILL, now=NOW), LeaseLost)
    assert table.row() == changed
    assert (table.store.draft(run.key), table.store.memory(DIGEST).cursors) == (None, {})


@pytest.mark.guarantee("G8")
@pytest.mark.parametrize(("attribute", "value"), [("status", {"S": "pending"}), ("text_hash", {"S": "another text's"})])
def test_g8_an_approved_row_that_was_changed_by_hand_is_not_marked_as_published(
    table: Table, attribute: str, value: dict[str, str]
) -> None:
    run = settled(decide(table.store, pending(table.store)))
    changed = table.change(attribute, value)

    assert isinstance(table.store.settle_publication(run, Status.PUBLISHED, "s3", now=NOW), Conflict)
    assert table.row() == changed


@pytest.mark.guarantee("G11")
def test_g11_a_days_spend_is_kept_for_sixty_utc_days_wherever_the_machine_is(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Kathmandu")
        time.tzset()
        claimed(table.store, limits=Limits(3, 10_000, 4_000))
    time.tzset()

    key = {"pk": {"S": f"DRAFTER#{DIGEST}"}, "sk": {"S": f"SPEND#{DAY}"}}
    expires = int(table.client.get_item(TableName=table.name, Key=key)["Item"]["expires"]["N"])
    assert datetime.fromtimestamp(expires, UTC) == datetime(2026, 5, 1, tzinfo=UTC)


def test_a_request_that_can_never_be_sent_is_no_table_that_others_hold(table: Table) -> None:
    with pytest.raises(ParamValidationError, match="TableName"):
        claimed(DynamoStore(table.client, ""))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(error("ValidationException", "an expression is wrong"), id="invalid, but not too large"),
        pytest.param(error("AccessDeniedException", "no access to a row of any size"), id="another refusal"),
        pytest.param(_cancelled("ValidationError", "an expression is wrong"), id="a row is invalid, but not too large"),
        pytest.param(_cancelled("ItemCollectionSizeLimitExceeded", "size"), id="a row is refused for something else"),
    ],
)
def test_only_what_is_too_large_is_called_too_large(table: Table, answer: dict[str, Any]) -> None:
    with watched(table.client) as requests:
        requests.answer_with(400, answer)
        with pytest.raises(ClientError, match=answer["Error"]["Code"]):
            claimed(table.store)


def test_a_table_that_cannot_be_reached_is_busy_and_not_at_fault(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(**request: object) -> None:
        raise EndpointConnectionError(endpoint_url="https://dynamodb.example")

    monkeypatch.setattr(table.client, "transact_write_items", unreachable)
    with pytest.raises(StoreBusy, match=f"table {table.name}: "):
        claimed(table.store)


def test_a_write_without_a_condition_asks_for_none(table: Table) -> None:
    """DynamoDB refuses an empty one, which moto takes."""
    with watched(table.client) as requests:
        table.store.pause(DIGEST, "by hand", now=NOW)
        (write,) = requests.parameters[0]["TransactItems"]
    assert "ConditionExpression" not in write["Update"]


@pytest.mark.guarantee("G6")
def test_g6_cursors_that_were_all_spelled_in_another_way_move_with_all_else(table: Table) -> None:
    before: dict[str, Cursor] = {f"source-{number}": {"after": number, "seen": []} for number in range(9)}
    after: dict[str, Cursor] = {source: {"after": 100, "seen": [source]} for source in before}
    settled(table.store.store(claimed(table.store), DRAFT, before, BILL, now=NOW))
    for source, cursor in before.items():
        key = {"pk": {"S": f"DRAFTER#{DIGEST}"}, "sk": {"S": f"SOURCE#{source}"}}
        spelled = {**key, "cursor": {"S": json.dumps(cursor, indent=1)}}
        table.client.put_item(TableName=table.name, Item=spelled)

    run = claimed(table.store, later(1))
    ended = settled(table.store.store(run, DRAFT, after, BILL, now=NOW, read=table.store.memory(DIGEST).cursors))

    assert table.store.memory(DIGEST).cursors == after
    assert table.store.run(run.key) == ended
    assert table.store.draft(run.key) is not None
    assert table.store.week(DIGEST, WEEK)["drafted"] == 2
