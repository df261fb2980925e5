"""The model that writes: Anthropic's API, the same models on Amazon Bedrock, or the offline one.

The only module that imports the model's SDK, and only once a call is made, since the import costs seconds of CPU.
"""

import contextlib
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from galley.instants import utc_now
from galley.retry import AnswerLost, NeverSucceeds, RetryLater, SpendLimitReached
from galley.runs import Usage
from galley.texts import one_line
from offline import OfflineModel
from prices import BEDROCK_PERCENT, US_PERCENT, price, worst_cost
from prompt import ANSWER_SCHEMA, Prompt, build_prompt
from retry_after import retry_after
from writing import Answer, Brief

if TYPE_CHECKING:
    import httpx2
    from anthropic import Anthropic, AnthropicBedrockMantle, APIStatusError

PROVIDERS = ("anthropic", "bedrock", "offline")

MARGIN = timedelta(seconds=10)
"""What is kept of the function's remaining time to store the outcome of a call."""

CONNECT_SECONDS = 5.0
_MOST_CHARS = 300

Failure = RetryLater | NeverSucceeds


class KeySource(Protocol):
    """Reads the API key, on first use and not before; ``refresh`` reads it anew, since it may have been rotated."""

    def __call__(self, *, refresh: bool) -> str:
        """Return the key.

        Raises:
            LookupError: when it cannot be had.
        """
        ...


class Model(Protocol):
    """Writes the text of a draft."""

    def write(self, brief: Brief, *, remaining: timedelta) -> Answer:
        """Return what came back, not judged yet: whoever calls books its cost first and then reads it.

        ``remaining`` is what is left of the function's time; the call is cut when it is nearly used up. Nothing is
        tried twice, except that a refused key is read anew once.

        Raises:
            RetryLater: when nothing came back that costs anything, and the same call may succeed later;
                ``AnswerLost`` when nothing came back, and nobody knows what it costs.
            NeverSucceeds: when it never will; ``SpendLimitReached`` when a person must first raise a limit.
        """
        ...

    def worst_cost(self, model: str, max_input_tokens: int, max_output_tokens: int) -> int:
        """Return the most that a call within both limits can cost today, in nano-dollars.

        Raises:
            prices.UnknownModel: when the model's price is not known.
        """
        ...


def open_model(provider: str, *, key: KeySource | None = None, region: str | None = None) -> Model:
    """Return the model of a provider: ``anthropic``, ``bedrock`` or ``offline``. Does no I/O.

    ``key`` is needed for ``anthropic``. ``region`` is for ``bedrock``; without one the SDK takes ``AWS_REGION``.

    Raises:
        ValueError: one line, for another provider or a missing key.
    """
    match provider:
        case "anthropic":
            if key is None:
                raise ValueError("model provider 'anthropic' needs a key; give one, or use 'bedrock' or 'offline'")
            return AnthropicModel(key)
        case "bedrock":
            return BedrockModel(region)
        case "offline":
            return OfflineModel()
        case _:
            raise ValueError(f"model provider {provider!r} is not known; use one of {', '.join(PROVIDERS)}")


@dataclass(frozen=True, slots=True)
class AnthropicModel:
    """Anthropic's own API. ``ANTHROPIC_BASE_URL`` moves it elsewhere, as the SDK has it."""

    key: KeySource

    def write(self, brief: Brief, *, remaining: timedelta) -> Answer:
        """Return what the model answered."""
        ends = _ends(remaining)
        first = self._key(refresh=False)
        try:
            return self._write(brief, first, ends)
        except NeverSucceeds as failure:
            if failure.reason != "model_key":
                raise
            fresh = self._key(refresh=True)
            if fresh == first:
                raise
            return self._write(brief, fresh, ends)

    def worst_cost(self, model: str, max_input_tokens: int, max_output_tokens: int) -> int:
        """Return the worst cost at the list price, with the surcharge that a workspace's own settings may bring."""
        return worst_cost(model, max_input_tokens, max_output_tokens, utc_now().date(), US_PERCENT)

    def _write(self, brief: Brief, key: str, ends: float) -> Answer:
        def connect(http: "httpx2.Client", timeout: "httpx2.Timeout") -> "Anthropic":
            from anthropic import Anthropic

            return Anthropic(api_key=key, max_retries=0, timeout=timeout, http_client=http, open_telemetry=False)

        return _call(connect, brief.model, brief, ends, percent=100)

    def _key(self, *, refresh: bool) -> str:
        try:
            return self.key(refresh=refresh).strip()
        except LookupError as error:
            why = one_line(str(error), _MOST_CHARS)
            raise RetryLater("model_key", f"the model's key cannot be read: {why}") from error


