"""What users of another scheduler met when a schedule was gone, with its report."""

from datetime import timedelta

import pytest

import recover
from galley import system
from galley.instants import parse_instant
from galley.store import Store
from support.outside import Context, FixedSchedules, Outside, RecordingQueue, event, schedule

NOON = parse_instant("2026-07-30T12:00:00Z")
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def test_a_schedule_that_is_gone_is_warned_of_within_a_sweep(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """https://github.com/Loulen/prompt-driven-orchestrator/issues/505

    A schedule was not armed again after a restart, and for 27 hours nothing said so: no run, and no row either.
    """
    for name in ("TABLE", "RUNS_QUEUE_URL", "DEAD_RUNS_QUEUE_URL", "SCHEDULE_GROUP"):
        monkeypatch.setenv(f"GALLEY_{name}", "test")
    warned: list[str] = []
    monkeypatch.setattr(recover.logger, "warning", lambda line, *words: warned.append(line % words))
    watch = schedule(expression="cron(0 */2 * * ? *)", timezone="UTC", created=NOON, modified=NOON + MINUTE)
    outside = Outside(store_=store, queue_=RecordingQueue(), schedules_=FixedSchedules((watch,)), at=NOON + 5 * MINUTE)
    system.install(outside)
    recover.handler(event("recover"), Context())
    assert warned == []

    outside.schedules_ = FixedSchedules()
    outside.at += 15 * MINUTE
    (told,) = recover.handler(event("recover"), Context())["gone"]
    assert told.startswith("schedule DailyDigest is deleted;")
    assert warned == [told]
    assert store.history("daily-digest").runs == (), "no slot is made up that was not fired"
