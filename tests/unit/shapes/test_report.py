"""The report: which days a window is about, what is computed for them, and what is said when it cannot be."""

import csv
import io
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from drafter import Drafter
from galley.retry import NeverSucceeds
from local_days import Days
from shapes import report
from shapes.report import days_of
from shapes.report.figures import change
from shapes.shape import Window
from support.memory_bucket import MemoryBucket

NEW_YORK = ZoneInfo("America/New_York")
KEY = "metrics/sales.csv"
HEAD = "date,orders,revenue"


def a_drafter(*metrics: tuple[str, str, str], **source: Any) -> Drafter:
    """Return a report's drafter with metrics of (name, column, aggregate)."""
    named = metrics or (("Orders", "orders", "sum"), ("Revenue", "revenue", "sum"))
    table = {
        "kind": "table",
        "id": "sales",
        "key": KEY,
        "date_column": "date",
        "metrics": [{"name": name, "column": column, "aggregate": how} for name, column, how in named],
        **source,
    }
    return Drafter.model_validate(
        {"name": "weekly", "title": "Weekly", "shape": "report", "instructions": "Be short.", "sources": [table]}
    )


def a_week(end: datetime = datetime(2026, 11, 23, 8, tzinfo=NEW_YORK), days: int = 7) -> Window:
    """Return the window of a slot on Monday at eight in New York, reaching so many local days back."""
    end = end.astimezone(NEW_YORK)
    start = (end.replace(tzinfo=None) - timedelta(days=days)).replace(tzinfo=NEW_YORK)
    return Window(start.astimezone(UTC), end.astimezone(UTC), NEW_YORK)


def put(bucket: MemoryBucket, *lines: str, key: str = KEY) -> None:
    """Put a table of these lines."""
    bucket.put(key, ("\n".join(lines) + "\n").encode(), content_type="text/csv")


def two_weeks(first: date = date(2026, 11, 9), **change: str) -> list[str]:
    """Return rows of fourteen days, with 10 orders a day in the first week and 12 in the second."""
    rows = []
    for past in range(14):
        day = first + timedelta(days=past)
        rows.append(change.get(f"d{day:%m%d}", f"{day},{10 if past < 7 else 12},{100 + past}.50"))
    return [row for row in rows if row]


@pytest.mark.parametrize(
    ("zone", "start", "end", "first", "last"),
    [
        pytest.param(
            "America/New_York", "2026-11-16T13:00Z", "2026-11-23T13:00Z", "2026-11-16", "2026-11-22",
            id="a Monday at 8 is about Monday to Sunday before",
        ),
        pytest.param(
            "America/New_York", "2026-11-16T05:00Z", "2026-11-23T05:00Z", "2026-11-16", "2026-11-22",
            id="due at midnight, the day that just ended is in, and in no other window",
        ),
        pytest.param(
            "America/New_York", "2026-03-02T13:00Z", "2026-03-09T12:00Z", "2026-03-02", "2026-03-08",
            id="clocks go forward within the week",
        ),
        pytest.param(
            "America/New_York", "2026-10-26T12:00Z", "2026-11-02T13:00Z", "2026-10-26", "2026-11-01",
            id="clocks go back within the week",
        ),
        pytest.param(
            "Pacific/Auckland", "2026-11-15T19:00Z", "2026-11-22T19:00Z", "2026-11-16", "2026-11-22",
            id="a zone whose Monday begins on UTC's Sunday",
        ),
        pytest.param(
            "America/Havana", "2026-10-31T12:00Z", "2026-11-01T12:00Z", "2026-10-31", "2026-10-31",
            id="a day whose midnight comes twice",
        ),
        pytest.param(
            "Africa/Cairo", "2026-04-23T06:00Z", "2026-04-24T06:00Z", "2026-04-23", "2026-04-23",
            id="a day that has no midnight",
        ),
        pytest.param("UTC", "2026-11-22T23:00Z", "2026-11-23T00:00Z", "2026-11-22", "2026-11-22", id="with a midnight"),
        pytest.param("UTC", "2026-11-23T00:00Z", "2026-11-23T01:00Z", "2026-11-23", "2026-11-22", id="without one"),
    ],
)  # fmt: skip
def test_a_window_is_about_the_local_days_that_end_in_it(
    zone: str, start: str, end: str, first: str, last: str
) -> None:
    window = Window(datetime.fromisoformat(start), datetime.fromisoformat(end), ZoneInfo(zone))
    days = days_of(window)
    assert days == Days(date.fromisoformat(first), date.fromisoformat(last))
    assert days.count == max(0, (days.last - days.first).days + 1)


