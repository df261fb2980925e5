"""``galley stats``, on a state directory that no system runs on, and the figures that it shows."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine

from galley.rules import Review, Rules
from galley.runs import RejectReason, SkipReason, Status, Usage
from galley.store import Approve, Bill, Claimed, Expire, Limits, Reject, Settled
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from galley_cli.main import invoke
from galley_cli.stack import Stack
from galley_cli.week_figures import Figures, latest_weeks, monday_of, together
from support.outside import FixedSchedules, message, schedule
from unit.commands.test_operating import DRAFT

MONDAY = datetime(2026, 11, 23, 6, tzinfo=UTC)
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
COST = 2_500_000
Stats = Callable[..., tuple[int, str, str]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    state = StateDirectory.open(tmp_path / "state")
    yield SqliteStore(state)
    state.close()


@pytest.fixture
def stats(store: SqliteStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Stats]:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = invoke(["stats", *arguments, "--state", str(tmp_path / "state")])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    with time_machine.travel(NOW, tick=False):
        yield run


def claimed(store: SqliteStore, slot: datetime) -> Claimed:
    outcome = store.claim(message(slot=slot), Limits(9, None, 0), owner="a", now=slot, lease_until=slot)
    assert isinstance(outcome, Claimed)
    return outcome


def draft(
    store: SqliteStore, slot: datetime, verdict: Approve | Reject | None = None, rules: Rules | None = None
) -> Any:
    """Store a draft and decide on it an hour and a half later."""
    bill = Bill(Usage(1_000, 200), COST, "claude-haiku-5-5")
    stored = store.store(claimed(store, slot).run, DRAFT, {}, bill, now=slot, rules=rules or Rules())
    assert isinstance(stored, Settled)
    if verdict is None:
        return stored.run
    run, later = stored.run, slot + timedelta(minutes=90)
    decided = store.decide(
        run.key, verdict, version=run.version, read_hash=run.text_hash or "", reviewer="ada", now=later
    )
    assert isinstance(decided, Settled)
    return decided.run


def a_week(store: SqliteStore) -> None:
    """A week of twelve slots, one for each outcome and six decisions, and a failure that was sent again."""
    slots = (MONDAY + timedelta(hours=number) for number in range(20))
    for verdict in (Approve(), Approve(), Approve(), Approve("Mine", "Shorter."), Reject(RejectReason.TONE)):
        draft(store, next(slots), verdict)
    draft(store, next(slots), Reject(RejectReason.INACCURATE))
    store.withdraw(draft(store, next(slots)), Expire(), now=NOW)
    draft(store, next(slots))
    draft(store, next(slots), rules=Rules(review=Review.NONE))
    store.release(claimed(store, next(slots)).run, Status.EMPTY, "nothing_new", "", Bill(), now=MONDAY)
    store.skip(message(slot=next(slots)), SkipReason.GATE, "", now=MONDAY)
    failing = claimed(store, next(slots)).run
    store.release(failing, Status.FAILED, "refusal", "no", Bill(Usage(10, 1), 1_500, "claude-haiku-5-5"), now=MONDAY)
    store.resend(failing.key, now=MONDAY)
    again = store.claim(failing.message, Limits(9, None, 0), owner="b", now=NOW, lease_until=NOW)
    assert not isinstance(again, Claimed), "the message of before it was sent again is nobody's"


WEEK = {
    "slots": {"drafted": 9, "empty": 1, "failed": 0, "skipped": 1},
    "skipped": {"gate": 1},
    "drafts": {"approved": 4, "rejected": 2, "expired": 1, "superseded": 0, "unreviewed": 1, "waiting": 1},
    "edited": 1,
    "rejected": {"inaccurate": 1, "tone": 1},
    "resent": 1,
    "decided": 6,
    "acceptance": 0.6667,
    "acceptance_unedited": 0.5,
    "mean_minutes_to_decision": 90.0,
    "tokens": 9 * 1_200 + 11,
    "cost_nanousd": 9 * COST + 1_500,
    "nanousd_for_each_approved": (9 * COST + 1_500) // 4,
}
NOTHING = {
    "slots": dict.fromkeys(WEEK["slots"], 0),  # type: ignore[call-overload]
    "skipped": {},
    "drafts": dict.fromkeys(WEEK["drafts"], 0),  # type: ignore[call-overload]
    "edited": 0,
    "rejected": {},
    "resent": 0,
    "decided": 0,
    "acceptance": None,
    "acceptance_unedited": None,
    "mean_minutes_to_decision": None,
    "tokens": 0,
    "cost_nanousd": 0,
    "nanousd_for_each_approved": None,
}


def test_a_week_is_told_as_plain_numbers_and_what_cannot_be_told_as_null(store: SqliteStore, stats: Stats) -> None:
    a_week(store)
    code, out, _ = stats("daily-digest", "--weeks", "2", "--json")
    assert (code, json.loads(out)) == (
        0,
        {
            "weeks": ["2026-W49", "2026-W48"],
            "drafters": [
                {
                    "drafter": "daily-digest",
                    "weeks": [
                        {"week": "2026-W49", "from": "2026-11-30", **NOTHING},
                        {"week": "2026-W48", "from": "2026-11-23", **WEEK},
                    ],
                    "total": WEEK,
                }
            ],
        },
    )


def test_a_week_is_shown_with_every_figure(store: SqliteStore, stats: Stats) -> None:
    a_week(store)
    code, out, _ = stats("daily-digest")
    assert code == 0
    for figure in (
        *("2026-W48", "2026-11-23", "9 drafted", "1 empty", "1 skipped (gate 1)", "4 approved (edited 1)"),
        *(
            "2 rejected (inaccurate 1, tone 1)",
            "1 expired",
            "1 unreviewed",
            "1 waiting",
            "6, mean 1 h 30 min",
            "67% accepted",
            "50% unedited",
        ),
        *("$0.0225", "$0.0056 per approved", "10,811 tokens"),
    ):
        assert figure in out
    assert "4 weeks" not in out, "one week alone needs no sum"
    assert "Nothing" not in out


def test_of_fewer_than_five_decided_drafts_no_share_is_told(store: SqliteStore, stats: Stats) -> None:
    for hour in range(4):
        draft(store, MONDAY + timedelta(hours=hour), Reject(RejectReason.OTHER))
    _, out, _ = stats("daily-digest")
    assert "accepted: too few" in out
    assert "n/a per approved" in out
    assert "%" not in out
    draft(store, MONDAY + timedelta(hours=4), Reject(RejectReason.OTHER))
    assert "0% accepted" in stats("daily-digest")[1]


def test_weeks_that_have_too_few_decisions_each_are_told_together(store: SqliteStore, stats: Stats) -> None:
    for days in (0, 1, 2, 7, 8):
        draft(store, MONDAY + timedelta(days=days), Approve())
    _, out, _ = stats("daily-digest", "--weeks", "3")
    assert out.count("too few") == 2
    assert "3 weeks" in out
    assert "100% accepted" in out


def test_a_drafter_of_which_nothing_is_counted_is_named(store: SqliteStore, stats: Stats) -> None:
    draft(store, MONDAY)
    _, out, _ = stats("--weeks", "2")
    silent = next(line for line in out.splitlines() if line.startswith("Nothing is counted since 2026-11-23 of: "))
    assert "weekly-report" in silent
    assert "daily-digest" not in silent
    _, out, _ = stats("daily-digest", "--weeks", "1")
    assert out == "Nothing is counted since 2026-11-30 of: daily-digest.\n"


@pytest.mark.parametrize("columns", ["40", "80"])
def test_on_a_narrow_terminal_every_figure_stays_whole(
    store: SqliteStore, stats: Stats, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    a_week(store)
    monkeypatch.setenv("COLUMNS", columns)
    words = stats("daily-digest")[1].split()
    assert {"daily-digest", "2026-11-23", "unreviewed", "unedited", "$0.0056", "10,811"} <= set(words)


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (("no-such-drafter",), 1, "galley: drafter 'no-such-drafter' neither has a file nor is scheduled"),
        (("--weeks", "0"), 2, "'0' is not a whole number from 1 to 53."),
        (("--weeks", "all"), 2, "'all' is not a whole number from 1 to 53."),
    ],
)
def test_what_cannot_be_shown_is_one_line(stats: Stats, arguments: tuple[str, ...], code: int, line: str) -> None:
    refused = stats(*arguments)
    assert (refused[0], refused[1], refused[2].count("\n")) == (code, "", 1)
    assert line in refused[2]


def test_the_figures_of_a_stack_are_those_of_its_table(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draft(store, NOW)
    queues = SqliteQueues(StateDirectory.open_existing(tmp_path / "state"))
    tick = {"drafters": ["only-deployed"], "window_minutes": 30, "grace_minutes": 120, "catch_up": "latest"}
    deployed = FixedSchedules((schedule("Gone", input=json.dumps(tick)),))
    monkeypatch.setattr("galley_cli.stack.open_stack", lambda name: Stack(store, queues, deployed))
    with time_machine.travel(NOW, tick=False):
        assert invoke(["stats", "daily-digest", "only-deployed", "--stack", "galley-prod"]) == 0
    out = capsys.readouterr().out
    assert "1 drafted" in out
    assert "of: only-deployed." in out


def test_a_failed_slot_that_was_sent_again_has_not_failed_any_more() -> None:
    assert Figures({"failed": 3, "resent": 2}).slots["failed"] == 1


@pytest.mark.parametrize(
    ("counters", "each"),
    [({"cost_nanousd": 10, "approved": 4}, 2), ({"cost_nanousd": 10}, None), ({"approved": 4}, 0), ({}, None)],
)
def test_the_whole_cost_is_borne_by_the_approved_drafts(counters: Mapping[str, int], each: int | None) -> None:
    assert Figures(counters).nanousd_for_each_approved == each


def test_the_sum_of_weeks_is_that_of_their_counters() -> None:
    weeks = (Figures({"approved": 3, "rejected": 1, "minutes_to_decision": 8}), Figures({"approved": 2}), Figures({}))
    total = together(weeks)
    assert (total.decided, total.acceptance, total.mean_minutes_to_decision) == (6, 5 / 6, 8 / 6)


def test_weeks_are_those_of_iso_8601_in_utc() -> None:
    new_year = datetime(2027, 1, 3, 23, 30, tzinfo=UTC)
    assert latest_weeks(new_year, 3) == ("2026-W53", "2026-W52", "2026-W51")
    assert latest_weeks(new_year.astimezone().astimezone(UTC) + timedelta(hours=1), 2) == ("2027-W01", "2026-W53")
    assert str(monday_of("2026-W53")) == "2026-12-28"
