"""A drafter without a draft for so many due slots: when that is told, how often, and when it is over."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count

import pytest

import sweep as sweeping
from galley.contract import InvalidTick, read_tick
from galley.drafts import Draft
from galley.runs import Origin, RunMessage, SkipReason, Status
from galley.schedules import ScheduleDefinition
from galley.store import Bill, Claimed, Limits, Settled, Store, StoreBusy
from silence import first_in_flight, silent_since
from support.outside import CONTRACT, SLOT, FixedSchedules, RecordingQueue, schedule
from sweep import SETTLING, Swept, sweep

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
LIMITS = Limits(pending=1_000, daily_budget_nanousd=None, worst_cost_nanousd=0)
DRAFT = Draft(title="Morning", body="Two mails.", items=(), warnings=(), model="offline")
SLOTS = tuple(SLOT + number * HOUR for number in range(10))
OWNERS = count()

E, F, S = Status.EMPTY, Status.FAILED, Status.SKIPPED
P, D, Q = Status.PENDING, Status.DRAFTING, Status.QUEUED
WITH_A_DRAFT = (
    P, Status.APPROVED, Status.REJECTED, Status.EXPIRED, Status.SUPERSEDED, Status.PUBLISHED, Status.PUBLISH_UNKNOWN,
)  # fmt: skip


def rows(*statuses: Status | None) -> dict[datetime, Status | None]:
    """Return what has become of the first slots, in order."""
    return dict(zip(SLOTS, statuses, strict=False))


# The decision


@pytest.mark.parametrize(
    ("statuses", "since"),
    [
        pytest.param((E, F, S), 0, id="empty, failed and skipped are no draft"),
        pytest.param((P, E, E, E), 1, id="from the first slot after the last draft on"),
        pytest.param((E, E), None, id="too few"),
        pytest.param((E, E, P), None, id="a draft at last"),
        pytest.param((E, P, E, E), None, id="a draft among them"),
        pytest.param((E, E, D), None, id="what is being drafted says nothing yet"),
        pytest.param((E, E, Q), None, id="nor does what is queued"),
        pytest.param((E, D, E, E), 0, id="those with an outcome are counted"),
        pytest.param((E, E, None), None, id="what a newer version wrote says nothing"),
    ],
)
def test_a_drafter_is_silent_after_so_many_slots_without_a_draft(
    statuses: tuple[Status | None, ...], since: int | None
) -> None:
    found = silent_since(SLOTS[: len(statuses)], rows(*statuses), silence_slots=3, known=None)
    assert found == (None if since is None else SLOTS[since])


def test_a_slot_without_a_row_says_nothing_yet() -> None:
    assert silent_since(SLOTS[:4], rows(E, E), silence_slots=3, known=None) is None


@pytest.mark.parametrize("status", WITH_A_DRAFT)
def test_whatever_was_decided_about_a_draft_it_was_one(status: Status) -> None:
    assert silent_since(SLOTS[:4], rows(E, E, E, status), silence_slots=3, known=SLOTS[0]) is None


def test_a_silence_lasts_until_a_later_slot_has_its_draft() -> None:
    assert silent_since(SLOTS[3:5], {SLOTS[3]: E, SLOTS[4]: D}, silence_slots=3, known=SLOTS[0]) == SLOTS[0]
    assert silent_since(SLOTS[3:5], {SLOTS[3]: E, SLOTS[4]: P}, silence_slots=3, known=SLOTS[0]) is None
    before = {SLOTS[0]: P, SLOTS[1]: E, SLOTS[2]: E}
    assert silent_since(SLOTS[1:3], before, silence_slots=3, known=SLOTS[1]) == SLOTS[1]
    sent_again = rows(P, E, E)
    assert silent_since(SLOTS[:3], sent_again, silence_slots=3, known=SLOTS[0]) is None
    again = rows(E, E, E, P, E, E, E)
    assert silent_since(SLOTS[:7], again, silence_slots=3, known=SLOTS[0]) == SLOTS[4]


def test_a_draft_at_another_instant_than_a_slot_counts_too() -> None:
    by_hand: Mapping[datetime, Status | None] = {**rows(E, E, E), SLOTS[1] + 17 * MINUTE: P}
    assert silent_since(SLOTS[:3], by_hand, silence_slots=3, known=None) is None


def test_the_first_run_in_flight_is_where_the_next_look_begins() -> None:
    assert first_in_flight(SLOTS[:4], rows(E, Q, D, P)) == SLOTS[1]
    assert first_in_flight(SLOTS[:4], rows(E, P)) is None


# The sweep


def watched(silence_slots: int | None = 3, **change: object) -> ScheduleDefinition:
    """Return an hourly schedule from ``SLOT`` on, whose drafter is watched."""
    tick = {"drafters": ["digest"], "window_minutes": 30, "grace_minutes": 45, "catch_up": "latest"}
    if silence_slots is not None:
        tick["silence_slots"] = silence_slots
    own = {"expression": "cron(0 * * * ? *)", "timezone": "UTC", "created": SLOT, "modified": SLOT}
    return schedule("Hourly", **{**own, "input": json.dumps(tick), **change})


def swept(store: Store, definition: ScheduleDefinition, *, now: datetime) -> Swept:
    schedules = FixedSchedules((definition,))
    return sweep(schedules, store, RecordingQueue(), now=now, trace="", remaining=lambda: HOUR)


def becomes(store: Store, slot: datetime, status: Status, *, origin: Origin = Origin.SCHEDULE) -> None:
    """Let a run come to a status; DRAFTING leaves it claimed."""
    asked = RunMessage(drafter="digest", slot=slot, origin=origin, contract=CONTRACT)
    if status is Status.SKIPPED:
        store.skip(asked, SkipReason.GATE, "", now=slot)
        return
    claimed = store.claim(asked, LIMITS, owner=f"worker {next(OWNERS)}", now=slot, lease_until=slot)
    assert isinstance(claimed, Claimed)
    match status:
        case Status.DRAFTING:
            return
        case Status.PENDING:
            done = store.store(claimed.run, DRAFT, {}, Bill(), now=slot)
        case _:
            done = store.release(claimed.run, status, "nothing_new", "", Bill(), now=slot)
    assert isinstance(done, Settled)


def told(store: Store, *statuses: Status, definition: ScheduleDefinition | None = None) -> list[int]:
    """Let each slot come to a status and sweep ten minutes after it; return the numbers of those with a silence."""
    one = definition or watched()
    numbers = []
    for number, status in enumerate(statuses):
        becomes(store, SLOTS[number], status)
        if swept(store, one, now=SLOTS[number] + 10 * MINUTE).silent:
            numbers.append(number)
    return numbers


def since(store: Store) -> datetime | None:
    (known,) = store.swept_schedules().schedules
    return known.drafters["digest"].silent_since if "digest" in known.drafters else None


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(sweeping, "count_at_once", names.append)
    return names


def test_a_silence_is_told_once_and_again_when_another_begins(store: Store, counted: list[str]) -> None:
    assert told(store, P, E, F, S, E, E, P, E, E, E) == [3, 9]
    assert counted == ["drafter_silent"] * 2
    assert since(store) == SLOTS[7]


def test_while_a_silence_goes_on_nothing_says_that_it_is_over(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    assert told(store, E, E, E, E, E) == [2]
    assert not [line for line in caplog.messages if "drafts again" in line]


def test_a_draft_that_came_while_the_sweep_looked_ends_the_silence_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(store, E, E, E)
    skip = store.skip

    def late(message: RunMessage, reason: SkipReason, detail: str, *, now: datetime) -> object:
        if message.slot == SLOTS[3]:
            becomes(store, SLOTS[3], P)
        return skip(message, reason, detail, now=now)

    monkeypatch.setattr(store, "skip", late)
    swept(store, watched(), now=SLOTS[3] + 50 * MINUTE)
    assert since(store) is None


def test_a_silence_is_over_once_a_draft_comes(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    told(store, E, E, E)
    assert since(store) == SLOTS[0]
    becomes(store, SLOTS[3], P)
    assert swept(store, watched(), now=SLOTS[3] + 10 * MINUTE) == Swept()
    assert since(store) is None
    assert "digest drafts again; it was silent since 2026-11-27T06:00:00Z" in caplog.messages


def test_a_silence_is_not_forgotten_when_the_rows_cannot_be_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    told(store, E, E, E)

    def busy(*given: object) -> None:
        raise StoreBusy("others hold the rows")

    tick = {**json.loads(watched().input), "drafters": ["another", "digest"]}
    look = store.slot_statuses
    monkeypatch.setattr(store, "slot_statuses", lambda name, *given: busy() if name == "digest" else look(name, *given))
    both = watched(input=json.dumps(tick), modified=SLOTS[2] + 30 * MINUTE)
    assert swept(store, both, now=SLOTS[3] + 10 * MINUTE).broken == ("Hourly, digest: others hold the rows",)
    assert since(store) == SLOTS[0]


def test_the_line_names_the_drafter_its_schedule_and_since_when(store: Store) -> None:
    for slot in SLOTS[:3]:
        becomes(store, slot, E)
    assert swept(store, watched(), now=SLOTS[2] + 10 * MINUTE).silent == (
        "digest: no draft for 3 due slots of Hourly or more, since 2026-11-27T06:00:00Z",
    )


def test_a_drafter_that_nobody_watches_is_never_silent(store: Store) -> None:
    assert told(store, E, E, E, E, E, definition=watched(None)) == []


def test_a_run_in_flight_is_looked_at_again_until_it_has_its_outcome(store: Store) -> None:
    told(store, E, E, D)
    (known,) = store.swept_schedules().schedules
    assert known.swept_until > SLOTS[2], "the slot has its row"
    assert known.drafters["digest"].in_flight == SLOTS[2]
    asked = RunMessage(drafter="digest", slot=SLOTS[2], origin=Origin.SCHEDULE, contract=CONTRACT)
    again = store.claim(asked, LIMITS, owner="again", now=SLOTS[2] + MINUTE, lease_until=SLOTS[2] + HOUR)
    assert isinstance(again, Claimed)
    assert swept(store, watched(), now=SLOTS[2] + 25 * MINUTE).silent == ()
    store.release(again.run, F, "refusal", "", Bill(), now=SLOTS[2] + 26 * MINUTE)
    assert len(swept(store, watched(), now=SLOTS[2] + 40 * MINUTE).silent) == 1, "not only with the next slot"
    assert swept(store, watched(), now=SLOTS[2] + 55 * MINUTE) == Swept()


def test_slots_that_the_sweep_itself_skips_are_counted_at_once(store: Store) -> None:
    done = swept(store, watched(), now=SLOTS[5] + 50 * MINUTE)
    assert len(done.skipped) == 6
    assert done.silent == ("digest: no draft for 3 due slots of Hourly or more, since 2026-11-27T06:00:00Z",)


def test_a_draft_that_a_person_asked_for_ends_a_silence_too(store: Store) -> None:
    told(store, E, E, E)
    becomes(store, SLOTS[2] + 30 * MINUTE, P, origin=Origin.MANUAL)
    becomes(store, SLOTS[3], E)
    swept(store, watched(), now=SLOTS[3] + 10 * MINUTE)
    assert since(store) is None


def test_slots_from_before_a_schedules_change_are_not_counted_and_a_silence_outlasts_it(store: Store) -> None:
    assert told(store, E, E) == []
    changed = watched(modified=SLOTS[1] + 30 * MINUTE)
    becomes(store, SLOTS[2], E)
    assert swept(store, changed, now=SLOTS[2] + 10 * MINUTE).silent == ()
    becomes(store, SLOTS[3], E)
    becomes(store, SLOTS[4], E)
    assert len(swept(store, changed, now=SLOTS[4] + 10 * MINUTE).silent) == 1
    once_more = replace(changed, modified=SLOTS[4] + 30 * MINUTE)
    becomes(store, SLOTS[5], E)
    assert swept(store, once_more, now=SLOTS[5] + 10 * MINUTE).silent == ()
    assert since(store) == SLOTS[2]


def test_a_silence_costs_no_query_of_its_own(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[datetime, datetime]] = []
    look = store.slot_statuses

    def looked(drafter: str, first: datetime, last: datetime) -> Mapping[datetime, Status | None]:
        asked.append((first, last))
        return look(drafter, first, last)

    monkeypatch.setattr(store, "slot_statuses", looked)
    told(store, E, E, E, E, E)
    assert swept(store, watched(), now=SLOTS[4] + 25 * MINUTE) == Swept()
    assert asked == [(SLOTS[max(0, number - 3)], SLOTS[number]) for number in range(5)]


@pytest.mark.parametrize("dies", ["before it is noted", "after it is noted"])
def test_a_silence_is_told_at_least_once_wherever_the_sweep_dies(
    store: Store, monkeypatch: pytest.MonkeyPatch, counted: list[str], dies: str
) -> None:
    for slot in SLOTS[:3]:
        becomes(store, slot, E)
    now = SLOTS[2] + 10 * MINUTE
    swept(store, watched(), now=SLOT + MINUTE)
    note = store.note_swept

    def die(*given: object, **named: object) -> None:
        if dies == "after it is noted":
            note(*given, **named)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(store, "note_swept", die)
        with pytest.raises(KeyboardInterrupt):
            swept(store, watched(), now=now)
    assert counted == ["drafter_silent"]
    swept(store, watched(), now=now + 15 * MINUTE)
    assert len(counted) == (2 if dies == "before it is noted" else 1)
    assert swept(store, watched(), now=now + 30 * MINUTE).silent == ()


def test_a_silence_that_cannot_be_noted_is_told_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, counted: list[str]
) -> None:
    told(store, E, E)
    becomes(store, SLOTS[2], E)

    def busy(*given: object, **named: object) -> None:
        raise StoreBusy("others hold the rows")

    with monkeypatch.context() as broken:
        broken.setattr(store, "note_swept", busy)
        assert swept(store, watched(), now=SLOTS[2] + 10 * MINUTE).broken == ("Hourly: others hold the rows",)
    swept(store, watched(), now=SLOTS[2] + 25 * MINUTE)
    swept(store, watched(), now=SLOTS[2] + 40 * MINUTE)
    assert counted == ["drafter_silent"] * 2


# The contract


def test_only_the_schedules_input_holds_the_number_and_no_message_does() -> None:
    tick = read_tick(watched(5).input)
    assert tick.silence_slots == 5
    assert "silence_slots" not in tick.contract.model_dump()
    assert read_tick(watched(None).input).silence_slots is None


@pytest.mark.parametrize("wrong", [0, -1, 367, "3", 2.5, True])
def test_a_number_of_slots_that_is_none_is_refused_by_its_name(wrong: object) -> None:
    tick = {**json.loads(watched(None).input), "silence_slots": wrong}
    with pytest.raises(InvalidTick, match="silence_slots"):
        read_tick(json.dumps(tick))


def test_slots_before_a_moment_come_oldest_first_and_not_from_before_the_last_change() -> None:
    hourly = watched(modified=SLOTS[2] + MINUTE)
    assert hourly.due_before(SLOTS[6], 2) == SLOTS[4:6]
    assert hourly.due_before(SLOTS[6], 99) == SLOTS[3:6]
    assert hourly.due_before(SLOTS[3], 3) == ()
    yearly = watched(expression="cron(0 6 1 1 ? *)", created=SLOT - 4000 * 24 * HOUR, modified=SLOT - 4000 * 24 * HOUR)
    assert [slot.year for slot in yearly.due_before(SLOT, 3)] == [2024, 2025, 2026]
    never = watched(expression="cron(0 6 30 2 ? *)")
    assert never.due_before(SLOT + 9 * HOUR, 3) == ()
    assert watched(enabled=False).due_before(SLOTS[6], 2) == ()


def test_the_settling_time_holds_for_silence_too(store: Store) -> None:
    told(store, E, E)
    becomes(store, SLOTS[2], E)
    assert swept(store, watched(), now=SLOTS[2] + SETTLING - timedelta(seconds=1)).silent == ()
    assert len(swept(store, watched(), now=SLOTS[2] + SETTLING).silent) == 1
