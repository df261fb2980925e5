"""What a person is told while the system runs."""

from dataclasses import replace
from datetime import timedelta

import pytest

from galley.runs import Run, Status
from galley_cli.commands.run import Terminal
from galley_cli.local.store import StreamRecord
from support.outside import SLOT, message

POSTPONED = Run(
    drafter="daily-digest",
    slot=SLOT,
    status=Status.DRAFTING,
    version=2,
    origin=message().origin,
    contract=message().contract,
    created=SLOT,
    changed=SLOT,
    reason="overloaded",
    detail="the model is busy",
    attempts=1,
    next_attempt=SLOT + timedelta(seconds=40),
)


def record_of(run: Run) -> StreamRecord:
    return StreamRecord(1, run.key, Status.DRAFTING, run.status, run.version, SLOT)


def test_a_run_that_is_postponed_is_told_with_why_and_until_when_even_where_a_summary_follows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal = Terminal(as_json=True, quiet=True)
    terminal.tell(record_of(POSTPONED), POSTPONED)
    claimed = replace(POSTPONED, next_attempt=None)
    terminal.tell(record_of(claimed), claimed)
    drafted = replace(POSTPONED, status=Status.PENDING, next_attempt=None)
    terminal.tell(record_of(drafted), drafted)
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith(f"galley: run {POSTPONED.key} is postponed: overloaded: the model is busy; next attempt ")
    assert str(POSTPONED.next_attempt and POSTPONED.next_attempt.astimezone().strftime("%H:%M")) in line


def test_what_goes_wrong_is_told_without_moving_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(as_json=False, quiet=False).report("channel \x1b[2J\x9b is not known")
    assert capsys.readouterr().err == "galley: channel \ufffd[2J\ufffd is not known\n"