def test_windows_that_follow_each_other_share_no_day_and_leave_none_out() -> None:
    slots = [datetime(2026, 10, 1, 3, tzinfo=UTC) + timedelta(hours=17 * step) for step in range(60)]
    days = [day for start, end in pairwise(slots) for day in days_of(Window(start, end, NEW_YORK)).each()]
    assert days == [days[0] + timedelta(days=past) for past in range(len(days))]


def test_the_days_before_are_as_many_directly_before() -> None:
    assert Days(date(2026, 3, 2), date(2026, 3, 8)).before == Days(date(2026, 2, 23), date(2026, 3, 1))


def test_a_week_is_added_up_and_compared_with_the_week_before(bucket: MemoryBucket, assign: Any) -> None:
    put(bucket, HEAD, *two_weeks())
    material = report.collect(assign(a_drafter(), window=a_week()))
    assert material.nothing_new is None
    assert [(item.id, item.title, item.source) for item in material.items] == [
        ("r1", "Orders", KEY),
        ("r2", "Revenue", KEY),
    ]
    assert material.items[0].text == (
        "Orders (sum of orders), 2026-11-16 to 2026-11-22: 84;"
        " the days before, 2026-11-09 to 2026-11-15: 70; change: up 14 (+20.0%)."
    )
    assert "| Revenue | sum of revenue | 773.50 | 724.50 | up 49.00 (+6.8%) |" in material.figures
    assert "| Sun 2026-11-22 | 12 | 113.50 |" in material.figures
    assert material.warnings == ()
    assert {source: cursor["place"] for source, cursor in material.cursors.items()} == {"sales": KEY}


@pytest.mark.parametrize(
    ("how", "shown"),
    [
        ("sum", "56.00"),
        ("mean", "8.00"),
        ("count", "7"),
        ("min", "-2.25"),
        ("max", "20.00"),
        ("last", "3.00"),
    ],
)
def test_each_aggregate(bucket: MemoryBucket, assign: Any, how: str, shown: str) -> None:
    values = ["5", "20", "-2.25", "9.25", "11", "10", "3"]
    days = [date(2026, 11, 16) + timedelta(days=past) for past in range(7)]
    rows = [f"{day},{value}" for day, value in zip(days, values, strict=True)]
    put(bucket, "date,x", *reversed(rows))
    material = report.collect(assign(a_drafter(("X", "x", how)), window=a_week()))
    assert f"| X | {how} of x | {shown} |" in material.figures


def test_sums_are_exact(bucket: MemoryBucket, assign: Any) -> None:
    put(bucket, "date,x", *["2026-11-16,0.1"] * 30, *["2026-11-17,100000000000000000000.01"] * 10)
    material = report.collect(assign(a_drafter(("X", "x", "sum")), window=a_week()))
    assert "| 1,000,000,000,000,000,000,003.10 |" in material.figures


def test_a_mean_of_several_rows_a_day_weighs_rows_not_days(bucket: MemoryBucket, assign: Any) -> None:
    put(bucket, "date,x", "2026-11-16,1", "2026-11-16,2", "2026-11-16,3", "2026-11-17,10")
    material = report.collect(assign(a_drafter(("X", "x", "mean")), window=a_week()))
    assert "| X | mean of x | 4.00 |" in material.figures
    assert "| Mon 2026-11-16 | 2.00 |" in material.figures


@pytest.mark.parametrize(
    ("now", "before", "words"),
    [
        (None, "3", "not comparable, there is no value"),
        ("3", None, "not comparable, that time has no value"),
        ("3", "0", "up 3.00 from 0, so there is no percentage"),
        ("-3", "0", "down 3.00 from 0, so there is no percentage"),
        ("0", "0", "unchanged"),
        ("5", "5.0", "unchanged"),
        ("15", "10", "up 5.00 (+50.0%)"),
        ("5", "10", "down 5.00 (-50.0%)"),
        ("-5", "-10", "up 5.00 (+50.0%)"),
        ("10", "-10", "up 20.00 (+200.0%)"),
        ("2", "3", "down 1.00 (-33.3%)"),
        ("1.005", "1", "up 0.01 (+0.5%)"),
    ],
)
def test_a_change_is_said_in_words(now: str | None, before: str | None, words: str) -> None:
    assert change(Decimal(now) if now else None, Decimal(before) if before else None, 2) == words


