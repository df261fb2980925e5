"""Every sample event runs through its real handler, as Lambda calls it, over the adapters of AWS."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from e2e.on_moto import Moto, template
from galley.drafts import Channel, text_hash
from galley.instants import format_instant, parse_instant
from galley.runs import Decision, Origin, RejectReason, Run, RunKey, SkipReason, Status, read_message
from galley.store import Approve, Bill, Claimed, Limits, Settled
from galley_cli.local.filters import fits
from galley_cli.sample_material import put_samples
from support.aws import client
from support.model_fake import ModelFake
from support.outside import ROOT, SLOT, event, message
from unit.review.asking import BODY, DRAFT, TITLE

KEY = RunKey("daily-digest", SLOT)
NOW = SLOT + timedelta(minutes=1)
WEEK = "2026-W48"
PUBLISHED_AS = "published/daily-digest/2026-11-27T06:00:00Z.md"
MINUTE = timedelta(minutes=1)

_RUN: set[str] = set()


def runs(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a test the sample events by their names, one at a time, and note that they are run."""
    _RUN.update(names)
    return pytest.mark.parametrize("name", names)


def test_every_sample_event_is_run_by_a_test_and_bears_its_functions_name() -> None:
    samples = {path.stem for path in (ROOT / "events").iterdir()}
    assert samples == _RUN
    functions = {sample.split("-")[0] for sample in samples}
    assert functions == set(template().functions)


def run_sample(stack: Moto, name: str) -> Any:
    """Invoke the function whose name the sample bears."""
    return stack.invoke(name.split("-")[0], event(name))


def row(stack: Moto, key: RunKey = KEY) -> Run:
    found = stack.store.run(key)
    assert found is not None
    return found


# dispatch


@runs("dispatch-tick")
def test_a_tick_becomes_the_run_message_that_draft_is_given(moto: Moto, name: str) -> None:
    assert run_sample(moto, name) == {"runs": ["daily-digest:2026-11-27T06:00:00Z"]}
    (record,) = received(moto)
    assert record["attributes"]["MessageGroupId"] == "daily-digest"
    sent, sample = (read_message(one["body"]) for one in (record, event("draft-run")["Records"][0]))
    assert sent.trace is not None
    assert sent.model_copy(update={"trace": sample.trace}) == sample
    assert record["attributes"]["MessageDeduplicationId"] == sample.deduplication_id

    assert run_sample(moto, name)["runs"], "Scheduler delivers at least once"
    assert received(moto) == []


@runs("dispatch-tick-by-hand")
def test_a_tick_that_was_sent_by_hand_asks_for_the_minute_in_which_it_came(
    moto: Moto, clock: time_machine.Traveller, name: str
) -> None:
    clock.move_to(datetime(2026, 11, 27, 9, 41, 27, tzinfo=UTC))
    assert run_sample(moto, name) == {
        "runs": ["daily-digest:2026-11-27T09:41:00Z", "hourly-monitor:2026-11-27T09:41:00Z"]
    }
    records = received(moto)
    assert [record["attributes"]["MessageGroupId"] for record in records] == ["daily-digest", "hourly-monitor"]
    messages = [read_message(record["body"]) for record in records]
    assert {(sent.origin, sent.schedule) for sent in messages} == {(Origin.MANUAL, None)}


def received(stack: Moto) -> list[dict[str, Any]]:
    """Receive everything that is in the queue of runs."""
    found = []
    while (polled := stack.receive()) is not None:
        found += polled["Records"]
    return found


# draft


@runs("draft-run")
def test_a_run_becomes_a_draft_without_a_model(moto: Moto, name: str) -> None:
    put_samples(moto.bucket, NOW)
    assert run_sample(moto, name) == {"batchItemFailures": []}
    drafted = row(moto)
    assert (drafted.status, drafted.model, drafted.cost_nanousd) == (Status.PENDING, "offline", 0)
    assert_a_whole_draft(moto, drafted, name)

    assert run_sample(moto, name) == {"batchItemFailures": []}, "SQS delivers at least once"
    assert row(moto) == drafted


