"""What a sweep over many schedules asks of AWS: it grows with what changed and what was due, and with nothing else."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

import recover
from galley import system
from support.many_schedules import CREATED, HOUR, Requests, Stack
from support.outside import Context, event
from sweep import sweep

MINUTE = timedelta(minutes=1)
SIZES = (40, 400)


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TABLE", "RUNS_QUEUE_URL", "DEAD_RUNS_QUEUE_URL", "SCHEDULE_GROUP"):
        monkeypatch.setenv(f"GALLEY_{name}", "test")


def asked(stack: Stack, now: datetime) -> Requests:
    """Sweep once, with all that the function does; return what it asked."""
    stack.requests.clear()
    system.install(stack.outside(now))
    answer = recover.handler(event("recover"), Context())
    assert (answer["broken"], answer["unfinished"]) == ([], [])
    return Counter(stack.requests)


def swept_once(size: int) -> Stack:
    """Return a stack that was swept right after it was deployed."""
    stack = Stack(size)
    asked(stack, CREATED + MINUTE)
    return stack


def pages(size: int) -> Requests:
    """Return what every sweep asks: the pages of what is listed."""
    return Counter({"ListSchedules": -(-size // 100), "Query schedules": 1, "Query watched": 3})


@pytest.mark.parametrize("size", SIZES)
def test_a_sweep_in_which_nothing_changed_and_nothing_was_due_asks_for_its_pages_alone(size: int) -> None:
    assert asked(swept_once(size), CREATED + 16 * MINUTE) == pages(size)


@pytest.mark.parametrize("size", SIZES)
def test_each_changed_schedule_costs_one_request_and_one_write(size: int) -> None:
    new = Stack(size)
    assert asked(new, CREATED + MINUTE) == pages(size) + Counter({"GetSchedule": size, "Write schedule": size})
    for number in range(7):
        new.deploy(number, CREATED + 2 * MINUTE)
    assert asked(new, CREATED + 16 * MINUTE) == pages(size) + Counter({"GetSchedule": 7, "Write schedule": 7})


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("hours", [1, 8])
def test_each_schedule_with_due_slots_costs_one_query_and_one_write_however_many_they_are(
    size: int, hours: int
) -> None:
    stack = swept_once(size)
    for hour in range(hours):
        stack.draft(CREATED + 30 * MINUTE + hour * HOUR)
    now = CREATED + 30 * MINUTE + (hours - 1) * HOUR + 10 * MINUTE
    assert asked(stack, now) == pages(size) + Counter({"Query slots": size, "Write schedule": size})
    assert asked(stack, now + 15 * MINUTE) == pages(size)


@pytest.mark.parametrize("size", SIZES)
def test_history_costs_nothing(size: int) -> None:
    stack = swept_once(size)
    for hour in range(200):
        stack.draft(CREATED + 30 * MINUTE + hour * HOUR)
    asked(stack, CREATED + 30 * MINUTE + 199 * HOUR + 10 * MINUTE)
    stack.draft(CREATED + 30 * MINUTE + 200 * HOUR)
    once_more = asked(stack, CREATED + 30 * MINUTE + 200 * HOUR + 10 * MINUTE)
    assert once_more == pages(size) + Counter({"Query slots": size, "Write schedule": size})


@pytest.mark.parametrize("size", SIZES)
def test_a_missed_slot_costs_a_look_at_the_pause_and_a_tenth_of_a_request_and_that_once_an_hour(size: int) -> None:
    stack = swept_once(size)
    slot = CREATED + 30 * MINUTE
    stack.draft(slot, range(20, size))
    missed = {"Query slots": size, "GetItem": 20, "SendMessageBatch": 2, "Write schedule": size}
    assert asked(stack, slot + 10 * MINUTE) == pages(size) + Counter(missed)
    waits = {"Query slots": 20, "GetItem": 20}
    assert asked(stack, slot + 25 * MINUTE) == pages(size) + Counter(waits)


# In pages, within its time


def looks(count: int) -> Callable[[], timedelta]:
    """Return a sweep's remaining time, that is up when it was asked for so often."""
    left = [5 * MINUTE] * count
    return lambda: left.pop() if left else timedelta()


def queried(stack: Stack, now: datetime, looked_at: int) -> tuple[int, tuple[str, ...]]:
    """Sweep with time for so many schedules; return how many rows were asked for, and what was left."""
    stack.requests.clear()
    done = sweep(stack.schedules, stack.store, stack.queue, now=now, trace="", remaining=looks(looked_at))
    return stack.requests["Query slots"], done.unfinished


def test_a_sweep_goes_on_where_the_last_one_had_to_stop() -> None:
    stack = swept_once(250)
    slot = CREATED + 30 * MINUTE
    stack.draft(slot)
    left = [queried(stack, slot + minute * MINUTE, 100) for minute in (10, 25, 40)]
    assert left == [
        (100, ("150 of 250 schedules wait for the next sweep",)),
        (100, ("150 of 250 schedules wait for the next sweep",)),
        (50, ("150 of 250 schedules wait for the next sweep",)),
    ]
    known = stack.store.swept_schedules().schedules
    assert {one.swept_until > slot for one in known} == {True}


def test_schedules_whose_slots_cannot_be_done_with_leave_the_others_their_turn() -> None:
    """The first sixty never have a row, and the table gives no answer for some of them."""
    stack = swept_once(100)
    slot = CREATED + 30 * MINUTE
    stack.draft(slot, range(60, 100))
    stack.table.busy = {f"RUN#{stack.name(number)}" for number in range(10)}
    for minute in (10, 25, 40):
        queried(stack, slot + minute * MINUTE, 50)
    done = {one.definition.name for one in stack.store.swept_schedules().schedules if one.swept_until > slot}
    assert done == {stack.name(number) for number in range(60, 100)}
