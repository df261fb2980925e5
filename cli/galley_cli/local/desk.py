"""The review desk's HTTP server on one machine: a loopback address in front of the same handler as in AWS.

It stands where API Gateway and its authorizer stand there. Who has the printed address may decide: it holds a token
that works once, and gives the browser a session. Other programs of this machine, and pages that a browser of this
machine has open, are strangers: they have neither.
"""

import base64
import hashlib
import hmac
import json
import logging
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock, Thread
from typing import Any, Self
from urllib.parse import parse_qsl

from galley_cli.os_user import os_user

HOST = "127.0.0.1"
MAX_BODY = 1_000_000
SOCKET_TIMEOUT_SECONDS = 10.0
STOP_POLL_SECONDS = 0.1
NEW_ADDRESS = (
    "For another browser, use the kill -USR1 command of the running system's greeting: it prints a new address there."
)

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_PASSED_ON = ("accept", "accept-language", "content-type", "content-length", "host", "user-agent")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""For the answers that the server gives itself; the handler's bring their own."""

_logger = logging.getLogger(__name__)

Invoke = Callable[[dict[str, Any]], dict[str, Any]]


class PortUnavailable(Exception):
    """The desk cannot listen on its port. Its text is one line that names the port and the remedy."""


class Keys:
    """The secrets that open the desk: in memory alone, gone with the process, compared in constant time.

    A token is good for one session; a session, for as long as the process runs. The oldest of too many is dropped.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._tokens: deque[bytes] = deque(maxlen=16)
        self._sessions: deque[bytes] = deque(maxlen=64)

    def mint_token(self) -> str:
        """Return a new token."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._tokens.append(_digest(token))
        return token

    def redeem(self, token: str) -> str | None:
        """Use a token up and return a new session's secret; None for a used or wrong one."""
        with self._lock:
            known = _find(self._tokens, token)
            if known is None:
                return None
            self._tokens.remove(known)
            session = secrets.token_urlsafe(32)
            self._sessions.append(_digest(session))
            return session

    def is_session(self, secret: str) -> bool:
        """Tell whether a session has this secret."""
        with self._lock:
            return _find(self._sessions, secret) is not None


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _find(known: deque[bytes], secret: str) -> bytes | None:
    digest = _digest(secret)
    found = [one for one in known if hmac.compare_digest(one, digest)]
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. Header names are in lower case; one that came several times is joined with commas."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""

    def cookie(self, name: str) -> str | None:
        """Return a cookie's value."""
        for one in self.headers.get("cookie", "").replace(",", ";").split(";"):
            its_name, _, value = one.strip().partition("=")
            if its_name == name:
                return value
        return None


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: tuple[str, ...] = ()


