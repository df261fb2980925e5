"""Time, chance and the invocations that live in it: each is a greenlet that rests at every call to the outside.

One thread. While an invocation rests the others go on, in the order of the instants at which their calls come to
pass, and so two handlers interleave at every call that either makes, as two processes would. Nothing really waits.
"""

import heapq
import itertools
import random
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

from simulation.story import Crash, Function, Kind, Service, Side, Trouble, Weather

BEGIN = datetime(2026, 11, 27, 20, 58, 7, tzinfo=UTC)
"""Three hours before midnight in UTC: a story that goes on for long comes into the next day's budget."""
_SECOND = timedelta(seconds=1)

Answer = TypeVar("Answer")


class Killed(BaseException):
    """The end of an invocation's process. No handler catches it."""


@dataclass(frozen=True, slots=True)
class Returned:
    """An invocation gave this."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """An invocation ended with an exception."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Died:
    """An invocation's process was killed."""


End = Returned | Raised | Died


@dataclass(eq=False)
class Task:
    """One invocation, or one person's doing.

    ``deadline`` is when its time limit kills it. ``disturbed`` tells whether something was put in its way, so that
    work done for nothing is no fault of its own. ``day`` is the UTC day on whose budget it works, ``asked`` are its
    calls of the model.
    """

    function: Function
    name: str
    began: datetime
    deadline: datetime | None
    greenlet: greenlet = field(init=False)
    dead: bool = False
    disturbed: bool = False
    frozen_until: datetime | None = None
    calls: int = 0
    day: str | None = None
    asked: list[Any] = field(default_factory=list)


@dataclass(eq=False)
class _ArmedCrash:
    """Somebody's call to come is the last thing that it does: the one after ``calls_before``."""

    function: Function
    calls_before: int
    side: Side


@dataclass(eq=False)
class _ComingTrouble:
    """After ``calls_before`` calls to a service, so many ``calls`` to it go wrong."""

    service: Service
    calls_before: int
    calls: int
    kind: Kind


class Memory:
    """The globals of a process that greenlets share and processes would not: taken away while a task rests."""

    def take(self) -> object:
        """Return what the globals hold now."""
        return None

    def put(self, kept: object) -> None:
        """Put back what they held."""


