"""Which due slots the sweep gives an outcome, and what it notes."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

import recover
from catch_up import MOST_CAUGHT_UP
from galley import system
from galley.queue import QueueUnavailable
from galley.retry import NeverSucceeds, RetryLater
from galley.runs import Origin, Run, RunKey, RunMessage, SkipReason, Status
from galley.schedule import tzdata_version
from galley.schedules import ScheduleDefinition, SchedulesUnavailable
from galley.store import Bill, Claimed, Limits, RowsDisagree, Store, StoreBusy, SweptSchedule, UnreadableRow
from support.outside import ARN, SLOT, Context, FixedSchedules, Outside, RecordingQueue, event, message, schedule
from sweep import SETTLING, TIME_TO_FINISH, Swept, sweep

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
KEY = RunKey("daily-digest", SLOT)
SINCE = {"created": SLOT - HOUR, "modified": SLOT - HOUR}


def contract(drafters: Sequence[str] = ("daily-digest",), **change: object) -> str:
    """Return a schedule's input."""
    return json.dumps(
        {"drafters": drafters, "window_minutes": 30, "grace_minutes": 120, "catch_up": "latest", **change}
    )


def hourly(name: str = "Hourly", drafter: str = "hourly-monitor", **change: object) -> ScheduleDefinition:
    """Return a schedule that is due at every hour from ``SLOT`` on."""
    own = {"input": contract([drafter], grace_minutes=1440), "created": SLOT, "modified": SLOT}
    return schedule(name, **{"expression": "cron(0 * * * ? *)", "timezone": "UTC", **own, **change})


def swept(
    store: Store, queue: RecordingQueue, *definitions: ScheduleDefinition, now: datetime, minutes: float = 5
) -> Swept:
    return sweep(FixedSchedules(definitions), store, queue, now=now, trace="sweep", remaining=lambda: minutes * MINUTE)


def keys(drafter: str, *slots: datetime) -> tuple[str, ...]:
    return tuple(str(RunKey(drafter, slot)) for slot in slots)


def draft_all(store: Store, queue: RecordingQueue, *, now: datetime) -> list[str]:
    """Do what the worker does with the messages that were sent; return the runs that it drafted."""
    drafted = []
    for asked in queue.sent:
        limits = Limits(pending=1_000, daily_budget_nanousd=None, worst_cost_nanousd=0)
        outcome = store.claim(asked, limits, owner=f"worker {now}", now=now, lease_until=now + MINUTE)
        if isinstance(outcome, Claimed):
            store.release(outcome.run, Status.EMPTY, "nothing_new", "", Bill(), now=now)
            drafted.append(str(asked.key))
    queue.sent.clear()
    return drafted


def becomes(store: Store, drafter: str) -> list[tuple[datetime, str]]:
    """Return each row of a drafter, oldest first, with its reason."""
    runs = store.history(drafter, limit=1_000).runs
    return [(run.slot, str(run.reason)) for run in reversed(runs)]


def mark(store: Store, name: str = "DailyDigest") -> datetime:
    (found,) = [one.swept_until for one in store.swept_schedules().schedules if one.definition.name == name]
    return found


def former_marks(store: Store) -> list[datetime]:
    """Return up to where the slots of each former definition have their rows."""
    return [former.swept_until for one in store.swept_schedules().schedules for former in one.former]


@pytest.mark.guarantee("G4")
def test_g4_a_slot_without_a_row_is_caught_up_within_its_grace(store: Store) -> None:
    queue = RecordingQueue()
    done = swept(store, queue, schedule(**SINCE), now=SLOT + 10 * MINUTE)
    assert (done.caught_up, done.skipped) == ((str(KEY),), ())
    assert [(sent.key, sent.origin, sent.schedule) for sent in queue.sent] == [(KEY, Origin.CATCH_UP, ARN)]


@pytest.mark.guarantee("G4")
def test_g4_a_slot_past_its_grace_is_recorded_as_misfired(store: Store) -> None:
    queue = RecordingQueue()
    done = swept(store, queue, schedule(**SINCE), now=SLOT + 121 * MINUTE)
    assert (done.caught_up, done.skipped) == ((), (str(KEY),))
    row = store.run(KEY)
    assert row is not None
    assert (row.status, row.reason) == (Status.SKIPPED, SkipReason.MISFIRED)
    assert row.detail == "found 121 minutes after its slot, past its grace"
    assert queue.sent == []
    assert swept(store, queue, schedule(**SINCE), now=SLOT + 122 * MINUTE) == Swept()


@pytest.mark.guarantee("G4")
def test_g4_every_due_slot_since_the_last_sweep_gets_its_row_and_not_only_the_latest(store: Store) -> None:
    queue = RecordingQueue()
    done = swept(store, queue, schedule(created=SLOT - 3 * DAY, modified=SLOT - 3 * DAY), now=SLOT + 10 * MINUTE)
    assert done.caught_up == (str(KEY),)
    assert becomes(store, "daily-digest") == [(SLOT - number * DAY, "misfired") for number in (3, 2, 1)]


def test_a_slot_that_may_still_be_on_its_way_is_left_alone(store: Store) -> None:
    queue = RecordingQueue()
    assert swept(store, queue, schedule(**SINCE), now=SLOT + SETTLING - SECOND).caught_up == ()
    assert swept(store, queue, schedule(**SINCE), now=SLOT + SETTLING - SECOND / 2).caught_up == ()
    assert swept(store, queue, schedule(**SINCE), now=SLOT + SETTLING).caught_up == (str(KEY),)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"enabled": False}, id="disabled"),
        pytest.param({"created": SLOT + MINUTE}, id="created after the slot"),
        pytest.param({"modified": SLOT + MINUTE}, id="changed after the slot"),
        pytest.param({"start": SLOT + MINUTE}, id="before its start"),
        pytest.param({"end": SLOT - MINUTE}, id="after its end"),
    ],
)
def test_a_slot_that_eventbridge_would_not_have_fired_is_not_invented(store: Store, change: dict[str, object]) -> None:
    queue = RecordingQueue()
    assert swept(store, queue, schedule(**{**SINCE, **change}), now=SLOT + 10 * MINUTE) == Swept()


