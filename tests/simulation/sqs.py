"""Amazon SQS as far as Galley uses it, in process, behind the methods of boto3's client.

FIFO queues: one message of a group in flight blocks the group, an id sent twice within five minutes is swallowed, and a
message received more often than the redrive policy allows goes to the dead letters with its group.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from galley.queue import MAX_RECEIVES
from simulation.story import Service
from simulation.world import World

RUNS, DEAD_RUNS, DEAD_TICKS = "queue/runs.fifo", "queue/dead-runs.fifo", "queue/dead-ticks"
VISIBILITY = timedelta(seconds=1800)
DEDUPLICATION = timedelta(minutes=5)


@dataclass(eq=False)
class Message:
    """A message in a queue; ``receipt`` is that of its last receipt."""

    id: str
    body: str
    group: str
    deduplication_id: str
    sent: datetime
    attributes: Mapping[str, Any]
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
    """The service: what it does at once, without a caller."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.queues = {url: Queue(url) for url in (RUNS, DEAD_RUNS, DEAD_TICKS)}
        self.changed: Callable[[], None] = lambda: None

    @property
    def runs(self) -> Queue:
        """The queue of run messages."""
        return self.queues[RUNS]

    @property
    def dead_runs(self) -> Queue:
        """The queue of dead letters."""
        return self.queues[DEAD_RUNS]

    def send(self, url: str, body: str, group: str, deduplication_id: str, attributes: Mapping[str, Any]) -> str:
        """Take a message, unless one with its id came within five minutes."""
        queue, now = self.queues[url], self.world.now
        message = Message(self.world.new_id("message"), body, group, deduplication_id, now, attributes, now)
        queue.accepted.append(message)
        before = queue.ids.get(deduplication_id)
        if before is not None and now - before < DEDUPLICATION:
            self.world.count("messages swallowed as repeated")
        else:
            queue.ids[deduplication_id] = now
            queue.messages.append(message)
            self.world.at(now, self.changed)
        return message.id

    def receive(self, url: str, visibility: timedelta) -> Message | None:
        """Hand out the next message of a group of which none is in flight; bury it if that was done too often."""
        queue, now = self.queues[url], self.world.now
        blocked: set[str] = set()
        ready: list[Message] = []
        for message in queue.messages:
            if message.group in blocked:
                continue
            blocked.add(message.group)
            if not message.in_flight or message.visible_at <= now:
                ready.append(message)
        if not ready:
            return None
        message = self.world.random.choice(ready)
        if url == RUNS and message.receives >= MAX_RECEIVES:
            queue.messages.remove(message)
            message.in_flight = False
            message.sent = now
            message.visible_at = now
            self.dead_runs.messages.append(message)
            self.dead_runs.accepted.append(message)
            self.world.note(f"SQS buries {message.body[:80]}")
            self.world.count("messages buried by SQS")
            return self.receive(url, visibility)
        message.receives += 1
        message.receipt = self.world.new_id("receipt")
        message.in_flight = True
        self.hide(message, visibility)
        return message

    def hide(self, message: Message, visibility: timedelta) -> None:
        """Let a message that was received be invisible for so long."""
        message.visible_at = self.world.now + visibility
        self.world.at(message.visible_at, self.changed)

    def by_receipt(self, url: str, receipt: str) -> Message | None:
        """Return the message that was last handed out under a receipt."""
        return next((message for message in self.queues[url].messages if message.receipt == receipt), None)

    def delete(self, url: str, receipt: str) -> None:
        """Remove a message, if the receipt is still good."""
        message = self.by_receipt(url, receipt)
        if message is not None:
            self.queues[url].messages.remove(message)
            self.world.at(self.world.now, self.changed)


class SqsClient:
    """What a function sees of SQS: each method is a call that may go wrong."""

    def __init__(self, sqs: Sqs) -> None:
        self._sqs = sqs
        self._world = sqs.world

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        def send(entries: Sequence[Mapping[str, Any]]) -> None:
            for entry in entries:
                self._sqs.send(
                    QueueUrl, entry["MessageBody"], entry["MessageGroupId"], entry["MessageDeduplicationId"], {}
                )

        def send_all() -> dict[str, Any]:
            send(Entries)
            return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

        def send_some() -> dict[str, Any]:
            if self._world.random.random() < 0.5:
                raise _throttled("SendMessageBatch")
            taken = [entry for entry in Entries if self._world.random.random() < 0.5]
            failed = [entry for entry in Entries if entry not in taken]
            send(taken)
            told = [{"Id": one["Id"], "Code": "ServiceUnavailable", "SenderFault": False} for one in failed]
            return {"Failed": told, "Successful": [{"Id": entry["Id"]} for entry in taken]}

        return self._world.call(Service.QUEUE, "SendMessageBatch", send_all, refuse=send_some, lose=_lost)

    def send_message(
        self,
        *,
        QueueUrl: str,
        MessageBody: str,
        MessageGroupId: str,
        MessageDeduplicationId: str,
        MessageAttributes: Mapping[str, Any],
    ) -> dict[str, Any]:
        def send() -> dict[str, Any]:
            said = {name: value["StringValue"] for name, value in MessageAttributes.items()}
            identity = self._sqs.send(QueueUrl, MessageBody, MessageGroupId, MessageDeduplicationId, said)
            return {"MessageId": identity}

        return self._world.call(Service.QUEUE, "SendMessage", send, refuse=lambda: _throttle("SendMessage"), lose=_lost)

    def change_message_visibility(self, *, QueueUrl: str, ReceiptHandle: str, VisibilityTimeout: int) -> None:
        def change() -> None:
            message = self._sqs.by_receipt(QueueUrl, ReceiptHandle)
            if message is None or not message.in_flight or message.visible_at <= self._world.now:
                error = {"Code": "InvalidParameterValue", "Message": "the receipt handle has expired"}
                raise ClientError({"Error": error}, "ChangeMessageVisibility")
            self._sqs.hide(message, timedelta(seconds=VisibilityTimeout))

        self._world.call(
            Service.QUEUE,
            "ChangeMessageVisibility",
            change,
            refuse=lambda: _throttle("ChangeMessageVisibility"),
            lose=_lost,
        )


def _throttled(operation: str) -> ClientError:
    error = {"Code": "RequestThrottled", "Message": "slow down"}
    return ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": 403}}, operation)  # type: ignore[typeddict-item]


def _throttle(operation: str) -> Any:
    raise _throttled(operation)


def _lost() -> Any:
    raise ReadTimeoutError(endpoint_url="https://sqs")
