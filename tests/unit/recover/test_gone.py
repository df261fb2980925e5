"""What becomes of what the sweep knows of a schedule that was deleted."""

import json
from dataclasses import dataclass
from datetime import timedelta

import pytest

from galley.schedules import ScheduleDefinition, ScheduleSummary, SchedulesUnavailable
from galley.store import Claimed, Limits, Store, StoreBusy, SweptSchedule
from support.outside import SLOT, FixedSchedules, RecordingQueue, message, schedule
from sweep import Swept, sweep

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NOTHING = Swept((), (), (), (), ())
HOURLY = schedule("Hourly", expression="cron(0 * * * ? *)", timezone="UTC", created=SLOT, modified=SLOT)


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
