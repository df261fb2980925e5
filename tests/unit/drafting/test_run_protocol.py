"""One message in, and the row says what became of it."""

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

import authoring
from attempt import ComesBack, Delivery, Done, Workplace
from drafter import Drafter, InvalidDrafter, load_drafter
from drafting import LOOK_AGAIN_AFTER, draft_run
from galley import observe
from galley.contract import CatchUp
from galley.drafts import Item
from galley.observe import logger
from galley.queue import MAX_RECEIVES, QueueUnavailable
from galley.retry import (
    LONGEST_RETRY_AFTER,
    MOST_ATTEMPTS,
    MOST_FAULTS,
    AnswerLost,
    NeverSucceeds,
    RetryLater,
    SpendLimitReached,
)
from galley.runs import Origin, RejectReason, Run, RunKey, RunMessage, SkipReason, Status, Usage
from galley.schedules import ScheduleDefinition, Schedules, SchedulesUnavailable
from galley.store import (
    MOST_WORDS,
    Approve,
    Limits,
    Memory,
    Reject,
    Rejection,
    Settled,
    Store,
    StoreBusy,
    UnreadableRow,
)
from galley_cli.local.bucket import FolderBucket
from shapes.shape import Assignment, Figure, Material
from support.outside import SLOT, FixedSchedules, RecordingQueue, message, schedule
from writing import Answer, Brief

KEY = RunKey("daily-digest", SLOT)
MINUTE = timedelta(minutes=1)
DRAFTER = Drafter.model_validate(
    {
        "name": "daily-digest",
        "title": "Morning digest",
        "shape": "digest",
        "instructions": "Be short.",
        "pending_limit": 2,
        "sources": [{"kind": "mail", "id": "inbox", "prefix": "mail/"}],
    }
)
UNKNOWN = InvalidDrafter("drafter 'daily-digest' is not known; the drafters are: none")
ITEM = Item(id="m1", title="Invoice", text="The invoice is due on Friday.", source="inbox")
MATERIAL = Material(items=(ITEM,), cursors={"inbox": {"through": "2026-11-27T05:00:00Z"}})
WRITTEN = json.dumps({"title": "One invoice", "sections": [{"heading": "Due", "text": "On Friday.", "cites": ["m1"]}]})
ANSWER = Answer(model="claude-haiku-5-5", stop="end_turn", text=WRITTEN, usage=Usage(900, 50), cost_nanousd=115_000)


@dataclass
class ScriptedModel:
    """Answers, or fails, as it is told; the last word holds for all calls after it."""

    script: list[Answer | Exception] = field(default_factory=lambda: [ANSWER])
    calls: int = 0
    worst: int = 1_000_000
    briefs: list[Brief] = field(default_factory=list)

    def write(self, brief: Brief, *, remaining: timedelta) -> Answer:
        self.briefs.append(brief)
        said = self.script[min(self.calls, len(self.script) - 1)]
        self.calls += 1
        if isinstance(said, Exception):
            raise said
        return said

    def worst_cost(self, model: str, max_input_tokens: int, max_output_tokens: int) -> int:
        return self.worst


@dataclass
class Bench:
    """A workplace whose clock, model, material and drafter a test sets."""

    store: Store
    bucket: FolderBucket
    queue: RecordingQueue = field(default_factory=RecordingQueue)
    model: ScriptedModel = field(default_factory=ScriptedModel)
    drafter: Drafter | Exception = DRAFTER
    read_drafter: Callable[[str], Drafter] | None = None
    at: datetime = SLOT + MINUTE
    schedules: Schedules = field(default_factory=lambda: FixedSchedules((schedule(),)))
    deliveries: int = 0

    def deliver(self, body: RunMessage | str | None = None, *, receives: int = 1) -> Done | ComesBack:
        self.deliveries += 1
        text = body if isinstance(body, str) else (body or message()).model_dump_json()
        place = Workplace(
            store=self.store,
            queue=self.queue,
            bucket=self.bucket,
            schedules=self.schedules,
            model=self.model,
            fetch=None,  # type: ignore[arg-type]
            desk_url="https://desk.example",
            now=lambda: self.at,
            drafter=self._drafter,
        )
        delivery = Delivery(text, f"receipt-{self.deliveries}", receives)
        return draft_run(delivery, place, f"request-{self.deliveries}", 5 * MINUTE)

    def postpone(self) -> None:
        """Begin the run, and let it wait for its second attempt."""
        self.model.script = [RetryLater("overloaded", "529"), ANSWER]
        assert self.deliver() == ComesBack()
        self.at += 10 * MINUTE

    def row(self, key: RunKey = KEY) -> Run:
        row = self.store.run(key)
        assert row is not None
        return row

    def _drafter(self, name: str) -> Drafter:
        if self.read_drafter is not None:
            return self.read_drafter(name)
        if isinstance(self.drafter, Exception):
            raise self.drafter
        return self.drafter


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[Assignment]:
    """What the shape was asked; it answers with one item."""
    return collects(monkeypatch, lambda assignment: MATERIAL)


@pytest.fixture
def bench(store: Store, tmp_path: Path, collected: list[Assignment]) -> Bench:
    return Bench(store, FolderBucket(tmp_path / "bucket"))


@pytest.fixture
def lines() -> Iterator[list[dict[str, object]]]:
    """What is logged, each line as the function's log holds it."""
    written: list[dict[str, object]] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(json.loads(logger.registered_formatter.format(record)))

    keep = Keep()
    logger.addHandler(keep)
    yield written
    logger.removeHandler(keep)


def collects(monkeypatch: pytest.MonkeyPatch, answer: Callable[[Assignment], Material]) -> list[Assignment]:
    asked: list[Assignment] = []

    class Shape:
        @staticmethod
        def collect(assignment: Assignment) -> Material:
            asked.append(assignment)
            return answer(assignment)

    monkeypatch.setitem(authoring.SHAPES, "digest", Shape)
    return asked


