"""``galley backfill`` and ``galley tick`` on a state directory that no system runs on."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine

from galley.queue import QueueUnavailable
from galley.runs import Origin, RunKey, RunMessage, Status, read_message
from galley.store import Bill, Claimed, Limits
from galley_cli.local.deployment import deploy
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from galley_cli.main import invoke
from galley_cli.template import ARN_PREFIX, TemplateSchedule
from support.outside import SLOT, message, schedule

NOW = datetime(2026, 11, 28, 9, 30, 20, tzinfo=UTC)
RANGE = ("--from", "2026-11-25T00:00:00Z", "--to", "2026-11-29T00:00:00Z")
DAILY = [f"daily-digest:2026-11-{day}T06:00:00Z" for day in (25, 26, 27, 28)]
PENDING, FAILED = DAILY[0], DAILY[2]

Galley = Callable[..., tuple[int, str, str]]


def template_schedule(name: str, drafters: Sequence[str] = ("daily-digest",), **change: Any) -> TemplateSchedule:
    made = json.loads(schedule().input) | {"drafters": drafters}
    fields = {
        "function": "dispatch",
        "expression": "cron(0 6 * * ? *)",
        "timezone": "Europe/London",
        "input": json.dumps(made),
        "enabled": True,
        "start": None,
        "end": None,
        "retry_age": timedelta(hours=1),
        **change,
    }
    return TemplateSchedule(name=name, **fields)


SCHEDULES = [
    template_schedule("Daily"),
    template_schedule("Hourly", ["hourly-monitor", "nightly-sync"], expression="cron(0 * * * ? *)", timezone="UTC"),
    template_schedule("Weekly", ["weekly-report", "nightly-sync"], expression="cron(0 8 ? * MON *)"),
    template_schedule("Sydney", ["sydney"], expression="cron(0 0 * * ? *)", timezone="Australia/Sydney"),
    template_schedule("Minutely", ["weekly-report"], expression="rate(1 minute)", start=SLOT - timedelta(days=30)),
]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    """Schedules that were deployed today, a draft of the 25th that waits, and a run of the 27th that failed."""
    with time_machine.travel(NOW, tick=False):
        state = StateDirectory.open(tmp_path / "state")
        deploy(state.root, SCHEDULES, NOW)
        store = SqliteStore(state)
        for run in (PENDING, FAILED):
            key = RunKey.parse(run)
            claimed = store.claim(
                message(slot=key.slot), Limits(9, None, 0), owner=run, now=key.slot, lease_until=key.slot
            )
            assert isinstance(claimed, Claimed)
            if run == FAILED:
                store.release(claimed.run, Status.FAILED, "refusal", "no", Bill(), now=key.slot)
        yield state
        state.close()


@pytest.fixture
def galley(state: StateDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Galley:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = invoke([*arguments, "--state", str(tmp_path / "state")])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def queued(state: StateDirectory) -> list[RunMessage]:
    with state.read() as db:
        return [read_message(row[0]) for row in db.execute("SELECT body FROM messages ORDER BY sequence")]


def loaded(result: tuple[int, str, str]) -> Any:
    assert result[0] == 0, result
    return json.loads(result[1])


def test_a_dry_run_shows_what_each_slot_would_become_and_sends_nothing(galley: Galley, state: StateDirectory) -> None:
    code, out, err = galley("backfill", "daily-digest", *RANGE, "--dry-run")
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines == [
        "run row backfill",
        f"{DAILY[0]} drafting left as it is",
        f"{DAILY[1]} none would be sent",
        f"{FAILED} failed: refusal left as it is: --rerun failed sends it again",
        f"{DAILY[3]} none would be sent",
        "2 would be sent, and the gate takes 2 of them now; nothing was.",
    ]
    assert "slots that have not come yet" in err
    assert queued(state) == []


def test_what_has_no_row_is_sent_as_a_backfill_of_its_schedule(galley: Galley, state: StateDirectory) -> None:
    told = loaded(galley("backfill", "daily-digest", *RANGE, "--json"))
    assert [(one["run"], one["status"], one["step"], one["sent"]) for one in told["slots"]] == [
        (DAILY[0], "drafting", "leave", False),
        (DAILY[1], None, "send", True),
        (FAILED, "failed", "leave", False),
        (DAILY[3], None, "send", True),
    ]
    assert (told["sent"], told["dry_run"], told["schedule"]) == (2, False, "Daily")
    messages = queued(state)
    assert [str(one.key) for one in messages] == [DAILY[1], DAILY[3]]
    assert {(one.origin, one.schedule, one.resend) for one in messages} == {(Origin.BACKFILL, f"{ARN_PREFIX}Daily", 0)}
    assert not any(one.is_late(NOW) for one in messages), "no grace binds a backfill"
    assert len({one.trace for one in messages}) == 1


def test_a_second_time_at_once_changes_nothing(galley: Galley, state: StateDirectory) -> None:
    galley("backfill", "daily-digest", *RANGE)
    galley("backfill", "daily-digest", *RANGE)
    assert len(queued(state)) == 2, "the queue swallows what it has"


def test_failed_runs_are_sent_again_on_request(galley: Galley, state: StateDirectory) -> None:
    arguments = ("backfill", "daily-digest", *RANGE, "--rerun", "failed", "--order", "newest", "--limit", "2")
    code, out, _ = galley(*arguments)
    assert code == 0
    assert f"{FAILED}  failed: refusal  sent again" in "\n".join(line.strip() for line in out.splitlines())
    assert "beyond --limit 2" in out
    assert [(str(one.key), one.resend) for one in queued(state)] == [(DAILY[3], 0), (FAILED, 1)]
    row = SqliteStore(state).run(RunKey.parse(FAILED))
    assert row is not None
    assert (row.status, row.resend) == (Status.QUEUED, 1)


def test_only_the_named_drafter_of_a_schedule_is_sent(galley: Galley, state: StateDirectory) -> None:
    galley("backfill", "hourly-monitor", *RANGE)
    messages = queued(state)
    assert {one.drafter for one in messages} == {"hourly-monitor"}
    assert len(messages) == 3 * 24 + 10, "what has not come yet is the schedule's"
    assert galley("backfill", "nightly-sync", *RANGE, "--schedule", "Weekly")[1] == (
        "Schedule Weekly has no slot in that range until now.\n"
    )


def test_a_pause_is_told_before_it_skips_what_is_sent(galley: Galley, state: StateDirectory) -> None:
    SqliteStore(state).pause("daily-digest", "by ada", now=NOW)
    told = loaded(galley("backfill", "daily-digest", *RANGE, "--dry-run", "--json"))
    assert any("is paused by ada" in note for note in told["notes"])


def test_a_date_is_its_midnight_in_the_schedules_timezone(galley: Galley) -> None:
    def slots(*arguments: str) -> list[str]:
        return [one["slot"] for one in loaded(galley(*arguments, "--dry-run", "--json"))["slots"]]

    dates = ("--from", "2026-11-25", "--to", "2026-11-27")
    assert slots("backfill", "daily-digest", *dates) == ["2026-11-25T06:00:00Z", "2026-11-26T06:00:00Z"]
    assert slots("backfill", "sydney", *dates) == ["2026-11-24T13:00:00Z", "2026-11-25T13:00:00Z"]


@pytest.mark.parametrize(
    ("limit", "takes", "note"),
    [("2", 1, "has 2 undecided drafts, and its gate takes 1 now; runs that find it full are recorded"), ("1", 1, "")],
)
def test_what_the_gate_does_not_take_is_told(
    galley: Galley, state: StateDirectory, limit: str, takes: int, note: str
) -> None:
    slot = SLOT - timedelta(days=90)
    SqliteStore(state).claim(message(slot=slot), Limits(9, None, 0), owner="o", now=slot, lease_until=slot)
    arguments = ("backfill", "daily-digest", "--from", "2026-11-20", "--to", "2026-11-25", "--limit", limit)
    told = loaded(galley(*arguments, "--dry-run", "--json"))
    assert (told["gate_takes"], len(told["notes"])) == (takes, bool(note))
    code, _, err = galley(*arguments)
    assert code == 0
    assert (note in err, bool(err)) == (True, bool(note))


def test_a_pause_a_full_gate_and_a_broken_file_are_told_of_a_tick_too(galley: Galley, state: StateDirectory) -> None:
    store = SqliteStore(state)
    store.pause("hourly-monitor", "by ada", now=NOW)
    for day in range(3):
        slot = SLOT - timedelta(days=90 + day)
        store.claim(message("nightly-sync", slot), Limits(9, None, 0), owner=str(day), now=slot, lease_until=slot)
    code, out, err = galley("tick", "Hourly")
    assert (code, out.count("sent: ")) == (0, 2)
    paused, full = err.splitlines()
    assert paused.startswith("galley: drafter hourly-monitor is paused by ada; what is sent is recorded as skipped")
    assert full.startswith("galley: drafter nightly-sync has 3 undecided drafts, and its gate takes none now; ")
    told = loaded(galley("tick", "Sydney", "--json"))
    (broken,) = told["notes"]
    assert broken.startswith("drafter sydney has no good file here, and without one its runs fail: ")
    assert "sydney.toml" in broken
    assert galley("tick", "Daily", "--slot", "2026-11-27T06:00:00Z")[2] == "", "nothing is sent"


def test_a_row_that_cannot_be_read_is_named_and_stops_no_other(galley: Galley, state: StateDirectory) -> None:
    with state.write() as db:
        db.execute("UPDATE runs SET origin = 'nowhere' WHERE status = 'failed'")
    told = loaded(galley("backfill", "daily-digest", *RANGE, "--rerun", "failed", "--json"))
    (broken,) = [one for one in told["slots"] if one["status"] == "unreadable"]
    assert (broken["run"], broken["sent"], "origin" in broken["why"]) == (FAILED, False, True)
    assert told["sent"] == 2


@pytest.mark.parametrize("error", [QueueUnavailable([DAILY[3]], "no answer"), KeyboardInterrupt()])
def test_a_backfill_that_breaks_off_tells_what_was_sent_and_can_be_repeated(
    galley: Galley, state: StateDirectory, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def breaks(queue: SqliteQueues, messages: Sequence[RunMessage]) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(SqliteQueues, "send", breaks)
        code, out, err = galley("backfill", "daily-digest", *RANGE, "--json")
    sent = [one["run"] for one in json.loads(out)["slots"] if one["sent"]]
    if isinstance(error, QueueUnavailable):
        assert (code, sent) == (1, [DAILY[1]])
        assert "galley: broke off, 1 of 2 are not sent; the same command sends the rest\n" in err
    else:
        assert (code, sent) == (130, [])
    assert loaded(galley("backfill", "daily-digest", *RANGE, "--json"))["sent"] == 2
    assert len(queued(state)) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("backfill", "nobody", *RANGE), 1, "drafters that are scheduled are: daily-digest, hourly-monitor, night"),
        (("backfill", "Daily", *RANGE), 1, "Daily is a schedule, and its drafters are: daily-digest"),
        (("backfill", "nightly-sync", *RANGE), 1, "Hourly, Weekly; say which with --schedule"),
        (("backfill", "daily-digest", *RANGE, "--schedule", "Weekly"), 1, "does not name drafter 'daily-digest'"),
        (("backfill", "daily-digest", *RANGE, "--schedule", "Yearly"), 1, "no schedule is named 'Yearly'"),
        (("backfill", "daily-digest", "--from", "yesterday", "--to", "now"), 2, "'yesterday' is not an instant like"),
        (
            ("backfill", "daily-digest", "--from", "2026-11-25T06:00", *RANGE[2:]),
            2,
            "'2026-11-25T06:00' has no timezone; write 2026-11-25T06:00:00Z for UTC, or an offset like",
        ),
        (("backfill", "daily-digest", "--dry-run"), 2, "Missing options --from, --to; see 'galley backfill --help'"),
        (("backfill", "daily-digest", *RANGE[2:]), 2, "Missing option --from; see 'galley backfill --help'"),
        (("backfill", "daily-digest", *RANGE[2:], "--from", RANGE[3]), 2, "is not before --to 2026-11-29T00:00:00Z"),
        (("backfill", "daily-digest", *RANGE, "--limit", "0"), 2, "'0' is not a whole number from 1 to"),
        (("backfill", "daily-digest", *RANGE, "--rerun", "all"), 2, "'all' is not one of"),
        (
            ("backfill", "weekly-report", "--schedule", "Minutely", "--from", "2026-11-01T00:00:00Z", *RANGE[2:]),
            2,
            "more than 10000 slots from 2026-11-01T00:00:00Z",
        ),
        (("tick", "Yearly"), 1, "no schedule is named 'Yearly'; the schedules are: Daily"),
        (("tick", "DailyDigest"), 1, "; DailyDigest was changed in template.yaml since 'galley run' last"),
        (
            ("backfill", "weekly-report", *RANGE, "--schedule", "WeeklyReport"),
            1,
            "; WeeklyReport was changed in template.yaml since 'galley run' last started, which takes it up at",
        ),
        (("tick", "Daily", "--slot", "2026-11-29T06:00:00Z"), 1, "slot 2026-11-29T06:00:00Z has not come yet"),
        (
            ("tick", "Daily", "--slot", "1900-01-01T00:00:00Z"),
            2,
            "--slot 1900-01-01T00:00:00Z must lie in the years 1970 to 2199; nothing was sent",
        ),
        (
            ("tick", "Daily", "--slot", "9999-12-31T23:59:59Z"),
            2,
            "must lie in the years 1970 to 2199; nothing was sent",
        ),
        (("tick", "Daily", "--slot", "today"), 2, "'today' is not an instant like"),
    ],
)
def test_a_users_mistake_is_one_line_and_its_exit_code(
    galley: Galley, state: StateDirectory, arguments: tuple[str, ...], code: int, told: str
) -> None:
    got, out, err = galley(*arguments)
    assert (got, out) == (code, "")
    assert told in err
    assert err.count("\n") == 1
    assert queued(state) == []


def test_a_tick_by_hand_is_a_manual_run_of_the_present_minute(galley: Galley, state: StateDirectory) -> None:
    runs = ["hourly-monitor:2026-11-28T09:30:00Z", "nightly-sync:2026-11-28T09:30:00Z"]
    assert galley("tick", "Hourly") == (0, "".join(f"sent: {run}\n" for run in runs), "")
    messages = queued(state)
    assert [str(one.key) for one in messages] == runs
    assert {(one.origin, one.schedule) for one in messages} == {(Origin.MANUAL, f"{ARN_PREFIX}Hourly")}


def test_a_tick_for_a_slot_drafts_it_whatever_its_grace(galley: Galley, state: StateDirectory) -> None:
    assert galley("tick", "Daily", "--slot", "2026-11-26T06:00:00Z") == (0, f"sent: {DAILY[1]}\n", "")
    (asked,) = queued(state)
    assert (asked.origin, asked.is_late(NOW)) == (Origin.BACKFILL, False)


def test_a_slot_at_which_the_schedule_is_not_due_is_obeyed_with_a_warning(
    galley: Galley, state: StateDirectory
) -> None:
    code, out, err = galley("tick", "Daily", "--slot", "2026-11-26T08:30:00+01:00")
    assert (code, out) == (0, "sent: daily-digest:2026-11-26T07:30:00Z\n")
    assert err.startswith("galley: schedule Daily is not due at 2026-11-26T07:30:00Z; ")
    assert len(queued(state)) == 1


def test_a_tick_for_a_slot_that_has_a_row_sends_nothing(galley: Galley, state: StateDirectory) -> None:
    assert galley("tick", "Daily", "--slot", "2026-11-27T06:00:00Z") == (0, f"stays failed: refusal: {FAILED}\n", "")
    told = loaded(galley("tick", "Daily", "--slot", "2026-11-27T06:00:00Z", "--json"))
    assert told["runs"] == [{"run": FAILED, "sent": False, "status": "failed", "reason": "refusal"}]
    assert queued(state) == []
