"""What a digest reads, and how much of it."""

from typing import Literal

from pydantic import Field

from drafter_file.fields import Address, Count, Prefix, SourceId, Strict


class MailSource(Strict):
    """Messages that Amazon SES (or anyone) puts under a prefix of the sources bucket, one object each.

    ``first_run_items`` is how many of the objects that are there already the first draft begins with, the newest.
    ``quoted_text`` says what becomes of what a mail quotes of earlier ones, and of its signature.
    """

    kind: Literal["mail"]
    id: SourceId
    prefix: Prefix
    max_items: Count = Field(default=50, le=500)
    first_run_items: Count = Field(default=100, le=5_000)
    quoted_text: Literal["cut", "keep"] = "cut"


class FeedSource(Strict):
    """An RSS or Atom feed.

    ``first_run_items`` is how many of its entries the first draft begins with, the newest. ``edits`` says whether an
    entry is taken again when its title or text has changed.
    """

    kind: Literal["feed"]
    id: SourceId
    url: Address
    max_items: Count = Field(default=50, le=500)
    first_run_items: Count = Field(default=20, le=5_000)
    edits: Literal["ignore", "take"] = "ignore"


class DigestSettings(Strict):
    """What holds for a digest as a whole: the table ``[digest]``.

    ``max_items`` bounds one draft, all sources together. ``rejected_items`` says what becomes of the items of a draft
    that was rejected: they are dropped, or the next draft has them once more.
    """

    max_items: Count = Field(default=200, le=500)
    rejected_items: Literal["drop", "offer_again"] = "drop"
