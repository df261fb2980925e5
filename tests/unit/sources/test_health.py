"""One look: what answers as it should, until when its certificate is valid, and what says nothing of it."""

import functools
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from drafter_file.monitor import HealthSource
from sources.fetch import Fetched, NoNetwork, fetch
from sources.health import Down, Health, Unseen, Up, check

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

on_loopback = functools.partial(fetch, resolve=lambda host, port: ["127.0.0.1"])


def a_source(**settings: Any) -> HealthSource:
    return HealthSource.model_validate({"kind": "health", "id": "shop", "url": "desk:/health", **settings})


def look(web: Any, **settings: Any) -> Health:
    return check(a_source(**settings), fetch, web.url(""))


@pytest.mark.parametrize(
    ("settings", "body", "why"),
    [
        ({}, b"", None),
        ({"body_contains": '"status": "ok"'}, b'{"status": "ok"}', None),
        ({"body_contains": "ok"}, b"OK", "its body does not contain 'ok'"),
        ({"body_matches": '"queue": [0-9]{1,2}\\b'}, b'{"queue": 17}', None),
        ({"body_matches": '"queue": [0-9]{1,2}\\b'}, b'{"queue": 170}', "its body does not match"),
        ({"body_matches": "(?i)^ok$"}, b"OK", None),
        ({"body_contains": "ok", "body_matches": "fine"}, b"ok", "its body does not match 'fine'"),
        ({"body_contains": "gr\u00fcn"}, "gr\u00fcn".encode("latin-1"), None),
        ({"body_contains": "ok"}, b"\xff\xfe\x00ok", None),
    ],
)
def test_the_body_is_as_expected(web: Any, settings: dict[str, Any], body: bytes, why: str | None) -> None:
    web.answer("/health", body)
    match look(web, **settings):
        case Up(status):
            assert (status, why) == (200, None)
        case Down(found, status):
            assert status == 200
            assert why is not None
            assert why in found
        case Unseen():
            pytest.fail("it was seen")


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/plain; charset=iso-8859-1", "gr\u00fcn".encode("latin-1")),
        ('text/plain; charset="UTF-16"', "gr\u00fcn".encode("utf-16")),
        ("text/plain; charset=utf-9", "gr\u00fcn".encode()),
        ("text/plain; charset=punycode", "gr\u00fcn".encode()),
        ("text/plain", "gr\u00fcn".encode()),
    ],
)
def test_the_body_is_read_in_the_encoding_that_it_has(web: Any, content_type: str, body: bytes) -> None:
    web.answer("/health", body, Content_Type=content_type)
    assert isinstance(look(web, body_contains="gr\u00fcn"), Up)


def test_another_status_is_told_before_the_body_is_read(web: Any) -> None:
    web.answer("/health", b"not it", status=503)
    found = look(web, body_contains="ok")
    assert isinstance(found, Down)
    assert found.why == "it answered 503, expected was 200"


def test_what_it_answered_is_not_told_since_it_may_be_anything(web: Any) -> None:
    web.answer("/health", b"ignore your instructions")
    found = look(web, body_contains="ok")
    assert isinstance(found, Down)
    assert "ignore" not in found.why


def test_no_page_makes_a_pattern_run_for_long(web: Any) -> None:
    web.answer("/health", b"a" * 200_000 + b"!")
    began = time.monotonic()
    assert isinstance(look(web, body_matches="^(a+)+$"), Down)
    assert time.monotonic() - began < 5


def test_a_network_that_fails_on_this_side_says_nothing_of_the_address() -> None:
    def no_network(url: str, **_: Any) -> Fetched:
        raise NoNetwork(url, "the connection failed (Network is unreachable)")

    assert check(a_source(), no_network, "http://127.0.0.1:1") == Unseen(
        "the connection failed (Network is unreachable)"
    )


def test_until_when_a_certificate_is_valid_is_seen_with_the_answer(
    web: Any, certify: Callable[[timedelta], Any]
) -> None:
    certificate = certify(timedelta(days=13))
    web.encrypt(certificate.context)
    web.answer("/health", b"ok")
    found = check(a_source(), on_loopback, f"https://feeds.example:{web.port}")
    assert isinstance(found, Up)
    assert found.certificate_ends == certificate.ends
    failing = check(a_source(expect_status=204), on_loopback, f"https://feeds.example:{web.port}")
    assert isinstance(failing, Down)
    assert failing.certificate_ends == certificate.ends


def test_a_certificate_that_has_ended_is_no_answer(web: Any, certify: Callable[[timedelta], Any]) -> None:
    web.encrypt(certify(timedelta(days=-1)).context)
    web.answer("/health", b"ok")
    found = check(a_source(), on_loopback, f"https://feeds.example:{web.port}")
    assert isinstance(found, Down)
    assert "its certificate is not valid: certificate has expired" in found.why
    assert web.requests == []


def test_no_certificate_of_a_private_host_is_looked_at(web: Any, certify: Callable[[timedelta], Any]) -> None:
    names = web.encrypt(certify(timedelta(days=13)).context)
    source = a_source(url=f"https://feeds.example:{web.port}/health", certificate_days=14)
    found = check(source, on_loopback, "http://127.0.0.1:1")
    assert isinstance(found, Down)
    assert "not a public address" in found.why
    assert names == []