@dataclass(frozen=True, slots=True)
class BedrockModel:
    """The same models on Amazon Bedrock, with the function's own AWS credentials instead of a key."""

    region: str | None = None

    def write(self, brief: Brief, *, remaining: timedelta) -> Answer:
        """Return what the model answered."""

        def connect(http: "httpx2.Client", timeout: "httpx2.Timeout") -> "AnthropicBedrockMantle":
            from anthropic import AnthropicBedrockMantle

            return AnthropicBedrockMantle(
                aws_region=self.region, max_retries=0, timeout=timeout, http_client=http, open_telemetry=False
            )

        return _call(connect, f"anthropic.{brief.model}", brief, _ends(remaining), percent=BEDROCK_PERCENT)

    def worst_cost(self, model: str, max_input_tokens: int, max_output_tokens: int) -> int:
        """Return the worst cost at the price of a regional endpoint."""
        return worst_cost(model, max_input_tokens, max_output_tokens, utc_now().date(), BEDROCK_PERCENT)


def sort_failure(
    status: int, kind: str | None, code: str | None, message: str, after: timedelta | None = None
) -> Failure:
    """Return whether an error of the API may pass or never will.

    ``kind`` and ``code`` are the API's ``error.type`` and ``error.details.error_code``. An error event in a stream
    comes with status 200, so what it is stands in ``kind`` alone. Own spend limits arrive as 400, and told apart only
    by their words; those of the account as 402 or 429 with a code, on which a retry is lost.
    https://platform.claude.com/docs/en/api/errors
    """
    if 200 <= status < 300:
        status = _STATUS_OF_KIND.get(kind or "", 500)
    detail = f"the model's API answered {status}{f' {kind}' if kind else ''}: {one_line(message, _MOST_CHARS)}"
    if status == 402 or kind == "billing_error" or code in _SPEND_CODES or (status == 400 and _SPEND.search(message)):
        return SpendLimitReached("spend_limit", detail)
    match status:
        case 429:
            return RetryLater("rate_limited", detail, after)
        case 529:
            return RetryLater("overloaded", detail, after)
        case 408 | 504:
            return RetryLater("timeout", detail, after)
        case 409:
            return RetryLater("conflict", detail, after)
        case 401:
            return NeverSucceeds("model_key", f"{detail}; check the model's key")
        case 403:
            return NeverSucceeds("model_denied", detail)
        case 404:
            return NeverSucceeds("model_not_found", f"{detail}; check the drafter's model")
        case 413:
            return NeverSucceeds("too_large", f"{detail}; lower the drafter's max_input_tokens")
        case _ if status >= 500:
            return RetryLater("model_error", detail, after)
        case _:
            return NeverSucceeds("model_request", detail)


_STATUS_OF_KIND = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_SPEND_CODES = frozenset(
    {"enforced_spend_limit_reached", "contract_spend_limit_reached", "linked_organization_spend_limit_reached"}
)
_SPEND = re.compile(r"reached your specified (workspace )?API usage limits|spend(ing)? limit|credit balance", re.I)

_Connect = Callable[["httpx2.Client", "httpx2.Timeout"], "Anthropic | AnthropicBedrockMantle"]


def _call(connect: _Connect, model_id: str, brief: Brief, ends: float, percent: int) -> Answer:
    today = utc_now().date()
    worst_cost(brief.model, 0, 0, today)  # no call whose cost could not be told
    prompt = build_prompt(brief, secrets.token_hex(16))
    heard = _Heard()
    failure = _listen(connect, model_id, brief, prompt, ends, heard)
    if heard.stop is not None:
        failure = None
    if failure is not None and not heard.began:
        raise failure
    return Answer(
        model=brief.model,
        stop=heard.stop,
        text=heard.text,
        usage=heard.usage,
        cost_nanousd=price(brief.model, heard.most(brief), today, max(percent, US_PERCENT) if heard.in_us else percent),
        stop_detail=heard.stop_detail,
        failure=failure,
        shortened=prompt.shortened,
        left_out=prompt.left_out,
    )


def _listen(
    connect: _Connect, model_id: str, brief: Brief, prompt: Prompt, ends: float, heard: "_Heard"
) -> Failure | None:
    """Make the call and hear it out; return how it broke off, or None.

    A client is made for each call: the connection that a frozen function kept from its last run is most likely dead.
    Redirects are not followed, since the material would go to someone else.
    """
    import httpx2
    from anthropic import AnthropicError, APIConnectionError, APIStatusError, APITimeoutError, DefaultHttpxClient

    seconds = ends - time.monotonic()  # asked only now, since the import takes seconds of them
    if seconds <= 0:
        raise RetryLater("timeout", "too little of the function's time is left to call the model")
    timeout = httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
    deadline = _Deadline(seconds)
    try:
        with (
            deadline,
            DefaultHttpxClient(
                timeout=timeout, follow_redirects=False, event_hooks={"request": [deadline.guard]}
            ) as http,
            connect(http, timeout).messages.create(
                model=model_id,
                max_tokens=brief.max_output_tokens,
                system=prompt.system,
                messages=[{"role": "user", "content": prompt.user}],
                output_config={"effort": "low", "format": {"type": "json_schema", "schema": ANSWER_SCHEMA}},
                stream=True,
            ) as events,
        ):
            for event in events:
                heard.take(event)
    except APIStatusError as error:
        failure: Failure | None = _status_failure(error)
    except (APITimeoutError, httpx2.TimeoutException) as error:
        late = isinstance(error.__cause__ or error, httpx2.ConnectTimeout | httpx2.PoolTimeout)
        failure = _unconnected("none in time") if late else _timeout(seconds)
    except (APIConnectionError, httpx2.HTTPError, httpx2.StreamError, ValueError) as error:
        # The SDK hands on what its HTTP client or JSON parser raises once the body of a stream has begun.
        cause = error.__cause__ or error
        how = f"{type(cause).__name__}: {cause}"
        failure = _unconnected(how) if isinstance(cause, httpx2.ConnectError) else _broken(how)
    except (AnthropicError, RuntimeError) as error:
        # What is missing before a call can be made: a region, AWS credentials.
        failure = NeverSucceeds("model_settings", f"the model cannot be called: {one_line(str(error), _MOST_CHARS)}")
    else:
        failure = None if heard.ended else _broken("the answer ended before its end")
    return _timeout(seconds) if deadline.passed else failure


