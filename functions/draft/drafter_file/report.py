"""What a report reads."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from drafter_file.fields import Prefix, SourceId, Strict, Words


class Metric(Strict):
    """One figure of a report: how the values of a column are put together over a window."""

    name: Words
    column: Words
    aggregate: Literal["sum", "mean", "count", "min", "max", "last"]


class TableSource(Strict):
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
