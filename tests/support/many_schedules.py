"""A stack of many hourly schedules, on doubles of AWS's clients that count what the sweep asks of them.

The adapters are the deployed ones. A request is a page: DynamoDB's hold a megabyte, Scheduler's a hundred schedules
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Pagination.html,
https://docs.aws.amazon.com/scheduler/latest/APIReference/API_ListSchedules.html).
"""

import json
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from galley.instants import format_instant
from galley.queue import RunQueue
from galley.runs import RunMessage, Status
from galley.schedules.eventbridge import EventBridgeSchedules
from galley.store import StoreBusy
from galley.store.dynamodb import DynamoStore, _item_bytes, _plain_row
from support.outside import Outside, RecordingQueue

CREATED = datetime(2026, 11, 27, 0, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
PAGE_BYTES = 1_000_000
PAGE_SCHEDULES = 100
SILENCE_SLOTS = 3

Requests = Counter[str]


@dataclass
class Table:
    """DynamoDB's client, as far as the sweep uses it; ``busy`` are the partitions that others hold."""

    requests: Requests
    items: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    order: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    busy: set[str] = field(default_factory=set)

    def put(self, pk: str, sk: str, item: Mapping[str, Any]) -> None:
        """Write a row without a request."""
        if sk not in self.items[pk]:
            insort(self.order[pk], sk)
        self.items[pk][sk] = {"pk": {"S": pk}, "sk": {"S": sk}, **item}

    def query(self, **asked: Any) -> dict[str, Any]:
        """Return a page of a partition; nothing is ever in the index, since nobody watches these runs."""
        values = {name: value["S"] for name, value in asked["ExpressionAttributeValues"].items()}
        if "IndexName" in asked:
            self.requests["Query watched"] += 1
            return {"Items": []}
        pk = values[":pk"]
        self.requests["Query schedules" if pk == "SCHEDULES" else "Query slots"] += 1
        if pk in self.busy:
            raise StoreBusy(f"others hold {pk}")
        after = asked.get("ExclusiveStartKey", {}).get("sk", {}).get("S", "")
        first, last = max(values.get(":first", ""), after), values.get(":last", "~")
        found: list[dict[str, Any]] = []
        size = 0
        for sk in self.order[pk][bisect_left(self.order[pk], first) :]:
            if sk > last:
                break
            if sk == after:
                continue
            found.append(self.items[pk][sk])
            size += _item_bytes(_plain_row(self.items[pk][sk]))
            if size > PAGE_BYTES:
                return {"Items": found, "LastEvaluatedKey": {"pk": {"S": pk}, "sk": {"S": sk}}}
        return {"Items": found}

    def get_item(self, *, Key: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        """Return a row."""
        self.requests["GetItem"] += 1
        row = self.items[Key["pk"]["S"]].get(Key["sk"]["S"])
        return {} if row is None else {"Item": row}

    def transact_write_items(self, *, TransactItems: Sequence[Mapping[str, Any]], **_: Any) -> dict[str, Any]:
        """Put a schedule's row, or the row of a run that has none, with its week."""
        for item in TransactItems:
            if "Put" in item:
                row = item["Put"]["Item"]
                self.put(row["pk"]["S"], row["sk"]["S"], row)
        pk = next(item["Put"]["Item"]["pk"]["S"] for item in TransactItems if "Put" in item)
        self.requests["Write schedule" if pk == "SCHEDULES" else "Write run"] += 1
        return {}


@dataclass
class Scheduler:
    """EventBridge Scheduler's client, as far as the sweep uses it."""

    requests: Requests
    schedules: dict[str, dict[str, Any]] = field(default_factory=dict)

    def get_paginator(self, _: str) -> "Scheduler":
        """Return what pages the listing."""
        return self

    def paginate(self, **_: Any) -> Iterator[dict[str, Any]]:
        """Yield the listing's pages."""
        listed = list(self.schedules.values())
        for begin in range(0, len(listed), PAGE_SCHEDULES):
            self.requests["ListSchedules"] += 1
            yield {"Schedules": listed[begin : begin + PAGE_SCHEDULES]}

    def get_schedule(self, *, Name: str, **_: Any) -> dict[str, Any]:
        """Return one schedule."""
        self.requests["GetSchedule"] += 1
        return self.schedules[Name]


@dataclass
class CountingQueue(RecordingQueue):
    """A queue that counts its requests."""

    requests: Requests = field(default_factory=Counter)

    def send(self, messages: Sequence[RunMessage]) -> None:
        """Send at most ten in a request."""
        assert len(messages) <= 10
        self.requests["SendMessageBatch"] += 1
        super().send(messages)


@dataclass
class Stack:
    """So many schedules, each with a drafter of its own that is watched for silence."""

    size: int
    requests: Requests = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Deploy the schedules."""
        self.table = Table(self.requests)
        self.scheduler = Scheduler(self.requests)
        self.queue = CountingQueue(requests=self.requests)
        self.store = DynamoStore(self.table, "table")  # type: ignore[arg-type]
        self.schedules = EventBridgeSchedules(self.scheduler, "group")  # type: ignore[arg-type]
        for number in range(self.size):
            self.deploy(number, CREATED)

    @staticmethod
    def name(number: int) -> str:
        """Return the name of a schedule, and of its drafter."""
        return f"s{number:05}"

    def deploy(self, number: int, modified: datetime) -> None:
        """Deploy a schedule, or a change of it."""
        name = self.name(number)
        tick = {"drafters": [name], "window_minutes": 30, "grace_minutes": 120, "catch_up": "latest"}
        self.scheduler.schedules[name] = {
            "Name": name,
            "Arn": f"arn:aws:scheduler:eu-west-2:123456789012:schedule/group/{name}",
            "ScheduleExpression": "cron(0 * * * ? *)",
            "ScheduleExpressionTimezone": "Europe/London",
            "Target": {"Input": json.dumps({**tick, "silence_slots": SILENCE_SLOTS})},
            "State": "ENABLED",
            "CreationDate": CREATED,
            "LastModificationDate": modified,
        }

    def draft(self, slot: datetime, numbers: Sequence[int] | None = None) -> None:
        """Let the drafters' runs of a slot come to drafts, without a request."""
        for number in range(self.size) if numbers is None else numbers:
            self.table.put(f"RUN#{self.name(number)}", format_instant(slot), {"status": {"S": str(Status.PENDING)}})

    def outside(self, now: datetime) -> Outside:
        """Return the system as a handler sees it at an instant."""
        queue: RunQueue = self.queue
        return Outside(store_=self.store, queue_=queue, schedules_=self.schedules, at=now)
