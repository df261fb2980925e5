"""A drafter's file: what it reads, what it is told, and what bounds it."""

import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from galley.contract import DrafterName
from galley.drafts import Channel
from galley.explain import explain
from galley.money import NANOUSD
from galley.schedule import InvalidSchedule, zone
from galley.texts import one_line
from prices import PRICES

DEFAULT_MODEL = "claude-haiku-5-5"
DRAFTERS = Path(__file__).parent / "drafters"

_NAME: TypeAdapter[str] = TypeAdapter(DrafterName)


class InvalidDrafter(ValueError):
    """A drafter's file that is missing or wrong. Its text is one line that names file, field and value."""


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


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MailSource(_Strict):
    """Messages that Amazon SES (or anyone) puts under a prefix of the sources bucket, one object each."""

    kind: Literal["mail"]
    id: SourceId
    prefix: Prefix
    max_items: Count = Field(default=50, le=500)


class FeedSource(_Strict):
    """An RSS or Atom feed."""

    kind: Literal["feed"]
    id: SourceId
    url: Address
    max_items: Count = Field(default=50, le=500)


class Metric(_Strict):
    """One figure of a report: how the values of a column are put together over a window."""

    name: Words
    column: Words
    aggregate: Literal["sum", "mean", "count", "min", "max", "last"]


class TableSource(_Strict):
    """A CSV table in the sources bucket: one row for each date."""

    kind: Literal["table"]
    id: SourceId
    key: Prefix
    date_column: Words
    metrics: Annotated[tuple[Metric, ...], Field(min_length=1, max_length=20)]

    @field_validator("metrics")
    @classmethod
    def _named_once(cls, metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
        names = [metric.name for metric in metrics]
        if len(set(names)) != len(names):
            raise ValueError(f"names {names} repeat; give each metric its own name")
        return metrics


class DocumentsSource(_Strict):
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


class HealthSource(_Strict):
    """An address that answers when all is well."""

    kind: Literal["health"]
    id: SourceId
    url: AddressOrDesk
    expect_status: int = Field(default=200, strict=True, ge=100, le=599)
    timeout_seconds: Count = Field(default=10, le=60)


Source = Annotated[MailSource | FeedSource | TableSource | DocumentsSource | HealthSource, Field(discriminator="kind")]

SOURCES_OF_SHAPE: Mapping[str, frozenset[str]] = {
    "digest": frozenset({"mail", "feed"}),
    "report": frozenset({"table"}),
    "sync": frozenset({"documents"}),
    "monitor": frozenset({"health"}),
}


class ChannelSetting(_Strict):
    """Where approved drafts go. ``s3`` writes them as Markdown under a prefix of the sources bucket."""

    kind: Literal["s3"]
    prefix: Prefix = "published/"

    @field_validator("prefix")
    @classmethod
    def _where_publish_may_write(cls, prefix: str) -> str:
        if not prefix.startswith("published/"):
            raise ValueError("must begin with published/, the only place where publish may write")
        return prefix


class Drafter(_Strict):
    """One named producer of drafts. Its name is its file's.

    ``period_hours`` and ``timezone`` are the window of a manual run, which has no schedule.
    ``daily_budget_usd`` is the ceiling for a UTC day; without one the cost is only booked.
    """

    name: DrafterName
    title: Words
    shape: Literal["digest", "report", "sync", "monitor"]
    instructions: Words
    sources: Annotated[tuple[Source, ...], Field(min_length=1, max_length=50)]
    model: Words = DEFAULT_MODEL
    max_input_tokens: Count = Field(default=20_000, le=100_000)
    max_output_tokens: Count = Field(default=4_000, le=16_000)
    pending_limit: Count = Field(default=3, le=1_000)
    daily_budget_usd: Decimal | None = Field(default=None, gt=0, max_digits=12, decimal_places=6)
    timezone: str = "UTC"
    period_hours: Count = Field(default=24, le=24 * 366)
    channels: tuple[ChannelSetting, ...] = (ChannelSetting(kind="s3"),)

    @field_validator("model")
    @classmethod
    def _priced(cls, name: str) -> str:
        if name not in PRICES:
            raise ValueError(f"has no price in prices.py, so its cost could not be bounded; use {', '.join(PRICES)}")
        return name

    @field_validator("timezone")
    @classmethod
    def _zone_exists(cls, name: str) -> str:
        try:
            zone(name)
        except InvalidSchedule as error:
            raise ValueError(str(error).removeprefix(f"timezone {name!r} ")) from error
        return name

    @model_validator(mode="after")
    def _sources_fit(self) -> Self:
        allowed = SOURCES_OF_SHAPE[self.shape]
        for source in self.sources:
            if source.kind not in allowed:
                raise ValueError(
                    f"source {source.id!r} is of kind {source.kind!r}, "
                    f"but a {self.shape} reads only {', '.join(sorted(allowed))}"
                )
        ids = [source.id for source in self.sources]
        if len(set(ids)) != len(ids):
            raise ValueError(f"source ids {ids} repeat; give each source its own id, its cursor is kept by it")
        return self

    @property
    def daily_budget_nanousd(self) -> int | None:
        """The ceiling for a UTC day in nano-dollars."""
        return None if self.daily_budget_usd is None else int(self.daily_budget_usd * NANOUSD)

    @property
    def destinations(self) -> tuple[Channel, ...]:
        """Where an approved draft goes."""
        return tuple(Channel(setting.kind, setting.prefix) for setting in self.channels)


def read_drafter(path: Path) -> Drafter:
    """Return the drafter in a file.

    Raises:
        InvalidDrafter: one line that names the file, every wrong field and its value.
    """
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InvalidDrafter(f"{path}: there is no such file") from error
    except RecursionError as error:
        raise InvalidDrafter(f"{path}: lists or tables in it are nested too deeply") from error
    except (ValueError, OSError) as error:  # tomllib's own error is a ValueError, and so is a number without end
        raise InvalidDrafter(f"{path}: is not a TOML file in UTF-8 ({one_line(str(error), 200)})") from error
    if "name" in settings:
        raise InvalidDrafter(f"{path}: name is not known; a drafter is named by its file")
    try:
        return Drafter.model_validate({"name": path.stem, **settings})
    except ValidationError as error:
        raise InvalidDrafter(explain(error, str(path), settings)) from error
    except RecursionError as error:
        raise InvalidDrafter(f"{path}: lists or tables in it are nested too deeply") from error


@cache
def load_drafter(name: str, folder: Path = DRAFTERS) -> Drafter:
    """Return a drafter by its name.

    Raises:
        InvalidDrafter: when there is none by that name, or its file is wrong.
    """
    path = folder / f"{name}.toml"
    try:
        _NAME.validate_python(name)
        known = path.is_file()
    except (ValidationError, OSError):
        known = False
    if not known:
        names = ", ".join(drafter_names(folder)) or "none"
        raise InvalidDrafter(f"drafter {name!r} is not known; the drafters are: {names}")
    return read_drafter(path)


def drafter_names(folder: Path = DRAFTERS) -> tuple[str, ...]:
    """Return the names of all drafters in the folder, readable or not, in order."""
    return tuple(sorted(path.stem for path in folder.glob("*.toml")))
