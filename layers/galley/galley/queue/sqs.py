"""The queues in Amazon SQS: `runs.fifo`, its dead letters `dead-runs.fifo`, and the standard queue `dead-ticks`."""

import hashlib
import json
import math
import random
import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from galley.aws import unavailable_as
from galley.instants import format_instant, parse_instant
from galley.queue import MAX_RECEIVES, DeadLetter, DeadTick, QueueUnavailable, RemovalFailed, receives_exhausted
from galley.retry import backoff
from galley.runs import RunMessage

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import (
        MessageAttributeValueTypeDef,
        MessageTypeDef,
        SendMessageBatchRequestEntryTypeDef,
    )

BATCH = 10
"""How many messages one request takes. Ten of ours are 40 KB at most, a sixth of what any queue takes at once.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
"""

TRIES = 4
FIRST_WAIT_SECONDS = 0.1
"""Half of the longest that a request's first wait can be."""

FIRST_LOOK_AGAIN_SECONDS = 0.5
"""How long a removal waits, at first, for what somebody else's listing may hide: a listing takes a second or two."""

LONGEST_PUT_OFF = timedelta(hours=12) - timedelta(minutes=15)
"""SQS counts its 12 hours from the receipt, and a function may have run for 15 minutes since."""

PEEK_SECONDS = 30
"""How long a listing hides what it lists, if it cannot show it again itself."""

_MOST_DIGITS = 9
"""How long the count of a letter's attempts can be; Python refuses to read one of more than 4,300 digits."""

