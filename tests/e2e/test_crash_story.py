"""A thousand messages, delivered up to three times, a tenth of all deliveries crashing: what is promised still holds.

The worker is the real one on DynamoDB Local, eight at a time, beside two reviewers. A delivery crashes before or after
a call of AWS or of the model, so that what it did up to there stands, and nothing else. Time is the story's own: it
ticks at each look at the clock, and jumps to the next message when all are idle.
"""

import inspect
import itertools
import json
import random
import threading
import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

import draft
from attempt import Workplace
from drafter import Drafter, read_drafter
from galley import system
from galley.bucket import ObjectInfo
from galley.contract import CatchUp, Contract
from galley.observe import logger
from galley.queue import MAX_RECEIVES, DeadLetter, DeadTick, receives_exhausted
from galley.runs import HOLDS_A_PLACE, Origin, RejectReason, Run, RunKey, RunMessage, Status, Usage, read_message
from galley.store import Approve, Conflict, Reject, Settled, StoreBusy
from galley.store.dynamodb import DynamoStore
from sources import mail
from sources.collected import SourceLimits
from support.dynamodb_local import LOOPBACK, connect, contended, fresh_table
from support.memory_bucket import MemoryBucket
from support.outside import Context, FixedSchedules, Outside
from writing import Answer, Brief

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DRAFTERS = 50
HOURS = 20
WORKERS = 8
REVIEWERS = 2
REVIEW_SECONDS = 0.25
CRASHES = 0.2
"""How many deliveries are meant to crash: half of them end before the call at which they would."""
CALLS_OF_A_DELIVERY = 6
BEGIN = datetime(2026, 11, 27, 8, tzinfo=UTC)
LONG_AFTER = BEGIN + timedelta(days=30)
TICK = timedelta(milliseconds=10)
VISIBILITY = timedelta(minutes=30)
DEDUPLICATION = timedelta(minutes=5)
LIMIT = 3
WORST_COST = 50_000_000
DAILY_CALLS = 9
CONTRACT = Contract(window_minutes=30, grace_minutes=240, catch_up=CatchUp.ALL)
DAYS = ("2026-11-27", "2026-11-28", "2026-11-29")
VERDICTS: list[Approve | Reject] = [Approve(), Approve(title="Mine", body="My own."), Reject(RejectReason.TONE)]
SETTLED = frozenset(Status) - {Status.QUEUED, Status.DRAFTING}

TOML = f"""
title = "Digest"
shape = "digest"
instructions = "Be short."
pending_limit = {LIMIT}
daily_budget_usd = {DAILY_CALLS * WORST_COST / 10**9}
[[sources]]
kind = "mail"
id = "inbox"
prefix = "mail/%s/"
"""


class Crash(BaseException):
    """The end of a worker's process: no handler catches it."""


@dataclass
class Clock:
    """The story's time. It never stands still, so that no two changes bear the same instant."""

    _now: datetime = BEGIN
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> datetime:
        with self._lock:
            self._now += TICK
            return self._now

    def jump(self, to: datetime) -> None:
        with self._lock:
            self._now = max(to, self._now)


class Fate(threading.local):
    """What becomes of the delivery on this thread: at which of its calls it crashes, if at any."""

    def __init__(self) -> None:
        self.calls_left: int | None = None
        self.crashes_before = False

    def decide(self, chance: random.Random) -> None:
        self.calls_left = chance.randrange(CALLS_OF_A_DELIVERY) if chance.random() < CRASHES else None
        self.crashes_before = chance.random() < 0.5

    def spare(self) -> None:
        self.calls_left = None

    def call(self, what: Any, *arguments: Any, **named: Any) -> Any:
        """Make a call, and crash before or after it when its turn has come."""
        its_turn = self.calls_left == 0
        if self.calls_left is not None:
            self.calls_left -= 1
        if its_turn and self.crashes_before:
            raise Crash
        answer = what(*arguments, **named)
        if its_turn:
            raise Crash
        return answer


