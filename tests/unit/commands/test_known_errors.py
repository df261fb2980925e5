"""What the adapters may raise is one line for a person, with its exit code."""

import importlib
import inspect
import re
from collections.abc import Iterator

import pytest

from galley.bucket import Bucket
from galley.queue import RunQueue
from galley.schedules import Schedules
from galley.store import Store, UnreadableRow
from galley_cli.commands.common import explained

HOMES = ("galley.store", "galley.queue", "galley.bucket", "galley.schedules", "galley.retry", "builtins")
RAISED_BY_ALL = {"StoreBusy", "RowsDisagree", "UnreadableRow"}
"""What every operation of a store may raise, as the store's own page says."""

A_FAULT_OF_OURS = {"ValueError"}
"""What only code that misuses an adapter meets."""


def named_under_raises() -> Iterator[str]:
    for protocol in (Store, RunQueue, Bucket, Schedules):
        for _, method in inspect.getmembers(protocol, inspect.isfunction):
            _, _, raises = (inspect.getdoc(method) or "").partition("Raises:\n")
            yield from re.findall(r"^    ([\w.]+): ", raises, re.MULTILINE)


def exception_of(name: str) -> type[Exception]:
    module, _, attribute = name.rpartition(".")
    for home in [module] if module else HOMES:
        found = getattr(importlib.import_module(home), attribute, None)
        if found is not None:
            assert issubclass(found, Exception)
            return found
    raise AssertionError(f"{name} is nowhere")


NAMES = sorted({*named_under_raises(), *RAISED_BY_ALL} - A_FAULT_OF_OURS)


def test_the_protocols_say_what_they_raise() -> None:
    assert {"NeverSucceeds", "QueueUnavailable", "ObjectMissing", "ScheduleMissing"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_an_adapter_raises_is_one_line(name: str) -> None:
    kind = exception_of(name)
    assert explained(kind.__new__(kind, "one line")) == ("one line", 1)


def test_an_error_that_quotes_what_comes_from_outside_moves_no_cursor() -> None:
    assert explained(UnreadableRow("run x: \x1b[2J\x9b")) == ("run x: \ufffd[2J\ufffd", 1)
