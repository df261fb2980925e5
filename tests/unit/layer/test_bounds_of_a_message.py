"""What a message or a tick may say at most: everything behind it can then reckon with it."""

import json
from typing import Any

import pytest

from galley.contract import InvalidTick, read_tick
from galley.runs import InvalidMessage, read_message
from support.outside import message

OUT_OF_BOUNDS: list[tuple[str, Any]] = [
    ("slot", "0001-01-01T00:00:00Z"),
    ("slot", "1969-12-30T23:59:59Z"),
    ("slot", "2200-01-03T00:00:00Z"),
    ("slot", "9999-12-31T23:59:59Z"),
    ("resend", 10**30),
    ("renewal", 10**30),
    ("schedule", "a" * 2049),
    ("trace", "a" * 257),
]


@pytest.mark.parametrize(("field", "value"), OUT_OF_BOUNDS)
def test_a_message_out_of_bounds_is_refused_with_the_field(field: str, value: object) -> None:
    body = json.dumps({**json.loads(message().model_dump_json()), field: value})
    with pytest.raises(InvalidMessage, match=f"^run message: {field} "):
        read_message(body)


@pytest.mark.parametrize(("field", "value"), [one for one in OUT_OF_BOUNDS if one[0] in {"slot", "schedule"}])
def test_a_tick_out_of_bounds_is_refused_with_the_field(field: str, value: object) -> None:
    tick = {"drafters": ["daily-digest"], "window_minutes": 30, "grace_minutes": 120, "catch_up": "latest"}
    with pytest.raises(InvalidTick, match=f"^tick: {field} "):
        read_tick({**tick, field: value})


@pytest.mark.parametrize("slot", ["1969-12-31T12:00:00Z", "2200-01-01T04:00:00Z"])
def test_every_slot_that_a_schedule_can_have_is_taken(slot: str) -> None:
    body = json.dumps({**json.loads(message().model_dump_json()), "slot": slot})
    assert read_message(body).grace_ends is not None
