"""What a backfill would do with each slot, and which schedule is meant."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from galley.runs import Run, Status
from galley.schedule import InvalidSchedule
from galley.schedules import ScheduleDefinition
from galley_cli.backfilling import Order, Planned, Rerun, Step, plan
from galley_cli.deployed_schedules import NoSuchSchedule, schedule_named, schedule_of
from galley_cli.rows import Row, Unreadable
from support.outside import CONTRACT, SLOT, message, schedule

DAY = timedelta(days=1)
ROW = Run("daily-digest", SLOT, Status.PENDING, 1, message().origin, CONTRACT, SLOT, SLOT)


def row(status: Status) -> Run:
    return replace(ROW, status=status)


def planned(
    *rows: Row, order: Order = Order.OLDEST, rerun: Rerun = Rerun.NONE, limit: int | None = None
) -> list[Planned]:
    by_slot: Mapping[datetime, Row] = {SLOT + number * DAY: one for number, one in enumerate(rows)}
    return plan("daily-digest", by_slot, order=order, rerun=rerun, limit=limit)


def steps(plan: Sequence[Planned]) -> list[tuple[int, Step]]:
    return [((one.key.slot - SLOT).days, one.step) for one in plan]


def test_only_a_slot_without_a_row_is_sent() -> None:
    assert steps(planned(None)) == [(0, Step.SEND)]
    for status in Status:
        assert steps(planned(row(status))) == [(0, Step.LEAVE)], status


def test_failed_runs_are_sent_again_on_request_and_so_are_those_that_may_lack_their_message() -> None:
    for status in Status:
        expected = Step.RESEND if status in {Status.FAILED, Status.QUEUED} else Step.LEAVE
        assert steps(planned(row(status), rerun=Rerun.FAILED)) == [(0, expected)], status
    assert "--rerun failed" in planned(row(Status.FAILED))[0].why


def test_a_row_that_cannot_be_read_is_left_and_named() -> None:
    (one,) = planned(Unreadable("row x cannot be read"), rerun=Rerun.FAILED)
    assert (one.step, one.why) == (Step.LEAVE, "row x cannot be read")


@pytest.mark.parametrize(
    ("order", "limit", "sent"),
    [
        (Order.OLDEST, None, [0, 2, 3]),
        (Order.NEWEST, None, [3, 2, 0]),
        (Order.OLDEST, 2, [0, 2]),
        (Order.NEWEST, 1, [3]),
        (Order.NEWEST, 9, [3, 2, 0]),
    ],
)
def test_the_limit_counts_what_is_sent_in_its_order(order: Order, limit: int | None, sent: list[int]) -> None:
    found = planned(None, row(Status.SKIPPED), None, row(Status.FAILED), order=order, rerun=Rerun.FAILED, limit=limit)
    assert [number for number, step in steps(found) if step is not Step.LEAVE] == sent
    assert len(found) == 4, "what is left is shown too"
    assert all(f"beyond --limit {limit}" == one.why for one in found if one.step is Step.LEAVE and one.why)


def naming(name: str, *drafters: str) -> ScheduleDefinition:
    return schedule(name, input=json.dumps({"drafters": drafters, **CONTRACT.model_dump(mode="json")}))


SCHEDULES = (naming("A", "one", "two"), naming("B", "two"), schedule("Broken", input="{"))


def test_the_one_schedule_that_names_the_drafter_is_found() -> None:
    assert schedule_of(SCHEDULES, "one").schedule.name == "A"
    assert schedule_of(SCHEDULES, "two", "B").schedule.name == "B"
    arn = SCHEDULES[1].arn
    assert schedule_named(SCHEDULES, arn).schedule.name == "B"


@pytest.mark.parametrize(
    ("drafter", "name", "told"),
    [
        ("two", None, "more than one schedule names drafter 'two': A, B; say which with --schedule"),
        (
            "three",
            None,
            "no schedule names drafter 'three'; the drafters that are scheduled are: one, two; input of schedule",
        ),
        ("one", "B", "schedule B does not name drafter 'one'; its drafters are: two"),
        ("one", "C", "no schedule is named 'C'; the schedules are: A, B, Broken"),
    ],
)
def test_what_is_not_clear_is_refused_with_the_names(drafter: str, name: str | None, told: str) -> None:
    with pytest.raises(NoSuchSchedule, match=told):
        schedule_of(SCHEDULES, drafter, name)


def test_a_schedule_that_cannot_be_read_is_named() -> None:
    late = schedule("Late", timezone="Europe/Londn")
    for found in (lambda: schedule_named([late], "Late"), lambda: schedule_of([late], "daily-digest")):
        with pytest.raises(InvalidSchedule, match="schedule Late: timezone 'Europe/Londn' does not exist"):
            found()


def test_where_nothing_is_deployed_the_remedy_is_told() -> None:
    with pytest.raises(NoSuchSchedule, match="'galley run' deploys"):
        schedule_named((), "A")
