"""What each function does with the rows is what its role allows on the table: no less and no more.

No other test over moto would notice a missing right, since moto does not know whose call it is.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import boto3
import pytest

from galley.contract import CatchUp, Contract
from galley.drafts import Draft, text_hash
from galley.retry import RetryLater
from galley.runs import Origin, RejectReason, Run, RunMessage, SkipReason, Status
from galley.store import Approve, Bill, Claimed, Expire, Limits, Reject, Settled, Supersede, SweptSchedule
from galley.store.dynamodb import DynamoStore
from support.aws import REGION, deployed, watched
from support.outside import schedule
from template.expansion import ROOT, Template
from template.faults import allow, arn
from template.words import FUNCTIONS, rights_in, role_of

NOW = datetime(2026, 3, 27, 6, 5, tzinfo=UTC)
LIMITS = Limits(pending=6, daily_budget_nanousd=1_000_000_000, worst_cost_nanousd=1_000_000)
DRAFT = Draft(title="Morning", body="Two mails.", items=(), warnings=(), model="offline")

TRANSACTION = {"Put": "PutItem", "Update": "UpdateItem", "ConditionCheck": "ConditionCheckItem", "Delete": "DeleteItem"}
"""A transaction is authorised by the actions inside it.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
"""


def _message(hour: int) -> RunMessage:
    contract = Contract(window_minutes=30, grace_minutes=120, catch_up=CatchUp.LATEST)
    slot = datetime(2026, 3, 27, hour, tzinfo=UTC)
    return RunMessage(drafter="daily-digest", slot=slot, origin=Origin.SCHEDULE, contract=contract)


ABANDONED = _message(8).model_copy(update={"drafter": "weekly-report"})


def _claimed(store: DynamoStore, message: RunMessage, now: datetime = NOW) -> Run:
    outcome = store.claim(message, LIMITS, owner=f"owner at {now}", now=now, lease_until=now + timedelta(minutes=5))
    assert isinstance(outcome, Claimed)
    return outcome.run


def _stored(store: DynamoStore, hour: int) -> Run:
    read = store.memory("daily-digest").cursors
    moved = {"mail": {"seen": hour}}
    settled = store.store(_claimed(store, _message(hour)), DRAFT, moved, Bill(), now=NOW, read=read)
    assert isinstance(settled, Settled)
    return settled.run


def _decided(store: DynamoStore, run: Run, verdict: Approve | Reject) -> Run:
    settled = store.decide(
        run.key,
        verdict,
        version=run.version,
        read_hash=text_hash(DRAFT.title, DRAFT.body),
        reviewer="reviewer",
        now=NOW,
    )
    assert isinstance(settled, Settled)
    return settled.run


def _dispatch(store: DynamoStore) -> None:
    """It has no table."""


def _draft(store: DynamoStore) -> None:
    _stored(store, 1)
    store.release(_claimed(store, _message(2)), Status.EMPTY, "nothing_new", "", Bill(), now=NOW, cursors={"feed": {}})
    postponed = _claimed(store, _message(3))
    store.postpone(postponed, RetryLater("overloaded", ""), Bill(), now=NOW, next_attempt=NOW + timedelta(minutes=1))
    _claimed(store, _message(3), NOW + timedelta(minutes=2))
    store.skip(_message(4), SkipReason.MISFIRED, "", now=NOW)
    store.history("daily-digest")
    newer = _stored(store, 10)
    store.withdraw(newer, Supersede(newer.key), now=NOW)
    store.pause("daily-digest", "spend_limit", now=NOW)
    store.run(_message(1).key)
    store.history("daily-digest")
    store.draft(_message(1).key)


def _recover(store: DynamoStore) -> None:
    drafting = store.watched(Status.DRAFTING).runs
    store.swept_schedules()
    store.slot_statuses("daily-digest", NOW, NOW)
    store.drafter("daily-digest")
    store.note_swept(SweptSchedule(schedule(), NOW), now=NOW)
    store.forget_swept("DailyDigest", now=NOW)
    (abandoned,) = (run for run in drafting if run.key == ABANDONED.key)
    store.release(abandoned, Status.FAILED, "abandoned", "", Bill(), now=NOW)
    store.skip(_message(5), SkipReason.MISFIRED, "", now=NOW)
    store.remind(_message(9).key, now=NOW)
    store.history("daily-digest")
    waiting = next(run for run in store.watched(Status.PENDING).runs if run.slot.hour == 11)
    store.withdraw(waiting, Expire(), now=NOW)


def _review(store: DynamoStore) -> None:
    store.watched(Status.PENDING)
    store.history("daily-digest")
    store.drafter("daily-digest")
    store.draft(_message(1).key)
    first, second = store.run(_message(1).key), store.run(_message(6).key)
    assert first is not None
    assert second is not None
    _decided(store, first, Approve("Better", "Three mails."))
    _decided(store, second, Reject(RejectReason.TONE))


def _publish(store: DynamoStore) -> None:
    run = store.run(_message(7).key)
    assert run is not None
    store.draft(run.key)
    store.settle_publication(run, Status.PUBLISHED, "s3:published/", now=NOW)


USES: dict[str, Callable[[DynamoStore], None]] = {
    "dispatch": _dispatch,
    "draft": _draft,
    "recover": _recover,
    "review": _review,
    "publish": _publish,
}


@dataclass(frozen=True, slots=True)
class Used:
    """What a function asks of the store, and the rights (action and resource) that it takes."""

    operations: frozenset[str]
    rights: frozenset[tuple[str, str]]


class _Noting:
    """Stands for a store and notes which of its operations are asked for."""

    def __init__(self, store: DynamoStore) -> None:
        self.store_itself = store
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.asked.add(name)
        return getattr(self.store_itself, name)


@pytest.fixture(scope="module")
def used() -> Iterator[dict[str, Used]]:
    """What each function asks, in the order in which a draft meets the functions."""
    with deployed() as names:
        client = boto3.client("dynamodb", REGION)
        store = DynamoStore(client, names.table)
        _stored(store, 6)
        _decided(store, _stored(store, 7), Approve())
        _claimed(store, ABANDONED)
        store.queue(_message(9), now=NOW)
        _stored(store, 11)
        found: dict[str, Used] = {}
        for name in FUNCTIONS:
            noting = _Noting(store)
            with watched(client) as requests:
                USES[name](cast("DynamoStore", noting))
            made = zip(requests.made, requests.parameters, strict=True)
            rights = frozenset(right for operation, sent in made for right in _rights(operation, sent))
            found[name] = Used(frozenset(noting.asked), rights)
        yield found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_uses_are_all_that_the_code_asks_of_the_store(name: str, used: dict[str, Used]) -> None:
    """A new operation in a function's code must be tried here, where its rights are measured."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "functions" / name).rglob("*.py"))
    shared = [
        ROOT / "layers/galley/galley" / f"{module}.py" for module in re.findall(r"from galley\.(\w+) import", code)
    ]
    code += "\n".join(path.read_text(encoding="utf-8") for path in set(shared) if path.is_file())
    written = re.findall(r"store(?:\(\))?\.(\w+)\(", code)
    assert set(written) == used[name].operations


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_may_do_to_the_rows_what_it_does(name: str, template: Template, used: dict[str, Used]) -> None:
    assert used[name].rights - _allowed(name, template) == set()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_may_do_nothing_else_to_the_rows(name: str, template: Template, used: dict[str, Used]) -> None:
    assert _allowed(name, template) - used[name].rights == set()


def test_a_right_too_many_would_be_seen(template: Template, used: dict[str, Used]) -> None:
    allow("PublishRole", "dynamodb:PutItem", arn("Table"))(template)
    assert _allowed("publish", template) - used["publish"].rights == {("dynamodb:PutItem", "${Table.Arn}")}


def _rights(operation: str, sent: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if operation == "TransactWriteItems":
        for item in sent["TransactItems"]:
            yield from ((f"dynamodb:{TRANSACTION[kind]}", "${Table.Arn}") for kind in item)
    else:
        index = f"/index/{sent['IndexName']}" if "IndexName" in sent else ""
        yield f"dynamodb:{operation}", f"${{Table.Arn}}{index}"


def _allowed(name: str, template: Template) -> set[tuple[str, str]]:
    return {
        (right.action, right.resource)
        for right in rights_in(template, role_of(name))
        if right.action.startswith("dynamodb:") and not right.resource.endswith("/stream/*")
    }
