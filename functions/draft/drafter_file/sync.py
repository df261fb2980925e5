"""What a sync reads."""

from typing import Literal

from pydantic import field_validator

from drafter_file.fields import Prefix, SourceId, Strict


class DocumentsSource(Strict):
    """The documents under a prefix of the sources bucket."""

    kind: Literal["documents"]
    id: SourceId
    prefix: Prefix

    @field_validator("prefix")
    @classmethod
    def _outside_the_index(cls, prefix: str) -> str:
        if prefix.startswith("index/") or "index/".startswith(prefix):
            raise ValueError("takes in index/, where the index itself is kept; give the documents another prefix")
        return prefix