def test_no_days_before_is_said_and_not_counted_as_zero(bucket: MemoryBucket, assign: Any) -> None:
    put(bucket, HEAD, *two_weeks()[7:])
    material = report.collect(assign(a_drafter(("Orders", "orders", "count")), window=a_week()))
    assert "| 7 | no value | not comparable, that time has no value |" in material.figures
    assert material.warnings == (
        f"{KEY}: there are no rows for the days before, 2026-11-09 to 2026-11-15, so nothing is compared",
    )


def test_missing_days_are_named(bucket: MemoryBucket, assign: Any) -> None:
    put(bucket, HEAD, *two_weeks(d1110="", d1118="", d1121=""))
    material = report.collect(assign(a_drafter(), window=a_week()))
    assert material.warnings == (
        f"{KEY}: no row for 2026-11-18, 2026-11-21, 2 of the 7 days of the report",
        f"{KEY}: the comparison is uneven, no row for 2026-11-10, 1 of the 7 days before",
    )
    assert "| Wed 2026-11-18 | no row | no row |" in material.figures


def test_rows_that_cannot_be_read_are_named_by_number_and_left_out(bucket: MemoryBucket, assign: Any) -> None:
    lines = two_weeks(
        d1111="2026-11-11,n/a,3",
        d1117="17 November,12,108.50",
        d1118="2026-11-18,12,$109.50",
        d1119="2026-11-19,12",
        d1120='2026-11-20,"12"3,1',
        d1121="2026-11-21,12,1,112.50",
    )
    put(bucket, HEAD, *lines)
    material = report.collect(assign(a_drafter(), window=a_week()))
    assert material.warnings[0] == (
        f"{KEY}: 6 rows are left out: row 4 ('orders' is 'n/a', not a number like 1234.5);"
        " row 10 ('date' is '17 November', not a date like 2026-11-20);"
        " row 11 ('revenue' is '$109.50', not a number like 1234.5);"
        " row 12 (it has 2 cells, the first row has 3); row 13 (its quotes do not match); and 1 more"
    )
    assert "no row for 2026-11-17, 2026-11-18, 2026-11-19, 2026-11-20, 2026-11-21" in material.warnings[1]
    assert "| Orders | sum of orders | 24 | 60 |" in material.figures


def test_rows_of_other_days_are_only_looked_at_for_their_date(bucket: MemoryBucket, assign: Any) -> None:
    put(bucket, HEAD, "2026-01-01,none,none", *two_weeks(), "2026-12-24,soon,soon")
    assert report.collect(assign(a_drafter(), window=a_week())).warnings == ()


def test_an_empty_cell_is_no_value_and_no_zero(bucket: MemoryBucket, assign: Any) -> None:
    put(bucket, HEAD, *two_weeks(d1118="2026-11-18,,109.50"))
    metrics = (("Orders", "orders", "mean"), ("Days with orders", "orders", "count"))
    material = report.collect(assign(a_drafter(*metrics), window=a_week()))
    assert "| Orders | mean of orders | 12.00 |" in material.figures
    assert "| Days with orders | count of orders | 6 | 7 |" in material.figures
    assert material.warnings == (f"{KEY}: 'Orders' has no value in 1 of 14 rows, they are not counted",)


@pytest.mark.parametrize(
    ("body", "orders"),
    [
        pytest.param("\ufeffdate,orders\n2026-11-16,5\n", "5", id="byte order mark"),
        pytest.param("date;orders\n2026-11-16;5\n", "5", id="semicolons"),
        pytest.param("date\torders\n2026-11-16\t5\n", "5", id="tabs"),
        pytest.param('"date","orders"\r\n"2026-11-16","5"\r\n', "5", id="quotes and CRLF"),
        pytest.param("a;b;c,date,orders\n1;2,2026-11-16,5\n", "5", id="separators within a name"),
        pytest.param(" date , orders ,\n2026-11-16, 5 ,\n", "5", id="spaces and an empty last column"),
        pytest.param("date,orders\n2026/11/16,5\n", "5", id="slashes"),
        pytest.param("date,orders\n\n2026-11-16,5\n\n,\n", "5", id="empty rows"),
        pytest.param("date,orders\n2026-11-16,5", "5", id="no line break at the end"),
        pytest.param("date,orders\n2026-11-17T04:59:59Z,5\n2026-11-16T04:00:00Z,9\n", "5", id="instants in the zone"),
        pytest.param("date,orders\n2026-11-16 23:30:00-05:00,5\n", "5", id="an instant with a space"),
        pytest.param("date,orders\n2026-11-16,1.5e1\n", "15", id="an exponent"),
        pytest.param('date,note,orders\n2026-11-16,"two\nlines, and more",5\n', "5", id="a line break in a cell"),
    ],
)
def test_tables_as_programs_write_them(bucket: MemoryBucket, assign: Any, body: str, orders: str) -> None:
    bucket.put(KEY, body.encode(), content_type="text/csv")
    drafter = a_drafter(("Orders", "orders", "last"))
    window = Window(datetime(2026, 11, 16, 6, tzinfo=UTC), datetime(2026, 11, 17, 6, tzinfo=UTC), NEW_YORK)
    material = report.collect(assign(drafter, window=window))
    assert f"| Orders | last of orders | {orders} |" in material.figures


