"""What becomes of what the sweep knows of a schedule that was deleted."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from galley.schedules import ScheduleDefinition, ScheduleSummary, SchedulesUnavailable
from galley.store import Claimed, Limits, Store, StoreBusy, SweptSchedule, UnreadableRow
from support.outside import SLOT, FixedSchedules, RecordingQueue, message, schedule
from sweep import Swept, sweep

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NOTHING = Swept((), (), (), (), ())
HOURLY_FIELDS = {"expression": "cron(0 * * * ? *)", "timezone": "UTC", "created": SLOT, "modified": SLOT}
HOURLY = schedule("Hourly", **HOURLY_FIELDS)


def swept(store: Store, schedules: FixedSchedules, hours: float, *, minutes_left: float = 5) -> Swept:
    now = SLOT + hours * HOUR + 5 * MINUTE
    return sweep(schedules, store, RecordingQueue(), now=now, trace="sweep", remaining=lambda: minutes_left * MINUTE)


def known(store: Store) -> list[str]:
    return [one.definition.name for one in store.swept_schedules().schedules]


def drafted(store: Store, *hours: int) -> None:
    for hour in hours:
        slot = SLOT + hour * HOUR
        claimed = store.claim(
            message(slot=slot), Limits(99, None, 0), owner=str(slot), now=slot, lease_until=slot + HOUR
        )
        assert isinstance(claimed, Claimed)


def test_a_schedule_that_is_deleted_is_told_once_and_forgotten(store: Store) -> None:
    drafted(store, 0, 1)
    swept(store, FixedSchedules((HOURLY,)), 1)
    assert swept(store, FixedSchedules(), 1.1).gone == (
        "schedule Hourly is deleted; each slot that it was due at has its row",
    )
    assert known(store) == []
    assert swept(store, FixedSchedules(), 2) == NOTHING


def test_runs_without_a_row_are_named_and_get_none(store: Store) -> None:
    drafted(store, 0, 2)
    swept(store, FixedSchedules((HOURLY,)), 0)
    (line,) = swept(store, FixedSchedules(), 5).gone
    assert line == (
        "schedule Hourly is deleted; 4 runs without a row may have been due before: daily-digest:2026-11-27T07:00:00Z, "
        "daily-digest:2026-11-27T09:00:00Z, daily-digest:2026-11-27T10:00:00Z and 1 more"
    )
    assert [run.slot for run in store.history("daily-digest").runs] == [SLOT + 2 * HOUR, SLOT]


@pytest.mark.guarantee("G9")
def test_g9_no_slot_is_invented_between_a_deletion_and_a_new_schedule_of_that_name(store: Store) -> None:
    drafted(store, 0)
    swept(store, FixedSchedules((HOURLY,)), 0)
    swept(store, FixedSchedules(), 0.25)
    later = schedule("Hourly", expression="cron(0 * * * ? *)", created=SLOT + 9 * HOUR, modified=SLOT + 9 * HOUR)
    done = swept(store, FixedSchedules((later,)), 9)
    assert (done.caught_up, done.skipped, done.gone) == (("daily-digest:2026-11-27T15:00:00Z",), (), ())


def made_again(hours: float, **change: object) -> ScheduleDefinition:
    """Return the hourly schedule as it is deployed under the same name by whoever deleted it before."""
    at = SLOT + hours * HOUR
    return schedule("Hourly", **{**HOURLY_FIELDS, "created": at, "modified": at, **change})


@pytest.mark.guarantee("G9")
@pytest.mark.parametrize("catch_up", ["latest", "all", "none"])
def test_g9_no_slot_is_invented_where_a_schedule_was_deleted_and_made_again_between_two_sweeps(
    store: Store, catch_up: str
) -> None:
    contract = {"window_minutes": 30, "grace_minutes": 1440, "catch_up": catch_up}
    before = schedule("Hourly", **HOURLY_FIELDS, input=json.dumps({"drafters": ["daily-digest"], **contract}))
    drafted(store, 0, 2)
    swept(store, FixedSchedules((before,)), 0)
    done = swept(store, FixedSchedules((made_again(9.5, input=before.input),)), 9.75)
    assert (done.caught_up, done.skipped) == ((), ())
    assert done.gone == (
        "schedule Hourly was deleted and made again at 2026-11-27T15:30:00Z; 8 runs without a row may have been due "
        "before: daily-digest:2026-11-27T07:00:00Z, daily-digest:2026-11-27T09:00:00Z, "
        "daily-digest:2026-11-27T10:00:00Z and 5 more",
    )
    assert [run.slot for run in store.history("daily-digest").runs] == [SLOT + 2 * HOUR, SLOT]
    assert swept(store, FixedSchedules((made_again(9.5, input=before.input),)), 9.8) == NOTHING, "it is told once"
    (noted,) = store.swept_schedules().schedules
    assert (noted.definition.created, noted.swept_until) == (SLOT + 9.5 * HOUR, SLOT + 9.5 * HOUR)


def test_runs_of_a_deleted_schedules_former_definitions_are_named_too(store: Store) -> None:
    swept(store, FixedSchedules((HOURLY,)), 0)
    changed = schedule("Hourly", **{**HOURLY_FIELDS, "expression": "cron(40 * * * ? *)", "modified": SLOT + HOUR / 4})
    swept(store, FixedSchedules((changed,)), 0.5)
    (line,) = swept(store, FixedSchedules(), 1.75).gone
    assert line == (
        "schedule Hourly is deleted; 3 runs without a row may have been due before: daily-digest:2026-11-27T06:00:00Z, "
        "daily-digest:2026-11-27T06:40:00Z, daily-digest:2026-11-27T07:40:00Z"
    )


def test_a_schedule_that_was_made_again_is_swept_though_an_old_ones_row_cannot_be_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafted(store, 0)
    swept(store, FixedSchedules((HOURLY,)), 0)

    def damaged(drafter: str, first: datetime, last: datetime) -> object:
        if first < SLOT + 9 * HOUR:
            raise UnreadableRow("run daily-digest:noon: 'noon' is no instant")
        return {}

    monkeypatch.setattr(store, "slot_statuses", damaged)
    done = swept(store, FixedSchedules((made_again(9.5),)), 10)
    assert done.broken == ("Hourly: run daily-digest:noon: 'noon' is no instant",)
    assert done.caught_up == ("daily-digest:2026-11-27T16:00:00Z",)


@pytest.mark.parametrize(
    "change", [{"enabled": False}, {"input": "{"}, {"expression": "cron(0 6 * * * *)"}, {"timezone": "Mars/Olympus"}]
)
def test_one_that_was_due_at_nothing_or_cannot_be_read_is_forgotten_too(store: Store, change: dict[str, str]) -> None:
    store.note_swept(SweptSchedule(schedule("Hourly", **change), SLOT), now=SLOT)
    assert len(swept(store, FixedSchedules(), 5).gone) == 1
    assert known(store) == []


@dataclass(frozen=True)
class Unlisted(FixedSchedules):
    """A listing that lacks what is there, as an index that is behind does."""

    def listed(self) -> tuple[ScheduleSummary, ...]:
        return ()


@dataclass(frozen=True)
class Unavailable(Unlisted):
    def get(self, arn: str) -> ScheduleDefinition:
        raise SchedulesUnavailable("throttled")


def test_one_that_the_listing_lacks_and_that_is_there_is_kept(store: Store) -> None:
    drafted(store, 0)
    swept(store, FixedSchedules((HOURLY,)), 0)
    assert swept(store, Unlisted((HOURLY,)), 0.1) == NOTHING
    assert known(store) == ["Hourly"]


def test_while_scheduler_does_not_answer_nothing_is_forgotten(store: Store) -> None:
    drafted(store, 0)
    swept(store, FixedSchedules((HOURLY,)), 0)
    assert swept(store, Unavailable(), 0.1).broken == ("Hourly: throttled",)
    assert known(store) == ["Hourly"]


@pytest.mark.parametrize("operation", ["slot_statuses", "forget_swept"])
def test_what_cannot_be_forgotten_now_is_named_and_stops_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    other = schedule("Other", expression="cron(0 * * * ? *)", input=json.dumps({"no": "drafters"}))
    for definition in (HOURLY, other):
        store.note_swept(SweptSchedule(definition, SLOT), now=SLOT)
    whole = getattr(store, operation)

    def busy(name: str, *given: object, **named: object) -> object:
        if name in {"Hourly", "daily-digest"}:
            raise StoreBusy("others hold it")
        return whole(name, *given, **named)

    monkeypatch.setattr(store, operation, busy)
    done = swept(store, FixedSchedules(), 5)
    assert done.broken == ("Hourly: others hold it",)
    assert len(done.gone) == 1
    monkeypatch.undo()
    assert len(swept(store, FixedSchedules(), 5).gone) == 1, "the next sweep forgets it"


def test_a_sweep_without_time_forgets_nothing(store: Store) -> None:
    store.note_swept(SweptSchedule(HOURLY, SLOT), now=SLOT)
    assert swept(store, FixedSchedules(), 5, minutes_left=0.5).gone == ()
    assert known(store) == ["Hourly"]