class Desk:
    """The review desk on 127.0.0.1, from ``start`` until ``stop``.

    ``invoke`` calls the review function with an event of the HTTP API (payload 2.0) and returns its answer. It is
    called by one thread at a time, as one execution environment of Lambda would be. ``port`` 0 lets the system choose.
    """

    def __init__(
        self,
        invoke: Invoke,
        port: int = 0,
        *,
        reviewer: str | None = None,
        new_address_hint: str = NEW_ADDRESS,
    ) -> None:
        """Prepare the desk; nothing listens yet. ``reviewer`` is the operating system's user unless it is named."""
        self._invoke = invoke
        self._port = port
        self._reviewer = os_user() if reviewer is None else reviewer
        self._hint = new_address_hint
        self._keys = Keys()
        self._one_at_a_time = Lock()
        self._server: _Server | None = None
        self._thread: Thread | None = None

    def start(self) -> None:
        """Listen and answer in threads of its own.

        Raises:
            PortUnavailable: when the port is taken, forbidden or no port; one line that says what to do.
        """
        try:
            self._server = _Server((HOST, self._port), self.answer)
        except (OSError, OverflowError) as error:
            raise PortUnavailable(_why_not(self._port, error)) from error
        self._port = self._server.server_address[1]
        self._thread = Thread(target=self._server.serve_forever, args=(STOP_POLL_SECONDS,), name="desk", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take no more requests, finish those being answered, and let go of the port."""
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._thread.join()
        self._server.stop_reading()
        self._server.server_close()
        self._server = self._thread = None

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    @property
    def port(self) -> int:
        """The port: once started, the real one."""
        return self._port

    @property
    def address(self) -> str:
        """The desk's address, without a token: what health checks use, and what the Host header must name."""
        return f"http://{HOST}:{self._port}/"

    def new_address(self) -> str:
        """Return an address that opens the desk in one browser, once."""
        return f"{self.address}?token={self._keys.mint_token()}"

    def answer(self, request: Request) -> Answer:
        """Answer one request: refuse strangers, open sessions, and let the review function do the rest."""
        if request.headers.get("host", "").lower() not in self._hosts():
            return _refusal(HTTPStatus.MISDIRECTED_REQUEST, f"the desk answers at {self.address} alone")
        if request.path == "/" and request.method == "GET":
            token = dict(parse_qsl(request.query, keep_blank_values=True)).get("token")
            if token is not None:
                return self._open(request, token)
        session = self._has_session(request)
        if not session and request.path == "/":
            return self._closed("This desk opens with the address that the running system printed.")
        if not session and not _is_public(request):
            line = "this session is not open; open the address that the running system printed"
            return _refusal(HTTPStatus.UNAUTHORIZED, line, {"WWW-Authenticate": "Galley"})
        if request.method not in _READS:
            stranger = self._not_from_our_page(request)
            if stranger is not None:
                return _refusal(HTTPStatus.FORBIDDEN, stranger)
            if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
                return _refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send the body as application/json")
        return self._ask(self._event(request, session))

    def _hosts(self) -> set[str]:
        """Name what the Host header may say. Another name that leads here is a stranger's: DNS rebinding."""
        hosts = {f"{HOST}:{self._port}", f"localhost:{self._port}"}
        return hosts | {HOST, "localhost"} if self._port == 80 else hosts

    @property
    def _cookie(self) -> str:
        """The session cookie's name. Browsers share cookies between the ports of a host, so it names the port."""
        return f"galley-{self._port}"

    def _has_session(self, request: Request) -> bool:
        secret = request.cookie(self._cookie)
        return secret is not None and self._keys.is_session(secret)

    def _open(self, request: Request, token: str) -> Answer:
        session = self._keys.redeem(token)
        if session is not None:
            cookie = f"{self._cookie}={session}; Path=/; HttpOnly; SameSite=Strict"
            return Answer(HTTPStatus.SEE_OTHER, headers={**_HEADERS, "Location": "/"}, cookies=(cookie,))
        if self._has_session(request):
            return Answer(HTTPStatus.SEE_OTHER, headers={**_HEADERS, "Location": "/"})
        return self._closed("This address has been used already, or is not one of this desk.")

    def _closed(self, line: str) -> Answer:
        """Say on a page why the desk stays shut. A browser keeps our cookie back when a stranger's page led here,
        so the page links to the desk: from here on the cookie comes along."""
        page = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Galley review desk</title>
<link rel="stylesheet" href="/assets/desk.css">
<header class="top"><h1>Galley <span>review desk</span></h1></header>
<main class="sign-in">
<p>{escape(line)}</p>
<p>{escape(self._hint)}</p>
<p><a href="/">I have opened it in this browser already</a></p>
</main>
</html>
"""
        headers = {**_HEADERS, "Content-Type": "text/html; charset=utf-8"}
        return Answer(HTTPStatus.FORBIDDEN, page.encode(), headers)

    def _not_from_our_page(self, request: Request) -> str | None:
        """Say why a request that could change something does not come from our own page or a program; None if it may.

        https://cheatsheetseries.owasp.org/cheatsheets/Cross-Site_Request_Forgery_Prevention_Cheat_Sheet.html
        """
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() != f"http://{request.headers['host'].lower()}":
            return f"origin {origin[:100]!r} is not the desk's own page"
        site = request.headers.get("sec-fetch-site")
        if site is not None and site not in ("same-origin", "none"):
            return f"the request comes from another page ({site[:20]})"
        return None

    def _event(self, request: Request, session: bool) -> dict[str, Any]:
        """Return the event that API Gateway would send, with what its JWT authorizer would add for a session.

        https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
        """
        context: dict[str, Any] = {
            "accountId": "local",
            "apiId": "local",
            "domainName": request.headers["host"],
            "http": {
                "method": request.method,
                "path": request.path,
                "protocol": "HTTP/1.1",
                "sourceIp": HOST,
                "userAgent": request.headers.get("user-agent", ""),
            },
            "requestId": secrets.token_hex(8),
            "routeKey": "$default",
            "stage": "$default",
            "timeEpoch": int(time.time() * 1000),
        }
        if session:
            claims = {"iss": "local", "sub": self._reviewer, "username": self._reviewer}
            context["authorizer"] = {"jwt": {"claims": claims, "scopes": None}}
        event: dict[str, Any] = {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": request.path,
            "rawQueryString": request.query,
            "headers": {name: request.headers[name] for name in _PASSED_ON if name in request.headers},
            "requestContext": context,
            "isBase64Encoded": False,
        }
        parameters: dict[str, str] = {}
        for name, value in parse_qsl(request.query, keep_blank_values=True):
            parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
        if parameters:
            event["queryStringParameters"] = parameters
        if request.body:
            event["isBase64Encoded"] = True
            event["body"] = base64.b64encode(request.body).decode("ascii")
        return event

    def _ask(self, event: dict[str, Any]) -> Answer:
        try:
            with self._one_at_a_time:
                given = self._invoke(event)
            body = str(given.get("body") or "")
            return Answer(
                int(given["statusCode"]),
                base64.b64decode(body) if given.get("isBase64Encoded") else body.encode(),
                {str(name): str(value) for name, value in given.get("headers", {}).items()},
                tuple(given.get("cookies", ())),
            )
        except Exception:
            _logger.exception("the review function failed")
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "the review function failed; its log says why")


def _is_public(request: Request) -> bool:
    """Tell whether the path holds no data; the template leaves the same routes without an authorizer."""
    return request.path in ("/config", "/health") or request.path.startswith("/assets/")


def _refusal(status: HTTPStatus, line: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Refuse in the form that the review function uses too."""
    text = json.dumps({"error": {"code": status.name.lower(), "message": line}})
    return Answer(
        status, text.encode(), {**_HEADERS, "Content-Type": "application/json; charset=utf-8", **(headers or {})}
    )


def _why_not(port: int, error: Exception) -> str:
    match error:
        case OverflowError():
            return f"port {port} is no port; choose one from 1024 to 65535 with --port"
        case PermissionError():
            return f"port {port} needs more rights than this user has; choose one from 1024 to 65535 with --port"
        case _:
            return (
                f"port {port} on {HOST} cannot be used ({getattr(error, 'strerror', None) or error}); "
                "stop what listens there, or choose another one with --port"
            )


def refuse_taken_port(port: int) -> None:
    """Refuse a port that cannot be listened on now.

    Raises:
        PortUnavailable: as ``Desk.start`` does.
    """
    try:
        _Server((HOST, port), lambda request: Answer(HTTPStatus.SERVICE_UNAVAILABLE)).server_close()
    except (OSError, OverflowError) as error:
        raise PortUnavailable(_why_not(port, error)) from error


class _Server(ThreadingHTTPServer):
    """One thread for each connection, all of them joined at the end, so that no answer is cut."""

    daemon_threads = False
    block_on_close = True

    def __init__(self, address: tuple[str, int], answer: Callable[[Request], Answer]) -> None:
        self.answer = answer
        self._connections: set[socket.socket] = set()
        self._lock = Lock()
        super().__init__(address, _Connection)

    def server_bind(self) -> None:
        """Bind without the look-up of the host's name that HTTPServer does, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def stop_reading(self) -> None:
        """End the wait for requests that have not come: browsers open connections that they may never use."""
        with self._lock:
            for connection in self._connections:
                try:
                    connection.shutdown(socket.SHUT_RD)
                except OSError:
                    continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what went wrong with a connection; a browser that went away is no news."""
        _logger.debug("a connection of the desk broke", exc_info=True)


class _Connection(BaseHTTPRequestHandler):
    """One connection with one request: HTTP/1.0, so that nothing of it is left for another."""

    server: _Server
    timeout = SOCKET_TIMEOUT_SECONDS
    server_version = "Galley"
    sys_version = ""

    def _handle(self) -> None:
        request = self._read()
        if isinstance(request, Request):
            self._send(self.server.answer(request))
        else:
            self._send(request)
            self._linger()

    do_GET = do_HEAD = do_OPTIONS = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    def _read(self) -> Request | Answer:
        """Read the request, or say why it cannot be read."""
        path, _, query = self.path.partition("?")
        headers: dict[str, str] = {}
        for name, value in self.headers.items():
            known = headers.get(name.lower())
            headers[name.lower()] = value if known is None else f"{known},{value}"
        if not path.startswith("/"):
            return _refusal(HTTPStatus.BAD_REQUEST, "the target must be a path")
        if "transfer-encoding" in headers:
            return _refusal(HTTPStatus.LENGTH_REQUIRED, "send the body with a Content-Length")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return _refusal(HTTPStatus.BAD_REQUEST, f"Content-Length {length[:20]!r} is no length")
        if len(length) > len(str(MAX_BODY)) or int(length) > MAX_BODY:
            return _refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {MAX_BODY} bytes")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            return _refusal(HTTPStatus.BAD_REQUEST, "the body ended before its Content-Length")
        return Request(self.command, path, query, headers, body)

    def _linger(self) -> None:
        """Take some of the body that was refused: closing while it still comes would reset the connection, and the
        other side might never read our answer."""
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(1)
        left = 2 * MAX_BODY
        while left > 0 and (chunk := self.rfile.read1(65_536)):
            left -= len(chunk)

    def _send(self, answer: Answer) -> None:
        self.request_version = self.protocol_version  # else a request without a version gets no headers
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        for cookie in answer.cookies:
            self.send_header("Set-Cookie", cookie)
        if self.command != "HEAD" and answer.status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no HTTP in our own form."""
        self._send(_refusal(HTTPStatus(code), message or HTTPStatus(code).phrase))

    def log_message(self, format: str, *args: Any) -> None:
        """Keep requests out of the terminal, and tokens out of every log."""
