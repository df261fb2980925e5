"""``galley schedules``, and switching a deployed stack's schedules on and off."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from galley.instants import utc_now
from galley.schedules import ScheduleDefinition, ScheduleState, SchedulesUnavailable
from galley_cli.checkout import Checkout
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from galley_cli.main import invoke
from galley_cli.stack import Stack
from support.outside import ROOT, schedule

Galley = Callable[..., tuple[int, str, str]]


@dataclass
class Switchable:
    """A group of schedules whose last change is when the test switched them; ``broken`` answers nothing."""

    definitions: dict[str, ScheduleDefinition]
    broken: set[str] = field(default_factory=set)
    asked: list[tuple[str, ScheduleState]] = field(default_factory=list)

    def all(self) -> tuple[ScheduleDefinition, ...]:
        return tuple(self.definitions.values())

    def switch(self, arn: str, state: ScheduleState) -> ScheduleDefinition:
        (name,) = (one.name for one in self.all() if one.arn == arn)
        self.asked.append((name, state))
        if name in self.broken:
            raise SchedulesUnavailable("throttled")
        switched = replace(self.definitions[name], enabled=state is ScheduleState.ENABLED, modified=utc_now())
        self.definitions[name] = switched
        return switched


@pytest.fixture
def deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Switchable:
    schedules = [
        schedule("Daily"),
        schedule("Hourly", expression="cron(0 * * * ? *)"),
        schedule("Off", enabled=False),
        schedule("Broken", input="{"),
    ]
    found = Switchable({one.name: one for one in schedules})
    state = StateDirectory.open(tmp_path / "state")
    monkeypatch.setattr(
        "galley_cli.stack.open_stack", lambda name: Stack(SqliteStore(state), SqliteQueues(state), found)
    )
    return found


@pytest.fixture
def galley(capsys: pytest.CaptureFixture[str]) -> Galley:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = invoke([*arguments, "--stack", "galley-prod"])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_schedules_are_disabled_and_enabled_again(galley: Galley, deployed: Switchable) -> None:
    code, out, err = galley("schedules", "disable", "Daily", "Hourly", "--yes")
    assert (code, err) == (0, "")
    assert out == "".join(
        f"{name} is disabled: no slot of it is due until it is enabled again.\n" for name in ("Daily", "Hourly")
    )
    assert deployed.asked == [("Daily", ScheduleState.DISABLED), ("Hourly", ScheduleState.DISABLED)]
    code, out, _ = galley("schedules", "enable", "Daily", "--yes")
    assert code == 0
    assert out.startswith("Daily is enabled; its next slot is 20")
    told = json.loads(galley("schedules", "enable", deployed.definitions["Hourly"].arn, "--yes", "--json")[1])
    assert told == {
        "schedules": [
            {
                "schedule": "Hourly",
                "arn": deployed.definitions["Hourly"].arn,
                "enabled": True,
                "changed": True,
            }
        ]
    }


def test_one_that_is_there_already_is_left_without_a_question(galley: Galley, deployed: Switchable) -> None:
    assert galley("schedules", "disable", "Off") == (0, "Off is disabled already.\n", "")
    assert deployed.asked == []
    code, out, _ = galley("schedules", "enable", "Daily", "Off", "Daily", "--yes")
    assert (code, deployed.asked) == (0, [("Off", ScheduleState.ENABLED)])
    assert out.splitlines()[0] == "Daily is enabled already."


def test_one_whose_input_cannot_be_read_can_be_disabled(galley: Galley, deployed: Switchable) -> None:
    assert galley("schedules", "disable", "Broken", "--yes")[0] == 0
    assert not deployed.definitions["Broken"].enabled


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("disable", "Daily", "Dayly", "--yes"), 1, "no schedule is named 'Dayly'; the schedules are: Daily, Hourly"),
        (("disable", "Daily"), 2, "there is no terminal to ask at; --yes disables without asking"),
        (("enable", "Off"), 2, "there is no terminal to ask at; --yes enables without asking"),
        (("enable",), 2, "Missing argument 'NAME...'"),
        (("toggle", "Daily"), 2, "No such command 'toggle'"),
    ],
)
def test_a_users_mistake_is_one_line_and_switches_nothing(
    galley: Galley, deployed: Switchable, arguments: tuple[str, ...], code: int, told: str
) -> None:
    got, out, err = galley("schedules", *arguments)
    assert (got, out) == (code, "")
    assert told in err
    assert err.count("\n") == 1
    assert deployed.asked == []


def test_options_before_the_word_are_refused_since_they_would_be_ignored(
    deployed: Switchable, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in (("--stack", "galley-prod"), ("--next", "2"), ("--json",), ("--state", "elsewhere")):
        assert invoke(["schedules", *option, "disable", "Daily", "--yes"]) == 2
        assert "give the options after 'disable'" in capsys.readouterr().err
    assert deployed.asked == []


@pytest.mark.parametrize(("answer", "code", "enabled"), [("y\n", 0, False), ("n\n", 1, True), ("", 1, True)])
def test_at_a_terminal_it_asks(
    galley: Galley,
    deployed: Switchable,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    code: int,
    enabled: bool,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))
    got, _, err = galley("schedules", "disable", "Daily")
    assert got == code
    assert "Daily  cron(0 6 * * ? *) Europe/London\n" in err
    assert "Disable this?" in err
    assert deployed.definitions["Daily"].enabled is enabled


def test_what_was_switched_before_an_error_is_told(galley: Galley, deployed: Switchable) -> None:
    deployed.broken = {"Hourly"}
    code, out, err = galley("schedules", "disable", "Daily", "Hourly", "--yes")
    assert code == 1
    assert out.splitlines() == [
        "Daily is disabled: no slot of it is due until it is enabled again.",
        "Hourly was not disabled.",
    ]
    assert "throttled" in err


def test_on_this_machine_the_line_says_what_to_change(capsys: pytest.CaptureFixture[str]) -> None:
    for verb, code, told in (
        ("disable", 1, "write 'State: DISABLED' into the Properties of DailyDigest there, and start galley run again"),
        ("enable", 0, ""),
    ):
        assert invoke(["schedules", verb, "DailyDigest"]) == code
        printed = capsys.readouterr()
        assert told in printed.err
        assert printed.out == ("" if code else "DailyDigest is enabled already.\n")


def test_a_schedule_that_the_template_disables_is_shown_as_disabled_and_has_no_slot_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "template.yaml").read_text(encoding="utf-8")
    line = "            ScheduleExpression: cron(0 6 ? * MON-FRI *)\n"
    assert line in text
    (tmp_path / "template.yaml").write_text(text.replace(line, f"{line}            State: DISABLED\n"))
    monkeypatch.setattr("galley_cli.commands.definitions.find_checkout", lambda: Checkout(tmp_path))
    for arguments in ((), ("--next", "2")):
        assert invoke(["schedules", *arguments]) == 0
        (digest,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("DailyDigest"))
        assert "(disabled)" in digest
        assert invoke(["schedules", *arguments, "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)["schedules"]
        found: dict[str, Any] = next(one for one in listed if one["schedule"] == "DailyDigest")
        assert (found["enabled"], found["next"], found.get("coming", [])) == (False, None, [])
        assert found["drafters"] == ["daily-digest"]
    assert invoke(["schedules", "enable", "DailyDigest"]) == 1
    assert "take 'State: DISABLED' out of the Properties of DailyDigest there" in capsys.readouterr().err


def test_a_stack_lists_its_schedules_with_their_state(galley: Galley, deployed: Switchable) -> None:
    listed = json.loads(galley("schedules", "--json")[1])["schedules"]
    assert {one["schedule"]: one["enabled"] for one in listed} == {
        "Daily": True,
        "Hourly": True,
        "Off": False,
        "Broken": True,
    }
