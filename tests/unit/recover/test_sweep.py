"""Which due slots the sweep gives an outcome."""

import json
from datetime import UTC, datetime, timedelta

import pytest

import recover
from galley import system
from galley.runs import Origin, Run, RunKey, SkipReason, Status
from galley.schedule import tzdata_version
from galley.store import Store, UnreadableRow
from support.outside import ARN, SLOT, Context, FixedSchedules, Outside, RecordingQueue, event, schedule
from sweep import SETTLING, sweep

MINUTE = timedelta(minutes=1)
KEY = RunKey("daily-digest", SLOT)


def swept(store: Store, queue: RecordingQueue, *definitions: object, now: datetime) -> tuple[list[str], list[str]]:
    done = sweep(FixedSchedules(definitions), store, queue, now=now, trace="sweep")  # type: ignore[arg-type]
    return list(done.caught_up), list(done.skipped)


@pytest.mark.guarantee("G4")
def test_g4_a_slot_without_a_row_is_caught_up_within_its_grace(store: Store) -> None:
    queue = RecordingQueue()
    assert swept(store, queue, schedule(), now=SLOT + 10 * MINUTE) == ([str(KEY)], [])
    assert [(message.key, message.origin, message.schedule) for message in queue.sent] == [(KEY, Origin.CATCH_UP, ARN)]


@pytest.mark.guarantee("G4")
def test_g4_a_slot_past_its_grace_is_recorded_as_misfired(store: Store) -> None:
    queue = RecordingQueue()
    assert swept(store, queue, schedule(), now=SLOT + 121 * MINUTE) == ([], [str(KEY)])
    row = store.run(KEY)
    assert row is not None
    assert (row.status, row.reason) == (Status.SKIPPED, SkipReason.MISFIRED)
    assert queue.sent == []
    assert swept(store, queue, schedule(), now=SLOT + 122 * MINUTE) == ([], [])


def test_a_slot_that_may_still_be_on_its_way_is_left_alone(store: Store) -> None:
    queue = RecordingQueue()
    assert swept(store, queue, schedule(), now=SLOT + SETTLING - timedelta(seconds=1)) == (
        [],
        [str(RunKey("daily-digest", SLOT - timedelta(days=1)))],
    )
    assert queue.sent == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"enabled": False}, id="disabled"),
        pytest.param({"modified": SLOT + MINUTE}, id="changed after the slot"),
        pytest.param({"start": SLOT + MINUTE}, id="before its start"),
        pytest.param({"end": SLOT - timedelta(days=2), "modified": SLOT - timedelta(days=1)}, id="after its end"),
    ],
)
def test_a_slot_that_eventbridge_would_not_have_fired_is_not_invented(store: Store, change: dict[str, object]) -> None:
    queue = RecordingQueue()
    assert swept(store, queue, schedule(**change), now=SLOT + 10 * MINUTE) == ([], [])


def test_a_broken_schedule_is_named_and_stops_no_other(store: Store) -> None:
    queue = RecordingQueue()
    broken = (
        schedule("BadCron", expression="cron(0 6 * * * *)"),
        schedule("BadInput", input=json.dumps({"drafters": ["x"]})),
        schedule("BadZone", timezone="Mars/Olympus"),
    )
    done = sweep(FixedSchedules((*broken, schedule())), store, queue, now=SLOT + 10 * MINUTE, trace="sweep")
    assert done.caught_up == (str(KEY),)
    assert [line.split(":")[0] for line in done.broken] == ["BadCron", "BadInput", "BadZone"]
    assert "day-of-month" in done.broken[0]
    assert "window_minutes is missing" in done.broken[1]


def test_the_handler_sweeps_the_group_of_its_settings(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TABLE", "RUNS_QUEUE_URL", "DEAD_RUNS_QUEUE_URL", "SCHEDULE_GROUP"):
        monkeypatch.setenv(f"GALLEY_{name}", "test")
    queue = RecordingQueue()
    system.install(
        Outside(
            store_=store,
            queue_=queue,
            schedules_=FixedSchedules((schedule(),)),
            at=datetime(2026, 11, 27, 6, 15, tzinfo=UTC),
        )
    )
    assert recover.handler(event("recover"), Context()) == {
        "caught_up": [str(KEY)],
        "skipped": [],
        "ended": [],
        "sent_again": [],
        "broken": [],
    }


def test_every_sweep_logs_the_zones_that_it_computed_with(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TABLE", "RUNS_QUEUE_URL", "DEAD_RUNS_QUEUE_URL", "SCHEDULE_GROUP"):
        monkeypatch.setenv(f"GALLEY_{name}", "test")
    logged: dict[str, object] = {}
    monkeypatch.setattr(recover.logger, "info", lambda line, *_, extra=None: logged.update({line: extra or {}}))
    system.install(Outside(store_=store, queue_=RecordingQueue(), schedules_=FixedSchedules()))
    recover.handler(event("recover"), Context())
    assert logged["swept"] == {
        "caught_up": [], "skipped": [], "ended": [], "sent_again": [], "broken": [], "tzdata": tzdata_version(),
    }  # fmt: skip


def test_a_row_that_cannot_be_read_is_named_and_stops_no_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = RecordingQueue()
    monthly = schedule("Monthly", input=schedule().input.replace("daily-digest", "monthly-report"))
    read = store.run

    def damaged(key: RunKey) -> Run | None:
        if key.drafter == "monthly-report":
            raise UnreadableRow(f"row {key} cannot be read")
        return read(key)

    monkeypatch.setattr(store, "run", damaged)
    done = sweep(FixedSchedules((monthly, schedule())), store, queue, now=SLOT + 10 * MINUTE, trace="sweep")
    assert done.caught_up == (str(KEY),)
    assert ["monthly-report" in line for line in done.broken] == [True]