def outage(bench: Bench, first: RunMessage | None = None) -> datetime:
    """Deliver the run's message, and its fresh copies, each at its time, until it is done with; return when it was."""
    asked, receives = first or message(), 0
    while True:
        receives += 1
        if bench.deliver(asked, receives=receives) == ComesBack():
            bench.at += bench.queue.put_offs[-1][1]
        elif bench.queue.sent and bench.queue.sent[-1].renewal > asked.renewal:
            asked, receives = bench.queue.sent[-1], 0
        else:
            return bench.at


def pending(store: Store) -> int:
    return store.drafter("daily-digest").pending


def test_a_shape_is_told_how_much_of_the_runs_time_is_left(bench: Bench, collected: list[Assignment]) -> None:
    bench.deliver()
    (assignment,) = collected
    assert assignment.time_left() == 5 * MINUTE
    bench.at += 2 * MINUTE
    assert assignment.time_left() == 3 * MINUTE


@pytest.mark.guarantee("G1")
def test_g1_a_run_delivered_again_makes_no_second_draft_and_no_second_call(bench: Bench) -> None:
    assert [bench.deliver() for _ in range(3)] == [Done()] * 3
    assert bench.row().status is Status.PENDING
    assert bench.model.calls == 1
    assert pending(bench.store) == 1


def test_a_draft_is_stored_with_its_text_its_bill_and_its_channels(bench: Bench) -> None:
    bench.deliver()
    row, stored = bench.row(), bench.store.draft(KEY)
    assert stored is not None
    assert (row.title, row.model, row.usage, row.cost_nanousd) == ("One invoice", ANSWER.model, ANSWER.usage, 115_000)
    assert "On Friday." in stored.body
    assert stored.draft.items == (ITEM,)
    assert [channel.kind for channel in stored.draft.channels] == ["s3"]
    assert bench.store.committed_nanousd("daily-digest", "2026-11-27") == 115_000


