"""What happens when a tick arrives."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

import dispatch
from galley import system
from galley.contract import InvalidTick
from galley.runs import Origin
from galley.settings import InvalidSettings
from support.outside import ROOT, SLOT, Context, Outside, RecordingQueue, event


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> RecordingQueue:
    monkeypatch.setenv("GALLEY_RUNS_QUEUE_URL", "https://sqs.eu-west-2.amazonaws.com/123456789012/runs.fifo")
    queue = RecordingQueue()
    system.install(Outside(queue_=queue, at=datetime(2026, 11, 27, 6, 0, 41, tzinfo=UTC)))
    return queue


@pytest.mark.guarantee("G10")
def test_g10_a_tick_becomes_one_message_for_each_drafter_and_nothing_else(queue: RecordingQueue) -> None:
    tick = {**event("dispatch-tick"), "drafters": [f"drafter-{number}" for number in range(12)]}
    answer = dispatch.handler(tick, Context())
    assert [message.drafter for message in queue.sent] == tick["drafters"]
    assert {message.slot for message in queue.sent} == {SLOT}
    assert {message.origin for message in queue.sent} == {Origin.SCHEDULE}
    assert {message.schedule for message in queue.sent} == {tick["schedule"]}
    assert answer == {"runs": [f"drafter-{number}:2026-11-27T06:00:00Z" for number in range(12)]}


def test_a_repeated_tick_gives_the_same_messages(queue: RecordingQueue) -> None:
    dispatch.handler(event("dispatch-tick"), Context())
    dispatch.handler(event("dispatch-tick"), Context())
    first, second = queue.sent
    assert first.deduplication_id == second.deduplication_id


def test_a_tick_sent_by_hand_has_the_minute_of_its_arrival_as_its_slot(queue: RecordingQueue) -> None:
    dispatch.handler(event("dispatch-tick-by-hand"), Context())
    assert {message.slot for message in queue.sent} == {SLOT}
    assert {message.origin for message in queue.sent} == {Origin.MANUAL}
    assert {message.schedule for message in queue.sent} == {None}


def test_a_malformed_tick_fails_the_invocation_and_sends_nothing(queue: RecordingQueue) -> None:
    with pytest.raises(InvalidTick, match="grace_minutes is missing"):
        dispatch.handler({"drafters": ["daily-digest"], "window_minutes": 5, "catch_up": "all"}, Context())
    assert queue.sent == []


def test_a_missing_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidSettings, match="GALLEY_RUNS_QUEUE_URL"):
        dispatch.handler(event("dispatch-tick"), Context())


@pytest.mark.parametrize("function", ["dispatch", "recover", "review", "publish"])
def test_only_draft_may_import_the_models_sdk(function: str) -> None:
    """Importing it costs seconds of each cold start."""
    paths = [str(ROOT / "layers/galley"), str(ROOT / "functions" / function)]
    code = (
        f"import sys; sys.path[:0] = {paths!r}; import {function}; "
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()  # noqa: S603
    assert function in loaded
    assert "anthropic" not in loaded
    if function == "dispatch":
        assert {"feedparser", "markdown_it", "boto3", "yaml"}.isdisjoint(loaded)
