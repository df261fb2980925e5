"""The index of a source: one object for each document, with its text in chunks, for whoever retrieves from it."""

import json
from dataclasses import asdict, dataclass

from galley.bucket import Bucket
from sources.clean import web_link
from sources.documents import Document, chunks_of

MAX_KEY_BYTES = 1_024
"""https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html"""


@dataclass(frozen=True, slots=True)
class Index:
    """The entries of one source of one drafter, in the bucket. docs/writing-a-drafter.md describes them."""

    bucket: Bucket
    drafter: str
    source: str

    def etags(self) -> dict[str, str]:
        """Return the etag of each entry there is, by its document's key."""
        return {
            info.key.removeprefix(self.root).removesuffix(".json"): info.etag
            for info in self.bucket.list(self.root)
            if info.key.endswith(".json")
        }

    def has_room_for(self, key: str) -> bool:
        """Tell whether the entry of that document can have a key in the bucket."""
        return len(self._entry(key).encode()) <= MAX_KEY_BYTES

    def would_leave(self, key: str) -> bool:
        """Tell whether the key of that document's entry leads out of the bucket, and so is one that S3 refuses.

        https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html: read from the left there must never be
        more ``..`` in it than other elements.
        """
        depth = 0
        for element in self._entry(key).split("/"):
            depth += -1 if element == ".." else element not in ("", ".")
            if depth < 0:
                return True
        return False

    def write(self, document: Document) -> None:
        """Write the document's entry, replacing the one it has."""
        entry = {
            "id": document.key,
            "title": document.title,
            "link": web_link(document.key),
            "sha256": document.sha256,
            "chunks": [asdict(chunk) for chunk in chunks_of(document.text)],
        }
        body = json.dumps(entry, ensure_ascii=False, sort_keys=True, indent=1).encode()
        self.bucket.put(self._entry(document.key), body, content_type="application/json")

    def remove(self, key: str) -> None:
        """Remove the document's entry, if it has one."""
        self.bucket.delete(self._entry(key))

    @property
    def root(self) -> str:
        """What the keys of all entries begin with."""
        return f"index/{self.drafter}/{self.source}/"

    def _entry(self, key: str) -> str:
        return f"{self.root}{key}.json"
