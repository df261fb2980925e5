"""The desk on one machine: a loopback address behind a one-time token, closed to every stranger."""

import http.client
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

import review
from galley.runs import Status
from galley_cli.local import desk as local_desk
from galley_cli.local.desk import Desk, Keys, PortUnavailable
from support.outside import Context
from unit.review.asking import DeskClient, path_of

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]


class Browser:
    """Asks the local desk as a browser with one cookie would."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookie: str | None = None

    def ask(
        self, method: str, target: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        sent = {"Host": f"127.0.0.1:{self.port}"}
        if self.cookie is not None:
            sent["Cookie"] = self.cookie
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as connection:
            connection.request(method, target, body, {name: value for name, value in sent.items() if value})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def open(self, address: str) -> tuple[int, dict[str, str], bytes]:
        status, headers, body = self.ask("GET", "/" + address.split("/", 3)[3])
        if "set-cookie" in headers:
            self.cookie = headers["set-cookie"].split(";")[0]
        return status, headers, body

    def post(self, path: str, body: object, **headers: str) -> tuple[int, dict[str, Any]]:
        given = {"Content_Type": "application/json", **headers}
        status, _, answer = self.ask("POST", path, json.dumps(body).encode(), **given)
        return status, json.loads(answer)


@pytest.fixture
def local(desk: DeskClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(local_desk, "STOP_POLL_SECONDS", 0.005)
    with Desk(lambda event: review.handler(event, Context()), 0, reviewer="ana") as running:  # type: ignore[arg-type]
        yield running


@pytest.fixture
def browser(local: Desk) -> Browser:
    return Browser(local.port)


@pytest.fixture
def opened(local: Desk, browser: Browser) -> Browser:
    browser.open(local.new_address())
    return browser


def test_the_printed_address_opens_the_desk_once(local: Desk, browser: Browser) -> None:
    address = local.new_address()
    assert address.startswith(f"http://127.0.0.1:{local.port}/?token=")
    status, headers, _ = browser.open(address)
    assert (status, headers["location"]) == (303, "/")
    assert headers["set-cookie"].startswith(f"galley-{local.port}=")
    assert headers["set-cookie"].endswith("; Path=/; HttpOnly; SameSite=Strict")
    assert browser.ask("GET", "/")[0] == 200
    assert browser.ask("GET", "/drafts")[0] == 200


@pytest.mark.parametrize("token", ["used", "wrong", ""])
def test_a_used_or_wrong_token_says_how_to_get_a_new_one(local: Desk, token: str) -> None:
    address = local.new_address()
    Browser(local.port).open(address)
    status, headers, body = Browser(local.port).open(address if token == "used" else f"{local.address}?token={token}")
    assert status == 403
    assert "set-cookie" not in headers
    assert b"has been used already, or is not one of this desk" in body
    assert b"it prints a new address" in body
    assert Browser(local.port).open(local.new_address())[0] == 303


def test_whoever_is_in_already_is_not_shut_out_by_a_used_address(local: Desk, browser: Browser) -> None:
    address = local.new_address()
    browser.open(address)
    cookie = browser.cookie
    assert browser.open(address)[0] == 303
    assert browser.cookie == cookie


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "POST"])
def test_only_a_get_uses_a_token_up(local: Desk, browser: Browser, method: str) -> None:
    address = local.new_address()
    assert browser.ask(method, "/" + address.split("/", 3)[3])[0] in (403, 401)
    assert browser.open(address)[0] == 303


def test_without_a_session_only_what_holds_no_data_is_open(desk: DeskClient, local: Desk, browser: Browser) -> None:
    run = desk.pending()
    status, _, body = browser.ask("GET", "/")
    assert status == 403
    assert b"opens with the address that the running system printed" in body
    for path in ("/health", "/config", "/assets/desk.js"):
        assert browser.ask("GET", path)[0] == 200
    for path in ("/drafts", path_of(run), "/runs?drafter=daily-digest", "/drafters?names=daily-digest", "/nowhere"):
        status, headers, body = browser.ask("GET", path)
        assert status == 401
        assert "address that the running system printed" in json.loads(body)["error"]["message"]
        assert headers["cache-control"] == "no-store"
    for cookie in (f"galley-{local.port}=wrong", f"galley-{local.port}=", "galley-1=x", "=", ";;", "\xff"):
        browser.cookie = cookie
        assert browser.ask("GET", "/drafts")[0] == 401


def test_a_person_decides_through_it_as_the_user_of_the_machine(desk: DeskClient, opened: Browser) -> None:
    run = desk.pending()
    _, _, body = opened.ask("GET", path_of(run))
    draft = json.loads(body)
    status, answer = opened.post(
        f"{path_of(run)}/approve", {"version": draft["version"], "text_hash": draft["text_hash"]}
    )
    assert (status, answer["run"]["decision"]["reviewer"]) == (200, "ana")
    status, answer = opened.post(
        f"{path_of(run)}/reject", {"version": draft["version"], "text_hash": draft["text_hash"], "reason": "other"}
    )
    assert (status, answer["run"]["status"]) == (409, "approved")


def test_the_query_reaches_the_handler(desk: DeskClient, opened: Browser) -> None:
    desk.pending()
    status, _, body = opened.ask("GET", "/drafters?names=daily-digest&names=weekly-report")
    assert status == 200
    assert [one["drafter"] for one in json.loads(body)["drafters"]] == ["daily-digest", "weekly-report"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "evil.example:80", "[::1]:8700", "0.0.0.0:8700"]
)
def test_a_request_under_another_name_is_refused(opened: Browser, host: str) -> None:
    status, _, body = opened.ask("GET", "/health", Host=host)
    assert status == 421
    assert "the desk answers at http://127.0.0.1:" in json.loads(body)["error"]["message"]


def test_localhost_is_a_name_of_it_too(opened: Browser) -> None:
    assert opened.ask("GET", "/drafts", Host=f"LOCALHOST:{opened.port}")[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "https://127.0.0.1:PORT"}, 403),
        ({"Origin": "http://localhost:PORT"}, 403),
        ({"Origin": "http://127.0.0.1:PORT"}, 200),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
        ({"Sec_Fetch_Site": "none"}, 200),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content_Type": ""}, 415),
        ({"Content_Type": "Application/JSON; charset=utf-8"}, 200),
    ],
)
def test_a_decision_from_another_page_is_refused(
    desk: DeskClient, opened: Browser, headers: dict[str, str], status: int
) -> None:
    run = desk.pending()
    sent = {name: value.replace("PORT", str(opened.port)) for name, value in headers.items()}
    body = {"version": run.version, "text_hash": run.text_hash}
    assert opened.post(f"{path_of(run)}/approve", body, **sent)[0] == status
    now = desk.store.run(run.key)
    assert now is not None
    assert now.status is (Status.APPROVED if status == 200 else Status.PENDING)


def test_reading_through_it_decides_nothing(desk: DeskClient, opened: Browser) -> None:
    run = desk.pending()
    for method in ("GET", "HEAD", "OPTIONS"):
        for end in ("", "/approve", "/reject"):
            for _ in range(10):
                assert opened.ask(method, f"{path_of(run)}{end}?version=2&text_hash={run.text_hash}")[0] < 500
    assert desk.store.run(run.key) == run


def test_no_header_of_a_stranger_reaches_the_handler(local: Desk, opened: Browser) -> None:
    seen: list[dict[str, Any]] = []
    local._invoke = lambda event: seen.append(event) or {"statusCode": 200, "headers": {}, "body": "{}"}  # type: ignore[func-returns-value]
    opened.ask("GET", "/drafts?after=x", X_Forwarded_Proto="https", Authorization="Bearer x", User_Agent="ua")
    assert seen[0]["headers"] == {"host": f"127.0.0.1:{local.port}", "user-agent": "ua"}
    assert "cookies" not in seen[0]
    assert seen[0]["queryStringParameters"] == {"after": "x"}
    assert seen[0]["requestContext"]["authorizer"]["jwt"]["claims"] == {"iss": "local", "sub": "ana", "username": "ana"}
    opened.cookie = None
    opened.ask("GET", "/health")
    assert "authorizer" not in seen[1]["requestContext"]


def _raw(port: int, *parts: bytes, wait: float = 5) -> bytes:
    """Send bytes as they are and return all that comes back."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=wait)) as connection:
        for part in parts:
            connection.sendall(part)
        got = b""
        while chunk := connection.recv(65_536):
            got += chunk
        return got


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /health HTTP/1.1\r\n\r\n", 421),
        (b"GET /health HTTP/1.1\r\nHost: HOST\r\nHost: evil.example\r\n\r\n", 421),
        (b"GET http://evil.example/health HTTP/1.1\r\nHost: HOST\r\n\r\n", 400),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: HOST\r\n\r\n", 414),
        (b"GET /health HTTP/1.1\r\nHost: HOST\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", 431),
        (b"GET /health HTTP/1.1\r\nHost: HOST\r\n" + b"X: x\r\n" * 200 + b"\r\n", 431),
        (b"POST /x HTTP/1.1\r\nHost: HOST\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1,1\r\n\r\n", 400),
        (b"POST /x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 00000000000000000001\r\n\r\n", 413),
        (b"POST /x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
        (b"POST /x HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (b"BREW /x HTTP/1.1\r\nHost: HOST\r\n\r\n", 501),
        (b"nonsense\r\n\r\n", 400),
    ],
)
def test_what_is_no_proper_request_is_refused(
    local: Desk, monkeypatch: pytest.MonkeyPatch, request_: bytes, status: int
) -> None:
    monkeypatch.setattr(local_desk._Connection, "timeout", 0.2)
    got = _raw(local.port, request_.replace(b"HOST", f"127.0.0.1:{local.port}".encode()))
    assert got.startswith(f"HTTP/1.0 {status} ".encode())
    assert b"content-security-policy: default-src 'none'" in got.lower()
    assert b"Traceback" not in got


