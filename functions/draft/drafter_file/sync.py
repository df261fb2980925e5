"""What a sync reads."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from drafter_file.fields import Address, Prefix, SourceId, Strict


class DocumentsSource(Strict):
    """The documents under a prefix of the sources bucket, or at the addresses that a list names.

    More than ``max_deletes`` of them, or more than ``max_delete_share`` (0 to 1) of all, leave the index only with a
    person's approval.
    """

    kind: Literal["documents"]
    id: SourceId
    prefix: Prefix | None = None
    url: Address | None = None
    max_deletes: Annotated[int, Field(strict=True, ge=0)] = 50
    max_delete_share: Annotated[float, Field(strict=True, ge=0, le=1)] = 0.1

    @field_validator("prefix")
    @classmethod
    def _outside_the_index(cls, prefix: str | None) -> str | None:
        if prefix is not None and (prefix.startswith("index/") or "index/".startswith(prefix)):
            raise ValueError("takes in index/, where the index itself is kept; give the documents another prefix")
        return prefix

    @model_validator(mode="after")
    def _in_one_place(self) -> Self:
        if (self.prefix is None) == (self.url is None):
            raise ValueError("needs either a prefix of the bucket or the url of a list of addresses, and not both")
        return self

    @property
    def place(self) -> str:
        """Where the documents are, as it stands in the file."""
        return self.prefix or self.url or ""