def test_bytes_that_are_no_utf_8_spoil_only_their_own_cell(bucket: MemoryBucket, assign: Any) -> None:
    bucket.put(KEY, b"date,who,orders\n2026-11-16,Jos\xe9,5\n2026-11-17,Ann,7\xa0\n", content_type="text/csv")
    material = report.collect(assign(a_drafter(("Orders", "orders", "sum")), window=a_week()))
    assert "| Orders | sum of orders | 5 |" in material.figures
    assert "row 3 ('orders' is '7\ufffd', not a number like 1234.5)" in material.warnings[0]


@pytest.mark.parametrize(
    ("body", "reason", "said"),
    [
        pytest.param(
            "day,orders,revenue\n2026-11-16,1,2\n",
            "missing_column",
            f"{KEY}: there is no column 'date', which date_column of source 'sales' needs;"
            " the columns are 'day', 'orders', 'revenue'",
            id="no date column",
        ),
        pytest.param(
            "date,orders,income\n2026-11-16,1,2\n",
            "missing_column",
            f"{KEY}: there is no column 'revenue', which metric 'Revenue' of source 'sales' needs;"
            " the columns are 'date', 'orders', 'income'",
            id="no metric's column",
        ),
        pytest.param(
            "date,orders,orders,revenue\n2026-11-16,1,2,3\n",
            "missing_column",
            f"{KEY}: there is more than one column 'orders', which metric 'Orders'",
            id="a column twice",
        ),
        pytest.param("", "unreadable_table", f"{KEY}: its first row is empty", id="empty file"),
        pytest.param(
            f'{HEAD}\n2026-11-16,1,"2\n2026-11-17,1,2\n',
            "unreadable_table",
            f"{KEY}: row 2 opens a quote that is never closed",
            id="a quote that swallows the rest",
        ),
        pytest.param(
            f"{HEAD}\n16.11.2026,1,2\n17.11.2026,1,2\n",
            "unreadable_table",
            f"{KEY}: no row can be read; row 2 ('date' is '16.11.2026', not a date like 2026-11-20); row 3",
            id="dates of another form",
        ),
        pytest.param(
            f"{HEAD}\n2026-11-16 10:00:00,1,2\n",
            "unreadable_table",
            "no row can be read",
            id="a time without an offset",
        ),
    ],
)
def test_a_table_that_will_never_do_says_what_to_change(
    bucket: MemoryBucket, assign: Any, body: str, reason: str, said: str
) -> None:
    bucket.put(KEY, body.encode(), content_type="text/csv")
    with pytest.raises(NeverSucceeds) as failure:
        report.collect(assign(a_drafter(), window=a_week()))
    assert failure.value.reason == reason
    assert said in failure.value.detail
    assert "\n" not in failure.value.detail


def test_a_table_in_utf_16_says_so(bucket: MemoryBucket, assign: Any) -> None:
    bucket.put(KEY, f"{HEAD}\n2026-11-16,1,2\n".encode("utf-16"), content_type="text/csv")
    with pytest.raises(NeverSucceeds, match=r"metrics/sales\.csv: is in UTF-16; save it as CSV in UTF-8"):
        report.collect(assign(a_drafter(), window=a_week()))


def test_a_table_that_is_not_there_says_so(assign: Any) -> None:
    with pytest.raises(NeverSucceeds, match=r"metrics/sales\.csv: there is no such file in the bucket"):
        report.collect(assign(a_drafter(), window=a_week()))


