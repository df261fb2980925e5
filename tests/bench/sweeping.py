"""What a sweep over many hourly schedules asks of AWS, and its own CPU time.

The function's real handler and the deployed adapters, on doubles of AWS's clients that count their requests
(``support.many_schedules``). The doubles' own time is left out, and there is no botocore's: it is what Galley adds.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from unittest.mock import patch

import recover
from bench.counted import Stopwatch
from bench.figures import spread, table, unheard
from galley import system
from galley.observe import logger
from support.many_schedules import CREATED, Requests, Stack
from support.outside import Context, event

SIZES = (100, 1_000, 10_000)
CHANGED = 10
MINUTE = timedelta(minutes=1)
SLOT = CREATED + 30 * MINUTE
NEW, QUIET, SOME, DUE = CASES = (
    "all new, nothing due",
    "nothing changed, nothing due",
    f"{CHANGED} changed, nothing due",
    "nothing changed, one due slot each, with its row",
)
_SETTINGS = {f"GALLEY_{name}": "bench" for name in ("TABLE", "RUNS_QUEUE_URL", "DEAD_RUNS_QUEUE_URL", "SCHEDULE_GROUP")}


@dataclass(frozen=True)
class Case:
    """One sweep over so many schedules, round by round: what it asked, the same each time, and its CPU seconds."""

    case: str
    size: int
    requests: Requests
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Sweeps:
    """All cases, at each number of schedules."""

    found: tuple[Case, ...]

    def report(self) -> str:
        """Return the figures as a table in Markdown."""
        least = {case.case: case for case in self.found if case.size == min(one.size for one in self.found)}
        rows = [
            (
                case.case,
                f"{case.size:,}",
                f"{case.requests.total():,}",
                ", ".join(f"{name} {number:,}" for name, number in sorted(case.requests.items())),
                spread([1000 * one for one in case.seconds], "ms", 1),
                f"{_each(case) / _each(least[case.case]):.2f}",
            )
            for case in self.found
        ]
        return table(("a sweep", "schedules", "requests", "of these", "CPU time", "for each schedule"), rows)


def measure(sizes: tuple[int, ...] = SIZES, rounds: int = 5) -> Sweeps:
    """Sweep in each case at each number of schedules, the cases by turns."""
    seconds: dict[tuple[str, int], list[float]] = {}
    requests: dict[tuple[str, int], Requests] = {}
    with unheard(logger), patch.dict("os.environ", _SETTINGS):
        for size in sizes:
            for _ in range(rounds):
                for case, taken, asked in _round(size):
                    seconds.setdefault((case, size), []).append(taken)
                    if requests.setdefault((case, size), asked) != asked:
                        raise RuntimeError(f"{case}, {size} schedules: another round asked otherwise: {asked}")
    return Sweeps(
        tuple(Case(case, size, requests[case, size], tuple(seconds[case, size])) for case in CASES for size in sizes)
    )


def _round(size: int) -> Iterator[tuple[str, float, Requests]]:
    stack = Stack(size)
    watch = Stopwatch()
    for client, names in (
        (stack.table, ("query", "get_item", "transact_write_items")),
        (stack.scheduler, ("get_schedule",)),
    ):
        for name in names:
            setattr(client, name, watch.around(getattr(client, name)))

    def sweep(now: timedelta) -> tuple[float, Requests]:
        stack.requests.clear()
        watch.seconds = 0.0
        system.install(stack.outside(CREATED + now))
        began = time.process_time()
        answer = recover.handler(event("recover"), Context())
        taken = time.process_time() - began - watch.seconds
        if answer["broken"] or answer["unfinished"] or answer["skipped"]:
            raise RuntimeError(f"the sweep did other than it should: {answer}")
        return taken, Requests(stack.requests)

    yield (NEW, *sweep(MINUTE))
    yield (QUIET, *sweep(16 * MINUTE))
    for number in range(CHANGED):
        stack.deploy(number, CREATED + 17 * MINUTE)
    yield (SOME, *sweep(31 * MINUTE))
    stack.draft(SLOT)
    yield (DUE, *sweep(46 * MINUTE))


def _each(case: Case) -> float:
    return median(case.seconds) / case.size
