"""What a client's requests cost: their number, the capacity units that DynamoDB reports, and the CPU time within."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass
class Request:
    """One request: its operation, and the capacity units that DynamoDB says it took; a refused one does not say.

    ``in_index`` are those of the write units that went to indexes; ``rows`` are the keys that a transaction wrote to.
    """

    operation: str
    read: float = 0.0
    write: float = 0.0
    in_index: float = 0.0
    refused: bool = True
    rows: tuple[Mapping[str, Any], ...] = ()


@contextmanager
def counted(client: Any) -> Iterator[list[Request]]:
    """Ask DynamoDB with each request what it took, and give the growing list of requests."""
    found: list[Request] = []
    rows: list[Mapping[str, Any]] = []

    def ask(params: dict[str, Any], model: Any, **_: Any) -> None:
        params["ReturnConsumedCapacity"] = "INDEXES"
        writes = [action for item in params.get("TransactItems", []) for action in item.values()]
        rows[:] = [write.get("Key") or {name: write["Item"][name] for name in ("pk", "sk")} for write in writes]

    def note(event_name: str, **_: Any) -> None:
        found.append(Request(event_name.rpartition(".")[2], rows=tuple(rows)))

    def see(parsed: dict[str, Any], model: Any, **_: Any) -> None:
        taken = parsed.get("ConsumedCapacity")
        if not taken:
            return
        (units,) = [taken] if isinstance(taken, dict) else taken
        request = found[-1]
        request.refused = False
        if model.name == "Query":
            request.read = units["CapacityUnits"]
        else:
            request.write = units["CapacityUnits"]
            request.in_index = sum(one["CapacityUnits"] for one in units.get("GlobalSecondaryIndexes", {}).values())

    hooks = {"before-parameter-build.dynamodb": ask, "request-created.dynamodb": note, "after-call.dynamodb": see}
    for event, hook in hooks.items():
        client.meta.events.register(event, hook)
    try:
        yield found
    finally:
        for event, hook in hooks.items():
            client.meta.events.unregister(event, hook)


@dataclass
class Stopwatch:
    """The CPU seconds of this process within a callable."""

    seconds: float = 0.0

    def around(self, wrapped: Any) -> Any:
        """Return the callable, watched."""

        def watched(*arguments: Any, **named: Any) -> Any:
            began = time.process_time()
            try:
                return wrapped(*arguments, **named)
            finally:
                self.seconds += time.process_time() - began

        return watched
