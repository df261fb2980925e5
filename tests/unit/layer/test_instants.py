"""Instants: one text form, and one line for what is none."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from galley.contract import InvalidTick, read_tick
from galley.instants import format_instant, in_utc, parse_instant
from galley.runs import InvalidMessage, InvalidRunKey, RunKey, read_message

BEYOND = ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+00:01"]
CONTRACT = {"window_minutes": 30, "grace_minutes": 120, "catch_up": "latest"}


@pytest.mark.parametrize("text", BEYOND)
def test_an_instant_that_no_datetime_can_hold_is_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="outside the years 1 to 9999"):
        parse_instant(text)
    with pytest.raises(ValueError, match="outside the years 1 to 9999"):
        in_utc(datetime.fromisoformat(text))
    with pytest.raises(InvalidTick, match=r"^tick: slot is .*outside the years 1 to 9999 in UTC$"):
        read_tick({"drafters": ["daily-digest"], "slot": text, **CONTRACT})
    body = f'{{"drafter": "daily-digest", "slot": "{text}", "origin": "manual", "contract": {{}}}}'
    with pytest.raises(InvalidMessage, match="outside the years 1 to 9999 in UTC"):
        read_message(body)
    with pytest.raises(InvalidRunKey, match="write it as"):
        RunKey.parse(f"daily-digest:{text}")


@pytest.mark.parametrize("text", ["2026-03-29T05:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_an_instants_text_names_the_same_instant(text: str) -> None:
    assert format_instant(parse_instant(text)) == text


def test_fractions_and_offsets_are_left_out_of_the_text() -> None:
    moment = datetime(2026, 3, 29, 7, 0, 0, 999_999, timezone(timedelta(hours=2)))
    assert format_instant(moment) == "2026-03-29T05:00:00Z"
    assert in_utc(moment).tzinfo is UTC


@pytest.mark.parametrize("text", ["", "yesterday", "2026-03-29", "2026-03-29T05:00:00", "2026-02-30T05:00:00Z", "\x00"])
def test_what_names_no_instant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not an instant|has no timezone"):
        parse_instant(text)
