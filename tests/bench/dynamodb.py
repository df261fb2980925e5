"""Requests and capacity units of a run with few rows and with many, and our own CPU time, beside the obvious way.

All of it on DynamoDB Local, both sides in this process and by turns.
"""

import itertools
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

from bench.counted import Request, Stopwatch, counted
from bench.figures import spread, table, unheard
from bench.local_system import CONTRACT
from bench.obvious_way import DRAFTS, ObviousWay, create_tables
from bench.obvious_way import logger as obvious_logger
from bench.ours_on_dynamodb import NAME, NOW, Model, Ours, drafter, ours_on_dynamodb
from galley.observe import logger
from galley.runs import Origin, RunMessage
from galley.store.dynamodb import _item_bytes, _plain_row
from support.dynamodb_local import connect, fresh_table, running

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

OURS, THEIRS = "Galley", "the obvious way"
DRAFTED, DUPLICATE, GATED = OUTCOMES = ("drafted", "a duplicate", "gated")
LEVELS = ((10, 1), (1_000, 100), (100_000, 10_000))
BATCH = 25
LOADERS = 4


class Side(Protocol):
    """One way to do it."""

    model: Model

    def handle(self, run: RunMessage) -> None: ...

    def limit(self, pending: int) -> None: ...

    def fill(self, rows: int, pending: int) -> Iterable[Mapping[str, Any]]: ...

    def count(self, pending: int) -> None: ...


@dataclass(frozen=True)
class Cost:
    """What one run asked of DynamoDB, with so many rows, of which so many wait for a decision."""

    outcome: str
    side: str
    rows: int
    pending: int
    requests: tuple[Request, ...]
    by_rule: float

    @property
    def operations(self) -> list[str]:
        """What was asked, in its order."""
        return [request.operation for request in self.requests]

    @property
    def reported(self) -> str:
        """The capacity units in all, written and read, as DynamoDB Local reports them."""
        written, read = (sum(getattr(one, name) for one in self.requests) for name in ("write", "read"))
        return self._with_refused(f"{written:g} w, {read:g} r")

    @property
    def ruled(self) -> str:
        """The write units in all, as AWS counts them."""
        return self._with_refused(f"{self.by_rule:g} w")

    @property
    def each(self) -> str:
        """Each request in its order, with its units as reported."""
        named = zip(_words(self.outcome, self.side, self.requests), self.requests, strict=True)
        return ", ".join(f"{name} {_units(request)}" for name, request in named)

    def _with_refused(self, units: str) -> str:
        refused = sum(one.refused for one in self.requests)
        if refused == len(self.requests):
            return "refused"
        return f"{units} + refused" if refused else units


@dataclass(frozen=True)
class Costs:
    """The cost of each outcome of a run, on each side, at each number of rows."""

    found: Sequence[Cost]

    def report(self) -> str:
        """Return the figures in Markdown."""
        rows = [
            (
                cost.outcome,
                cost.side,
                f"{cost.rows:,}",
                f"{cost.pending:,}",
                len(cost.requests),
                cost.reported,
                cost.ruled,
                cost.each,
            )
            for cost in sorted(self.found, key=lambda cost: (OUTCOMES.index(cost.outcome), cost.side, cost.rows))
        ]
        head = ("a run that is", "side", "rows", "pending", "requests", "reported", "by AWS's rule", "each, reported")
        same = "the same requests" if self.stays_the_same(OURS) else "NOT the same requests"
        return f"{table(head, rows)}\n\nGalley makes {same} at each number of rows and of pending drafts."

    def stays_the_same(self, side: str) -> bool:
        """Tell whether each outcome asks the same of DynamoDB however many rows there are."""
        asked = {(cost.outcome, tuple(cost.operations)) for cost in self.found if cost.side == side}
        return len(asked) == len({outcome for outcome, _ in asked})


