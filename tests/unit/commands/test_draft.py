"""``galley draft``: what a run would make of a slot, with nothing stored, claimed or booked."""

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine

import authoring
from attempt import Delivery, Done, Workplace
from drafting import draft_run
from galley.observe import logger
from galley.runs import Origin, RunKey
from galley_cli.checkout import Checkout
from galley_cli.local.bucket import FolderBucket
from galley_cli.local.queue import SqliteQueues
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from galley_cli.main import invoke
from galley_cli.sample_material import put_samples
from galley_cli.stack import DeployedSources, Stack
from galley_cli.template import TemplateSchedules, read_template
from offline import OfflineModel
from sources.fetch import Fetched, FetchError
from support.model_fake import ModelFake, fails, says
from support.outside import ROOT, FixedSchedules, message, schedule

NOW = datetime(2026, 11, 29, 18, tzinfo=UTC)
LATEST = {
    "daily-digest": datetime(2026, 11, 27, 6, tzinfo=UTC),
    "weekly-report": datetime(2026, 11, 23, 13, tzinfo=UTC),
    "nightly-sync": datetime(2026, 11, 29, 15, 30, tzinfo=UTC),
    "hourly-monitor": datetime(2026, 11, 29, 18, tzinfo=UTC),
}
"""The latest due slot of each schedule in template.yaml at NOW."""


Galley = Callable[..., tuple[int, str, str]]


def nothing_answers(url: str, **_: Any) -> Fetched:
    raise FetchError(url, "nothing answers")


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A clock that stands, and a web in which nothing answers."""
    monkeypatch.setattr("sources.fetch.fetch", nothing_answers)
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    """A state in which nothing has run, with the sample material in its bucket."""
    state = StateDirectory.open(tmp_path / "state")
    put_samples(FolderBucket(state.bucket), NOW)
    yield state
    state.close()


@pytest.fixture
def galley(state: StateDirectory, capsys: pytest.CaptureFixture[str]) -> Galley:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = invoke(["draft", *arguments, "--state", str(state.root)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def loaded(result: tuple[int, str, str]) -> Any:
    assert result[0] == 0, result
    return json.loads(result[1])


def everything(state: StateDirectory) -> tuple[list[str], dict[str, tuple[bytes, int]]]:
    """Return all rows and all objects, with their times."""
    with state.read() as db:
        rows = list(db.iterdump())
    files = [path for path in state.bucket.rglob("*") if path.is_file()]
    return rows, {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def run(state: StateDirectory, drafter: str) -> None:
    """Draft a drafter's latest slot as a deployed run does, with the offline model."""
    schedules = TemplateSchedules.of(read_template(ROOT / "template.yaml"), created=state.created, modified=NOW)
    asked = next(
        message(drafter, LATEST[drafter], origin=Origin.BACKFILL, schedule=one.arn)
        for one in schedules.all()
        if f'"{drafter}"' in one.input
    )
    workplace = Workplace(
        store=SqliteStore(state),
        queue=SqliteQueues(state),
        bucket=FolderBucket(state.bucket),
        schedules=schedules,
        model=OfflineModel(),
        fetch=nothing_answers,
        desk_url="http://127.0.0.1:8700",
        now=lambda: NOW,
    )
    done = draft_run(Delivery(asked.model_dump_json(), "receipt", 1), workplace, "owner", timedelta(minutes=5))
    assert done == Done()


@pytest.mark.parametrize("drafter", LATEST)
@pytest.mark.parametrize("show", [(), ("--show", "prompt")], ids=["draft", "prompt"])
def test_nothing_is_stored_whatever_the_shape(
    galley: Galley, state: StateDirectory, drafter: str, show: tuple[str, ...]
) -> None:
    before = everything(state)
    told = loaded(galley(drafter, "--json", *show))
    assert told["outcome"] == ("prompt" if show else "draft")
    assert told["run"] == str(RunKey(drafter, LATEST[drafter]))
    assert everything(state) == before
    assert bool(told["written"]) == (drafter == "nightly-sync"), "only a sync writes, into the index"


@pytest.mark.parametrize("drafter", LATEST)
def test_the_draft_is_the_one_that_a_run_of_the_slot_stores(
    galley: Galley, state: StateDirectory, drafter: str
) -> None:
    told = loaded(galley(drafter, "--json"))
    run(state, drafter)
    stored = SqliteStore(state).draft(RunKey(drafter, LATEST[drafter]))
    assert stored is not None
    assert (told["title"], told["body"]) == (stored.draft.title, stored.draft.body)
    assert told["warnings"] == list(stored.draft.warnings)
    assert [item["text"] for item in told["items"]] == [item.text for item in stored.draft.items]
    assert [one["text"] for one in told["attachments"]] == [one.text for one in stored.draft.attachments]
    assert told["channels"] == [{"kind": "s3", "target": "published/"}]
    assert told["written"] == sorted(one.key for one in FolderBucket(state.bucket).list("index/"))


