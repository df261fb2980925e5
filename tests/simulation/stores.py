"""The two stores, each of whose requests is a call that may go wrong: SQLite, and DynamoDB on moto.

An operation of the store in SQLite is one transaction and so one request. The store in DynamoDB sits on a client whose
every request is a call; that client repeats a request whose answer was lost as botocore does, with its token.
"""

import copy
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from botocore.exceptions import ClientError, ReadTimeoutError
from moto import mock_aws
from moto.dynamodb.models import DynamoDBBackend, dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table

from galley.instants import format_instant
from galley.runs import RunKey
from galley.store import Store, StoreBusy
from galley.store.dynamodb import DynamoStore
from galley.store.rows import run_of_keys
from galley_cli.local.state import StateDirectory
from galley_cli.local.store import SqliteStore
from simulation.story import Service
from simulation.world import World
from support.aws import REGION, TABLE, client, create_table

_READS = frozenset(
    {
        "run",
        "draft",
        "memory",
        "drafter",
        "committed_nanousd",
        "week",
        "watched",
        "history",
        "slot_statuses",
        "swept_schedules",
    }
)
_SDK_TRIES = 4
"""How often the SDK makes a request whose answer does not come: total_max_attempts of galley.system."""


class Opened(Protocol):
    """A store for one story. ``told`` is called after each write, with the run that it was about where there is one."""

    name: str
    told: Callable[[RunKey | None], None]

    @property
    def store(self) -> Store:
        """The store as the functions see it."""
        ...

    @property
    def plain(self) -> Store:
        """The same rows, for the story and its checks: nothing goes wrong there."""
        ...

    def tamper(self, key: RunKey) -> None:
        """Change a draft's text past the store."""
        ...


class OnSqlite:
    """SQLite in a directory of this process, emptied for each story."""

    name = "SQLite"

    def __init__(self, world: World) -> None:
        self.told: Callable[[RunKey | None], None] = lambda key: None
        state = _state()
        with state.write() as db:
            db.execute("PRAGMA defer_foreign_keys = ON")
            for table in _tables():
                db.execute(f"DELETE FROM {table}")  # noqa: S608
        self.plain: Store = SqliteStore(state)
        self.store: Store = _Wrapped(world, self)  # type: ignore[assignment]

    def tamper(self, key: RunKey) -> None:
        """Change a draft's text past the store."""
        with _state().write() as db:
            db.execute(
                "UPDATE texts SET body = body || ' (changed)' WHERE drafter = ? AND slot = ?",
                (key.drafter, format_instant(key.slot)),
            )


class _Wrapped:
    """Each operation of a store as one call."""

    def __init__(self, world: World, opened: OnSqlite) -> None:
        self._world = world
        self._opened = opened

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = getattr(self._opened.plain, name)
        is_read = name in _READS

        def request(*args: Any, **kwargs: Any) -> Any:
            def effect() -> Any:
                outcome = operation(*args, **kwargs)
                if not is_read:
                    self._opened.told(_key_of(outcome))
                return outcome

            return self._world.call(Service.STORE, f"{name} {_named(args)}", effect, refuse=_busy, lose=self._die)

        return request

    def _die(self) -> Any:
        """No answer of SQLite's is lost, unless its caller is."""
        task = self._world.current
        assert task is not None
        self._world.kill(task)


def _key_of(outcome: object) -> RunKey | None:
    run = getattr(outcome, "run", None)
    key = getattr(run, "key", None)
    return key if isinstance(key, RunKey) else None


def _named(args: Sequence[object]) -> str:
    return str(getattr(args[0], "key", args[0])) if args else ""


def _busy() -> Any:
    raise StoreBusy("the story holds the rows")


@cache
def _state() -> StateDirectory:
    shared_memory = Path("/dev/shm")
    parent = shared_memory if shared_memory.is_dir() else None
    folder = TemporaryDirectory(prefix="galley-simulation-", dir=parent, ignore_cleanup_errors=True)
    state = StateDirectory.open(Path(folder.name) / "state")
    state.kept = folder  # type: ignore[attr-defined]  # removed with the process
    return state


