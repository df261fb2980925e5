"""``galley calendar``: every due slot with what became of it, and the holes."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine

from galley.contract import read_tick
from galley.runs import SkipReason
from galley.schedules import ScheduleDefinition
from galley.store import Claimed, Limits, Page, Store
from galley_cli.due_slots import DueSlots, NoRow, due_slots, without_row
from galley_cli.local.deployment import deploy
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from galley_cli.main import invoke
from galley_cli.rows import PAGE
from galley_cli.stack import Stack
from galley_cli.template import read_template
from support.outside import ROOT, SLOT, FixedSchedules, message, schedule

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
NOW = SLOT + 10 * MINUTE


def drafting(store: Store, slot: datetime, drafter: str = "daily-digest") -> None:
    claimed = store.claim(message(drafter, slot), Limits(999, None, 0), owner=str(slot), now=slot, lease_until=slot)
    assert isinstance(claimed, Claimed)


def outcomes(found: DueSlots) -> list[tuple[str, str]]:
    """Return each slot's distance from SLOT in days, and what it is."""
    return [
        (f"{(one.key.slot - SLOT).days:+d}", str(getattr(one.outcome, "status", None) or one.outcome))
        for one in found.slots
    ]


def calendar(store: Store, *definitions: ScheduleDefinition, days: int = 4) -> DueSlots:
    return due_slots(definitions, store, span=days * DAY, now=NOW)


def test_each_due_slot_has_its_row_and_one_without_is_waiting_or_a_hole(store: Store) -> None:
    drafting(store, SLOT - 3 * DAY)
    store.skip(message(slot=SLOT - DAY), SkipReason.GATE, "3 wait", now=SLOT)
    assert outcomes(calendar(store, schedule())) == [
        ("-3", "drafting"),
        ("-2", "hole"),
        ("-1", "skipped"),
        ("+0", "waiting"),
        ("+1", "coming"),
        ("+2", "coming"),
        ("+3", "coming"),
    ]


@pytest.mark.parametrize(
    ("late", "is_what"),
    [
        (-timedelta(seconds=1), NoRow.COMING),
        (timedelta(), NoRow.WAITING),
        (120 * MINUTE, NoRow.WAITING),
        (120 * MINUTE + timedelta(seconds=1), NoRow.HOLE),
    ],
)
def test_a_slot_waits_until_its_grace_is_over(late: timedelta, is_what: NoRow) -> None:
    assert without_row(SLOT, read_tick(schedule().input), SLOT + late) is is_what


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        pytest.param({"enabled": False}, [], id="disabled"),
        pytest.param({"modified": SLOT - MINUTE}, ["+0", "+1", "+2", "+3"], id="changed"),
        pytest.param({"start": SLOT - DAY, "end": SLOT + DAY}, ["-1", "+0", "+1"], id="within its dates"),
    ],
)
def test_what_eventbridge_would_not_have_fired_is_no_hole(
    store: Store, change: dict[str, Any], shown: list[str]
) -> None:
    assert [day for day, _ in outcomes(calendar(store, schedule(**change)))] == shown


@pytest.mark.parametrize("change", [{"enabled": False}, {"modified": SLOT - MINUTE}, {"modified": NOW}])
def test_what_has_a_row_stays_in_view_when_its_schedule_is_switched_or_changed(
    store: Store, change: dict[str, Any]
) -> None:
    drafting(store, SLOT - 3 * DAY)
    drafting(store, SLOT - DAY)
    found = calendar(store, schedule(**change))
    assert [one for one in outcomes(found) if one[0].startswith("-")] == [("-3", "drafting"), ("-1", "drafting")]


def test_a_broken_schedule_is_a_line_and_hides_no_other(store: Store) -> None:
    broken = (
        schedule("BadCron", expression="cron(0 6 * * * *)"),
        schedule("BadInput", input="{"),
        schedule("BadZone", timezone="Mars/Olympus", enabled=False),
    )
    found = calendar(store, *broken, schedule())
    assert [line.partition(":")[0] for line in found.broken] == ["BadCron", "BadInput", "BadZone"]
    assert {one.schedule for one in found.slots} == {"DailyDigest"}


def test_the_rows_of_a_drafter_are_listed_once_and_no_further_back_than_asked_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    hourly = schedule("Hourly", expression="cron(0 * * * ? *)")
    for number in range(5):
        drafting(store, SLOT - number * DAY / 2)
    asked: list[str | None] = []
    history = store.history

    def pages_of_two(drafter: str, *, limit: int = PAGE, after: str | None = None) -> Page:
        asked.append(after)
        return history(drafter, limit=2, after=after)

    monkeypatch.setattr(store, "history", pages_of_two)
    found = calendar(store, schedule(), hourly, days=1)
    assert asked[0] is None
    assert len(asked) == 2, "two schedules of one drafter, and the fifth row is older than all that is due"
    assert sum(one.outcome is NoRow.HOLE for one in found.slots) > 0
    assert [one.schedule for one in found.slots if one.key.slot == SLOT] == ["DailyDigest", "Hourly"]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    """The project's own schedules, deployed three days ago; one run of them is recorded."""
    with time_machine.travel(NOW, tick=False):
        state = StateDirectory.open(tmp_path / "state")
        deploy(state.root, read_template(ROOT / "template.yaml").schedules, NOW - 3 * DAY)
        drafting(SqliteStore(state), SLOT)
        yield state
        state.close()


