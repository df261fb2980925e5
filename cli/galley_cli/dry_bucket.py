"""A bucket over another one that is never written to: what is put or deleted is remembered here, and read back."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from heapq import merge

from galley.bucket import Bucket, ObjectInfo, ObjectMissing, ObjectTooLarge
from galley.instants import to_the_second, utc_now


@dataclass(slots=True)
class DryBucket:
    """What the bucket would be if what is done to it were done.

    ``written`` and ``removed`` are the keys that would change; one that is written and then removed is in neither if
    the bucket below never had it.
    """

    below: Bucket
    now: Callable[[], datetime] = utc_now
    _objects: dict[str, tuple[bytes, ObjectInfo]] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)

    @property
    def written(self) -> tuple[str, ...]:
        """The keys of the objects that would be written, in order."""
        return tuple(sorted(self._objects))

    @property
    def removed(self) -> tuple[str, ...]:
        """The keys of the objects that would be removed, in order."""
        return tuple(sorted(self._gone))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield every object whose key begins with the prefix, in the order of the keys' UTF-8 bytes."""
        # Copied: whoever lists may write while the listing goes on.
        changed = {*self._objects, *self._gone}
        own = [info for key, (_, info) in sorted(self._objects.items()) if key.startswith(prefix)]
        others = (info for info in self.below.list(prefix) if info.key not in changed)
        return merge(own, others, key=lambda info: info.key)  # code points are in the order of their UTF-8 bytes

    def get(self, key: str, *, max_bytes: int) -> bytes:
        """Return the whole object."""
        if key in self._gone:
            raise ObjectMissing(f"object {key!r} would be removed")
        if key not in self._objects:
            return self.below.get(key, max_bytes=max_bytes)
        body = self._objects[key][0]
        if len(body) > max_bytes:
            raise ObjectTooLarge(f"object {key!r} has {len(body)} bytes; {max_bytes} are allowed")
        return body

    def put(self, key: str, body: bytes, *, content_type: str) -> None:
        """Remember the whole object."""
        etag = hashlib.sha256(body).hexdigest()[:32]
        modified = to_the_second(self.now())
        self._objects[key] = (body, ObjectInfo(key, len(body), etag, modified))
        self._gone.discard(key)

    def delete(self, key: str) -> None:
        """Remember that the object is gone."""
        self._objects.pop(key, None)
        if any(info.key == key for info in self.below.list(key)):
            self._gone.add(key)