def test_a_body_is_bounded(opened: Browser) -> None:
    status, _, body = opened.ask("POST", "/drafts", b" " * 1_000_001, Content_Type="application/json")
    assert (status, json.loads(body)["error"]["message"]) == (413, "a body has at most 1000000 bytes")
    assert opened.ask("POST", "/drafts", b" " * 1_000_000, Content_Type="application/json")[0] == 405


def test_who_sends_too_much_still_reads_why_not(local: Desk) -> None:
    head = f"POST /drafts HTTP/1.1\r\nHost: 127.0.0.1:{local.port}\r\nContent-Length: 1900000\r\n\r\n"
    with closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        connection.settimeout(5)
        connection.connect(("127.0.0.1", local.port))
        connection.sendall(head.encode() + b" " * 1_900_000)
        assert connection.recv(100).startswith(b"HTTP/1.0 413 ")


def test_half_a_body_reaches_no_handler(local: Desk) -> None:
    head = f"POST /health HTTP/1.1\r\nHost: 127.0.0.1:{local.port}\r\nContent-Length: 5\r\n\r\n1"
    with closing(socket.create_connection(("127.0.0.1", local.port), timeout=5)) as connection:
        connection.sendall(head.encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100).startswith(b"HTTP/1.0 400 ")


def test_a_slow_request_is_dropped_and_delays_nobody(
    local: Desk, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_desk._Connection, "timeout", 0.3)
    with closing(socket.create_connection(("127.0.0.1", local.port), timeout=5)) as slow:
        slow.sendall(b"POST /drafts HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n1")
        assert browser.ask("GET", "/health")[0] == 200
        assert slow.recv(100) == b""


