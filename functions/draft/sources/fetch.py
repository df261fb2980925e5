"""Reading an address that somebody else wrote down: bounded in time and size, and never into a private network.

Each host is resolved once, every address it resolves to is checked, and the connection is made to a checked
address, on each hop of a redirect anew. So neither a redirect nor a name server that changes its mind leads to a
private address (OWASP, Server-Side Request Forgery Prevention Cheat Sheet). No cookies, credentials or proxies.
"""

import contextlib
import errno
import functools
import http.client
import io
import ipaddress
import queue
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol, cast
from urllib.parse import quote, urljoin, urlsplit

from galley import __version__
from sources.clean import clean_line

USER_AGENT = f"Galley/{__version__}"

_PERMANENT = frozenset({301, 308})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": 80, "https": 443}
_PATH_SAFE = "/%:@!$&'()*+,;=~-._"
_CHUNK = 65_536
_OUR_OWN = frozenset(
    {
        errno.ENETUNREACH,
        errno.ENETDOWN,
        errno.EADDRNOTAVAIL,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOBUFS,
        errno.ENOMEM,
    }
)
"""What connect(2) and socket(2) fail with before anything was sent: no route, no address, no socket to be had."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """``seconds`` bound the whole fetch, redirects included; ``wire_bytes`` all that is received in one exchange,
    headers included; ``body_bytes`` the body once decompressed."""

    seconds: float = 20.0
    wire_bytes: int = 5_000_000
    body_bytes: int = 10_000_000
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer, whatever its status. ``headers`` have lower-case names; ``url`` is the address that answered.

    ``moved_permanently_to`` is where the permanent redirects (301, 308) at the beginning of the way lead, or None.
    ``certificate_ends`` is until when, in UTC, every certificate on the way is valid; None where there was none.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    moved_permanently_to: str | None = None
    certificate_ends: datetime | None = None


class FetchError(Exception):
    """There is no answer. ``reason`` says why, in one line; the message names the address as well."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = _without_credentials(url)
        self.reason = clean_line(reason, 400)
        super().__init__(f"{self.url}: {self.reason}")


class NoNetwork(FetchError):
    """There is no answer because this machine reached nothing: no route, no free socket, no word from its resolver.

    It says nothing of the address. (A resolver is silent, too, about a name whose own name servers are.)
    """


class Fetch(Protocol):
    """Reads an address, as :func:`fetch` does; a source sets the limits, and whom it trusts."""

    def __call__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        limits: FetchLimits | None = None,
        trusted: frozenset[tuple[str, int]] = frozenset(),
    ) -> Fetched:
        """Return the answer, whatever its status.

        Raises:
            FetchError: when there is none.
        """
        ...


Resolve = Callable[[str, int], Sequence[str]]
"""A host and a port to the host's addresses, as text. Raises OSError or UnicodeError when it has none."""