def test_a_table_that_is_too_large_says_so(bucket: MemoryBucket, assign: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sources.table.MAX_BYTES", 30)
    put(bucket, HEAD, *two_weeks())
    with pytest.raises(NeverSucceeds, match=r"metrics/sales\.csv: has more than 30 bytes"):
        report.collect(assign(a_drafter(), window=a_week()))


def test_no_row_in_the_window_is_nothing_to_say_about(bucket: MemoryBucket, assign: Any) -> None:
    put(bucket, HEAD, *two_weeks(first=date(2026, 10, 1)), "soon,1,2")
    material = report.collect(assign(a_drafter(), window=a_week()))
    assert material.nothing_new == (
        f"{KEY} has no row for 2026-11-16 to 2026-11-22 (America/New_York); its newest row is of 2026-10-14;"
        f" {KEY}: 1 row is left out: row 16 ('date' is 'soon', not a date like 2026-11-20)"
    )
    assert not material.items


def test_a_window_without_a_whole_day_is_nothing_to_say_about(assign: Any) -> None:
    window = Window(datetime(2026, 11, 23, 13, tzinfo=UTC), datetime(2026, 11, 23, 14, tzinfo=UTC), NEW_YORK)
    material = report.collect(assign(a_drafter(), window=window))
    assert material.nothing_new == (
        f"{KEY}: no day ends in America/New_York between the last slot and this one;"
        " set window = \"exact\" in source 'sales' for reports about less than a day"
    )


def test_a_backfill_sees_what_was_known_of_its_window_only(bucket: MemoryBucket, assign: Any) -> None:
    put(bucket, HEAD, *two_weeks())
    now = report.collect(assign(a_drafter(), window=a_week()))
    put(bucket, HEAD, *two_weeks(), "2026-11-23,99,99", "2026-11-24,99,99")
    later = report.collect(assign(a_drafter(), window=a_week()))
    assert later == now


def test_several_tables_are_one_report(bucket: MemoryBucket, assign: Any) -> None:
    put(bucket, HEAD, *two_weeks())
    put(bucket, "date,orders", key="metrics/other.csv")
    drafter = a_drafter(("Orders", "orders", "sum"))
    tables = [
        drafter.sources[0],
        drafter.sources[0].model_copy(update={"id": "again"}),
        drafter.sources[0].model_copy(update={"id": "none", "key": "metrics/other.csv"}),
    ]
    material = report.collect(assign(drafter.model_copy(update={"sources": tuple(tables)}), window=a_week()))
    assert [item.id for item in material.items] == ["r1", "r2"]
    assert material.figures.count("| Orders |") == 4
    assert material.warnings == (
        "metrics/other.csv has no row for 2026-11-16 to 2026-11-22 (America/New_York); it has no rows",
    )


def test_a_year_is_not_shown_day_by_day(bucket: MemoryBucket, assign: Any) -> None:
    put(bucket, HEAD, *two_weeks())
    material = report.collect(assign(a_drafter(), window=a_week(days=365)))
    assert "| Day |" not in material.figures


def test_names_do_not_break_the_figures_table(bucket: MemoryBucket, assign: Any) -> None:
    put(bucket, "date,a|b", "2026-11-16,1")
    material = report.collect(assign(a_drafter(("Up | down", "a|b", "sum")), window=a_week()))
    assert "| Up \\| down | sum of a\\|b | 1 |" in material.figures


def test_a_week_of_real_weather(bucket: MemoryBucket, assign: Any, shared_data: Path) -> None:
    body = (shared_data / "metrics" / "seattle-weather.csv").read_bytes()
    bucket.put("metrics/weather.csv", body, content_type="text/csv")
    drafter = a_drafter(
        ("Rain", "precipitation", "sum"),
        ("Warmest", "temp_max", "max"),
        ("Wind", "wind", "mean"),
        ("Days", "weather", "count"),
        key="metrics/weather.csv",
    )
    window = Window(
        datetime(2015, 12, 7, 16, tzinfo=UTC), datetime(2015, 12, 14, 16, tzinfo=UTC), ZoneInfo("US/Pacific")
    )
    material = report.collect(assign(drafter, window=window))

    rows = list(csv.DictReader(io.StringIO(body.decode())))
    week = [row for row in rows if "2015/12/07" <= row["date"] <= "2015/12/13"]
    before = [row for row in rows if "2015/11/30" <= row["date"] <= "2015/12/06"]
    rain, earlier = (sum(Decimal(row["precipitation"]) for row in part) for part in (week, before))
    wind = sum(Decimal(row["wind"]) for row in week) / 7
    assert len(week) == len(before) == 7
    assert f"| Rain | sum of precipitation | {rain} | {earlier} |" in material.figures
    assert f"| Warmest | max of temp_max | {max(Decimal(row['temp_max']) for row in week)} |" in material.figures
    assert f"| Wind | mean of wind | {wind:.2f} |" in material.figures
    assert "| Days | count of weather | 7 | 7 | unchanged |" in material.figures
    assert "21 rows of these days were read" in material.figures
    assert material.warnings == ()