@pytest.mark.parametrize("bound", ["created", "modified", "start", "end"])
def test_a_slot_at_the_very_instant_of_a_bound_is_due(store: Store, bound: str) -> None:
    queue = RecordingQueue()
    done = swept(store, queue, schedule(**{**SINCE, bound: SLOT}), now=SLOT + 10 * MINUTE)
    assert done.caught_up == (str(KEY),)


def test_slots_while_a_schedule_was_disabled_are_not_caught_up(store: Store) -> None:
    queue = RecordingQueue()
    active = hourly()
    swept(store, queue, active, now=SLOT + 5 * MINUTE)
    draft_all(store, queue, now=SLOT + 5 * MINUTE)
    disabled = replace(active, enabled=False, modified=SLOT + 30 * MINUTE)
    assert swept(store, queue, disabled, now=SLOT + 5 * HOUR + 5 * MINUTE).caught_up == ()
    enabled = replace(active, modified=SLOT + 5 * HOUR + 30 * MINUTE)
    done = swept(store, queue, enabled, now=SLOT + 6 * HOUR + 5 * MINUTE)
    assert (done.caught_up, done.skipped) == (keys("hourly-monitor", SLOT + 6 * HOUR), ())


def test_a_schedule_that_is_disabled_without_being_changed_is_read_again(store: Store) -> None:
    queue = RecordingQueue()
    swept(store, queue, hourly(), now=SLOT + MINUTE)
    assert swept(store, queue, hourly(enabled=False), now=SLOT + 5 * HOUR).caught_up == ()


def test_a_run_that_was_sent_and_has_no_row_yet_is_sent_again_once_an_hour_and_drafted_once(store: Store) -> None:
    queue = RecordingQueue()
    sent = {
        minute: swept(store, queue, schedule(**SINCE), now=SLOT + minute * MINUTE).caught_up
        for minute in (10, 25, 40, 55, 69, 70, 85, 100)
    }
    assert [minute for minute, runs in sent.items() if runs] == [10, 70]
    assert draft_all(store, queue, now=SLOT + 101 * MINUTE) == [str(KEY)]
    assert swept(store, queue, schedule(**SINCE), now=SLOT + 115 * MINUTE) == Swept()
    assert store.swept_schedules().schedules[0].drafters == {}


def test_a_slot_that_comes_due_meanwhile_is_sent_at_once_and_those_before_it_are_not_put_off(store: Store) -> None:
    queue = RecordingQueue()
    every = hourly(input=contract(["hourly-monitor"], catch_up="all", grace_minutes=1440))
    slots = [SLOT + number * HOUR for number in range(4)]
    now = SLOT + 100 * MINUTE
    assert swept(store, queue, every, now=now).caught_up == keys("hourly-monitor", *slots[:2])
    assert swept(store, queue, every, now=now + 25 * MINUTE).caught_up == keys("hourly-monitor", slots[2])
    assert swept(store, queue, every, now=now + 59 * MINUTE).caught_up == ()
    assert swept(store, queue, every, now=now + HOUR).caught_up == keys("hourly-monitor", *slots[:3])


def test_what_was_asked_for_by_a_clock_that_went_ahead_is_asked_for_again(store: Store) -> None:
    queue = RecordingQueue()
    swept(store, queue, schedule(**SINCE), now=SLOT + 100 * MINUTE)
    assert swept(store, queue, schedule(**SINCE), now=SLOT + 10 * MINUTE).caught_up == (str(KEY),)


def test_however_long_it_takes_no_more_than_the_cap_waits_in_the_queue(store: Store) -> None:
    queue = RecordingQueue()
    every = hourly(input=contract(["hourly-monitor"], catch_up="all", grace_minutes=7 * 1440))
    now = SLOT + 30 * HOUR + 5 * MINUTE
    for minute in range(0, 60, 15):
        swept(store, queue, every, now=now + minute * MINUTE)
    assert [sent.slot for sent in queue.sent] == [SLOT + number * HOUR for number in range(MOST_CAUGHT_UP)]
    first = queue.sent[:2]
    queue.sent = first
    draft_all(store, queue, now=now + 50 * MINUTE)
    two_more = [SLOT + number * HOUR for number in (MOST_CAUGHT_UP, MOST_CAUGHT_UP + 1)]
    assert swept(store, queue, every, now=now + 51 * MINUTE).caught_up == keys("hourly-monitor", *two_more)


def test_a_run_that_was_begun_is_not_missed(store: Store) -> None:
    queue = RecordingQueue()
    limits = Limits(pending=1, daily_budget_nanousd=None, worst_cost_nanousd=0)
    store.claim(message(), limits, owner="worker", now=SLOT, lease_until=SLOT + 5 * MINUTE)
    assert swept(store, queue, schedule(**SINCE), now=SLOT + 10 * MINUTE).caught_up == ()


