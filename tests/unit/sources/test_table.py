"""Tables as they come: from an address, as JSON lines, and with dates in every form that is read."""

import json
from datetime import UTC, date, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from drafter_file.report import TableSource
from galley.retry import NeverSucceeds, RetryLater
from local_days import Days
from sources.fetch import Fetched, FetchError, FetchLimits
from sources.table import Outside, Table, read_table
from support.memory_bucket import MemoryBucket

LONDON, NEW_YORK = ZoneInfo("Europe/London"), ZoneInfo("America/New_York")
URL = "https://data.example/metrics/orders.jsonl?token=secret"
WEEK = Days(date(2026, 11, 16), date(2026, 11, 22))


def a_table(**fields: Any) -> TableSource:
    place = {} if "url" in fields else {"key": "t.csv"}
    return TableSource.model_validate(
        {
            "kind": "table",
            "id": "orders",
            "date_column": "date",
            "metrics": [{"name": "Orders", "column": "orders", "aggregate": "sum"}],
            **place,
            **fields,
        }
    )


def read(body: bytes | str, source: TableSource | None = None, zone: ZoneInfo = LONDON, days: Days = WEEK) -> Table:
    bucket = MemoryBucket()
    source = source or a_table()
    bucket.put(source.place, body.encode() if isinstance(body, str) else body, content_type="text/csv")
    return read_table(Outside(bucket, _no_fetch), source, [days], zone)


def _no_fetch(url: str, **_: Any) -> Fetched:
    raise AssertionError(f"{url} must not be fetched")


def by_day(table: Table) -> dict[str, Decimal]:
    return {str(day): tallies["Orders"].total for day, tallies in table.days.items()}


def fetching(status: int = 200, body: bytes = b"", **headers: str) -> Any:
    def fetch(url: str, *, limits: FetchLimits | None = None, **_: Any) -> Fetched:
        assert url == URL
        assert limits is not None
        assert limits.body_bytes == limits.wire_bytes == 50_000_000
        return Fetched(status, headers, body, url)

    return fetch


def test_a_table_at_an_address_is_fetched_and_its_query_is_told_to_nobody() -> None:
    fetch = fetching(body=b'{"date": "2026-11-16", "orders": 3}\n{"date": "soon", "orders": 3}\n')
    source = a_table(url=URL)
    table = read_table(Outside(MemoryBucket(), fetch), source, [WEEK], LONDON)
    assert by_day(table) == {"2026-11-16": 3}
    assert source.place == "data.example/metrics/orders.jsonl"


