"""The real SDK against a scripted API: what comes back, what it cost, and what is worth another try."""

import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from galley.retry import AnswerLost, NeverSucceeds, RetryLater, SpendLimitReached
from galley.runs import Usage
from model import MARGIN, AnthropicModel, BedrockModel, Model, open_model, sort_failure
from offline import OfflineModel
from prices import UnknownModel, price, worst_cost
from support.briefs import a_brief, an_item
from support.model_fake import (
    USAGE,
    ModelFake,
    Reply,
    breaks_off,
    draft,
    drips,
    errs_in_stream,
    fails,
    is_silent,
    says,
    sends,
)
from writing import Answer, read_answer

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

A_MINUTE = MARGIN + timedelta(minutes=1)
MODEL = "claude-haiku-5-5"
TODAY = date(2026, 12, 1)
CEILING = price(MODEL, Usage(input_tokens=1_000, output_tokens=2_000), TODAY)


class Key:
    """A secret that may be rotated, and counts how often it was read anew."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts) or ["sk-test"]
        self.refreshed = 0

    def __call__(self, *, refresh: bool) -> str:
        self.refreshed += refresh
        return self.texts[min(self.refreshed, len(self.texts) - 1)]


def write(model: Model | None = None, remaining: timedelta = A_MINUTE) -> Answer:
    return (model or AnthropicModel(Key())).write(a_brief(an_item(1), an_item(2)), remaining=remaining)


def test_a_finished_answer_comes_with_its_usage_and_cost(fake: ModelFake) -> None:
    fake.script(says(draft("Presses"), thinks="I should be brief."))
    answer = write()
    assert answer.stop == "end_turn"
    assert answer.text == draft("Presses")
    assert answer.usage == Usage(input_tokens=1_000, output_tokens=200)
    assert answer.cost_nanousd == 1_000 * 100 + 200 * 500
    assert (answer.model, answer.failure) == (MODEL, None)


def test_the_request_carries_instructions_apart_from_material_and_asks_for_the_form(fake: ModelFake) -> None:
    write()
    (request,) = fake.requests
    assert request.path == "/v1/messages"
    assert request.key == "sk-test"
    assert request.body["stream"] is True
    assert request.body["max_tokens"] == 2_000
    assert request.body["output_config"]["format"]["type"] == "json_schema"
    assert "tools" not in request.body
    assert "print shop" in request.system
    assert "print shop" not in request.user
    assert [item["id"] for item in request.items] == ["m1", "m2"]


def test_missing_usage_counts_as_nothing(fake: ModelFake) -> None:
    fake.script(says(draft(), usage={"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": None}))
    assert write().usage == Usage(input_tokens=10, output_tokens=5)


def test_cached_tokens_are_booked(fake: ModelFake) -> None:
    cached = {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 1_000}
    fake.script(says(draft(), usage={**USAGE, **cached}))
    answer = write()
    assert answer.usage == Usage(1_000, 200, cache_write_tokens=100, cache_read_tokens=1_000)
    assert answer.cost_nanousd == 1_000 * 100 + 200 * 500 + 100 * 200 + 1_000 * 10


@pytest.mark.parametrize(
    ("place", "cost"), [("us", 220_000), ("global", 200_000), ("not_available", 200_000), (None, 200_000)]
)
def test_a_call_that_its_workspace_keeps_in_the_united_states_is_booked_with_the_surcharge(
    fake: ModelFake, place: str | None, cost: int
) -> None:
    fake.script(says(draft(), usage={**USAGE, "inference_geo": place}))
    assert write().cost_nanousd == cost


@pytest.mark.guarantee("G11")
@pytest.mark.parametrize(
    ("usage", "counted_as"),
    [
        pytest.param({"output_tokens": 200}, Usage(20_000, 200), id="input"),
        pytest.param({"input_tokens": 1_000}, Usage(1_000, 2_000), id="output"),
        pytest.param({}, Usage(20_000, 2_000), id="both"),
    ],
)
def test_g11_tokens_that_are_never_told_are_booked_at_their_limit(
    fake: ModelFake, usage: dict[str, int], counted_as: Usage
) -> None:
    fake.script(says(draft(), usage=usage))
    answer = write()
    assert answer.cost_nanousd == price(MODEL, counted_as, TODAY)
    assert (answer.usage.input_tokens, answer.failure) == (usage.get("input_tokens", 0), None)


def test_a_prompt_over_the_tier_is_booked_at_the_dearer_rates(fake: ModelFake) -> None:
    fake.script(says(draft(), usage={"input_tokens": 100_001, "output_tokens": 10}))
    assert write().cost_nanousd == 100_001 * 500 + 10 * 2_500


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        pytest.param(says("", stop="refusal", category="cyber"), "refusal", id="refused"),
        pytest.param(says('{"title": "A', stop="max_tokens"), "truncated", id="cut at max_tokens"),
        pytest.param(says("{}", stop="model_context_window_exceeded"), "truncated", id="context full"),
        pytest.param(says(draft(), stop="pause_turn"), "unfinished", id="paused"),
        pytest.param(says(draft(), stop="tool_use"), "unfinished", id="wants a tool"),
        pytest.param(says(draft(), stop="stop_sequence"), "unfinished", id="stop sequence"),
        pytest.param(says(draft(), stop=None), "unfinished", id="no reason to stop"),
        pytest.param(says(draft(), stop="something_new"), "unfinished", id="a reason of the future"),
        pytest.param(says("Here is your draft!"), "unreadable_answer", id="prose"),
        pytest.param(says(draft(sections=[])), "empty_answer", id="empty"),
    ],
)
def test_an_answer_that_is_no_draft_is_booked_and_then_never_tried_again(
    fake: ModelFake, reply: Reply, reason: str
) -> None:
    fake.script(reply)
    answer = write()
    assert answer.usage == Usage(input_tokens=1_000, output_tokens=200)
    assert answer.cost_nanousd == 1_000 * 100 + 200 * 500
    with pytest.raises(NeverSucceeds) as raised:
        read_answer(answer, a_brief())
    assert raised.value.reason == reason
    assert len(fake.requests) == 1


def test_a_refusal_names_its_category(fake: ModelFake) -> None:
    fake.script(says("", stop="refusal", category="cyber"))
    with pytest.raises(NeverSucceeds, match="cyber"):
        read_answer(write(), a_brief())


YEAR = {"retry-after": "31536000"}
LIMIT = "You have reached your specified workspace API usage limits. You will regain access on 2026-12-01."


@pytest.mark.parametrize(
    ("reply", "kind", "reason"),
    [
        pytest.param(fails(400, "invalid_request_error", "bad"), NeverSucceeds, "model_request", id="400"),
        pytest.param(fails(400, "invalid_request_error", LIMIT), SpendLimitReached, "spend_limit", id="400 limit"),
        pytest.param(
            fails(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
            SpendLimitReached,
            "spend_limit",
            id="400 no credit",
        ),
        pytest.param(fails(401, "authentication_error"), NeverSucceeds, "model_key", id="401"),
        pytest.param(fails(402, "billing_error"), SpendLimitReached, "spend_limit", id="402"),
        pytest.param(fails(403, "permission_error"), NeverSucceeds, "model_denied", id="403"),
        pytest.param(fails(404, "not_found_error"), NeverSucceeds, "model_not_found", id="404"),
        pytest.param(fails(408, "timeout_error"), RetryLater, "timeout", id="408"),
        pytest.param(fails(409, "conflict_error"), RetryLater, "conflict", id="409"),
        pytest.param(fails(413, "request_too_large"), NeverSucceeds, "too_large", id="413"),
        pytest.param(fails(422, "invalid_request_error"), NeverSucceeds, "model_request", id="422"),
        pytest.param(fails(429, "rate_limit_error", headers=YEAR), RetryLater, "rate_limited", id="429"),
        pytest.param(
            fails(429, "rate_limit_error", code="enforced_spend_limit_reached"),
            SpendLimitReached,
            "spend_limit",
            id="429 enforced limit",
        ),
        pytest.param(
            fails(429, "rate_limit_error", code="contract_spend_limit_reached"),
            SpendLimitReached,
            "spend_limit",
            id="429 contract limit",
        ),
        pytest.param(fails(500, "api_error"), RetryLater, "model_error", id="500"),
        pytest.param(fails(503, "api_error"), RetryLater, "model_error", id="503"),
        pytest.param(fails(504, "timeout_error"), RetryLater, "timeout", id="504"),
        pytest.param(fails(529, "overloaded_error"), RetryLater, "overloaded", id="529"),
        pytest.param(sends(b"<html>bad gateway", "text/html", 502), RetryLater, "model_error", id="502 of a proxy"),
        pytest.param(sends(b"", "text/event-stream"), AnswerLost, "connection", id="nothing"),
        pytest.param(sends(b"<html>log in", "text/html"), AnswerLost, "connection", id="a page instead"),
        pytest.param(breaks_off("headers"), AnswerLost, "connection", id="broken before it began"),
        pytest.param(
            errs_in_stream("overloaded_error", after="headers"), RetryLater, "overloaded", id="error event at once"
        ),
        pytest.param(
            errs_in_stream("billing_error", after="headers"), SpendLimitReached, "spend_limit", id="billing event"
        ),
        pytest.param(
            errs_in_stream("invalid_request_error", after="headers"), NeverSucceeds, "model_request", id="bad event"
        ),
    ],
)
def test_failures_without_any_answer_are_sorted_into_later_never_and_unknown(
    fake: ModelFake, reply: Reply, kind: type[Exception], reason: str
) -> None:
    fake.script(reply)
    with pytest.raises((RetryLater, NeverSucceeds)) as raised:
        write()
    assert type(raised.value) is kind
    assert raised.value.reason == reason
    assert "\n" not in raised.value.detail
    assert len(fake.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_material_is_not_sent_on_to_where_a_redirect_points(fake: ModelFake, status: int) -> None:
    with ModelFake() as elsewhere:
        fake.script(sends(b"moved", "text/plain", status, headers={"location": f"{elsewhere.url}/v1/messages"}))
        with pytest.raises(NeverSucceeds) as raised:
            write()
        assert raised.value.reason == "model_request"
        assert elsewhere.requests == []


def test_an_enormous_retry_after_is_handed_on_and_not_waited_for(fake: ModelFake) -> None:
    fake.script(fails(429, "rate_limit_error", headers=YEAR))
    began = time.monotonic()
    with pytest.raises(RetryLater) as raised:
        write()
    assert raised.value.after == timedelta(days=365)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        pytest.param(breaks_off("start"), "connection", id="connection broken after the start"),
        pytest.param(breaks_off("text"), "connection", id="connection broken within the text"),
        pytest.param(breaks_off("text", cleanly=True), "connection", id="body ended cleanly within the text"),
        pytest.param(errs_in_stream("overloaded_error"), "overloaded", id="overloaded within the text"),
        pytest.param(errs_in_stream("rate_limit_error"), "rate_limited", id="rate limit within the text"),
        pytest.param(errs_in_stream("api_error"), "model_error", id="API error within the text"),
        pytest.param(errs_in_stream("error_of_the_future"), "model_error", id="unknown error within the text"),
    ],
)
def test_an_answer_that_breaks_off_is_booked_at_its_ceiling_and_tried_later(
    fake: ModelFake, reply: Reply, reason: str
) -> None:
    fake.script(reply)
    answer = write()
    assert answer.stop is None
    assert answer.usage.input_tokens == 1_000
    assert answer.cost_nanousd == CEILING
    with pytest.raises(RetryLater) as raised:
        read_answer(answer, a_brief())
    assert raised.value.reason == reason


def test_a_spend_limit_within_the_stream_is_booked_too(fake: ModelFake) -> None:
    fake.script(errs_in_stream("billing_error"))
    answer = write()
    assert answer.cost_nanousd == CEILING
    with pytest.raises(SpendLimitReached):
        read_answer(answer, a_brief())


def test_an_event_that_is_no_json_does_not_lose_what_was_billed(fake: ModelFake) -> None:
    start = b'event: message_start\ndata: {"type": "message_start", "message": {"usage": {"input_tokens": 1000}}}\n\n'
    fake.script(sends(start + b'event: content_block_delta\ndata: {"type": "content_\n\n'))
    answer = write()
    assert answer.usage.input_tokens == 1_000
    assert answer.cost_nanousd == CEILING


@pytest.mark.parametrize(
    "event", ['{"type": "message_delta"}', '{"type": "content_block_delta"}', '{"type": "vote"}', "{}", "[]", "7"]
)
def test_an_event_of_an_unknown_form_does_not_lose_what_was_billed(fake: ModelFake, event: str) -> None:
    start = 'event: message_start\ndata: {"type": "message_start", "message": {"usage": {"input_tokens": 1000}}}\n\n'
    fake.script(sends(f"{start}event: message_delta\ndata: {event}\n\n".encode()))
    answer = write()
    assert answer.usage.input_tokens == 1_000
    assert answer.cost_nanousd == CEILING
    assert isinstance(answer.failure, RetryLater)


def test_an_answer_is_finished_once_its_stop_and_usage_have_come(fake: ModelFake) -> None:
    fake.script(breaks_off("stop"))
    answer = write()
    assert (answer.stop, answer.failure) == ("end_turn", None)
    assert answer.cost_nanousd == 1_000 * 100 + 200 * 500


@pytest.mark.parametrize(
    ("reply", "billed"),
    [
        pytest.param(is_silent, False, id="never answers"),
        pytest.param(drips("headers"), False, id="headers byte by byte"),
        pytest.param(drips("pings"), False, id="only pings"),
        pytest.param(drips("text"), True, id="text without end"),
    ],
)
def test_no_answer_however_slow_outlasts_the_time_that_is_left(fake: ModelFake, reply: Reply, billed: bool) -> None:
    fake.script(reply)
    began = time.monotonic()
    try:
        answer = write(remaining=MARGIN + timedelta(seconds=0.4))
        failure = answer.failure
        assert billed
        assert answer.cost_nanousd == CEILING
    except RetryLater as raised:
        failure = raised
        assert not billed
    assert isinstance(failure, RetryLater)
    assert failure.reason == "timeout"
    assert 0.3 < time.monotonic() - began < 15


def test_nothing_is_called_when_no_time_is_left(fake: ModelFake) -> None:
    with pytest.raises(RetryLater, match="too little"):
        write(remaining=MARGIN)
    assert fake.requests == []


def test_nobody_listening_is_a_broken_connection(fake: ModelFake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    with pytest.raises(RetryLater) as raised:
        write()
    assert raised.value.reason == "connection"


def test_a_model_without_a_price_is_never_called(fake: ModelFake) -> None:
    brief = a_brief(an_item(), model="claude-of-tomorrow")
    with pytest.raises(UnknownModel, match=r"'claude-of-tomorrow'.*claude-haiku-5-5"):
        AnthropicModel(Key()).write(brief, remaining=A_MINUTE)
    assert fake.requests == []


def test_the_key_is_read_at_the_call_and_anew_once_it_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelFake(keys=frozenset({"sk-new"})) as fake:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
        key = Key("sk-old", "sk-new\n")
        assert write(AnthropicModel(key)).stop == "end_turn"
        assert [request.key for request in fake.requests] == ["sk-old", "sk-new"]
        assert key.refreshed == 1


def test_a_new_key_that_is_refused_too_is_the_end(fake: ModelFake) -> None:
    fake.always(fails(401, "authentication_error"))
    with pytest.raises(NeverSucceeds, match="check the model's key"):
        write(AnthropicModel(Key("sk-old", "sk-new")))
    assert len(fake.requests) == 2


def test_a_key_that_cannot_be_read_may_be_read_later(fake: ModelFake) -> None:
    def key(*, refresh: bool) -> str:
        raise LookupError("secret model-key: throttled")

    with pytest.raises(RetryLater, match="secret model-key"):
        write(AnthropicModel(key))
    assert fake.requests == []


def test_the_key_is_in_no_message(fake: ModelFake) -> None:
    fake.script(fails(400, "invalid_request_error", "bad"))
    with pytest.raises(NeverSucceeds) as raised:
        write(AnthropicModel(Key("sk-secret")))
    assert "sk-secret" not in str(raised.value)


def test_bedrock_signs_the_same_request_and_books_the_regional_price(fake: ModelFake) -> None:
    fake.script(says(draft("Presses")))
    answer = write(BedrockModel("eu-west-2"))
    (request,) = fake.requests
    assert request.body["model"] == f"anthropic.{MODEL}"
    assert request.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=testing/")
    assert answer.model == MODEL
    assert answer.cost_nanousd == (1_000 * 100 + 200 * 500) * 110 // 100


def test_bedrock_fails_as_the_api_does(fake: ModelFake) -> None:
    fake.script(fails(429, "rate_limit_error", headers=YEAR))
    with pytest.raises(RetryLater) as raised:
        write(BedrockModel())
    assert raised.value.reason == "rate_limited"


def test_bedrock_without_a_region_is_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(NeverSucceeds, match="region") as raised:
        write(BedrockModel())
    assert raised.value.reason == "model_settings"


def test_providers_are_opened_by_name_without_the_sdk() -> None:
    assert isinstance(open_model("anthropic", key=Key()), AnthropicModel)
    assert isinstance(open_model("bedrock", region="eu-west-2"), BedrockModel)
    assert isinstance(open_model("offline"), OfflineModel)


@pytest.mark.parametrize(
    ("provider", "message"), [("anthropic", "needs a key"), ("clippy", "'clippy'.*anthropic, bedrock, offline")]
)
def test_a_wrong_provider_is_one_clear_line(provider: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_model(provider)


def test_the_worst_cost_is_that_of_the_limits() -> None:
    today = datetime.now(UTC).date()
    assert AnthropicModel(Key()).worst_cost(MODEL, 20_000, 2_000) == worst_cost(MODEL, 20_000, 2_000, today, 110)
    assert BedrockModel().worst_cost(MODEL, 20_000, 2_000) == worst_cost(MODEL, 20_000, 2_000, today, 110)
    assert OfflineModel().worst_cost(MODEL, 20_000, 2_000) == 0


def test_an_error_event_is_sorted_by_its_type_and_not_by_its_status() -> None:
    failure = sort_failure(200, "overloaded_error", None, "Overloaded")
    assert isinstance(failure, RetryLater)
    assert failure.reason == "overloaded"


def test_a_long_message_of_the_api_becomes_one_short_line() -> None:
    failure = sort_failure(400, "invalid_request_error", None, "wrong\n" * 1_000)
    assert "\n" not in failure.detail
    assert len(failure.detail) < 500


def test_the_sdk_is_imported_by_nothing_but_a_call() -> None:
    heavy = "{'anthropic', 'httpx2', 'boto3', 'botocore', 'feedparser'}"
    code = (
        "import sys, inert, model, offline, prices, prompt, writing;"
        "model.open_model('anthropic', key=lambda refresh: 'k').worst_cost('claude-haiku-5-5', 1, 1);"
        "model.open_model('bedrock'); model.open_model('offline');"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    root = Path(__file__).parents[3]
    path = f"{root / 'functions/draft'}:{root / 'layers/galley'}"
    run = subprocess.run(  # noqa: S603 - our own interpreter, our own words
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
