"""One look at an address that answers when all is well."""

import re
import time
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from pydantic import ValidationError

from drafter_file.monitor import HealthSource, matcher
from galley.retry import NeverSucceeds
from sources.clean import clean_line
from sources.fetch import Fetch, Fetched, FetchError, FetchLimits, NoNetwork, is_public
from sources.message import decode

DESK = "desk:"
_PORTS = {"http": 80, "https": 443}
_CHARSET = re.compile(r"charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Up:
    """The address answered as it should.

    ``milliseconds`` is how long the whole answer took; ``certificate_ends`` until when its certificate is valid, in
    UTC, None where it has none.
    """

    status: int
    milliseconds: int
    certificate_ends: datetime | None = None


@dataclass(frozen=True, slots=True)
class Down:
    """The address did not answer as it should; ``why`` is one line, ``status`` is None where there was no answer."""

    why: str
    status: int | None
    milliseconds: int
    certificate_ends: datetime | None = None


@dataclass(frozen=True, slots=True)
class Unseen:
    """Nothing can be said of the address: this machine's own network failed. ``why`` is one line."""

    why: str


Health = Up | Down | Unseen


def address_of(source: HealthSource, desk_url: str) -> str:
    """Return the address to look at; ``desk:/health`` is that path at the review desk.

    Raises:
        NeverSucceeds: ``invalid_address``, when the desk has no address here.
    """
    if not source.url.startswith(DESK):
        return source.url
    if urlsplit(desk_url).scheme not in _PORTS:
        raise NeverSucceeds(
            "invalid_address",
            f"source {source.id!r} looks at {source.url}, but the review desk's address is {desk_url!r}",
        )
    return desk_url.rstrip("/") + source.url.removeprefix(DESK)


def check(source: HealthSource, fetch: Fetch, desk_url: str) -> Health:
    """Fetch the address once and return how it is.

    It is up when its status, after redirects, and its body are as expected and the whole answer came within the
    source's time. It is not tried again within the same look: how often in a row it must fail is the source's
    ``failures``, at the schedule's pace, and a second try at once would hide an address that fails every other time.
    The desk's own address is trusted and may be a private one; every other must be public, redirects included, or it
    is not looked at. The time is measured with a clock that nobody sets.

    Raises:
        NeverSucceeds: ``invalid_address``, when the address itself is at fault and not what answers there.
    """
    url = address_of(source, desk_url)
    host, port = _host(url, source)
    is_desk = source.url.startswith(DESK)
    if not is_desk and _is_private(host):
        raise NeverSucceeds(
            "invalid_address",
            f"source {source.id!r}: {url} is in a private network, which is not looked into; only desk: may be there",
        )
    trusted = frozenset({(host, port)}) if is_desk else frozenset[tuple[str, int]]()
    began = time.monotonic()
    try:
        answer = fetch(url, limits=FetchLimits(seconds=source.timeout_seconds), trusted=trusted)
    except NoNetwork as error:
        return Unseen(error.reason)
    except FetchError as error:
        return Down(error.reason, None, _since(began))
    took = _since(began)
    wrong = _wrong(answer, source)
    if wrong is not None:
        return Down(wrong, answer.status, took, answer.certificate_ends)
    return Up(answer.status, took, answer.certificate_ends)


def _wrong(answer: Fetched, source: HealthSource) -> str | None:
    """Return what is not as expected. The body itself is not told: it may hold anything."""
    if answer.status != source.expect_status:
        return f"it answered {answer.status}, expected was {source.expect_status}"
    if source.body_contains is None and source.body_matches is None:
        return None
    text = _text(answer)
    if source.body_contains is not None and source.body_contains not in text:
        return f"it answered {answer.status}, but its body does not contain {clean_line(source.body_contains, 100)!r}"
    if source.body_matches is not None and not _matches(source.body_matches, text):
        return f"it answered {answer.status}, but its body does not match {clean_line(source.body_matches, 100)!r}"
    return None


def _text(answer: Fetched) -> str:
    """Return the body in the encoding that its header names, or another that fits if that one does not."""
    charset = _CHARSET.search(answer.headers.get("content-type", ""))
    return decode(answer.body, charset[1] if charset else "utf-8")[0]


def _matches(pattern: str, text: str) -> bool:
    try:
        matcher(pattern).validate_python(text)
    except ValidationError:
        return False
    return True


def _host(url: str, source: HealthSource) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise NeverSucceeds("invalid_address", f"source {source.id!r}: {url} is not an address ({error})") from error
    if not host:
        raise NeverSucceeds("invalid_address", f"source {source.id!r}: {url} has no host")
    return host, port or _PORTS[parts.scheme]


def _is_private(host: str) -> bool:
    """Tell whether the host is written as an address that is not public; names are resolved by the fetch."""
    is_an_address = host.replace(".", "").isdigit() or ":" in host
    return is_an_address and not is_public(host)


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
