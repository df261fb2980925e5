"""A schedule that is disabled and enabled again where it is deployed, and what the sweep makes of its slots."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
import time_machine
from moto import mock_aws

from galley.schedules import ScheduleState
from galley.schedules.eventbridge import EventBridgeSchedules
from galley.store import Store
from support.aws import GROUP, client
from support.outside import SLOT, RecordingQueue, schedule
from sweep import Swept, sweep

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with mock_aws(), time_machine.travel(SLOT - MINUTE, tick=False) as traveller:
        client("scheduler").create_schedule_group(Name=GROUP)
        client("scheduler").create_schedule(
            Name="Hourly",
            GroupName=GROUP,
            ScheduleExpression="cron(0 * * * ? *)",
            ScheduleExpressionTimezone="UTC",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": "arn:aws:lambda:x", "RoleArn": "arn:aws:iam::1:role/x", "Input": schedule().input},
        )
        yield traveller


@pytest.mark.guarantee("G9")
def test_g9_slots_while_a_schedule_was_disabled_get_no_row_and_those_around_do(
    store: Store, clock: time_machine.Traveller
) -> None:
    schedules = EventBridgeSchedules(client("scheduler"), GROUP)
    (arn,) = (one.arn for one in schedules.listed())

    def swept(hours: float) -> Swept:
        now = SLOT + hours * HOUR
        clock.move_to(now)
        return sweep(schedules, store, RecordingQueue(), now=now, trace="sweep", remaining=lambda: 5 * MINUTE)

    assert swept(0.1).caught_up == ("daily-digest:2026-11-27T06:00:00Z",)
    clock.move_to(SLOT + 1.5 * HOUR)
    schedules.switch(arn, ScheduleState.DISABLED)
    swept(4)
    clock.move_to(SLOT + 4.5 * HOUR)
    schedules.switch(arn, ScheduleState.ENABLED)
    done = swept(5.1)
    assert done.caught_up == ("daily-digest:2026-11-27T11:00:00Z",)
    swept(24)
    found = sorted((run.slot - SLOT) // HOUR for run in store.history("daily-digest").runs)
    assert found == [0, 1, *range(5, 23)], "the last one is sent, and 2, 3 and 4 lie between the switches"