@pytest.mark.parametrize(
    ("status", "headers", "after"),
    [
        (429, {"retry-after": "90"}, timedelta(seconds=90)),
        (503, {"retry-after": "86400"}, timedelta(days=1)),
        (503, {"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, None),
        (500, {}, None),
        (408, {}, None),
    ],
)
def test_an_address_that_does_not_answer_now_is_asked_again(
    status: int, headers: dict[str, str], after: timedelta | None
) -> None:
    with pytest.raises(RetryLater) as failure:
        read_table(Outside(MemoryBucket(), fetching(status, **headers)), a_table(url=URL), [WEEK], LONDON)
    assert (failure.value.reason, failure.value.after) == ("table_unavailable", after)
    assert "secret" not in failure.value.detail


@pytest.mark.parametrize("status", [204, 301, 304, 401, 403, 404, 410])
def test_an_address_that_has_no_table_fails_the_run(status: int) -> None:
    with pytest.raises(NeverSucceeds) as failure:
        read_table(Outside(MemoryBucket(), fetching(status)), a_table(url=URL), [WEEK], LONDON)
    assert failure.value.reason == "missing_table"
    told = f"source 'orders': data.example/metrics/orders.jsonl answered {status}; correct its url"
    assert failure.value.detail == told


def test_a_connection_that_fails_is_tried_again_and_a_private_address_never() -> None:
    def broken(url: str, **_: Any) -> Fetched:
        raise FetchError(url, "the connection failed")

    with pytest.raises(RetryLater, match=r"table_unavailable: source 'orders': data.example/.*: the connection failed"):
        read_table(Outside(MemoryBucket(), broken), a_table(url=URL), [WEEK], LONDON)
    for host in ("169.254.169.254", "10.0.0.1", "[::1]"):
        with pytest.raises(NeverSucceeds, match=r"invalid_address: .*is in a private network"):
            read_table(Outside(MemoryBucket(), _no_fetch), a_table(url=f"http://{host}/t.csv"), [WEEK], LONDON)


def test_json_lines_are_read_to_the_last_digit() -> None:
    lines = [
        '{"date": "2026-11-16", "orders": 0.1, "note": {"by": ["Ana"]}}',
        "",
        '{"orders": "0.2", "date": "2026-11-16"}',
        '{"date": "2026-11-17", "orders": 12345678901234567890.123456789}',
        '{"date": "2026-11-18", "orders": null}',
        '{"date": "2026-11-19"}',
    ]
    table = read("\ufeff" + "\r\n".join(lines), a_table(format="json_lines"))
    assert by_day(table) == {
        "2026-11-16": Decimal("0.3"),
        "2026-11-17": Decimal("12345678901234567890.123456789"),
        "2026-11-18": 0,
        "2026-11-19": 0,
    }
    assert table.empty_cells == {"Orders": 2}
    assert table.left_out == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("[1, 2]", "it is not a JSON object"),
        ('{"date": ', "it is not a JSON object"),
        ("[" * 200_000, "it is not a JSON object"),
        ('{"date": "2026-11-16", "orders": true}', "'orders' is 'true', not a number like 1234.5"),
        ('{"date": "2026-11-16", "orders": NaN}', "'orders' is 'NaN', not a number like 1234.5"),
        ('{"date": "2026-11-16", "orders": {"n": 1}}', "'orders' is '{\"n\": \"1\"}', not a number like 1234.5"),
        ('{"date": "2026-11-16", "orders": ' + "9" * 5_000 + "}", "'orders' is '9999"),
        ('{"date": 20261116, "orders": 1}', "'date' is '20261116', not a date like 2026-11-20"),
    ],
)
def test_lines_that_cannot_be_read_are_named_by_number(line: str, why: str) -> None:
    table = read(f'{{"date": "2026-11-16", "orders": 3}}\n{line}\n', a_table(format="json_lines"))
    assert by_day(table) == {"2026-11-16": 3}
    assert table.left_out_rows == 1
    assert table.left_out[0].startswith(f"row 2 ({why}")


def test_a_line_of_any_depth_is_a_row_that_is_left_out() -> None:
    depths = range(300, 1_100)
    lines = [f'{{"date": "2026-11-16", "orders": {"[" * depth}{"]" * depth}}}' for depth in depths]
    table = read("\n".join(['{"date": "2026-11-16", "orders": 3}', *lines]), a_table(format="json_lines"))
    assert by_day(table) == {"2026-11-16": 3}
    assert table.left_out_rows == len(depths)


def test_a_first_row_with_a_cell_too_long_for_the_reader_is_refused_in_one_line() -> None:
    with pytest.raises(NeverSucceeds) as failure:
        read(f"date,orders,{'x' * 200_000}\n2026-11-16,3,a\n")
    assert failure.value.reason == "unreadable_table"
    assert failure.value.detail.startswith("t.csv: row 1 has a cell of more than 131,072 characters")


def test_a_column_that_no_line_has_is_missing() -> None:
    with pytest.raises(NeverSucceeds) as failure:
        read('{"date": "2026-11-16", "count": 3}', a_table(format="json_lines"))
    assert failure.value.reason == "missing_column"
    assert failure.value.detail == (
        "t.csv: there is no column 'orders', which metric 'Orders' of source 'orders' needs;"
        " the columns are 'date', 'count'"
    )


@pytest.mark.parametrize(
    ("name", "fields", "is_json"),
    [
        ("t.csv", {}, False),
        ("t.jsonl", {}, True),
        ("T.NDJSON", {}, True),
        ("t.csv", {"format": "json_lines"}, True),
        ("t.jsonl", {"format": "csv"}, False),
    ],
)
def test_the_form_is_told_by_the_name_unless_it_is_given(name: str, fields: dict[str, str], is_json: bool) -> None:
    assert a_table(key=name, **fields).is_json_lines is is_json


