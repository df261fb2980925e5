"""The commands that operate a system, on a state directory that no system runs on."""

import io
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import typer

from galley.drafts import Attachment, Draft, Item
from galley.instants import utc_now
from galley.queue import DeadLetter, DeadTick
from galley.rules import Review, Rules
from galley.runs import RejectReason, RunKey, Status
from galley.store import Bill, Claimed, Expire, Limits, Paused, Reject, Settled, SweptDrafter, SweptSchedule
from galley_cli.checkout import Checkout, find_checkout
from galley_cli.local.deployment import deploy
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from galley_cli.main import invoke
from galley_cli.stack import Stack
from galley_cli.template import read_template
from support.outside import ROOT, SLOT, FixedSchedules, message, schedule
from support.real_system import galley as real_galley

RUN = "daily-digest:2026-11-27T06:00:00Z"
QUIET = {"window_minutes": 30, "grace_minutes": 120, "catch_up": "latest"}
FAILED = "daily-digest:2026-11-28T06:00:00Z"
DRAFT = Draft(
    "Friday [bold]mails[/bold]", "Two mails.", (Item("m1", "Invoice", "Due.", "inbox"),), ("one is missing",), "offline"
)

Galley = Callable[..., tuple[int, str, str]]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    """A state with one pending draft, and one run that failed and is among the dead letters."""
    state = StateDirectory.open(tmp_path / "state")
    store = SqliteStore(state)
    for day, owner in ((0, "a"), (1, "b")):
        slot = SLOT + timedelta(days=day)
        claimed = store.claim(message(slot=slot), Limits(3, None, 0), owner=owner, now=slot, lease_until=slot)
        assert isinstance(claimed, Claimed)
        if day == 0:
            assert isinstance(store.store(claimed.run, DRAFT, {}, Bill(), now=slot), Settled)
        else:
            letter = DeadLetter(
                message(slot=slot).model_dump_json(), FAILED, "refusal", "no", "NeverSucceeds", 1, slot, slot
            )
            SqliteQueues(state).bury(letter)
            store.release(claimed.run, Status.FAILED, "refusal", "no", Bill(), now=slot)
    yield state
    state.close()


