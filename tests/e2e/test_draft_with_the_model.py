"""draft over the adapters of AWS and the model's real SDK: what each answer of the model's API makes of a run.

The message is a real one: it was sent to the queue and received from it, so that what the function does to its
visibility shows in when the queue hands it out again.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from aws_lambda_powertools.utilities import parameters

from e2e.on_moto import KEY_NAME, REMAINING, Moto
from galley.instants import format_instant
from galley.runs import Run, RunKey, Status, Usage
from model import MARGIN
from support.aws import client
from support.model_fake import ModelFake, Reply, breaks_off, drips, fails, is_silent, says
from support.outside import SLOT, message

pytestmark = pytest.mark.enable_socket

KEY = RunKey("daily-digest", SLOT)
NOW = SLOT + timedelta(minutes=1)
DAY = "2026-11-27"
WEEK = "2026-W48"
SECOND = timedelta(seconds=1)
FIRST_WAIT = (timedelta(seconds=22), timedelta(seconds=30))
HURRIED = MARGIN + 3 * SECOND
"""Nearly all of it is kept for storing the outcome: the model has three seconds, its import among them."""

WHOLE = 200_000
"""What an answer of the fake costs: 1000 tokens in at 100 nano-dollars, 200 out at 500."""
UNANSWERED = 4_400_000
"""A call of which nothing is known is booked at its worst: 20000 tokens in, as the drafter allows, and 4000 out, and
the surcharge for a call that is kept in the United States."""
UNCOUNTED = 2_100_000
"""An answer that broke off before its usage came is booked with all the tokens that it might have: 4000 out."""

MAIL = b"""From: Priya Nair <priya@example.com>
Subject: Two benches short
Date: Thu, 26 Nov 2026 20:14:00 +0000
Message-ID: <two-benches@example.com>

Order 20611 came with four benches instead of six. When do the other two leave?
"""
SPEND = "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."


@dataclass(frozen=True)
class Never:
    """The run fails for good: a dead letter says why, and the message does not come back."""

    reason: str
    error: str = "NeverSucceeds"
    cost: int = 0


@dataclass(frozen=True)
class Later:
    """The run waits; its message comes back between ``earliest`` and ``latest`` from now, and not before."""

    reason: str
    earliest: timedelta = FIRST_WAIT[0]
    latest: timedelta = FIRST_WAIT[1]
    cost: int = 0


@dataclass(frozen=True)
class Case:
    """What the API answers, with so much of the function's time left, and what becomes of the run."""

    name: str
    reply: Reply
    outcome: Never | Later
    remaining: timedelta = REMAINING


def never(name: str, reply: Reply, reason: str, error: str = "NeverSucceeds", cost: int = 0) -> Case:
    return Case(name, reply, Never(reason, error, cost))


CASES = (
    never("400", fails(400, "invalid_request_error"), "model_request"),
    never("400_spend_limit", fails(400, "invalid_request_error", SPEND), "spend_limit", "SpendLimitReached"),
    never("401", fails(401, "authentication_error"), "model_key"),
    never("413", fails(413, "request_too_large"), "too_large"),
    never("refusal", says("", stop="refusal", category="cyber"), "refusal", cost=WHOLE),
    never("max_tokens", says('{"title": "Half', stop="max_tokens"), "truncated", cost=WHOLE),
    Case("429", fails(429, "rate_limit_error"), Later("rate_limited")),
    Case(
        "429_wait_two_minutes",
        fails(429, "rate_limit_error", headers={"retry-after": "120"}),
        Later("rate_limited", 120 * SECOND, 120 * SECOND),
    ),
    Case(
        "429_wait_84_hours",
        fails(429, "rate_limit_error", headers={"retry-after": "302400"}),
        Later("rate_limited", 3600 * SECOND, 3600 * SECOND),
    ),
    Case("500", fails(500, "api_error"), Later("model_error")),
    Case("529", fails(529, "overloaded_error"), Later("overloaded")),
    Case("no_answer", is_silent, Later("timeout", cost=UNANSWERED), HURRIED),
    Case("slow_body", drips("text"), Later("timeout", cost=UNCOUNTED), HURRIED),
    Case("cut_body", breaks_off("text"), Later("connection", cost=UNCOUNTED)),
)
FAILING = tuple(case for case in CASES if isinstance(case.outcome, Never))
WAITING = tuple(case for case in CASES if isinstance(case.outcome, Later))


def name_of(case: Case) -> str:
    return case.name


