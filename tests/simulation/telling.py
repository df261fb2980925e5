"""Tells a story: opens a system in its world, lets its steps happen, waits until all is quiet, and checks.

One limit of what is told: SQS never breaks its word, and a message group has one message in flight.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, assert_never
from unittest import mock

from aws_lambda_powertools.event_handler.api_gateway import BaseRouter

import authoring
import draft
import review
from galley import system
from galley.bucket import BucketUnavailable
from galley.contract import CatchUp, Contract
from galley.instants import format_instant
from galley.observe import logger, metrics
from galley.queue import RunQueue
from galley.queue.sqs import SqsRunQueue
from galley.runs import Origin, RunKey, RunMessage
from galley.schedules import ScheduleDefinition, ScheduleMissing, Schedules, ScheduleSummary, SchedulesUnavailable
from galley.store import Store
from simulation.checks import Broken, Checks
from simulation.drafters import Catalogue, Sources
from simulation.lambdas import Lambda
from simulation.model_api import ModelApi
from simulation.people import Desk, Operator
from simulation.sqs import DEAD_RUNS, DEAD_TICKS, RUNS, Message, Sqs, SqsClient
from simulation.stores import Opened
from simulation.story import (
    Backfill,
    Budget,
    ByHand,
    Crash,
    Discard,
    Function,
    Garbage,
    Leap,
    ModelSays,
    Pause,
    Resend,
    ResendAll,
    Resume,
    Review,
    Service,
    Slow,
    Step,
    Story,
    Sweep,
    Throttle,
    Tick,
    Trouble,
    Twice,
    Undeleted,
    Unknown,
    Verdict,
    Wait,
)
from simulation.world import Memory, World
from support.memory_bucket import MemoryBucket
from support.outside import Outside

CREATED = datetime(2026, 11, 27, 20, 30, tzinfo=UTC)
CADENCE_MINUTES = 20
SETTLING = timedelta(minutes=2)
"""How long the sweep leaves a slot alone, stated here anew."""
SWEEPS = timedelta(minutes=45)
"""How often the end is swept. In a deployed system it is every fifteen minutes; that would only take longer here."""
QUIET = timedelta(hours=3)
"""How long nothing must happen at the end: longer than the sweep leaves a run that lies still."""
LONGEST_END = timedelta(days=4)

_VARIABLES = {
    "GALLEY_TABLE": "table",
    "GALLEY_RUNS_QUEUE_URL": RUNS,
    "GALLEY_DEAD_RUNS_QUEUE_URL": DEAD_RUNS,
    "GALLEY_DEAD_TICKS_QUEUE_URL": DEAD_TICKS,
    "GALLEY_BUCKET": "bucket",
    "GALLEY_SCHEDULE_GROUP": "schedules",
    "GALLEY_DESK_URL": "https://desk.example",
    "GALLEY_MODEL_PROVIDER": "offline",
}


class StoryFailed(AssertionError):
    """A guarantee did not hold; its text is the journal of the story and what was found at its end."""


class _Desk(Memory):
    """What Powertools' resolver keeps of a request in globals: in Lambda each invocation has a process of its own."""

    def take(self) -> object:
        event, context = getattr(BaseRouter, "current_event", None), getattr(BaseRouter, "lambda_context", None)
        return event, context, dict(review.app.context)

    def put(self, kept: object) -> None:
        event, context, settings = kept  # type: ignore[misc]
        BaseRouter.current_event, BaseRouter.lambda_context = event, context
        review.app.context.clear()
        review.app.context.update(settings)