def _ends(remaining: timedelta) -> float:
    return time.monotonic() + (remaining - MARGIN).total_seconds()


def _timeout(seconds: float) -> AnswerLost:
    return AnswerLost("timeout", f"the model took longer than the {seconds:.0f} s that the function had left for it")


def _unconnected(how: str) -> RetryLater:
    return RetryLater("connection", f"no connection to the model: {one_line(how, _MOST_CHARS)}")


def _broken(how: str) -> AnswerLost:
    return AnswerLost("connection", f"the connection to the model broke: {one_line(how, _MOST_CHARS)}")


def _status_failure(error: "APIStatusError") -> Failure:
    return sort_failure(
        error.status_code,
        error.type,
        error.error_code,
        error.api_message or error.message,
        retry_after(error.response.headers, utc_now()),
    )


class _Heard:
    """What has been heard of an answer so far. Fields may be missing: that must not cost what came before."""

    def __init__(self) -> None:
        self.began = False  # the call has been accepted, and costs something
        self.counted = False  # the final number of output tokens has come
        self.in_us = False  # the workspace keeps its calls in the United States, at a surcharge
        self.ended = False
        self.stop: str | None = None
        self.stop_detail = ""
        self._text: list[str] = []
        self._usage: dict[str, int] = {}

    @property
    def text(self) -> str:
        return "".join(self._text)

    def take(self, event: object) -> None:
        match getattr(event, "type", None):
            case "message_start":
                self.began = True
                self.in_us = _part(event, "message", "usage", "inference_geo") == "us"
                self._count(_part(event, "message", "usage"))
            case "content_block_start":
                self._add(_part(event, "content_block"))
            case "content_block_delta":
                self._add(_part(event, "delta"))
            case "message_delta":
                usage = _part(event, "usage")
                self.counted = self.counted or isinstance(_part(usage, "output_tokens"), int)
                self._count(usage)
                self.stop = _text(_part(event, "delta", "stop_reason")) or self.stop
                self.stop_detail = _text(_part(event, "delta", "stop_details", "category"))
            case "message_stop":
                self.ended = True
            case _:
                pass

    def _add(self, part: object) -> None:
        if _part(part, "type") in ("text", "text_delta"):
            self._text.append(_text(_part(part, "text")))

    @property
    def usage(self) -> Usage:
        """The usage as far as it is known."""
        return Usage(
            input_tokens=self._usage.get("input_tokens", 0),
            output_tokens=self._usage.get("output_tokens", 0),
            cache_write_tokens=self._usage.get("cache_creation_input_tokens", 0),
            cache_read_tokens=self._usage.get("cache_read_input_tokens", 0),
        )

    def most(self, brief: Brief) -> Usage:
        """Return the usage with the brief's limits in the place of what was never told."""
        usage = self.usage
        return replace(
            usage,
            input_tokens=self._usage.get("input_tokens", brief.max_input_tokens),
            output_tokens=usage.output_tokens if self.counted else brief.max_output_tokens,
        )

    def _count(self, usage: object) -> None:
        """Take over every number that is there; those of a stream are cumulative, so the last one holds."""
        for name in ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"):
            tokens = getattr(usage, name, None)
            if isinstance(tokens, int):
                self._usage[name] = tokens


def _part(whole: object, *names: str) -> object:
    for name in names:
        whole = getattr(whole, name, None)
    return whole


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class _Deadline:
    """Ends a call when its time is up, whatever it is doing then.

    The SDK's timeout is for each read, so an answer that comes drop by drop, or nothing but pings, outlasts it. When
    the time is up the connection's socket is shut down, which wakes whoever waits for it.
    """

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._pass)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()

    def guard(self, request: "httpx2.Request") -> None:
        """Watch the connections made for a request, through the trace hook of the HTTP library.

        https://www.python-httpx.org/advanced/extensions/#trace
        """
        request.extensions["trace"] = self._watch

    def _watch(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            with self._lock:
                self._socket = info["return_value"].get_extra_info("socket")
                if self.passed:
                    self._shut()

    def _pass(self) -> None:
        with self._lock:
            self.passed = True
            self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            # The plain one: that of an SSL socket would first drop its session, under the feet of its reader.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
