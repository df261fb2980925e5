"""What the report's tests share: drafters, windows and tables."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from drafter import Drafter
from shapes.shape import Window
from support.memory_bucket import MemoryBucket

NEW_YORK = ZoneInfo("America/New_York")
KEY = "metrics/sales.csv"


def a_report(*metrics: Mapping[str, Any], **source: Any) -> Drafter:
    """Return a report's drafter with one table."""
    table = {"kind": "table", "id": "sales", "date_column": "date", "metrics": list(metrics), **source}
    if "url" not in table:
        table.setdefault("key", KEY)
    return Drafter.model_validate(
        {"name": "weekly", "title": "Weekly", "shape": "report", "instructions": "Be short.", "sources": [table]}
    )


def a_metric(name: str, aggregate: str = "sum", column: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a metric of a column, of its own name in lower case where none is given."""
    own = {} if aggregate == "ratio" else {"column": column or name.lower()}
    return {"name": name, "aggregate": aggregate, **own, **more}


def between(first: str, last: str, zone: ZoneInfo = NEW_YORK) -> Window:
    """Return the window of a slot at eight in the morning after the last of these local days."""
    start, end = (datetime.fromisoformat(day).replace(hour=8) for day in (first, last))
    return Window(
        start.replace(tzinfo=zone).astimezone(UTC),
        (end + timedelta(days=1)).replace(tzinfo=zone).astimezone(UTC),
        zone,
    )


def put_rows(bucket: MemoryBucket, *lines: str, key: str = KEY) -> None:
    """Put a table of these lines."""
    bucket.put(key, ("\n".join(lines) + "\n").encode(), content_type="text/csv")


def as_json_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def each_day(first: str, last: str) -> list[date]:
    """Return the days from the first to the last."""
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    return [begin + timedelta(days=past) for past in range((end - begin).days + 1)]