@pytest.fixture
def stack(moto_with_a_model: Moto) -> Moto:
    """A stack with one mail in its bucket and one run in its queue."""
    moto_with_a_model.bucket.put("mail/daily-digest/1.eml", MAIL, content_type="message/rfc822")
    moto_with_a_model.queue.send([message()])
    return moto_with_a_model


def work(stack: Moto, remaining: timedelta = REMAINING) -> tuple[dict[str, Any], Any]:
    """Receive the run's message and have it handled; return the record and the function's answer."""
    polled = stack.receive()
    assert polled is not None, "the queue hides the message"
    (record,) = polled["Records"]
    answer = stack.invoke("draft", polled, remaining=remaining)
    if answer == {"batchItemFailures": []}:
        stack.delete(record)
    return record, answer


def row(stack: Moto, key: RunKey = KEY) -> Run:
    found = stack.store.run(key)
    assert found is not None
    return found


def assert_booked(stack: Moto, run: Run, cost: int) -> None:
    """See that what the call cost stands in the row, in the day's spend and in the week, and nothing is reserved."""
    assert (run.cost_nanousd, run.reserved_nanousd, run.owner, run.lease_until) == (cost, 0, None, None)
    assert stack.store.committed_nanousd("daily-digest", DAY) == cost
    assert stack.store.week("daily-digest", WEEK).get("cost_nanousd", 0) == cost


def test_an_answer_of_the_model_waits_for_a_person(stack: Moto, fake: ModelFake) -> None:
    _, answer = work(stack)
    assert answer == {"batchItemFailures": []}
    drafted = row(stack)
    assert (drafted.status, drafted.reason, drafted.usage) == (Status.PENDING, None, Usage(1_000, 200))
    assert_booked(stack, drafted, WHOLE)
    assert stack.store.drafter("daily-digest").pending == 1
    assert stack.queue.dead_runs() == ()


@pytest.mark.parametrize("case", FAILING, ids=name_of)
@pytest.mark.guarantee("G5")
def test_g5_what_never_succeeds_is_in_the_table_and_among_the_dead_and_gives_its_place_back(
    stack: Moto, fake: ModelFake, case: Case
) -> None:
    assert isinstance(case.outcome, Never)
    fake.always(case.reply)
    record, answer = work(stack, case.remaining)

    assert answer == {"batchItemFailures": []}, "a retry would only cost money"
    assert len(fake.requests) == 1
    failed = row(stack)
    assert (failed.status, failed.reason) == (Status.FAILED, case.outcome.reason)
    assert_booked(stack, failed, case.outcome.cost)
    assert stack.store.drafter("daily-digest").pending == 0
    assert stack.store.week("daily-digest", WEEK)["failed"] == 1
    assert stack.store.memory("daily-digest").cursors == {}
    assert stack.store.draft(KEY) is None

    (dead,) = client("sqs").receive_message(
        QueueUrl=stack.names.dead_runs_url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )["Messages"]
    attributes = {name: value["StringValue"] for name, value in dead["MessageAttributes"].items()}
    assert dead["Body"] == record["body"]
    assert failed.detail is not None
    assert attributes == {
        "run": str(KEY),
        "reason": case.outcome.reason,
        "detail": failed.detail,
        "error_type": case.outcome.error,
        "attempts": "1",
        "first": format_instant(NOW),
        "last": format_instant(NOW),
    }


@pytest.mark.parametrize("case", WAITING, ids=name_of)
def test_what_may_pass_waits_with_its_lease_given_up_and_comes_back_in_time(
    stack: Moto, fake: ModelFake, clock: time_machine.Traveller, case: Case
) -> None:
    assert isinstance(case.outcome, Later)
    fake.script(case.reply)
    record, answer = work(stack, case.remaining)

    assert answer == {"batchItemFailures": [{"itemIdentifier": record["messageId"]}]}
    assert len(fake.requests) == 1
    waits = row(stack)
    assert (waits.status, waits.reason, waits.attempts) == (Status.DRAFTING, case.outcome.reason, 1)
    assert waits.next_attempt is not None
    assert NOW + case.outcome.earliest <= waits.next_attempt <= NOW + case.outcome.latest
    assert_booked(stack, waits, case.outcome.cost)
    assert stack.store.drafter("daily-digest").pending == 1, "it keeps its place"
    assert stack.store.draft(KEY) is None
    assert stack.queue.dead_runs() == ()

    clock.move_to(NOW + case.outcome.earliest - SECOND)
    assert stack.receive() is None, "it came back too soon"
    clock.move_to(NOW + case.outcome.latest + SECOND)
    assert work(stack)[1] == {"batchItemFailures": []}
    drafted = row(stack)
    assert (drafted.status, drafted.attempts) == (Status.PENDING, 2)
    assert_booked(stack, drafted, case.outcome.cost + WHOLE)
    assert stack.store.drafter("daily-digest").pending == 1


