"""``galley dlq`` on a state directory: what is dead is shown, sent again and discarded by the names that are listed."""

import io
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
import typer

from galley.queue import DeadLetter, DeadTick, QueueUnavailable
from galley.runs import Run, RunKey, RunMessage, Status, read_message
from galley.store import Bill, Claimed, Limits
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from galley_cli.main import invoke
from support.outside import SLOT, message

FAILED = "daily-digest:2026-11-27T06:00:00Z"
OTHER = "daily-digest:2026-11-28T06:00:00Z"
UNKNOWN = "daily-digest:2026-01-01T00:00:00Z"
TICK = {
    "drafters": ["daily-digest", "weekly-report"],
    "slot": "2026-11-20T06:00:00Z",
    "window_minutes": 30,
    "grace_minutes": 120,
    "catch_up": "latest",
}

Galley = Callable[..., tuple[int, str, str]]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    """Two runs that failed for good, a letter that cannot be read, and a dead tick."""
    state = StateDirectory.open(tmp_path / "state")
    for day in range(2):
        die(state, message(slot=SLOT + timedelta(days=day)))
    queues = SqliteQueues(state)
    queues.bury(DeadLetter("{", None, "invalid_message", "no \x1b[2J", "InvalidMessage", 1, SLOT, SLOT))
    queues.bury_tick(DeadTick(json.dumps(TICK), "RetriesExhausted", "no answer", SLOT))
    yield state
    state.close()


def die(state: StateDirectory, asked: RunMessage) -> None:
    at = asked.slot
    SqliteQueues(state).bury(
        DeadLetter(asked.model_dump_json(), str(asked.key), "refusal", "no", "NeverSucceeds", 1, at, at)
    )
    store = SqliteStore(state)
    claimed = store.claim(asked, Limits(9, None, 0), owner="o", now=at, lease_until=at)
    assert isinstance(claimed, Claimed)
    store.release(claimed.run, Status.FAILED, "refusal", "no", Bill(), now=at)