@dataclass
class _Schedules:
    """The schedules of the story: each is due every twenty minutes, at minutes of its own."""

    world: World
    drafters: tuple[str, ...]
    contract: Contract
    disabled: datetime | None = None

    def all(self) -> tuple[ScheduleDefinition, ...]:
        return self.world.call(Service.SCHEDULES, "ListSchedules", self.deployed, refuse=self._down, lose=self._down)

    def listed(self) -> tuple[ScheduleSummary, ...]:
        return tuple(definition.summary for definition in self.all())

    def get(self, arn: str) -> ScheduleDefinition:
        for definition in self.all():
            if definition.arn == arn:
                return definition
        raise ScheduleMissing(arn)

    def deployed(self) -> tuple[ScheduleDefinition, ...]:
        return tuple(self.definition(number) for number in range(len(self.drafters) + 1))

    def definition(self, number: int) -> ScheduleDefinition:
        """Return a schedule: number 0 names every drafter, number n the nth."""
        names = self.drafters if number == 0 else (self.drafters[number - 1],)
        asked = {
            "drafters": list(names),
            "schedule": "<aws.scheduler.schedule-arn>",
            "slot": "<aws.scheduler.scheduled-time>",
            **self.contract.model_dump(mode="json"),
            "silence_slots": 2,
        }
        return ScheduleDefinition(
            name=f"schedule-{number}",
            arn=f"arn:aws:scheduler:eu-west-2:123456789012:schedule/galley/schedule-{number}",
            expression=f"cron({5 * number}/{CADENCE_MINUTES} * * * ? *)",
            timezone="UTC",
            input=json.dumps(asked),
            enabled=self.disabled is None,
            created=CREATED,
            modified=CREATED if self.disabled is None else self.disabled,
        )

    def _down(self) -> tuple[ScheduleDefinition, ...]:
        raise SchedulesUnavailable("scheduler does not answer")


@dataclass
class _Bucket:
    """What the s3 channel writes to."""

    world: World
    kept: MemoryBucket
    published: Callable[[str, bytes], None]

    def put(self, key: str, body: bytes, *, content_type: str) -> None:
        def effect() -> None:
            self.kept.put(key, body, content_type=content_type)
            self.published(key, body)

        def down() -> None:
            raise BucketUnavailable("s3 does not answer")

        self.world.call(Service.BUCKET, f"put {key}", effect, refuse=down, lose=down)


class _System(Outside):
    """What the handlers find through ``galley.system``, with the world's clock."""

    def __init__(self, world: World, store: Store, queue: RunQueue, bucket: Any, schedules: Schedules) -> None:
        super().__init__(store, queue, bucket, schedules)
        self._world = world

    def now(self) -> datetime:
        return self._world.now