def test_what_is_kept_of_the_items_fits_a_row_in_every_script(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    items = tuple(Item(id=f"m{number}", title="長い", text="長" * 20_000, source="inbox") for number in range(100))
    collects(monkeypatch, lambda assignment: Material(items=items))
    assert bench.deliver() == Done()
    stored = bench.store.draft(KEY)
    assert stored is not None
    assert sum(len(item.text.encode()) for item in stored.draft.items) < 210_000
    assert all(item.text.endswith("長 [… cut]") for item in stored.draft.items)


@pytest.mark.guarantee("G2")
def test_g2_a_full_gate_skips_the_slot_without_a_call_and_opens_with_a_decision(bench: Bench) -> None:
    slots = [SLOT + timedelta(days=day) for day in range(4)]
    for slot in slots[:3]:
        bench.at = slot + MINUTE
        bench.deliver(message(slot=slot))
    gated = bench.row(RunKey("daily-digest", slots[2]))
    assert (gated.status, gated.reason) == (Status.SKIPPED, SkipReason.GATE)
    assert "2 drafts of daily-digest wait" in str(gated.detail)
    assert (bench.model.calls, pending(bench.store)) == (2, 2)
    first = bench.row()
    decided = bench.store.decide(
        KEY, Approve(), version=first.version, read_hash=str(first.text_hash), reviewer="ada", now=bench.at
    )
    assert isinstance(decided, Settled)
    bench.at = slots[3] + MINUTE
    bench.deliver(message(slot=slots[3]))
    assert bench.row(RunKey("daily-digest", slots[3])).status is Status.PENDING
    assert pending(bench.store) == 2


def test_a_paused_drafter_records_the_slot(bench: Bench) -> None:
    bench.store.pause("daily-digest", "on holiday", now=SLOT)
    assert bench.deliver() == Done()
    assert (bench.row().reason, bench.row().detail) == (SkipReason.PAUSED, "on holiday")
    assert bench.model.calls == 0


@pytest.mark.guarantee("G11")
def test_g11_a_call_that_might_exceed_the_days_budget_is_not_made(bench: Bench) -> None:
    bench.drafter = Drafter.model_validate({**DRAFTER.model_dump(), "daily_budget_usd": "0.001"})
    bench.deliver()
    assert bench.row().status is Status.PENDING
    later = SLOT + 30 * MINUTE
    bench.at = later + MINUTE
    bench.deliver(message(slot=later))
    row = bench.row(RunKey("daily-digest", later))
    assert (row.status, row.reason) == (Status.SKIPPED, SkipReason.BUDGET)
    assert bench.model.calls == 1


@pytest.mark.guarantee("G4")
@pytest.mark.parametrize(
    ("change", "drafted"),
    [
        pytest.param({}, False, id="a schedule's run is not worth drafting any more"),
        pytest.param({"origin": Origin.CATCH_UP}, False, id="nor is one that was caught up"),
        pytest.param({"origin": Origin.MANUAL, "schedule": None}, False, id="nor one by hand"),
        pytest.param({"origin": Origin.BACKFILL}, True, id="a backfill ignores the grace"),
    ],
)
def test_g4_a_run_past_its_grace(bench: Bench, change: dict[str, object], drafted: bool) -> None:
    bench.at = SLOT + 121 * MINUTE
    assert bench.deliver(message(**change)) == Done()
    assert bench.row().status is (Status.PENDING if drafted else Status.SKIPPED)
    assert bench.model.calls == int(drafted)


def test_nothing_new_is_empty_and_costs_no_call(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    collects(monkeypatch, lambda assignment: Material(nothing_new="no mail", cursors={"inbox": {"etag": "1"}}))
    assert bench.deliver() == Done()
    assert (bench.row().status, bench.row().detail) == (Status.EMPTY, "no mail")
    assert (bench.model.calls, pending(bench.store)) == (0, 0)
    assert bench.store.memory("daily-digest").cursors == {"inbox": {"etag": "1"}}


@pytest.mark.guarantee("G6")
@pytest.mark.parametrize("failure", [RetryLater("overloaded", "529"), NeverSucceeds("refusal", "no")])
def test_g6_a_cursor_moves_only_with_the_draft_made_from_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    read: list[object] = []

    def reads(assignment: Assignment) -> Material:
        read.append(assignment.cursors())
        return MATERIAL

    collects(monkeypatch, reads)
    bench.model.script = [failure, ANSWER]
    bench.deliver()
    assert bench.store.memory("daily-digest").cursors == {}
    later = SLOT + timedelta(hours=1)
    bench.at = later + MINUTE
    bench.deliver(message(slot=later))
    assert bench.store.memory("daily-digest").cursors == dict(MATERIAL.cursors)
    assert read == [{}, {}]


@pytest.mark.guarantee("G5")
@pytest.mark.parametrize(
    ("said", "reason", "cost"),
    [
        (NeverSucceeds("model_request", "400"), "model_request", 0),
        (replace(ANSWER, stop="refusal"), "refusal", 115_000),
        (replace(ANSWER, stop="max_tokens"), "truncated", 115_000),
        (replace(ANSWER, text="Dear reader"), "unreadable_answer", 115_000),
    ],
)
def test_g5_what_fails_for_good_is_buried_and_in_the_table_with_its_cost(
    bench: Bench, said: Answer | Exception, reason: str, cost: int
) -> None:
    bench.model.script = [said]
    assert bench.deliver() == Done()
    row = bench.row()
    assert (row.status, row.reason, row.cost_nanousd) == (Status.FAILED, reason, cost)
    assert [(letter.run, letter.reason) for letter in bench.queue.buried] == [(str(KEY), reason)]
    assert pending(bench.store) == 0
    assert bench.store.committed_nanousd("daily-digest", "2026-11-27") == cost


def test_a_letter_that_cannot_be_buried_leaves_the_run_to_be_tried_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row must not say failed before the letter is there: a crash between would lose the letter."""
    bench.model.script = [NeverSucceeds("refusal", "no")]

    def broken(letter: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(bench.queue, "bury", broken)
    with pytest.raises(ConnectionError):
        bench.deliver()
    assert bench.row().status is Status.DRAFTING


def test_a_spend_limit_pauses_the_drafter_and_says_so(bench: Bench) -> None:
    bench.model.script = [SpendLimitReached("spend_limit", "the workspace's limit is reached")]
    bench.deliver()
    assert bench.row().reason == "spend_limit"
    assert bench.store.drafter("daily-digest").paused == "the workspace's limit is reached"


def test_an_overloaded_model_waits_and_then_drafts(bench: Bench) -> None:
    bench.model.script = [RetryLater("overloaded", "529", timedelta(minutes=3)), ANSWER]
    assert bench.deliver() == ComesBack()
    row = bench.row()
    assert (row.status, row.reason, row.attempts) == (Status.DRAFTING, "overloaded", 1)
    assert row.next_attempt == bench.at + 3 * MINUTE
    assert bench.queue.put_offs == [("receipt-1", 3 * MINUTE)]
    assert pending(bench.store) == 1
    bench.at += 3 * MINUTE
    assert bench.deliver() == Done()
    assert (bench.row().status, bench.row().attempts, pending(bench.store)) == (Status.PENDING, 2, 1)


def test_an_enormous_retry_after_is_not_obeyed(bench: Bench) -> None:
    bench.model.script = [RetryLater("rate_limited", "429", timedelta(hours=84))]
    bench.deliver()
    assert bench.queue.put_offs == [("receipt-1", LONGEST_RETRY_AFTER)]


def test_an_overloaded_model_is_waited_for_as_long_as_the_grace_lasts(bench: Bench) -> None:
    bench.model.script = [RetryLater("overloaded", "529")]
    ended = outage(bench)
    row = bench.row()
    assert (row.status, row.reason) == (Status.SKIPPED, SkipReason.MISFIRED)
    assert "overloaded: 529" in str(row.detail)
    assert SLOT + 119 * MINUTE <= ended <= SLOT + 120 * MINUTE, "the last attempt is made as late as the grace allows"
    assert (bench.model.calls, row.attempts) == (15, 15), "30 s, doubling to 15 minutes, less up to a quarter"
    assert (bench.queue.buried, pending(bench.store)) == ([], 0)


def test_a_run_is_drafted_whenever_the_model_comes_back_within_its_grace(bench: Bench) -> None:
    bench.model.script = [*[RetryLater("overloaded", "529")] * 12, ANSWER]
    outage(bench)
    assert (bench.row().status, bench.row().attempts) == (Status.PENDING, 13)


def test_a_run_that_no_grace_binds_fails_after_its_attempts(bench: Bench) -> None:
    bench.model.script = [RetryLater("overloaded", "529")]
    outage(bench, message(origin=Origin.BACKFILL))
    row = bench.row()
    assert (row.status, row.reason, row.attempts) == (Status.FAILED, "attempts_exhausted", MOST_ATTEMPTS)
    assert "overloaded: 529" in str(row.detail)
    assert [letter.reason for letter in bench.queue.buried] == ["attempts_exhausted"]


@pytest.mark.guarantee("G5")
def test_g5_no_wait_uses_up_the_receives_that_are_kept_for_crashes(bench: Bench) -> None:
    """A message waits on its first receive only; then a fresh copy takes its place, which first finds it too early."""
    bench.model.script = [RetryLater("overloaded", "529")]
    assert bench.deliver(receives=2) == Done()
    (fresh,) = bench.queue.sent
    assert (fresh.renewal, fresh.key) == (1, KEY)
    assert fresh.deduplication_id != message().deduplication_id
    bench.at += timedelta(seconds=1)
    assert bench.deliver(fresh) == ComesBack()
    assert bench.model.calls == 1
    (receipt, wait), next_attempt = bench.queue.put_offs[-1], bench.row().next_attempt
    assert next_attempt is not None
    assert receipt == "receipt-2"
    assert next_attempt < bench.at + wait < next_attempt + timedelta(seconds=3)


def test_a_run_that_waited_past_its_grace_is_not_drafted_any_more(bench: Bench) -> None:
    bench.postpone()
    bench.at = SLOT + 121 * MINUTE
    assert bench.deliver() == Done()
    assert (bench.row().status, bench.row().reason) == (Status.SKIPPED, SkipReason.MISFIRED)
    assert "attempt 1 ended with overloaded: 529" in str(bench.row().detail)
    assert (bench.model.calls, pending(bench.store)) == (1, 0)


@pytest.mark.guarantee("G11")
@pytest.mark.parametrize(
    ("error", "cost"),
    [
        pytest.param(AnswerLost("timeout", "no answer"), 1_000_000, id="nobody knows what it costs"),
        pytest.param(ZeroDivisionError("in the middle of the call"), 1_000_000, id="nor here"),
        pytest.param(RetryLater("overloaded", "529"), 0, id="turned away"),
    ],
)
def test_g11_a_call_whose_answer_is_lost_is_booked_at_its_worst(bench: Bench, error: Exception, cost: int) -> None:
    bench.model.script = [error]
    bench.deliver()
    assert bench.store.committed_nanousd("daily-digest", "2026-11-27") == cost
    assert (bench.row().cost_nanousd, bench.row().reserved_nanousd) == (cost, 0)


@pytest.mark.guarantee("G11")
@pytest.mark.parametrize(("reserved", "is_told"), [(115_000, False), (114_999, True)])
def test_g11_a_call_that_cost_more_than_was_reserved_is_booked_whole_and_told(
    bench: Bench, lines: list[dict[str, object]], reserved: int, is_told: bool
) -> None:
    bench.model.worst = reserved
    bench.deliver()
    assert bench.store.committed_nanousd("daily-digest", "2026-11-27") == ANSWER.cost_nanousd
    told = [line["message"] for line in lines if "cost" in str(line["message"])]
    assert told == [f"run {KEY} cost $0.0001, more than the $0.0001 that were reserved"] * is_told


def test_a_run_that_a_person_sent_again_ignores_the_grace(bench: Bench) -> None:
    bench.model.script = [NeverSucceeds("refusal", "no"), ANSWER]
    bench.deliver()
    resent = bench.store.resend(KEY, now=bench.at)
    assert isinstance(resent, Settled)
    bench.at = SLOT + timedelta(days=2)
    assert bench.deliver(resent.run.message) == Done()
    assert bench.row().status is Status.PENDING


def test_an_unexpected_error_is_retried_a_few_times_and_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(assignment: Assignment) -> Material:
        raise ZeroDivisionError("division by zero")

    collects(monkeypatch, broken)
    assert bench.deliver() == ComesBack()
    assert (bench.row().faults, bench.row().detail) == (1, "ZeroDivisionError: division by zero")
    outage(bench)
    row = bench.row()
    assert (row.status, row.reason, row.attempts) == (Status.FAILED, "attempts_exhausted", MOST_FAULTS)
    assert "ZeroDivisionError: division by zero" in str(row.detail)
    assert [letter.reason for letter in bench.queue.buried] == ["attempts_exhausted"]
    assert bench.at < SLOT + 5 * MINUTE, "a fault of our own does not hold the drafter's line for long"


@pytest.mark.guarantee("G5")
def test_g5_a_run_that_crashes_at_each_attempt_is_failed_by_our_own_count(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def crash(assignment: Assignment) -> Material:
        raise Killed

    collects(monkeypatch, crash)
    began = bench.at
    for receives in range(1, MOST_FAULTS + 1):
        with pytest.raises(Killed):
            bench.deliver(receives=receives)
        bench.at += bench.queue.put_offs[-1][1] if bench.queue.put_offs else 30 * MINUTE
    assert bench.deliver(receives=MOST_FAULTS + 1) == Done()
    assert MOST_FAULTS + 1 <= MAX_RECEIVES, "else the queue buries the message first, without a reason"
    row = bench.row()
    assert (row.status, row.reason, row.faults) == (Status.FAILED, "attempts_exhausted", MOST_FAULTS)
    assert "ended without a word: a crash" in str(row.detail)
    assert [letter.reason for letter in bench.queue.buried] == ["attempts_exhausted"]
    assert bench.at - began < timedelta(hours=1), "a poison message does not hold its drafter's line for hours"


def test_a_run_that_another_invocation_works_on_comes_back_when_its_lease_ends(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    second: list[Done | ComesBack] = []

    def meanwhile(assignment: Assignment) -> Material:
        if not second:
            second.append(bench.deliver())
        return MATERIAL

    collects(monkeypatch, meanwhile)
    assert bench.deliver() == Done()
    assert second == [ComesBack()]
    assert bench.queue.put_offs == [("receipt-2", 5 * MINUTE + timedelta(seconds=1))]
    assert bench.model.calls == 1


def test_a_crash_leaves_a_lease_that_the_next_delivery_takes_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def crash(assignment: Assignment) -> Material:
        raise Killed

    collects(monkeypatch, crash)
    with pytest.raises(Killed):
        bench.deliver()
    collects(monkeypatch, lambda assignment: MATERIAL)
    bench.at += 6 * MINUTE
    assert bench.deliver() == Done()
    assert (bench.row().status, bench.row().attempts, pending(bench.store)) == (Status.PENDING, 2, 1)
    assert bench.row().cost_nanousd == bench.model.worst + ANSWER.cost_nanousd


@pytest.mark.guarantee("G5")
def test_g5_a_drafter_that_does_not_exist_fails_its_run(bench: Bench) -> None:
    bench.drafter = UNKNOWN
    assert bench.deliver() == Done()
    assert (bench.row().status, bench.row().reason) == (Status.FAILED, "invalid_drafter")
    assert "is not known" in bench.queue.buried[0].detail
    assert pending(bench.store) == 0


def test_a_drafter_that_does_not_exist_waits_for_whoever_works_on_its_run(bench: Bench) -> None:
    limits = Limits(pending=3, daily_budget_nanousd=None, worst_cost_nanousd=0)
    bench.store.claim(message(), limits, owner="another", now=bench.at, lease_until=bench.at + 5 * MINUTE)
    bench.drafter = UNKNOWN
    assert bench.deliver() == ComesBack()
    assert bench.queue.put_offs == [("receipt-1", 5 * MINUTE + timedelta(seconds=1))]
    assert bench.queue.buried == []


def test_a_drafter_that_does_not_exist_fails_its_run_whatever_its_gate(bench: Bench) -> None:
    for day in range(2):
        bench.at = SLOT - timedelta(days=day + 1) + MINUTE
        bench.deliver(message(slot=SLOT - timedelta(days=day + 1)))
    assert pending(bench.store) == DRAFTER.pending_limit
    bench.at, bench.drafter = SLOT + MINUTE, UNKNOWN
    assert bench.deliver() == Done()
    assert bench.row().reason == "invalid_drafter"
    (letter,) = bench.queue.buried
    assert (letter.run, letter.reason, letter.error_type) == (str(KEY), "invalid_drafter", "InvalidDrafter")
    assert letter.body == message().model_dump_json()


def test_a_paused_drafter_that_does_not_exist_records_the_slot(bench: Bench) -> None:
    bench.store.pause("daily-digest", "on holiday", now=SLOT)
    bench.drafter = UNKNOWN
    assert bench.deliver() == Done()
    assert (bench.row().status, bench.row().reason) == (Status.SKIPPED, SkipReason.PAUSED)


@pytest.mark.parametrize("drafter", [DRAFTER, UNKNOWN], ids=["known", "unknown"])
def test_a_run_whose_rows_are_held_by_others_comes_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, drafter: Drafter | InvalidDrafter
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise StoreBusy("rows are held")

    monkeypatch.setattr(bench.store, "claim", busy)
    bench.drafter = drafter
    assert bench.deliver() == ComesBack()
    assert bench.queue.put_offs == [("receipt-1", LOOK_AGAIN_AFTER)]


def pauses(bench: Bench) -> None:
    bench.store.pause("daily-digest", "on holiday", now=bench.at)


def overspends(bench: Bench) -> None:
    bench.drafter = Drafter.model_validate({**DRAFTER.model_dump(), "daily_budget_usd": "0.000001"})


@pytest.mark.guarantee("G4")
@pytest.mark.parametrize(
    ("block", "reason", "detail"),
    [
        pytest.param(pauses, SkipReason.PAUSED, "on holiday; attempt 1 ended with overloaded: 529", id="paused"),
        pytest.param(overspends, SkipReason.BUDGET, "$0.0000 of $0.0000 are spent", id="over budget"),
    ],
)
def test_g4_a_begun_run_that_meets_a_pause_or_the_end_of_the_budget_is_skipped_and_gives_its_place_back(
    bench: Bench, block: Callable[[Bench], None], reason: SkipReason, detail: str
) -> None:
    bench.postpone()
    block(bench)
    assert bench.deliver(receives=2) == Done()
    row = bench.row()
    assert (row.status, row.reason, row.attempts) == (Status.SKIPPED, reason, 1)
    assert str(row.detail).startswith(detail)
    assert (bench.queue.buried, pending(bench.store), bench.model.calls) == ([], 0, 1)


@pytest.mark.guarantee("G11")
def test_g11_a_crashed_run_that_is_skipped_is_billed_what_it_had_reserved(bench: Bench) -> None:
    limits = Limits(pending=3, daily_budget_nanousd=None, worst_cost_nanousd=7_000)
    bench.store.claim(message(), limits, owner="another", now=bench.at, lease_until=bench.at + 5 * MINUTE)
    pauses(bench)
    bench.at += 5 * MINUTE
    assert bench.deliver() == Done()
    row = bench.row()
    assert (row.status, row.cost_nanousd, row.reserved_nanousd) == (Status.SKIPPED, 7_000, 0)
    assert bench.store.committed_nanousd("daily-digest", "2026-11-27") == 7_000


@pytest.mark.parametrize("block", [pauses, overspends])
def test_a_run_that_another_invocation_took_meanwhile_is_not_skipped_under_its_hands(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, block: Callable[[Bench], None]
) -> None:
    """It was free when it was claimed and found taken when it was to be ended."""
    bench.postpone()
    block(bench)
    skip = bench.store.skip

    def meanwhile(*given: object, **named: object) -> object:
        bench.store.resume("daily-digest", now=bench.at)
        limits = Limits(pending=3, daily_budget_nanousd=None, worst_cost_nanousd=0)
        bench.store.claim(message(), limits, owner="another", now=bench.at, lease_until=bench.at + 5 * MINUTE)
        return skip(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(bench.store, "skip", meanwhile)
    assert bench.deliver() == ComesBack()
    assert (bench.row().status, bench.row().owner) == (Status.DRAFTING, "another")


@pytest.mark.parametrize("receives", [2, MAX_RECEIVES])
def test_rows_that_are_held_by_others_for_long_cost_the_run_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, receives: int
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise StoreBusy("rows are held")

    with monkeypatch.context() as held:
        held.setattr(bench.store, "claim", busy)
        assert bench.deliver(receives=receives) == Done()
    (fresh,) = bench.queue.sent
    assert bench.deliver(fresh) == Done()
    assert bench.row().status is Status.PENDING


@pytest.mark.guarantee("G1")
def test_g1_a_message_from_before_a_person_sent_the_run_again_neither_drafts_nor_ends_it(bench: Bench) -> None:
    bench.model.script = [NeverSucceeds("refusal", "no"), RetryLater("overloaded", "529"), ANSWER]
    bench.deliver()
    resent = bench.store.resend(KEY, now=bench.at)
    assert isinstance(resent, Settled)
    for moment in (bench.at, SLOT + timedelta(days=1)):
        bench.at = moment
        assert bench.deliver(message()) == Done()
        assert (bench.row().status, bench.model.calls) == (Status.QUEUED, 1)
    assert bench.deliver(resent.run.message) == ComesBack()
    bench.at += 10 * MINUTE
    assert bench.deliver(message()) == Done()
    assert (bench.row().status, bench.model.calls) == (Status.DRAFTING, 2)
    assert bench.deliver(resent.run.message) == Done()
    assert bench.row().status is Status.PENDING


def test_a_drafters_file_that_nobody_can_read_fails_its_run(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "daily-digest.toml").write_text(f"title = {'[' * 5_000}")
    bench.read_drafter = lambda name: load_drafter(name, tmp_path)
    assert bench.deliver() == Done()
    assert (bench.row().status, bench.row().reason) == (Status.FAILED, "invalid_drafter")


def test_each_log_line_names_the_run_and_its_trace_and_those_of_the_next_message_their_own(
    bench: Bench, lines: list[dict[str, object]]
) -> None:
    bench.model.script = [RetryLater("overloaded", "529"), ANSWER]
    bench.deliver(message(trace="tick-1"))
    bench.deliver("not json")
    bench.at += 15 * MINUTE
    bench.deliver(message(trace="tick-2"))
    waits, unreadable, drafted = lines
    assert (waits["run"], waits["trace"], waits["level"]) == (str(KEY), "tick-1", "WARNING")
    assert unreadable.keys().isdisjoint({"run", "trace"})
    assert (drafted["run"], drafted["message"]) == (str(KEY), f"run {KEY} is pending")


@pytest.mark.parametrize("body", ["not json", "{}", '{"drafter": "daily-digest", "slot": "2026-11-27T06:00:00"}'])
def test_a_message_that_cannot_be_read_is_buried_as_it_is(bench: Bench, body: str) -> None:
    assert bench.deliver(body) == Done()
    assert [(letter.body, letter.run, letter.reason) for letter in bench.queue.buried] == [
        (body, None, "invalid_message")
    ]


@pytest.mark.guarantee("G6")
def test_g6_a_run_whose_sources_another_run_has_drafted_meanwhile_collects_anew(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue hands out one message of a drafter at a time; this is what holds where it once does not."""
    other = message(slot=SLOT + MINUTE)
    collected: list[object] = []

    def meanwhile(assignment: Assignment) -> Material:
        through = len(collected)
        collected.append(assignment.cursors())
        if through == 0:
            assert bench.deliver(other) == Done()
        return Material(items=(ITEM,), cursors={"inbox": {"through": through}})

    collects(monkeypatch, meanwhile)
    assert bench.deliver() == ComesBack()
    assert (bench.row().reason, bench.row().cost_nanousd) == ("cursor_moved", ANSWER.cost_nanousd)
    assert bench.row(other.key).status is Status.PENDING
    bench.at += MINUTE
    assert bench.deliver() == Done()
    assert collected == [{}, {}, {"inbox": {"through": 1}}]
    assert bench.store.memory("daily-digest").cursors == {"inbox": {"through": 2}}


def test_what_earlier_runs_left_is_read_once_and_not_where_nobody_needs_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    monkeypatch.setattr(bench.store, "memory", lambda drafter: reads.append(drafter) or Memory())
    collects(monkeypatch, lambda assignment: Material(nothing_new="nothing new"))
    bench.deliver()
    assert reads == []
    collects(monkeypatch, lambda assignment: Material(nothing_new=f"{assignment.cursors()}{assignment.cursors()}"))
    bench.deliver(message(slot=SLOT + MINUTE))
    assert reads == ["daily-digest"]
    collects(monkeypatch, lambda assignment: Material(items=(ITEM,), figures=str(assignment.cursors())))
    bench.deliver(message(slot=SLOT + 2 * MINUTE))
    assert reads == ["daily-digest", "daily-digest"]


def test_the_window_is_asked_for_only_by_shapes_that_need_it(bench: Bench, collected: list[Assignment]) -> None:
    bench.deliver()
    window = collected[0].window()
    assert (window.start, window.end) == (SLOT - timedelta(days=1), SLOT)
    assert str(window.zone) == "Europe/London"


def test_a_late_message_of_a_run_that_somebody_works_on_comes_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleting it would leave nobody to end the run, should its owner have crashed."""
    second: list[Done | ComesBack] = []

    def meanwhile(assignment: Assignment) -> Material:
        bench.at = SLOT + 121 * MINUTE
        if not second:
            second.append(bench.deliver())
        return MATERIAL

    collects(monkeypatch, meanwhile)
    bench.at = SLOT + 119 * MINUTE
    assert bench.deliver() == Done()
    assert second == [ComesBack()]
    assert bench.row().status is Status.PENDING


def test_a_run_whose_only_attempt_crashed_and_whose_grace_is_over_says_that_it_crashed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def crash(assignment: Assignment) -> Material:
        raise Killed

    collects(monkeypatch, crash)
    with pytest.raises(Killed):
        bench.deliver()
    bench.at = SLOT + 121 * MINUTE
    assert bench.deliver() == Done()
    assert (bench.row().status, bench.row().reason) == (Status.SKIPPED, SkipReason.MISFIRED)
    assert "ended without a word: a crash" in str(bench.row().detail)


def test_a_draft_that_is_paid_for_is_stored_though_the_rows_were_held_by_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [StoreBusy("rows held")]
    store = bench.store.store

    def busy_once(*given: object, **named: object) -> object:
        if held:
            raise held.pop()
        return store(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(bench.store, "store", busy_once)
    assert bench.deliver() == Done()
    assert (bench.row().status, bench.model.calls) == (Status.PENDING, 1)


def test_a_late_message_from_before_a_resend_does_not_skip_the_run(bench: Bench) -> None:
    bench.model.script = [NeverSucceeds("refusal", "no"), ANSWER]
    bench.deliver()
    resent = bench.store.resend(KEY, now=bench.at)
    assert isinstance(resent, Settled)
    bench.at = SLOT + 121 * MINUTE
    assert bench.deliver() == Done()
    assert (bench.row().status, bench.model.calls) == (Status.QUEUED, 1)
    assert bench.deliver(resent.run.message) == Done()
    assert bench.row().status is Status.PENDING


@pytest.mark.guarantee("G5")
@pytest.mark.parametrize(
    ("error", "reason", "deliveries"),
    [
        pytest.param(UnreadableRow("run daily-digest: version is 'x'"), "unreadable_row", 1, id="a damaged row"),
        pytest.param(NeverSucceeds("draft_too_large", "too large"), "draft_too_large", 1, id="what never succeeds"),
        pytest.param(OverflowError("too large"), "unexpected_error", MOST_FAULTS, id="what nobody foresaw"),
    ],
)
def test_g5_a_run_that_cannot_even_be_claimed_is_buried_and_soon_holds_up_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str, deliveries: int
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(bench.store, "claim", broken)
    outcomes = [bench.deliver(receives=receives) for receives in range(1, deliveries + 1)]
    assert outcomes == [ComesBack()] * (deliveries - 1) + [Done()]
    (letter,) = bench.queue.buried
    assert (letter.run, letter.reason, letter.attempts) == (str(KEY), reason, deliveries)
    assert letter.body == message().model_dump_json()
    assert sum((wait for _, wait in bench.queue.put_offs), timedelta()) < 5 * MINUTE


def test_a_wait_that_the_queue_does_not_take_is_no_fault_of_the_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.at = SLOT + 121 * MINUTE
    limits = Limits(pending=3, daily_budget_nanousd=None, worst_cost_nanousd=0)
    bench.store.claim(message(), limits, owner="other", now=bench.at, lease_until=bench.at + 5 * MINUTE)

    def down(receipt: str, delay: timedelta) -> None:
        raise QueueUnavailable([], "down")

    monkeypatch.setattr(bench.queue, "put_off", down)
    with pytest.raises(QueueUnavailable):
        bench.deliver(receives=3)
    assert bench.queue.buried == []


# A message that comes after a newer slot is due


HALF_HOURLY = schedule(expression="cron(0/30 * * * ? *)")
THE_NEXT = SLOT + 30 * MINUTE


def latest_only(bench: Bench, **change: object) -> None:
    """Let the schedule be due every half hour; the message in hand comes forty minutes after its slot."""
    bench.schedules = FixedSchedules((replace(HALF_HOURLY, **change),))  # type: ignore[arg-type]
    bench.at = SLOT + 40 * MINUTE


@pytest.mark.guarantee("G4")
def test_g4_a_late_message_is_coalesced_when_a_newer_slot_is_due(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    latest_only(bench)
    told: list[str] = []
    with monkeypatch.context() as watched:
        watched.setattr(observe, "count", told.append)
        watched.setattr(bench.store, "claim", lambda *_, **__: pytest.fail("it is claimed all the same"))
        assert bench.deliver() == Done()
    assert told == ["run_skipped_coalesced"]
    assert (bench.row().status, bench.row().reason) == (Status.SKIPPED, SkipReason.COALESCED)
    assert bench.row().detail == (
        "came 40 minutes after its slot; only the latest is drafted, and 2026-11-27T06:30:00Z is due"
    )
    assert bench.model.calls == 0
    bench.deliver(message(slot=THE_NEXT))
    assert bench.row(RunKey("daily-digest", THE_NEXT)).status is Status.PENDING


def test_a_late_message_is_drafted_while_no_newer_slot_is_due(bench: Bench) -> None:
    latest_only(bench)
    bench.at = THE_NEXT - timedelta(seconds=1)
    bench.deliver()
    assert bench.row().status is Status.PENDING


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"enabled": False}, id="disabled"),
        pytest.param({"modified": SLOT + 35 * MINUTE}, id="changed since the newer slot"),
        pytest.param({"end": SLOT + 20 * MINUTE}, id="ended before the newer slot"),
        pytest.param({"expression": "cron(0 6 * * * *)"}, id="cannot be read"),
        pytest.param({"arn": "arn:of-another"}, id="gone"),
    ],
)
def test_a_schedule_that_is_not_due_again_keeps_nothing_from_being_drafted(
    bench: Bench, change: dict[str, object]
) -> None:
    latest_only(bench, **change)
    bench.deliver()
    assert bench.row().status is Status.PENDING


@pytest.mark.parametrize("policy", ["all", "none"])
def test_under_another_policy_each_message_that_comes_is_drafted(bench: Bench, policy: str) -> None:
    latest_only(bench)
    contract = message().contract.model_copy(update={"catch_up": CatchUp(policy)})
    bench.deliver(message(contract=contract))
    assert bench.row().status is Status.PENDING


@pytest.mark.parametrize(
    "change", [{"origin": Origin.BACKFILL}, {"origin": Origin.CATCH_UP}, {"resend": 1}, {"schedule": None}], ids=str
)
def test_what_did_not_come_from_a_tick_is_never_coalesced_here(bench: Bench, change: dict[str, object]) -> None:
    latest_only(bench)
    bench.deliver(message(**change))
    assert bench.row().status is Status.PENDING


def test_a_run_that_was_begun_goes_on_though_a_newer_slot_is_due(bench: Bench) -> None:
    bench.postpone()
    latest_only(bench)
    bench.deliver(receives=2)
    assert bench.row().status is Status.PENDING


def test_a_second_copy_of_a_begun_runs_message_goes_on_with_it(bench: Bench) -> None:
    bench.postpone()
    latest_only(bench)
    bench.deliver(receives=1)
    assert bench.row().status is Status.PENDING


class Unasked:
    """Schedules that must not be asked for."""

    def get(self, arn: str) -> ScheduleDefinition:
        raise AssertionError("a message in time costs no request")


def test_a_message_in_time_asks_for_no_schedule(bench: Bench) -> None:
    bench.schedules = Unasked()  # type: ignore[assignment]
    bench.at = SLOT + 2 * MINUTE
    bench.deliver()
    assert bench.row().status is Status.PENDING


@pytest.mark.parametrize(("receives", "renewal"), [(2, 0), (1, 1)])
def test_a_late_message_that_was_received_before_asks_for_no_schedule(
    bench: Bench, receives: int, renewal: int
) -> None:
    latest_only(bench)
    bench.schedules = Unasked()  # type: ignore[assignment]
    bench.deliver(message(renewal=renewal), receives=receives)
    assert bench.row().status is Status.PENDING


def test_scheduler_without_an_answer_keeps_nothing_from_being_drafted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(arn: str) -> ScheduleDefinition:
        raise SchedulesUnavailable("Scheduler gives no answer")

    latest_only(bench)
    monkeypatch.setattr(FixedSchedules, "get", lambda self, arn: silent(arn))
    bench.deliver()
    assert bench.row().status is Status.PENDING


def test_an_unknown_drafter_fails_its_run_though_a_newer_slot_is_due(bench: Bench) -> None:
    latest_only(bench)
    bench.drafter = UNKNOWN
    bench.deliver()
    assert (bench.row().status, bench.row().reason) == (Status.FAILED, "invalid_drafter")


FIGURES = "| Sales | 8,150 | up 276 (+3.5%) |"
HONEST = "Sales rose by 3.5% to 8,150, up 276; see https://mail.example/1 for the 2 invoices of 27 November."
WRONG = HONEST.replace("8,150", "8,160") + " More at https://evil.example/offers/4711."
LINKED = (replace(ITEM, text="Two invoices", link="https://mail.example/1"),)


def says(text: str) -> list[Answer | Exception]:
    written = {"title": "Sales", "sections": [{"heading": "Week", "text": text, "cites": ["m1"]}]}
    return [replace(ANSWER, text=json.dumps(written))]


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        (HONEST, ()),
        (
            WRONG,
            (
                "a link that is no item's, taken out: https[:]//evil[.]example/offers/4711"
                ' (section 1 "Week": …the 2 invoices of 27 November. More at (link removed).)',
                "a number that is in no source: 8,160"
                ' (section 1 "Week": Sales rose by 3.5% to 8,160, up 276; see (link) for the 2 invoices…)',
            ),
        ),
    ],
)
def test_a_changed_digit_and_a_foreign_link_are_the_only_warnings(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, text: str, warnings: tuple[str, ...]
) -> None:
    collects(monkeypatch, lambda assignment: Material(items=LINKED, figures=FIGURES))
    bench.model.script = says(text)
    assert bench.deliver() == Done()
    stored = bench.store.draft(KEY)
    assert stored is not None
    assert stored.draft.warnings == warnings
    assert "evil" not in stored.draft.body


def test_the_words_are_checked_against_the_exact_values_of_the_figures(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    mean = Figure(Decimal("6.45"), "", "Mean")
    collects(monkeypatch, lambda assignment: Material(items=LINKED, figures="| Mean | 6.5 |", values=(mean,)))
    bench.model.script = says("The mean was 6.45, or 6.5, and not 7.")
    assert bench.deliver() == Done()
    stored = bench.store.draft(KEY)
    assert stored is not None
    assert stored.draft.warnings == (
        'a number that is in no source: 7 (section 1 "Week": The mean was 6.45, or 6.5, and not 7.)',
    )


def test_a_strict_drafters_draft_with_findings_fails_and_is_paid_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    collects(monkeypatch, lambda assignment: Material(items=LINKED, figures=FIGURES))
    bench.drafter = DRAFTER.model_copy(update={"strict": True})
    bench.model.script = says(WRONG)
    assert bench.deliver() == Done()
    row = bench.row()
    assert (row.status, row.reason, row.cost_nanousd) == (Status.FAILED, "not_grounded", ANSWER.cost_nanousd)
    assert row.detail is not None
    assert "8,160" in row.detail
    assert "evil[.]example" in row.detail
    assert [letter.reason for letter in bench.queue.buried] == ["not_grounded"]
    assert bench.store.draft(KEY) is None
    assert bench.store.drafter("daily-digest").pending == 0


def test_a_strict_drafters_honest_draft_waits_for_a_person_whatever_was_wrong_with_its_items(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = (replace(LINKED[0], title="<b>Two</b> invoices"),)
    collects(monkeypatch, lambda assignment: Material(items=items, figures=FIGURES, warnings=("inbox: one left out",)))
    bench.drafter = DRAFTER.model_copy(update={"strict": True})
    bench.model.script = says(HONEST)
    assert bench.deliver() == Done()
    assert bench.row().status is Status.PENDING
    stored = bench.store.draft(KEY)
    assert stored is not None
    assert len(stored.draft.warnings) == 2


def decide(bench: Bench, slot: datetime, verdict: Approve | Reject) -> None:
    """Have the slot drafted, and its draft decided on."""
    assert bench.deliver(message(slot=slot, origin=Origin.BACKFILL)) == Done()
    row = bench.row(RunKey("daily-digest", slot))
    decided = bench.store.decide(
        row.key, verdict, version=row.version, read_hash=row.text_hash or "", reviewer="ada", now=bench.at
    )
    assert isinstance(decided, Settled)


def test_the_model_is_told_why_the_latest_drafts_were_rejected_and_nothing_of_the_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    collects(monkeypatch, lambda assignment: Material(items=(ITEM,)))
    for number in (7, *range(7)):
        words = "" if number == 6 else f"{number}: the price\nis wrong {'x' * 2_000 if number == 5 else ''}"
        decide(bench, SLOT + number * MINUTE, Reject(RejectReason.INACCURATE, words[:1_500]))
        if number == 5:
            decide(bench, SLOT + number * MINUTE + timedelta(seconds=30), Approve())
    bench.deliver(message(slot=SLOT + 60 * MINUTE, origin=Origin.BACKFILL))

    told = bench.model.briefs[-1].rejections
    assert [rejection.slot for rejection in told] == [SLOT + number * MINUTE for number in (6, 5, 4, 3, 2)]
    assert {rejection.reason for rejection in told} == {RejectReason.INACCURATE}
    assert (told[0].words, told[2].words) == ("", "4: the price is wrong")
    assert len(told[1].words) == MOST_WORDS
    assert bench.model.briefs[0].rejections == ()


def test_a_rejection_that_cannot_be_read_stops_no_draft_and_is_named_beside_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Rejection(SLOT, RejectReason.TONE, "too loud")
    monkeypatch.setattr(
        bench.store, "memory", lambda drafter: Memory(rejections=(told,), unreadable=("a rejection: 5",))
    )
    collects(monkeypatch, lambda assignment: Material(items=(ITEM,)))
    assert bench.deliver() == Done()
    assert bench.model.briefs[-1].rejections == (told,)
    stored = bench.store.draft(KEY)
    assert stored is not None
    assert "the model was not told why an earlier draft was rejected: a rejection: 5" in stored.draft.warnings