def test_the_command_shows_holes_as_holes(
    state: StateDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["calendar", "--days", "7", "--state", str(tmp_path / "state")]
    assert invoke([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    digest = {one["slot"]: one["status"] for one in told["slots"] if one["schedule"] == "DailyDigest"}
    assert digest == {
        "2026-11-25T06:00:00Z": "hole",
        "2026-11-26T06:00:00Z": "hole",
        "2026-11-27T06:00:00Z": "drafting",
        "2026-11-30T06:00:00Z": "coming",
        "2026-12-01T06:00:00Z": "coming",
        "2026-12-02T06:00:00Z": "coming",
    }
    assert told["holes"] == sum(one["status"] == "hole" for one in told["slots"])
    assert told["broken"] == []
    assert invoke(arguments) == 0
    out = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "daily-digest:2026-11-26T06:00:00Z DailyDigest hole" in lines
    assert lines[-1] == f"{told['holes']} holes: see what became of the sweep."


def test_a_row_that_cannot_be_read_is_no_hole(
    state: StateDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with state.write() as db:
        db.execute("UPDATE runs SET origin = 'nowhere'")
    assert invoke(["calendar", "--days", "1", "--json", "--state", str(tmp_path / "state")]) == 0
    (one,) = [one for one in json.loads(capsys.readouterr().out)["slots"] if one["status"] == "unreadable"]
    assert (one["run"], "origin" in one["detail"]) == ("daily-digest:2026-11-27T06:00:00Z", True)


def test_the_calendar_of_a_stack_names_what_is_broken(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed = FixedSchedules((schedule("Late", timezone="Europe/Londn"), schedule()))
    monkeypatch.setattr(
        "galley_cli.stack.open_stack", lambda name: Stack(SqliteStore(state), SqliteQueues(state), deployed)
    )
    assert invoke(["calendar", "--stack", "galley-prod"]) == 0
    out = capsys.readouterr().out
    assert "broken: Late: timezone 'Europe/Londn' does not exist" in out
    assert "daily-digest:2026-11-27T06:00:00Z" in out


def test_before_anything_was_deployed_the_calendar_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    StateDirectory.open(tmp_path / "fresh").close()
    assert invoke(["calendar", "--state", str(tmp_path / "fresh")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "No slot was due in 14 days, and none is to come in as many.",
        "No schedule is deployed: 'galley run' deploys those of template.yaml when it starts.",
    ]


def test_on_the_first_day_the_calendar_says_since_when_it_looks_and_shows_what_was_drafted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with time_machine.travel(NOW, tick=False):
        state = StateDirectory.open(tmp_path / "fresh")
        deploy(state.root, read_template(ROOT / "template.yaml").schedules, NOW)
        drafting(SqliteStore(state), SLOT)
        state.close()
        assert invoke(["calendar", "--state", str(tmp_path / "fresh")]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == "daily-digest:2026-11-27T06:00:00Z DailyDigest drafting"
    assert not any("hole" in line for line in lines)
    last = lines[-1]
    assert last.startswith(
        "Slots from before a schedule was made or last changed are listed only where they have a row"
    )
    assert "DailyDigest 2026-11-27T06:10:00Z" in last


def test_a_disabled_schedule_is_told_as_disabled_and_what_it_had_drafted_stays_in_view(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    off = schedule(enabled=False, modified=SLOT + MINUTE)
    monkeypatch.setattr(
        "galley_cli.stack.open_stack",
        lambda name: Stack(SqliteStore(state), SqliteQueues(state), FixedSchedules((off,))),
    )
    assert invoke(["calendar", "--stack", "galley-prod"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [
        "daily-digest:2026-11-27T06:00:00Z DailyDigest drafting",
        "disabled: DailyDigest, last changed 2026-11-27T06:01:00Z; no slot of it is due.",
    ]
    assert invoke(["calendar", "--stack", "galley-prod", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schedules"] == [{"schedule": "DailyDigest", "enabled": False, "since": "2026-11-27T06:01:00Z"}]
    assert told["holes"] == 0


def test_a_skipped_slot_is_told_with_its_reason(
    state: StateDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = SqliteStore(state)
    store.skip(message(slot=SLOT - DAY), SkipReason.MISFIRED, "found too late", now=NOW)
    assert invoke(["calendar", "--days", "2", "--state", str(tmp_path / "state")]) == 0
    line = " ".join(capsys.readouterr().out.split())
    assert "daily-digest:2026-11-26T06:00:00Z DailyDigest skipped: misfired found too late" in line