class Telling:
    """One story, while it is told. ``api`` opens what stands in the place of the model's API."""

    def __init__(
        self, story: Story, open_store: Callable[[World], Opened], api: Callable[[World], ModelApi] = ModelApi
    ) -> None:
        self.story = story
        self.world = world = World(story.seed, story.settings.weather)
        world.memory = _Desk()
        self.opened = open_store(world)
        self.sqs = Sqs(world)
        self.catalogue = Catalogue(story.settings, lambda: world.now)
        self.sources = Sources(world, self.catalogue.ruled)
        self.api = api(world)
        plain = self.opened.plain
        self.lambdas = Lambda(world, self.sqs, lambda: plain, story.settings.workers)
        self.sqs.changed = self.lambdas.poll
        self.contract = Contract(window_minutes=10, grace_minutes=story.settings.grace_minutes, catch_up=CatchUp.LATEST)
        self.schedules = _Schedules(world, self.catalogue.names, self.contract)
        queue = SqsRunQueue(
            SqsClient(self.sqs),  # type: ignore[arg-type]
            RUNS,
            DEAD_RUNS,
            DEAD_TICKS,
            sleep=lambda seconds: world.rest(timedelta(seconds=seconds)),
            jitter=world.random.random,
            poll_seconds=0,
        )
        self.desk = Desk(world, self.lambdas)
        self.operator = Operator(world, self.opened.store, queue, plain)
        self.checks = Checks(
            world,
            plain,
            queue,
            self.sqs,
            self.catalogue,
            self.sources,
            self.api,
            self.desk,
            self.operator,
            self.lambdas,
        )
        self.sqs.taken_away = self._taken_away
        bucket = _Bucket(world, MemoryBucket(), self._published)
        self.system = _System(world, self.opened.store, queue, bucket, self.schedules)
        self.opened.told = self._told
        self._is_over = False
        self._due: dict[int, datetime] = {}

    def tell(self) -> Counter[str]:
        """Let the story happen; return what happened how often.

        Raises:
            StoryFailed: when a guarantee did not hold.
        """
        with self._handlers():
            try:
                self._sit_at_the_desk()
                for step in self.story.steps:
                    self.world.note(f"--- {step}")
                    self._do(step)
                    self.world.run_until(self.world.now + self._pace())
                    self.checks.now()
                self._end()
                self.checks.at_the_end()
            except Exception as error:
                lines = "\n".join(self.world.journal)
                raise StoryFailed(
                    f"{type(error).__name__}: {error}\n{lines}\n{type(error).__name__}: {error}"
                ) from error
        return self.world.happened

    @contextmanager
    def _handlers(self) -> Iterator[None]:
        """Let the handlers work in this world, and end what is left of them."""
        workplace = draft._workplace

        def in_this_world() -> Any:
            return replace(workplace(), model=self.api, drafter=self.catalogue.read)

        undo = system.install(self.system)
        level = logger.log_level
        try:
            with (
                mock.patch.dict(os.environ, _VARIABLES),
                mock.patch.object(draft, "_workplace", in_this_world),
                mock.patch.dict(authoring.SHAPES, digest=self.sources, monitor=self.sources),
                mock.patch.object(metrics, "add_metric"),
                mock.patch.object(review, "_one_at_a_time", _NoLock()),
            ):
                logger.setLevel("CRITICAL")
                try:
                    yield
                finally:
                    self.world.end()
        finally:
            logger.setLevel(level)
            undo()

    def _told(self, key: RunKey | None) -> None:
        if key is None or not self.checks.is_news(key):
            return
        with self._noticing():
            self.checks.written(key)
        self.lambdas.changed(key)

    def _taken_away(self, url: str, dead: Message) -> None:
        with self._noticing():
            self.checks.taken_away(url, dead)

    def _published(self, path: str, body: bytes) -> None:
        with self._noticing():
            self.checks.see_published(path, body)

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """Remember what is found within a call: raised there, it would be an error for some handler to catch."""
        try:
            yield
        except Broken as broken:
            self.world.broken.append(str(broken))
            self.world.note(f"BROKEN: {broken}")

    def _sit_at_the_desk(self) -> None:
        """Have somebody decide now and then, until the end."""
        minutes = self.story.settings.desk_minutes
        if not minutes or self._is_over:
            return
        verdict = self.world.random.choice((Verdict.APPROVE, Verdict.EDIT, Verdict.REJECT))
        tamper = self._tamper if self.world.strikes(self.world.weather.hands) else None
        self.desk.review(self.world.random.randrange(3), (verdict,), tamper)
        self.world.after(timedelta(minutes=minutes), self._sit_at_the_desk)

    def _pace(self) -> timedelta:
        """How long after a step the next one comes: often while the first is still at work."""
        return timedelta(seconds=self.world.random.choice((0, 0.05, 0.4, 3, 20, 90)))

    def _do(self, step: Step) -> None:  # noqa: C901 - a table of all steps
        match step:
            case Tick():
                self._tick(step)
            case ByHand(drafter, items):
                name = self.catalogue.name(drafter)
                self.sources.add(name, items)
                self.lambdas.invoke_later(Function.DISPATCH, self._event([name], None, None))
            case Backfill(drafter, hours):
                slot = (self.world.now - timedelta(hours=hours)).replace(minute=7, second=0, microsecond=0)
                name = self.catalogue.name(drafter)
                self.sources.add(name, 1)
                self.operator.send(RunMessage(drafter=name, slot=slot, origin=Origin.BACKFILL, contract=self.contract))
            case Garbage(drafter):
                identity = self.world.new_id("garbage")
                self.sqs.send(RUNS, f'{{"odd": "{identity}"}}', self.catalogue.name(drafter), identity)
            case Wait(minutes):
                self.world.run_until(self.world.now + timedelta(minutes=minutes))
            case Leap(minutes):
                self._leap(timedelta(minutes=minutes))
            case Review(nth, verdicts, tampers):
                self._await(lambda: bool(self.checks.pending()))
                self.desk.review(nth, verdicts, self._tamper if tampers else None)
            case Resend(nth):
                self.operator.resend(nth)
            case ResendAll():
                self.operator.resend_all()
            case Discard(nth):
                self.operator.discard(nth)
            case Pause(drafter):
                self.operator.pause(self.catalogue.name(drafter))
            case Resume():
                self.operator.resume(self.catalogue.names)
            case Budget(drafter, calls):
                self.catalogue.set_budget(self.catalogue.name(drafter), calls)
            case Unknown(drafter):
                self.catalogue.toggle(self.catalogue.name(drafter))
            case Sweep():
                self._sweep()
            case Crash():
                self.world.arm(step)
            case Trouble():
                self.world.trouble(step)
            case ModelSays(_, times, _):
                self.api.script.extend([step] * times)
            case Slow(seconds):
                self.api.slow.append(seconds)
            case Throttle(times, seconds):
                self.lambdas.throttled.extend([seconds] * times)
            case Twice(times):
                self.lambdas.twice += times
            case Undeleted(times):
                self.lambdas.undeleted += times
            case _:
                assert_never(step)

    def _tick(self, step: Tick) -> None:
        number = step.schedule % (len(self.catalogue.names) + 1)
        definition = self.schedules.definition(number)
        slot = definition.calendar().next_after(max(self.world.now, self._due.get(number, self.world.now)))
        assert slot is not None
        self._due[number] = slot
        names = json.loads(definition.input)["drafters"]
        for name in names:
            self.sources.add(name, step.items)
        self.world.run_until(slot)
        event = self._event(names, definition.arn, slot)
        if not step.times:
            said = {
                "ERROR_CODE": "AWS.Scheduler.InternalServerError",
                "RETRY_ATTEMPTS": "3",
                "SCHEDULED_TIME": format_instant(slot),
                "SCHEDULE_ARN": definition.arn,
            }
            self.sqs.send(DEAD_TICKS, json.dumps(event), attributes=said)
            self.world.count("ticks that Scheduler could not deliver")
        for _ in range(step.times):
            late = timedelta(minutes=step.late_minutes) + self.world.seconds(0, 40)
            self.world.after(late, lambda: self.lambdas.invoke_later(Function.DISPATCH, event))

    def _sweep(self) -> None:
        self.checks.swept = self.world.now
        self.lambdas.invoke_later(Function.RECOVER, {"sweep": format_instant(self.world.now)})

    def _leap(self, by: timedelta) -> None:
        """Let the clock jump once an invocation of draft has begun its work, or after a while."""
        self._await(lambda: any(one.function is Function.DRAFT and one.calls > 1 for one in self.world.tasks))
        self.world.leap(by)

    def _await(self, happens: Callable[[], bool]) -> None:
        """Let up to a minute pass until something happens."""
        for _ in range(60):
            if happens():
                return
            self.world.run_until(self.world.now + timedelta(seconds=1))

    def _tamper(self, key: RunKey) -> None:
        self.checks.tampered.add(str(key))
        self.opened.tamper(key)
        self.world.count("texts changed by hand")

    def _event(self, names: list[str], arn: str | None, slot: datetime | None) -> dict[str, Any]:
        event: dict[str, Any] = {"drafters": names, **self.contract.model_dump(mode="json")}
        if arn is not None and slot is not None:
            event |= {"schedule": arn, "slot": format_instant(slot)}
        return event

    def _end(self) -> None:
        """Put nothing more in the way and let everything come to its end; sweeps go on as they are scheduled."""
        self.world.note("--- the end: nothing goes wrong any more")
        self._is_over = True
        self.world.calm()
        self.lambdas.throttled.clear()
        self.lambdas.twice = self.lambdas.undeleted = 0
        self.api.script.clear()
        self.api.slow.clear()
        self.catalogue.broken.clear()
        self.checks.due = frozenset(self._due_until(self.world.now - SETTLING))
        self._sweep()
        self.world.run_until(self.world.now + timedelta(minutes=1))
        self.schedules.disabled = self.world.now
        until = self.world.now + LONGEST_END
        quiet_since = self.world.now
        while self.world.now - quiet_since < QUIET:
            if self.world.now > until:
                raise AssertionError(f"after {LONGEST_END} there is still work: {self.checks.open_work()}")
            self.world.run_until(self.world.now + SWEEPS)
            self._sweep()
            self.world.run_until(self.world.now + timedelta(minutes=1))
            if self.checks.open_work():
                quiet_since = self.world.now

    def _due_until(self, last: datetime) -> Iterator[str]:
        """Yield every run whose slot was due since the schedules' creation, by their minutes alone."""
        names = self.catalogue.names
        for minute in range((last - CREATED) // timedelta(minutes=1) + 1):
            slot = CREATED + timedelta(minutes=minute)
            for number in range(len(names) + 1):
                if slot.minute % CADENCE_MINUTES == 5 * number:
                    for name in names if number == 0 else names[number - 1 : number]:
                        yield str(RunKey(name, slot))


class _NoLock:
    """In the place of a lock that a process of its own would hold alone."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def tell(story: Story, open_store: Callable[[World], Opened]) -> Counter[str]:
    """Tell a story on a store and return what happened how often."""
    return Telling(story, open_store).tell()
