"""The kinds of values in a drafter's file."""

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints


def _a_prefix(value: object) -> object:
    if isinstance(value, str) and (value.startswith("/") or ".." in value.split("/")):
        raise ValueError("must be the beginning of a key, without a leading / and without ..")
    return value


def _an_address(value: object) -> object:
    if isinstance(value, str) and not re.fullmatch(r"https?://[^\s/@]+(/\S*)?", value):
        raise ValueError("must be an http or https address without a user name")
    return value


def _an_address_or_the_desk(value: object) -> object:
    if isinstance(value, str) and not re.fullmatch(r"(https?://[^\s/@]+|desk:(?=/))(/\S*)?", value):
        raise ValueError("must be an http or https address without a user name, or desk:/health for the review desk")
    return value


SourceId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
Prefix = Annotated[str, BeforeValidator(_a_prefix), StringConstraints(min_length=1, max_length=512)]
Address = Annotated[str, BeforeValidator(_an_address), StringConstraints(max_length=2000)]
AddressOrDesk = Annotated[str, BeforeValidator(_an_address_or_the_desk), StringConstraints(max_length=2000)]
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Count = Annotated[int, Field(strict=True, ge=1)]


class Strict(BaseModel):
    """A table of the file: every key is known, and nothing changes once it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True)