def resolve_host(host: str, port: int) -> Sequence[str]:
    """Return the host's addresses by the system's resolver, each once, in its order."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def fetch(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    limits: FetchLimits | None = None,
    trusted: frozenset[tuple[str, int]] = frozenset(),
    resolve: Resolve = resolve_host,
) -> Fetched:
    """GET an http or https address, following redirects.

    ``trusted`` names hosts and ports that may have private addresses, such as the review desk's own. The trust is
    for those who name the host: a redirect from anywhere else does not reach it.

    Raises:
        FetchError: for anything but a complete answer: an address that is refused, no connection, a bad
            certificate, too many redirects, too long, too large, cut short. It is a NoNetwork where the fault may be
            this machine's own.
    """
    limits = limits or FetchLimits()
    deadline = _Deadline(limits.seconds)
    visited: list[str] = []
    moved: str | None = None
    certificate_ends: datetime | None = None
    only_permanent = only_trusted = True
    address = url
    while True:
        visited.append(address)
        try:
            target = _parse(address)
            only_trusted = only_trusted and (target.host, target.port) in trusted
            addresses = _addresses(target, resolve, deadline, check=not only_trusted)
            answer = _exchange(target, addresses, headers or {}, limits, deadline)
        except _Unreached as unreached:
            if len(visited) == 1:
                raise NoNetwork(url, str(unreached)) from unreached
            raise FetchError(url, _after_redirect(visited, str(unreached))) from unreached
        except _Refused as refused:
            raise FetchError(url, _after_redirect(visited, str(refused))) from refused
        certificate_ends = _earlier(certificate_ends, answer.certificate_ends)
        location = answer.headers.get("location")
        if answer.status not in _REDIRECTS or not location:
            return Fetched(answer.status, answer.headers, answer.body, target.url, moved, certificate_ends)
        address = _redirected(target.url, location)
        only_permanent = only_permanent and answer.status in _PERMANENT
        moved = address if only_permanent else moved
        if address in visited:
            raise FetchError(url, "it redirects in a circle")
        if len(visited) > limits.redirects:
            raise FetchError(url, f"it redirects more than {limits.redirects} times")


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public Internet, as do the IPv4 addresses that it may contain.

    ``is_global`` alone is not enough: it holds for multicast and for the addresses below that carry an IPv4
    address within them (RFC 4291 mapped, RFC 3056 6to4, RFC 6052 NAT64).
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = _embedded_ipv4(ip)
        if inner is None:
            return ip in _GLOBAL_UNICAST and ip.is_global and not any(ip in net for net in _NOT_PUBLIC_6)
        ip = inner
    return (
        ip.is_global
        and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)
        and not any(ip in net for net in _NOT_PUBLIC_4)
    )


# RFC 4291: everything that is assigned for global unicast. Addresses outside of it (::/8 with its deprecated
# IPv4-compatible form, site-local, multicast) never are public.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NOT_PUBLIC_6 = (
    ipaddress.IPv6Network("3fff::/20"),  # documentation (RFC 9637); newer than Python 3.11's tables
)
_NOT_PUBLIC_4 = (
    ipaddress.IPv4Network("192.88.99.0/24"),  # 6to4 relays (RFC 7526)
    ipaddress.IPv4Network("192.0.0.0/24"),  # protocol assignments (RFC 6890); Python versions differ about it
    ipaddress.IPv4Network("168.63.129.16/32"),  # Azure's host, reachable from its machines only
)


def _embedded_ipv4(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((moment for moment in (one, other) if moment is not None), default=None)


class _Refused(Exception):
    """Why this hop fails, in words."""


class _Unreached(_Refused):
    """The same, where it may be this machine's own fault."""


@dataclass(frozen=True, slots=True)
class _Target:
    """``host`` is in ASCII and lower case, without brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: dict[str, str]
    body: bytes
    certificate_ends: datetime | None = None


class _Deadline:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def remaining(self) -> float:
        """Return the seconds left, more than zero; raise TimeoutError when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _parse(url: str) -> _Target:
    if len(url) > 4_000 or re.search(r"[\x00-\x20\x7f\\]", url):
        raise _Refused("the address is too long, or has blanks, backslashes or control characters in it")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
    except ValueError as error:
        raise _Refused(f"the address is malformed: {error}") from error
    if parts.scheme not in _PORTS:
        raise _Refused(f"only http and https are read, not {parts.scheme or 'an address without a scheme'}")
    if "@" in parts.netloc:
        raise _Refused("the address has a user name or password in it")
    if not re.fullmatch(r"[a-z0-9._-]+|[0-9a-f:.]*:[0-9a-f:.]*", host):
        raise _Refused(f"{host!r} is no host name" if host else "the address has no host")
    path = quote(parts.path or "/", safe=_PATH_SAFE)
    if parts.query:
        path += "?" + quote(parts.query, safe=_PATH_SAFE + "?")
    return _Target(parts.scheme, host, _PORTS[parts.scheme] if port is None else port, path)


def _redirected(base: str, location: str) -> str:
    """Return where a Location header leads. http.client reads headers as Latin-1; senders write UTF-8."""
    with contextlib.suppress(UnicodeError):
        location = location.encode("latin-1").decode("utf-8")
    try:
        return urljoin(base, location.strip().replace(" ", "%20"))
    except ValueError:
        return location


