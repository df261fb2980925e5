"""What a report reads."""

import re
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from drafter_file.fields import Address, Count, Prefix, SourceId, Strict, Words
from galley.schedule import InvalidSchedule, zone
from local_days import Every

Aggregate = Literal["sum", "mean", "count", "min", "max", "last", "ratio"]
_MORNING = datetime(2026, 11, 23, 6, 15, 8)  # noqa: DTZ001 - a form of dates is tried on it, no instant is meant
_EVENING = datetime(2026, 11, 23, 17, 45, 58)  # noqa: DTZ001


class Metric(Strict):
    """One figure of a report: how the values of a column are put together over a window.

    A ratio divides one metric of the same table by another, both by their names. ``percent`` shows a value as
    hundredths (0.042 is 4.2%). With ``group_by`` the figure is also computed for each value of another column, for the
    ``max_groups`` with the largest figures; the rest are put together as others.
    """

    name: Words
    aggregate: Aggregate
    column: Words | None = None
    numerator: Words | None = None
    denominator: Words | None = None
    group_by: Words | None = None
    max_groups: Count = Field(default=5, le=12)
    unit: Annotated[str, StringConstraints(strip_whitespace=True, max_length=16, pattern=r"^[^\d|\x00-\x1f]*$")] = ""
    percent: bool = Field(default=False, strict=True)
    decimals: Annotated[int, Field(strict=True, ge=0, le=9)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        parts = (self.numerator, self.denominator)
        if self.aggregate == "ratio" and (self.column is not None or None in parts):
            raise ValueError(f"metric {self.name!r} is a ratio: give numerator and denominator, and no column")
        if self.aggregate != "ratio" and (self.column is None or parts != (None, None)):
            raise ValueError(
                f"metric {self.name!r} is a {self.aggregate}: give column; numerator and denominator are a ratio's"
            )
        if self.percent and self.unit:
            raise ValueError(f"metric {self.name!r} has the unit {self.unit!r} and percent; keep one of them")
        return self

    @property
    def how(self) -> str:
        """How it is computed, in words."""
        if self.aggregate == "ratio":
            return f"{self.numerator} / {self.denominator}"
        return f"{self.aggregate} of {self.column}"


class TableSource(Strict):
    """A table in the sources bucket (``key``) or at an address (``url``): CSV or JSON lines, each row with its date.

    ``format`` is told by the name's ending where it is not given. ``date_format`` is for dates that are not written
    year first, with the codes of Python's strptime (``%b %d %Y`` reads Jan 5 2026). ``date_zone`` is the zone of times
    that are written without an offset. ``rows_every`` says how often a row is due, so that a missing one is noticed;
    ``any`` notices none. ``window`` says what a report is about: the whole local days that ended since the previous
    slot, or exactly the time since then, for which each row must have a time of day. Such a row counts at its end:
    ``row_time`` says whether the column holds that, or the beginning of the hour or day that the row is about.
    """

    kind: Literal["table"]
    id: SourceId
    key: Prefix | None = None
    url: Address | None = None
    format: Literal["csv", "json_lines"] | None = None
    date_column: Words
    date_format: Words | None = None
    date_zone: str | None = None
    rows_every: Every = "day"
    window: Literal["days", "exact"] = "days"
    row_time: Literal["start", "end"] = "end"
    metrics: Annotated[tuple[Metric, ...], Field(min_length=1, max_length=20)]

    @field_validator("date_format")
    @classmethod
    def _names_a_day(cls, form: str | None) -> str | None:
        """Refuse a format that tells two days apart no better than by chance: what it writes it must read again."""
        if form is None:
            return None
        try:
            read = datetime.strptime(_EVENING.strftime(form), form)  # noqa: DTZ007
        except (ValueError, re.error) as error:
            raise ValueError(f"is no format of strptime ({error})") from error
        if read.date() != _EVENING.date():
            raise ValueError("does not name a day; it needs a year, a month and a day, like %d.%m.%Y")
        return form

    @property
    def date_format_has_time(self) -> bool:
        """Whether the date column, as ``date_format`` says it is written, holds a time of day."""
        return self.date_format is not None and _MORNING.strftime(self.date_format) != _EVENING.strftime(
            self.date_format
        )

    @field_validator("date_zone")
    @classmethod
    def _zone_exists(cls, name: str | None) -> str | None:
        try:
            if name is not None:
                zone(name)
        except InvalidSchedule as error:
            raise ValueError(str(error).removeprefix(f"timezone {name!r} ")) from error
        return name

    @field_validator("metrics")
    @classmethod
    def _named_once(cls, metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
        names = [metric.name for metric in metrics]
        if len(set(names)) != len(names):
            raise ValueError(f"names {names} repeat; give each metric its own name")
        plain = [metric.name for metric in metrics if metric.aggregate != "ratio"]
        for metric in metrics:
            for part in (metric.numerator, metric.denominator):
                if part is not None and part not in plain:
                    raise ValueError(f"metric {metric.name!r} divides {part!r}; the metrics it can take are {plain}")
        return metrics

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if (self.key is None) == (self.url is None):
            raise ValueError(f"source {self.id!r} needs a key in the bucket or a url, one of them")
        if self.date_format_has_time and self.date_zone is None:
            raise ValueError(f"source {self.id!r}: date_format {self.date_format!r} has a time of day; give date_zone")
        return self

    @model_validator(mode="after")
    def _window_fits_the_rows(self) -> Self:
        if self.window == "days" and self.rows_every == "hour":
            raise ValueError(f"source {self.id!r}: rows_every 'hour' is for window = \"exact\"; with days, give 'day'")
        if self.window == "exact" and self.rows_every not in ("hour", "day", "any"):
            raise ValueError(
                f'source {self.id!r}: rows_every {self.rows_every!r} is for window = "days";'
                " an exact window takes 'hour', 'day' or 'any'"
            )
        if self.row_time == "start" and (self.window == "days" or self.rows_every == "any"):
            raise ValueError(
                f"source {self.id!r}: row_time \"start\" is for window = \"exact\" with rows_every 'hour' or 'day',"
                " which say how long a row is; leave it out"
            )
        if self.window == "exact" and self.date_format is not None and not self.date_format_has_time:
            raise ValueError(
                f'source {self.id!r}: window "exact" needs each row\'s time of day, and date_format'
                f' {self.date_format!r} has none; give one with %H:%M, or window = "days"'
            )
        return self

    @property
    def place(self) -> str:
        """Where the table is, for errors and warnings: a url without its query, which may hold a secret."""
        if self.url is None:
            return self.called
        return re.sub(r"^https?://|[?#].*$", "", self.url)

    @property
    def called(self) -> str:
        """What the table is called in a draft, where an address would be a link that is no item's."""
        return self.key or self.id

    @property
    def is_json_lines(self) -> bool:
        """Whether each line is a JSON object."""
        if self.format is not None:
            return self.format == "json_lines"
        return self.place.lower().endswith((".jsonl", ".ndjson", ".jsonlines"))

    def metric(self, name: str) -> Metric:
        """Return a metric by its name."""
        return next(metric for metric in self.metrics if metric.name == name)