@pytest.fixture
def galley(state: StateDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Galley:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = invoke([*arguments, "--state", str(tmp_path / "state")])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def loaded(result: tuple[int, str, str]) -> Any:
    assert result[0] == 0, result
    return json.loads(result[1])


def test_what_waits_is_listed_and_shown_with_the_hash_to_decide_it_by(galley: Galley) -> None:
    listed = loaded(galley("drafts", "list", "--json"))["drafts"]
    assert [draft["run"] for draft in listed] == [RUN]
    shown = loaded(galley("drafts", "show", RUN, "--json"))
    assert (shown["title"], shown["body"], shown["warnings"]) == (DRAFT.title, "Two mails.", ["one is missing"])
    assert shown["text_hash"] == listed[0]["text_hash"]
    code, out, _ = galley("drafts", "show", RUN)
    assert code == 0
    assert "Friday [bold]mails[/bold]" in out
    assert shown["text_hash"][:12] in out


def test_what_goes_with_a_draft_is_named_its_table_is_shown_and_each_can_be_had(
    galley: Galley, state: StateDirectory
) -> None:
    table = Attachment("figures.csv", "text/csv", "Figure,Group\nOrders,[bold]x\x1b[0m\n")
    chart = Attachment("chart.svg", "image/svg+xml", "<svg>ä</svg>\n")
    store, slot = SqliteStore(state), SLOT + timedelta(days=2)
    claimed = store.claim(message(slot=slot), Limits(3, None, 0), owner="c", now=slot, lease_until=slot)
    assert isinstance(claimed, Claimed)
    store.store(claimed.run, replace(DRAFT, attachments=(table, chart)), {}, Bill(), now=slot)
    run = str(claimed.run.key)
    code, out, _ = galley("drafts", "show", run)
    assert code == 0
    assert "attachment figures.csv (text/csv, 32 bytes)" in out
    assert "Orders      [bold]x\ufffd[0m" in out
    assert "attachment chart.svg (image/svg+xml, 14 bytes)" in out
    assert "<svg>" not in out
    assert galley("drafts", "show", run, "--attachment", "chart.svg") == (0, chart.text, "")
    refused = galley("drafts", "show", run, "--attachment", "map.svg")
    assert (refused[0], refused[1]) == (2, "")
    assert "'map.svg': the draft has figures.csv, chart.svg" in refused[2]
    assert [one["name"] for one in loaded(galley("drafts", "show", run, "--json"))["attachments"]] == [
        "figures.csv",
        "chart.svg",
    ]


@pytest.mark.guarantee("G7")
def test_g7_a_decision_needs_the_hash_of_the_text_that_was_read(galley: Galley, state: StateDirectory) -> None:
    right = loaded(galley("drafts", "show", RUN, "--json"))["text_hash"]
    for arguments, code in ((("--hash", "0" * 12), 1), (("--hash", right[:7]), 2), ((), 2)):
        refused = galley("drafts", "approve", RUN, *arguments)
        assert (refused[0], refused[1]) == (code, "")
        assert refused[2].count("\n") == 1
    assert loaded(galley("drafts", "approve", RUN, "--hash", right[:12], "--json"))["status"] == "approved"
    second = galley("drafts", "reject", RUN, "--reason", "tone", "--yes")
    assert second[0] == 1
    assert "was already approved by" in second[2]


def stored(state: StateDirectory, rules: Rules) -> str:
    """Store a draft with rules, two days after the first, and return its run."""
    slot = SLOT + timedelta(days=2)
    store = SqliteStore(state)
    claimed = store.claim(message(slot=slot), Limits(3, None, 0), owner="c", now=slot, lease_until=slot)
    assert isinstance(claimed, Claimed)
    assert isinstance(store.store(claimed.run, DRAFT, {}, Bill(), now=slot, rules=rules), Settled)
    return str(claimed.run.key)


def test_urgent_drafts_are_listed_first_with_the_time_until_they_expire(galley: Galley, state: StateDirectory) -> None:
    urgent = stored(state, Rules(expires=SLOT + timedelta(days=3), urgent=True))
    listed = loaded(galley("drafts", "list", "--json"))["drafts"]
    assert [(one["run"], one["urgent"], one["expires"]) for one in listed] == [
        (urgent, True, "2026-11-30T06:00:00Z"),
        (RUN, False, None),
    ]
    table = " ".join(galley("drafts", "list")[1].split())
    assert "urgent: Friday" in table
    assert "2026-11-30 06:00Z" in table
    assert "expires 2026-11-30 06:00Z, if nobody decides on it" in galley("drafts", "show", urgent)[1]
    assert "expires" not in galley("drafts", "show", RUN)[1]


@pytest.mark.guarantee("G8")
def test_g8_a_draft_that_nobody_reviews_is_shown_as_such(galley: Galley, state: StateDirectory) -> None:
    unread = stored(state, Rules(review=Review.NONE))
    shown = galley("drafts", "show", unread)[1]
    assert shown.startswith("Nobody reviews this draft: it is sent unread (review = none).")
    assert f"run {unread}, approved, not reviewed;" in shown
    assert "approved, not reviewed" in " ".join(galley("runs", "list")[1].split())
    assert galley("drafts", "approve", unread, "--yes")[2].endswith("there is nothing to decide\n")
    assert "Nobody reviews" not in galley("drafts", "show", RUN)[1]


def test_a_withdrawn_draft_is_shown_with_the_reason(galley: Galley, state: StateDirectory) -> None:
    store = SqliteStore(state)
    run = store.run(RunKey.parse(RUN))
    assert run is not None
    store.withdraw(run, Expire(), now=SLOT)
    assert "expired: nobody decided on it until 2026-11-27T06:00:00Z" in galley("drafts", "show", RUN)[1]
    assert galley("drafts", "list")[1] == "No draft waits.\n"


def test_a_rejection_keeps_its_reason_and_words(galley: Galley, state: StateDirectory) -> None:
    assert galley("drafts", "reject", RUN, "--reason", "tone", "--words", "too cheerful", "--yes")[0] == 0
    row = SqliteStore(state).run(RunKey.parse(RUN))
    assert row is not None
    assert row.decision is not None
    assert (row.status, row.decision.reason, row.decision.words) == (Status.REJECTED, "tone", "too cheerful")
    shown = galley("drafts", "show", RUN)[1]
    assert f"\nrejected (tone) by {row.decision.reviewer} at " in shown
    assert "\nwords: too cheerful\n" in shown


def test_an_edit_from_a_file_is_approved_and_the_original_is_kept(galley: Galley, tmp_path: Path) -> None:
    file = tmp_path / "edit.md"
    file.write_text("# Friday\n\nOne mail.\n")
    unnamed = galley("drafts", "edit", RUN, "--file", str(file))
    assert (unnamed[0], unnamed[1]) == (2, "")
    assert "say which text you decide" in unnamed[2]
    assert loaded(galley("drafts", "show", RUN, "--json"))["status"] == "pending"
    assert galley("drafts", "edit", RUN, "--file", str(file), "--yes")[0] == 0
    shown = loaded(galley("drafts", "show", RUN, "--json"))
    assert (shown["status"], shown["title"], shown["body"]) == ("approved", "Friday", "One mail.")
    assert shown["original"] == {"title": DRAFT.title, "body": "Two mails."}
    assert "\napproved with an edit by " in galley("drafts", "show", RUN)[1]


@pytest.mark.parametrize(
    "text",
    ["", "only a title", "\n\n", "# \n\nbody", "a\0b\n\nbody", f"{'t' * 301}\n\nbody", f"title\n\n{'b' * 60_001}"],
)
def test_an_edit_that_no_reviewer_may_write_decides_nothing(
    galley: Galley, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    code, _, err = galley("drafts", "edit", RUN, "--file", "-")
    assert (code, "nothing was decided" in err) == (2, True)
    assert loaded(galley("drafts", "show", RUN, "--json"))["status"] == "pending"


def test_runs_are_listed_newest_first_and_shown(galley: Galley) -> None:
    assert [run["run"] for run in loaded(galley("runs", "list", "--json"))["runs"]] == [FAILED, RUN]
    assert [run["run"] for run in loaded(galley("runs", "list", "--status", "pending", "--json"))["runs"]] == [RUN]
    assert loaded(galley("runs", "list", "--drafter", "weekly-report", "--json"))["runs"] == []
    assert loaded(galley("runs", "show", FAILED, "--json"))["reason"] == "refusal"
    assert "failed: refusal" in galley("runs", "list")[1]


def test_dead_runs_are_shown_with_their_letter_and_their_row(galley: Galley, state: StateDirectory) -> None:
    dead = loaded(galley("dlq", "list", "--json"))
    assert [(one["run"], one["letter"]["reason"], one["row"]["status"]) for one in dead["runs"]] == [
        (FAILED, "refusal", "failed")
    ]
    assert "refusal" in galley("dlq", "show", FAILED)[1]
    SqliteQueues(state).bury(DeadLetter("{", None, "invalid_message", "not JSON", "InvalidMessage", 1, SLOT, SLOT))
    assert len(loaded(galley("dlq", "list", "--json"))["runs"]) == 2


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (json.dumps({"run": RUN, "sequence": "7"}), f"not published: {RUN}"),
        ("not json", "dead tick"),
        ("[]", "dead tick"),
        (json.dumps({"drafters": ["daily-digest"]}), "dead tick"),
    ],
)
def test_what_died_is_named_for_what_it_was(galley: Galley, state: StateDirectory, body: str, named: str) -> None:
    SqliteQueues(state).bury_tick(DeadTick(body, "PublishFailed", "its log says why", SLOT))
    assert f"{named} at 2026-11-27 06:00Z: PublishFailed" in galley("dlq", "list")[1]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("drafts", "show", "daily-digest:2026-01-01T00:00:00Z"), 1, "there is no run"),
        (("drafts", "show", FAILED), 1, "failed (refusal: no)"),
        (("drafts", "approve", FAILED, "--yes"), 1, "is failed (refusal); there is nothing to decide"),
        (("drafts", "show", "daily"), 2, "write it as"),
        (("drafts", "reject", RUN, "--reason", "boring", "--yes"), 2, "'--reason': 'boring' is not"),
        (("drafts", "edit", RUN, "--file", "/does/not/exist"), 2, "--file /does/not/exist: there is no such file"),
        (("drafts", "edit", RUN, "--file", "/"), 2, "--file /: cannot be read (Is a directory)"),
        (("drafts", "approve", RUN, "--hash", "0"), 2, "at least 8 characters"),
        (("drafts", "list", "--stack", "prod"), 2, "give one"),
        (("runs", "list", "--drafter", "nobody"), 1, "the drafters are: daily-digest"),
        (("runs", "list", "--limit", "0"), 2, "Invalid value for '--limit': '0' is not a whole number from 1 to"),
        (("run", "--port", "foo"), 2, "Invalid value for '--port': 'foo' is not a whole number from 0 to 65535"),
        (("drafts", "reject", RUN, "--reason", "tone", "--words", "w" * 2001, "--yes"), 2, "at most 2000 characters"),
        (("drafts", "reject", RUN, "--reason", "tone", "--words", "\x1b[2J", "--yes"), 2, "control characters"),
        (("pause", "nobody"), 1, "neither has a file nor is scheduled; the drafters are: daily-digest"),
        (("resume", "nobody"), 1, "neither has a file nor is scheduled"),
        (("pause", "daily-digest", "--reason", "r" * 2001), 2, "at most 2000 characters"),
        (("runs", "show", "daily-digest:2026-01-01T00:00:00Z"), 1, "there is no run"),
        (("runs", "list", "--status", "lost"), 2, "'--status': 'lost' is not one of"),
        (("dlq", "show", RUN), 1, "no dead letter"),
    ],
)
def test_a_users_mistake_is_one_line_and_its_exit_code(
    galley: Galley, arguments: tuple[str, ...], code: int, told: str
) -> None:
    got, out, err = galley(*arguments)
    assert (got, out) == (code, "")
    assert told in err
    assert err.count("\n") == 1


