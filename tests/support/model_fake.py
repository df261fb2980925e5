"""A small Messages API on 127.0.0.1 that answers as it is told, so that the real SDK can be run against it.

Without a script it writes a well-formed draft that cites every item it was sent. ``fake.script(...)`` sets what the
next requests get, one reply each; when they are used up it is back to the draft. ``fake.always(...)`` sets what every
request gets. Requests are kept in ``fake.requests``.

Point the SDK at it with ``ANTHROPIC_BASE_URL`` (or ``ANTHROPIC_BEDROCK_MANTLE_BASE_URL``) set to ``fake.url``.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

DRIP_SECONDS = 0.05


@dataclass(frozen=True)
class Request:
    """One request as it arrived. ``key`` is the bearer token or the x-api-key."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    key: str | None

    @property
    def system(self) -> str:
        return str(self.body["system"])

    @property
    def user(self) -> str:
        return str(self.body["messages"][0]["content"])

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items of the prompt, read from the lines of JSON that they are sent as."""
        lines = [json.loads(line) for line in self.user.splitlines() if line.startswith('{"id"')]
        return [line for line in lines if isinstance(line, dict)]


class Wire:
    """What a reply writes to. Every write may find that the client has gone."""

    def __init__(self, handler: BaseHTTPRequestHandler, stopped: threading.Event) -> None:
        self._handler = handler
        self._stopped = stopped

    def begin(self, status: int, kind: str, headers: Mapping[str, str] | None = None) -> None:
        """Send the head of an answer whose body comes in chunks."""
        self._handler.send_response(status)
        for name, value in {"content-type": kind, "transfer-encoding": "chunked", **(headers or {})}.items():
            self._handler.send_header(name, value)
        self._handler.end_headers()

    def send(self, data: bytes) -> None:
        self._handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self._handler.wfile.flush()

    def event(self, name: str, **data: Any) -> None:
        self.send(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode())

    def end(self) -> None:
        """End the body as HTTP has it; without this the connection just breaks."""
        self._handler.wfile.write(b"0\r\n\r\n")

    def wait(self, seconds: float) -> None:
        """Wait, or until the fake stops."""
        if self._stopped.wait(seconds):
            raise ConnectionAbortedError

    def sleep_for_ever(self) -> None:
        self.wait(60)


Reply = Callable[[Request, Wire], None]

USAGE = {"input_tokens": 1_000, "output_tokens": 200}


def draft(title: str = "A title", sections: Sequence[Mapping[str, Any]] | None = None) -> str:
    """Return the text of a well-formed answer."""
    if sections is None:
        sections = [{"heading": "What happened", "text": "It went well.", "cites": []}]
    return json.dumps({"title": title, "sections": list(sections)})


def says(
    text: str,
    *,
    stop: str | None = "end_turn",
    usage: Mapping[str, int | None] = USAGE,
    category: str | None = None,
    thinks: str = "",
) -> Reply:
    """Answer with a text: as a stream when one was asked for, else as one message."""

    def reply(request: Request, wire: Wire) -> None:
        details = {"type": "refusal", "category": category} if category else None
        if not request.body.get("stream"):
            content = [{"type": "text", "text": text}]
            end = {"stop_reason": stop, "stop_details": details, "usage": usage}
            _json(wire, 200, {**_message(request, usage), "content": content, **end})
            return
        _begin(request, wire, usage)
        if thinks:
            _block(
                wire, 0, {"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking", [thinks]
            )
        pieces = [text[at : at + 400] for at in range(0, len(text), 400)]
        _block(wire, 1 if thinks else 0, {"type": "text", "text": ""}, "text_delta", "text", pieces)
        wire.event("message_delta", delta={"stop_reason": stop, "stop_details": details}, usage=usage)
        wire.event("message_stop")
        wire.end()

    return reply


def writes_about_all(request: Request, wire: Wire) -> None:
    """Answer with a draft that cites every item of the prompt."""
    ids = [str(item["id"]) for item in request.items]
    says(draft("A draft", [{"heading": "All of it", "text": f"There are {len(ids)} items.", "cites": ids}]))(
        request, wire
    )


def obeys(request: Request, wire: Wire) -> None:
    """Give the material back unchanged, as a model does that does whatever the material says."""
    sections = [
        {"heading": str(item.get("title", "")), "text": str(item.get("text", "")), "cites": [str(item["id"])]}
        for item in request.items
    ]
    says(draft("As told: " + " ".join(section["heading"] for section in sections)[:250], sections))(request, wire)


def fails(
    status: int, kind: str, message: str = "no", *, code: str | None = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """Answer with an error of the API."""

    def reply(request: Request, wire: Wire) -> None:
        error = {"type": kind, "message": message, **({"details": {"error_code": code}} if code else {})}
        _json(wire, status, {"type": "error", "error": error, "request_id": "req_1"}, headers)

    return reply


def breaks_off(after: str = "text", *, cleanly: bool = False) -> Reply:
    """Break off after the headers, the ``start`` of the message, some ``text``, or its ``stop``.

    ``cleanly`` ends the HTTP body properly, as a proxy does that lost its own connection.
    """

    def reply(request: Request, wire: Wire) -> None:
        wire.begin(200, "text/event-stream")
        if after != "headers":
            wire.event("message_start", message=_message(request, USAGE))
        if after in ("text", "stop"):
            wire.event("content_block_start", index=0, content_block={"type": "text", "text": ""})
            wire.event("content_block_delta", index=0, delta={"type": "text_delta", "text": draft()})
        if after == "stop":
            wire.event("message_delta", delta={"stop_reason": "end_turn"}, usage=USAGE)
        if cleanly:
            wire.end()

    return reply


def errs_in_stream(kind: str, *, after: str = "text", message: str = "no") -> Reply:
    """Answer with status 200 and, once the stream has come so far, an error event."""

    def reply(request: Request, wire: Wire) -> None:
        breaks_off(after)(request, wire)
        wire.event("error", error={"type": kind, "message": message})
        wire.end()

    return reply


def is_silent(request: Request, wire: Wire) -> None:
    """Accept the request and never answer."""
    wire.sleep_for_ever()


def drips(what: str = "text") -> Reply:
    """Never end: send ``headers`` byte by byte, or ``pings``, or ``text``, each long before any read times out."""

    def reply(request: Request, wire: Wire) -> None:
        if what == "headers":
            for byte in b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-filler: " + b"x" * 10_000:
                wire._handler.wfile.write(bytes([byte]))
                wire.wait(DRIP_SECONDS)
        breaks_off("headers" if what == "pings" else "start")(request, wire)
        if what == "text":
            wire.event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        while True:
            if what == "pings":
                wire.event("ping")
            else:
                wire.event("content_block_delta", index=0, delta={"type": "text_delta", "text": "word "})
            wire.wait(DRIP_SECONDS)

    return reply


def sends(
    body: bytes, kind: str = "text/event-stream", status: int = 200, *, headers: Mapping[str, str] | None = None
) -> Reply:
    """Answer with these bytes."""

    def reply(request: Request, wire: Wire) -> None:
        wire.begin(status, kind, headers)
        wire.send(body)
        wire.end()

    return reply


class ModelFake:
    """The server. Use it in a ``with``; ``url`` is where it listens. ``keys`` limits which API keys it accepts."""

    def __init__(self, keys: frozenset[str] | None = None) -> None:
        self.keys = keys
        self.requests: list[Request] = []
        self._default: Reply = writes_about_all
        self._script: list[Reply] = []
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script(self, *replies: Reply) -> None:
        """Add what the next requests get, one reply each."""
        with self._lock:
            self._script.extend(replies)

    def always(self, reply: Reply) -> None:
        """Set what every request gets for which nothing is scripted."""
        self._default = reply

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _take(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            if request.key is None or (self.keys is not None and request.key not in self.keys):
                return fails(401, "authentication_error", "invalid x-api-key")
            return self._script.pop(0) if self._script else self._default


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: that a client goes away is what many of these tests are about."""


def _handler_of(fake: ModelFake) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_POST(self) -> None:
            self.close_connection = True
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ") or None
            request = Request(self.path, headers, body, key)
            with suppress(OSError):
                fake._take(request)(request, Wire(self, fake._stopped))

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    return Handler


def _json(wire: Wire, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
    wire.begin(status, "application/json", headers)
    wire.send(json.dumps(body).encode())
    wire.end()


def _message(request: Request, usage: Mapping[str, int | None]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request.body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }


def _begin(request: Request, wire: Wire, usage: Mapping[str, int | None]) -> None:
    wire.begin(200, "text/event-stream")
    wire.event("message_start", message=_message(request, usage))
    wire.event("ping")


def _block(wire: Wire, index: int, block: Mapping[str, str], kind: str, field: str, pieces: Sequence[str]) -> None:
    wire.event("content_block_start", index=index, content_block=block)
    for piece in pieces:
        wire.event("content_block_delta", index=index, delta={"type": kind, field: piece})
    wire.event("content_block_stop", index=index)