def test_each_drafter_of_a_schedule_is_looked_at_by_itself(store: Store) -> None:
    queue = RecordingQueue()
    both = schedule(input=contract(["daily-digest", "nightly-sync"]), **SINCE)
    swept(store, queue, both, now=SLOT + 10 * MINUTE)
    queue.sent = [sent for sent in queue.sent if sent.drafter == "daily-digest"]
    draft_all(store, queue, now=SLOT + 10 * MINUTE)
    assert mark(store) == SLOT
    done = swept(store, queue, both, now=SLOT + 75 * MINUTE)
    assert done.caught_up == keys("nightly-sync", SLOT)


def test_more_than_the_cap_is_caught_up_by_the_sweeps_that_follow(store: Store) -> None:
    queue = RecordingQueue()
    slots = [SLOT + number * HOUR for number in range(MOST_CAUGHT_UP + 6)]
    every = hourly(input=contract(["hourly-monitor"], catch_up="all", grace_minutes=7 * 1440), end=slots[-1])
    now = slots[-1] + 5 * MINUTE
    assert swept(store, queue, every, now=now).caught_up == keys("hourly-monitor", *slots[:MOST_CAUGHT_UP])
    assert [sent.slot for sent in queue.sent] == slots[:MOST_CAUGHT_UP]
    draft_all(store, queue, now=now)
    assert swept(store, queue, every, now=now + 15 * MINUTE).caught_up == keys("hourly-monitor", *slots[-6:])
    draft_all(store, queue, now=now + 15 * MINUTE)
    assert swept(store, queue, every, now=now + 30 * MINUTE) == Swept()
    assert becomes(store, "hourly-monitor") == [(slot, "nothing_new") for slot in slots]


def test_what_a_paused_drafter_missed_is_recorded_as_paused(store: Store) -> None:
    queue = RecordingQueue()
    store.pause("daily-digest", "on holiday", now=SLOT)
    done = swept(store, queue, schedule(**SINCE), now=SLOT + 10 * MINUTE)
    assert (done.caught_up, done.skipped) == ((), (str(KEY),))
    assert becomes(store, "daily-digest") == [(SLOT, "paused")]
    store.resume("daily-digest", now=SLOT + 11 * MINUTE)
    assert swept(store, queue, schedule(**SINCE), now=SLOT + 12 * MINUTE).caught_up == ()


def test_a_slot_without_a_row_is_overdue_once_its_window_is_over(store: Store) -> None:
    queue = RecordingQueue()
    assert swept(store, queue, schedule(**SINCE), now=SLOT + 30 * MINUTE).overdue == ()
    assert swept(store, queue, schedule(**SINCE), now=SLOT + 30 * MINUTE + SECOND).overdue == (str(KEY),)
    late = hourly()
    assert swept(store, queue, late, now=SLOT + 31 * MINUTE).overdue == keys("hourly-monitor", SLOT), "though just sent"
    waits = schedule(input=contract(catch_up="none"), **SINCE)
    assert swept(store, queue, waits, now=SLOT + 31 * MINUTE).overdue == (str(KEY),)
    assert swept(store, queue, waits, now=SLOT + 121 * MINUTE).overdue == ()


# What is noted


def test_the_mark_stays_at_a_slot_until_it_has_its_row(store: Store) -> None:
    queue = RecordingQueue()
    swept(store, queue, schedule(**SINCE), now=SLOT + 10 * MINUTE)
    assert mark(store) == SLOT
    draft_all(store, queue, now=SLOT + 11 * MINUTE)
    swept(store, queue, schedule(**SINCE), now=SLOT + 25 * MINUTE)
    assert mark(store) == SLOT + 25 * MINUTE - SETTLING + SECOND


@dataclass(frozen=True)
class CountedSchedules(FixedSchedules):
    """Notes which schedules were read one by one."""

    read: list[str] = field(default_factory=list)

    def get(self, arn: str) -> ScheduleDefinition:
        self.read.append(arn.rpartition("/")[2])
        return FixedSchedules.get(self, arn)


def test_a_schedule_is_read_again_only_when_it_has_changed(store: Store) -> None:
    queue = RecordingQueue()
    read: list[list[str]] = []
    later = {"modified": SLOT + timedelta(minutes=20, milliseconds=500)}
    for minute, definitions in (
        (10, [schedule(**SINCE), hourly()]),
        (15, [schedule(**SINCE), hourly()]),
        (30, [schedule(**SINCE), hourly(**later)]),
        (45, [schedule(**SINCE), hourly(**later)]),
    ):
        schedules = CountedSchedules(tuple(definitions))
        sweep(schedules, store, queue, now=SLOT + minute * MINUTE, trace="", remaining=lambda: HOUR)
        draft_all(store, queue, now=SLOT + minute * MINUTE)
        read.append(schedules.read)
    assert read == [["DailyDigest", "Hourly"], [], ["Hourly"], []]
    assert [one.definition for one in store.swept_schedules().schedules] == [schedule(**SINCE), hourly(**later)]


def test_a_changed_schedule_is_swept_by_its_new_expression_from_its_change_on(store: Store) -> None:
    queue = RecordingQueue()
    swept(store, queue, schedule(**SINCE), now=SLOT - 30 * MINUTE)
    at_quarter_past = schedule(
        expression="cron(15 * * * ? *)", created=SLOT - HOUR, modified=SLOT + HOUR, timezone="UTC"
    )
    swept(store, queue, at_quarter_past, now=SLOT + HOUR + MINUTE)
    assert (mark(store), former_marks(store)) == (SLOT + HOUR, [SLOT])
    assert draft_all(store, queue, now=SLOT + HOUR + MINUTE) == [*keys("daily-digest", SLOT)]
    swept(store, queue, at_quarter_past, now=SLOT + HOUR + 10 * MINUTE)
    assert (mark(store), former_marks(store)) == (SLOT + HOUR, [])
    done = swept(store, queue, at_quarter_past, now=SLOT + HOUR + 20 * MINUTE)
    assert (done.caught_up, done.skipped) == (keys("daily-digest", SLOT + HOUR + 15 * MINUTE), ())