def test_a_state_that_does_not_exist_is_not_made_by_looking_at_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["drafts", "list", "--state", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


def test_schedules_have_their_slots_in_local_time_and_in_utc(galley: Galley) -> None:
    shown = loaded(galley("schedules", "--json"))
    assert shown["problems"] == []
    digest = next(one for one in shown["schedules"] if one["schedule"] == "DailyDigest")
    assert digest["timezone"] == "Europe/London"
    assert "T06:00" in digest["next"]["local"]
    assert digest["next"]["utc"].endswith("Z")
    assert galley("schedules")[0] == 0


def test_a_schedule_that_the_running_system_does_not_have_is_told_as_such(
    galley: Galley, state: StateDirectory
) -> None:
    written = read_template(find_checkout().template).schedules
    later = [replace(one, timezone="Asia/Tokyo") if one.name == "NightlySync" else one for one in written]
    deploy(state.root, [*later[1:], replace(written[0], name="Gone")], SLOT)
    names = ["DailyDigest", "NightlySync", "Gone"]
    assert loaded(galley("schedules", "--json"))["changed_since_start"] == names
    assert f"which takes it up at its next start: {', '.join(names)}.\n" in galley("schedules")[1]
    deploy(state.root, written, SLOT)
    assert loaded(galley("schedules", "--json"))["changed_since_start"] == []
    assert "takes it up" not in galley("schedules")[1]


def test_the_project_itself_passes_its_check(galley: Galley) -> None:
    assert loaded(galley("check", "--json"))["problems"] == []


def test_the_check_says_who_is_watched_for_silence(galley: Galley) -> None:
    assert loaded(galley("check", "--json"))["silence_slots"] == {
        "DailyDigest": 5,
        "NightlySync": 14,
        "WeeklyReport": 2,
    }
    assert "watched: WeeklyReport is told as silent after 2 due slots without a draft" in galley("check")[1]


def test_a_silence_is_shown_with_its_schedule_and_with_its_drafter(galley: Galley, state: StateDirectory) -> None:
    quiet = {"drafters": ["daily-digest", "weekly-report"], "silence_slots": 3, **QUIET}
    since = {name: SweptDrafter(silent_since=SLOT) for name in ("daily-digest", "gone")}
    unwatched = {"drafters": ["nightly-sync"], **QUIET}
    for name, tick, noted in (
        ("DailyDigest", quiet, since),
        ("NightlySync", unwatched, {"nightly-sync": SweptDrafter(silent_since=SLOT)}),
        ("Unreadable", {}, {"hourly-monitor": SweptDrafter(silent_since=SLOT)}),
    ):
        noted_now = SweptSchedule(schedule(name, input=json.dumps(tick)), SLOT, noted)
        SqliteStore(state).note_swept(noted_now, now=SLOT)
    told = {one["schedule"]: one["silent"] for one in loaded(galley("schedules", "--json"))["schedules"]}
    assert told == {
        "DailyDigest": {"daily-digest": "2026-11-27T06:00:00Z"},
        "HourlyMonitor": {},
        "NightlySync": {},
        "WeeklyReport": {},
    }
    listed = {one["drafter"]: one["silent_since"] for one in loaded(galley("drafters", "--json"))["drafters"]}
    assert {name: since for name, since in listed.items() if since} == {"daily-digest": "2026-11-27T06:00:00Z"}
    assert "silent since 2026-11-27T06:00:00Z" in " ".join(galley("schedules")[1].split())
    assert "2026-11-27T06:00:00Z" in galley("drafters")[1]


@pytest.mark.guarantee("G11")
@pytest.mark.parametrize(("budget", "is_noted"), [("0.0044", False), ("0.004399", True)])
def test_g11_a_budget_that_holds_no_call_is_noted(
    budget: str, is_noted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "functions", tmp_path / "functions")
    shutil.copy(ROOT / "template.yaml", tmp_path)
    file = tmp_path / "functions/draft/drafters/daily-digest.toml"
    written = file.read_text(encoding="utf-8")
    assert written.count("daily_budget_usd = 0.50") == 1
    file.write_text(written.replace("daily_budget_usd = 0.50", f"daily_budget_usd = {budget}"), encoding="utf-8")
    monkeypatch.setattr("galley_cli.commands.check.find_checkout", lambda: Checkout(tmp_path))
    assert invoke(["check", "--json"]) == 0
    notes = [note for note in json.loads(capsys.readouterr().out)["notes"] if "budget" in note]
    assert notes == [
        f"drafter 'daily-digest': one call of claude-haiku-5-5 may cost $0.0044, more than its "
        f"daily_budget_usd = {budget}, so all its slots would be skipped"
    ] * int(is_noted)


@pytest.mark.guarantee("G7")
def test_g7_a_text_that_changed_under_the_reviewer_is_told_as_such(
    galley: Galley, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = SqliteStore.decide

    def decide_on_an_older_page(store: SqliteStore, key: RunKey, verdict: Any, **read: Any) -> Any:
        return decide(store, key, verdict, **{**read, "version": read["version"] - 1})

    monkeypatch.setattr(SqliteStore, "decide", decide_on_an_older_page)
    code, _, err = galley("drafts", "approve", RUN, "--yes")
    assert code == 1
    assert "is not the one that was read" in err
    assert "read it again" in err


@pytest.mark.guarantee("G7")
@pytest.mark.parametrize("arguments", [("show", RUN), ("approve", RUN, "--yes"), ("edit", RUN, "--file", "-")])
def test_g7_a_text_that_is_not_the_rows_is_neither_shown_nor_decided(
    galley: Galley, state: StateDirectory, arguments: tuple[str, ...]
) -> None:
    with state.write() as db:
        db.execute("UPDATE texts SET body = 'Pay to another account.'")
    code, out, err = galley("drafts", *arguments)
    assert (code, out) == (1, "")
    assert "is not the text its row was made with" in err


def test_the_token_of_a_lease_is_printed_nowhere(galley: Galley, state: StateDirectory) -> None:
    slot = SLOT + timedelta(days=2)
    token = "the-token-of-the-lease"
    SqliteStore(state).claim(message(slot=slot), Limits(3, None, 0), owner=token, now=slot, lease_until=slot)
    run = str(RunKey("daily-digest", slot))
    assert loaded(galley("runs", "show", run, "--json"))["status"] == "drafting"
    for arguments in (("show", run), ("show", run, "--json"), ("list",), ("list", "--json")):
        assert token not in galley("runs", *arguments)[1]


def test_a_dead_row_that_cannot_be_read_is_named(galley: Galley, state: StateDirectory) -> None:
    with state.write() as db:
        db.execute("UPDATE runs SET origin = 'nowhere' WHERE status = 'failed'")
    (line,) = loaded(galley("dlq", "list", "--json"))["unreadable"]
    assert FAILED in line
    assert "origin" in line
    with state.write() as db:
        db.execute("DELETE FROM dead_runs")
    assert f"unreadable: run {FAILED}" in galley("dlq", "list")[1]


def test_a_paused_drafter_claims_nothing_until_it_is_resumed(galley: Galley, state: StateDirectory) -> None:
    def claim(day: int) -> object:
        slot = SLOT + timedelta(days=day)
        limits = Limits(9, None, 0)
        return SqliteStore(state).claim(message(slot=slot), limits, owner="c", now=slot, lease_until=slot)

    paused = loaded(galley("pause", "daily-digest", "--reason", "the inbox moves", "--json"))
    assert paused["paused"].endswith("(command line): the inbox moves")
    assert claim(2) == Paused(paused["paused"])
    code, out, _ = galley("resume", "daily-digest")
    assert (code, out) == (0, f"daily-digest drafts again; it was paused {paused['paused']}.\n")
    assert galley("resume", "daily-digest") == (0, "daily-digest was not paused.\n", "")
    assert isinstance(claim(2), Claimed)


def test_a_second_pause_tells_the_reason_that_it_replaces(galley: Galley, state: StateDirectory) -> None:
    SqliteStore(state).pause("daily-digest", "the account's spend limit is reached", now=SLOT)
    code, out, _ = galley("pause", "daily-digest", "--reason", "the inbox moves")
    assert code == 0
    assert out.endswith(": the inbox moves. Until now it was paused the account's spend limit is reached.\n")
    again = loaded(galley("pause", "daily-digest", "--json"))
    assert again["was_paused"].endswith("the inbox moves")
    told = loaded(galley("resume", "daily-digest", "--json"))
    assert (told["paused"], told["was_paused"]) == (None, again["paused"])
    assert loaded(galley("resume", "daily-digest", "--json"))["was_paused"] is None


def test_a_pause_by_the_spend_limit_is_ended_by_a_person(galley: Galley, state: StateDirectory) -> None:
    SqliteStore(state).pause("daily-digest", "the account's spend limit is reached", now=SLOT)
    assert "spend limit is reached" in galley("drafters")[1]
    assert loaded(galley("resume", "daily-digest", "--json"))["paused"] is None


def test_the_drafters_are_listed_with_their_gates_and_budgets(galley: Galley, state: StateDirectory) -> None:
    now = utc_now()
    SqliteStore(state).claim(
        message("weekly-report", now), Limits(2, None, 30_000_000), owner="c", now=now, lease_until=now
    )
    listed = {one["drafter"]: one for one in loaded(galley("drafters", "--json"))["drafters"]}
    assert listed.keys() >= {"daily-digest", "hourly-monitor", "nightly-sync", "weekly-report"}
    assert listed["daily-digest"]["pending"] == 1
    assert listed["daily-digest"]["pending_limit"] == 3
    assert listed["weekly-report"]["committed_nanousd"] == 30_000_000
    assert listed["weekly-report"]["daily_budget_nanousd"] == 500_000_000
    table = galley("drafters")[1]
    assert "1 of 3" in table
    assert "$0.0300 of $0.5000" in table


@pytest.fixture
def stack(state: StateDirectory, monkeypatch: pytest.MonkeyPatch) -> FixedSchedules:
    """A deployed stack over the same rows, whose schedules name drafters with and without a file."""
    contract = {"window_minutes": 30, "grace_minutes": 120, "catch_up": "latest"}
    deployed = FixedSchedules(
        (
            schedule("Good"),
            schedule("Gone", input=json.dumps({"drafters": ["only-deployed"], **contract})),
            schedule("Late", timezone="Europe/Londn"),
        )
    )
    monkeypatch.setattr(
        "galley_cli.stack.open_stack", lambda name: Stack(SqliteStore(state), SqliteQueues(state), deployed)
    )
    return deployed


def test_a_stacks_drafters_are_paused_and_listed_too(
    stack: FixedSchedules, state: StateDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["pause", "only-deployed", "--stack", "galley-prod"]) == 0
    assert SqliteStore(state).drafter("only-deployed").paused is not None
    capsys.readouterr()
    assert invoke(["drafters", "--stack", "galley-prod", "--json"]) == 0
    listed = {one["drafter"]: one for one in json.loads(capsys.readouterr().out)["drafters"]}
    assert listed["daily-digest"]["paused"] is None
    assert "command line" in listed["only-deployed"]["paused"]
    assert listed["only-deployed"]["pending_limit"] is None
    assert "there is no such file" in listed["only-deployed"]["problem"]
    assert invoke(["drafters", "--stack", "galley-prod"]) == 0
    assert "broken: " in capsys.readouterr().out


def test_deployed_schedules_are_checked_like_the_templates(
    stack: FixedSchedules, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["check", "--stack", "galley-prod"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "deployed schedule Gone: Input names drafter 'only-deployed', which has no file" in lines[0]
    assert "deployed schedule Late: timezone 'Europe/Londn' does not exist" in lines[1]


def test_a_decision_is_made_in_the_name_of_the_user_even_of_one_without_a_name(
    galley: Galley, state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown() -> str:
        raise KeyError("uid 4711")

    monkeypatch.setattr("getpass.getuser", unknown)
    decided = loaded(galley("drafts", "approve", RUN, "--yes", "--json"))
    assert decided["decision"]["reviewer"] == "local (command line)"


class AtATerminal(io.StringIO):
    """Standard input with a person at it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """A terminal, and an editor that is a shell script; texts that are kept are below the test's folder."""
    monkeypatch.setattr("sys.stdin", AtATerminal())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("VISUAL", raising=False)

    def use(script: str) -> None:
        file = tmp_path / "editor"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o700)
        monkeypatch.setenv("EDITOR", str(file))

    return use


WRITES = "printf 'Friday\\n\\nOne mail.\\n' > \"$1\""


def answering(monkeypatch: pytest.MonkeyPatch, answer: bool | type[BaseException]) -> list[str]:
    questions: list[str] = []

    def confirm(question: str, *, err: bool) -> bool:
        assert err, "standard output may be redirected"
        questions.append(question)
        if isinstance(answer, bool):
            return answer
        raise answer

    monkeypatch.setattr("typer.confirm", confirm)
    return questions


def test_an_edit_in_the_editor_is_approved_after_a_question(
    galley: Galley, editor: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    editor(WRITES)
    questions = answering(monkeypatch, True)
    assert galley("drafts", "edit", RUN)[0] == 0
    assert questions == ["Approve this edit?"]
    shown = loaded(galley("drafts", "show", RUN, "--json"))
    assert (shown["status"], shown["title"], shown["body"]) == ("approved", "Friday", "One mail.")
    assert list(tmp_path.glob("galley-edit-*")) == []


@pytest.mark.parametrize("answer", [False, typer.Abort])
def test_an_edit_that_is_not_approved_after_all_is_kept(
    galley: Galley,
    editor: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    answer: bool | type[BaseException],
) -> None:
    editor(WRITES)
    answering(monkeypatch, answer)
    code, out, err = galley("drafts", "edit", RUN)
    assert (code, out) == (1, "")
    (kept,) = tmp_path.glob("galley-edit-*/daily-digest.md")
    assert str(kept) in err
    assert "nothing was decided" in err
    assert kept.read_text() == "Friday\n\nOne mail.\n"
    assert loaded(galley("drafts", "show", RUN, "--json"))["status"] == "pending"


def test_an_edit_that_comes_too_late_is_kept(
    galley: Galley,
    editor: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    state: StateDirectory,
) -> None:
    editor(WRITES)
    answering(monkeypatch, True)
    decide = SqliteStore.decide

    def second(store: SqliteStore, key: RunKey, verdict: Any, **read: Any) -> Any:
        decide(store, key, Reject(RejectReason.TONE, ""), **read)
        return decide(store, key, verdict, **read)

    monkeypatch.setattr(SqliteStore, "decide", second)
    code, _, err = galley("drafts", "edit", RUN)
    (kept,) = tmp_path.glob("galley-edit-*/daily-digest.md")
    assert (code, str(kept) in err, "already rejected" in err) == (1, True, True)


@pytest.mark.parametrize(
    ("script", "code", "told"),
    [("exit 3", 2, "it failed (3)"), ("kill -9 $$", 2, "it was ended by signal 9"), ("true", 1, "was not changed")],
)
def test_an_editor_that_leaves_no_edit_decides_nothing(
    galley: Galley, editor: Callable[[str], None], tmp_path: Path, script: str, code: int, told: str
) -> None:
    editor(script)
    got, out, err = galley("drafts", "edit", RUN)
    assert (got, out) == (code, "")
    assert told in err
    assert err.count("\n") == 1
    assert list(tmp_path.glob("galley-edit-*")) == []


@pytest.mark.parametrize(
    ("value", "told"), [("no-such-editor", "there is no such program"), ("vi '", "a quotation mark is not closed")]
)
def test_an_editor_that_cannot_be_started_is_named_with_the_remedy(
    galley: Galley, editor: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, value: str, told: str
) -> None:
    monkeypatch.setenv("EDITOR", value)
    code, out, err = galley("drafts", "edit", RUN)
    assert (code, out) == (2, "")
    assert f"EDITOR is {value!r}: {told}" in err
    assert "set EDITOR" in err


@pytest.mark.parametrize("arguments", [(), ("drafts",), ("runs",), ("dlq",)])
def test_a_group_without_a_command_prints_its_help(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(arguments) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith("Usage: galley")
    assert len(printed.out.splitlines()) > 5


@pytest.mark.parametrize("columns", ["20", "60", "200"])
def test_a_key_and_a_hash_stay_whole_however_narrow_the_terminal(
    galley: Galley, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    read_hash = loaded(galley("drafts", "show", RUN, "--json"))["text_hash"]
    lines = galley("drafts", "list")[1].splitlines()
    assert any(line.startswith(RUN) and read_hash[:12] in line for line in lines)
    assert any(line.startswith(FAILED) for line in galley("runs", "list")[1].splitlines())


def test_nested_values_are_printed_by_their_names(galley: Galley) -> None:
    for out in (galley("runs", "show", FAILED)[1], galley("dlq", "show", FAILED)[1]):
        assert "{'" not in out
        assert "contract.window_minutes" in out


def test_no_run_of_a_status_is_said_in_its_word(galley: Galley) -> None:
    assert galley("runs", "list", "--status", "expired")[1] == "No run is expired.\n"
    assert galley("runs", "list", "--drafter", "weekly-report")[1] == "No run of weekly-report is there yet.\n"


def test_where_there_is_no_state_the_running_systems_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["drafts", "list", "--state", str(tmp_path / "nowhere")]) == 2
    assert "give --state DIR of the system that runs" in capsys.readouterr().err


def test_an_output_without_unicode_breaks_no_command(state: StateDirectory, tmp_path: Path) -> None:
    with state.write() as db:
        db.execute("UPDATE runs SET title = 'Grüße' WHERE title IS NOT NULL")
    shared = ("drafts", "list", "--state", str(tmp_path / "state"))
    listed = real_galley(*shared, PYTHONIOENCODING="ascii")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "Gr??e" in listed.stdout
    as_json = real_galley(*shared, "--json", PYTHONIOENCODING="ascii")
    assert json.loads(as_json.stdout)["drafts"][0]["title"] == "Grüße", "programs lose nothing"


def test_a_drafter_that_no_schedule_names_is_a_note_and_no_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "functions", tmp_path / "functions")
    shutil.copy(ROOT / "template.yaml", tmp_path)
    drafters = tmp_path / "functions" / "draft" / "drafters"
    shutil.copy(drafters / "daily-digest.toml", drafters / "spare.toml")
    monkeypatch.setattr("galley_cli.commands.check.find_checkout", lambda: Checkout(tmp_path))
    assert invoke(["check"]) == 0
    printed = capsys.readouterr()
    assert "note: drafter 'spare' is named by no schedule" in printed.out
    assert printed.err == ""


def test_no_text_from_outside_moves_the_cursor(galley: Galley, state: StateDirectory) -> None:
    store = SqliteStore(state)
    slot = SLOT + timedelta(days=2)
    claimed = store.claim(message(slot=slot), Limits(3, None, 0), owner="c", now=slot, lease_until=slot)
    assert isinstance(claimed, Claimed)
    evil = "\x1b[2J\x9b1A\x07\r"
    item = Item(f"m{evil}", evil, "Due.", "inbox", f"https://example.com/{evil}")
    store.store(claimed.run, Draft(f"Title{evil}", f"Text{evil}.", (item,), (evil,), f"m{evil}"), {}, Bill(), now=slot)
    store.pause("daily-digest", f"paused{evil}", now=slot)
    with state.write() as db:
        db.execute("UPDATE runs SET detail = ? WHERE status = 'failed'", (f"Detail{evil}",))
    run = str(RunKey("daily-digest", slot))
    commands = (
        ("drafts", "list"),
        ("drafts", "show", run),
        ("runs", "list"),
        ("runs", "show", FAILED),
        ("runs", "show", run),
        ("drafters",),
        ("runs", "show", "daily-digest:\x1b[2J"),
    )
    for command in commands:
        _, out, err = galley(*command)
        assert out or err
        assert not set(out + err) & {"\x1b", "\x9b", "\x07", "\r"}, command
    assert "Title\ufffd[2J" in galley("drafts", "list")[1]
    assert "Detail\ufffd[2J" in galley("runs", "list")[1]
    assert "paused\ufffd[2J" in galley("drafters")[1]


def test_json_keeps_what_moves_a_cursor_and_moves_none(galley: Galley, state: StateDirectory) -> None:
    evil = "\x1b[2J\x9b1A\x7f\x07"
    SqliteStore(state).pause("daily-digest", evil, now=SLOT)
    _, out, _ = galley("drafters", "--json")
    assert not set(out) & {"\x1b", "\x9b", "\x7f", "\x07"}
    assert evil in [one["paused"] for one in json.loads(out)["drafters"]]


def test_a_problem_that_quotes_what_is_deployed_moves_no_cursor(
    stack: FixedSchedules, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("galley_cli.commands.check.schedule_problems", lambda *_: ["deployed schedule \x1b[2J: no"])
    assert invoke(["check", "--stack", "galley"]) == 2
    assert "galley: deployed schedule \ufffd[2J: no\n" in capsys.readouterr().err
