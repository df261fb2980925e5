"""``galley slots``, the coming slots of ``galley schedules``, and what ``galley check`` notes about expressions."""

import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from galley.instants import parse_instant
from galley_cli.checkout import Checkout
from galley_cli.main import invoke
from support.outside import ROOT

WEEKDAYS = "cron(0 6 ? * MON-FRI *)"
FROM, TO = "2026-03-27T00:00:00Z", "2026-04-01T00:00:00Z"

Slots = Callable[..., tuple[int, str, str]]


@pytest.fixture
def slots(capsys: pytest.CaptureFixture[str]) -> Slots:
    def run(
        expression: str = WEEKDAYS, *options: str, tz: str = "Europe/London", first: str = FROM, end: str = TO
    ) -> tuple[int, str, str]:
        code = invoke(["slots", expression, "--tz", tz, "--from", first, "--to", end, *options])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.mark.guarantee("G9")
def test_g9_due_slots_are_printed_in_utc_as_json(slots: Slots) -> None:
    code, out, err = slots(WEEKDAYS, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == ["2026-03-27T06:00:00Z", "2026-03-30T05:00:00Z", "2026-03-31T05:00:00Z"]


def test_a_person_sees_the_clocks_of_the_zone_beside(slots: Slots) -> None:
    code, out, err = slots()
    assert (code, err) == (0, "")
    assert out.splitlines()[:2] == [
        "2026-03-27T06:00:00Z  2026-03-27T06:00+00:00",
        "2026-03-30T05:00:00Z  2026-03-30T06:00+01:00",
    ]


def test_the_range_holds_its_begin_and_not_its_end(slots: Slots) -> None:
    assert json.loads(slots(WEEKDAYS, "--json", first="2026-03-27T06:00:00Z", end="2026-03-30T05:00:00Z")[1]) == [
        "2026-03-27T06:00:00Z"
    ]
    assert slots(WEEKDAYS, "--json", first=FROM, end=FROM) == (0, "[]\n", "")
    assert slots(first=FROM, end=FROM) == (0, "", "")


@pytest.mark.guarantee("G9")
@pytest.mark.parametrize(
    ("tz", "first", "begins"),
    [
        ("Europe/London", "2026-03-29", "2026-03-29T00:00:00Z"),
        ("Europe/London", "2026-03-30", "2026-03-29T23:00:00Z"),
        ("Australia/Sydney", "2026-03-29", "2026-03-28T13:00:00Z"),
        ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z"),  # the clocks leave its first hour out
    ],
)
def test_g9_a_date_begins_at_its_midnight_by_the_clocks_of_the_zone(
    slots: Slots, tz: str, first: str, begins: str
) -> None:
    _, out, _ = slots("rate(1 day)", "--json", tz=tz, first=first, end="2026-04-26T00:00:00Z")
    assert json.loads(out)[0] == begins


def test_all_options_that_are_missing_are_named_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["slots", WEEKDAYS]) == 2
    assert capsys.readouterr().err == "galley: Missing options --tz, --from, --to; see 'galley slots --help'\n"
    assert invoke(["slots", WEEKDAYS, "--tz=UTC", f"--from={FROM}"]) == 2
    assert capsys.readouterr().err == "galley: Missing option --to; see 'galley slots --help'\n"
    assert invoke(["slots", "--help"]) == 0


def test_a_date_beyond_what_can_be_counted_is_one_line(slots: Slots) -> None:
    code, _, err = slots(tz="Asia/Tokyo", first="0001-01-01")
    assert (code, "outside the years 1 to 9999" in err) == (2, True)


