"""A request that was done, and whose answer never came: DynamoDB does it once, however often it is repeated.

Only DynamoDB Local can show that. moto takes no notice of a request's token.
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ReadTimeoutError

from contract.material import (
    BILL,
    CURSORS,
    DRAFT,
    EDIT,
    NOW,
    approved,
    claim,
    claimed,
    decide,
    everything,
    failed,
    later,
    message,
    pending,
)
from galley.retry import Fault
from galley.runs import RejectReason, SkipReason, Status
from galley.store import Claimed, Conflict, Limits, Reject, Settled, Store, StoreBusy
from galley.store.dynamodb import DynamoStore
from support.dynamodb_local import LOOPBACK, connect, fresh_table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = LOOPBACK

SDK_ATTEMPTS = 4
NO = Reject(RejectReason.TONE, "too loud")
LIMITS = Limits(3, 100_000, 10_000)

Prepared = Callable[[], object]
OPERATIONS: dict[str, tuple[type, Callable[[Store], Prepared]]] = {
    "claim": (Claimed, lambda store: lambda: claim(store, limits=LIMITS)),
    "store": (Settled, lambda store: _with(claimed(store, limits=LIMITS), lambda run: _stored(store, run))),
    "release": (
        Settled,
        lambda store: _with(
            claimed(store, limits=LIMITS),
            lambda run: store.release(run, Status.EMPTY, "nothing_new", "", BILL, now=NOW, cursors=CURSORS),
        ),
    ),
    "postpone": (
        Settled,
        lambda store: _with(
            claimed(store, limits=LIMITS),
            lambda run: store.postpone(run, Fault("unexpected_error", "?"), BILL, now=NOW, next_attempt=NOW),
        ),
    ),
    "skip": (Settled, lambda store: lambda: store.skip(message(), SkipReason.GATE, "", now=NOW)),
    "decide": (Settled, lambda store: _with(pending(store), lambda run: decide(store, run, EDIT))),
    "reject": (Settled, lambda store: _with(pending(store), lambda run: decide(store, run, NO))),
    "resend": (Settled, lambda store: _with(failed(store), lambda run: store.resend(run.key, now=NOW))),
    "settle_publication": (
        Settled,
        lambda store: _with(
            approved(store), lambda run: store.settle_publication(run, Status.PUBLISHED, "s3:published", now=NOW)
        ),
    ),
}

READS_FIRST = frozenset({"decide", "reject", "resend"})
"""These read the row and see that it has changed: the caller is shown what is now there, which is their own doing."""


def _with(run: Any, operation: Callable[[Any], object]) -> Prepared:
    return lambda: operation(run)


def _stored(store: Store, run: Any) -> object:
    return store.store(run, DRAFT, CURSORS, BILL, now=NOW)


@dataclass
class Line:
    """A client, and the line to DynamoDB Local, on which answers get lost after their requests were done."""

    client: "DynamoDBClient"
    lost: int = 0
    _to_lose: int = 0

    def lose(self, answers: int) -> None:
        """Lose the answers to the next transactions."""
        self._to_lose = answers

    def send(self, request: Any, **_: Any) -> None:
        """Send a request in botocore's place, if its answer is to be lost: botocore calls this for each."""
        if self.lost < self._to_lose:
            answer = self.client._endpoint.http_session.send(request)  # type: ignore[attr-defined]
            assert answer.status_code == 200
            self.lost += 1
            raise ReadTimeoutError(endpoint_url=request.url)


@pytest.fixture
def line(dynamodb_local: str, monkeypatch: pytest.MonkeyPatch) -> Line:
    """A line of one's own, on which the SDK repeats its requests at once."""
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0)
    line = Line(connect(dynamodb_local))
    line.client.meta.events.register("before-send.dynamodb.TransactWriteItems", line.send)
    return line


@contextmanager
def store_at(line: Line) -> Iterator[DynamoStore]:
    with fresh_table(line.client) as table:
        yield DynamoStore(line.client, table)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_the_sdk_repeats_happens_once_and_is_told_as_if_no_answer_had_been_lost(
    line: Line, operation: str
) -> None:
    kind, prepare = OPERATIONS[operation]
    with store_at(line) as store:
        undisturbed = prepare(store)()
        expected = everything(store)
    with store_at(line) as store:
        prepared = prepare(store)
        line.lose(SDK_ATTEMPTS - 1)
        outcome = prepared()

        assert line.lost == SDK_ATTEMPTS - 1
        assert isinstance(outcome, kind)
        assert outcome == undisturbed
        assert everything(store) == expected


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_the_caller_repeats_at_the_same_instant_happens_once(line: Line, operation: str) -> None:
    kind, prepare = OPERATIONS[operation]
    with store_at(line) as store:
        prepare(store)()
        expected = everything(store)
    with store_at(line) as store:
        prepared = prepare(store)
        line.lose(SDK_ATTEMPTS)
        with pytest.raises(StoreBusy):
            prepared()
        assert everything(store) == expected

        assert isinstance(prepared(), Conflict if operation in READS_FIRST else kind)
        assert everything(store) == expected


@pytest.mark.guarantee("G2")
def test_g2_a_claim_whose_answers_are_all_lost_holds_one_place_until_its_lease_ends(line: Line) -> None:
    with store_at(line) as store:
        line.lose(SDK_ATTEMPTS)
        with pytest.raises(StoreBusy):
            claim(store, limits=Limits(2, None, 0))

        run = store.run(message().key)
        assert run is not None
        assert run.status is Status.DRAFTING
        assert store.drafter(run.drafter).pending == 1
        claimed(store, later(1), Limits(2, None, 0))
