"""What stands between the queues and the functions: SQS's, Lambda's and the stream's semantics."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from galley.contract import CatchUp, Contract
from galley.drafts import Draft
from galley.queue import RECEIVES_EXHAUSTED
from galley.runs import Origin, Run, RunKey, RunMessage, Status
from galley.store import Approve, Bill, Claimed, Limits
from galley_cli.local import state as state_module
from galley_cli.local.outcomes_feed import OutcomesFeed
from galley_cli.local.pool import FunctionError, Invocation, PoolClosed, Returned
from galley_cli.local.queue import SqliteQueues, TickQueue
from galley_cli.local.run_feed import RunsFeed
from galley_cli.local.runner import IDLE, Runner, failed_items, wait_before_retry
from galley_cli.local.state import StateBusy, StateDirectory
from galley_cli.local.store import SqliteStore, StreamRecord
from galley_cli.local.stream_feed import StreamFeed
from galley_cli.local.sweep_feed import SweepFeed
from galley_cli.local.tick_feed import TicksFeed
from galley_cli.template import AsyncRetries, TemplateStream

NOW = datetime(2026, 3, 30, 5, tzinfo=UTC)
CONTRACT = Contract(window_minutes=30, grace_minutes=120, catch_up=CatchUp.LATEST)
FAILURE = FunctionError("LookupError", "no such thing")
RETRIES = AsyncRetries(retries=2, max_age=timedelta(minutes=30))
APPROVED = {"dynamodb": {"NewImage": {"pk": {"S": [{"prefix": "RUN#"}]}, "status": {"S": ["approved"]}}}}
STREAM = TemplateStream(batch_size=10, retries=2, max_age=timedelta(hours=1), patterns=(APPROVED,))


class World:
    """A state directory, a clock that the test sets, and a function that answers as the test says."""

    def __init__(self, folder: Path) -> None:
        self.state = StateDirectory.open(folder / "state")
        self.time = NOW
        self.store = SqliteStore(self.state)
        self.queues = SqliteQueues(self.state, now=self.now)
        self.ticks = TickQueue(self.state, now=self.now)
        self.events: list[tuple[str, Any]] = []
        self.answers: Callable[[Any], Invocation] = lambda event: Returned(None)
        self.reports: list[str] = []

    def now(self) -> datetime:
        return self.time

    def invoke(self, function: str, event: Any) -> Invocation:
        self.events.append((function, event))
        return self.answers(event)

    def runs_feed(self, concurrency: int = 1) -> RunsFeed:
        return RunsFeed(
            self.queues,
            self.invoke,
            visibility=timedelta(minutes=30),
            concurrency=concurrency,
            now=self.now,
            wake=lambda: None,
            report=self.reports.append,
        )

    def ticks_feed(self) -> TicksFeed:
        return TicksFeed(
            self.ticks,
            self.invoke,
            RETRIES,
            visibility=timedelta(minutes=1),
            now=self.now,
            report=self.reports.append,
        )

    def sweep_feed(self) -> SweepFeed:
        return SweepFeed(
            self.queues,
            self.invoke,
            AsyncRetries(1, timedelta(minutes=15)),
            now=self.now,
            wake=lambda: None,
            report=self.reports.append,
        )

    def stream_feed(self) -> StreamFeed:
        return StreamFeed(self.store, self.queues, self.invoke, STREAM, now=self.now, report=self.reports.append)

    def approve(self, drafter: str) -> RunKey:
        message = run_message(drafter)
        claimed = self.store.claim(
            message, Limits(9, None, 0), owner="o", now=self.time, lease_until=self.time + timedelta(minutes=5)
        )
        assert isinstance(claimed, Claimed)
        self.store.store(claimed.run, Draft("Title", "Body", (), (), "offline"), {}, Bill(), now=self.time)
        run = self.store.run(message.key)
        assert run is not None
        assert run.text_hash is not None
        self.store.decide(
            run.key, Approve(), version=run.version, read_hash=run.text_hash, reviewer="ann", now=self.time
        )
        return run.key

    def published(self) -> list[list[str]]:
        return [
            [record["dynamodb"]["Keys"]["pk"]["S"].removeprefix("RUN#") for record in event["Records"]]
            for function, event in self.events
        ]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.state.close()


def run_message(drafter: str, hours: int = 0) -> RunMessage:
    return RunMessage(
        drafter=drafter, slot=NOW + timedelta(hours=hours), origin=Origin.SCHEDULE, contract=CONTRACT, resend=0
    )


def work_off(feed: RunsFeed) -> None:
    feed.step()
    feed.close()


# Partial batch responses


@pytest.mark.parametrize(
    ("response", "failed"),
    [
        (None, set()),
        ({}, set()),
        ({"batchItemFailures": None}, set()),
        ({"batchItemFailures": []}, set()),
        ({"batchItemFailures": [{"itemIdentifier": "b"}]}, {"b"}),
        ({"batchItemFailures": [{"itemIdentifier": "b"}, {"itemIdentifier": "stranger"}]}, {"a", "b"}),
        ({"batchItemFailures": [{"itemIdentifier": ""}]}, {"a", "b"}),
        ({"batchItemFailures": [{"itemIdentifier": None}]}, {"a", "b"}),
        ({"batchItemFailures": [{"itemId": "a"}]}, {"a", "b"}),
        ({"batchItemFailures": ["a"]}, {"a", "b"}),
        ({"batchItemFailures": "a"}, {"a", "b"}),
        ("done", {"a", "b"}),
    ],
)
def test_a_partial_batch_response_means_what_it_means_to_lambda(response: Any, failed: set[str]) -> None:
    assert failed_items(response, {"a", "b"}) == failed


# Run messages


def test_draft_is_given_an_event_as_sqs_makes_it(world: World) -> None:
    message = run_message("daily-digest")
    world.queues.send([message])
    world.time += timedelta(seconds=7)
    work_off(world.runs_feed())
    ((function, event),) = world.events
    (record,) = event["Records"]
    assert function == "draft"
    assert json.loads(json.dumps(event)) == event
    assert record["body"] == message.model_dump_json()
    assert record["eventSource"] == "aws:sqs"
    assert record["attributes"]["ApproximateReceiveCount"] == "1"
    assert record["attributes"]["MessageGroupId"] == "daily-digest"
    assert record["attributes"]["MessageDeduplicationId"] == message.deduplication_id
    assert record["attributes"]["SentTimestamp"] == str(int(NOW.timestamp() * 1000))
    assert record["receiptHandle"]
    assert record["messageId"]


def test_a_message_that_was_handled_is_gone(world: World) -> None:
    world.queues.send([run_message("daily-digest")])
    work_off(world.runs_feed())
    assert world.queues.waiting() == 0


@pytest.mark.parametrize(
    "answer",
    [
        lambda event: Returned({"batchItemFailures": [{"itemIdentifier": event["Records"][0]["messageId"]}]}),
        lambda event: FunctionError("Runtime.ImportModuleError", "SyntaxError: invalid syntax"),
        lambda event: Returned("no object"),
    ],
    ids=["named as failed", "not even imported", "not understood"],
)
def test_a_message_that_failed_comes_back_when_its_visibility_ends(
    world: World, answer: Callable[[Any], Invocation]
) -> None:
    world.queues.send([run_message("daily-digest")])
    world.answers = answer
    work_off(world.runs_feed())
    work_off(world.runs_feed())
    assert len(world.events) == 1
    world.time += timedelta(minutes=30)
    work_off(world.runs_feed())
    assert [event["Records"][0]["attributes"]["ApproximateReceiveCount"] for _, event in world.events] == ["1", "2"]


@pytest.mark.parametrize(
    "failure",
    [
        FAILURE,
        FunctionError("Sandbox.Timedout", "Task timed out after 300.00 seconds"),
        FunctionError("Runtime.ExitError", "the process ended with exit status -9"),
        FunctionError("StoreBusy", "other writers held it"),
    ],
    ids=lambda failure: failure.error_type,
)
def test_a_message_on_which_draft_failed_comes_back_soon_and_later_each_time_until_it_is_buried(
    world: World, failure: FunctionError
) -> None:
    world.queues.send([run_message("daily-digest"), run_message("daily-digest", 1)])
    world.answers = lambda event: failure
    seconds = [30, 60, 120, 240, 480]
    for number, wait in enumerate(seconds, start=1):
        work_off(world.runs_feed())
        world.time += timedelta(seconds=wait - 1)
        work_off(world.runs_feed())
        assert len(world.events) == number
        assert f"it comes back in {wait} s" in world.reports[-1]
        world.time += timedelta(seconds=1)
    world.answers = lambda event: Returned(None)
    work_off(world.runs_feed())
    assert [letter.reason for letter in world.queues.dead_runs()] == [RECEIVES_EXHAUSTED]
    assert world.queues.waiting() == 0, "its follower went on"


@pytest.mark.parametrize("answer", [FAILURE, Returned(None)])
def test_a_message_is_settled_even_if_others_hold_the_file_for_a_while(
    world: World, answer: Invocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "TURN_SECONDS", 0.02)
    held = ExitStack()
    other = StateDirectory.open(world.state.root)
    held.callback(other.close)

    def fail_and_hold(event: Any) -> Invocation:
        held.enter_context(other.write())
        threading.Timer(0.03, held.close).start()
        return answer

    world.queues.send([run_message("daily-digest")])
    world.answers = fail_and_hold
    work_off(world.runs_feed())
    assert world.queues.next_due() == (NOW + timedelta(seconds=30) if answer == FAILURE else None)


def test_a_message_that_cannot_be_settled_comes_back_when_its_visibility_ends_and_that_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(receipt: str, delay: timedelta) -> None:
        raise StateBusy("others hold it")

    monkeypatch.setattr(world.queues, "put_off", busy)
    world.queues.send([run_message("daily-digest")])
    world.answers = lambda event: FAILURE
    work_off(world.runs_feed())
    assert world.queues.next_due() == NOW + timedelta(minutes=30)
    assert any("could not be settled" in line for line in world.reports)


def test_what_is_cut_short_by_a_stop_is_neither_done_nor_reported(world: World) -> None:
    def cut(event: Any) -> Invocation:
        raise PoolClosed("stopping")

    world.queues.send([run_message("daily-digest")])
    world.answers = cut
    work_off(world.runs_feed())
    assert world.queues.make_all_visible() == 1
    assert world.reports == []


@pytest.mark.guarantee("G3")
def test_g3_drafters_run_beside_each_other_and_each_one_at_a_time(world: World) -> None:
    both, done = threading.Barrier(3), threading.Event()

    def answer(event: Any) -> Invocation:
        both.wait(10)
        done.wait(10)
        return Returned(None)

    world.answers = answer
    world.queues.send([run_message("a"), run_message("a", 1), run_message("b")])
    feed = world.runs_feed(concurrency=3)
    feed.step()
    both.wait(10)
    feed.step()
    assert feed.in_flight == 2, "the second message of a waits for the first, and b for nobody"
    done.set()
    feed.close()
    assert [event["Records"][0]["attributes"]["MessageGroupId"] for _, event in world.events] == ["a", "b"]


def test_no_more_messages_are_taken_than_can_be_handled(world: World) -> None:
    go_on = threading.Event()

    def answer(event: Any) -> Invocation:
        go_on.wait(10)
        return Returned(None)

    world.answers = answer
    world.queues.send([run_message("a"), run_message("b"), run_message("c")])
    feed = world.runs_feed(concurrency=2)
    feed.step()
    feed.step()
    assert feed.in_flight == 2
    go_on.set()
    feed.close()
    assert world.queues.waiting() == 1


# Ticks and sweeps


def test_a_tick_reaches_dispatch_as_json_and_is_gone(world: World) -> None:
    world.ticks.enqueue('{"drafters": ["a"]}')
    world.ticks_feed().step()
    assert world.events == [("dispatch", {"drafters": ["a"]})]
    assert world.ticks.waiting() == 0


def test_a_tick_that_fails_is_tried_again_twice_and_is_then_dead(world: World) -> None:
    world.answers = lambda event: FAILURE
    world.ticks.enqueue("{}")
    feed = world.ticks_feed()
    for minutes in (0, 0.9, 0.1, 1.9, 0.1):
        world.time += timedelta(minutes=minutes)
        feed.step()
    assert len(world.events) == 3, "after one minute, and after two more"
    assert world.ticks.waiting() == 0
    (dead,) = world.queues.dead_ticks()
    assert (dead.body, dead.reason) == ("{}", "RetriesExhausted")
    assert "LookupError: no such thing" in dead.detail


@pytest.mark.parametrize(("attempts", "age", "wait"), [(1, 0, 60), (2, 60, 120), (3, 180, None), (1, 1801, None)])
def test_waits_of_asynchronous_invocations(attempts: int, age: int, wait: int | None) -> None:
    expected = None if wait is None else timedelta(seconds=wait)
    assert wait_before_retry(attempts, timedelta(seconds=age), RETRIES) == expected


def test_a_sweep_runs_when_it_is_asked_for_and_only_then(world: World) -> None:
    feed = world.sweep_feed()
    feed.step()
    feed.ask('{"sweep": "now"}', world.time + timedelta(seconds=10))
    assert feed.step() == timedelta(seconds=10)
    world.time += timedelta(seconds=10)
    feed.step()
    feed.step()
    assert world.events == [("recover", {"sweep": "now"})]


def test_sweeps_for_one_instant_are_one_and_later_ones_stay_asked_for(world: World) -> None:
    feed = world.sweep_feed()
    begin = world.time
    for minutes in (3, 3, 4, 18):
        feed.ask(f'{{"sweep": {minutes}}}', begin + timedelta(minutes=minutes))
    feed.ask('{"sweep": 0}')
    for _ in range(20):
        feed.step()
        world.time += timedelta(minutes=1)
    assert [event["sweep"] for _, event in world.events] == [0, 3, 4, 18]


def test_sweeps_that_became_due_while_the_machine_slept_are_one(world: World) -> None:
    feed = world.sweep_feed()
    for minutes in range(60):
        feed.ask(f'{{"sweep": {minutes}}}', world.time + timedelta(minutes=minutes))
    world.time += timedelta(hours=2)
    feed.step()
    feed.step()
    assert [event["sweep"] for _, event in world.events] == [59]


def test_a_sweep_that_failed_waits_for_no_longer_than_the_next_one(world: World) -> None:
    world.answers = lambda event: FAILURE
    feed = world.sweep_feed()
    feed.ask('{"sweep": "first"}')
    feed.ask('{"sweep": "second"}', world.time + timedelta(seconds=30))
    feed.step()
    assert "the next is in 30 s" in world.reports[-1]
    world.answers = lambda event: Returned({})
    world.time += timedelta(seconds=30)
    feed.step()
    world.time += timedelta(hours=1)
    feed.step()
    assert [event["sweep"] for _, event in world.events] == ["first", "second"]


def test_a_sweep_tells_the_schedules_that_are_deleted(world: World) -> None:
    world.answers = lambda event: Returned({"gone": ["schedule Hourly is deleted; so be it"]})
    feed = world.sweep_feed()
    feed.ask("{}")
    feed.step()
    assert world.reports == ["schedule Hourly is deleted; so be it"]


def test_a_sweep_tells_the_schedules_it_cannot_read(world: World) -> None:
    world.answers = lambda event: Returned({"broken": ["Bad: expression is no cron"]})
    feed = world.sweep_feed()
    feed.ask("{}")
    feed.step()
    assert any("Bad: expression is no cron" in line for line in world.reports)


def test_a_sweep_tells_the_drafters_that_have_gone_silent(world: World) -> None:
    world.answers = lambda event: Returned({"silent": ["digest: no draft for 5 due slots of Hourly or more"]})
    feed = world.sweep_feed()
    feed.ask('{"sweep": "now"}')
    feed.step()
    assert world.reports == ["a drafter has gone silent: digest: no draft for 5 due slots of Hourly or more"]


def test_a_sweep_that_fails_is_tried_once_more_and_is_then_dead(world: World) -> None:
    world.answers = lambda event: FAILURE
    feed = world.sweep_feed()
    feed.ask('{"sweep": "now"}')
    for _ in range(4):
        feed.step()
        world.time += timedelta(minutes=1)
    assert len(world.events) == 2
    assert [dead.body for dead in world.queues.dead_ticks()] == ['{"sweep": "now"}']


# The stream


def steps(feed: StreamFeed, count: int = 20) -> None:
    for _ in range(count):
        feed.step()


def test_publish_is_given_approved_runs_alone_and_once(world: World) -> None:
    key = world.approve("a")
    steps(world.stream_feed())
    ((function, event),) = world.events
    (record,) = event["Records"]
    assert function == "publish"
    assert record["eventName"] == "MODIFY"
    assert record["dynamodb"]["Keys"] == {"pk": {"S": "RUN#a"}, "sk": {"S": "2026-03-30T05:00:00Z"}}
    assert record["dynamodb"]["NewImage"]["status"] == {"S": "approved"}
    assert record["dynamodb"]["OldImage"]["status"] == {"S": "pending"}
    assert str(key) == "a:2026-03-30T05:00:00Z"
    steps(world.stream_feed())
    assert len(world.events) == 1, "its place outlives the feed"


def test_a_record_that_failed_comes_again_after_a_wait_and_those_before_it_do_not(world: World) -> None:
    for drafter in ("a", "b", "c"):
        world.approve(drafter)
    failures = iter([1, None])

    def answer(event: Any) -> Invocation:
        index = next(failures)
        named = [] if index is None else [{"itemIdentifier": event["Records"][index]["dynamodb"]["SequenceNumber"]}]
        return Returned({"batchItemFailures": named})

    world.answers = answer
    feed = world.stream_feed()
    steps(feed)
    assert world.published() == [["a", "b", "c"]]
    world.time += timedelta(seconds=1)
    steps(feed)
    assert world.published() == [["a", "b", "c"], ["b", "c"]]


def test_a_record_that_never_succeeds_is_recorded_and_holds_up_no_other(world: World) -> None:
    for drafter in ("a", "poison", "c"):
        world.approve(drafter)

    def answer(event: Any) -> Invocation:
        poisoned = any(record["dynamodb"]["Keys"]["pk"]["S"] == "RUN#poison" for record in event["Records"])
        return FAILURE if poisoned else Returned(None)

    world.answers = answer
    feed = world.stream_feed()
    for _ in range(10):
        steps(feed)
        world.time += timedelta(minutes=1)
    batches = world.published()
    assert ["a"] in batches
    assert ["c"] in batches
    assert batches.count(["poison"]) == 3, "once, and two retries"
    (dead,) = world.queues.dead_ticks()
    assert dead.reason == "PublishFailed"
    assert "poison:2026-03-30T05:00:00Z" in dead.body
    assert len(world.reports) == 1


def test_each_outcome_is_told_once(world: World) -> None:
    told: list[tuple[Status | None, Status]] = []
    feed = OutcomesFeed(world.store, lambda record, run: told.append((record.old, record.new)), since=NOW)
    world.approve("a")
    feed.step()
    feed.step()
    assert told == [
        (None, Status.DRAFTING),
        (Status.DRAFTING, Status.PENDING),
        (Status.PENDING, Status.APPROVED),
    ]
    later = OutcomesFeed(world.store, lambda record, run: told.append((None, record.new)), since=NOW)
    later.step()
    assert len(told) == 3


def broken_run(world: World, drafter: str) -> RunKey:
    key = world.approve(drafter)
    with world.state.write() as db:
        db.execute("UPDATE runs SET status = 'eaten' WHERE drafter = ?", (drafter,))
    return key


def test_a_row_that_cannot_be_read_is_told_once_and_hides_no_other_outcome(world: World) -> None:
    told: list[str] = []
    feed = OutcomesFeed(
        world.store, lambda record, run: told.append(f"{run.drafter} {record.new}"), since=NOW, report=told.append
    )
    world.approve("a")
    broken_run(world, "broken")
    world.approve("c")
    while feed.step() == timedelta():
        pass
    broken = [line for line in told if "broken" in line]
    assert len(broken) == 1, "whatever happened to it"
    assert "broken:2026-03-30T05:00:00Z" in broken[0]
    assert [line for line in told if line not in broken] == [
        *("a drafting", "a pending", "a approved"),
        *("c drafting", "c pending", "c approved"),
    ]
    feed.step()
    assert len(told) == 7


def test_a_row_that_cannot_be_read_is_in_the_log_where_nobody_is_to_be_told(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    broken_run(world, "broken")
    feed = OutcomesFeed(world.store, lambda record, run: None, since=NOW)
    assert [feed.step(), feed.step()] == [timedelta(), IDLE]
    assert len(caplog.messages) == 1


def test_what_was_told_before_something_went_wrong_is_not_told_again(world: World) -> None:
    told: list[str] = []

    def tell(record: StreamRecord, run: Run) -> None:
        if record.new is Status.APPROVED and "gone" not in told:
            told.append("gone")
            raise OSError("the terminal is gone")
        told.append(record.new)

    feed = OutcomesFeed(world.store, tell, since=NOW)
    world.approve("a")
    with pytest.raises(OSError, match="terminal"):
        feed.step()
    feed.step()
    assert told == ["drafting", "pending", "gone", "approved"]


# The loops


class Failing:
    """A feed that fails twice and then works."""

    name = "failing"

    def __init__(self) -> None:
        self.steps = 0
        self.worked = threading.Event()

    def step(self) -> timedelta:
        self.steps += 1
        if self.steps < 3:
            raise OSError("the disk is full")
        self.worked.set()
        return timedelta(seconds=15)

    def close(self) -> None:
        pass


def test_a_feed_outlives_its_errors_and_tells_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("galley_cli.local.runner.AFTER_AN_ERROR", timedelta(milliseconds=1))
    reports: list[str] = []
    feed = Failing()
    runner = Runner([feed], reports.append)
    runner.start()
    assert feed.worked.wait(10)
    runner.stop()
    runner.join()
    assert reports == ["failing: the disk is full; trying again"]


def test_a_sleeping_feed_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Failing()
    feed.steps = 2
    runner = Runner([feed], lambda line: None)
    runner.start()
    assert feed.worked.wait(10)
    feed.worked.clear()
    runner.wake()
    assert feed.worked.wait(10), "long before its 15 seconds are over"
    runner.stop()
    runner.join()