_NOT_IN_SQS = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class SqsRunQueue:
    """The run messages and the dead of a stack, by the addresses of their queues. Opening it does no I/O.

    A queue without an address cannot be used: the operation that needs it raises a ValueError that names it.
    ``poll_seconds`` is how long a listing waits before it is empty: without waiting, SQS asks only some of its servers.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html
    """

    def __init__(
        self,
        client: "SQSClient",
        runs_url: str,
        dead_runs_url: str = "",
        dead_ticks_url: str = "",
        *,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
        poll_seconds: int = 1,
    ) -> None:
        self._client = client
        self._runs_url = runs_url
        self._dead_runs_url = dead_runs_url
        self._dead_ticks_url = dead_ticks_url
        self._sleep = sleep
        self._jitter = jitter
        self._poll_seconds = poll_seconds

    def send(self, messages: Sequence[RunMessage]) -> None:
        """Send the messages, one request for each ten. Those that fail are retried a few times.

        A message whose answer was lost may be sent again: within five minutes SQS drops what has the same
        deduplication id, and after that the claim does.
        """
        batches = [messages[start : start + BATCH] for start in range(0, len(messages), BATCH)]
        for number, batch in enumerate(batches):
            unsent, detail = self._send_batch(batch)
            if unsent:
                unsent += [message for later in batches[number + 1 :] for message in later]
                raise QueueUnavailable([str(message.key) for message in unsent], detail)

    def put_off(self, receipt: str, delay: timedelta) -> None:
        """Let a message that is being handled come back after the delay."""
        seconds = math.ceil(min(max(delay, timedelta()), LONGEST_PUT_OFF).total_seconds())
        with unavailable_as(lambda why: QueueUnavailable(["a message off to a later time"], why)):
            self._client.change_message_visibility(
                QueueUrl=_named(self._runs_url, "runs"), ReceiptHandle=receipt, VisibilityTimeout=seconds
            )

    def bury(self, letter: DeadLetter) -> None:
        """Put a message among the dead, with its reason as attributes.

        Each letter is a message group of its own: of one group SQS shows no more than ten while they are listed.
        """
        identity = hashlib.sha256(f"{letter.reason}\n{format_instant(letter.last)}\n{letter.body}".encode()).hexdigest()
        try:
            self._client.send_message(
                QueueUrl=_named(self._dead_runs_url, "dead runs"),
                MessageBody=letter.body,
                MessageGroupId=identity,
                MessageDeduplicationId=identity,
                MessageAttributes=_letter_attributes(letter),
            )
        except (ClientError, BotoCoreError) as error:
            raise QueueUnavailable([letter.run or "an unreadable message"], f"dead letter: {error}") from error

    def dead_runs(self, *, limit: int = 100) -> tuple[DeadLetter, ...]:
        """List dead run messages, oldest first, without taking them away.

        Of the letters of one drafter that SQS itself buried, no more than ten are shown: they share a message group.
        """
        found = self._peek(_named(self._dead_runs_url, "dead runs"), limit)
        return tuple(sorted(map(_letter, found), key=lambda letter: letter.last))

    def dead_ticks(self, *, limit: int = 100) -> tuple[DeadTick, ...]:
        """List dead ticks, oldest first, without taking them away: Scheduler's own, and those that dispatch failed."""
        found = self._peek(_named(self._dead_ticks_url, "dead ticks"), limit)
        return tuple(sorted(map(_dead_tick, found), key=lambda tick: tick.at))

    def remove_dead_runs(self, ids: Collection[str]) -> frozenset[str]:
        """Take away the letters of these ids, and return the ids of those that were taken away."""
        return self._remove(_named(self._dead_runs_url, "dead runs"), ids)

    def remove_dead_ticks(self, ids: Collection[str]) -> frozenset[str]:
        """Take away the ticks of these ids, and return the ids of those that were taken away."""
        return self._remove(_named(self._dead_ticks_url, "dead ticks"), ids)

    def _send_batch(self, batch: Sequence[RunMessage]) -> tuple[list[RunMessage], str]:
        """Send up to ten messages and return those that could not be sent, and why."""
        unsent, detail = list(batch), ""
        for attempt in range(TRIES):
            if attempt:
                self._sleep(backoff(attempt, FIRST_WAIT_SECONDS, self._jitter()))
            try:
                answer = self._client.send_message_batch(
                    QueueUrl=_named(self._runs_url, "runs"),
                    Entries=[_entry(number, message) for number, message in enumerate(unsent)],
                )
            except (ClientError, BotoCoreError) as error:
                return unsent, str(error)
            failed = answer.get("Failed", [])
            if not failed:
                return [], ""
            unsent = [unsent[int(one["Id"])] for one in failed]
            detail = "; ".join(sorted({f"{one['Code']} {one.get('Message', '')}".strip() for one in failed}))
            if any(one["SenderFault"] for one in failed):
                break
        return unsent, detail

    def _peek(self, url: str, limit: int) -> list["MessageTypeDef"]:
        """Receive what is there and show it again at once. What a failure keeps hidden comes back by itself."""
        found: dict[str, MessageTypeDef] = {}
        try:
            while len(found) < limit:
                received = self._receive(url, min(BATCH, limit - len(found)))
                new = received.keys() - found.keys()
                found |= received  # of a message that came twice, the later receipt shows it again
                if not new:
                    break
        finally:
            self._show(url, found.values())
        return list(found.values())

    def _remove(self, url: str, ids: Collection[str]) -> frozenset[str]:
        """Look through the queue until all of them are removed, or several looks in a row have found none.

        What is not found is gone, or hidden for the moment: by somebody else's listing, or as a follower in a message
        group of which something is hidden.
        """
        wanted, removed = frozenset(ids), set[str]()
        misses = 0
        try:
            while not wanted <= removed and misses < TRIES:
                if misses:
                    self._sleep(backoff(misses, FIRST_LOOK_AGAIN_SECONDS, self._jitter()))
                before = len(removed)
                self._remove_visible(url, wanted, removed)
                misses = misses + 1 if len(removed) == before else 0
        except (ClientError, BotoCoreError) as error:
            raise RemovalFailed(removed, str(error)) from error
        return frozenset(removed)

    def _remove_visible(self, url: str, wanted: frozenset[str], removed: set[str]) -> None:
        """Go through what is visible once, delete what is wanted and show the rest again; add to ``removed``."""
        kept: dict[str, MessageTypeDef] = {}
        try:
            while not wanted <= removed:
                received = self._receive(url, BATCH)
                new = received.keys() - kept.keys()
                kept |= received
                if not new:
                    break
                for gone in self._delete(url, [received[one] for one in received if one in wanted]):
                    removed.add(gone)
                    del kept[gone]
        finally:
            self._show(url, kept.values())

    def _receive(self, url: str, most: int) -> dict[str, "MessageTypeDef"]:
        answer = self._client.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=most,
            VisibilityTimeout=PEEK_SECONDS,
            WaitTimeSeconds=self._poll_seconds,
            MessageSystemAttributeNames=["SentTimestamp"],
            MessageAttributeNames=["All"],
        )
        return {message["MessageId"]: message for message in answer.get("Messages", [])}

    def _delete(self, url: str, messages: Sequence["MessageTypeDef"]) -> list[str]:
        """Delete up to ten messages and return the ids of those that are gone."""
        if not messages:
            return []
        answer = self._client.delete_message_batch(
            QueueUrl=url,
            Entries=[
                {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                for number, message in enumerate(messages)
            ],
        )
        return [messages[int(one["Id"])]["MessageId"] for one in answer.get("Successful", [])]

    def _show(self, url: str, hidden: Iterable["MessageTypeDef"]) -> None:
        """Let others receive at once what was received to look at."""
        messages = list(hidden)
        for start in range(0, len(messages), BATCH):
            self._client.change_message_visibility_batch(
                QueueUrl=url,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": 0}
                    for number, message in enumerate(messages[start : start + BATCH])
                ],
            )


