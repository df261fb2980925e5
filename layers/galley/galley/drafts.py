"""A draft: the text that waits for a person, and the collected items it was made from."""

import hashlib
from dataclasses import dataclass
from datetime import datetime


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
class Draft:
    """What a run produced. ``body`` is Markdown; ``warnings`` stand beside it, never in it."""

    title: str
    body: str
    items: tuple[Item, ...]
    warnings: tuple[str, ...]
    model: str
    channels: tuple[Channel, ...] = ()


def text_hash(title: str, body: str) -> str:
    """Return the SHA-256, in hex, of exactly what a reviewer reads and a channel sends.

    The length of the title stands before both, so that no other title and body share the hash.
    """
    return hashlib.sha256(f"{len(title)}\n{title}\n{body}".encode()).hexdigest()