def test_what_has_been_drafted_is_not_new_but_can_be_read_afresh(galley: Galley, state: StateDirectory) -> None:
    first = loaded(galley("daily-digest", "--json"))
    run(state, "daily-digest")
    before = everything(state)
    quiet = loaded(galley("daily-digest", "--json"))
    assert quiet["outcome"] == "empty"
    assert quiet["detail"].startswith("nothing new in inbox")
    assert quiet["notes"] == [
        "run daily-digest:2026-11-27T06:00:00Z is pending already; it stays as it is",
        "--afresh reads the sources as a first run does, whatever has been drafted from them",
    ]
    assert galley("daily-digest")[1].startswith("empty: nothing new in inbox")
    assert loaded(galley("daily-digest", "--afresh", "--json"))["body"] == first["body"]
    assert everything(state) == before


def test_a_person_reads_the_draft_its_warnings_its_items_and_what_a_run_reserves(galley: Galley) -> None:
    code, out, err = galley("daily-digest")
    assert (code, err) == (0, "")
    assert out.startswith("Daily digest: 14 items\n======")
    assert "\nwarning: inbox: " in out
    assert "\n[m1] Order LR-20418: please do not deliver tomorrow\n" in out
    assert out.endswith(
        "\nrun daily-digest:2026-11-27T06:00:00Z, about 2026-11-26 06:00 to 2026-11-27 06:00 Europe/London; "
        "nothing was stored\n"
        "a run with claude-haiku-5-5 reserves $0.0044, of $0.5000 a day\n"
        "by offline, $0.0000; goes to s3:published/\n"
    )
    assert "\nthe index would change: 9 written, 0 removed\n" in galley("nightly-sync")[1]
    assert "\nattached: chart.svg, image/svg+xml, " in galley("weekly-report")[1]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, socket_enabled: None) -> Iterator[ModelFake]:
    """A model's API on this machine, and a key for it."""
    with ModelFake() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-author")
        yield server


def test_the_prompt_is_what_the_model_is_sent_and_showing_it_calls_no_model(galley: Galley, fake: ModelFake) -> None:
    shown = loaded(galley("daily-digest", "--show", "prompt", "--json"))
    assert fake.requests == []
    drafted = loaded(galley("daily-digest", "--json"))
    (request,) = fake.requests
    assert request.key == "sk-author"
    assert _untagged(shown["system"]) == _untagged(request.system)
    assert _untagged(shown["user"]) == _untagged(request.user)
    assert request.body["max_tokens"] == shown["max_output_tokens"]
    assert request.body["model"] == shown["model"]
    assert 0 < drafted["cost_nanousd"] < shown["cost_nanousd"] < drafted["reserved_nanousd"]
    code, out, _ = galley("daily-digest", "--show", "prompt")
    assert code == 0
    assert f"--- system\n{_untagged(shown['system'])}\n--- user\n{_untagged(shown['user'])}\n---\n" in _untagged(out)
    assert "; it was not called\n" in out


def _untagged(prompt: str) -> str:
    """Return the prompt without the tag that each call has of its own."""
    tag = prompt.partition("<data-")[2].partition(">")[0]
    assert len(tag) == 32
    return prompt.replace(tag, "TAG")


def test_the_models_call_is_told_with_its_cost_and_booked_nowhere(
    galley: Galley, fake: ModelFake, state: StateDirectory
) -> None:
    before = everything(state)
    told = loaded(galley("daily-digest", "--json"))
    assert told["model"] == "claude-haiku-5-5"
    assert (told["usage"]["input_tokens"], told["usage"]["output_tokens"]) == (1_000, 200)
    assert (told["cost_nanousd"], told["reserved_nanousd"]) == (200_000, 4_400_000)
    assert everything(state) == before
    assert SqliteStore(state).committed_nanousd("daily-digest", "2026-11-29") == 0


def test_an_answer_that_makes_no_draft_is_refused_with_its_cost(galley: Galley, fake: ModelFake) -> None:
    fake.always(says('{"title": "Half', stop="max_tokens"))
    code, out, err = galley("daily-digest")
    assert (code, out) == (1, "")
    assert err.startswith("galley: truncated: the answer was cut at max_output_tokens = 4000;")
    assert err.endswith("; the call cost $0.0002\n")


@pytest.mark.parametrize(
    ("reply", "said"),
    [(fails(429, "rate_limit_error"), "rate_limited: "), (fails(400, "invalid_request_error"), "model_request: ")],
)
def test_a_call_that_fails_is_one_line(galley: Galley, fake: ModelFake, reply: Any, said: str) -> None:
    fake.always(reply)
    code, out, err = galley("daily-digest")
    assert (code, out) == (1, "")
    assert err.startswith(f"galley: {said}")
    assert err.count("\n") == 1