@cache
def _tables() -> tuple[str, ...]:
    with _state().read() as db:
        names = [str(row[0]) for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return tuple(name for name in names if name != "meta" and not name.startswith("sqlite_"))


class OnDynamoDb:
    """DynamoDB on moto, its one table emptied for each story."""

    name = "DynamoDB"

    def __init__(self, world: World) -> None:
        self.told: Callable[[RunKey | None], None] = lambda key: None
        table = _backend().tables[TABLE]
        table.items.clear()
        if table.stream_shard is not None:
            table.stream_shard.items.clear()  # else moto keeps every change of every story
        reading: Any = _Rows()
        self.plain: Store = DynamoStore(reading, TABLE)
        calling: Any = _Client(world, self)
        self.store: Store = DynamoStore(
            calling, TABLE, sleep=lambda seconds: _sleep(world, seconds), jitter=world.random.random
        )

    def tamper(self, key: RunKey) -> None:
        """Change a draft's text past the store."""
        row = {"pk": {"S": f"TEXT#{key.drafter}"}, "sk": {"S": format_instant(key.slot)}}
        client("dynamodb").update_item(
            TableName=TABLE,
            Key=row,
            UpdateExpression="SET body = :body",
            ExpressionAttributeValues={":body": {"S": "changed"}},
        )


def _sleep(world: World, seconds: float) -> None:
    world.call(Service.STORE, "sleep", lambda: None, seconds=(seconds / 2, seconds / 2))


class _Rows:
    """Reads moto's rows as they are, for checks: moto takes milliseconds to answer a request."""

    def get_item(self, *, Key: Mapping[str, Any], **_: Any) -> Any:
        """Return a row."""
        row = _backend().tables[TABLE].get_item(DynamoType(Key["pk"]), DynamoType(Key["sk"]))
        return {} if row is None else {"Item": row.to_json()["Attributes"]}

    def query(self, *, ExpressionAttributeValues: Mapping[str, Any], **_: Any) -> Any:
        """Return the rows of a partition, or of the index, as the store's listings ask for them."""
        values = {name: value["S"] for name, value in ExpressionAttributeValues.items()}
        rows = [
            row.to_json()["Attributes"] for rows in _backend().tables[TABLE].items.values() for row in rows.values()
        ]
        if ":queue" in values:
            waiting = [row for row in rows if row.get("queue", {}).get("S") == values[":queue"]]
            return {"Items": sorted(waiting, key=lambda row: str(row["queue_at"]["S"]))}
        first, last = values.get(":first", ""), values.get(":last", "~")
        found = [row for row in rows if row["pk"]["S"] == values[":pk"] and first <= row["sk"]["S"] <= last]
        return {"Items": sorted(found, key=lambda row: str(row["sk"]["S"]), reverse=True)}


class _Client:
    """A client of DynamoDB whose requests are calls."""

    def __init__(self, world: World, opened: OnDynamoDb) -> None:
        self._world = world
        self._opened = opened
        self._done: dict[str, Any] = {}

    def transact_write_items(self, *, TransactItems: Sequence[Mapping[str, Any]], ClientRequestToken: str) -> Any:
        """Write all or nothing; a token that was seen writes nothing again, and must stand for the same.

        https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
        """

        def write() -> Any:
            if ClientRequestToken in self._done:
                assert self._done[ClientRequestToken] == TransactItems, "a token stands for two transactions"
                self._world.count("transactions known by their token")
                return {}
            answer = client("dynamodb").transact_write_items(TransactItems=TransactItems)
            self._done[ClientRequestToken] = copy.deepcopy(TransactItems)
            self._opened.told(_run_of(TransactItems))
            return answer

        def turn_away() -> Any:
            if self._world.random.random() < 0.5:
                raise _refusal("ThrottlingException", "TransactWriteItems")
            reasons = [{"Code": "None"} for _ in TransactItems]
            self._world.random.choice(reasons)["Code"] = "TransactionConflict"
            raise ClientError(
                {
                    "Error": {"Code": "TransactionCanceledException", "Message": "conflict"},
                    "CancellationReasons": reasons,
                },
                "TransactWriteItems",
            )

        return self._asked("TransactWriteItems", write, turn_away)

    def get_item(self, **asked: Any) -> Any:
        """Read a row."""
        return self._asked("GetItem", lambda: client("dynamodb").get_item(**asked), lambda: _refuse("GetItem"))

    def query(self, **asked: Any) -> Any:
        """List rows."""
        return self._asked("Query", lambda: client("dynamodb").query(**asked), lambda: _refuse("Query"))

    def _asked(self, name: str, effect: Callable[[], Any], turn_away: Callable[[], Any]) -> Any:
        """Make a request as the SDK does, again where no answer came."""
        for _ in range(_SDK_TRIES - 1):
            try:
                return self._world.call(Service.STORE, name, effect, refuse=turn_away, lose=_lost)
            except ReadTimeoutError:
                continue
        return self._world.call(Service.STORE, name, effect, refuse=turn_away, lose=_lost)


def _lost() -> Any:
    raise ReadTimeoutError(endpoint_url="https://dynamodb")


def _refusal(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "slow down"}}, operation)


def _refuse(operation: str) -> Any:
    raise _refusal("ThrottlingException", operation)


def _run_of(items: Sequence[Mapping[str, Any]]) -> RunKey | None:
    for item in items:
        ((_, write),) = item.items()
        keys = write.get("Key") or {name: write["Item"][name] for name in ("pk", "sk")}
        key = run_of_keys(keys)
        if key is not None:
            return key
    return None


@cache
def _backend() -> DynamoDBBackend:
    """Return moto's DynamoDB with the template's table, for as long as ``moto_for_stories`` lasts."""
    return dynamodb_backends["123456789012"][REGION]


@contextmanager
def moto_for_stories() -> Iterator[None]:
    """Run moto with one table, whose transactions copy only the rows that they touch.

    moto copies the whole table for each write of a transaction, to put it back if the transaction is cancelled. The
    rows that it does not touch need no copy.
    """
    with mock_aws():
        create_table(client("dynamodb"))
        backend = _backend()
        whole = backend.transact_write_items
        touched: set[tuple[str, str]] = set()

        def transact(items: list[dict[str, Any]]) -> None:
            touched.clear()
            for item in items:
                ((_, write),) = item.items()
                keys = write.get("Key") or write["Item"]
                touched.add((keys["pk"]["S"], keys["sk"]["S"]))
            whole(items)

        def copied(table: Table, memo: dict[int, Any]) -> Table:
            kept = copy.copy(table)
            kept.items = defaultdict(dict)
            for pk, rows in table.items.items():
                kept.items[pk] = {
                    sk: copy.deepcopy(row) if (pk.value, sk.value) in touched else row for sk, row in rows.items()
                }
            return kept

        backend.transact_write_items = transact  # type: ignore[method-assign]
        Table.__deepcopy__ = copied  # type: ignore[attr-defined]
        try:
            yield
        finally:
            del Table.__deepcopy__  # type: ignore[attr-defined]
            _backend.cache_clear()