class Doomed:
    """Something outside, each of whose calls may be a delivery's last."""

    def __init__(self, inner: object, fate: Fate) -> None:
        self._inner = inner
        self._fate = fate

    def __getattr__(self, name: str) -> Any:
        return partial(self._fate.call, getattr(self._inner, name))


@dataclass(eq=False)
class Message:
    """A message in the queue. ``deliveries`` are still to be made of it at once, besides the one that hides it."""

    body: str
    group: str
    visible_at: datetime
    receives: int = 0
    deliveries: int = 0
    receipt: str = ""


class Queue:
    """The run queue: a hidden message blocks its group, and the fifth receive is a message's last.

    At least once means more than once here: a message may be handed to several workers at the same time.
    """

    def __init__(self, clock: Clock, seed: int) -> None:
        self._clock = clock
        self._chance = random.Random(seed)
        self._groups: dict[str, list[Message]] = defaultdict(list)
        self._sent: dict[str, datetime] = {}
        self._changed = threading.Condition(threading.RLock())
        self._at_work = 0
        self.buried: list[DeadLetter] = []
        self.receives: Counter[str] = Counter()

    def send(self, messages: Sequence[RunMessage]) -> None:
        now = self._clock.now()
        with self._changed:
            for message in messages:
                before = self._sent.get(message.deduplication_id)
                if before is None or now - before >= DEDUPLICATION:
                    self._sent[message.deduplication_id] = now
                    self.put(message, now)

    def put(self, message: RunMessage, at: datetime) -> None:
        """Have a message come at an instant, whatever came before."""
        with self._changed:
            self._groups[message.drafter].append(Message(message.model_dump_json(), message.drafter, at))
            self._changed.notify_all()

    def put_off(self, receipt: str, delay: timedelta) -> None:
        with self._changed:
            message = self._find(receipt)
            if message is not None:
                message.visible_at = self._clock.now() + delay

    def bury(self, letter: DeadLetter) -> None:
        with self._changed:
            self.buried.append(letter)

    def receive(self) -> tuple[Message, int] | None:
        """Wait for a message and take it, with its count of receives; None when there is none left.

        When nobody is at work, the time is moved on to the next one.
        """
        with self._changed:
            while any(self._groups.values()):
                if (message := self._next()) is not None:
                    self._at_work += 1
                    return message, message.receives
                if self._at_work == 0:
                    self._clock.jump(min(group[0].visible_at for group in self._groups.values() if group))
                else:
                    self._changed.wait()
            self._changed.notify_all()
            return None

    def finish(self, message: Message, *, done: bool) -> None:
        """End a delivery."""
        with self._changed:
            self._at_work -= 1
            if done and message in self._groups[message.group]:
                self._groups[message.group].remove(message)
            self._changed.notify_all()

    def dead_runs(self, *, limit: int = 100) -> tuple[DeadLetter, ...]:
        return tuple(self.buried[:limit])

    def dead_ticks(self, *, limit: int = 100) -> tuple[DeadTick, ...]:
        return ()

    def remove_dead_runs(self, ids: Collection[str]) -> frozenset[str]:
        raise NotImplementedError

    def remove_dead_ticks(self, ids: Collection[str]) -> frozenset[str]:
        raise NotImplementedError

    def _next(self) -> Message | None:
        now = self._clock.now()
        for group in self._groups.values():
            if group and group[0].deliveries:
                group[0].deliveries -= 1
                return group[0]
            while group and group[0].visible_at <= now and group[0].receives >= MAX_RECEIVES:
                self.buried.append(receives_exhausted(group.pop(0).body, MAX_RECEIVES, now))
            if group and group[0].visible_at <= now:
                message = group[0]
                message.receives += 1
                message.receipt = str(uuid.UUID(int=self._chance.getrandbits(128)))
                message.visible_at = now + VISIBILITY
                message.deliveries = self._chance.choice([0, 0, 0, 1, 1, 2])
                return message
        return None

    def _find(self, receipt: str) -> Message | None:
        return next(
            (message for group in self._groups.values() for message in group if message.receipt == receipt), None
        )


