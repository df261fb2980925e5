"""A drafter's file: what it reads, what it is told, and what bounds it."""

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError, ValidationInfo, field_validator, model_validator

from drafter_file.channels import ChannelSetting
from drafter_file.digest import DigestSettings, FeedSource, MailSource
from drafter_file.fields import Count, Strict, Words
from drafter_file.monitor import HealthSource, MonitorSettings
from drafter_file.report import TableSource
from drafter_file.sync import DocumentsSource
from galley.contract import DrafterName
from galley.drafts import Channel
from galley.explain import explain
from galley.known_fields import KnownFields
from galley.money import NANOUSD
from galley.rules import Review
from galley.schedule import InvalidSchedule, zone
from galley.texts import one_line
from prices import PRICES

DEFAULT_MODEL = "claude-haiku-5-5"
DRAFTERS = Path(__file__).parent / "drafters"

_NAME: TypeAdapter[str] = TypeAdapter(DrafterName)


class InvalidDrafter(ValueError):
    """A drafter's file that is missing or wrong. Its text is one line that names file, field and value."""


Source = Annotated[MailSource | FeedSource | TableSource | DocumentsSource | HealthSource, Field(discriminator="kind")]

SOURCES_OF_SHAPE: Mapping[str, frozenset[str]] = {
    "digest": frozenset({"mail", "feed"}),
    "report": frozenset({"table"}),
    "sync": frozenset({"documents"}),
    "monitor": frozenset({"health"}),
}

_KINDS = frozenset[str]().union(*SOURCES_OF_SHAPE.values())


class Drafter(Strict):
    """One named producer of drafts. Its name is its file's.

    ``period_hours`` and ``timezone`` are the window of a manual run, which has no schedule.
    ``daily_budget_usd`` is the ceiling for a UTC day; without one the cost is only booked.
    A draft that is undecided ``expire_hours`` after it was drafted expires; with ``supersede`` a newer one replaces the
    older ones that are undecided. ``review`` says whether a person must approve a draft before it is sent.
    ``strict`` lets a draft fail whose words its sources do not bear out, instead of standing with warnings.
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
    expire_hours: Count | None = Field(default=None, le=24 * 366)
    supersede: bool = Field(default=False, strict=True)
    review: Review = Review.REQUIRED
    strict: bool = Field(default=False, strict=True)
    channels: tuple[ChannelSetting, ...] = (ChannelSetting(kind="s3"),)
    digest: DigestSettings | None = None
    monitor: MonitorSettings | None = None

    @model_validator(mode="before")
    @classmethod
    def _kinds_fit(cls, given: Any) -> Any:
        # Before the fields: of a source of another shape's kind it is no help to hear which of that kind's are missing.
        match given:
            case {"shape": str(shape), "sources": list(sources)} if shape in SOURCES_OF_SHAPE:
                allowed = SOURCES_OF_SHAPE[shape]
            case _:
                return given
        for source in sources:
            match source:
                case {"kind": str(kind)} if kind in _KINDS - allowed:
                    raise ValueError(
                        f"source {source.get('id')!r} is of kind {kind!r}, "
                        f"but a {shape} reads only {', '.join(sorted(allowed))}"
                    )
        return given

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

    @field_validator("supersede")
    @classmethod
    def _has_room(cls, supersede: bool, info: ValidationInfo) -> bool:
        if supersede and info.data.get("pending_limit") == 1:
            raise ValueError(
                "needs a pending_limit of at least 2: a new draft takes its own place before it replaces the older one"
            )
        return supersede

    @field_validator("review")
    @classmethod
    def _may_go_unread(cls, review: Review, info: ValidationInfo) -> Review:
        shape = info.data.get("shape", "monitor")
        if review is Review.NONE and shape != "monitor":
            raise ValueError(f"only a monitor's drafts may be sent unread, and this is a {shape}; use required")
        return review

    @model_validator(mode="after")
    def _settings_fit(self) -> Self:
        for shape in SOURCES_OF_SHAPE:
            if shape != self.shape and getattr(self, shape, None) is not None:
                raise ValueError(f"[{shape}] is not for a {self.shape}; remove it")
        if self.digest is not None and self.digest.max_items <= len(self.sources):
            raise ValueError(
                f"[digest] max_items = {self.digest.max_items} is too few for {len(self.sources)} sources; "
                f"give at least {len(self.sources) + 1}, one for each and one to spare"
            )
        return self

    @model_validator(mode="after")
    def _sources_fit(self) -> Self:
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


KNOWN = KnownFields(Drafter, hidden=frozenset({"name"}))
"""What a file may say. A drafter's name is its file's."""


def read_drafter(path: Path, name: str | None = None) -> Drafter:
    """Return the drafter in a file; it is named by its file unless another name is given.

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
        return Drafter.model_validate({"name": path.stem if name is None else name, **settings})
    except ValidationError as error:
        raise InvalidDrafter(explain(error, str(path), settings, KNOWN)) from error
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
