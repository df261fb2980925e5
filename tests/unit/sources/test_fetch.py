"""Fetching: public addresses only, on every hop, and a bound on everything that the other side could draw out."""

import errno
import functools
import gzip
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from galley import __version__
from sources import fetch as fetching
from sources.fetch import Fetched, FetchError, FetchLimits, NoNetwork, fetch, is_public

pytestmark = pytest.mark.allow_hosts(["127.0.0.1", "::1"])

QUICK = FetchLimits(seconds=0.4)


def _refuse_to_connect(*_: Any) -> Any:
    raise AssertionError("a connection was tried")


@pytest.fixture
def no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_connect", _refuse_to_connect)


def _error(url: str, **options: Any) -> str:
    with pytest.raises(FetchError) as raised:
        fetch(url, **options)
    assert "\n" not in str(raised.value)
    return str(raised.value)


NOT_PUBLIC = [
    "0.0.0.0",  # noqa: S104  # refused, not bound
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    "::",
    "::1",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2001::1",
    "2001:db8::1",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "4000::1",
    "100::1",
    "not an address",
    "",
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "93.184.215.14", "2606:4700::1111", "::ffff:8.8.8.8", "2002:808:808::1", "64:ff9b::808:808"],
)
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "0.0.0.0",  # noqa: S104  # refused, not bound
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::]",
        "[fd00:ec2::254]",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0",
        "localhost",
        "LocalHost",
        "①②⑦.⓪.⓪.①",
    ],
)
@pytest.mark.usefixtures("no_connections")
def test_hosts_that_lead_to_this_machine_or_network_are_refused(host: str) -> None:
    error = _error(f"http://{host}:8080/latest/meta-data/")
    assert "not a public address" in error or "does not resolve" in error  # not every system knows every notation


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", "only http and https are read, not file"),
        ("gopher://example.org:70/_x", "only http and https are read, not gopher"),
        ("ftp://example.org/", "only http and https"),
        ("data:text/xml,<rss/>", "only http and https"),
        ("/etc/passwd", "an address without a scheme"),
        ("", "an address without a scheme"),
        ("http://user:word@example.org/", "user name or password"),
        ("http://example.org@10.0.0.1/", "user name or password"),
        ("http:///path", "no host"),
        ("http://[::1/", "malformed"),
        ("http://example.org:port/", "malformed"),
        ("http://example.org:99999/", "malformed"),
        ("http://[fe80::1%25eth0]/", "no host name"),
        ("http://exa mple.org/", "blanks"),
        ("http://example.org\\@10.0.0.1/", "backslashes"),
        ("http://example.org/\r\nX-Injected: 1", "control characters"),
        ("http://" + "a" * 5_000, "too long"),
        ("http://" + "ä" * 300 + ".example/", "malformed"),
        ("http://example_%.org/", "no host name"),
    ],
)
@pytest.mark.usefixtures("no_connections")
def test_addresses_that_are_no_web_addresses_are_refused(url: str, reason: str) -> None:
    assert reason in _error(url)


def test_an_error_names_the_address_without_its_credentials() -> None:
    assert _error("http://user:word@example.org/feed").startswith("http://example.org/feed: ")


