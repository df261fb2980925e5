"""Where approved drafts go."""

from typing import Literal

from pydantic import field_validator

from drafter_file.fields import Prefix, Strict


class ChannelSetting(Strict):
    """Where approved drafts go. ``s3`` writes them as Markdown under a prefix of the sources bucket."""

    kind: Literal["s3"]
    prefix: Prefix = "published/"

    @field_validator("prefix")
    @classmethod
    def _where_publish_may_write(cls, prefix: str) -> str:
        if not prefix.startswith("published/"):
            raise ValueError("must begin with published/, the only place where publish may write")
        return prefix
