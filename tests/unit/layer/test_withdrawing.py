"""Which undecided drafts another one takes the place of, and which are past their time."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from galley.rules import Rules
from galley.runs import Origin, Run, Status
from galley.withdrawing import is_expired, replaces
from support.outside import CONTRACT, SLOT

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
OLDER = Run(
    "daily-digest", SLOT, Status.PENDING, 2, Origin.SCHEDULE, CONTRACT, created=SLOT, changed=SLOT, drafted=SLOT
)
NEWER = replace(OLDER, slot=SLOT + DAY, drafted=SLOT + DAY, rules=Rules(supersedes_earlier=True))
NAMES = replace(NEWER, rules=Rules(supersedes=(SLOT,)))


@pytest.mark.parametrize("newer", [NEWER, NAMES], ids=["by its rule", "by name"])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        *(({"status": status}, status is Status.PENDING) for status in Status),
        ({"drafter": "weekly-report"}, False),
        ({"drafted": None}, False),
    ],
)
def test_only_an_undecided_draft_of_the_same_drafter_is_replaced(
    newer: Run, change: dict[str, Any], expected: bool
) -> None:
    assert replaces(newer, replace(OLDER, **change)) is expected


@pytest.mark.parametrize("status", Status)
def test_a_draft_replaces_others_whatever_becomes_of_it(status: Status) -> None:
    assert replaces(replace(NEWER, status=status), OLDER)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"drafted": None}, False),
        ({"rules": Rules()}, False),
        ({"rules": Rules(supersedes=(SLOT + DAY,))}, False),
        ({"drafted": SLOT}, True),
        ({"drafted": SLOT - SECOND}, False),
        ({"slot": SLOT - DAY}, False),
        ({"slot": SLOT}, False),
        ({"slot": SLOT, "rules": Rules(supersedes=(SLOT,))}, False),
        ({"slot": SLOT - DAY, "drafted": SLOT - DAY, "rules": Rules(supersedes=(SLOT,))}, True),
    ],
)
def test_what_a_draft_replaces_is_of_an_earlier_slot_and_waited_already_unless_it_is_named(
    change: dict[str, Any], expected: bool
) -> None:
    assert replaces(replace(NEWER, **change), OLDER) is expected


@pytest.mark.parametrize(
    ("change", "after", "expected"),
    [
        ({}, DAY, True),
        ({}, DAY - SECOND, False),
        ({"rules": Rules()}, 100 * DAY, False),
        ({"status": Status.APPROVED}, 2 * DAY, False),
    ],
)
def test_an_undecided_draft_expires_at_its_time(change: dict[str, Any], after: timedelta, expected: bool) -> None:
    run = replace(OLDER, rules=Rules(expires=SLOT + DAY))
    assert is_expired(replace(run, **change), SLOT + after) is expected
