"""One look at an address that answers when all is well."""

import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from drafter_file.monitor import HealthSource
from galley.retry import NeverSucceeds
from sources.fetch import Fetch, FetchError, FetchLimits, is_public

DESK = "desk:"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Up:
    """The address answered as it should. ``milliseconds`` is how long the whole answer took."""

    status: int
    milliseconds: int


@dataclass(frozen=True, slots=True)
class Down:
    """The address did not answer as it should; ``why`` is one line, ``status`` is None where there was no answer."""

    why: str
    status: int | None
    milliseconds: int


Health = Up | Down


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

    It is up when its status, after redirects, is the expected one and the whole answer came within the source's time.
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
    except FetchError as error:
        return Down(error.reason, None, _since(began))
    if answer.status != source.expect_status:
        return Down(f"it answered {answer.status}, expected was {source.expect_status}", answer.status, _since(began))
    return Up(answer.status, _since(began))


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