def test_a_handler_that_fails_is_one_line(local: Desk, opened: Browser) -> None:
    def fails(event: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("secret")

    for wrong in (fails, lambda event: {}, lambda event: {"statusCode": "no"}):
        local._invoke = wrong
        status, _, body = opened.ask("GET", "/drafts")
        assert status == 500
        assert json.loads(body)["error"]["message"] == "the review function failed; its log says why"


def test_the_handler_is_asked_by_one_thread_at_a_time(local: Desk, opened: Browser) -> None:
    inside: list[int] = []
    most: list[int] = []

    def slow(event: dict[str, Any]) -> dict[str, Any]:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.02)
        inside.pop()
        return {"statusCode": 200, "headers": {}, "body": ""}

    local._invoke = slow
    threads = [threading.Thread(target=opened.ask, args=("GET", "/drafts")) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


def test_stopping_finishes_the_answer_under_way_and_waits_for_no_idle_browser(desk: DeskClient) -> None:
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def slow(event: dict[str, Any]) -> dict[str, Any]:
        begun.set()
        go_on.wait(5)
        time.sleep(0.1)
        done.set()
        return {"statusCode": 200, "headers": {}, "body": "done"}

    local = Desk(slow, 0)
    local.start()
    answers: list[bytes] = []
    request = threading.Thread(target=lambda: answers.append(Browser(local.port).ask("GET", "/health")[2]))
    with closing(socket.create_connection(("127.0.0.1", local.port))):
        request.start()
        begun.wait(5)
        stop = threading.Thread(target=local.stop)
        started = time.monotonic()
        stop.start()
        time.sleep(0.05)
        go_on.set()
        stop.join()
        assert done.is_set()
        request.join()
    assert answers == [b"done"]
    assert time.monotonic() - started < 3
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", local.port))
    local.stop()


def test_a_port_in_use_is_one_line_that_names_it_and_the_remedy(local: Desk) -> None:
    with pytest.raises(PortUnavailable) as refused:
        Desk(lambda event: {}, local.port).start()
    assert str(refused.value) == (
        f"port {local.port} on 127.0.0.1 cannot be used (Address already in use); "
        "stop what listens there, or choose another one with --port"
    )


@pytest.mark.parametrize("port", [-1, 70_000])
def test_what_is_no_port_is_refused_in_one_line(port: int) -> None:
    with pytest.raises(PortUnavailable, match=f"port {port} is no port; choose one from 1024 to 65535 with --port"):
        Desk(lambda event: {}, port).start()


def test_a_stopped_desk_can_be_started_again_at_the_same_address(desk: DeskClient) -> None:
    local = Desk(lambda event: review.handler(event, Context()), 0)  # type: ignore[arg-type]
    local.start()
    address = local.address
    local.stop()
    with local:
        assert local.address == address
        assert Browser(local.port).ask("GET", "/health")[0] == 200


def test_it_listens_on_the_loopback_address_alone(local: Desk) -> None:
    assert local._server is not None
    assert local._server.server_address == ("127.0.0.1", local.port)


def test_keys_keep_no_secret_and_forget_the_oldest() -> None:
    keys = Keys()
    tokens = [keys.mint_token() for _ in range(17)]
    assert keys.redeem(tokens[0]) is None
    session = keys.redeem(tokens[1])
    assert session is not None
    assert keys.is_session(session)
    assert not keys.is_session(tokens[1])
    assert not keys.is_session("")
    assert session not in repr(vars(keys))


def test_one_token_redeemed_by_many_at_once_opens_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    find = local_desk._find

    def slow_find(known: deque[bytes], secret: str) -> bytes | None:
        found = find(known, secret)
        time.sleep(0.005)
        return found

    monkeypatch.setattr(local_desk, "_find", slow_find)
    keys = Keys()
    token = keys.mint_token()
    sessions: list[str | None] = []
    threads = [threading.Thread(target=lambda: sessions.append(keys.redeem(token))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([one for one in sessions if one is not None]) == 1


def test_the_user_of_the_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ben")
    assert Desk(lambda event: {})._reviewer == "ben"

    def unknown() -> str:
        raise KeyError("uid 4711")

    monkeypatch.setattr("getpass.getuser", unknown)
    assert Desk(lambda event: {})._reviewer == "local"
