"""The table's stream -> publish, as a DynamoDB stream's event source mapping delivers it."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from json import dumps
from typing import Any, assert_never

from galley.queue import DeadTick
from galley.store.rows import keys_of_run
from galley_cli.local.filters import fits
from galley_cli.local.pool import FunctionError, Invocation, PoolClosed, Returned
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.runner import IDLE, Invoke, Report, failed_items
from galley_cli.local.store import SqliteStore, StreamRecord
from galley_cli.template import PUBLISH, TemplateStream

STREAM_ARN = "arn:aws:dynamodb:local:000000000000:table/galley/stream/local"

CONSUMER = "publish"
"""The stream's consumer, whose place in it is kept."""


FIRST_WAIT = timedelta(seconds=1)
LONGEST_WAIT = timedelta(minutes=1)
"""How long the feed waits before it delivers a failed record again; the wait doubles."""


class StreamFeed:
    """Hands the changes that fit the filter to publish, in order; its place moves only past what is done with."""

    name = "stream"

    def __init__(
        self,
        store: SqliteStore,
        queue: SqliteQueues,
        invoke: Invoke,
        settings: TemplateStream,
        *,
        now: Callable[[], datetime],
        report: Report,
    ) -> None:
        """Prepare the feed."""
        self._store = store
        self._queue = queue
        self._invoke = invoke
        self._settings = settings
        self._now = now
        self._report = report
        self._attempts = 0
        self._batch_size = settings.batch_size
        self._not_before = now()

    def step(self) -> timedelta:
        """Deliver the next batch, unless it failed just now and must wait."""
        wait = self._not_before - self._now()
        if timedelta() < wait <= LONGEST_WAIT:
            return wait
        place = self._store.stream_position(CONSUMER)
        records = self._store.stream_after(place)
        if not records:
            return IDLE
        batch = [record for record in records if self._fits(record)][: self._batch_size]
        if not batch:
            self._done(records[-1].sequence)
            return timedelta()
        if batch[0].sequence > records[0].sequence:
            self._done(batch[0].sequence - 1)
        try:
            return self._settle(batch, self._invoke(PUBLISH, stream_event(batch)))
        except PoolClosed:
            return IDLE

    def is_drained(self) -> bool:
        """Tell whether every change so far has been handed to publish, or is none of its business."""
        return not self._store.stream_after(self._store.stream_position(CONSUMER), limit=1)

    def close(self) -> None:
        """Nothing is handled beside ``step``."""

    def _settle(self, batch: Sequence[StreamRecord], invocation: Invocation) -> timedelta:
        match invocation:
            case Returned(response):
                failed = failed_items(response, {str(record.sequence) for record in batch})
                first = min(map(int, failed), default=None)
                if first is None:
                    self._done(batch[-1].sequence)
                    return timedelta()
                if first > batch[0].sequence:
                    self._done(first - 1)
                head = next(record for record in batch if record.sequence == first)
                return self._failed(head, "publish could not handle it; its log says why")
            case FunctionError(error_type, message):
                if len(batch) > 1:
                    self._batch_size = len(batch) // 2
                    return timedelta()
                return self._failed(batch[0], f"{error_type}: {message}")
        assert_never(invocation)

    def _failed(self, record: StreamRecord, line: str) -> timedelta:
        """Count the record's failure, and give it up at the last."""
        self._attempts += 1
        if self._attempts <= self._settings.retries and self._now() - record.at <= self._settings.max_age:
            self._not_before = self._now() + min(FIRST_WAIT * 2 ** (self._attempts - 1), LONGEST_WAIT)
            return timedelta()
        body = dumps({"run": str(record.key), "sequence": str(record.sequence)})
        self._queue.bury_tick(DeadTick(body, "PublishFailed", f"{line} ({self._attempts} attempts)", self._now()))
        self._report(f"run {record.key} was not published and stays approved: {line}")
        self._done(record.sequence)
        return timedelta()

    def _done(self, sequence: int) -> None:
        self._store.advance(CONSUMER, sequence)
        self._attempts = 0
        self._batch_size = self._settings.batch_size
        self._not_before = self._now()

    def _fits(self, record: StreamRecord) -> bool:
        shaped = _stream_record(record)
        return any(fits(pattern, shaped) for pattern in self._settings.patterns)


def stream_event(records: Sequence[StreamRecord]) -> dict[str, Any]:
    """Return the event that Lambda makes of a stream's records. Of the images it holds what the filter looks at.

    https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
    """
    return {"Records": [_stream_record(record) for record in records]}


def _stream_record(record: StreamRecord) -> dict[str, Any]:
    keys = keys_of_run(record.key)
    images = {"NewImage": {**keys, "status": {"S": str(record.new)}, "version": {"N": str(record.version)}}}
    if record.old is not None:
        images["OldImage"] = {**keys, "status": {"S": str(record.old)}, "version": {"N": str(record.version - 1)}}
    return {
        "eventID": f"{record.sequence:032x}",
        "eventName": "INSERT" if record.old is None else "MODIFY",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "local",
        "dynamodb": {
            "ApproximateCreationDateTime": int(record.at.timestamp()),
            "Keys": keys,
            **images,
            "SequenceNumber": str(record.sequence),
            "SizeBytes": len(dumps(images)),
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
        "eventSourceARN": STREAM_ARN,
    }