def test_a_schedule_with_nothing_due_costs_neither_a_request_for_rows_nor_a_write(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = RecordingQueue()
    swept(store, queue, schedule(**SINCE), now=SLOT - 30 * MINUTE)
    for operation in ("slot_statuses", "drafter", "run", "skip", "note_swept"):
        monkeypatch.setattr(store, operation, None)
    assert swept(store, queue, schedule(**SINCE), now=SLOT - 15 * MINUTE) == Swept()


def test_rows_are_looked_for_once_for_each_drafter_with_due_slots(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, datetime, datetime]] = []
    look = store.slot_statuses

    def looked(drafter: str, first: datetime, last: datetime) -> Mapping[datetime, Status | None]:
        asked.append((drafter, first, last))
        return look(drafter, first, last)

    monkeypatch.setattr(store, "slot_statuses", looked)
    definitions = (schedule(**SINCE), hourly(input=contract(["a", "b"])))
    swept(store, RecordingQueue(), *definitions, now=SLOT + 3 * HOUR + 5 * MINUTE)
    last = SLOT + 3 * HOUR
    assert sorted(asked) == [("a", SLOT, last), ("b", SLOT, last), ("daily-digest", SLOT, SLOT)]


@pytest.mark.parametrize("operation", ["skip", "note_swept", "slot_statuses", "drafter"])
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
def test_a_sweep_that_ends_anywhere_is_made_up_for_by_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch, operation: str, nth: int, after: bool
) -> None:
    definitions = (
        hourly("All", "a", input=contract(["a"], catch_up="all")),
        hourly("Latest", "b", input=contract(["b"])),
        hourly("None", "c", input=contract(["c"], catch_up="none")),
    )
    now = SLOT + 3 * HOUR + 10 * MINUTE
    real: Callable[..., object] = getattr(store, operation)
    calls = 0

    def dies(*given: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls != nth:
            return real(*given, **named)
        if after:
            real(*given, **named)
        raise KeyboardInterrupt

    queue = RecordingQueue()
    with monkeypatch.context() as broken:
        broken.setattr(store, operation, dies)
        with pytest.raises(KeyboardInterrupt):
            swept(store, queue, *definitions, now=now)
    swept(store, queue, *definitions, now=now + MINUTE)
    draft_all(store, queue, now=now + MINUTE)
    swept(store, queue, *definitions, now=SLOT + 9 * HOUR)
    draft_all(store, queue, now=SLOT + 9 * HOUR)
    first = [SLOT + number * HOUR for number in range(4)]
    reasons = {
        "a": ["misfired", "misfired", "nothing_new", "nothing_new"],
        "b": ["misfired", "misfired", "coalesced", "nothing_new"],
        "c": ["missed"] * 4,
    }
    for drafter, expected in reasons.items():
        assert becomes(store, drafter)[:4] == list(zip(first, expected, strict=True))


# What goes wrong


def test_a_broken_schedule_is_named_and_stops_no_other(store: Store) -> None:
    queue = RecordingQueue()
    broken = (
        schedule("BadCron", expression="cron(0 6 * * * *)", **SINCE),
        schedule("BadInput", input=json.dumps({"drafters": ["x"]}), **SINCE),
        schedule("BadZone", timezone="Mars/Olympus", **SINCE),
    )
    for minute in (10, 75):
        done = swept(store, queue, *broken, schedule(**SINCE), now=SLOT + minute * MINUTE)
        assert done.caught_up == (str(KEY),)
        assert [line.split(":")[0] for line in done.broken] == ["BadCron", "BadInput", "BadZone"]
        assert "day-of-month" in done.broken[0]
        assert "window_minutes is missing" in done.broken[1]


class _Flaky(FixedSchedules):
    """Scheduler gives no answer for one of them, and another one goes away after the listing."""

    def get(self, arn: str) -> ScheduleDefinition:
        if arn.endswith("/Silent"):
            raise SchedulesUnavailable("Scheduler gives no answer")
        if arn.endswith("/Gone"):
            return FixedSchedules(()).get(arn)
        return FixedSchedules.get(self, arn)


def test_a_schedule_that_cannot_be_read_now_is_named_and_stops_no_other(store: Store) -> None:
    schedules = _Flaky((schedule("Gone", **SINCE), schedule("Silent", **SINCE), schedule("Zulu", **SINCE)))
    done = sweep(schedules, store, RecordingQueue(), now=SLOT + 10 * MINUTE, trace="", remaining=lambda: HOUR)
    assert done.broken == ("Silent: Scheduler gives no answer",)
    assert done.caught_up == (str(KEY),)


@pytest.mark.parametrize(
    "error",
    [
        UnreadableRow("run monthly-report:x: is no instant"),
        StoreBusy("others hold monthly-report"),
        RowsDisagree("the rows of monthly-report disagree"),
    ],
)
def test_rows_that_cannot_be_read_are_named_and_stop_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monthly = schedule("AMonthly", input=contract(["monthly-report", "nightly-sync"]), **SINCE)
    look = store.slot_statuses

    def damaged(drafter: str, first: datetime, last: datetime) -> Mapping[datetime, Status | None]:
        if drafter == "monthly-report":
            raise error
        return look(drafter, first, last)

    monkeypatch.setattr(store, "slot_statuses", damaged)
    done = swept(store, RecordingQueue(), monthly, schedule(**SINCE), now=SLOT + 10 * MINUTE)
    assert done.caught_up == (*keys("nightly-sync", SLOT), str(KEY))
    assert ["monthly-report" in line for line in done.broken] == [True]
    assert mark(store, "AMonthly") == SINCE["modified"], "the next sweep sees the slot again"


def test_what_cannot_be_sent_is_named_and_sent_by_the_next_sweep(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = RecordingQueue()

    def down(messages: Sequence[RunMessage]) -> None:
        raise QueueUnavailable([str(unsent.key) for unsent in messages], "down")

    with monkeypatch.context() as broken:
        broken.setattr(queue, "send", down)
        done = swept(store, queue, schedule(**SINCE), now=SLOT + 10 * MINUTE)
    assert (done.caught_up, done.broken) == ((), (f"could not send {KEY}: down",))
    assert swept(store, queue, schedule(**SINCE), now=SLOT + 25 * MINUTE).caught_up == (str(KEY),)


def test_what_was_not_sent_since_the_sweep_died_is_sent_by_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = RecordingQueue()

    def dies(messages: Sequence[RunMessage]) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(queue, "send", dies)
        with pytest.raises(KeyboardInterrupt):
            swept(store, queue, schedule(**SINCE), now=SLOT + 10 * MINUTE)
    assert swept(store, queue, schedule(**SINCE), now=SLOT + 25 * MINUTE).caught_up == (str(KEY),)


def test_a_message_that_waits_to_be_sent_puts_off_the_mark_of_its_own_schedule_only(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = RecordingQueue()
    store.skip(message("b", SLOT), SkipReason.GATE, "", now=SLOT)

    def dies(messages: Sequence[RunMessage]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(queue, "send", dies)
    with pytest.raises(KeyboardInterrupt):
        swept(store, queue, hourly("A", "a"), hourly("B", "b"), now=SLOT + 10 * MINUTE)
    assert (mark(store, "A"), mark(store, "B")) == (SLOT, SLOT + 8 * MINUTE + SECOND)


def test_of_several_drafters_only_those_are_asked_for_again_whose_runs_could_not_be_sent(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue takes the first ten messages and none of the others."""
    queue = RecordingQueue()
    both = hourly(input=contract(["a", "b"], catch_up="all", grace_minutes=1440))
    slots = [SLOT + number * HOUR for number in range(10)]
    take = queue.send

    def once(messages: Sequence[RunMessage]) -> None:
        if queue.sent:
            raise QueueUnavailable([str(unsent.key) for unsent in messages], "down")
        take(messages)

    now = slots[-1] + 5 * MINUTE
    with monkeypatch.context() as broken:
        broken.setattr(queue, "send", once)
        assert swept(store, queue, both, now=now).caught_up == keys("a", *slots)
    assert swept(store, queue, both, now=now + 15 * MINUTE).caught_up == keys("b", *slots)
    assert swept(store, queue, both, now=now + 30 * MINUTE).caught_up == ()


@pytest.mark.parametrize(
    "error", [StoreBusy("others hold the rows"), NeverSucceeds("row_too_large", "others hold the rows")]
)
def test_what_cannot_be_noted_after_it_was_sent_is_named(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    swept(store, RecordingQueue(), schedule(**SINCE), now=SLOT - 30 * MINUTE)

    def busy(*given: object, **named: object) -> None:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(store, "note_swept", busy)
        done = swept(store, RecordingQueue(), schedule(**SINCE), now=SLOT + 10 * MINUTE)
    assert (done.caught_up, done.broken) == ((str(KEY),), ("DailyDigest: others hold the rows",))


def test_what_waits_for_another_schedules_message_never_hides_that_a_schedule_changed(store: Store) -> None:
    """The first one's run waits to be sent while the second is swept, whose slots from before have their rows."""
    queue = RecordingQueue()
    second = hourly("Z", "z", created=SLOT - HOUR, modified=SLOT - HOUR)
    swept(store, queue, schedule(**SINCE), second, now=SLOT - 50 * MINUTE)
    store.skip(message("z", SLOT - HOUR), SkipReason.GATE, "", now=SLOT)
    store.skip(message("z", SLOT), SkipReason.GATE, "", now=SLOT)
    changed = replace(second, modified=SLOT + MINUTE)
    assert swept(store, queue, schedule(**SINCE), changed, now=SLOT + 10 * MINUTE).caught_up == (str(KEY),)
    assert [one.definition.modified for one in store.swept_schedules().schedules] == [SLOT - HOUR, changed.modified]


def test_runs_are_sent_in_tens(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    queue = RecordingQueue()
    monkeypatch.setattr(queue, "send", lambda messages: sizes.append(len(messages)))
    definitions = [schedule(f"S{number}", input=contract([f"d{number}"]), **SINCE) for number in range(23)]
    done = swept(store, queue, *definitions, now=SLOT + 10 * MINUTE)
    assert len(done.caught_up) == 23
    assert sizes == [10, 10, 3]


# Time


def test_a_sweep_whose_time_is_up_says_so_and_the_next_one_goes_on_where_it_stopped(store: Store) -> None:
    definitions = [schedule(f"S{number}", input=contract([f"d{number}"]), **SINCE) for number in range(5)]
    queue = RecordingQueue()
    left = [5, 5, 5, 0.5]

    def remaining() -> timedelta:
        return (left.pop(0) if left else 0) * MINUTE

    late = SLOT + 121 * MINUTE
    done = sweep(FixedSchedules(tuple(definitions)), store, queue, now=late, trace="", remaining=remaining)
    assert done.skipped == keys("d0", SLOT)
    assert done.unfinished == (f"S1 goes on with {RunKey('d1', SLOT)}", "3 of 5 schedules wait for the next sweep")
    done = swept(store, queue, *definitions, now=late + 15 * MINUTE)
    assert sorted(done.skipped) == sorted(str(RunKey(f"d{number}", SLOT)) for number in (1, 2, 3, 4))
    assert done.unfinished == ()


def looks(count: int) -> Callable[[], timedelta]:
    """Return a sweep's remaining time, that is up when it was asked for so often."""
    left = [5 * MINUTE] * count
    return lambda: left.pop() if left else timedelta()


def test_a_schedule_that_cannot_be_done_with_does_not_come_first_again_and_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sweep has time for two. The marks of the first three stay where they are: their own messages may come."""
    stuck = [schedule(f"A{number}", input=contract([f"a{number}"], catch_up="none"), **SINCE) for number in range(3)]
    others = [schedule(f"B{number}", input=contract([f"b{number}"], grace_minutes=1), **SINCE) for number in range(2)]
    looked: list[str] = []
    look = store.slot_statuses
    monkeypatch.setattr(store, "slot_statuses", lambda drafter, *given: looked.append(drafter) or look(drafter, *given))
    schedules = FixedSchedules((*others, *stuck))
    for number in range(4):
        now = SLOT + (10 + 15 * number) * MINUTE
        done = sweep(schedules, store, RecordingQueue(), now=now, trace="", remaining=looks(2))
        assert done.unfinished
    # b0 had no time left for its skip, was first in the next sweep, and is done with.
    assert looked == ["a0", "a1", "a2", "b0", "b0", "b1"]
    assert [bool(becomes(store, f"b{number}")) for number in range(2)] == [True, True]


def test_a_schedule_that_takes_all_the_time_of_a_sweep_lets_the_others_have_the_next(store: Store) -> None:
    long = hourly("A", "a", input=contract(["a"], grace_minutes=1))
    short = schedule("B", input=contract(["b"], grace_minutes=1), **SINCE)
    schedules = FixedSchedules((long, short))
    now = SLOT + 9 * HOUR + 30 * MINUTE
    done = [
        sweep(schedules, store, RecordingQueue(), now=now + number * MINUTE, trace="", remaining=looks(4)).skipped
        for number in range(4)
    ]
    hours = [SLOT + number * HOUR for number in range(10)]
    assert done == [
        keys("a", *hours[:3]),
        (*keys("b", SLOT), *keys("a", hours[3])),
        keys("a", *hours[4:7]),
        keys("a", *hours[7:9]),
    ]


def test_where_a_sweep_stopped_is_noted_at_the_last_schedule_that_is_known(store: Store) -> None:
    definitions = [schedule(name, input=contract([name.lower()]), **SINCE) for name in ("A", "Gone", "Z")]
    schedules = _Flaky(tuple(definitions))
    done = sweep(schedules, store, RecordingQueue(), now=SLOT - 30 * MINUTE, trace="", remaining=looks(2))
    assert done.unfinished == ("1 of 3 schedules wait for the next sweep",)
    assert [(one.definition.name, one.stopped) for one in store.swept_schedules().schedules] == [
        ("A", SLOT - 30 * MINUTE)
    ]


def test_a_sweep_that_has_time_for_all_says_nothing_of_where_it_stopped(store: Store) -> None:
    swept(store, RecordingQueue(), schedule(**SINCE), now=SLOT + 10 * MINUTE)
    assert [one.stopped for one in store.swept_schedules().schedules] == [None]


def test_nothing_is_begun_in_the_last_minute(store: Store) -> None:
    seconds = TIME_TO_FINISH.total_seconds()
    late = SLOT + 10 * MINUTE
    assert swept(store, RecordingQueue(), schedule(**SINCE), now=late, minutes=(seconds - 1) / 60).unfinished
    assert swept(store, RecordingQueue(), schedule(**SINCE), now=late, minutes=seconds / 60).caught_up == (str(KEY),)


# The handler


def test_the_handler_sweeps_the_group_of_its_settings(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TABLE", "RUNS_QUEUE_URL", "DEAD_RUNS_QUEUE_URL", "SCHEDULE_GROUP"):
        monkeypatch.setenv(f"GALLEY_{name}", "test")
    counted: list[tuple[str, int]] = []
    monkeypatch.setattr(recover, "count", lambda name, value: counted.append((name, value)))
    outside = Outside(
        store_=store,
        queue_=RecordingQueue(),
        schedules_=FixedSchedules((schedule(**SINCE),)),
        at=datetime(2026, 11, 27, 6, 15, tzinfo=UTC),
    )
    system.install(outside)
    nothing: dict[str, list[str]] = {
        name: []
        for name in (
            *("caught_up", "skipped", "ended", "sent_again", "expired", "superseded"),
            *("overdue", "silent", "broken", "unfinished", "gone"),
        )
    }
    assert recover.handler(event("recover"), Context()) == {**nothing, "caught_up": [str(KEY)]}
    assert counted == []
    outside.at += 30 * MINUTE
    assert recover.handler(event("recover"), Context())["overdue"] == [str(KEY)]
    assert counted == [("run_overdue", 1)]
    short = recover.handler(event("recover"), Context(remaining=30 * SECOND))
    assert short["unfinished"] == ["1 of 1 schedules wait for the next sweep"]


def test_every_sweep_logs_the_zones_that_it_computed_with(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TABLE", "RUNS_QUEUE_URL", "DEAD_RUNS_QUEUE_URL", "SCHEDULE_GROUP"):
        monkeypatch.setenv(f"GALLEY_{name}", "test")
    logged: dict[str, object] = {}
    monkeypatch.setattr(recover.logger, "info", lambda line, *_, extra=None: logged.update({line: extra or {}}))
    system.install(Outside(store_=store, queue_=RecordingQueue(), schedules_=FixedSchedules()))
    answer = recover.handler(event("recover"), Context())
    assert logged["swept"] == {**answer, "tzdata": tzdata_version()}


def test_the_handler_counts_a_run_that_is_being_drafted_past_its_window(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TABLE", "RUNS_QUEUE_URL", "DEAD_RUNS_QUEUE_URL", "SCHEDULE_GROUP"):
        monkeypatch.setenv(f"GALLEY_{name}", "test")
    outside = Outside(
        store_=store, queue_=RecordingQueue(), schedules_=FixedSchedules((schedule(**SINCE),)), at=SLOT + 10 * MINUTE
    )
    system.install(outside)
    recover.handler(event("recover"), Context())
    (sent,) = outside.queue_.sent  # type: ignore[union-attr]
    claimed = _claimed(store, sent)
    outside.at = SLOT + 31 * MINUTE
    assert recover.handler(event("recover"), Context())["overdue"] == [str(KEY)]
    store.postpone(claimed, RetryLater("overloaded", ""), Bill(), now=outside.at, next_attempt=outside.at + HOUR)
    assert recover.handler(event("recover"), Context())["overdue"] == [str(KEY)]


def _claimed(store: Store, asked: RunMessage) -> Run:
    limits = Limits(pending=1, daily_budget_nanousd=None, worst_cost_nanousd=0)
    claimed = store.claim(asked, limits, owner="worker", now=SLOT + 11 * MINUTE, lease_until=SLOT + HOUR)
    assert isinstance(claimed, Claimed)
    return claimed.run


@pytest.mark.guarantee("G4")
@pytest.mark.parametrize("change", [{"enabled": False}, {"expression": "cron(30 * * * ? *)"}])
def test_g4_a_slot_from_before_a_schedules_change_still_gets_its_outcome(
    store: Store, change: dict[str, object]
) -> None:
    """It was sent, and its message died without our code running; then somebody changed the schedule."""
    queue = RecordingQueue()
    before = hourly(input=contract(["hourly-monitor"], grace_minutes=60), created=SLOT, modified=SLOT)
    sent = swept(store, queue, before, now=SLOT + 10 * MINUTE)
    assert sent.caught_up == keys("hourly-monitor", SLOT)
    after = hourly(input=before.input, created=SLOT, modified=SLOT + 20 * MINUTE, **{"enabled": True, **change})
    waits = swept(store, queue, after, now=SLOT + 55 * MINUTE)
    assert waits.skipped == ()
    assert former_marks(store) == [SLOT]
    done = swept(store, queue, after, now=SLOT + 62 * MINUTE)
    assert done.skipped == keys("hourly-monitor", SLOT)
    assert becomes(store, "hourly-monitor")[0] == (SLOT, "misfired")
    assert swept(store, queue, after, now=SLOT + 63 * MINUTE).skipped == ()


@pytest.mark.guarantee("G4")
@pytest.mark.parametrize("catch_up", ["latest", "all", "none"])
def test_g4_slots_of_a_pause_that_ended_in_an_outage_are_paused_and_not_caught_up(store: Store, catch_up: str) -> None:
    """Neither ticks nor sweeps ran meanwhile, and somebody resumed the drafter before the first of them did."""
    queue = RecordingQueue()
    watch = hourly(input=contract(["hourly-monitor"], grace_minutes=1440, catch_up=catch_up))
    swept(store, queue, watch, now=SLOT + 5 * MINUTE)
    store.pause("hourly-monitor", "by ada", now=SLOT + 90 * MINUTE)
    store.resume("hourly-monitor", now=SLOT + 5 * HOUR)
    for minutes in (10, 25):
        done = swept(store, queue, watch, now=SLOT + 6 * HOUR + minutes * MINUTE)
        paused = [(slot - SLOT) // HOUR for slot, reason in becomes(store, "hourly-monitor") if reason == "paused"]
        assert (paused, done.broken) == ([2, 3, 4], ())
        draft_all(store, queue, now=SLOT + 6 * HOUR + minutes * MINUTE)


@pytest.mark.guarantee("G4")
@pytest.mark.parametrize("change", [{"enabled": False}, {"expression": "cron(50 * * * ? *)"}])
@pytest.mark.parametrize("modified", [0.5, 30, 119, 121])
@pytest.mark.parametrize("looked", [1, 60, 121, 150, 300])
def test_g4_a_slot_whose_schedule_was_changed_while_its_tick_was_on_its_way_gets_its_outcome(
    store: Store, change: dict[str, object], modified: float, looked: int
) -> None:
    """Its tick was lost, and a sweep came right after the change: the slot is too young to be looked at then."""
    queue = RecordingQueue()
    before = hourly(created=SLOT - HOUR, modified=SLOT - HOUR)
    after = replace(before, modified=SLOT + modified * SECOND, **change)
    swept(store, queue, before, now=SLOT - 10 * MINUTE)
    draft_all(store, queue, now=SLOT - 10 * MINUTE)
    for minutes in (0, 15, 30):
        now = SLOT + looked * SECOND + minutes * MINUTE
        swept(store, queue, before if now < after.modified else after, now=now)
        draft_all(store, queue, now=now)
    assert becomes(store, "hourly-monitor") == [(SLOT - HOUR, "nothing_new"), (SLOT, "nothing_new")]
    (noted,) = store.swept_schedules().schedules
    assert noted.definition == after, "and from then on the schedule is swept by its new definition"


@pytest.mark.guarantee("G9")
@pytest.mark.parametrize("catch_up", ["latest", "all", "none"])
def test_g9_a_schedule_that_was_switched_off_and_on_while_a_slot_waited_gets_no_slot_in_between(
    store: Store, catch_up: str
) -> None:
    """Nothing was drafted for hours, so somebody disabled the schedule, and enabled it when all was well again."""
    queue = RecordingQueue()
    watch = hourly(input=contract(["hourly-monitor"], grace_minutes=600, catch_up=catch_up))
    disabled = replace(watch, enabled=False, modified=SLOT + 30 * MINUTE)
    enabled = replace(watch, modified=SLOT + 4.5 * HOUR)
    for quarter in range(60):
        now = SLOT + quarter * 15 * MINUTE + 5 * MINUTE
        deployed = watch if now < disabled.modified else disabled if now < enabled.modified else enabled
        swept(store, queue, deployed, now=now)
        if now > SLOT + 5 * HOUR:
            draft_all(store, queue, now=now)
    slots = [(slot - SLOT) // HOUR for slot, _ in becomes(store, "hourly-monitor")]
    assert slots == [0, *range(5, 15 if catch_up != "none" else 5)]
    assert former_marks(store) == []


@pytest.mark.guarantee("G4")
def test_g4_slots_of_a_changed_schedule_do_not_wait_for_the_grace_of_its_former_ones(store: Store) -> None:
    queue = RecordingQueue()
    before = hourly(input=contract(["hourly-monitor"], grace_minutes=50_000))
    swept(store, queue, before, now=SLOT + 5 * MINUTE)
    after = hourly(
        input=contract(["hourly-monitor"], grace_minutes=60),
        modified=SLOT + 30 * MINUTE,
        expression="cron(15 * * * ? *)",
    )
    for quarter in range(3, 12):
        swept(store, queue, after, now=SLOT + quarter * 15 * MINUTE + 5 * MINUTE)
    lost = [SLOT + 75 * MINUTE]
    assert becomes(store, "hourly-monitor") == [(slot, "misfired") for slot in lost]
    assert former_marks(store) == [SLOT]


def test_a_former_definition_is_asked_for_once_an_hour_too(store: Store) -> None:
    queue = RecordingQueue()
    before = hourly(input=contract(["hourly-monitor"], grace_minutes=600, catch_up="all"))
    after = replace(before, modified=SLOT + 30 * MINUTE, expression="cron(45 * * * ? *)")
    sent: list[list[str]] = []
    for quarter in range(9):
        now = SLOT + quarter * 15 * MINUTE + 5 * MINUTE
        sent.append([str(key) for key in swept(store, queue, before if quarter < 2 else after, now=now).caught_up])
    old, new, newer = keys("hourly-monitor", SLOT, SLOT + 45 * MINUTE, SLOT + 105 * MINUTE)
    assert sent == [[old], [], [], [new], [old], [], [], [new, newer], [old]]


def test_what_could_not_be_sent_for_a_former_definition_is_asked_for_by_the_next_sweep(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = RecordingQueue()
    before = hourly(input=contract(["hourly-monitor"], grace_minutes=600, catch_up="all"))
    after = replace(before, modified=SLOT + 30 * MINUTE, expression="cron(45 * * * ? *)")
    swept(store, queue, before, now=SLOT + MINUTE)

    def down(messages: Sequence[RunMessage]) -> None:
        raise QueueUnavailable([str(unsent.key) for unsent in messages], "down")

    with monkeypatch.context() as broken:
        broken.setattr(queue, "send", down)
        assert swept(store, queue, after, now=SLOT + 35 * MINUTE).caught_up == ()
    assert swept(store, queue, after, now=SLOT + 40 * MINUTE).caught_up == keys("hourly-monitor", SLOT)


def test_of_a_former_definitions_input_only_what_it_says_is_kept(store: Store) -> None:
    """Scheduler takes an input of 256 KB, which may be all white space; a row holds 400 KB."""
    queue = RecordingQueue()
    before = hourly(input=contract(["hourly-monitor"], silence_slots=5) + " " * 200_000)
    swept(store, queue, before, now=SLOT + 5 * MINUTE)
    swept(store, queue, replace(before, modified=SLOT + HOUR / 4), now=SLOT + HOUR / 2)
    (former,) = store.swept_schedules().schedules[0].former
    assert json.loads(former.definition.input) == json.loads(contract(["hourly-monitor"], grace_minutes=120))


def test_a_change_of_which_too_much_is_to_be_remembered_stops_no_other_schedule(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = store.note_swept

    def too_large(known: SweptSchedule, *, now: datetime) -> None:
        if known.definition.name == "DailyDigest":
            raise NeverSucceeds("draft_too_large", "a row would be larger than DynamoDB holds")
        note(known, now=now)

    monkeypatch.setattr(store, "note_swept", too_large)
    done = swept(store, RecordingQueue(), schedule(**SINCE), hourly(), now=SLOT + 10 * MINUTE)
    assert done.broken == ("DailyDigest: a row would be larger than DynamoDB holds",)
    assert done.caught_up == keys("hourly-monitor", SLOT)


@pytest.mark.parametrize("wrong", [{"input": "{}"}, {"expression": "cron(0 6 * * * *)"}, {"timezone": "Mars/Olympus"}])
def test_a_schedule_whose_old_definition_cannot_be_read_is_swept_by_its_new_one(
    store: Store, wrong: dict[str, str]
) -> None:
    queue = RecordingQueue()
    broken = swept(store, queue, hourly(**wrong, created=SLOT, modified=SLOT), now=SLOT + 10 * MINUTE)
    assert len(broken.broken) == 1
    mended = hourly(created=SLOT, modified=SLOT + 20 * MINUTE)
    assert swept(store, queue, mended, now=SLOT + 70 * MINUTE).caught_up == keys("hourly-monitor", SLOT + HOUR)
