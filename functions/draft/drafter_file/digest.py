"""What a digest reads."""

from typing import Literal

from pydantic import Field

from drafter_file.fields import Address, Count, Prefix, SourceId, Strict


class MailSource(Strict):
    """Messages that Amazon SES (or anyone) puts under a prefix of the sources bucket, one object each."""

    kind: Literal["mail"]
    id: SourceId
    prefix: Prefix
    max_items: Count = Field(default=50, le=500)


class FeedSource(Strict):
    """An RSS or Atom feed."""

    kind: Literal["feed"]
    id: SourceId
    url: Address
    max_items: Count = Field(default=50, le=500)
