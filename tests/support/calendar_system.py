"""The way of a slot in one process: schedules, dispatch, the queue, draft and the sweep, over one SQLite file.

A test sets the clock and says which parts work meanwhile. The material and the model are stand-ins; all else is ours.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from attempt import Delivery, Done, Workplace
from dispatch import messages_of
from drafter import Drafter
from drafting import draft_run
from galley.contract import SCHEDULE_PLACEHOLDER, SLOT_PLACEHOLDER, read_tick
from galley.drafts import Item
from galley.instants import format_instant
from galley.runs import Run, Status, Usage
from galley.schedules import ScheduleDefinition
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from shapes.shape import Assignment, Material
from stale import withdraw_stale
from support.outside import FixedSchedules
from sweep import Swept, sweep
from writing import Answer, Brief

SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1))
TICK_TAKES = 20 * SECOND
"""How long after its slot a tick arrives."""
CALL_TAKES = 20 * SECOND
"""How long the model takes for a draft."""
SWEEPS_EVERY = 15 * MINUTE

TICKS, SWEEPS, WORKERS = "ticks", "sweeps", "workers"
EVERYTHING = frozenset({TICKS, SWEEPS, WORKERS})


class OneItem:
    """A shape that always finds one item."""

    @staticmethod
    def collect(assignment: Assignment) -> Material:
        return Material(items=(Item(id="m1", title="Invoice", text="Due on Friday.", source="inbox"),))


@dataclass(eq=False)
class CalendarSystem:
    """The system. ``calls`` are the instants at which the model was asked, ``swept`` what each sweep did."""

    state: StateDirectory
    at: datetime
    definitions: tuple[ScheduleDefinition, ...]
    pending_limit: int = 1_000
    visibility: timedelta = 30 * MINUTE
    expire_hours: int | None = None
    calls: list[datetime] = field(default_factory=list)
    swept: list[Swept] = field(default_factory=list)
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self.store = SqliteStore(self.state)
        self.queue = SqliteQueues(self.state, now=lambda: self.at)
        self._numbers = count(1)

    def until(self, end: datetime, working: frozenset[str] = EVERYTHING) -> None:
        """Let the time pass up to an instant, and what works do its part."""
        first = self.at
        ticks = [
            (slot + TICK_TAKES, definition, slot)
            for definition in self.definitions
            for slot in definition.due(first, end)
        ]
        quarter = first.replace(minute=0, second=0) + 5 * MINUTE
        while quarter < first:
            quarter += SWEEPS_EVERY
        sweeps = [quarter + number * SWEEPS_EVERY for number in range(-(-(end - quarter) // SWEEPS_EVERY))]
        for at in sorted({at for at, *_ in ticks} | set(sweeps)):
            self.at = max(self.at, at)
            for due, definition, slot in ticks:
                if due == at and TICKS in working:
                    self.tick(definition, slot)
            if at in sweeps and SWEEPS in working:
                self.sweep()
            if WORKERS in working:
                self.work()
        self.at = max(self.at, end)

    def tick(self, definition: ScheduleDefinition, slot: datetime) -> None:
        """Deliver a schedule's tick to dispatch."""
        sent = definition.input.replace(SCHEDULE_PLACEHOLDER, definition.arn)
        sent = sent.replace(SLOT_PLACEHOLDER, format_instant(slot))
        self.queue.send(messages_of(read_tick(sent), arrived=self.at, trace="tick"))

    def sweep(self) -> Swept:
        """Sweep once, and withdraw what is past its time."""
        withdraw_stale(self.store, now=self.at, is_out_of_time=lambda: False)
        done = sweep(self.schedules, self.store, self.queue, now=self.at, trace="sweep", remaining=lambda: HOUR)
        self.swept.append(done)
        return done

    def work(self) -> None:
        """Draft until no message is due any more."""
        while deliveries := self.queue.receive(visibility=self.visibility, limit=10):
            self.most_at_once = max(self.most_at_once, len(deliveries))
            for one in deliveries:
                delivery = Delivery(one.body, one.receipt, one.receives)
                if draft_run(delivery, self._place(), f"worker {next(self._numbers)}", 5 * MINUTE) == Done():
                    self.queue.delete(one.receipt)

    @property
    def schedules(self) -> FixedSchedules:
        """The schedules as they are deployed now."""
        return FixedSchedules(self.definitions)

    def rows(self, drafter: str = "daily-digest") -> list[Run]:
        """Return a drafter's rows, oldest first."""
        return list(reversed(self.store.history(drafter, limit=1_000).runs))

    def became(self, drafter: str = "daily-digest") -> list[str]:
        """Return what each slot became, oldest first: the reason of a skip, or else the status."""
        return [str(run.reason if run.status is Status.SKIPPED else run.status) for run in self.rows(drafter)]

    def _place(self) -> Workplace:
        outside: Any = {"bucket": None, "fetch": None}
        return Workplace(
            store=self.store,
            queue=self.queue,
            schedules=self.schedules,
            model=_Model(self),
            desk_url="https://desk.example",
            now=lambda: self.at,
            drafter=self._drafter,
            **outside,
        )

    def _drafter(self, name: str) -> Drafter:
        return Drafter.model_validate(
            {
                "name": name,
                "title": "Morning digest",
                "shape": "digest",
                "instructions": "Be short.",
                "pending_limit": self.pending_limit,
                "expire_hours": self.expire_hours,
                "sources": [{"kind": "mail", "id": "inbox", "prefix": "mail/"}],
            }
        )


@dataclass
class _Model:
    """A model that takes its time and has the same answer for everybody."""

    system: CalendarSystem

    def write(self, brief: Brief, *, remaining: timedelta) -> Answer:
        self.system.calls.append(self.system.at)
        self.system.at += CALL_TAKES
        text = '{"title": "One invoice", "sections": [{"heading": "Due", "text": "On Friday.", "cites": ["m1"]}]}'
        return Answer(model="offline", stop="end_turn", text=text, usage=Usage(), cost_nanousd=0)

    def worst_cost(self, model: str, max_input_tokens: int, max_output_tokens: int) -> int:
        return 0
