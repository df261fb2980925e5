"""A bucket in memory, whose objects bear the instants that a test gives them."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime

from galley.bucket import ObjectInfo, ObjectMissing, ObjectTooLarge


class MemoryBucket:
    """``now`` is what ``put`` stamps; ``reads`` are the keys that were read, in order.

    A key in ``vanishing`` is listed but gone when it is read, as when somebody deletes it in between.
    """

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
        self.reads: list[str] = []
        self.vanishing: set[str] = set()
        self._objects: dict[str, tuple[bytes, ObjectInfo]] = {}

    def add(self, key: str, body: bytes, modified: datetime) -> None:
        """Put an object as of an instant."""
        info = ObjectInfo(key, len(body), hashlib.sha256(body).hexdigest()[:32], modified.replace(microsecond=0))
        self._objects[key] = (body, info)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        keys = sorted((key for key in self._objects if key.startswith(prefix)), key=str.encode)
        yield from [self._objects[key][1] for key in keys]

    def get(self, key: str, *, max_bytes: int) -> bytes:
        self.reads.append(key)
        if key in self.vanishing or key not in self._objects:
            raise ObjectMissing(key)
        body, info = self._objects[key]
        if info.size > max_bytes:
            raise ObjectTooLarge(key)
        return body

    def put(self, key: str, body: bytes, *, content_type: str) -> None:
        self.add(key, body, self.now)

    def delete(self, key: str) -> None:
        self._objects.pop(key, None)
