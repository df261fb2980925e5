"""What is SQS's own: batches and their partial failures, attributes, and the two kinds of dead ticks."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from botocore.exceptions import ClientError
from moto import mock_aws

from contract.conftest import START
from contract.material import DIGEST, message
from galley.queue import MAX_RECEIVES, DeadLetter, DeadTick, QueueUnavailable
from galley.queue.sqs import TRIES, SqsRunQueue
from galley.runs import read_message
from support.aws import Requests, client, create_queues, error, properties, watched

SEND, RECEIVE, SHOW = "SendMessageBatch", "ReceiveMessage", "ChangeMessageVisibilityBatch"


@dataclass
class Queues:
    """The queues in moto, what is asked of them, and how long the adapter waited."""

    client: Any
    runs: str
    dead_runs: str
    dead_ticks: str
    requests: Requests
    waits: list[float] = field(default_factory=list)

    @property
    def queue(self) -> SqsRunQueue:
        return SqsRunQueue(
            self.client,
            self.runs,
            self.dead_runs,
            self.dead_ticks,
            sleep=self.waits.append,
            jitter=lambda: 0.5,
            poll_seconds=0,
        )

    def waiting(self, url: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while messages := self.client.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
        ).get("Messages"):
            found += messages
        return found


@pytest.fixture
def queues() -> Iterator[Queues]:
    with (
        time_machine.travel(START, tick=False),
        mock_aws(),
        watched(client("sqs")) as requests,
    ):
        runs, dead_runs, dead_ticks = create_queues(client("sqs"))
        requests.forget()
        yield Queues(client("sqs"), runs, dead_runs, dead_ticks, requests)


def partly(*failed: tuple[int, bool]) -> dict[str, Any]:
    return {
        "Successful": [],
        "Failed": [
            {"Id": str(number), "SenderFault": fault, "Code": "InternalError", "Message": "try again"}
            for number, fault in failed
        ],
    }


@pytest.mark.guarantee("G10")
@pytest.mark.parametrize(("number", "requests"), [(0, 0), (1, 1), (10, 1), (11, 2), (25, 3)])
def test_g10_ten_messages_are_one_request_and_nothing_else_is_asked(queues: Queues, number: int, requests: int) -> None:
    queues.queue.send([message(f"drafter-{one}") for one in range(number)])

    assert queues.requests.made == [SEND] * requests
    assert len(queues.waiting(queues.runs)) == number


def test_a_message_is_grouped_by_its_drafter_and_deduplicated_by_its_run_and_resend(queues: Queues) -> None:
    queues.queue.send([message(), message(resend=1)])

    first, second = queues.requests.parameters[0]["Entries"]
    assert first["MessageGroupId"] == second["MessageGroupId"] == DIGEST
    assert first["MessageDeduplicationId"] == message().deduplication_id
    assert second["MessageDeduplicationId"] == message(resend=1).deduplication_id


def test_ten_messages_of_the_greatest_length_fit_into_one_request(queues: Queues) -> None:
    longest = {"trace": "é" * 256, "schedule": "é" * 2048, "resend": 10**6, "renewal": 10**6}
    large = [message(f"{'x' * 62}{one}", **longest) for one in range(10)]

    queues.queue.send(large)

    (asked,) = queues.requests.parameters
    assert sum(len(entry["MessageBody"].encode()) for entry in asked["Entries"]) < 256 * 1024 / 4


def test_what_fails_for_a_moment_is_sent_again_alone(queues: Queues) -> None:
    queues.requests.answer_with(200, partly((1, False), (2, False)))
    queues.requests.answer_with(200, partly((1, False)))

    queues.queue.send([message("a"), message("b"), message("c")])

    sent = [
        [read_message(one["MessageBody"]).drafter for one in asked["Entries"]] for asked in queues.requests.parameters
    ]
    assert sent == [["a", "b", "c"], ["b", "c"], ["c"]]
    assert queues.waits == sorted(queues.waits)
    assert len(queues.waits) == 2
    assert [read_message(one["Body"]).drafter for one in queues.waiting(queues.runs)] == ["c"]


def test_what_cannot_be_sent_is_named_with_all_that_was_behind_it(queues: Queues) -> None:
    queues.requests.answer_with(200, partly((0, False)), times=TRIES)
    messages = [message(f"drafter-{one}") for one in range(12)]

    with pytest.raises(QueueUnavailable, match=r"could not send drafter-0.*: InternalError try again") as raised:
        queues.queue.send(messages)

    assert raised.value.unsent == tuple(str(messages[number].key) for number in (0, 10, 11))
    assert queues.requests.made == [SEND] * TRIES
    assert sum(queues.waits) < 5


def test_what_is_the_senders_fault_is_not_tried_again(queues: Queues) -> None:
    queues.requests.answer_with(200, partly((1, True)))

    with pytest.raises(QueueUnavailable) as raised:
        queues.queue.send([message("a"), message("b")])

    assert raised.value.unsent == (str(message("b").key),)
    assert (queues.requests.made, queues.waits) == ([SEND], [])


def test_a_request_that_fails_as_a_whole_names_every_message(queues: Queues) -> None:
    queues.requests.answer_with(400, error("AWS.SimpleQueueService.NonExistentQueue", "no such queue"))

    with pytest.raises(QueueUnavailable, match="no such queue") as raised:
        queues.queue.send([message("a"), message("b")])

    assert raised.value.unsent == (str(message("a").key), str(message("b").key))


LETTER = DeadLetter("not JSON", None, "invalid_message", "is not JSON", "InvalidMessage", 1, START, START)


def test_a_letter_that_cannot_be_buried_is_loud(queues: Queues) -> None:
    queues.requests.answer_with(400, error("ThrottlingException", "later"))

    with pytest.raises(QueueUnavailable, match=r"an unreadable message.*dead letter") as raised:
        queues.queue.bury(LETTER)

    assert raised.value.unsent == ("an unreadable message",)


@pytest.mark.guarantee("G5")
def test_g5_a_reason_of_any_characters_is_kept_as_attributes_that_sqs_takes(queues: Queues) -> None:
    detail = "\x00 \x1b[31m \ud800 \ufffe ☕\n" + "x" * 2_000
    queues.queue.bury(DeadLetter("body", "daily-digest:2026-03-02T06:00:00Z", "refusal", detail, "", 3, START, START))

    (found,) = queues.waiting(queues.dead_runs)
    said = found["MessageAttributes"]
    assert said["detail"]["StringValue"].startswith("\ufffd \ufffd[31m \ufffd \ufffd ☕\nx")
    assert len(said["detail"]["StringValue"]) == 1_000
    assert said["attempts"] == {"DataType": "Number", "StringValue": "3"}
    assert said["run"]["StringValue"] == "daily-digest:2026-03-02T06:00:00Z"
    assert "error_type" not in said
    assert len(said) <= 10


def test_the_same_letter_has_the_same_id_and_one_that_differs_another(queues: Queues) -> None:
    letters = [
        LETTER,
        LETTER,
        DeadLetter("not JSON either", None, "invalid_message", "", "", 1, START, START),
        DeadLetter("not JSON", None, "refusal", "", "", 1, START, START),
        DeadLetter("not JSON", None, "invalid_message", "", "", 1, START, START + timedelta(seconds=1)),
    ]
    for letter in letters:
        queues.queue.bury(letter)

    ids = [asked["MessageDeduplicationId"] for asked in queues.requests.parameters]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 4
    assert all(len(one) <= 128 for one in ids)


def test_what_is_listed_is_shown_again_at_once_even_when_the_listing_fails(queues: Queues) -> None:
    for number in range(12):
        queues.queue.bury(DeadLetter(f"{number}", None, "refusal", "", "", 1, START, START))
    queues.requests.forget()

    assert len(queues.queue.dead_runs()) == 12
    assert queues.requests.made == [RECEIVE, RECEIVE, RECEIVE, SHOW, SHOW]
    shown = [entry for asked in queues.requests.parameters[3:] for entry in asked["Entries"]]
    assert [entry["VisibilityTimeout"] for entry in shown] == [0] * 12
    assert all(0 < asked["VisibilityTimeout"] <= 60 for asked in queues.requests.parameters[:3])

    queues.requests.forget()
    found = {"ReceiptHandle": "r", "Body": "b", "Attributes": {"SentTimestamp": "0"}}
    queues.requests.answer_with(200, {"Messages": [{**found, "MessageId": str(number)} for number in range(10)]})
    queues.requests.answer_with(400, error("AccessDenied", "no more"))
    queues.requests.answer_with(200, {"Successful": []})
    with pytest.raises(ClientError, match="no more"):
        queues.queue.dead_runs()
    assert queues.requests.made == [RECEIVE, RECEIVE, SHOW]


def test_a_message_that_a_standard_queue_delivers_twice_is_listed_once(queues: Queues) -> None:
    found = {"MessageId": "1", "ReceiptHandle": "r", "Body": "b", "Attributes": {"SentTimestamp": "0"}}
    queues.requests.answer_with(200, {"Messages": [found]}, times=2)
    queues.requests.answer_with(200, {"Successful": []})

    assert len(queues.queue.dead_ticks()) == 1


def test_a_letter_of_somebody_else_hides_no_other(queues: Queues) -> None:
    queues.queue.bury(LETTER)
    said = {name: {"DataType": "String", "StringValue": "soon"} for name in ("reason", "attempts", "first", "last")}
    queues.client.send_message(
        QueueUrl=queues.dead_runs,
        MessageBody="body",
        MessageGroupId="somebody",
        MessageDeduplicationId="1",
        MessageAttributes=said,
    )

    letters = queues.queue.dead_runs()

    assert [(letter.reason, letter.attempts, letter.last) for letter in letters] == [
        ("invalid_message", 1, START),
        ("soon", 0, START),
    ]


def test_a_listing_asks_all_of_sqs_s_servers(queues: Queues) -> None:
    """Without waiting, SQS asks only some of them, and a small queue looks empty."""
    queues.requests.answer_with(200, {})

    SqsRunQueue(queues.client, queues.runs, queues.dead_runs).dead_runs()

    assert queues.requests.parameters[0]["WaitTimeSeconds"] == 1


TICK = (
    '{"drafters": ["daily-digest"], '
    '"schedule": "arn:aws:scheduler:eu-west-2:123456789012:schedule/galley/DailyDigest", '
    '"slot": "2026-03-02T06:00:00Z", "window_minutes": 30, "grace_minutes": 120, "catch_up": "latest"}'
)


def from_scheduler(**said: str) -> dict[str, Any]:
    attributes = {name: {"DataType": "String", "StringValue": value} for name, value in said.items()}
    return {"MessageBody": TICK, "MessageAttributes": attributes}


def from_lambda(payload: object, answer: object, condition: str = "RetriesExhausted") -> dict[str, Any]:
    record = {
        "version": "1.0",
        "timestamp": "2026-03-02T06:04:05.678Z",
        "requestContext": {
            "requestId": "e4b46cbf-b738-xmpl-8880-a18cdf61200e",
            "functionArn": "arn:aws:lambda:eu-west-2:123456789012:function:dispatch:$LATEST",
            "condition": condition,
            "approximateInvokeCount": 3,
        },
        "requestPayload": payload,
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "responsePayload": answer,
    }
    return {"MessageBody": json.dumps(record)}


SENT = START
DEAD_TICKS: dict[str, tuple[dict[str, Any], DeadTick]] = {
    "Scheduler could not deliver it": (
        from_scheduler(
            ERROR_CODE="AWS.Scheduler.InternalServerError",
            ERROR_MESSAGE="Rate exceeded.",
            RETRY_ATTEMPTS="20",
            EXHAUSTED_RETRY_CONDITION="MaximumRetryAttempts",
            SCHEDULED_TIME="2026-03-02T06:00:00Z",
            SCHEDULE_ARN="arn:aws:scheduler:eu-west-2:123456789012:schedule/galley/DailyDigest",
        ),
        DeadTick(
            TICK,
            "AWS.Scheduler.InternalServerError",
            "Rate exceeded. (20 retries)",
            datetime(2026, 3, 2, 6, tzinfo=UTC),
            "arn:aws:scheduler:eu-west-2:123456789012:schedule/galley/DailyDigest",
        ),
    ),
    "Scheduler says little": (
        from_scheduler(ERROR_CODE="ResourceNotFound", SCHEDULED_TIME="yesterday"),
        DeadTick(TICK, "ResourceNotFound", "", SENT),
    ),
    "dispatch failed on it": (
        from_lambda({"drafters": []}, {"errorType": "InvalidTick", "errorMessage": "tick: field 'slot' is missing"}),
        DeadTick(
            '{"drafters": []}',
            "RetriesExhausted",
            "InvalidTick: tick: field 'slot' is missing (3 attempts)",
            datetime(2026, 3, 2, 6, 4, 5, 678_000, tzinfo=UTC),
        ),
    ),
    "dispatch never answered": (
        from_lambda("a text", None, "EventAgeExceeded"),
        DeadTick(
            '"a text"', "EventAgeExceeded", "no answer (3 attempts)", datetime(2026, 3, 2, 6, 4, 5, 678_000, tzinfo=UTC)
        ),
    ),
    "somebody put it there": ({"MessageBody": "hello"}, DeadTick("hello", "unknown", "", SENT)),
    "it is JSON of another kind": (
        {"MessageBody": '{"requestContext": "?", "requestPayload": 1}'},
        DeadTick('{"requestContext": "?", "requestPayload": 1}', "unknown", "", SENT),
    ),
    "it is a list": ({"MessageBody": "[1]"}, DeadTick("[1]", "unknown", "", SENT)),
}


@pytest.mark.parametrize("what", DEAD_TICKS)
def test_a_dead_tick_is_listed_with_what_its_sender_says(queues: Queues, what: str) -> None:
    sent, expected = DEAD_TICKS[what]
    queues.client.send_message(QueueUrl=queues.dead_ticks, **sent)

    assert queues.queue.dead_ticks() == (expected,)


def test_dead_ticks_are_listed_oldest_first(queues: Queues) -> None:
    for hour in (9, 7, 8):
        queues.client.send_message(
            QueueUrl=queues.dead_ticks, **from_scheduler(ERROR_CODE="x", SCHEDULED_TIME=f"2026-03-02T0{hour}:00:00Z")
        )

    assert [tick.at.hour for tick in queues.queue.dead_ticks()] == [7, 8, 9]
    assert len(queues.queue.dead_ticks(limit=2)) <= 2


def test_a_queue_that_was_not_named_is_asked_for_by_name(queues: Queues) -> None:
    nothing = SqsRunQueue(queues.client, "")

    with pytest.raises(ValueError, match="queue of runs was not named"):
        nothing.send([message()])
    with pytest.raises(ValueError, match="queue of runs was not named"):
        nothing.put_off("receipt", timedelta(minutes=1))
    with pytest.raises(ValueError, match="queue of dead runs was not named"):
        nothing.bury(LETTER)
    with pytest.raises(ValueError, match="queue of dead runs was not named"):
        nothing.dead_runs()
    with pytest.raises(ValueError, match="queue of dead ticks was not named"):
        nothing.dead_ticks()


def test_the_number_of_receives_that_the_code_names_is_the_templates() -> None:
    assert properties("RunsQueue")["RedrivePolicy"]["maxReceiveCount"] == MAX_RECEIVES