def _after_redirect(visited: Sequence[str], reason: str) -> str:
    return reason if len(visited) == 1 else f"it redirects to {_without_credentials(visited[-1])}: {reason}"


def _without_credentials(url: str) -> str:
    return clean_line(re.sub(r"//[^/?#\\]*@", "//", url), 300)


def _addresses(target: _Target, resolve: Resolve, deadline: _Deadline, *, check: bool) -> Sequence[str]:
    """Return the target's addresses; unless it is trusted every one of them must be public."""
    addresses = _literal(target.host) or _resolved(target, resolve, deadline)
    if not addresses:
        raise _Refused(f"the name {target.host} has no address")
    for address in addresses if check else ():
        if not is_public(address):
            at = "" if address == target.host else f"at {address}, which is "
            raise _Refused(f"{target.host} is {at}not a public address")
    return addresses


def _literal(host: str) -> Sequence[str]:
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        return []


def _resolved(target: _Target, resolve: Resolve, deadline: _Deadline) -> Sequence[str]:
    """Resolve in a thread of its own: the system's resolver takes no time limit, and can wait for half a minute."""
    answers: queue.SimpleQueue[Sequence[str] | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put(resolve(target.host, target.port))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=work, name="resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=deadline.remaining())
    except (queue.Empty, TimeoutError) as error:
        raise _Unreached(f"the name {target.host} did not resolve within {deadline.seconds:g} s") from error
    if isinstance(answer, socket.gaierror) and answer.errno == socket.EAI_AGAIN:
        raise _Unreached(f"the name {target.host} does not resolve ({answer})") from answer
    if isinstance(answer, (OSError, UnicodeError)):
        raise _Refused(f"the name {target.host} does not resolve ({answer})") from answer
    if isinstance(answer, Exception):
        raise answer
    return answer


def _exchange(
    target: _Target,
    addresses: Sequence[str],
    headers: Mapping[str, str],
    limits: FetchLimits,
    deadline: _Deadline,
) -> _Answer:
    """Send one request to one of the checked addresses and read its answer whole; of a redirect only the head."""
    plain: socket.socket | None = None
    try:
        plain = _connect(addresses, target.port, deadline)
        certificate_ends: datetime | None = None
        if target.scheme == "https":
            plain = encrypted = _encrypt(plain, target.host, deadline)
            certificate_ends = _certificate_ends(encrypted)
        answer = _request(target, _BoundedSocket(plain, deadline, limits.wire_bytes), headers, limits)
        return replace(answer, certificate_ends=certificate_ends)
    except TimeoutError as error:
        raise _Refused(f"it took longer than {deadline.seconds:g} s") from error
    except ssl.SSLCertVerificationError as error:
        raise _Refused(f"its certificate is not valid: {error.verify_message}") from error
    except OSError as error:
        raise _Refused(f"the connection failed ({error.strerror or error})") from error
    except http.client.IncompleteRead as error:
        raise _Refused("the answer was cut short") from error
    except zlib.error as error:
        raise _Refused(f"the body is broken gzip ({error})") from error
    except (http.client.HTTPException, ValueError) as error:
        raise _Refused(f"the answer or a header is malformed ({type(error).__name__}: {error})") from error
    finally:
        if plain is not None:
            plain.close()


def _connect(addresses: Sequence[str], port: int, deadline: _Deadline) -> socket.socket:
    """Connect to the first address that answers; each gets an equal share of the time that is left."""
    failures: list[OSError] = []
    for position, address in enumerate(addresses):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        connection: socket.socket | None = None
        try:
            connection = socket.socket(family, socket.SOCK_STREAM)
            connection.settimeout(deadline.remaining() / (len(addresses) - position))
            connection.connect((address, port))
        except OSError as error:
            failures.append(error)
            if connection is not None:
                connection.close()
        else:
            return connection
    if all(failure.errno in _OUR_OWN for failure in failures):
        raise _Unreached(f"the connection failed ({failures[-1].strerror})") from failures[-1]
    raise failures[-1]


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _encrypt(plain: socket.socket, host: str, deadline: _Deadline) -> ssl.SSLSocket:
    """Return the encrypted socket; the certificate is checked against the name, not the address."""
    encrypted = _tls().wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
    try:
        encrypted.settimeout(deadline.remaining())
        encrypted.do_handshake()
    except BaseException:
        encrypted.close()
        raise
    return encrypted


def _certificate_ends(encrypted: ssl.SSLSocket) -> datetime | None:
    """Return until when the host's checked certificate is valid."""
    certificate = encrypted.getpeercert() or {}
    ends = certificate.get("notAfter")
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(ends), UTC) if isinstance(ends, str) else None


