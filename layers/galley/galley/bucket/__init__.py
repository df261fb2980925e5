"""Objects by key: the sources that drafters read, and what the s3 channel and the sync shape write.

``galley.bucket.s3`` keeps them in Amazon S3; on one machine they are files in a folder.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from galley.retry import RetryLater


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object of a listing. ``modified`` is in UTC, to the second; ``etag`` changes with the content."""

    key: str
    size: int
    etag: str
    modified: datetime


class ObjectMissing(Exception):
    """There is no object with that key (any more)."""


class ObjectUnreadable(Exception):
    """The object is there, and may not be read. Its text is one line that names it and the remedy."""


class ObjectTooLarge(Exception):
    """The object is larger than the reader allows; nothing of it was returned."""


class BucketUnavailable(RetryLater):
    """The bucket gave no answer; it may later."""

    def __init__(self, detail: str) -> None:
        super().__init__("bucket_unavailable", detail)


class Bucket(Protocol):
    """One bucket. Keys are text with ``/``; a prefix is the beginning of a key, not a folder.

    Every operation raises ``BucketUnavailable`` when the bucket gives no answer.
    """

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield every object whose key begins with the prefix, in the order of the keys' UTF-8 bytes.

        A failure on the way raises: whatever was yielded until then is not the whole listing.
        """
        ...

    def get(self, key: str, *, max_bytes: int) -> bytes:
        """Return the whole object.

        Raises:
            ObjectMissing: when there is none.
            ObjectUnreadable: when there is one that may not be read.
            ObjectTooLarge: when it has more than ``max_bytes`` bytes.
        """
        ...

    def put(self, key: str, body: bytes, *, content_type: str) -> None:
        """Write the whole object, replacing what was there. A reader sees the old one or the new one, never a part."""
        ...

    def delete(self, key: str) -> None:
        """Remove the object; nothing happens when there is none."""
        ...