def test_a_rate_counts_from_the_begin(slots: Slots) -> None:
    _, out, _ = slots("rate(2 days)", "--json", first="2026-03-27T01:02:03Z")
    assert json.loads(out) == ["2026-03-27T01:02:03Z", "2026-03-29T01:02:03Z", "2026-03-31T01:02:03Z"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"expression": "cron(0 6 * * MON-FRI *)"}, "day-of-month is '*' and day-of-week is 'MON-FRI'"),
        ({"expression": "cron(0 6 ? * MON-FRI)"}, "5 fields"),
        ({"expression": "daily at six"}, "'daily at six' is not cron(...)"),
        ({"tz": "Europe/Londn"}, "timezone 'Europe/Londn' does not exist"),
        ({"first": "yesterday"}, "'--from': 'yesterday' is not an instant"),
        ({"end": "2026-04-01T00:00:00"}, "'--to': '2026-04-01T00:00:00' has no timezone; write 2026-04-01T"),
        ({"end": "2026-03-26T00:00:00Z"}, "--to 2026-03-26T00:00:00Z is before --from 2026-03-27T00:00:00Z"),
    ],
)
def test_what_cannot_be_read_is_one_line(slots: Slots, change: dict[str, str], named: str) -> None:
    code, out, err = slots(**change)
    assert (code, out) == (2, "")
    assert err.startswith("galley: ")
    assert err.count("\n") == 1
    assert named in err


@pytest.mark.parametrize(
    ("expression", "warned"),
    [
        ("cron(30 1 * * ? *)", "2026-03-29 01:30 does not exist in Europe/London, where the clocks go forward"),
        ("cron(0 6 LW * ? *)", "day-of-month 'LW': AWS does not document the last weekday of a month"),
        ("cron(0 6 30 2 ? *)", "it is never due"),
    ],
)
def test_what_may_not_be_meant_is_a_warning_beside_the_slots(slots: Slots, expression: str, warned: str) -> None:
    code, out, err = slots(expression, "--json")
    assert code == 0
    assert isinstance(json.loads(out), list)
    assert err.startswith(f"galley: warning: {warned}")
    assert err.count("\n") == 1


def test_a_gap_outside_the_range_is_no_warning(slots: Slots) -> None:
    assert slots("cron(30 1 * * ? *)", first="2026-03-29T01:30:01Z")[2] == ""
    assert slots("cron(30 1 * * ? *)", end="2026-03-29T01:30:00Z")[2] == ""


def test_a_range_of_all_years_is_printed_as_it_is_found(slots: Slots) -> None:
    code, out, _ = slots("cron(0 0 29 2 ? *)", "--json", first="0001-01-01T00:00:00Z", end="9999-12-31T23:59:59Z")
    found = json.loads(out)
    assert (code, found[0], found[-1]) == (0, "1972-02-29T00:00:00Z", "2196-02-29T00:00:00Z")


def test_the_coming_slots_of_each_schedule_are_told_in_both_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["schedules", "--next", "3", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["schedules"]
    assert {one["schedule"] for one in shown} >= {"DailyDigest", "NightlySync"}
    for one in shown:
        assert len(one["coming"]) == 3
        assert one["coming"][0] == one["next"]
        instants = [parse_instant(slot["utc"]) for slot in one["coming"]]
        assert all(before < after for before, after in pairwise(instants))
        assert instants == [parse_instant(slot["local"]) for slot in one["coming"]]
    assert invoke(["schedules", "--next", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("DailyDigest") and "T06:00" in line for line in lines) == 3


def test_nothing_is_coming_unless_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["schedules", "--json"]) == 0
    assert all("coming" not in one for one in json.loads(capsys.readouterr().out)["schedules"])
    assert invoke(["schedules", "--next", "0"]) == 2
    assert "'--next'" in capsys.readouterr().err


def test_the_check_notes_what_may_not_be_meant_and_finds_no_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "functions", tmp_path / "functions")
    template = (ROOT / "template.yaml").read_text(encoding="utf-8")
    template = template.replace("cron(0 6 ? * MON-FRI *)", "cron(0 6 LW * ? *)").replace(
        "(0 8 ? * MON *)", "(0 8 30 2 ? *)"
    )
    (tmp_path / "template.yaml").write_text(template, encoding="utf-8")
    monkeypatch.setattr("galley_cli.commands.check.find_checkout", lambda: Checkout(tmp_path))
    assert invoke(["check", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["problems"] == []
    undocumented, never, gap = told["notes"]
    assert undocumented.startswith("schedule DailyDigest: day-of-month 'LW': AWS does not document")
    assert never.startswith("schedule WeeklyReport: it is never due")
    assert gap.startswith("schedule NightlySync: 20")
    assert "02:30 does not exist in Australia/Sydney" in gap