class World:
    """The clock, the events to come, and what the story has put in the way of calls."""

    def __init__(self, seed: int, weather: Weather) -> None:
        self.random = random.Random(seed)
        self.weather = weather
        self.now = BEGIN
        self.memory = Memory()
        self.happened: Counter[str] = Counter()
        self.journal: list[str] = []
        self.tasks: list[Task] = []
        self.ever: list[Task] = []
        self.broken: list[str] = []
        self._events: list[tuple[datetime, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._ids = itertools.count(1)
        self._main = getcurrent()
        self._current: Task | None = None
        self._over = False
        self._crashes: list[_ArmedCrash] = []
        self._troubles: list[_ComingTrouble] = []

    def note(self, line: str) -> None:
        """Write a line of the journal, which a failure prints."""
        self.journal.append(f"{self.now:%d %H:%M:%S.%f}"[:-3] + f" {line}")

    def count(self, what: str, times: int = 1) -> None:
        """Count something that happened, for the summary."""
        self.happened[what] += times

    def new_id(self, what: str) -> str:
        """Return an id that no other has."""
        return f"{what}-{next(self._ids)}"

    def seconds(self, low: float, high: float) -> timedelta:
        """Draw a time between the two."""
        return timedelta(seconds=self.random.uniform(low, high))

    # Events

    def at(self, when: datetime, action: Callable[[], None]) -> None:
        """Let something happen at an instant, or next if that is over."""
        heapq.heappush(self._events, (max(when, self.now), next(self._order), action))

    def after(self, wait: timedelta, action: Callable[[], None]) -> None:
        """Let something happen after a time."""
        self.at(self.now + wait, action)

    def run_until(self, when: datetime) -> None:
        """Let all happen that happens until an instant."""
        while self._events and self._events[0][0] <= when:
            at, _, action = heapq.heappop(self._events)
            self.now = max(self.now, at)
            action()
        self.now = max(self.now, when)

    def leap(self, by: timedelta) -> None:
        """Let the clock jump. Who is at work was frozen: it goes on afterwards, some of them later than others."""
        self.now += by
        for task in self.tasks:
            if task.deadline is not None:
                task.deadline += by
                task.disturbed = True
                if self.random.random() < 0.6:
                    task.frozen_until = self.now + self.seconds(0, 400)
                    task.deadline = max(task.deadline, task.frozen_until + self.seconds(1, 60))
                self.count("frozen invocations")

    # Tasks

    def start(
        self,
        function: Function,
        name: str,
        work: Callable[[], Any],
        *,
        limit: timedelta | None = None,
        then: Callable[[End], None] = lambda end: None,
    ) -> Task:
        """Begin an invocation now; ``then`` is told how it ended."""
        task = Task(function, name, self.now, None if limit is None else self.now + limit)
        self.ever.append(task)

        def live() -> None:
            try:
                end: End = Returned(work())
            except Killed:
                end = Died()
                self.count("crashes")
            except Exception as error:
                end = Raised(error)
                if not task.disturbed:
                    self.broken.append(f"{name} raised {type(error).__name__}: {error}")
                    self.note("".join(traceback.format_exception(error)))
            self.note(f"{name} ended: {_shown(end)}")
            self.tasks.remove(task)
            if not self._over:
                then(end)

        task.greenlet = greenlet(live, parent=self._main)
        self.tasks.append(task)
        self.at(self.now, lambda: self._go_on(task))
        return task

    @property
    def current(self) -> Task | None:
        """Return who is acting: None while it is the story itself, or a check."""
        return self._current

    def rest(self, wait: timedelta) -> None:
        """Let the acting task wait while others go on. Its time limit kills it there."""
        task = self._acting()
        until = self.now + wait
        if task.deadline is not None and until > task.deadline:
            until = task.deadline
        self.at(until, lambda: self._wake(task))
        self._switch(task)

    def wait_for(self, begin: Callable[[Callable[[Any], None]], None]) -> Any:
        """Let the acting task wait until what it begins calls back, and return what it is called with."""
        task = self._acting()
        given: list[Any] = []

        def back(value: Any) -> None:
            given.append(value)
            self.at(self.now, lambda: self._go_on(task))

        begin(back)
        self._switch(task)
        return given[0]

    def kill(self, task: Task) -> None:
        """End the acting task's process here."""
        task.dead = True
        task.disturbed = True
        raise Killed

    def _acting(self) -> Task:
        task = self._current
        assert task is not None, "only a task can wait"
        if task.dead:
            raise Killed
        return task

    def _switch(self, task: Task) -> None:
        kept = self.memory.take()
        self._main.switch()
        self.memory.put(kept)
        if task.deadline is not None and self.now >= task.deadline:
            self.count(f"time limits of {task.function}")
            self.kill(task)

    def _wake(self, task: Task) -> None:
        if task.frozen_until is not None and task.frozen_until > self.now:
            self.at(task.frozen_until, lambda: self._wake(task))
        else:
            self._go_on(task)

    def _go_on(self, task: Task) -> None:
        assert self._current is None
        self._current = task
        try:
            task.greenlet.switch()
        finally:
            self._current = None

    def end(self) -> None:
        """Kill whoever still lives."""
        self._over = True
        for task in list(self.tasks):
            task.dead = True
            if task.greenlet:  # false for one that has not begun
                self._current = task
                task.greenlet.throw(Killed)
                self._current = None

    # Calls

    def call(
        self,
        service: Service,
        name: str,
        effect: Callable[[], Answer],
        *,
        refuse: Callable[[], Answer] | None = None,
        lose: Callable[[], Answer] | None = None,
        seconds: tuple[float, float] = (0.004, 0.06),
    ) -> Answer:
        """Make a call to the outside: the request travels, takes effect, and its answer travels back.

        The caller may die on either way. ``refuse`` answers in the place of the effect when the service turns the call
        away, ``lose`` after it when the answer is lost. A check calls without any of this.
        """
        if self._current is None:
            return effect()
        task = self._acting()
        task.calls += 1
        side = self._crash(task)
        trouble = self._trouble(service)
        self.rest(self.seconds(*seconds))
        if side is Side.BEFORE:
            self.note(f"{task.name} dies before {name}")
            self.count(f"crashes before a call of {task.function}")
            self.kill(task)
        if trouble is Kind.REFUSED and refuse is not None:
            self.note(f"{task.name}: {name} is turned away")
            self.count(f"{service} calls turned away")
            task.disturbed = True
            return refuse()
        answer = effect()
        if trouble is Kind.LOST and lose is not None:
            self.note(f"{task.name}: the answer of {name} is lost")
            self.count(f"{service} answers lost")
            task.disturbed = True
            return lose()
        self.rest(self.seconds(*seconds))
        if side is Side.AFTER:
            self.note(f"{task.name} dies after {name}")
            self.count(f"crashes after a call of {task.function}")
            self.kill(task)
        return answer

    def arm(self, step: Crash) -> None:
        """Let a call to come be somebody's last."""
        self._crashes.append(_ArmedCrash(step.function, step.call - 1, step.side))

    def trouble(self, step: Trouble) -> None:
        """Let calls to come go wrong."""
        self._troubles.append(_ComingTrouble(step.service, step.skip, step.calls, step.kind))

    def calm(self) -> None:
        """Put nothing in the way any more."""
        self._crashes.clear()
        self._troubles.clear()
        self.weather = Weather()

    def strikes(self, per_thousand: int) -> bool:
        """Tell whether something happens that happens so often in a thousand times."""
        return per_thousand > 0 and self.random.random() * 1000 < per_thousand

    def _crash(self, task: Task) -> Side | None:
        hit: Side | None = None
        for armed in list(self._crashes):
            if armed.function not in (Function.ANY, task.function):
                continue
            if armed.calls_before > 0:
                armed.calls_before -= 1
                continue
            self._crashes.remove(armed)
            hit = armed.side
        if hit is None and task.function is not Function.ANY and self.strikes(self.weather.crashes):
            hit = self.random.choice((Side.BEFORE, Side.AFTER))
        return hit

    def _trouble(self, service: Service) -> Kind | None:
        for trouble in list(self._troubles):
            if trouble.service is not service:
                continue
            if trouble.calls_before > 0:
                trouble.calls_before -= 1
                continue
            trouble.calls -= 1
            if trouble.calls <= 0:
                self._troubles.remove(trouble)
            return trouble.kind
        return self.random.choice((Kind.REFUSED, Kind.LOST)) if self.strikes(self.weather.troubles) else None


def _shown(end: End) -> str:
    match end:
        case Returned({"statusCode": status}):
            return f"answered {int(status)}"
        case Returned(value):
            return f"{value!r}"[:200]
        case Raised(error):
            return f"raised {type(error).__name__}: {error}"[:300]
        case Died():
            return "died"
