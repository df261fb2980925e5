"""What may stand in a tick and in a run message, and what a wrong one is told."""

import json
from datetime import UTC, datetime

import pytest

from galley.contract import CatchUp, InvalidTick, read_tick
from galley.runs import HOLDS_A_PLACE, TRANSITIONS, WATCHED, InvalidMessage, InvalidRunKey, RunKey, Status, read_message

TICK = {
    "drafters": ["daily-digest"],
    "schedule": "arn:aws:scheduler:eu-west-2:123456789012:schedule/galley/DailyDigest",
    "slot": "2026-11-27T06:00:00Z",
    "window_minutes": 30,
    "grace_minutes": 120,
    "catch_up": "latest",
}
MESSAGE = {
    "drafter": "daily-digest",
    "slot": "2026-11-27T06:00:00Z",
    "origin": "schedule",
    "contract": {"window_minutes": 30, "grace_minutes": 120, "catch_up": "latest"},
}


def test_a_tick_names_its_slot_and_contract() -> None:
    tick = read_tick(TICK)
    assert tick.slot == datetime(2026, 11, 27, 6, tzinfo=UTC)
    assert tick.contract.catch_up is CatchUp.LATEST
    assert read_tick(json.dumps(TICK)) == tick


@pytest.mark.parametrize("slot", [None, "<aws.scheduler.scheduled-time>"])
def test_a_placeholder_that_nobody_replaced_means_by_hand(slot: str | None) -> None:
    tick = read_tick({**TICK, "slot": slot, "schedule": "<aws.scheduler.schedule-arn>"})
    assert tick.slot is None
    assert tick.schedule is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"drafters": None}, "tick: drafters is None: give a list"),
        ({"drafters": []}, "drafters is []"),
        ({"drafters": ["Daily Digest"]}, "drafters[1] is 'Daily Digest': use a-z, 0-9 and -, beginning"),
        ({"drafters": ["a", "a"]}, "twice"),
        ({"slot": "yesterday"}, "tick: slot: 'yesterday' is not an instant"),
        ({"slot": "2026-11-27T06:00:00"}, "no timezone"),
        ({"slot": 5}, "slot is 5"),
        ({"window_minutes": "30"}, "window_minutes is '30'"),
        ({"grace_minutes": 0}, "grace_minutes is 0"),
        ({"grace_minutes": True}, "grace_minutes is True"),
        ({"catch_up": "some"}, "catch_up is 'some': use all, latest or none"),
        ({"unknown": 1}, "unknown is not known"),
    ],
)
def test_a_malformed_tick_is_one_line_that_names_the_field(change: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidTick) as refusal:
        read_tick({**TICK, **change})
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("field", ["drafters", "window_minutes", "grace_minutes", "catch_up"])
def test_a_tick_that_lacks_a_field_names_it(field: str) -> None:
    with pytest.raises(InvalidTick, match=f"tick: {field} is missing"):
        read_tick({name: value for name, value in TICK.items() if name != field})


@pytest.mark.parametrize("event", ["{", "", "[]", "null", "7"])
def test_a_tick_that_is_not_an_object_is_refused(event: str) -> None:
    with pytest.raises(InvalidTick):
        read_tick(event)


def test_a_message_survives_its_own_text() -> None:
    message = read_message(json.dumps(MESSAGE))
    assert read_message(message.model_dump_json()) == message
    assert '"2026-11-27T06:00:00Z"' in message.model_dump_json()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("not json", "is not JSON"),
        (json.dumps({**MESSAGE, "slot": "2026-11-27T06:00:00"}), "no timezone"),
        (json.dumps({**MESSAGE, "extra": 1}), "extra is not known"),
        (json.dumps({**MESSAGE, "origin": "magic"}), "origin is 'magic'"),
        (json.dumps({name: value for name, value in MESSAGE.items() if name != "contract"}), "contract is missing"),
        (json.dumps({**MESSAGE, "contract": {"window_minutes": 1}}), "contract.grace_minutes is missing"),
    ],
)
def test_a_malformed_message_is_one_line_that_names_the_field(body: str, told: str) -> None:
    with pytest.raises(InvalidMessage) as refusal:
        read_message(body)
    assert told in str(refusal.value)


def test_a_resend_has_another_deduplication_id_and_a_repeat_has_the_same() -> None:
    first = read_message(json.dumps(MESSAGE))
    assert first.deduplication_id == read_message(json.dumps({**MESSAGE, "trace": "x"})).deduplication_id
    assert first.deduplication_id != read_message(json.dumps({**MESSAGE, "resend": 1})).deduplication_id


def test_one_instant_is_one_run_however_it_is_written() -> None:
    assert RunKey.parse("daily-digest:2026-11-27T06:00:00Z") == RunKey.parse("daily-digest:2026-11-27T07:00:00.5+01:00")


@pytest.mark.parametrize("text", ["", "daily-digest", "Daily:2026-11-27T06:00:00Z", "a:b", "a:2026-11-27T06:00:00"])
def test_a_text_that_is_no_run_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidRunKey, match="write it as"):
        RunKey.parse(text)


def test_every_state_has_its_transitions_and_ends_are_ends() -> None:
    assert set(TRANSITIONS) == {None, *Status}
    ends = {status for status, after in TRANSITIONS.items() if not after}
    assert ends == {
        Status.REJECTED, Status.EXPIRED, Status.SUPERSEDED, Status.PUBLISHED, Status.EMPTY, Status.SKIPPED,
    }  # fmt: skip
    assert ends.isdisjoint(WATCHED)
    assert HOLDS_A_PLACE <= WATCHED
