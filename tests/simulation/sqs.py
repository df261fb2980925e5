"""Amazon SQS as far as Galley uses it, in process, behind the methods of boto3's client.

FIFO queues: what is in flight of a group blocks the rest of it, an id sent twice within five minutes is swallowed, and
a message received more often than the redrive policy allows goes to the dead letters with its id and its group.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from galley.queue import MAX_RECEIVES
from simulation.story import Service
from simulation.world import World

RUNS, DEAD_RUNS, DEAD_TICKS = "queue/runs.fifo", "queue/dead-runs.fifo", "queue/dead-ticks"
VISIBILITY = timedelta(seconds=1800)
DEDUPLICATION = timedelta(minutes=5)
MOST_IN_A_BATCH = 10
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(eq=False)
class Message:
    """A message in a queue; ``receipt`` is that of its last receipt. In a standard queue its group is empty."""

    id: str
    body: str
    group: str
    sent: datetime
    attributes: Mapping[str, str]
    visible_at: datetime
    receives: int = 0
    receipt: str | None = None
    in_flight: bool = False


@dataclass
class Queue:
    """A queue. Every message that it ever took stands in ``accepted``, swallowed repetitions too."""

    url: str
    messages: list[Message] = field(default_factory=list)
    accepted: list[Message] = field(default_factory=list)
    ids: dict[str, datetime] = field(default_factory=dict)


class Sqs:
    """The service: what it does at once, without a caller.

    ``changed`` is called whenever there may be something to receive, ``taken_away`` after one of the dead was deleted.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.queues = {url: Queue(url) for url in (RUNS, DEAD_RUNS, DEAD_TICKS)}
        self.changed: Callable[[], None] = lambda: None
        self.taken_away: Callable[[str, Message], None] = lambda url, dead: None

    @property
    def runs(self) -> Queue:
        """The queue of run messages."""
        return self.queues[RUNS]

    @property
    def dead_runs(self) -> Queue:
        """The queue of dead letters."""
        return self.queues[DEAD_RUNS]

    @property
    def dead_ticks(self) -> Queue:
        """The queue of dead ticks."""
        return self.queues[DEAD_TICKS]

    def send(
        self, url: str, body: str, group: str = "", deduplication_id: str = "", attributes: Mapping[str, str] = NOTHING
    ) -> str:
        """Take a message; a FIFO queue none whose deduplication id came within five minutes."""
        queue, now = self.queues[url], self.world.now
        message = Message(self.world.new_id("message"), body, group, now, attributes, now)
        queue.accepted.append(message)
        before = queue.ids.get(deduplication_id) if deduplication_id else None
        if before is not None and now - before < DEDUPLICATION:
            self.world.count("messages swallowed as repeated")
        else:
            queue.ids[deduplication_id] = now
            queue.messages.append(message)
            self.world.at(now, self.changed)
        return message.id

    def receive(self, url: str, visibility: timedelta, most: int = 1) -> list[Message]:
        """Hand out the next messages of groups of which none is in flight; bury what was handed out too often."""
        queue = self.queues[url]
        received: list[Message] = []
        for message in self._ready(queue):
            if len(received) == most:
                break
            if url == RUNS and message.receives >= MAX_RECEIVES:
                self._bury(message)
                return self.receive(url, visibility, most)
            message.receives += 1
            message.receipt = self.world.new_id("receipt")
            message.in_flight = True
            self.hide(message, visibility)
            received.append(message)
        return received

    def _ready(self, queue: Queue) -> Iterator[Message]:
        """Yield what may be received: group after group, in an order that nobody knows, each group in its own."""
        groups: dict[str, list[Message]] = {}
        for message in queue.messages:
            groups.setdefault(message.group or message.id, []).append(message)
        free = [group for group in groups.values() if not any(self._is_hidden(message) for message in group)]
        self.world.random.shuffle(free)
        return itertools.chain.from_iterable(free)

    def _is_hidden(self, message: Message) -> bool:
        return message.in_flight and message.visible_at > self.world.now

    def _bury(self, message: Message) -> None:
        self.runs.messages.remove(message)
        message.in_flight = False
        message.sent = message.visible_at = self.world.now
        self.dead_runs.messages.append(message)
        self.dead_runs.accepted.append(message)
        self.world.note(f"SQS buries {message.body[:80]}")
        self.world.count("messages buried by SQS")

    def hide(self, message: Message, visibility: timedelta) -> None:
        """Let a message that was received be invisible for so long."""
        message.visible_at = self.world.now + visibility
        self.world.at(message.visible_at, self.changed)

    def by_receipt(self, url: str, receipt: str) -> Message | None:
        """Return the message that was last handed out under a receipt."""
        return next((message for message in self.queues[url].messages if message.receipt == receipt), None)

    def shows_again(self, url: str, receipt: str, after: timedelta) -> bool:
        """Let a message in flight be visible after a time; tell whether the receipt was still good."""
        message = self.by_receipt(url, receipt)
        if message is None or not self._is_hidden(message):
            return False
        self.hide(message, after)
        return True

    def delete(self, url: str, receipt: str) -> None:
        """Remove a message, if the receipt is still good."""
        message = self.by_receipt(url, receipt)
        if message is None:
            return
        self.queues[url].messages.remove(message)
        self.world.at(self.world.now, self.changed)
        if url in (DEAD_RUNS, DEAD_TICKS):
            self.taken_away(url, message)