class _BoundedSocket:
    """A connected socket that keeps one deadline over all its reads and writes, and counts what it receives.

    It has just what http.client asks of a socket. ``close`` does nothing: http.client closes the socket before
    the body is read, and the owner closes the real one.
    """

    def __init__(self, connection: socket.socket, deadline: _Deadline, max_bytes: int) -> None:
        self._connection = connection
        self._deadline = deadline
        self._left = max_bytes
        self._max_bytes = max_bytes

    def sendall(self, data: bytes) -> None:
        self._connection.settimeout(self._deadline.remaining())
        self._connection.sendall(data)

    def receive_into(self, buffer: memoryview) -> int:
        self._connection.settimeout(self._deadline.remaining())
        received = self._connection.recv_into(buffer)
        self._left -= received
        if self._left < 0:
            raise _Refused(f"it sends more than {self._max_bytes:,} bytes")
        return received

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_SocketReader(self), _CHUNK)

    def close(self) -> None:
        pass


class _SocketReader(io.RawIOBase):
    def __init__(self, connection: _BoundedSocket) -> None:
        super().__init__()
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # BufferedReader passes a memoryview
        return self._connection.receive_into(buffer)


def _request(target: _Target, connection: _BoundedSocket, headers: Mapping[str, str], limits: FetchLimits) -> _Answer:
    if target.scheme == "https":
        client: http.client.HTTPConnection = http.client.HTTPSConnection(target.host, target.port, context=_tls())
    else:
        client = http.client.HTTPConnection(target.host, target.port)
    client.sock = cast("socket.socket", connection)
    client.request(
        "GET",
        target.path,
        headers={"User-Agent": USER_AGENT, "Accept-Encoding": "gzip", "Connection": "close", **headers},
    )
    response = client.getresponse()
    answer_headers = {name.lower(): value for name, value in reversed(response.getheaders())}
    if response.status in _REDIRECTS and "location" in answer_headers:
        return _Answer(response.status, answer_headers, b"")
    return _Answer(response.status, answer_headers, _body(response, answer_headers, limits))


def _body(response: http.client.HTTPResponse, headers: Mapping[str, str], limits: FetchLimits) -> bytes:
    if response.length is not None and response.length > limits.wire_bytes:
        raise _Refused(f"it announces {response.length:,} bytes; at most {limits.wire_bytes:,} are read")
    encoding = headers.get("content-encoding", "identity").strip().lower()
    chunks = _chunks(response)
    if encoding in ("gzip", "x-gzip"):
        chunks = _inflated(chunks, limits.body_bytes)
    elif encoding not in ("identity", ""):
        raise _Refused(f"its body is encoded as {encoding}, which was not asked for")
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > limits.body_bytes:
            raise _Refused(f"its body is larger than {limits.body_bytes:,} bytes")
    return bytes(body)


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    announced, received = response.length, 0
    while chunk := response.read(_CHUNK):
        received += len(chunk)
        yield chunk
    if announced is not None and received < announced:
        raise _Refused(f"the answer was cut short, after {received:,} of {announced:,} bytes")


def _inflated(chunks: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    """Decompress a gzip stream piece by piece, so that a bomb is noticed before it is unpacked."""
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    empty = True
    for chunk in chunks:
        empty = False
        pending = chunk
        while pending and not stream.eof:
            yield stream.decompress(pending, max_bytes + 1)
            pending = stream.unconsumed_tail
        if stream.eof and (stream.unused_data + pending).strip(b"\0"):
            raise _Refused("the body goes on after the end of its gzip stream")
    if not (empty or stream.eof):
        raise _Refused("the answer was cut short, within its gzip stream")
