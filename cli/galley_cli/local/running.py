"""The system on one machine: everything that runs between the start and the end of ``galley run``."""

import logging
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from logging.handlers import RotatingFileHandler
from typing import Any

from galley.contract import read_tick
from galley.instants import utc_now
from galley.runs import Origin, Run, RunKey, RunMessage, Status, messages_for
from galley.schedules import Schedules
from galley.store import UnreadableRow
from galley_cli.checkout import Checkout
from galley_cli.local.bucket import FolderBucket
from galley_cli.local.clock import Clock, Due
from galley_cli.local.deployment import deploy
from galley_cli.local.desk import Desk
from galley_cli.local.environment import function_environment
from galley_cli.local.filters import check
from galley_cli.local.outcomes_feed import OutcomesFeed, Tell
from galley_cli.local.pool import FunctionError, FunctionSetup, LambdaPool, Returned
from galley_cli.local.queue import SqliteQueues, TickQueue
from galley_cli.local.run_feed import RunsFeed
from galley_cli.local.runner import Feed, Report, Runner
from galley_cli.local.state import StateDirectory, StateError
from galley_cli.local.store import SqliteStore
from galley_cli.local.stream_feed import StreamFeed
from galley_cli.local.sweep_feed import SweepFeed
from galley_cli.local.tick_feed import TicksFeed
from galley_cli.sample_material import put_samples
from galley_cli.template import DISPATCH, DRAFT, RECOVER, REVIEW, Template, TemplateFunction

MOST_DRAFTS_AT_ONCE = 4
GRACE = timedelta(seconds=10)
"""How long a stop waits for what is being handled. What is cut short is handled again after the next start."""

FIRST_SWEEP = timedelta(seconds=20)
"""How long after the start the first sweep runs: the first drafts have the machine to themselves."""

AFTER_A_TICK = timedelta(minutes=3)
"""How long after a slot the sweep that its tick asks for runs: the sweep leaves younger slots to their own tick."""

POLL = timedelta(seconds=0.05)
"""How often a wait for outcomes looks."""

PUBLISH_PATIENCE = timedelta(seconds=60)
"""How long a wait for outcomes goes on for what is approved and not yet published: all retries of one take half."""

UNSETTLED = frozenset({Status.QUEUED, Status.DRAFTING})
"""The states of a run that has no outcome yet."""


def has_outcome(run: Run | None) -> bool:
    """Tell whether a run has come to an outcome, or to a person."""
    return run is not None and run.status not in UNSETTLED


