"""The store of AWS, on DynamoDB Local, which keeps what several threads do at once apart. It is a store alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from galley.store import Store
from galley.store.dynamodb import DynamoStore
from support.dynamodb_local import connect, contended, fresh_table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CONNECTIONS = 40


@contextmanager
def open_store(endpoint: str) -> Iterator[Store]:
    """Open a table of one's own. DynamoDB Local has one writer at a time, and so no conflicts."""
    with fresh_table(client(endpoint)) as table:
        yield DynamoStore(client(endpoint), table)


@contextmanager
def open_contended_store(endpoint: str) -> Iterator[Store]:
    """Open a table of one's own, whose transactions conflict as they do in AWS."""
    with fresh_table(client(endpoint)) as table:
        yield DynamoStore(contended(client(endpoint)), table)


@cache
def client(endpoint: str) -> "DynamoDBClient":
    """Return the client of all tests, which as many threads may use as any test begins."""
    return connect(endpoint, connections=CONNECTIONS)
