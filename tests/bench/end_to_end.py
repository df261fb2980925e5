"""From messages sent to drafts stored: the local system beside APScheduler, round about."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.figures import spread, table
from bench.local_system import EARLIER, LocalSystem, drafter_names, local_system, messages, slots
from galley.runs import RunMessage

if TYPE_CHECKING:
    from bench.with_apscheduler import WithApscheduler


@dataclass(frozen=True)
class Refired:
    """What came of sending everything again to a queue that has forgotten that it had it."""

    delivered: int
    model_calls: int
    new_drafts: int


@dataclass(frozen=True)
class EndToEnd:
    """Seconds of each round, from the first message sent to the last draft stored.

    ``theirs_from_store`` counts from when all jobs were in APScheduler's store already.
    """

    drafters: int
    slots: int
    ours: list[float]
    theirs: list[float]
    theirs_from_store: list[float]
    refired: list[Refired]

    @property
    def ratio(self) -> float:
        """How much longer ours takes than theirs: the median of the rounds' ratios."""
        return _ratio(self.ours, self.theirs)

    def report(self) -> str:
        """Return the figures in Markdown."""
        rows = [
            ("Galley's local system", spread(self.ours, "s"), "1"),
            ("APScheduler", spread(self.theirs, "s"), f"{self.ratio:.2f}"),
            (
                "APScheduler, from when all jobs are stored",
                spread(self.theirs_from_store, "s"),
                f"{_ratio(self.ours, self.theirs_from_store):.2f}",
            ),
        ]
        work = f"{self.slots} slots of {self.drafters} drafters, {self.drafters} runs at once"
        head = (work, "time", "Galley's / it")
        calls, drafts = (sum(getattr(one, name) for one in self.refired) for name in ("model_calls", "new_drafts"))
        delivered = sum(one.delivered for one in self.refired)
        refired = (
            f"Every slot fired again after each round, {delivered:,} messages delivered again in all:"
            f" {calls} model calls, {drafts} new drafts."
        )
        return f"{table(head, rows)}\n\n{refired}"


def measure(*, drafters: int = 10, of_slots: int = 20, rounds: int = 7) -> EndToEnd:
    """Run the sides by turns, each round in a fresh directory."""
    found = EndToEnd(drafters, of_slots, [], [], [], [])
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="galley-bench-") as folder:
            found.theirs.append(_time_theirs(Path(folder), drafters, of_slots))
        with tempfile.TemporaryDirectory(prefix="galley-bench-") as folder:
            seconds, refired = time_ours(Path(folder), drafters, of_slots)
            found.ours.append(seconds)
            found.refired.append(refired)
        with tempfile.TemporaryDirectory(prefix="galley-bench-") as folder:
            found.theirs_from_store.append(_time_theirs_from_store(Path(folder), drafters, of_slots))
    return found


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return median(one / other for one, other in zip(ours, theirs, strict=True))


def time_ours(folder: Path, drafters: int, of_slots: int) -> tuple[float, Refired]:
    """Return how many seconds the local system takes, and what came of firing every slot again."""
    names, all_slots = drafter_names(drafters), slots(of_slots)
    all_messages = messages(names, all_slots)
    with local_system(folder, names, all_slots) as system:
        expected = system.drafts() + len(all_messages)
        began = time.perf_counter()
        system.send(all_messages)
        system.wait_for_drafts(expected)
        seconds = time.perf_counter() - began
        system.wait_until_idle()
        return seconds, _refire(system, all_messages)


def _refire(system: LocalSystem, all_messages: Sequence[RunMessage]) -> Refired:
    calls, drafts = system.model_calls(), system.drafts()
    system.send(all_messages)
    if system.running.queues.waiting():
        raise AssertionError("within five minutes the queue itself swallows what it had")
    system.send_to_a_queue_that_forgot(all_messages)
    system.wait_until_idle()
    return Refired(len(all_messages), system.model_calls() - calls, system.drafts() - drafts)


def _time_theirs(folder: Path, drafters: int, of_slots: int) -> float:
    with warm_apscheduler(folder, drafters) as system:
        all_messages = messages(drafter_names(drafters), slots(of_slots))
        began = time.perf_counter()
        system.send(all_messages)
        system.wait_for_drafts(drafters + len(all_messages))
        return time.perf_counter() - began


def _time_theirs_from_store(folder: Path, drafters: int, of_slots: int) -> float:
    with warm_apscheduler(folder, drafters) as system:
        all_messages = messages(drafter_names(drafters), slots(of_slots))
        system.hold()
        system.send(all_messages)
        began = time.perf_counter()
        system.let_go()
        system.wait_for_drafts(drafters + len(all_messages))
        return time.perf_counter() - began


@contextmanager
def warm_apscheduler(folder: Path, drafters: int) -> Iterator["WithApscheduler"]:
    """Start it, and let each drafter have drafted one run already."""
    from bench.with_apscheduler import with_apscheduler

    with with_apscheduler(folder, at_once=drafters) as system:
        system.send(messages(drafter_names(drafters), [EARLIER]))
        system.wait_for_drafts(drafters)
        yield system