@runs("draft-run")
@pytest.mark.enable_socket
def test_a_run_becomes_a_draft_of_the_models(moto_with_a_model: Moto, fake: ModelFake, name: str) -> None:
    moto = moto_with_a_model
    put_samples(moto.bucket, NOW)
    assert run_sample(moto, name) == {"batchItemFailures": []}
    drafted = row(moto)
    assert (drafted.status, drafted.model, drafted.title) == (Status.PENDING, "claude-haiku-5-5", "A draft")
    assert drafted.cost_nanousd == 200_000, "1000 tokens in at 100 nano-dollars, 200 out at 500"
    assert_a_whole_draft(moto, drafted, name)
    (request,) = fake.requests
    assert request.key == "key-1", "the key is the secret's"
    assert len(request.items) == 14

    assert run_sample(moto, name) == {"batchItemFailures": []}
    assert (row(moto), len(fake.requests)) == (drafted, 1), "a second delivery costs nothing"


def assert_a_whole_draft(stack: Moto, drafted: Run, name: str) -> None:
    """See that everything which belongs to a draft was stored with it, and nothing else happened."""
    asked = read_message(event(name)["Records"][0]["body"])
    assert (drafted.origin, drafted.schedule, drafted.trace) == (Origin.SCHEDULE, asked.schedule, asked.trace)
    assert (drafted.created, drafted.drafted, drafted.owner, drafted.reserved_nanousd) == (NOW, NOW, None, 0)
    stored = stack.store.draft(KEY)
    assert stored is not None
    assert drafted.text_hash == text_hash(stored.title, stored.body)
    mails = {info.key for info in stack.bucket.list("mail/daily-digest/")}
    assert {item.source for item in stored.draft.items} == mails
    assert len(mails) == 14
    assert [(channel.kind, channel.target) for channel in stored.draft.channels] == [("s3", "published/")]
    assert stack.store.memory("daily-digest").cursors.keys() == {"inbox"}
    assert stack.store.drafter("daily-digest").pending == 1
    assert stack.store.week("daily-digest", WEEK)["drafted"] == 1
    assert stack.store.committed_nanousd("daily-digest", "2026-11-27") == drafted.cost_nanousd
    assert [run.key for run in stack.store.watched(Status.PENDING).runs] == [KEY]
    assert stack.queue.dead_runs() == ()


@runs("draft-unreadable")
def test_an_unreadable_message_is_a_dead_letter_that_says_why_and_does_not_come_back(moto: Moto, name: str) -> None:
    assert run_sample(moto, name) == {"batchItemFailures": []}
    (letter,) = moto.queue.dead_runs()
    assert (letter.body, letter.run) == (event(name)["Records"][0]["body"], None)
    assert (letter.reason, letter.error_type, letter.attempts) == ("invalid_message", "InvalidMessage", 1)
    assert (letter.first, letter.last) == (NOW, NOW)
    for said in ("slot: ", "2026-11-27T06:00:00", "origin is missing", "contract is missing"):
        assert said in letter.detail
    assert moto.store.history("daily-digest").runs == ()


# recover


@runs("recover")
def test_a_sweep_sends_what_is_in_its_grace_and_records_what_is_not(
    moto: Moto, clock: time_machine.Traveller, name: str
) -> None:
    clock.move_to(datetime(2026, 11, 26, 12, tzinfo=UTC))
    moto.deploy_schedules()
    clock.move_to(SLOT + 10 * MINUTE)
    swept = run_sample(moto, name)
    hours_before = [SLOT - number * 60 * MINUTE for number in range(18, 0, -1)]
    assert swept == {
        "caught_up": ["daily-digest:2026-11-27T06:00:00Z"],
        "skipped": [
            *(f"hourly-monitor:{format_instant(missed)}" for missed in hours_before),
            "nightly-sync:2026-11-26T15:30:00Z",
        ],
        "ended": [],
        "gone": [],
        "sent_again": [],
        "expired": [],
        "superseded": [],
        "overdue": ["hourly-monitor:2026-11-27T06:00:00Z"],
        "silent": [],
        "broken": [],
        "unfinished": [],
    }
    sent = [read_message(record["body"]) for record in received(moto)]
    assert [(str(one.key), one.origin) for one in sent] == [(key, Origin.CATCH_UP) for key in swept["caught_up"]]
    assert sent[0].schedule == moto.schedules.all()[0].arn
    skipped = row(moto, RunKey("nightly-sync", parse_instant("2026-11-26T15:30:00Z")))
    assert (skipped.status, skipped.reason) == (Status.SKIPPED, SkipReason.MISFIRED)
    assert "880 minutes" in str(skipped.detail)
    assert moto.store.run(RunKey("hourly-monitor", SLOT)) is None, "it catches nothing up; its own tick may still come"
    missed = row(moto, RunKey("hourly-monitor", SLOT - 60 * MINUTE))
    assert (missed.status, missed.reason) == (Status.SKIPPED, SkipReason.MISSED)
    assert moto.store.history("weekly-report").runs == (), "its last slot was before it was deployed"
    again = run_sample(moto, name)
    assert (again["caught_up"], again["skipped"]) == ([], []), "what was asked for is not asked for again at once"


