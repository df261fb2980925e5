"""What is SQS's own about the dead: what hides them, message groups, and what the queue knows of a tick."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest
import time_machine
from moto import mock_aws

from contract.conftest import START
from contract.material import DIGEST, failed, later, message
from galley.instants import utc_now
from galley.queue import DeadLetter, RemovalFailed
from galley.queue.sqs import PEEK_SECONDS, TRIES, SqsRunQueue
from galley.runs import Origin, read_message
from galley.store.dynamodb import DynamoStore
from galley_cli.dead import Resending, Sent, discard_dead, list_dead
from support.aws import Requests, client, create_queues, create_table, error, watched

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

RECEIVE, DELETE, SHOW = "ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"
ARN = "arn:aws:scheduler:eu-west-2:123456789012:schedule/galley/DailyDigest"


@dataclass
class Queues:
    """The queues in moto; a wait of the adapter moves the clock."""

    runs: str
    dead_runs: str
    dead_ticks: str
    requests: Requests
    clock: time_machine.Traveller
    waits: list[float] = field(default_factory=list)

    @property
    def queue(self) -> SqsRunQueue:
        """The adapter, at an instant at which all is visible that was shown before."""
        self.clock.shift(0.01)
        return SqsRunQueue(
            client("sqs"),
            self.runs,
            self.dead_runs,
            self.dead_ticks,
            sleep=self._wait,
            jitter=lambda: 0.5,
            poll_seconds=0,
        )

    def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.shift(seconds)

    def bury(self, number: int) -> None:
        """Bury letters, each a group of its own."""
        for one in range(number):
            self.queue.bury(DeadLetter(f"{one}", None, "refusal", "", "", 1, START, START))

    def hide(self, seconds: int, url: str | None = None) -> list[str]:
        """Look at the dead as somebody else, and keep them hidden for so long."""
        self.clock.shift(0.01)
        answer = client("sqs").receive_message(
            QueueUrl=url or self.dead_runs, MaxNumberOfMessages=10, VisibilityTimeout=seconds
        )
        return [one["MessageId"] for one in answer.get("Messages", [])]


@pytest.fixture
def queues() -> Iterator[Queues]:
    with time_machine.travel(START, tick=False) as clock, mock_aws(), watched(client("sqs")) as requests:
        runs, dead_runs, dead_ticks = create_queues(client("sqs"))
        requests.forget()
        yield Queues(runs, dead_runs, dead_ticks, requests, clock)


def test_the_dead_are_taken_away_in_tens_and_the_others_are_shown_again(queues: Queues) -> None:
    queues.bury(25)
    ids = [letter.id for letter in queues.queue.dead_runs()]
    queues.requests.forget()

    assert queues.queue.remove_dead_runs(ids[:12]) == set(ids[:12])

    made = queues.requests.made
    assert (made.count(DELETE), made.count(RECEIVE)) == (2, 2)
    shown = [entry for asked in queues.requests.parameters for entry in asked.get("Entries", []) if len(entry) == 3]
    assert [entry["VisibilityTimeout"] for entry in shown] == [0] * 8
    assert queues.waits == []
    assert [letter.id for letter in queues.queue.dead_runs()] == ids[12:]


@pytest.mark.parametrize("number", [1, 3])
def test_a_letter_that_somebody_else_looks_at_is_waited_for(queues: Queues, number: int) -> None:
    queues.bury(number)
    ids = queues.hide(2)
    assert len(ids) == number

    assert queues.queue.remove_dead_runs(ids) == set(ids)
    assert 2 <= sum(queues.waits) < 6
    assert queues.queue.dead_runs() == ()


def test_a_letter_that_stays_hidden_is_given_up_after_some_seconds_and_told(queues: Queues) -> None:
    queues.bury(1)
    hidden = queues.hide(PEEK_SECONDS)
    queues.bury(2)
    there = [letter.id for letter in queues.queue.dead_runs()]
    assert len(there) == 1, "the first of the two has the words of the one that is hidden, and so is none"

    assert queues.queue.remove_dead_runs([*hidden, *there]) == set(there)
    assert len(queues.waits) == TRIES - 1
    assert sum(queues.waits) < 10
    queues.clock.shift(PEEK_SECONDS)
    assert [letter.id for letter in queues.queue.dead_runs()] == hidden


def test_a_letter_that_could_not_be_deleted_at_first_is_tried_again(
    queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues.bury(1)
    (letter,) = queues.queue.dead_runs()
    delete = client("sqs").delete_message_batch
    queues.requests.forget()

    def fail_once(**asked: Any) -> Any:
        monkeypatch.undo()
        return {"Failed": [{"Id": "0", "SenderFault": False, "Code": "InternalError"}], "Successful": []}

    monkeypatch.setattr(client("sqs"), "delete_message_batch", fail_once)
    assert queues.queue.remove_dead_runs([letter.id]) == {letter.id}
    assert client("sqs").delete_message_batch == delete
    assert (queues.requests.made.count(DELETE), len(queues.waits)) == (1, 1)
    assert queues.queue.dead_runs() == ()


def test_a_queue_that_refuses_the_removal_tells_what_was_removed_and_shows_the_rest(queues: Queues) -> None:
    found = {"ReceiptHandle": "r", "Body": "b", "Attributes": {"SentTimestamp": "0"}}
    queues.requests.answer_with(200, {"Messages": [{**found, "MessageId": "a"}, {**found, "MessageId": "b"}]})
    queues.requests.answer_with(200, {"Successful": [{"Id": "0"}]})
    queues.requests.answer_with(400, error("AccessDenied", "not allowed"))
    queues.requests.answer_with(200, {"Successful": []})

    with pytest.raises(RemovalFailed, match="not allowed") as raised:
        queues.queue.remove_dead_runs(["a", "c"])

    assert raised.value.removed == {"a"}
    assert queues.requests.made == [RECEIVE, DELETE, RECEIVE, SHOW]
    assert [entry["ReceiptHandle"] for entry in queues.requests.parameters[3]["Entries"]] == ["r"]


@pytest.mark.guarantee("G5")
def test_g5_all_of_one_drafters_letters_that_sqs_buried_are_sent_again_though_it_shows_ten_at_a_time(
    queues: Queues,
) -> None:
    store = DynamoStore(client("dynamodb"), create_table(client("dynamodb")))
    failed(store, later(11))
    group = OneGroup([later(one).model_dump_json() for one in range(25)])
    queue = SqsRunQueue(cast("SQSClient", group), "runs", "dead-runs", "dead-ticks", sleep=queues.waits.append)
    assert len(queue.dead_runs()) == 10

    resending = Resending(store, queue, now=utc_now, trace="trace")
    resending.resend_all()

    assert resending.report.refused == []
    assert len(resending.report.sent) == 25
    assert {one.name for one in resending.report.sent} == {str(later(number).key) for number in range(25)}
    assert queue.dead_runs() == ()
    assert (group.sent, queues.waits) == (25, [])


@pytest.mark.guarantee("G5")
def test_g5_letters_that_cannot_be_sent_hide_their_followers_only_until_they_are_discarded(queues: Queues) -> None:
    store = DynamoStore(client("dynamodb"), create_table(client("dynamodb")))
    group = OneGroup(["{"] * 10 + [later(one).model_dump_json() for one in range(3)])
    queue = SqsRunQueue(cast("SQSClient", group), "runs", "dead-runs", "dead-ticks", sleep=queues.waits.append)

    resending = Resending(store, queue, now=utc_now, trace="trace")
    resending.resend_all()
    assert (len(resending.report.refused), resending.report.sent) == (10, [])
    discard_dead(store, queue, list_dead(store, queue).runs, now=START, report=resending.report)
    again = Resending(store, queue, now=utc_now, trace="trace")
    again.resend_all()
    assert [one.name for one in again.report.sent] == [str(later(number).key) for number in range(3)]
    assert queue.dead_runs() == ()


class OneGroup:
    """SQS with one message group of dead letters, in order: while one is hidden, none of the group is to be had.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
    """

    def __init__(self, bodies: list[str]) -> None:
        self.letters = {str(number): body for number, body in enumerate(bodies)}
        self.hidden: set[str] = set()
        self.sent = 0

    def receive_message(self, *, QueueUrl: str, MaxNumberOfMessages: int, **asked: Any) -> Any:
        if QueueUrl != "dead-runs" or self.hidden:
            return {}
        heads = list(self.letters)[:MaxNumberOfMessages]
        self.hidden.update(heads)
        found = {"Attributes": {"SentTimestamp": "0"}}
        return {
            "Messages": [{**found, "MessageId": one, "ReceiptHandle": one, "Body": self.letters[one]} for one in heads]
        }

    def delete_message_batch(self, *, QueueUrl: str, Entries: Any) -> Any:
        for entry in Entries:
            del self.letters[entry["ReceiptHandle"]]
            self.hidden.remove(entry["ReceiptHandle"])
        return {"Successful": Entries}

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: Any) -> Any:
        self.hidden.difference_update(entry["ReceiptHandle"] for entry in Entries)
        return {"Successful": Entries}

    def send_message_batch(self, *, QueueUrl: str, Entries: Any) -> Any:
        self.sent += len(Entries)
        return {"Successful": Entries}


def test_a_tick_whose_placeholders_scheduler_left_in_has_the_slot_and_the_schedule_that_the_queue_knows(
    queues: Queues,
) -> None:
    body = {
        "drafters": [DIGEST],
        "schedule": "<aws.scheduler.schedule-arn>",
        "slot": "<aws.scheduler.scheduled-time>",
        "window_minutes": 30,
        "grace_minutes": 120,
        "catch_up": "latest",
    }
    said = {"ERROR_CODE": "x", "SCHEDULED_TIME": "2026-03-01T06:00:17Z", "SCHEDULE_ARN": ARN}
    attributes: Any = {name: {"DataType": "String", "StringValue": text} for name, text in said.items()}
    client("sqs").send_message(QueueUrl=queues.dead_ticks, MessageBody=json.dumps(body), MessageAttributes=attributes)
    store = DynamoStore(client("dynamodb"), create_table(client("dynamodb")))
    (named,) = list_dead(store, queues.queue).ticks
    assert named.name == f"tick-{named.tick.id[:8]}"

    resending = Resending(store, queues.queue, now=utc_now, trace="trace")
    resending.resend([named])

    (run,) = (f"{DIGEST}:2026-03-01T06:00:00Z",)
    assert resending.report.sent == [Sent(named.name, (run,))]
    (sent,) = client("sqs").receive_message(QueueUrl=queues.runs)["Messages"]
    asked = read_message(sent["Body"])
    assert (asked.slot, asked.schedule) == (datetime(2026, 3, 1, 6, tzinfo=UTC), ARN)
    assert (asked.origin, asked.resend, asked.trace) == (Origin.SCHEDULE, 1, "trace")


@pytest.mark.parametrize("whole", [True, False])
def test_letters_and_ticks_whose_ids_begin_alike_have_whole_names(queues: Queues, whole: bool) -> None:
    found = {"ReceiptHandle": "r", "Body": "{", "Attributes": {"SentTimestamp": "0"}}
    ids = ["12345678-a", "12345678-b" if whole else "87654321-b"]
    queues.requests.answer_with(200, {"Messages": [{**found, "MessageId": one} for one in ids]})
    queues.requests.answer_with(200, {})
    queues.requests.answer_with(200, {"Successful": []})
    store = DynamoStore(client("dynamodb"), create_table(client("dynamodb")))

    dead = list_dead(store, queues.queue)

    names = [run.name for run in dead.runs]
    assert names == [f"letter-{one if whole else one[:8]}" for one in ids]
    for one, run in zip(ids, dead.runs, strict=True):
        assert dead.listed(f"letter-{one}") == dead.listed(run.name) == run
    assert all(dead.named(name) is dead.listed(name) is None for name in ("letter-1", "tick-1", "letter-"))
    assert message().key not in {run.key for run in dead.runs}


@pytest.mark.parametrize(("said", "attempts"), [("12", 12), ("9" * 5_000, 0), ("-1", 0), ("two", 0)])
def test_a_letter_is_listed_whatever_it_says_of_its_attempts(queues: Queues, said: str, attempts: int) -> None:
    found = {"ReceiptHandle": "r", "Body": "{", "Attributes": {"SentTimestamp": "0"}, "MessageId": "a"}
    attributes = {
        "reason": {"DataType": "String", "StringValue": "refusal"},
        "attempts": {"DataType": "Number", "StringValue": said},
    }
    queues.requests.answer_with(200, {"Messages": [{**found, "MessageAttributes": attributes}]})
    queues.requests.answer_with(200, {})
    queues.requests.answer_with(200, {"Successful": []})

    (letter,) = queues.queue.dead_runs()

    assert (letter.reason, letter.attempts) == ("refusal", attempts)
