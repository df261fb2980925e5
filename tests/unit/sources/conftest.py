"""A web server on loopback, and the folder of real material."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

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


@pytest.fixture(scope="session")
def material() -> Path:
    """Return the folder of real feeds and mails beside the project."""
    folder = Path(__file__).parents[3].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the folder of real material is absent: {folder}")
    return folder