DIGEST = """\
title = "Mine"
shape = "digest"
instructions = "Be short."
{more}
[[sources]]
kind = "mail"
id = "inbox"
prefix = "mail/daily-digest/"
"""
HEALTH = """\
title = "Mine"
shape = "monitor"
instructions = "Be short."
[[sources]]
kind = "health"
id = "router"
url = "http://192.168.1.1/"
"""


@pytest.fixture
def mine(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_a_file_elsewhere_is_read_in_the_place_of_the_drafters_own(galley: Galley, mine: Callable[[str], str]) -> None:
    told = loaded(galley("daily-digest", "--file", mine(DIGEST.format(more="")), "--json"))
    assert told["run"] == "daily-digest:2026-11-27T06:00:00Z"
    assert told["title"] == "Mine: 14 items"
    assert told["daily_budget_nanousd"] is None


def test_a_drafter_without_a_schedule_is_drafted_for_the_present_minute_and_its_own_period(
    galley: Galley, mine: Callable[[str], str]
) -> None:
    more = 'timezone = "Asia/Tokyo"\nperiod_hours = 72\n'
    told = loaded(galley("brand-new", "--file", mine(DIGEST.format(more=more)), "--json"))
    assert (told["run"], told["schedule"]) == ("brand-new:2026-11-29T18:00:00Z", None)
    assert told["window"] == {"from": "2026-11-26T18:00:00Z", "to": "2026-11-29T18:00:00Z", "timezone": "Asia/Tokyo"}
    assert told["notes"] == ["no schedule names drafter brand-new; its window is its own period_hours and timezone"]


def test_a_run_that_would_be_skipped_for_its_budget_is_refused_before_the_call(
    galley: Galley, fake: ModelFake, state: StateDirectory, mine: Callable[[str], str]
) -> None:
    code, out, err = galley("daily-digest", "--file", mine(DIGEST.format(more="daily_budget_usd = 0.001")))
    assert (code, out) == (1, "")
    assert "daily_budget_usd is $0.0010" in err
    with state.write() as db:
        db.execute("INSERT INTO spend VALUES ('daily-digest', '2026-11-29', 499000000)")
    code, out, err = galley("daily-digest")
    assert (code, out) == (1, "")
    assert "$0.4990 of $0.5000 are spent or reserved today, and this call may cost $0.0044" in err
    assert fake.requests == []
    assert galley("daily-digest", "--show", "prompt")[0] == 0, "showing the prompt costs nothing"


def test_a_pause_and_a_full_gate_are_told_beside_the_draft(galley: Galley, state: StateDirectory) -> None:
    store = SqliteStore(state)
    store.pause("daily-digest", "by ada: on holiday", now=NOW)
    assert loaded(galley("daily-digest", "--json"))["notes"] == [
        "a run now would be skipped: drafter daily-digest is paused by ada: on holiday"
    ]
    store.resume("daily-digest", now=NOW)
    with state.write() as db:
        db.execute("UPDATE drafters SET pending = 3")
    code, out, err = galley("daily-digest")
    assert (code, out[:5]) == (0, "Daily")
    assert err == "galley: a run now would be skipped: daily-digest has 3 undecided drafts, and its limit is 3\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nobody",), 2, "drafter 'nobody' is not known; the drafters are: daily-digest, "),
        (("daily-digest", "--slot", "2026-11-30T06:00:00Z"), 1, "has not come yet"),
        (("daily-digest", "--slot", "1066-10-14T06:00:00Z"), 2, "must lie in the years 1970 to 2199"),
        (("daily-digest", "--slot", "today"), 2, "Invalid value"),
        (("daily-digest", "--schedule", "WeeklyReport"), 1, "does not name drafter 'daily-digest'"),
        (("daily-digest", "--show", "cost"), 2, "'cost' is not"),
        (("Daily Digest", "--file", str(ROOT / "functions/draft/drafters/daily-digest.toml")), 2, "use a-z, 0-9 and -"),
        (("daily-digest", "--file", "nowhere.toml"), 2, "nowhere.toml: there is no such file"),
    ],
)
def test_what_cannot_be_drafted_is_refused_in_one_line(
    galley: Galley, arguments: tuple[str, ...], code: int, said: str
) -> None:
    refused, out, err = galley(*arguments)
    assert (refused, out) == (code, "")
    assert said in err
    assert err.startswith("galley: ")
    assert err.count("\n") == 1


def test_what_a_run_may_not_look_into_an_author_may_not_either(galley: Galley, mine: Callable[[str], str]) -> None:
    code, out, err = galley("hourly-monitor", "--file", mine(HEALTH))
    assert (code, out) == (1, "")
    assert "is in a private network, which is not looked into" in err