@pytest.fixture
def galley(state: StateDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Galley:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = invoke(["dlq", *arguments, "--state", str(tmp_path / "state")])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def names(galley: Galley) -> list[str]:
    code, out, _ = galley("list", "--json")
    assert code == 0
    dead = json.loads(out)
    return [one["run"] for one in dead["runs"]] + [one["name"] for one in dead["ticks"]]


def sent(state: StateDirectory) -> list[tuple[str, int]]:
    """Return the runs in the queue, and their resend numbers."""
    with state.read() as db:
        bodies = [row[0] for row in db.execute("SELECT body FROM messages ORDER BY sequence")]
    return [(str(asked.key), asked.resend) for asked in map(read_message, bodies)]


def row(state: StateDirectory, key: str) -> Run:
    found = SqliteStore(state).run(RunKey.parse(key))
    assert found is not None
    return found


def test_all_that_is_dead_is_listed_under_a_name_that_the_other_commands_take(galley: Galley) -> None:
    assert sorted(names(galley)) == [FAILED, OTHER, "letter-3", "tick-1"]
    table = galley("list")[1]
    assert "tick-1  dead tick of daily-digest, weekly-report at 2026-11-27 06:00Z: RetriesExhausted: no answer" in table
    assert "letter-3" in table
    for name in names(galley):
        code, out, _ = galley("show", name)
        assert (code, bool(out)) == (0, True)
        shown = json.loads(galley("show", name, "--json")[1])
        assert len(shown["runs"]) + len(shown["ticks"]) == 1


def test_what_comes_from_outside_moves_no_cursor(galley: Galley, state: StateDirectory) -> None:
    SqliteQueues(state).bury_tick(DeadTick('{"run": "\x1b[31m"}', "\x9bReason", "\x07", SLOT))
    for arguments in (("list",), ("show", "letter-3"), ("show", "tick-2"), ("resend", "--all")):
        _, out, err = galley(*arguments)
        assert not set(out + err) & {"\x1b", "\x9b", "\x07"}


def test_a_tick_that_is_nested_too_deep_breaks_no_command(galley: Galley, state: StateDirectory) -> None:
    SqliteQueues(state).bury_tick(DeadTick("[" * 100_000, "RetriesExhausted", "no answer", SLOT))
    assert "unreadable dead tick" in galley("list")[1]
    assert galley("show", "tick-2")[0] == 0
    code, _, err = galley("resend", "tick-2")
    assert (code, err.count("\n")) == (1, 1)
    assert galley("discard", "tick-2", "--yes")[0] == 0


@pytest.mark.guarantee("G5")
def test_g5_one_command_sends_one_run_again(galley: Galley, state: StateDirectory) -> None:
    assert galley("resend", FAILED) == (0, f"sent again: {FAILED}\n", "")
    assert sent(state) == [(FAILED, 1)]
    assert (row(state, FAILED).status, row(state, OTHER).status) == (Status.QUEUED, Status.FAILED)
    assert sorted(names(galley)) == [OTHER, "letter-3", "tick-1"]


def test_several_are_sent_by_name_each_once(galley: Galley, state: StateDirectory) -> None:
    code, out, err = galley("resend", OTHER, "tick-1", OTHER, "daily-digest:2026-11-28T07:00:00+01:00", "--json")
    assert (code, err) == (0, "")
    ticked = [f"{name}:2026-11-20T06:00:00Z" for name in TICK["drafters"]]
    assert json.loads(out) == {
        "resent": [{"name": OTHER, "runs": [OTHER]}, {"name": "tick-1", "runs": ticked}],
        "sent_before": [],
        "notes": [],
        "refused": [],
        "not_found": [],
    }
    assert sent(state) == [(OTHER, 1), *((run, 1) for run in ticked)]


def test_a_pause_and_a_gate_that_take_not_all_are_told_of_what_was_sent(galley: Galley, state: StateDirectory) -> None:
    store = SqliteStore(state)
    store.pause("weekly-report", "by ada", now=SLOT)
    slot = SLOT - timedelta(days=90)
    store.claim(message(slot=slot), Limits(9, None, 0), owner="o", now=slot, lease_until=slot)
    code, out, err = galley("resend", FAILED, OTHER, "tick-1")
    assert (code, out.count("sent again: ")) == (0, 3)
    full, paused = err.splitlines()
    assert full.startswith("galley: drafter daily-digest has 1 undecided draft, and its gate takes 2 now; runs that")
    assert paused.startswith("galley: drafter weekly-report is paused by ada; what is sent is recorded as skipped")


def test_all_are_sent_and_what_is_not_is_told_with_its_reason(galley: Galley, state: StateDirectory) -> None:
    code, out, err = galley("resend", "--all")
    assert code == 1
    assert out.splitlines()[:2] == [f"sent again: {FAILED}", f"sent again: {OTHER}"]
    assert "sent again: tick-1: daily-digest:2026-11-20T06:00:00Z, weekly-report:2026-11-20T06:00:00Z" in out
    assert err.count("\n") == 1
    assert err.startswith(
        "galley: the message of letter-3 cannot be read, so it cannot be sent: run message: is not JSON"
    )
    assert "'galley dlq discard letter-3' takes it away" in err
    assert names(galley) == ["letter-3"]
    assert galley("discard", "letter-3", "--yes")[0] == 0
    assert galley("resend", "--all") == (0, "Nothing is dead.\n", "")
    assert galley("discard", "--all", "--yes") == (0, "Nothing is dead.\n", "")


def test_a_letter_that_was_left_over_is_cleared_and_told_as_such(galley: Galley, state: StateDirectory) -> None:
    left = message().model_dump_json()
    galley("resend", FAILED)
    store = SqliteStore(state)
    claimed = store.claim(message(resend=1), Limits(9, None, 0), owner="o", now=SLOT, lease_until=SLOT)
    assert isinstance(claimed, Claimed)
    store.release(claimed.run, Status.EMPTY, "nothing_new", "", Bill(), now=SLOT)
    SqliteQueues(state).bury(DeadLetter(left, FAILED, "refusal", "late", "", 1, SLOT, SLOT))
    assert galley("resend", FAILED) == (0, f"was sent again before, and only its letter was left: {FAILED}\n", "")
    assert FAILED not in names(galley)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("resend",), 2, "name what 'galley dlq list' shows, or give --all"),
        (("resend", FAILED, "--all"), 2, "one of the two"),
        (
            ("resend", "daily"),
            2,
            "'daily' is not a run; write it as daily-digest:2026-03-29T05:00:00Z, or as 'galley dlq",
        ),
        (("resend", ""), 2, "is not a run"),
        (("resend", "\x1b[2J:x"), 2, "is not a run"),
        (("show", "Ümlaut:2026-11-27T06:00:00Z"), 2, "is not a run"),
        (("resend", UNKNOWN), 1, f"there is no run {UNKNOWN} and no dead letter of it"),
        (("resend", "tick-9"), 1, "no dead tick is named 'tick-9'"),
        (("resend", "letter-"), 1, "is named 'letter-'"),
        (("show", "letter-9"), 1, "is named 'letter-9'"),
        (("discard",), 2, "name what 'galley dlq list' shows"),
        (("discard", FAILED), 2, "--yes discards without asking"),
        (("discard", UNKNOWN, "--yes"), 1, f"is named '{UNKNOWN}'"),
        (("discard", "tick-1", "--all", "--yes"), 2, "one of the two"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_done(
    galley: Galley, state: StateDirectory, arguments: tuple[str, ...], code: int, told: str
) -> None:
    got, out, err = galley(*arguments)
    assert (got, out) == (code, "")
    assert told in err
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert sent(state) == []
    assert len(names(galley)) == 4


class AtATerminal(io.StringIO):
    """Standard input with a person at it."""

    def isatty(self) -> bool:
        return True


def answering(monkeypatch: pytest.MonkeyPatch, *answers: bool | type[BaseException]) -> list[str]:
    questions: list[str] = []
    waiting = list(answers)

    def confirm(question: str, *, err: bool) -> bool:
        assert err, "what programs read is not asked into"
        questions.append(question)
        answer = waiting.pop(0)
        if isinstance(answer, bool):
            return answer
        raise answer

    monkeypatch.setattr("sys.stdin", AtATerminal())
    monkeypatch.setattr("typer.confirm", confirm)
    return questions


def test_discarding_names_what_will_be_lost_and_asks(
    galley: Galley, state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = answering(monkeypatch, True)
    code, out, err = galley("discard", FAILED, "tick-1", "letter-3", "--json")
    assert code == 0
    assert json.loads(out) == {"discarded": [FAILED, "letter-3", "tick-1"], "refused": [], "not_found": []}
    assert questions == ["Discard this for good?"]
    assert f"{FAILED}  1 letter; refusal: no\n" in err
    assert "tick-1  dead tick of daily-digest" in err
    assert names(galley) == [OTHER]


@pytest.mark.parametrize("answer", [False, typer.Abort])
def test_what_is_not_confirmed_stays(
    galley: Galley, state: StateDirectory, monkeypatch: pytest.MonkeyPatch, answer: bool | type[BaseException]
) -> None:
    answering(monkeypatch, answer)
    code, _, err = galley("discard", "--all")
    assert code == 1
    assert "this was not discarded" in err
    assert len(names(galley)) == 4


def test_what_is_discarded_stays_in_the_table_is_listed_no_longer_and_can_still_be_sent_again(
    galley: Galley, state: StateDirectory
) -> None:
    code, out, err = galley("discard", "--all", "--yes")
    assert (code, err) == (0, "")
    assert out.count("discarded: ") == 4
    assert names(galley) == []
    assert (row(state, FAILED).status, row(state, FAILED).reason) == (Status.FAILED, "refusal")
    assert galley("show", FAILED)[0] == 1
    assert galley("discard", FAILED, "--yes")[0] == 1
    assert galley("resend", FAILED)[0] == 0
    assert sent(state) == [(FAILED, 1)]


def test_what_was_done_is_told_even_if_the_command_breaks_off(
    galley: Galley, state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = SqliteQueues.send

    def break_at_the_second(queues: SqliteQueues, messages: Sequence[RunMessage]) -> None:
        if str(messages[0].key) == OTHER:
            raise OSError(28, "No space left on device")
        send(queues, messages)

    monkeypatch.setattr(SqliteQueues, "send", break_at_the_second)
    code, out, err = galley("resend", FAILED, OTHER)
    assert (code, out) == (1, f"sent again: {FAILED}\n")
    assert "No space left" in err
    assert FAILED not in names(galley)
    monkeypatch.undo()
    assert galley("resend", OTHER)[0] == 0
    assert sent(state) == [(FAILED, 1), (OTHER, 1)]


def test_what_was_sent_of_a_tick_is_told_even_if_the_command_breaks_off(
    galley: Galley, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = SqliteQueues.send

    def break_at_the_second(queues: SqliteQueues, messages: Sequence[RunMessage]) -> None:
        if messages[0].drafter == "weekly-report":
            raise OSError(28, "No space left on device")
        send(queues, messages)

    monkeypatch.setattr(SqliteQueues, "send", break_at_the_second)
    code, out, err = galley("resend", "tick-1")
    assert (code, out) == (1, "sent again: tick-1: daily-digest:2026-11-20T06:00:00Z\n")
    assert "No space left" in err
    assert "tick-1" in names(galley)


def test_a_queue_that_is_away_refuses_what_was_not_sent(
    galley: Galley, state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(queues: SqliteQueues, messages: Sequence[RunMessage]) -> None:
        raise QueueUnavailable([str(one.key) for one in messages], "it is away")

    monkeypatch.setattr(SqliteQueues, "send", away)
    code, out, _ = galley("resend", FAILED, "tick-1", "--json")
    assert code == 1
    ticked = [f"{name}:2026-11-20T06:00:00Z" for name in TICK["drafters"]]
    refused = json.loads(out)["refused"]
    assert [one["name"] for one in refused] == [FAILED, *ticked]
    assert refused[1]["why"].startswith(f"tick-1: {ticked[0]}: ")
    assert len(names(galley)) == 4


def test_a_failed_row_that_cannot_be_read_is_refused_with_what_is_wrong(galley: Galley, state: StateDirectory) -> None:
    with state.write() as db:
        db.execute("UPDATE runs SET origin = 'nowhere' WHERE slot = ?", ("2026-11-27T06:00:00Z",))
    code, out, err = galley("resend", FAILED, OTHER)
    assert (code, out) == (1, f"sent again: {OTHER}\n")
    assert FAILED in err
    assert "origin" in err
    assert galley("discard", FAILED, "--yes")[0] == 0, "its letter can be taken away"
    assert FAILED not in names(galley)