# review


@pytest.fixture
def waiting(moto: Moto) -> Run:
    """The draft that the desk's sample events are about."""
    limits = Limits(pending=3, daily_budget_nanousd=None, worst_cost_nanousd=0)
    claimed = moto.store.claim(message(), limits, owner="invocation-1", now=NOW, lease_until=NOW + 5 * MINUTE)
    assert isinstance(claimed, Claimed)
    draft = replace(DRAFT, channels=(Channel("s3", "published/"),))
    stored = moto.store.store(claimed.run, draft, {}, Bill(model=draft.model), now=NOW)
    assert isinstance(stored, Settled)
    return stored.run


@runs("review-list")
def test_the_desk_lists_what_waits(moto: Moto, waiting: Run, name: str) -> None:
    answer = run_sample(moto, name)
    assert answer["statusCode"] == 200
    (listed,) = json.loads(answer["body"])["drafts"]
    assert (listed["drafter"], listed["title"]) == ("daily-digest", TITLE)


@runs("review-read")
def test_the_desk_shows_a_draft_with_what_a_decision_must_name(moto: Moto, waiting: Run, name: str) -> None:
    answer = run_sample(moto, name)
    assert answer["statusCode"] == 200
    read = json.loads(answer["body"])
    assert (read["title"], read["body"]) == (TITLE, BODY)
    decided = json.loads(event("review-approve")["body"])
    assert (read["version"], read["text_hash"]) == (decided["version"], decided["text_hash"])


@runs("review-page")
def test_the_desk_has_a_page_without_data(moto: Moto, waiting: Run, name: str) -> None:
    answer = run_sample(moto, name)
    headers = {header.lower(): value for header, value in answer["headers"].items()}
    assert answer["statusCode"] == 200
    assert headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in headers["content-security-policy"]
    assert TITLE not in answer["body"]


@runs("review-approve", "review-reject")
def test_a_decision_is_made_once_for_the_text_that_was_read(moto: Moto, waiting: Run, name: str) -> None:
    answer = run_sample(moto, name)
    assert answer["statusCode"] == 200
    decided = row(moto)
    assert decided.text_hash is not None
    reviewer = "ana.lima (56d2a284-1071-70d3-0a1c-6c1f2f8f0b1e)"
    if name == "review-approve":
        expected = Decision(reviewer, NOW, decided.text_hash)
        assert (decided.status, decided.decision) == (Status.APPROVED, expected)
    else:
        expected = Decision(reviewer, NOW, decided.text_hash, reason=RejectReason.TONE, words="Too chatty for clients.")
        assert (decided.status, decided.decision) == (Status.REJECTED, expected)
    assert moto.store.drafter("daily-digest").pending == 0
    assert moto.store.week("daily-digest", WEEK)[str(decided.status)] == 1

    assert run_sample(moto, name)["statusCode"] == 409, "a second click"
    assert row(moto) == decided


# publish


@runs("publish-approved")
def test_an_approved_draft_becomes_an_object_and_no_more_than_one(moto: Moto, waiting: Run, name: str) -> None:
    assert waiting.text_hash is not None
    moto.store.decide(KEY, Approve(), version=waiting.version, read_hash=waiting.text_hash, reviewer="ana", now=NOW)
    (record,) = event(name)["Records"]
    assert any(fits(pattern, record) for pattern in template().stream.patterns), "the filter lets it through"

    assert run_sample(moto, name) == {"batchItemFailures": []}
    published = row(moto)
    assert (published.status, published.published, published.detail) == (Status.PUBLISHED, NOW, "s3:published/")
    assert moto.bucket.get(PUBLISHED_AS, max_bytes=10_000).decode() == f"# {TITLE}\n\n{BODY}\n"
    object_ = client("s3").head_object(Bucket=moto.names.bucket, Key=PUBLISHED_AS)
    assert object_["ContentType"] == "text/markdown; charset=utf-8"

    assert run_sample(moto, name) == {"batchItemFailures": []}, "a stream delivers at least once"
    assert row(moto) == published


@runs("publish-approved")
def test_what_nobody_approved_is_not_published(moto: Moto, waiting: Run, name: str) -> None:
    assert run_sample(moto, name) == {"batchItemFailures": []}
    assert row(moto) == waiting
    assert list(moto.bucket.list("published/")) == []