def test_another_slot_has_its_own_window_and_one_that_is_not_due_is_told(galley: Galley) -> None:
    told = loaded(galley("weekly-report", "--slot", "2026-11-16T13:00:00Z", "--json"))
    assert (told["window"]["from"], told["window"]["to"]) == ("2026-11-09T13:00:00Z", "2026-11-16T13:00:00Z")
    assert told["notes"] == []
    told = loaded(galley("weekly-report", "--slot", "2026-11-20T13:00:00Z", "--json"))
    assert told["window"]["from"] == "2026-11-16T13:00:00Z"
    assert told["notes"] == [
        "schedule WeeklyReport is not due at 2026-11-20T13:00:00Z; its window begins at the slot before"
    ]


def test_where_several_schedules_name_a_drafter_one_is_chosen(
    galley: Galley, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "functions", tmp_path / "functions")
    template = (ROOT / "template.yaml").read_text()
    (tmp_path / "template.yaml").write_text(template.replace('["weekly-report"]', '["weekly-report", "daily-digest"]'))
    for place in ("galley_cli.commands.draft.find_checkout", "galley_cli.commands.definitions.find_checkout"):
        monkeypatch.setattr(place, lambda: Checkout(tmp_path))
    code, _, err = galley("daily-digest")
    assert code == 1
    assert "more than one schedule names drafter 'daily-digest': DailyDigest, WeeklyReport" in err
    told = loaded(galley("daily-digest", "--schedule", "WeeklyReport", "--json"))
    assert told["slot"] == "2026-11-23T13:00:00Z"


def test_a_deployed_stacks_rows_sources_and_schedules_are_read_and_left_as_they_are(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed = FixedSchedules((schedule("Good"),))
    monkeypatch.setattr(
        "galley_cli.stack.open_stack", lambda name: Stack(SqliteStore(state), SqliteQueues(state), deployed)
    )
    monkeypatch.setattr(
        "galley_cli.stack.open_sources",
        lambda name: DeployedSources(FolderBucket(state.bucket), "https://desk.example"),
    )
    before = everything(state)
    assert invoke(["draft", "daily-digest", "--stack", "galley-prod", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["slot"], told["schedule"]) == ("2026-11-29T06:00:00Z", deployed.definitions[0].arn)
    assert len(told["items"]) == 14
    assert everything(state) == before


def test_where_nothing_has_run_the_sample_material_is_read_and_no_state_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(["draft", "daily-digest", "--json"]) == 0
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)["items"]) == 14
    assert printed.err == "galley: nothing has run on .galley yet; its bucket would hold the sample material\n"
    assert list(tmp_path.iterdir()) == []
    assert invoke(["draft", "daily-digest", "--state", "elsewhere"]) == 2
    assert "elsewhere: is no state directory" in capsys.readouterr().err


def test_what_the_function_logs_is_told_on_standard_error(galley: Galley, monkeypatch: pytest.MonkeyPatch) -> None:
    def collect(*given: Any, **named: Any) -> Any:
        logger.warning("a rejected draft cannot be read")
        return authoring.collect(*given, **named)

    monkeypatch.setattr("galley_cli.rehearsal.collect", collect)
    handlers = list(logger.handlers)
    code, out, err = galley("daily-digest", "--json")
    assert json.loads(out)["outcome"] == "draft"
    assert (code, err) == (0, "galley: a rejected draft cannot be read\n")
    assert logger.handlers == handlers


def test_the_rules_that_a_draft_would_be_stored_with_are_told(galley: Galley, mine: Callable[[str], str]) -> None:
    path = mine(DIGEST.format(more="expire_hours = 12\nsupersede = true\n"))
    rules = loaded(galley("daily-digest", "--file", path, "--json"))["rules"]
    assert (rules["expires"], rules["supersedes_earlier"], rules["review"]) == (
        "2026-11-30T06:00:00Z",
        True,
        "required",
    )
    assert "\nundecided, it would expire at 2026-11-30T06:00:00Z\n" in galley("daily-digest", "--file", path)[1]


def test_what_a_strict_drafter_refuses_is_refused_here_with_what_was_found(
    galley: Galley, fake: ModelFake, mine: Callable[[str], str]
) -> None:
    fake.always(says('{"title": "Mails", "sections": [{"heading": "A", "text": "It is 987123.", "cites": ["m1"]}]}'))
    path = mine(DIGEST.format(more="strict = true\n"))
    code, out, err = galley("daily-digest", "--file", path)
    assert (code, out) == (1, "")
    assert err.startswith("galley: not_grounded: ")
    assert "987123" in err
    assert "987123" in str(loaded(galley("daily-digest", "--json"))["warnings"])
