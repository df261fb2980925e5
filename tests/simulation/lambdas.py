"""AWS Lambda and what invokes it: the pollers of the queue and of the table's stream, Scheduler, and API Gateway.

Each function is the real handler. An invocation has the time limit of template.yaml, and dies when it is over,
whichever call it is at. What is invoked asynchronously is tried again after an error, and then recorded as dead.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
"""

import json
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any

import dispatch
import draft
import publish
import recover
import review
from galley.instants import format_instant
from galley.runs import RunKey, Status
from galley.store import Store
from galley.store.rows import partition_of_runs
from simulation.sqs import DEAD_TICKS, RUNS, VISIBILITY, Message, Sqs
from simulation.story import Function
from simulation.world import Died, End, Raised, Returned, Task, World
from support.outside import Context

_MODULES: Mapping[Function, ModuleType] = {
    Function.DISPATCH: dispatch,
    Function.DRAFT: draft,
    Function.RECOVER: recover,
    Function.REVIEW: review,
    Function.PUBLISH: publish,
}
LIMITS = {
    Function.DISPATCH: timedelta(seconds=30),
    Function.DRAFT: timedelta(seconds=300),
    Function.RECOVER: timedelta(seconds=300),
    Function.REVIEW: timedelta(seconds=20),
    Function.PUBLISH: timedelta(seconds=60),
}
"""The functions' time limits, as template.yaml sets them."""
RETRIES = {Function.DISPATCH: 2, Function.RECOVER: 1}
PUBLISH_RETRIES = 5


@dataclass(eq=False, kw_only=True)
class _Context(Context):
    """Lambda's context, whose remaining time is that of the world."""

    world: World
    deadline: Callable[[], datetime]

    def get_remaining_time_in_millis(self) -> int:
        return int((self.deadline() - self.world.now).total_seconds() * 1000)


