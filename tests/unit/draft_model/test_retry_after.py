"""How long the other side asks us to wait."""

from datetime import UTC, datetime, timedelta

import pytest

from retry_after import retry_after

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "7"}, timedelta(seconds=7)),
        ({"retry-after": "0.5"}, timedelta(seconds=0.5)),
        ({"retry-after-ms": "1500", "retry-after": "7"}, timedelta(seconds=1.5)),
        ({"retry-after-ms": "soon", "retry-after": "7"}, timedelta(seconds=7)),
        ({"retry-after": "Tue, 01 Dec 2026 12:01:00 GMT"}, timedelta(minutes=1)),
        ({"retry-after": "Tue, 01 Dec 2026 12:01:00 -0000"}, timedelta(minutes=1)),
        ({"retry-after": "Tue, 01 Dec 2026 11:00:00 GMT"}, None),
        ({"retry-after": "302400"}, timedelta(hours=84)),
        ({"retry-after": "1e300"}, timedelta.max),
        ({"retry-after": "inf"}, timedelta.max),
        ({"retry-after": "-inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Tue, 01 Dec 2026 12:01:00 +99999999999999"}, None),
        ({"retry-after": "01 Dec 99999999999999999999 12:01:00 GMT"}, None),
        ({"retry-after": "Tue, 99 Dec 2026 12:01:00 GMT"}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], wait: timedelta | None) -> None:
    assert retry_after(headers, NOW) == wait
