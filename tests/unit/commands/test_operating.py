"""The commands that operate a system, on a state directory that no system runs on."""

import io
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from galley.drafts import Draft, Item
from galley.queue import DeadLetter
from galley.runs import RunKey, Status
from galley.store import Bill, Claimed, Limits, Settled
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from galley_cli.main import invoke
from support.outside import SLOT, message

RUN = "daily-digest:2026-11-27T06:00:00Z"
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


@pytest.mark.guarantee("G7")
def test_g7_a_decision_needs_the_hash_of_the_text_that_was_read(galley: Galley, state: StateDirectory) -> None:
    right = loaded(galley("drafts", "show", RUN, "--json"))["text_hash"]
    for arguments, code in ((("--hash", "0" * 12), 1), (("--hash", right[:7]), 1), ((), 2)):
        refused = galley("drafts", "approve", RUN, *arguments)
        assert (refused[0], refused[1]) == (code, "")
        assert refused[2].count("\n") == 1
    assert loaded(galley("drafts", "approve", RUN, "--hash", right[:12], "--json"))["status"] == "approved"
    second = galley("drafts", "reject", RUN, "--reason", "tone", "--yes")
    assert second[0] == 1
    assert "approved, decided by" in second[2]


def test_a_rejection_keeps_its_reason_and_words(galley: Galley, state: StateDirectory) -> None:
    assert galley("drafts", "reject", RUN, "--reason", "tone", "--words", "too cheerful", "--yes")[0] == 0
    row = SqliteStore(state).run(RunKey.parse(RUN))
    assert row is not None
    assert row.decision is not None
    assert (row.status, row.decision.reason, row.decision.words) == (Status.REJECTED, "tone", "too cheerful")


def test_an_edit_from_a_file_is_approved_and_the_original_is_kept(galley: Galley, tmp_path: Path) -> None:
    file = tmp_path / "edit.md"
    file.write_text("# Friday\n\nOne mail.\n")
    assert galley("drafts", "edit", RUN, "--file", str(file))[0] == 0
    shown = loaded(galley("drafts", "show", RUN, "--json"))
    assert (shown["status"], shown["title"], shown["body"]) == ("approved", "Friday", "One mail.")
    assert shown["original"] == {"title": DRAFT.title, "body": "Two mails."}


@pytest.mark.parametrize("text", ["", "only a title", "\n\n", "# \n\nbody"])
def test_an_edit_without_title_or_text_decides_nothing(
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
    ("arguments", "code", "told"),
    [
        (("drafts", "show", "daily-digest:2026-01-01T00:00:00Z"), 1, "there is no run"),
        (("drafts", "show", FAILED), 1, "failed: refusal"),
        (("drafts", "approve", FAILED, "--yes"), 1, "does not wait for a decision"),
        (("drafts", "show", "daily"), 2, "write it as"),
        (("drafts", "reject", RUN, "--reason", "boring", "--yes"), 2, "boring"),
        (("drafts", "edit", RUN, "--file", "/does/not/exist"), 2, "cannot be read"),
        (("runs", "show", "daily-digest:2026-01-01T00:00:00Z"), 1, "there is no run"),
        (("runs", "list", "--status", "lost"), 2, "lost"),
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


def test_the_project_itself_passes_its_check(galley: Galley) -> None:
    assert loaded(galley("check", "--json"))["problems"] == []