@dataclass
class Lambda:
    """The service."""

    world: World
    sqs: Sqs
    plain: Callable[[], Store]
    workers: int
    throttled: deque[int | None] = field(default_factory=deque)
    twice: int = 0
    undeleted: int = 0
    publishing: deque[RunKey] = field(default_factory=deque)
    unpublished: list[RunKey] = field(default_factory=list)
    _at_work: int = 0
    _handled: Counter[str] = field(default_factory=Counter)
    _press_is_busy: bool = False
    _polls: bool = False

    def invoke(self, function: Function, event: Any, then: Callable[[End], None] = lambda end: None) -> Task:
        """Begin an invocation."""
        request = self.world.new_id(str(function))
        began = self.world.now
        self.world.count(f"invocations of {function}")

        def deadline() -> datetime:
            task = self.world.current
            return began + LIMITS[function] if task is None or task.deadline is None else task.deadline

        context = _Context(
            aws_request_id=request, function_name=f"galley-{function}", world=self.world, deadline=deadline
        )
        return self.world.start(
            function,
            request,
            lambda: _MODULES[function].handler(json.loads(json.dumps(event)), context),
            limit=LIMITS[function],
            then=then,
        )

    # Asynchronous invocations

    def invoke_later(self, function: Function, event: Any, *, attempt: int = 0) -> None:
        """Invoke, and again after an error; what fails to the last is among the dead ticks."""

        def ended(end: End) -> None:
            match end:
                case Returned():
                    return
                case Raised() | Died() if attempt < RETRIES[function]:
                    self.world.count(f"{function} retried by Lambda")
                    wait = self.world.seconds(50, 130)
                    self.world.after(wait, lambda: self.invoke_later(function, event, attempt=attempt + 1))
                case Raised() | Died():
                    self.sqs.send(DEAD_TICKS, _record_of(event, attempt + 1, self.world.now))
                    self.world.count(f"dead invocations of {function}")

        self.invoke(function, event, ended)

    # The queue's poller

    def poll(self) -> None:
        """Hand out what may be received, to as many invocations as there may be at once."""
        if not self._polls and self._at_work < self.workers:
            self._polls = True
            self.world.after(self.world.seconds(0.001, 0.3), self._poll)

    def _poll(self) -> None:
        self._polls = False
        if self._at_work >= self.workers:
            return
        received = self.sqs.receive(RUNS, VISIBILITY)
        if not received:
            return
        (message,) = received
        self.poll()
        if self.throttled:
            # The batch stays in flight until its visibility ends, and has used up a receive.
            seconds = self.throttled.popleft()
            by_chance = self.world.random.choice((timedelta(seconds=20), VISIBILITY))
            self.sqs.hide(message, by_chance if seconds is None else timedelta(seconds=seconds))
            self.world.count("deliveries throttled")
            return
        if message.receives > 1:
            self.world.count("redeliveries")
        weather = self.world.weather.deliveries
        doubled = self.twice > 0 or self.world.strikes(weather)
        self._deliver(message, doubled=doubled)
        if doubled:
            self.twice = max(0, self.twice - 1)
            self.world.count("deliveries doubled" if message.receives == 1 else "redeliveries doubled")
            receipt = message.receipt
            wait = self.world.seconds(0, self.world.random.choice((0.2, 30.0)))
            self.world.after(wait, lambda: self._deliver(message, doubled=True) if message.receipt == receipt else None)

    def _deliver(self, message: Message, *, doubled: bool) -> None:
        receipt = message.receipt or ""
        record = {
            "messageId": message.id,
            "receiptHandle": receipt,
            "body": message.body,
            "attributes": {"ApproximateReceiveCount": str(message.receives)},
            "eventSource": "aws:sqs",
        }
        self._at_work += 1
        self._handled[message.id] += 1
        self.world.note(f"{message.id} ({message.receives}. receive) {message.body[:70]}")

        def ended(end: End) -> None:
            self._at_work -= 1
            self._handled[message.id] -= 1
            match end:
                case Returned({"batchItemFailures": []}):
                    if self.undeleted or self.world.strikes(self.world.weather.deliveries):
                        self.undeleted = max(0, self.undeleted - 1)
                        self.world.count("messages not deleted")
                    else:
                        self.sqs.delete(RUNS, receipt)
                        if self._handled[message.id]:
                            self.world.count("messages deleted while another invocation works on them")
                case Returned() | Raised() | Died():
                    pass
            self.poll()

        task = self.invoke(Function.DRAFT, {"Records": [record]}, ended)
        # The other one may have ended and its message be deleted, when this one wants to put it off.
        task.disturbed = doubled

    # The stream's poller

    def changed(self, key: RunKey) -> None:
        """See that a run's row was written: the event source passes on those that are approved now.

        Some that are not it passes on too, as it would without its filter: publish must see for itself.
        """
        run = self.plain().run(key)
        if run is None:
            return
        strays = run.status in (Status.PENDING, Status.REJECTED) and self.world.random.random() < 0.2
        if run.status is Status.APPROVED or strays:
            self.publishing.append(key)
            self.world.after(self.world.seconds(0.1, 2), self._publish)

    def _publish(self, attempt: int = 0) -> None:
        if self._press_is_busy or not self.publishing:
            return
        self._press_is_busy = True
        key = self.publishing[0]
        keys = {"pk": {"S": partition_of_runs(key.drafter)}, "sk": {"S": format_instant(key.slot)}}
        record = {"eventName": "MODIFY", "dynamodb": {"Keys": keys, "SequenceNumber": "1"}}

        def ended(end: End) -> None:
            self._press_is_busy = False
            tries = attempt + 1
            match end:
                case Returned({"batchItemFailures": []}):
                    self.publishing.popleft()
                    tries = 0
                case Returned() | Raised() | Died() if tries > PUBLISH_RETRIES:
                    self.unpublished.append(self.publishing.popleft())
                    self.world.count("approved drafts that publish gave up")
                    tries = 0
                case Returned() | Raised() | Died():
                    pass
            self.world.after(self.world.seconds(0.1, 5), lambda: self._publish(tries))

        self.invoke(Function.PUBLISH, {"Records": [record]}, ended)


def _record_of(event: Any, attempts: int, now: datetime) -> str:
    """Return Lambda's record of an invocation that failed to the last.

    https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
    """
    return json.dumps(
        {
            "version": "1.0",
            "timestamp": format_instant(now),
            "requestContext": {"condition": "RetriesExhausted", "approximateInvokeCount": attempts},
            "requestPayload": event,
            "responsePayload": None,
        }
    )
