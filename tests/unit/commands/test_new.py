"""``galley new``: a drafter's file that is right, and the schedule that goes with it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from galley.contract import read_tick
from galley_cli.checkout import Checkout
from galley_cli.inspection import inspect
from galley_cli.main import invoke
from galley_cli.starting import ShapeName, schedule_event, starter, usual
from support.outside import ROOT

EVENTS = "        DailyDigest:\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A copy of the project, which the commands act on."""
    shutil.copytree(ROOT / "functions" / "draft" / "drafters", tmp_path / "functions" / "draft" / "drafters")
    shutil.copy(ROOT / "template.yaml", tmp_path)
    copied = Checkout(tmp_path)
    for command in ("new", "check"):
        monkeypatch.setattr(f"galley_cli.commands.{command}.find_checkout", lambda: copied)
    monkeypatch.setattr("galley_cli.inspection.put_on_path", lambda _: None)
    return copied


@pytest.fixture
def new(checkout: Checkout, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = invoke(["new", *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def paste(checkout: Checkout, event: str) -> None:
    """Put a schedule into the template, as one is told to."""
    text = checkout.template.read_text()
    assert text.count(EVENTS) == 1
    checkout.template.write_text(text.replace(EVENTS, event + EVENTS))


@pytest.mark.parametrize("shape", ShapeName)
def test_what_is_written_and_what_is_pasted_pass_the_check(
    new: Callable[..., tuple[int, str, str]], checkout: Checkout, shape: ShapeName
) -> None:
    code, out, err = new(str(shape), "price-watch", "--tz", "Europe/Berlin", "--json")
    assert (code, err) == (0, "")
    told: dict[str, Any] = json.loads(out)
    assert (told["drafter"], told["shape"], told["schedule"]) == ("price-watch", str(shape), "PriceWatch")
    assert Path(told["file"]) == checkout.drafters / "price-watch.toml"
    paste(checkout, told["event"])
    inspection = inspect(checkout)
    assert inspection.problems == ()
    assert not [note for note in inspection.notes if "price-watch" in note or "PriceWatch" in note]
    (scheduled,) = [one for one in inspection.template.schedules if one.name == "PriceWatch"]
    assert (scheduled.expression, scheduled.timezone) == (usual(shape).expression, "Europe/Berlin")
    assert scheduled.retry_age <= usual(shape).contract.grace
    assert read_tick(scheduled.input).silence_slots == usual(shape).silence_slots
    assert invoke(["check"]) == 0


def test_a_person_is_told_where_the_file_is_and_what_to_paste(
    new: Callable[..., tuple[int, str, str]], checkout: Checkout
) -> None:
    code, out, _ = new("digest", "price-watch", "--schedule", "cron(30 7 ? * MON-FRI *)", "--tz", "Europe/Berlin")
    assert code == 0
    assert out.startswith(f"{checkout.drafters / 'price-watch.toml'} is written. ")
    assert "\n        PriceWatch:\n          Type: ScheduleV2\n" in out
    assert "\n            ScheduleExpression: cron(30 7 ? * MON-FRI *)\n" in out
    assert out.endswith("Then: galley check, galley draft price-watch\n")


def test_a_file_that_is_there_is_never_overwritten(
    new: Callable[..., tuple[int, str, str]], checkout: Checkout
) -> None:
    before = (checkout.drafters / "daily-digest.toml").read_text()
    code, out, err = new("report", "daily-digest")
    assert (code, out) == (1, "")
    assert err.endswith("daily-digest.toml: is there already; give another name, or edit it\n")
    assert (checkout.drafters / "daily-digest.toml").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("digest", "Price Watch"), "NAME is 'Price Watch': use a-z, 0-9 and -, beginning with a letter"),
        (("digest", "../escape"), "NAME is '../escape': use a-z"),
        (("digest", "x" * 64), "at most 63 characters"),
        (("summary", "price-watch"), "'summary' is not one of 'digest', 'report', 'sync', 'monitor'"),
        (("digest", "price-watch", "--schedule", "cron(0 25 * * ? *)"), "hours '25' is not allowed; use 0 to 23"),
        (("digest", "price-watch", "--tz", "Europe/Londn"), "timezone 'Europe/Londn' does not exist"),
    ],
)
def test_what_is_wrong_is_one_line_and_writes_nothing(
    new: Callable[..., tuple[int, str, str]], checkout: Checkout, arguments: tuple[str, ...], said: str
) -> None:
    there = sorted(checkout.drafters.iterdir())
    code, out, err = new(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert sorted(checkout.drafters.iterdir()) == there


def test_a_slot_that_is_not_due_each_day_is_told(new: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = new("sync", "price-watch", "--schedule", "cron(30 2 * * ? *)", "--tz", "Europe/Berlin")
    assert code == 0
    assert "does not exist in Europe/Berlin, where the clocks go forward: it is not due" in err


def test_a_schedules_name_that_is_taken_gets_a_number() -> None:
    assert schedule_event("daily-digest", usual(ShapeName.DIGEST), ["DailyDigest", "DailyDigest2"])[0] == "DailyDigest3"


def test_a_starter_is_about_its_own_drafter() -> None:
    assert 'prefix = "mail/price-watch/"' in starter(ShapeName.DIGEST, "price-watch")