class Running:
    """The running system. ``start`` begins it and ``stop`` ends it; between them it needs nobody."""

    def __init__(
        self,
        checkout: Checkout,
        template: Template,
        state: StateDirectory,
        *,
        port: int,
        report: Report,
        tell: Tell,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Prepare the parts.

        ``report`` is told one line for each thing that went wrong, and ``tell`` each change of a run, from any thread.

        Raises:
            galley_cli.template.InvalidTemplate: the template asks for what one machine cannot give.
        """
        self._checkout = checkout
        self._template = template
        self._state = state
        self._report = report
        self._tell = tell
        self._now = now
        self._stack = ExitStack()
        self.starts_idle = False
        """Whether the start found nothing to draft."""
        self._stopping = threading.Event()
        self._desk_trouble = ""
        self.store = SqliteStore(state)
        self.queues = SqliteQueues(state, now=now, max_receives=template.queue.max_receives)
        self.desk = Desk(self._review, port)
        for pattern in template.stream.patterns:
            check(pattern)
        self._draft_concurrency = min(template.queue.concurrency, MOST_DRAFTS_AT_ONCE)
        retries = template.async_retries
        self._ticks = TickQueue(state, now=now, max_attempts=retries[DISPATCH].retries + 1)
        self._pool = LambdaPool({name: self._setup(part) for name, part in template.functions.items()}, state.root)
        self.runs = RunsFeed(
            self.queues,
            self._pool.invoke,
            visibility=template.queue.visibility,
            concurrency=self._draft_concurrency,
            now=now,
            wake=self._wake,
            report=report,
        )
        self._sweeps = SweepFeed(
            self.queues, self._pool.invoke, retries[RECOVER], now=now, wake=self._wake, report=report
        )
        visibility = 2 * template.functions[DISPATCH].time_limit
        ticks = TicksFeed(
            self._ticks, self._pool.invoke, retries[DISPATCH], visibility=visibility, now=now, report=report
        )
        self.stream = StreamFeed(self.store, self.queues, self._pool.invoke, template.stream, now=now, report=report)
        self._feeds: list[Feed] = [self.runs, ticks, self.stream, self._sweeps]
        self._runner = Runner([], report)
        self._outcomes: OutcomesFeed | None = None
        self._unreadable: set[RunKey] = set()
        self._watcher = threading.Thread(target=self._watch, name="watch")

    def start(self, *, clock: bool) -> tuple[RunKey, ...]:
        """Start everything, have the latest due slot of each schedule drafted, and return those runs' keys.

        Without ``clock`` no schedule fires and nothing is swept: only what is there already is worked off. With it, a
        slot from before its schedule's last change is not drafted: it was never due.

        Raises:
            galley_cli.local.state.StateError: the directory is damaged, or (StateInUse) another system runs on it.
            galley_cli.local.desk.PortUnavailable: the desk cannot listen.
        """
        with ExitStack() as stack:
            stack.enter_context(self._state.lock_for_running())
            stack.enter_context(_log_to(self._state))
            stack.callback(self._end)
            self.desk.start()
            started = self._now()
            schedules = deploy(self._state.root, self._template.schedules, started)
            first = latest_due_runs(schedules, started)
            if clock:
                first = [message for message in first if not is_from_before_a_change(message, schedules)]
            rows = self.read_rows([message.key for message in first])
            missing = [message for message in first if message.key in rows and rows[message.key] is None]
            self.starts_idle = not missing and self.queues.next_due() is None
            self._pool.warm(DRAFT, min(len(missing), 2))
            bucket = FolderBucket(self._state.bucket)
            bucket.remove_leftovers()
            put_samples(bucket, started)
            self.store.expire_leases(now=started)
            self.queues.make_all_visible()
            self._ticks.make_all_visible()
            if missing:
                self.queues.send(missing)
            self._pool.warm(REVIEW)
            self._outcomes = OutcomesFeed(self.store, self._tell, since=started, report=self._report)
            self._feeds.append(self._outcomes)
            if clock:
                self._feeds.append(self._clock(schedules, started))
            self._runner = Runner(self._feeds, self._report)
            self._runner.start()
            self._watcher.start()
            self._state.announce({"pid": os.getpid(), "desk": self.desk.address})
            self._stack = stack.pop_all()
        return tuple(message.key for message in first)

    def stop(self) -> None:
        """Begin nothing any more, wait a little for what is being handled, and end every process."""
        self._stack.close()

    def _end(self) -> None:
        self._stopping.set()
        self._runner.stop()
        # A draft under way may ask whether the desk is up: the desk, and what answers for it, outlive the drafts.
        cut_short = self._pool.close(GRACE, keep={REVIEW})
        self.desk.stop()
        cut_short += self._pool.close(GRACE)
        if cut_short:
            self._report(f"{cut_short} invocations were cut short; they are repeated after the next start")
        self._runner.join()
        if self._watcher.ident is not None:
            self._watcher.join()
        if self._outcomes is not None:
            self._tell_the_rest(self._outcomes)

    def _tell_the_rest(self, outcomes: OutcomesFeed) -> None:
        """Tell what the drafts that were allowed to finish became."""
        try:
            while outcomes.step() == timedelta():
                pass
        except StateError as error:
            self._report(f"outcomes: {error}; see 'galley runs list'")

    def wait_for_outcomes(
        self, keys: Sequence[RunKey], patience: timedelta, *, pause: Callable[[timedelta], bool]
    ) -> None:
        """Wait until each run has an outcome, what is due is worked off and what is approved is published.

        It ends too where nothing will happen any more, when the patience is over, and when ``pause``, which waits so
        long, says that a stop is asked for.
        """
        deadline = self._now() + patience
        while not pause(POLL):
            now = self._now()
            if now > deadline:
                return
            due = self.queues.next_due()
            is_idle = self.runs.in_flight == 0 and not self._has_ticks_until(deadline)
            if is_idle and (due is None or due > now) and not self.without_outcome(keys):
                break
            if is_idle and (due is None or due > deadline) and self.without_outcome(keys):
                return
        deadline = min(deadline, self._now() + PUBLISH_PATIENCE)
        while not self.stream.is_drained() and self._now() <= deadline and not pause(POLL):
            pass

    def _has_ticks_until(self, deadline: datetime) -> bool:
        """Tell whether a tick waits for dispatch, or is being dispatched."""
        due = self._ticks.next_due()
        return due is not None and due <= deadline

    def next_slot(self) -> tuple[datetime, str] | None:
        """Return when the next schedule is due, and its name; None where none will be."""
        now = self._now()
        coming = [
            (slot, schedule.name)
            for schedule in self._template.schedules
            if schedule.enabled and (slot := schedule.calendar(self._state.created).next_after(now)) is not None
        ]
        return min(coming, default=None)

    def without_outcome(self, keys: Sequence[RunKey]) -> list[RunKey]:
        """Return the runs that have no outcome yet."""
        return [key for key, run in self.read_rows(keys).items() if not has_outcome(run)]

    def read_rows(self, keys: Sequence[RunKey]) -> dict[RunKey, Run | None]:
        """Return the runs' rows, None where there is none. One that cannot be read is left out, and told once."""
        rows: dict[RunKey, Run | None] = {}
        for key in keys:
            try:
                rows[key] = self.store.run(key)
            except UnreadableRow as error:
                if key not in self._unreadable:
                    self._unreadable.add(key)
                    self._report(str(error))
        return rows

    def _clock(self, schedules: Schedules, since: datetime) -> Clock:
        created = {definition.arn: definition.created for definition in schedules.all()}
        watched = [(schedule, created[schedule.arn]) for schedule in self._template.schedules]
        watched += [(sweep, self._state.created) for sweep in self._template.sweeps]
        for sweep in self._template.sweeps:
            self._sweeps.ask(sweep.event(since), since + FIRST_SWEEP)
        return Clock(watched, self._fire, self._now, since=since)

    def _fire(self, due: Due) -> None:
        event = due.schedule.event(due.slot)
        if due.schedule.function == RECOVER:
            self._sweeps.ask(event)
            return
        self._ticks.enqueue(event)
        for sweep in self._template.sweeps:
            self._sweeps.ask(sweep.event(due.slot), due.slot + AFTER_A_TICK)

    def _review(self, event: dict[str, Any]) -> dict[str, Any]:
        match self._pool.invoke(REVIEW, event):
            case Returned(value):
                return dict(value)
            case FunctionError(error_type, message):
                line = f"{error_type}: {message}"
                if line != self._desk_trouble:
                    self._desk_trouble = line
                    self._report(f"the review desk cannot answer ({line}); its log says more")
                raise RuntimeError(line)

    def _setup(self, function: TemplateFunction) -> FunctionSetup:
        code_roots = os.pathsep.join(map(str, (self._checkout.cli, self._checkout.layer)))

        def environment() -> dict[str, str]:
            desk_url = self.desk.address.rstrip("/")
            variables = function_environment(function, self._template.path, desk_url=desk_url)
            return {**variables, "PYTHONPATH": code_roots}

        environment()  # a variable without a value is told now, not at the first event
        return FunctionSetup(
            name=function.name,
            handler=function.handler,
            code=self._checkout.function(function.name),
            environment=environment,
            memory_mb=function.memory_mb,
            time_limit=function.time_limit,
            concurrency=self._draft_concurrency if function.name == DRAFT else 1,
        )

    def _wake(self) -> None:
        self._runner.wake()

    def _watch(self) -> None:
        """Wake the feeds whenever any process has committed anything."""
        watch = self._state.watch()
        try:
            while not self._stopping.is_set():
                if watch.wait(60, self._stopping):
                    self._wake()
        finally:
            watch.close()


def latest_due_runs(schedules: Schedules, now: datetime) -> list[RunMessage]:
    """Return a backfill of the latest due slot of each enabled schedule, for each of its drafters."""
    messages = []
    for definition in schedules.all():
        if not definition.enabled:
            continue
        slot = definition.calendar().latest_until(now)
        if slot is not None:
            tick = read_tick(definition.input, f"input of schedule {definition.name}")
            trace = str(uuid.uuid4())
            messages += messages_for(tick, slot, origin=Origin.BACKFILL, schedule=definition.arn, trace=trace)
    return messages


def is_from_before_a_change(message: RunMessage, schedules: Schedules) -> bool:
    """Tell whether a schedule was changed, or enabled again, after the slot. One that was just made is unchanged."""
    definition = schedules.get(message.schedule or "")
    return definition.created < definition.modified and message.slot < definition.modified


@contextmanager
def _log_to(state: StateDirectory) -> Iterator[None]:
    """Send what this process logs to the state directory, bounded; a terminal is for outcomes."""
    folder = state.root / "logs"
    folder.mkdir(mode=0o700, exist_ok=True)
    handler = RotatingFileHandler(folder / "system.log", maxBytes=2_000_000, backupCount=1, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.raiseExceptions = False  # a full disk must not fill the terminal with tracebacks of the log itself
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