def _named(url: str, what: str) -> str:
    if not url:
        raise ValueError(f"the queue of {what} was not named when the queues were opened")
    return url


def _entry(number: int, message: RunMessage) -> "SendMessageBatchRequestEntryTypeDef":
    return {
        "Id": str(number),
        "MessageBody": message.model_dump_json(),
        "MessageGroupId": message.drafter,
        "MessageDeduplicationId": message.deduplication_id,
    }


def _letter_attributes(letter: DeadLetter) -> dict[str, "MessageAttributeValueTypeDef"]:
    """Return what stands beside a letter. SQS takes no empty text and no control characters.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
    """
    texts = {
        "run": letter.run or "",
        "reason": letter.reason,
        "detail": letter.detail,
        "error_type": letter.error_type,
        "first": format_instant(letter.first),
        "last": format_instant(letter.last),
    }
    attributes: dict[str, MessageAttributeValueTypeDef] = {
        name: {"DataType": "String", "StringValue": _NOT_IN_SQS.sub("\ufffd", text)}
        for name, text in texts.items()
        if text
    }
    attributes["attempts"] = {"DataType": "Number", "StringValue": str(letter.attempts)}
    return attributes


def _letter(message: "MessageTypeDef") -> DeadLetter:
    """Return the letter in a dead message. One without our attributes was buried by SQS itself.

    In a FIFO queue such a message's time is that of its burial, and its receives count this listing too.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html
    """
    said = {name: value.get("StringValue", "") for name, value in message.get("MessageAttributes", {}).items()}
    sent = _sent(message)
    if "reason" not in said:
        return replace(receives_exhausted(message["Body"], MAX_RECEIVES, sent), id=message["MessageId"])
    attempts = said.get("attempts", "")
    return DeadLetter(
        body=message["Body"],
        run=said.get("run"),
        reason=said["reason"],
        detail=said.get("detail", ""),
        error_type=said.get("error_type", ""),
        attempts=int(attempts) if attempts.isdecimal() and len(attempts) <= _MOST_DIGITS else 0,
        first=_instant(said.get("first"), sent),
        last=_instant(said.get("last"), sent),
        id=message["MessageId"],
    )


def _dead_tick(message: "MessageTypeDef") -> DeadTick:
    """Return the tick in a dead message of either sender.

    EventBridge Scheduler sends the input as it was, with its reason as attributes; Lambda wraps the event in a record.
    https://docs.aws.amazon.com/scheduler/latest/UserGuide/configuring-schedule-dlq.html
    https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
    """
    record = _invocation_record(message["Body"])
    if record is not None:
        return _failed_invocation(record, message["MessageId"], _sent(message))
    said = {name: value.get("StringValue", "") for name, value in message.get("MessageAttributes", {}).items()}
    detail = said.get("ERROR_MESSAGE", "")
    if "RETRY_ATTEMPTS" in said:
        detail = f"{detail} ({said['RETRY_ATTEMPTS']} retries)".strip()
    due = _instant_or_none(said.get("SCHEDULED_TIME"))
    return DeadTick(
        body=message["Body"],
        reason=said.get("ERROR_CODE", "unknown"),
        detail=detail,
        at=due or _sent(message),
        schedule=None if due is None else said.get("SCHEDULE_ARN"),
        id=message["MessageId"],
    )


def _invocation_record(body: str) -> dict[str, Any] | None:
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):  # the latter where it is nested too deep to be one
        return None
    is_record = (
        isinstance(record, dict) and isinstance(record.get("requestContext"), dict) and "requestPayload" in record
    )
    return record if is_record else None


def _failed_invocation(record: dict[str, Any], message_id: str, sent: datetime) -> DeadTick:
    context, answer = record["requestContext"], record.get("responsePayload")
    error = answer if isinstance(answer, dict) else {}
    said = ": ".join(str(error[name]) for name in ("errorType", "errorMessage") if error.get(name))
    return DeadTick(
        body=json.dumps(record["requestPayload"]),
        reason=str(context.get("condition", "unknown")),
        detail=f"{said or 'no answer'} ({context.get('approximateInvokeCount', '?')} attempts)",
        at=_instant(record.get("timestamp"), sent),
        id=message_id,
    )


def _sent(message: "MessageTypeDef") -> datetime:
    return datetime.fromtimestamp(int(message["Attributes"]["SentTimestamp"]) / 1000, UTC)


def _instant(text: object, otherwise: datetime) -> datetime:
    return _instant_or_none(text) or otherwise


def _instant_or_none(text: object) -> datetime | None:
    try:
        return parse_instant(str(text))
    except ValueError:
        return None
