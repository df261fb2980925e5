"""Run messages -> draft, as an SQS event source mapping delivers them."""

import hashlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any, assert_never

from galley_cli.local.pool import FunctionError, Invocation, PoolClosed, Returned
from galley_cli.local.queue import Delivery, SqliteQueues, StaleReceipt
from galley_cli.local.runner import IDLE, Invoke, Report, failed_items, until
from galley_cli.local.sandbox import IMPORT_ERROR
from galley_cli.local.state import StateBusy
from galley_cli.template import DRAFT

FIRST_WAIT = timedelta(seconds=30)
"""How long a message waits on which draft failed as a function; the wait doubles with each receive.

In AWS such a message comes back when its visibility ends, half an hour later, and its drafter's line waits for it:
there the queue cannot know whether the function is still at work. Here the process is known to be done with it, and
what fails is mostly this machine for a moment (a file that another program holds, a full disk). The receive counts
as in AWS, so that a message at which draft is killed each time is buried after as many.
"""

SETTLE_ATTEMPTS = 3
"""How often it is tried to settle a message while other programs hold the file; each time waits for a turn."""

RUNS_ARN = "arn:aws:sqs:local:000000000000:runs.fifo"


class RunsFeed:
    """Hands each run message to draft, at most so many at once; the queue keeps the order of each drafter."""

    name = "runs"

    def __init__(
        self,
        queue: SqliteQueues,
        invoke: Invoke,
        *,
        visibility: timedelta,
        concurrency: int,
        now: Callable[[], datetime],
        wake: Callable[[], None],
        report: Report,
    ) -> None:
        """Prepare the feed. ``wake`` makes ``step`` be called again soon."""
        self._queue = queue
        self._invoke = invoke
        self._visibility = visibility
        self._concurrency = concurrency
        self._now = now
        self._wake = wake
        self._report = report
        self._workers = ThreadPoolExecutor(concurrency, thread_name_prefix="draft")
        self._lock = threading.Lock()
        self._in_flight = 0

    def step(self) -> timedelta:
        """Hand out what is due and has a free worker."""
        free = self._concurrency - self.in_flight
        if free == 0:
            return IDLE
        self._count(free)  # before they are received, so that there is no moment in which a message is nowhere
        deliveries: tuple[Delivery, ...] = ()
        try:
            deliveries = self._queue.receive(visibility=self._visibility, limit=free)
        finally:
            self._count(len(deliveries) - free)
        for delivery in deliveries:
            self._workers.submit(self._handle, delivery)
        return until(self._queue.next_due(), self._now())

    @property
    def in_flight(self) -> int:
        """How many messages are being handled."""
        with self._lock:
            return self._in_flight

    def close(self) -> None:
        """Wait for the workers."""
        self._workers.shutdown()

    def _handle(self, delivery: Delivery) -> None:
        try:
            self._settle(delivery, self._invoke(DRAFT, sqs_event([delivery])))
        except PoolClosed:
            pass  # it is handed out again when the system starts
        except Exception as error:
            self._report(f"a message of {delivery.group} could not be settled and comes back: {error}")
        finally:
            self._count(-1)
            self._wake()

    def _settle(self, delivery: Delivery, invocation: Invocation) -> None:
        match invocation:
            case Returned(response):
                if delivery.id in failed_items(response, {delivery.id}):
                    return
                self._patiently(delivery, lambda: self._queue.delete(delivery.receipt))
            case FunctionError(error_type, message):
                failed = f"draft failed on a message of {delivery.group} ({error_type}: {message})"
                if error_type == IMPORT_ERROR:  # only a change of the code helps
                    self._report(f"{failed}; it comes back in {int(self._visibility.total_seconds() // 60)} minutes")
                    return
                wait = min(FIRST_WAIT * 2 ** (delivery.receives - 1), self._visibility)
                self._report(f"{failed}; it comes back in {wait.total_seconds():.0f} s")
                self._patiently(delivery, lambda: self._queue.put_off(delivery.receipt, wait))
            case _:
                assert_never(invocation)

    def _patiently(self, delivery: Delivery, settle: Callable[[], None]) -> None:
        """Delete a message or put it off, although other programs may hold the file for a while.

        Raises:
            StateBusy: they held it for too long.
        """
        for left in reversed(range(SETTLE_ATTEMPTS)):
            try:
                settle()
            except StaleReceipt:
                self._report(f"a message of {delivery.group} outlived its visibility and comes back")
            except StateBusy:
                if left == 0:
                    raise
                continue
            return

    def _count(self, change: int) -> None:
        with self._lock:
            self._in_flight += change


def sqs_event(deliveries: Sequence[Delivery]) -> dict[str, Any]:
    """Return the event that Lambda's poller makes of messages.

    https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
    """
    return {"Records": [_sqs_record(delivery) for delivery in deliveries]}


def _sqs_record(delivery: Delivery) -> dict[str, Any]:
    attributes = {
        "ApproximateReceiveCount": str(delivery.receives),
        "SentTimestamp": _milliseconds(delivery.sent),
        "SequenceNumber": f"{delivery.sequence:020d}",
        "MessageGroupId": delivery.group,
        "SenderId": "local",
        "ApproximateFirstReceiveTimestamp": _milliseconds(delivery.first_received),
    }
    if delivery.deduplication_id is not None:
        attributes["MessageDeduplicationId"] = delivery.deduplication_id
    return {
        "messageId": delivery.id,
        "receiptHandle": delivery.receipt,
        "body": delivery.body,
        "attributes": attributes,
        "messageAttributes": {},
        "md5OfBody": hashlib.md5(delivery.body.encode(), usedforsecurity=False).hexdigest(),
        "eventSource": "aws:sqs",
        "eventSourceARN": RUNS_ARN,
        "awsRegion": "local",
    }


def _milliseconds(moment: datetime) -> str:
    return str(int(moment.timestamp() * 1000))
