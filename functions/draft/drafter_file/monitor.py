"""What a monitor reads."""

from typing import Literal

from pydantic import Field

from drafter_file.fields import AddressOrDesk, Count, SourceId, Strict


class HealthSource(Strict):
    """An address that answers when all is well."""

    kind: Literal["health"]
    id: SourceId
    url: AddressOrDesk
    expect_status: int = Field(default=200, strict=True, ge=100, le=599)
    timeout_seconds: Count = Field(default=10, le=60)
