"""A draft: the text that waits for a person, what goes with it, and the collected items it was made from."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

MEDIA_TYPES = ("text/csv", "image/svg+xml")
"""What an attachment may be: tables and drawings that code made, both of them text."""
MOST_ATTACHMENTS = 8
MOST_ATTACHED_BYTES = 48_000
"""How much all attachments of a draft hold at most, in UTF-8: they share a row of 400 KB with text, items and edit.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
"""

_ATTACHMENT_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}\.(?:csv|svg)")


@dataclass(frozen=True, slots=True)
class Item:
    """One collected thing: a mail, a feed entry, a document, a check. Its text is untrusted.

    ``id`` is what the model cites (``m1``, ``f3``); it is unique within one draft.
    ``link`` is an http(s) address or None; only code puts it into a draft.
    ``published`` is the item's own instant, in UTC, where it has one.
    """

    id: str
    title: str
    text: str
    source: str
    link: str | None = None
    author: str | None = None
    published: datetime | None = None


@dataclass(frozen=True, slots=True)
class Channel:
    """Where an approved draft goes. It travels with the draft, so that the reviewer reads where it will go."""

    kind: str
    target: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that goes with a draft, as ``chart.svg``: text in one of the ``MEDIA_TYPES``, made by code.

    Raises:
        ValueError: for a name that could not be the end of a key in a bucket, or another media type.
    """

    name: str
    media_type: str
    text: str

    def __post_init__(self) -> None:
        if not _ATTACHMENT_NAME.fullmatch(self.name):
            raise ValueError(f"attachment {self.name!r} needs a name like chart.svg or figures.csv")
        if self.media_type not in MEDIA_TYPES:
            raise ValueError(
                f"attachment {self.name!r} is {self.media_type!r}; it must be one of {', '.join(MEDIA_TYPES)}"
            )

    @property
    def size(self) -> int:
        """Its size in bytes, in UTF-8."""
        return len(self.text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class Draft:
    """What a run produced. ``body`` is Markdown; ``warnings`` stand beside it, never in it.

    ``attachments`` go wherever the text goes. A reviewer reads them with it, and an edit of the text keeps them.

    Raises:
        ValueError: when the attachments share a name, or are more than a row has room for.
    """

    title: str
    body: str
    items: tuple[Item, ...]
    warnings: tuple[str, ...]
    model: str
    channels: tuple[Channel, ...] = ()
    attachments: tuple[Attachment, ...] = ()

    def __post_init__(self) -> None:
        names = [attachment.name for attachment in self.attachments]
        if len(set(names)) != len(names):
            raise ValueError(f"attachments {names} repeat a name")
        size = sum(attachment.size for attachment in self.attachments)
        if len(names) > MOST_ATTACHMENTS or size > MOST_ATTACHED_BYTES:
            raise ValueError(
                f"{len(names)} attachments of {size:,} bytes are too much;"
                f" a draft has at most {MOST_ATTACHMENTS}, of {MOST_ATTACHED_BYTES:,} bytes together"
            )


def attachments_hash(attachments: Sequence[Attachment]) -> str | None:
    """Return the SHA-256, in hex, of the attachments with their names and media types; None where there are none."""
    if not attachments:
        return None
    told = json.dumps([(one.name, one.media_type, one.text) for one in attachments])
    return hashlib.sha256(told.encode()).hexdigest()


def text_hash(title: str, body: str, attached: str | None = None) -> str:
    """Return the SHA-256, in hex, of exactly what a reviewer reads and a channel sends.

    ``attached`` is the ``attachments_hash`` of what goes with the text. The length of the title stands before title and
    body, so that no other title and body share the hash; a text without attachments begins with that length, and one
    with them with a word, so neither is ever the other.
    """
    text = f"{len(title)}\n{title}\n{body}"
    return hashlib.sha256((text if attached is None else f"with {attached}\n{text}").encode()).hexdigest()