def test_a_spend_limit_pauses_the_drafter_and_every_later_slot_says_so_without_a_call(
    stack: Moto, fake: ModelFake
) -> None:
    fake.always(fails(400, "invalid_request_error", SPEND))
    work(stack)
    paused = stack.store.drafter("daily-digest").paused
    assert paused is not None
    assert SPEND in paused

    later = message(slot=SLOT + 30 * SECOND)
    stack.queue.send([later])
    assert work(stack)[1] == {"batchItemFailures": []}
    skipped = row(stack, later.key)
    assert (skipped.status, skipped.reason) == (Status.SKIPPED, "paused")
    assert SPEND in str(skipped.detail)
    assert len(fake.requests) == 1


def test_a_key_that_was_rotated_is_read_anew_once(stack: Moto, fake: ModelFake) -> None:
    parameters.get_secret(stack.variables["GALLEY_MODEL_KEY_ARN"], max_age=300)  # as an earlier run has left it
    client("secretsmanager").put_secret_value(SecretId=KEY_NAME, SecretString="key-2")
    fake.keys = frozenset({"key-2"})
    assert work(stack)[1] == {"batchItemFailures": []}
    assert row(stack).status is Status.PENDING
    assert [request.key for request in fake.requests] == ["key-1", "key-2"]


def test_a_key_that_cannot_be_read_is_tried_again_later_and_told(stack: Moto, fake: ModelFake) -> None:
    client("secretsmanager").delete_secret(SecretId=KEY_NAME, ForceDeleteWithoutRecovery=True)
    assert work(stack)[1] != {"batchItemFailures": []}
    waits = row(stack)
    assert (waits.status, waits.reason) == (Status.DRAFTING, "model_key")
    assert stack.variables["GALLEY_MODEL_KEY_ARN"] in str(waits.detail)
    assert fake.requests == []


def wait_out(stack: Moto, clock: time_machine.Traveller) -> Run:
    """Have the run's message handled whenever the queue hands it out, until the run waits no longer."""
    while True:
        _, answer = work(stack)
        waits = row(stack)
        if waits.status is not Status.DRAFTING:
            return waits
        if answer != {"batchItemFailures": []}:
            assert waits.next_attempt is not None
            clock.move_to(waits.next_attempt + 2 * SECOND)


@pytest.mark.guarantee("G4")
def test_g4_an_overload_of_an_hour_costs_the_run_nothing_but_time(
    stack: Moto, fake: ModelFake, clock: time_machine.Traveller
) -> None:
    fake.script(*[fails(529, "overloaded_error")] * 9)
    drafted = wait_out(stack, clock)
    assert (drafted.status, drafted.attempts, drafted.faults) == (Status.PENDING, 10, 0)
    assert NOW + timedelta(minutes=50) < drafted.changed < NOW + timedelta(minutes=70)
    assert_booked(stack, drafted, WHOLE)
    assert stack.queue.dead_runs() == ()
    clock.move_to(drafted.changed + timedelta(hours=12))
    assert stack.receive() is None


@pytest.mark.guarantee("G4")
def test_g4_an_overload_that_outlasts_the_grace_is_recorded_and_gives_the_place_back(
    stack: Moto, fake: ModelFake, clock: time_machine.Traveller
) -> None:
    fake.always(fails(529, "overloaded_error"))
    skipped = wait_out(stack, clock)
    assert (skipped.status, skipped.reason) == (Status.SKIPPED, "misfired")
    assert "overloaded" in str(skipped.detail)
    assert stack.queue.dead_runs() == ()
    assert stack.store.drafter("daily-digest").pending == 0
    clock.move_to(skipped.changed + timedelta(hours=12))
    assert stack.receive() is None


def test_a_batch_stops_at_the_first_message_that_must_come_back(stack: Moto, fake: ModelFake) -> None:
    fake.script(fails(529, "overloaded_error"))
    stack.queue.send([message(slot=SLOT + 30 * SECOND)])
    polled = stack.receive()
    assert polled is not None
    (first,) = polled["Records"]
    second = {**first, "messageId": "second", "body": message(slot=SLOT + 30 * SECOND).model_dump_json()}
    answer = stack.invoke("draft", {"Records": [first, second]})
    assert answer == {"batchItemFailures": [{"itemIdentifier": first["messageId"]}, {"itemIdentifier": "second"}]}
    assert len(fake.requests) == 1
    assert stack.store.run(RunKey("daily-digest", SLOT + 30 * SECOND)) is None, "order within a drafter is kept"
