"""A web server on loopback, its certificate, and the folder of real material."""

import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sources import fetch as fetching

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Web:
    """Answers each path by what ``routes`` has for it, and keeps the requests as (path, headers)."""

    server: ThreadingHTTPServer
    routes: dict[str, Answer] = field(default_factory=dict)
    requests: list[tuple[str, Message]] = field(default_factory=list)

    @property
    def port(self) -> int:
        return self.server.server_port

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def encrypt(self, context: ssl.SSLContext) -> list[str | None]:
        """Speak TLS from now on; return the list of the names that clients will ask for."""
        names: list[str | None] = []
        context.sni_callback = lambda _socket, name, _context: names.append(name)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        return names

    @property
    def trusted(self) -> frozenset[tuple[str, int]]:
        return frozenset({("127.0.0.1", self.port)})

    def answer(self, path: str, body: bytes = b"", status: int = 200, **headers: str) -> None:
        """Answer the path with a whole body; the names of headers are written with ``_`` for ``-``."""

        def respond(request: BaseHTTPRequestHandler) -> None:
            request.send_response(status)
            for name, value in headers.items():
                request.send_header(name.replace("_", "-"), value)
            if status != 304:
                request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)

        self.routes[path] = respond

    def raw(self, path: str, *pieces: bytes, pause: float = 0.0) -> None:
        """Answer the path with bytes as they are, waiting between the pieces until the client goes away."""

        def respond(request: BaseHTTPRequestHandler) -> None:
            gone = threading.Event()
            for piece in pieces:
                request.wfile.write(piece)
                request.wfile.flush()
                gone.wait(pause)

        self.routes[path] = respond


@pytest.fixture
def web() -> Iterator[Web]:
    """Return a server that answers 404 until a test tells it more."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.requests.append((self.path, self.headers))
            path = self.path.split("?")[0]
            if path in served.routes:
                served.routes[path](self)
            else:
                self.send_error(404)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        block_on_close = False

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client that hangs up is what many tests are about

    server = Server(("127.0.0.1", 0), Handler)
    served = Web(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass(frozen=True)
class Certificate:
    """What a server needs to be feeds.example, and until when its certificate is valid."""

    context: ssl.SSLContext
    ends: datetime


@pytest.fixture
def certify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[timedelta], Certificate]]:
    """Return what makes a certificate for feeds.example with so much time left, which the client then trusts."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def make(left: timedelta) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "feeds.example")])
        ends = (datetime.now(UTC) + left).replace(microsecond=0)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(min(ends, datetime.now(UTC)) - timedelta(days=1))
            .not_valid_after(ends)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("feeds.example")]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        file = tmp_path / "both.pem"
        file.write_bytes(
            made.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        fetching._tls.cache_clear()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return Certificate(context, ends)

    yield make
    fetching._tls.cache_clear()


@pytest.fixture
def certificate(certify: Callable[[timedelta], Certificate]) -> Certificate:
    """Return a certificate for feeds.example that is valid for a day more."""
    return certify(timedelta(days=1))


@pytest.fixture(scope="session")
def material() -> Path:
    """Return the folder of real feeds and mails beside the project."""
    folder = Path(__file__).parents[3].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the folder of real material is absent: {folder}")
    return folder