@pytest.mark.parametrize("addresses", [["10.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["::1", "8.8.8.8"]])
@pytest.mark.usefixtures("no_connections")
def test_a_name_with_any_private_address_is_refused(addresses: Sequence[str]) -> None:
    reason = _error("https://feeds.example/", resolve=lambda host, port: addresses)
    assert "feeds.example is at" in reason
    assert "not a public address" in reason


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server that answers differently the second time is not asked a second time."""
    answers = iter([["8.8.8.8", "8.8.4.4"], ["127.0.0.1"]])
    connected: list[tuple[Sequence[str], int]] = []

    def connect(addresses: Sequence[str], port: int, deadline: object) -> Any:
        connected.append((addresses, port))
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(fetching, "_connect", connect)
    error = _error("http://feeds.example/", resolve=lambda host, port: next(answers))
    assert error == "http://feeds.example/: the connection failed (Connection refused)"
    assert connected == [(["8.8.8.8", "8.8.4.4"], 80)]


def test_the_name_is_sent_and_the_address_is_connected_to(web: Any) -> None:
    web.answer("/feed", b"words")
    asked: list[str] = []

    def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"]

    answer = fetch(web.url("/feed", "Feeds.example"), resolve=resolve, trusted=frozenset({("feeds.example", web.port)}))
    assert answer.body == b"words"
    assert asked == ["feeds.example"]
    assert web.requests[0][1]["Host"] == f"feeds.example:{web.port}"


@pytest.mark.parametrize("addresses", [["::1", "127.0.0.1"], ["127.0.0.1", "::1"]])
def test_the_next_address_is_tried_when_one_refuses(web: Any, addresses: Sequence[str]) -> None:
    web.answer("/", b"words")
    answer = fetch(
        web.url("/", "feeds.example"),
        resolve=lambda host, port: addresses,
        trusted=frozenset({("feeds.example", web.port)}),
    )
    assert answer.body == b"words"


@pytest.mark.parametrize("error", [OSError(-2, "Name or service not known"), UnicodeError("label too long")])
@pytest.mark.usefixtures("no_connections")
def test_a_name_that_does_not_resolve_says_so(error: Exception) -> None:
    def resolve(host: str, port: int) -> Sequence[str]:
        raise error

    assert "the name nowhere.example does not resolve" in _error("http://nowhere.example/", resolve=resolve)
    assert "has no address" in _error("http://nowhere.example/", resolve=lambda host, port: [])


def test_a_resolver_that_hangs_is_given_up_in_time() -> None:
    stop = threading.Event()

    def resolve(host: str, port: int) -> Sequence[str]:
        stop.wait(5)
        return []

    begin = time.monotonic()
    with pytest.raises(NoNetwork, match=r"did not resolve within 0\.4 s"):
        fetch("http://slow.example/", resolve=resolve, limits=QUICK)
    assert time.monotonic() - begin < 2
    stop.set()


def test_what_is_sent_and_what_is_not(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    web.answer("/feed", b"words", Set_Cookie="a=b")
    fetch(web.url("/feed?q=ä b".replace(" ", "%20")), headers={"If-None-Match": '"x"'}, trusted=web.trusted)
    fetch(web.url("/feed"), trusted=web.trusted)
    assert [path for path, _ in web.requests] == ["/feed?q=%C3%A4%20b", "/feed"]
    headers = web.requests[0][1]
    assert sorted(headers.keys()) == ["Accept-Encoding", "Connection", "Host", "If-None-Match", "User-Agent"]
    assert headers["User-Agent"] == f"Galley/{__version__}"
    assert "Cookie" not in web.requests[1][1]


def test_an_answer_has_its_status_headers_and_body(web: Any) -> None:
    web.answer("/gone", b"no more", status=410, X_Reason="closed")
    answer = fetch(web.url("/gone"), trusted=web.trusted)
    assert (answer.status, answer.body, answer.url) == (410, b"no more", web.url("/gone"))
    assert answer.headers["x-reason"] == "closed"
    assert answer.moved_permanently_to is None


def _chain(web: Any, *statuses: int) -> Fetched:
    for number, status in enumerate(statuses):
        web.answer(f"/{number}", status=status, Location=f"/{number + 1}")
    web.answer(f"/{len(statuses)}", b"end")
    return fetch(web.url("/0"), trusted=web.trusted)


@pytest.mark.parametrize(
    ("statuses", "moved"),
    [
        ([], None),
        ([301], "/1"),
        ([308, 301], "/2"),
        ([301, 302], "/1"),
        ([302, 301], None),
        ([303], None),
        ([307], None),
        ([301] * 5, "/5"),
    ],
)
def test_redirects_are_followed_and_permanent_ones_remembered(web: Any, statuses: list[int], moved: str | None) -> None:
    answer = _chain(web, *statuses)
    assert answer.body == b"end"
    assert answer.url == web.url(f"/{len(statuses)}")
    assert answer.moved_permanently_to == (moved and web.url(moved))


def test_too_many_redirects_and_circles_end(web: Any) -> None:
    with pytest.raises(FetchError, match="it redirects more than 5 times"):
        _chain(web, *[302] * 6)
    assert len(web.requests) == 6
    web.answer("/a", status=302, Location="/b")
    web.answer("/b", status=302, Location="/a")
    assert "it redirects in a circle" in _error(web.url("/a"), trusted=web.trusted)


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://10.0.0.1/", "not a public address"),
        ("http://169.254.169.254/latest/meta-data/", "not a public address"),
        ("//[::1]/", "not a public address"),
        ("http://localhost/", "not a public address"),
        ("http://2130706433/", "not a public address"),
        ("file:///etc/passwd", "only http and https"),
        ("gopher://127.0.0.1:6379/_", "only http and https"),
        ("http://user:hunter2@127.0.0.1/", "user name or password"),
        ("http://[::1", "malformed"),
    ],
)
def test_a_redirect_is_checked_like_the_first_address(web: Any, location: str, reason: str) -> None:
    web.answer("/feed", status=302, Location=location)
    error = _error(web.url("/feed"), trusted=web.trusted)
    assert error.startswith(f"{web.url('/feed')}: it redirects to ")
    assert reason in error
    assert "hunter2" not in error
    assert len(web.requests) == 1


def test_only_who_names_a_trusted_host_reaches_it(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page somewhere on the web cannot redirect into the trusted host."""
    web.answer("/redirect", status=302, Location=web.url("/private"))
    web.answer("/private", b"secret")
    public = iter([True, False])
    monkeypatch.setattr(fetching, "is_public", lambda address: next(public))
    error = _error(web.url("/redirect", "feeds.example"), resolve=lambda host, port: ["127.0.0.1"], trusted=web.trusted)
    assert error.endswith("/private: 127.0.0.1 is not a public address")
    assert [path for path, _ in web.requests] == ["/redirect"]


def test_a_port_that_is_not_named_is_not_trusted(web: Any) -> None:
    assert "not a public address" in _error(f"http://127.0.0.1:{web.port + 1}/", trusted=web.trusted)


def test_a_redirect_without_a_place_is_an_answer(web: Any) -> None:
    web.answer("/", b"", status=302)
    assert fetch(web.url("/"), trusted=web.trusted).status == 302


def test_a_location_in_utf_8_and_with_blanks_is_understood(web: Any) -> None:
    web.raw("/a", "HTTP/1.1 302 Found\r\nLocation: /käse und brot\r\n\r\n".encode())
    web.answer("/k%C3%A4se%20und%20brot", b"end")
    assert fetch(web.url("/a"), trusted=web.trusted).body == b"end"


OK = b"HTTP/1.1 200 OK\r\n"
SLOW = {
    "head": ([b"HTTP/1.1 200 OK\r\n"] + [b"X-A: b\r\n"] * 80, 0.05),
    "head, byte by byte": ([OK[i : i + 1] for i in range(len(OK))] * 4, 0.05),
    "body": ([OK + b"\r\n"] + [b"x"] * 80, 0.05),
    "chunks": ([OK + b"Transfer-Encoding: chunked\r\n\r\n"] + [b"1\r\nx\r\n"] * 80, 0.05),
    "silence": ([OK + b"\r\n", b"x"], 5.0),
}


@pytest.mark.parametrize("name", SLOW)
def test_the_time_limit_is_for_the_whole_fetch(web: Any, name: str) -> None:
    pieces, pause = SLOW[name]
    web.raw("/", *pieces, pause=pause)
    begin = time.monotonic()
    assert "it took longer than 0.4 s" in _error(web.url("/"), trusted=web.trusted, limits=QUICK)
    assert time.monotonic() - begin < 1.5


def test_the_time_limit_is_for_all_redirects_together(web: Any) -> None:
    def hop(number: int, request: BaseHTTPRequestHandler) -> None:
        time.sleep(0.15)
        request.send_response(302)
        request.send_header("Location", f"/{number + 1}")
        request.end_headers()

    web.routes.update({f"/{number}": functools.partial(hop, number) for number in range(6)})
    assert "it took longer than 0.4 s" in _error(web.url("/0"), trusted=web.trusted, limits=QUICK)


SMALL = FetchLimits(seconds=5, wire_bytes=20_000, body_bytes=50_000)


def test_a_body_that_announces_two_hundred_megabytes_is_not_read(web: Any) -> None:
    web.raw("/", OK + b"Content-Length: 209715200\r\n\r\n", b"x" * 1_000)
    error = _error(web.url("/"), trusted=web.trusted)
    assert "it announces 209,715,200 bytes; at most 5,000,000 are read" in error


@pytest.mark.parametrize(
    "head",
    [OK + b"\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\n100000\r\n", OK, b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000],
    ids=["body", "chunk", "head", "continue"],
)
def test_an_answer_without_end_is_read_up_to_the_limit(web: Any, head: bytes) -> None:
    def respond(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(head)
        while True:
            request.wfile.write(b"X-Line: filler\r\n" * 100)

    web.routes["/"] = respond
    begin = time.monotonic()
    error = _error(web.url("/"), trusted=web.trusted, limits=SMALL)
    assert "it sends more than 20,000 bytes" in error or "malformed" in error
    assert time.monotonic() - begin < 2


def test_a_compressed_body_is_unpacked(web: Any) -> None:
    web.answer("/", gzip.compress(b"words " * 100), Content_Encoding="gzip")
    assert fetch(web.url("/"), trusted=web.trusted).body == b"words " * 100


def test_a_bomb_is_not_unpacked(web: Any) -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)
    assert len(bomb) < 20_000
    web.answer("/", bomb, Content_Encoding="gzip")
    limits = FetchLimits(seconds=5, wire_bytes=100_000, body_bytes=50_000)
    tracemalloc.start()
    try:
        assert "its body is larger than 50,000 bytes" in _error(web.url("/"), trusted=web.trusted, limits=limits)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_a_plain_body_has_the_same_limit(web: Any) -> None:
    web.answer("/", b"x" * 60)
    limits = FetchLimits(body_bytes=50)
    assert "its body is larger than 50 bytes" in _error(web.url("/"), trusted=web.trusted, limits=limits)


BODY = gzip.compress(b"words " * 1_000)
BROKEN = {
    "cut by length": (OK + b"Content-Length: 10\r\n\r\nfive5", "cut short"),
    "cut in a chunk": (OK + b"Transfer-Encoding: chunked\r\n\r\nff\r\nx", "cut short"),
    "cut gzip": (OK + b"Content-Encoding: gzip\r\n\r\n" + BODY[:-10], "cut short, within its gzip stream"),
    "no gzip": (OK + b"Content-Encoding: gzip\r\n\r\nplain words", "broken gzip"),
    "gzip and more": (OK + b"Content-Encoding: gzip\r\n\r\n" + BODY + b"more", "after the end of its gzip stream"),
    "two gzips": (OK + b"Content-Encoding: gzip\r\n\r\n" + BODY + BODY, "after the end of its gzip stream"),
    "brotli": (OK + b"Content-Encoding: br\r\n\r\nx", "encoded as br, which was not asked for"),
    "no http": (b"SSH-2.0-OpenSSH\r\n", "malformed (BadStatusLine"),
    "nothing": (b"", "the connection failed (Remote end closed connection"),
    "bad length": (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "cut short"),
    "many headers": (OK + b"A: b\r\n" * 200 + b"\r\n", "malformed"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_answer_is_an_error_and_never_a_part(web: Any, name: str) -> None:
    raw, reason = BROKEN[name]
    web.raw("/", raw)
    assert reason in _error(web.url("/"), trusted=web.trusted)


def test_padding_after_gzip_is_no_error(web: Any) -> None:
    web.answer("/", BODY + b"\0" * 100_000, Content_Encoding="x-gzip")
    assert fetch(web.url("/"), trusted=web.trusted).body == zlib.decompress(BODY, wbits=31)


def test_an_empty_body_is_empty_also_when_compressed(web: Any) -> None:
    web.answer("/", b"", Content_Encoding="gzip")
    assert fetch(web.url("/"), trusted=web.trusted).body == b""


def test_a_header_that_cannot_be_sent_is_an_error(web: Any) -> None:
    for value in ("a\r\nX-Injected: 1", "ж"):
        assert "malformed" in _error(web.url("/"), headers={"If-None-Match": value}, trusted=web.trusted)
    assert web.requests == []


def test_nobody_listening_is_an_error() -> None:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    error = _error(f"http://127.0.0.1:{port}/", trusted=frozenset({("127.0.0.1", port)}))
    assert "the connection failed" in error


def test_tls_is_checked_against_the_name_and_not_the_address(web: Any, certificate: Any) -> None:
    names = web.encrypt(certificate.context)
    web.answer("/feed", b"words")
    trusted = frozenset({("feeds.example", web.port), ("other.example", web.port)})
    options: dict[str, Any] = {"resolve": lambda host, port: ["127.0.0.1"], "trusted": trusted}
    answer = fetch(f"https://feeds.example:{web.port}/feed", **options)
    assert answer.body == b"words"
    assert answer.certificate_ends == certificate.ends
    assert names == ["feeds.example"]
    error = _error(f"https://other.example:{web.port}/feed", **options)
    assert "its certificate is not valid: Hostname mismatch" in error
    assert [path for path, _ in web.requests] == ["/feed"]


def test_an_unknown_certificate_is_refused(web: Any, certificate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    web.encrypt(certificate.context)
    monkeypatch.delenv("SSL_CERT_FILE")
    error = _error(
        f"https://feeds.example:{web.port}/",
        resolve=lambda host, port: ["127.0.0.1"],
        trusted=frozenset({("feeds.example", web.port)}),
    )
    assert "its certificate is not valid: self-signed certificate" in error
    assert web.requests == []


def test_a_certificate_on_the_way_counts_too(web: Any, certificate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    web.encrypt(certificate.context)
    ends = iter([certificate.ends, certificate.ends.replace(year=2001), None])
    monkeypatch.setattr(fetching, "_certificate_ends", lambda _: next(ends))
    web.answer("/old", status=302, Location="/older")
    web.answer("/older", status=302, Location="/feed")
    web.answer("/feed", b"words")
    trusted = frozenset({("feeds.example", web.port)})
    url = f"https://feeds.example:{web.port}/old"
    answer = fetch(url, resolve=lambda host, port: ["127.0.0.1"], trusted=trusted)
    assert answer.certificate_ends == certificate.ends.replace(year=2001)


def test_without_tls_there_is_no_certificate(web: Any) -> None:
    web.answer("/feed", b"words")
    assert fetch(web.url("/feed"), trusted=web.trusted).certificate_ends is None


def test_a_resolver_without_a_word_may_be_this_machine_s_own_fault() -> None:
    def resolve(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    with pytest.raises(NoNetwork, match=r"does not resolve .*Temporary failure"):
        fetch("http://feeds.example/", resolve=resolve)


@pytest.mark.parametrize(
    ("failures", "is_ours"),
    [
        ([errno.ENETUNREACH], True),
        ([errno.EMFILE], True),
        ([errno.ECONNREFUSED], False),
        ([errno.EHOSTUNREACH], False),
        ([errno.ENETUNREACH, errno.ENETDOWN], True),
        ([errno.ECONNREFUSED, errno.ENETUNREACH], False),
    ],
)
def test_only_if_every_address_fails_on_this_side_it_may_be_this_machine_s_own_fault(
    monkeypatch: pytest.MonkeyPatch, failures: list[int], is_ours: bool
) -> None:
    left = list(failures)

    class NoSocket:
        def __init__(self, *_: Any) -> None:
            number = left.pop(0)
            raise OSError(number, errno.errorcode[number])

    monkeypatch.setattr(fetching.socket, "socket", NoSocket)
    addresses = [f"8.8.8.{place}" for place in range(len(failures))]
    with pytest.raises(FetchError) as raised:
        fetch("http://feeds.example/", resolve=lambda host, port: addresses)
    assert isinstance(raised.value, NoNetwork) is is_ours
    assert raised.value.reason == f"the connection failed ({errno.errorcode[failures[-1]]})"


def test_after_a_redirect_the_network_is_known_to_work(web: Any) -> None:
    def resolve(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    web.answer("/feed", status=302, Location="http://elsewhere.example/")
    with pytest.raises(FetchError) as raised:
        fetch(web.url("/feed"), trusted=web.trusted, resolve=resolve)
    assert not isinstance(raised.value, NoNetwork)
    assert "it redirects to http://elsewhere.example/: the name elsewhere.example" in raised.value.reason


def test_a_handshake_that_never_comes_is_given_up_in_time() -> None:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        begin = time.monotonic()
        trusted = frozenset({("127.0.0.1", port)})
        assert "took longer than 0.4 s" in _error(f"https://127.0.0.1:{port}/", trusted=trusted, limits=QUICK)
        assert time.monotonic() - begin < 1.5