def _by_rule(client: "DynamoDBClient", table_name: str, requests: Sequence[Request]) -> float:
    """Return the write units with each row of a transaction rounded up by itself, as AWS does it.

    DynamoDB Local adds up the sizes of a transaction's rows and rounds once. What an index takes is as it reports.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
    """
    units = 0.0
    for request in requests:
        if request.refused or not request.rows:
            units += request.write
            continue
        items = [client.get_item(TableName=table_name, Key=key)["Item"] for key in request.rows]
        units += request.in_index + sum(2 * -(-_item_bytes(_plain_row(item)) // 1024) for item in items)
    return units


def _words(outcome: str, side: str, requests: Sequence[Request]) -> Iterator[str]:
    """Say what each request is for."""
    if side == OURS:
        transactions = iter(("claim", "skip" if outcome == GATED else "store"))
        for request in requests:
            yield next(transactions) if request.operation == "TransactWriteItems" else "memory"
        return
    puts = iter(("record begun", "draft"))
    for request in requests:
        yield {"Query": "count", "UpdateItem": "record ended"}.get(request.operation) or next(puts)


def _units(request: Request) -> str:
    """Say what a request took; one whose condition failed does not tell."""
    if request.refused:
        return "refused"
    return f"{request.write:g} w" if request.write else f"{request.read:g} r"


@dataclass(frozen=True)
class Cpu:
    """Milliseconds of CPU for a run, of each round: what neither botocore nor the model took, and what botocore did."""

    own: list[float] = field(default_factory=list)
    botocore: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class CpuTimes:
    """Both sides, round by round."""

    ours: Cpu
    theirs: Cpu

    def report(self) -> str:
        """Return the figures in Markdown."""
        pairs = (
            ("our own, neither botocore's nor the model's", self.ours.own, self.theirs.own),
            ("botocore's", self.ours.botocore, self.theirs.botocore),
        )
        rows = [
            (what, spread(ours, "ms"), spread(theirs, "ms"), f"{median(map(_divided, ours, theirs)):.2f}")
            for what, ours, theirs in pairs
        ]
        return table(("CPU time for a drafted run", "Galley", "the obvious way", "Galley's / it"), rows)


def _divided(one: float, other: float) -> float:
    return one / other


def measure(*, levels: Sequence[tuple[int, int]] = LEVELS, rounds: int = 9, runs: int = 40) -> tuple[Costs, CpuTimes]:
    """Count what runs cost at each number of rows, and time them at the first."""
    with (
        unheard(logger, obvious_logger),
        running() as endpoint,
        tempfile.TemporaryDirectory(prefix="galley-bench-") as folder,
    ):
        client = connect(endpoint)
        create_tables(client)
        with fresh_table(client) as name, ours_on_dynamodb(client, name, Path(folder)) as ours:
            theirs = ObviousWay(client, drafter(Path(folder), 1_000_000))
            slots = map(_slot, itertools.count())
            cpu = _cpu_times(client, ours, theirs, slots, rounds, runs)
            _forget_all(client, ours, theirs)
            return Costs([*_costs(client, ours, theirs, slots, levels)]), cpu


def _slot(number: int) -> datetime:
    return NOW.replace(minute=0) - timedelta(seconds=number)


def _message(slot: datetime) -> RunMessage:
    return RunMessage(drafter=NAME, slot=slot, origin=Origin.BACKFILL, contract=CONTRACT)


def _costs(
    client: "DynamoDBClient",
    ours: Ours,
    theirs: ObviousWay,
    slots: Iterator[datetime],
    levels: Sequence[tuple[int, int]],
) -> Iterator[Cost]:
    for rows, pending in levels:
        for side_name, side, table_name in ((OURS, ours, ours.table), (THEIRS, theirs, DRAFTS)):
            _load(client, table_name, side.fill(rows, pending))
            side.count(pending)
            for outcome, requests in _outcomes(client, side, slots, pending):
                by_rule = _by_rule(client, table_name, requests)
                yield Cost(outcome, side_name, rows, pending, requests, by_rule)


def _outcomes(
    client: "DynamoDBClient", side: Side, slots: Iterator[datetime], pending: int
) -> list[tuple[str, tuple[Request, ...]]]:
    """Have one run gated, one drafted and the same once more; the limit is what makes the difference."""
    found = []
    run, gated, room = _message(next(slots)), _message(next(slots)), pending + 2 * len(LEVELS)
    cases = [
        (GATED, side.handle, gated, pending, 0),
        (DRAFTED, side.handle, run, room, 1),
        (DUPLICATE, side.handle, run, room, 0),
    ]
    with counted(client) as seen:
        for outcome, handle, message, limit, calls in cases:
            seen.clear()
            side.limit(limit)
            before = side.model.calls
            handle(message)
            if side.model.calls - before != calls:
                raise AssertionError(f"{outcome}: {side.model.calls - before} model calls after {seen}")
            found.append((outcome, tuple(seen)))
    return found


def _load(client: "DynamoDBClient", table_name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Put rows, many at a time."""

    def put(batch: Sequence[Mapping[str, Any]]) -> None:
        left: Any = {table_name: [{"PutRequest": {"Item": row}} for row in batch]}
        while left:
            left = client.batch_write_item(RequestItems=left)["UnprocessedItems"]

    with ThreadPoolExecutor(LOADERS) as pool:
        for _ in pool.map(put, _batches(rows)):
            pass


def _batches(rows: Iterable[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    remaining = iter(rows)
    while batch := list(itertools.islice(remaining, BATCH)):
        yield batch


def _forget_all(client: "DynamoDBClient", ours: Ours, theirs: ObviousWay) -> None:
    """Empty the tables in which drafts are counted."""
    for table_name, keys in ((ours.table, ("pk", "sk")), (DRAFTS, ("drafter", "slot"))):
        for page in client.get_paginator("scan").paginate(TableName=table_name):
            for item in page["Items"]:
                client.delete_item(TableName=table_name, Key={key: item[key] for key in keys})


def _cpu_times(
    client: Any, ours: Ours, theirs: ObviousWay, slots: Iterator[datetime], rounds: int, runs: int
) -> CpuTimes:
    """Time the same number of runs on each side, now the one first and now the other; the first round only warms up.

    Neither side's clock runs within botocore (``_make_api_call``: serialising, signing, sending, waiting, parsing) nor
    within the model. The process has one thread at work.
    """
    found = CpuTimes(Cpu(), Cpu())
    sides: tuple[tuple[Side, Cpu], ...] = ((ours, found.ours), (theirs, found.theirs))
    aws, model = Stopwatch(), Stopwatch()
    client._make_api_call = aws.around(client._make_api_call)
    for side in (ours, theirs):
        side.model.write = model.around(side.model.write)  # type: ignore[method-assign]
    for number in range(rounds + 1):
        for side, times in sides[:: -1 if number % 2 else 1]:
            side.limit(1_000_000)
            messages = [_message(next(slots)) for _ in range(runs)]
            aws.seconds = model.seconds = 0.0
            began = time.process_time()
            for message in messages:
                side.handle(message)
            seconds = time.process_time() - began - aws.seconds - model.seconds
            if number:
                times.own.append(1_000 * seconds / runs)
                times.botocore.append(1_000 * aws.seconds / runs)
    del client._make_api_call
    return found