class SqsClient:
    """What a function sees of SQS: each method is a call that may go wrong."""

    def __init__(self, sqs: Sqs) -> None:
        self._sqs = sqs
        self._world = sqs.world

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> Any:
        """Send up to ten messages."""

        def send(entry: Mapping[str, Any]) -> None:
            self._sqs.send(QueueUrl, entry["MessageBody"], entry["MessageGroupId"], entry["MessageDeduplicationId"])

        return self._batch("SendMessageBatch", Entries, send)

    def send_message(
        self,
        *,
        QueueUrl: str,
        MessageBody: str,
        MessageGroupId: str,
        MessageDeduplicationId: str,
        MessageAttributes: Mapping[str, Any],
    ) -> Any:
        """Send one message."""

        def send() -> dict[str, Any]:
            said = {name: value["StringValue"] for name, value in MessageAttributes.items()}
            return {"MessageId": self._sqs.send(QueueUrl, MessageBody, MessageGroupId, MessageDeduplicationId, said)}

        return self._asked("SendMessage", send)

    def change_message_visibility(self, *, QueueUrl: str, ReceiptHandle: str, VisibilityTimeout: int) -> None:
        """Let a message in flight be hidden for another time than it was."""

        def change() -> None:
            if not self._sqs.shows_again(QueueUrl, ReceiptHandle, timedelta(seconds=VisibilityTimeout)):
                error = {"Code": "InvalidParameterValue", "Message": "the receipt handle has expired"}
                raise ClientError({"Error": error}, "ChangeMessageVisibility")

        self._asked("ChangeMessageVisibility", change)

    def receive_message(self, *, QueueUrl: str, MaxNumberOfMessages: int, VisibilityTimeout: int, **_: Any) -> Any:
        """Receive up to ten messages; of one group too, but of none of which something is in flight.

        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
        """
        assert 1 <= MaxNumberOfMessages <= MOST_IN_A_BATCH

        def receive() -> dict[str, Any]:
            received = self._sqs.receive(QueueUrl, timedelta(seconds=VisibilityTimeout), MaxNumberOfMessages)
            return {"Messages": [_told(message) for message in received]}

        return self._asked("ReceiveMessage", receive)

    def delete_message_batch(self, *, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> Any:
        """Delete up to ten messages."""
        return self._batch(
            "DeleteMessageBatch", Entries, lambda entry: self._sqs.delete(QueueUrl, entry["ReceiptHandle"])
        )

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> Any:
        """Let up to ten messages be hidden for another time than they were."""

        def change(entry: Mapping[str, Any]) -> None:
            self._sqs.shows_again(QueueUrl, entry["ReceiptHandle"], timedelta(seconds=entry["VisibilityTimeout"]))

        return self._batch("ChangeMessageVisibilityBatch", Entries, change)

    def _asked(self, operation: str, effect: Callable[[], Any]) -> Any:
        return self._world.call(Service.QUEUE, operation, effect, refuse=lambda: _throttle(operation), lose=_lost)

    def _batch(
        self, operation: str, entries: Sequence[Mapping[str, Any]], one: Callable[[Mapping[str, Any]], None]
    ) -> Any:
        """Do something with each of up to ten; what goes wrong may go wrong for some of them alone."""
        assert 1 <= len(entries) <= MOST_IN_A_BATCH

        def each(some: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
            for entry in some:
                one(entry)
            return [{"Id": entry["Id"]} for entry in some]

        def turn_some_away() -> dict[str, Any]:
            if self._world.random.random() < 0.5:
                raise _throttled(operation)
            taken = [entry for entry in entries if self._world.random.random() < 0.5]
            failed = [entry for entry in entries if entry not in taken]
            told = [{"Id": one["Id"], "Code": "ServiceUnavailable", "SenderFault": False} for one in failed]
            return {"Failed": told, "Successful": each(taken)}

        return self._world.call(
            Service.QUEUE, operation, lambda: {"Successful": each(entries)}, refuse=turn_some_away, lose=_lost
        )


def _told(message: Message) -> dict[str, Any]:
    return {
        "MessageId": message.id,
        "ReceiptHandle": message.receipt,
        "Body": message.body,
        "Attributes": {"SentTimestamp": str(int(message.sent.timestamp() * 1000))},
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": text} for name, text in message.attributes.items()
        },
    }


def _throttled(operation: str) -> ClientError:
    error = {"Code": "RequestThrottled", "Message": "slow down"}
    return ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": 403}}, operation)  # type: ignore[typeddict-item]


def _throttle(operation: str) -> Any:
    raise _throttled(operation)


def _lost() -> Any:
    raise ReadTimeoutError(endpoint_url="https://sqs")