@pytest.mark.parametrize(
    ("cell", "day"),
    [
        pytest.param("2026-11-16", "2026-11-16", id="a date is no instant and stays as it stands"),
        pytest.param("2026-11-16T03:30:00Z", "2026-11-15", id="an instant counts for its date in the schedule's zone"),
        pytest.param("2026-11-16T23:30:00-05:00", "2026-11-16", id="whatever offset it is written with"),
        pytest.param("2026-11-16 04:59:59", "2026-11-15", id="a local time is of the date column's zone"),
        pytest.param("2026-11-16T05:00", "2026-11-16", id="where it is midnight in New York"),
        pytest.param("2026/11/16 12:00:00", "2026-11-16", id="slashes"),
    ],
)
def test_a_date_column_in_london_read_for_a_schedule_in_new_york(cell: str, day: str) -> None:
    days = Days(date(2026, 11, 14), date(2026, 11, 18))
    table = read(f"date,orders\n{cell},1\n", a_table(date_zone="Europe/London"), NEW_YORK, days)
    assert by_day(table) == {day: 1}


@pytest.mark.parametrize(
    ("cell", "hour"),
    [
        pytest.param("2026-10-25 01:30", "2026-10-25T00:30+00:00", id="an hour that comes twice is the first"),
        pytest.param("2026-03-29 01:30", "2026-03-29T01:30+00:00", id="an hour that clocks skip is as if they had not"),
        pytest.param("2026-03-29 00:30", "2026-03-29T00:30+00:00", id="before the change"),
        pytest.param("2026-03-29 02:30", "2026-03-29T01:30+00:00", id="after it"),
    ],
)
def test_local_times_at_a_clock_change(cell: str, hour: str) -> None:
    days = Days(date(2026, 1, 1), date(2026, 12, 31))
    table = read(f"date,orders\n{cell},1\n", a_table(date_zone="Europe/London"), ZoneInfo("UTC"), days)
    (tallies,) = table.days.values()
    assert tallies["Orders"].last_at[1].astimezone(UTC).isoformat(timespec="minutes") == hour


@pytest.mark.parametrize(
    ("form", "cell"),
    [("%b %d %Y", "Nov 16 2026"), ("%d.%m.%Y", "16.11.2026"), ("%Y%m%d", "20261116"), ("%m/%d/%y", "11/16/26")],
)
def test_dates_in_another_form(form: str, cell: str) -> None:
    table = read(f"date,orders\n{cell},1\n2026-11-17,5\n", a_table(date_format=form))
    assert by_day(table) == {"2026-11-16": 1}
    assert f"'date' is '2026-11-17', not a date like {date(2026, 11, 20):{form}}" in table.left_out[0]


def test_a_form_with_a_time_is_of_the_date_columns_zone() -> None:
    source = a_table(date_format="%d.%m.%Y %H:%M", date_zone="Asia/Tokyo")
    assert by_day(read("date,orders\n16.11.2026 08:00,1\n16.11.2026 09:30,2\n", source)) == {"2026-11-16": 2}


def test_last_is_the_latest_whatever_order_the_rows_stand_in() -> None:
    rows = ["2026-11-18T09:00:00Z,3", "2026-11-18T17:00:00Z,7", "2026-11-18T12:00:00Z,5", "2026-11-17T23:00:00Z,9"]
    for order in (rows, rows[::-1]):
        table = read("\n".join(["date,orders", *order]))
        assert table.tallies(WEEK)["Orders"].last == 7
    assert read("date,orders\n2026-11-18,3\n2026-11-18,4\n").tallies(WEEK)["Orders"].last == 4


def test_rows_of_days_that_were_reported_before_are_tallied_without_a_word() -> None:
    earlier = Days(date(2026, 11, 2), date(2026, 11, 8))
    bucket = MemoryBucket()
    bucket.put(
        "t.csv", b"date,orders\n2026-11-03,n/a\n2026-11-04,\n2026-11-05,2\n2026-11-16,1\n", content_type="text/csv"
    )
    table = read_table(Outside(bucket, _no_fetch), a_table(), [WEEK], LONDON, also=[earlier])
    assert table.tallies(earlier)["Orders"].total == 2
    assert (table.left_out_rows, table.empty_cells) == (0, {})
    assert (table.rows(WEEK), table.rows(earlier)) == (1, 2)


def test_many_rows_are_read_in_time() -> None:
    lines = [json.dumps({"date": f"2026-11-{16 + at % 7}", "orders": at, "who": f"c{at % 40}"}) for at in range(20_000)]
    metrics = [{"name": "Orders", "column": "orders", "aggregate": "sum", "group_by": "who"}]
    table = read("\n".join(lines), a_table(format="json_lines", metrics=metrics))
    assert table.tallies(WEEK)["Orders"].total == sum(range(20_000))
    assert sum(tallies["Orders"].count for tallies in table.groups_in("who", WEEK).values()) == 20_000