class Model:
    """A model that cites all that it is given, and keeps its own ledger."""

    def __init__(self, fate: Fate) -> None:
        self._fate = fate
        self._lock = threading.Lock()
        self._chance = random.Random(3)
        self._here = threading.local()
        self.calls: Counter[RunKey] = Counter()
        self.cost: Counter[str] = Counter()

    def worst_cost(self, model: str, max_input_tokens: int, max_output_tokens: int) -> int:
        return WORST_COST

    def write(self, brief: Brief, *, remaining: timedelta) -> Answer:
        return cast("Answer", self._fate.call(self._write, brief))

    def _write(self, brief: Brief) -> Answer:
        key = RunKey(brief.drafter, brief.slot)
        with self._lock:
            cost = self._chance.choice([WORST_COST, WORST_COST // 2, WORST_COST // 10])
            self.calls[key] += 1
            self.cost[brief.drafter] += cost
        self._here.asked = key
        cites = [item.id for item in brief.items]
        text = json.dumps({"title": f"{key} #{self.calls[key]}", "sections": [_section(cites)]})
        return Answer(brief.model, "end_turn", text, Usage(900, 50), cost)

    def asked(self) -> RunKey | None:
        """Return the run for which the delivery on this thread has called, and forget it."""
        asked: RunKey | None = getattr(self._here, "asked", None)
        self._here.asked = None
        return asked


class Mailbox(MemoryBucket):
    """A bucket that lists what has come by now."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        now = self._clock.now()
        return (info for info in super().list(prefix) if info.modified <= now)


def _section(cites: Sequence[str]) -> dict[str, object]:
    return {"heading": "News", "text": "So it is.", "cites": cites}


@dataclass(eq=False)
class StorySystem(Outside):
    """The outside world of the story."""

    clock: Clock = field(default_factory=Clock)

    def now(self) -> datetime:
        return self.clock.now()


@dataclass
class Story:
    """All that there is, and what happened. ``store`` is the plain one, for the reviewers and the checks."""

    clock: Clock
    fate: Fate
    queue: Queue
    model: Model
    bucket: Mailbox
    store: DynamoStore
    chance: random.Random
    deliveries: Counter[str] = field(default_factory=Counter)
    lost_calls: Counter[RunKey] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    asked: set[RunKey] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """Let mail come, and each drafter's schedule be due every hour; some ticks come twice."""
        for hour, number in itertools.product(range(HOURS), range(DRAFTERS)):
            name, slot = f"drafter-{number}", BEGIN + timedelta(hours=hour)
            for index in range(self.chance.choice([0, 1, 1, 2])):
                self.bucket.add(f"mail/{name}/{hour}-{index}", _mail(name, hour, index), slot - timedelta(minutes=30))
            message = RunMessage(drafter=name, slot=slot, origin=Origin.SCHEDULE, contract=CONTRACT)
            self.asked.add(message.key)
            for _ in range(self.chance.choice([1, 1, 1, 1, 2])):
                self.queue.put(message, slot + timedelta(seconds=self.chance.randrange(60)))

    def tell(self) -> None:
        """Work and review until no message is left."""
        with ThreadPoolExecutor(WORKERS + REVIEWERS) as pool:
            working = [pool.submit(self._work, number) for number in range(WORKERS)]
            over = threading.Event()
            reviewing = [pool.submit(self._review, number, over) for number in range(REVIEWERS)]
            try:
                for worker in working:
                    worker.result()
            finally:
                over.set()
            for reviewer in reviewing:
                reviewer.result()

    def _work(self, number: int) -> None:
        chance = random.Random(number)
        while (taken := self.queue.receive()) is not None:
            message, receives = taken
            self.fate.decide(chance)
            done = False
            try:
                done = self._deliver(message, receives)
                self._count("done" if done else "put off")
            except Crash:
                self._count("crashed")
                self._note_a_lost_call(self.model.asked())
            except Exception as error:
                self.errors.append(repr(error))
            finally:
                self.model.asked()
                self.fate.spare()
                self.queue.finish(message, done=done)

    def _note_a_lost_call(self, key: RunKey | None) -> None:
        """Note a crash between a call of the model and its draft. Until the lease ends nobody can make up for it."""
        run = None if key is None else self.store.run(key)
        if run is not None and run.status is Status.DRAFTING:
            with self._lock:
                self.lost_calls[run.key] += 1

    def _deliver(self, message: Message, receives: int) -> bool:
        record = {
            "messageId": message.receipt,
            "receiptHandle": message.receipt,
            "body": message.body,
            "attributes": {"ApproximateReceiveCount": str(receives)},
        }
        # Powertools counts in globals, of which each process of Lambda's has its own; here are many in one.
        handler: Any = inspect.unwrap(draft.handler)
        answer: dict[str, Any] = handler({"Records": [record]}, Context(aws_request_id=str(uuid.uuid4())))
        return not answer["batchItemFailures"]

    def _review(self, number: int, over: threading.Event) -> None:
        chance = random.Random(100 + number)
        while not over.wait(REVIEW_SECONDS):
            seen = self.store.drafter(f"drafter-{chance.randrange(DRAFTERS)}")
            if not 0 <= seen.pending <= LIMIT:
                self.errors.append(f"{seen} is over the limit")
            for read in self.store.watched(Status.PENDING, limit=20).runs:
                verdict = chance.choice(VERDICTS)
                try:
                    decided = self.store.decide(
                        read.key,
                        verdict,
                        version=read.version,
                        read_hash=read.text_hash or "",
                        reviewer=f"reviewer-{number}",
                        now=self.clock.now(),
                    )
                except StoreBusy:
                    continue
                assert isinstance(decided, Settled | Conflict), decided

    def _count(self, what: str) -> None:
        with self._lock:
            self.deliveries[what] += 1

    def runs(self, drafter: str) -> list[Run]:
        page = self.store.history(drafter, limit=1_000)
        assert page.unreadable == ()
        return list(page.runs)


def _mail(name: str, hour: int, index: int) -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "anna@example.com", "office@example.com", f"Mail {index}"
    message["Message-ID"] = f"<{name}-{hour}-{index}@example.com>"
    message.set_content(f"It is {hour} o'clock.")
    return message.as_bytes()


@pytest.fixture
def story(dynamodb_local: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Story]:
    clock, fate = Clock(), Fate()
    (tmp_path / "drafters").mkdir()
    drafters = {name: _drafter(tmp_path / "drafters", name) for name in (f"drafter-{one}" for one in range(DRAFTERS))}
    client = connect(dynamodb_local, connections=WORKERS + REVIEWERS)
    with fresh_table(client) as table:
        shared = contended(client)
        queue, model, bucket = Queue(clock, seed=1), Model(fate), Mailbox(clock)
        doomed = DynamoStore(cast("DynamoDBClient", Doomed(shared, fate)), table)
        for name in ("TABLE", "RUNS_QUEUE_URL", "DEAD_RUNS_QUEUE_URL", "BUCKET", "SCHEDULE_GROUP", "DESK_URL"):
            monkeypatch.setenv(f"GALLEY_{name}", name)
        monkeypatch.setenv("GALLEY_MODEL_PROVIDER", "offline")
        monkeypatch.setattr(draft, "_model", lambda provider, key: model)
        monkeypatch.setattr(draft, "Workplace", partial(Workplace, drafter=drafters.__getitem__))
        monkeypatch.setattr("galley.observe.count", lambda name, value=1: None)
        level = logger.log_level
        logger.setLevel("CRITICAL")
        doomed_queue: Any = Doomed(queue, fate)
        doomed_bucket: Any = Doomed(bucket, fate)
        undo = system.install(StorySystem(doomed, doomed_queue, doomed_bucket, FixedSchedules(), clock=clock))
        yield Story(clock, fate, queue, model, bucket, DynamoStore(shared, table), random.Random(2))
        undo()
        logger.setLevel(level)


def _drafter(folder: Path, name: str) -> Drafter:
    path = folder / f"{name}.toml"
    path.write_text(TOML % name)
    return read_drafter(path)


def the_counts_equal_the_rows(story: Story, drafter: str, runs: Sequence[Run]) -> None:
    held = sum(run.status in HOLDS_A_PLACE for run in runs)
    assert story.store.drafter(drafter).pending == held <= LIMIT


def the_spend_is_booked_and_within_the_budget(story: Story, drafter: str, runs: Sequence[Run]) -> None:
    booked = [story.store.committed_nanousd(drafter, day) for day in DAYS]
    assert max(booked) <= DAILY_CALLS * WORST_COST
    assert sum(booked) == sum(run.cost_nanousd + run.reserved_nanousd for run in runs) >= story.model.cost[drafter]


def each_mail_is_in_one_draft_or_after_the_cursor(story: Story, drafter: str, runs: Sequence[Run]) -> None:
    prefix = f"mail/{drafter}/"
    drafted: Counter[str] = Counter()
    for run in runs:
        stored = story.store.draft(run.key)
        assert (stored is not None) == (run.drafted is not None)
        if stored is not None:
            assert stored.text_hash == run.text_hash
            drafted.update(item.source for item in stored.draft.items)
    assert set(drafted.values()) <= {1}, drafted.most_common(3)
    cursor = story.store.memory(drafter).cursors.get("inbox")
    story.clock.jump(LONG_AFTER)
    left = mail.collect(story.bucket, prefix, cursor, LONG_AFTER, SourceLimits(max_items=500))
    everything = {info.key for info in story.bucket.list(prefix)}
    assert {item.source for item in left.items} == everything - drafted.keys()


def no_call_was_made_for_nothing(story: Story, runs: Sequence[Run]) -> None:
    for run in runs:
        assert story.model.calls[run.key] == story.lost_calls[run.key] + (run.drafted is not None), run


def every_message_has_come_to_something(story: Story, runs: Sequence[Run]) -> None:
    assert {run.key for run in runs} <= story.asked
    dead = {str(read_message(letter.body).key) for letter in story.queue.buried}
    rows = {run.key: run for run in runs}
    for key in story.asked:
        run = rows.get(key)
        if run is None or run.status not in SETTLED or run.status is Status.FAILED:
            assert str(key) in dead, run


@LOOPBACK
@pytest.mark.timeout(300)
@pytest.mark.guarantee("G1")
@pytest.mark.guarantee("G2")
@pytest.mark.guarantee("G4")
@pytest.mark.guarantee("G5")
@pytest.mark.guarantee("G6")
@pytest.mark.guarantee("G11")
def test_g1_g2_g4_g5_g6_g11_hold_for_a_thousand_messages_while_a_tenth_of_the_deliveries_crash(story: Story) -> None:
    story.begin()
    story.tell()

    assert story.errors == []
    assert len(story.asked) == DRAFTERS * HOURS
    everything: list[Run] = []
    for number in range(DRAFTERS):
        drafter = f"drafter-{number}"
        runs = story.runs(drafter)
        the_counts_equal_the_rows(story, drafter, runs)
        the_spend_is_booked_and_within_the_budget(story, drafter, runs)
        each_mail_is_in_one_draft_or_after_the_cursor(story, drafter, runs)
        everything += runs
    every_message_has_come_to_something(story, everything)
    no_call_was_made_for_nothing(story, everything)
    assert story.deliveries["crashed"] > story.deliveries.total() / 14, story.deliveries
