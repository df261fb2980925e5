"""A report about exactly the time since the previous slot: what it computes, compares, shows and says."""

import csv
import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import pytest

from galley.retry import NeverSucceeds
from offline import OfflineModel
from shapes import report
from shapes.shape import Figure, Material, Window
from support.briefs import a_brief
from support.memory_bucket import MemoryBucket
from unit.shapes.reports import KEY, NEW_YORK, a_metric, a_report, put_rows
from writing import compose, read_answer

HOUR = timedelta(hours=1)
HEAD = "date,orders"
ORDERS = a_metric("Orders")


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def window(start: str, end: str, earlier: str | None = None) -> Window:
    return Window(instant(start), instant(end), NEW_YORK, None if earlier is None else instant(earlier))


def hours(first: str, last: str, value: int = 1) -> Iterator[str]:
    """Yield a row for each hour from one instant to another, both included."""
    at = instant(first)
    while at <= instant(last):
        yield f"{at.isoformat()},{value}"
        at += HOUR


def collected(bucket: MemoryBucket, assign: Any, window_of_slot: Window, *metrics: Any, **more: Any) -> Material:
    cursors = more.pop("cursors", None)
    drafter = a_report(*(metrics or (ORDERS,)), **{"window": "exact", "rows_every": "hour"} | more)
    return report.collect(assign(drafter, window=window_of_slot, cursors=cursors))


MORNING = window("2026-11-17T06:00-05:00", "2026-11-18T06:00-05:00", "2026-11-16T06:00-05:00")
NINE = window("2026-11-18T08:00-05:00", "2026-11-18T09:00-05:00", "2026-11-18T07:00-05:00")


def test_an_hourly_report_has_the_rows_later_than_the_last_slot_and_at_the_latest_of_this_one(
    bucket: MemoryBucket, assign: Any
) -> None:
    rows = ("07:00:00", 64), ("07:00:01", 5), ("08:00:00", 8), ("08:00:01", 1), ("09:00:00", 2), ("09:00:01", 32)
    put_rows(bucket, HEAD, *(f"2026-11-18T{time}-05:00,{value}" for time, value in rows), "2025-11-19T13:30Z,16")
    material = collected(bucket, assign, NINE)
    head, table = material.figures.split("\n\n")
    assert head == (
        f"`{KEY}`, 2026-11-18 08:00 to 09:00 (America/New_York), compared with 2026-11-18 07:00 to 08:00"
        " and with 2025-11-19 08:00 to 09:00; 5 rows of these times were read."
    )
    assert "| Orders | sum of orders | 3 | 13 | down 10 (-76.9%) | 16 | down 13 (-81.3%) |" in table
    assert material.items[0].text == (
        "Orders (sum of orders), 2026-11-18 08:00 to 09:00: 3; the time before, 2026-11-18 07:00 to 08:00: 13;"
        " change: down 10 (-76.9%). A year ago, 2025-11-19 08:00 to 09:00: 16; change: down 13 (-81.3%)."
    )
    assert material.warnings == ()
    assert Figure(Decimal(1), "", "hours, 2026-11-18 08:00 to 09:00") in material.values


def test_a_day_at_six_is_the_last_24_hours_hour_by_hour_in_text_table_and_chart(
    bucket: MemoryBucket, assign: Any
) -> None:
    before = hours("2026-11-16T07:00-05:00", "2026-11-17T06:00-05:00", 2)
    put_rows(bucket, HEAD, *before, *hours("2026-11-17T07:00-05:00", "2026-11-18T06:00-05:00", 3), "2026-11-18,9")
    material = collected(bucket, assign, MORNING)
    assert "| Orders | sum of orders | 72 | 48 | up 24 (+50.0%) |" in material.figures
    by_hour = material.figures.split("\n\n")[2].splitlines()
    assert by_hour[0] == "| Hour up to | Orders |"
    assert (len(by_hour), by_hour[2], by_hour[-1]) == (26, "| 2026-11-17 07:00 | 3 |", "| 2026-11-18 06:00 | 3 |")
    table, chart = material.attachments
    lines = list(csv.DictReader(io.StringIO(table.text)))
    assert (lines[0]["From"], lines[0]["To"]) == ("2026-11-17T06:00:00-05:00", "2026-11-18T06:00:00-05:00")
    assert [line["Value"] for line in lines] == ["72", *["3"] * 24]
    root = ElementTree.fromstring(chart.text)  # noqa: S314 - our own
    assert root[0].text == "Weekly, 2026-11-17 06:00 to 2026-11-18 06:00"
    bars = [path.attrib["d"].count("M") for path in root.iter("{http://www.w3.org/2000/svg}path")]
    assert bars == [24, 24, 1]
    assert material.warnings == (
        f"{KEY}: 1 row is left out: row 50 ('date' is '2026-11-18', without the time of day that"
        ' window = "exact" needs)',
    )


def test_three_days_are_shown_day_by_day(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *hours("2026-10-27T07:00-04:00", "2026-11-02T06:00-05:00"))
    material = collected(bucket, assign, window("2026-10-30T06:00-04:00", "2026-11-02T06:00-05:00"))
    assert material.figures.split("\n\n")[2].splitlines()[0::2] == [
        "| Day up to | Orders |",
        "| Sat 2026-10-31 06:00 | 24 |",
        "| Mon 2026-11-02 06:00 | 24 |",
    ]
    assert "| Sun 2026-11-01 06:00 | 25 |" in material.figures
    assert material.warnings == (f"{KEY}: the comparison is uneven, 73 hours with 72 before",)


def test_a_day_of_23_hours_misses_none_and_says_that_it_is_shorter(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *hours("2026-03-06T07:00-05:00", "2026-03-08T06:00-04:00"))
    day = window("2026-03-07T06:00-05:00", "2026-03-08T06:00-04:00", "2026-03-06T06:00-05:00")
    material = collected(bucket, assign, day)
    assert "compared with 2026-03-06 06:00 to 2026-03-07 06:00, 23 hours with 24; 47 rows" in material.figures
    assert "| Orders | sum of orders | 23 | 24 | down 1 (-4.2%) |" in material.figures
    assert "2026-03-08 02:00" not in material.figures
    assert material.warnings == (f"{KEY}: the comparison is uneven, 23 hours with 24 before",)
    numbers = {(one.value, one.label) for one in material.values}
    assert (Decimal(23), "hours, 2026-03-07 06:00 to 2026-03-08 06:00") in numbers
    assert (Decimal(24), "hours, 2026-03-06 06:00 to 2026-03-07 06:00") in numbers


def test_of_the_hour_that_comes_twice_each_pass_is_told_apart(bucket: MemoryBucket, assign: Any) -> None:
    rows = list(hours("2026-10-30T07:00-04:00", "2026-11-01T06:00-05:00"))
    rows = [row for row in rows if not row.startswith("2026-11-01T06:00")]
    put_rows(bucket, HEAD, *rows)
    day = window("2026-10-31T06:00-04:00", "2026-11-01T06:00-05:00", "2026-10-30T06:00-04:00")
    material = collected(bucket, assign, day)
    assert "| 2026-11-01 01:00 EDT | 1 |\n| 2026-11-01 01:00 EST | no row |\n| 2026-11-01 02:00 | 1 |" in (
        material.figures
    )
    assert material.warnings == (
        f"{KEY}: no row for the hour up to 2026-11-01 01:00 EST, 1 of the 25 hours of the report",
        f"{KEY}: the comparison is uneven, 25 hours with 24 before",
    )


def test_a_window_that_the_table_does_not_reach_the_end_of_is_partial(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *hours("2026-11-16T07:00-05:00", "2026-11-18T04:00-05:00"))
    assert collected(bucket, assign, MORNING).warnings == (
        f"{KEY}: no row for the hours up to 2026-11-18 05:00, 2026-11-18 06:00, 2 of the 24 hours of the report;"
        " the window is partial, the newest row is of 2026-11-18 04:00",
    )


def test_an_hour_that_is_missing_before_makes_the_comparison_uneven(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *hours("2026-11-16T08:00-05:00", "2026-11-18T06:00-05:00"))
    assert collected(bucket, assign, MORNING).warnings == (
        f"{KEY}: the comparison is uneven, no row for the hour up to 2026-11-16 07:00, 1 of the 24 hours before",
    )
    put_rows(bucket, HEAD, *hours("2026-11-17T07:00-05:00", "2026-11-18T06:00-05:00"))
    assert collected(bucket, assign, MORNING).warnings == (
        f"{KEY}: there are no rows for the time before, 2026-11-16 06:00 to 2026-11-17 06:00, so nothing is compared",
    )


def test_rows_that_come_late_are_told_once_by_the_next_report(bucket: MemoryBucket, assign: Any) -> None:
    rows = list(hours("2026-11-16T07:00-05:00", "2026-11-18T05:00-05:00"))
    put_rows(bucket, HEAD, *rows)
    first = collected(bucket, assign, MORNING)
    put_rows(bucket, HEAD, *rows, *hours("2026-11-18T06:00-05:00", "2026-11-19T06:00-05:00"))
    tomorrow = window("2026-11-18T06:00-05:00", "2026-11-19T06:00-05:00", "2026-11-17T06:00-05:00")
    line = (
        f"{KEY}: 2026-11-17 06:00 to 2026-11-18 06:00 was already reported with 23 rows, it has 24 now;"
        " Orders was 23, is 24 (up 1 (+4.3%))"
    )
    second = collected(bucket, assign, tomorrow, cursors=first.cursors)
    assert second.warnings == (line,)
    assert f"- {line}" in second.figures
    again = collected(
        bucket,
        assign,
        window("2026-11-19T05:00-05:00", "2026-11-19T06:00-05:00", "2026-11-19T04:00-05:00"),
        cursors=second.cursors,
    )
    assert again.warnings == ()
    assert collected(bucket, assign, MORNING, cursors=second.cursors).warnings == (), "a backfill sees nothing later"


def test_rows_of_an_hour_that_was_empty_when_it_was_due_are_told_by_the_next_report(
    bucket: MemoryBucket, assign: Any
) -> None:
    put_rows(bucket, HEAD, "2026-11-18T06:00-05:00,1")
    empty = collected(bucket, assign, window("2026-11-18T07:00-05:00", "2026-11-18T08:00-05:00"))
    assert empty.nothing_new is not None
    again = collected(bucket, assign, NINE, cursors=empty.cursors)
    assert again.nothing_new is not None
    put_rows(bucket, HEAD, *hours("2026-11-18T06:00-05:00", "2026-11-18T08:00-05:00", 7), "2026-11-18T10:00-05:00,3")
    ten = window("2026-11-18T09:00-05:00", "2026-11-18T10:00-05:00", "2026-11-18T08:00-05:00")
    late = collected(bucket, assign, ten, cursors=again.cursors)
    line = f"{KEY}: 2026-11-18 07:00 to 08:00 was not reported, it had no row; it has 1 now; Orders is 7"
    assert late.warnings[-1] == line
    assert f"- {line}" in late.figures
    assert Figure(Decimal(7), "", "Orders, 2026-11-18 07:00 to 08:00, as it is now") in late.values
    eleven = window("2026-11-18T10:00-05:00", "2026-11-18T11:00-05:00")
    put_rows(
        bucket,
        HEAD,
        *hours("2026-11-18T06:00-05:00", "2026-11-18T08:00-05:00", 7),
        *hours("2026-11-18T10:00-05:00", "2026-11-18T11:00-05:00", 3),
    )
    assert collected(bucket, assign, eleven, cursors=late.cursors).warnings == ()


def test_a_table_from_which_old_rows_are_taken_has_not_changed(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, "2026-11-18T12:10Z,1", "2026-11-18T12:50Z,1", "2026-11-18T13:30Z,1")
    first = collected(bucket, assign, window("2026-11-18T07:00-05:00", "2026-11-18T08:00-05:00"))
    put_rows(bucket, HEAD, "2026-11-18T12:50Z,1", "2026-11-18T13:30Z,1")
    assert collected(bucket, assign, NINE, cursors=first.cursors).warnings == ()


def test_what_was_said_of_days_is_forgotten_when_the_window_becomes_exact(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *hours("2026-11-16T00:30-05:00", "2026-11-18T06:30-05:00"))
    days = collected(bucket, assign, MORNING, window="days", rows_every="day")
    assert "2026-11-17 (America/New_York)" in days.figures
    exact = collected(bucket, assign, MORNING, cursors=days.cursors)
    assert not any("already reported" in warning for warning in exact.warnings)
    assert collected(bucket, assign, MORNING, window="days", rows_every="day", cursors=exact.cursors) == days


@pytest.mark.parametrize(
    "spoilt",
    [
        {"first": "2026-11-17"},
        {"zone": ""},
        {"zone": "Nowhere/There"},
        {"last": "2026-11-18T06:00:00"},
        {"oldest": 5},
    ],
)
def test_a_memory_that_cannot_be_read_fails_the_run(bucket: MemoryBucket, assign: Any, spoilt: Any) -> None:
    put_rows(bucket, HEAD, *hours("2026-11-16T07:00-05:00", "2026-11-18T06:00-05:00"))
    cursor = dict(collected(bucket, assign, MORNING).cursors["sales"])
    reports: Any = cursor["reports"]
    cursor["reports"] = [reports[0] | spoilt]
    with pytest.raises(NeverSucceeds, match="invalid_cursor"):
        collected(bucket, assign, NINE, cursors={"sales": cursor})


@pytest.mark.parametrize(
    ("window_of_slot", "rows_every", "rows", "orders"),
    [
        (NINE, "hour", ["2026-11-18T08:00-05:00,3", "2026-11-18T07:00-05:00,2", "2026-11-18T09:00-05:00,9"], "3"),
        (MORNING, "day", ["2026-11-17T00:00-05:00,4", "2026-11-18T00:00-05:00,9", "2026-11-16T00:00-05:00,5"], "4"),
    ],
)
def test_a_row_that_bears_the_beginning_of_its_time_counts_at_its_end(
    bucket: MemoryBucket, assign: Any, window_of_slot: Window, rows_every: str, rows: list[str], orders: str
) -> None:
    put_rows(bucket, HEAD, *rows)
    material = collected(bucket, assign, window_of_slot, row_time="start", rows_every=rows_every)
    assert f"| Orders | sum of orders | {orders} |" in material.figures


def test_a_text_that_tells_the_figures_and_hours_as_they_are_is_not_found_fault_with(
    bucket: MemoryBucket, assign: Any
) -> None:
    put_rows(bucket, HEAD, *hours("2026-10-30T07:00-04:00", "2026-11-01T06:00-05:00", 1_234))
    day = window("2026-10-31T06:00-04:00", "2026-11-01T06:00-05:00", "2026-10-30T06:00-04:00")
    material = collected(bucket, assign, day)
    brief = a_brief(*material.items, figures=material.figures)
    composed = compose(read_answer(OfflineModel().write(brief, remaining=timedelta()), brief), brief)
    assert "2026-10-31 06:00" in composed.body
    assert composed.findings == ()


def test_groups_are_of_the_exact_time_too(bucket: MemoryBucket, assign: Any) -> None:
    rows = ["2026-11-18T07:30-05:00,4,FI", "2026-11-18T08:30-05:00,1,FI", "2026-11-18T08:45-05:00,2,DE"]
    put_rows(bucket, "date,orders,country", *rows, "2026-11-18T09:30-05:00,9,SE")
    material = collected(bucket, assign, NINE, a_metric("Orders", group_by="country"), rows_every="any")
    assert "| DE | 2 | no value |" in material.figures
    assert "| FI | 1 | 4 | down 3 (-75.0%) |" in material.figures
    assert "SE" not in material.figures


def test_no_row_in_the_window_says_what_the_newest_is(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, "2026-11-18T08:00-05:00,1")
    assert collected(bucket, assign, NINE).nothing_new == (
        f"{KEY} has no row for 2026-11-18 08:00 to 09:00 (America/New_York); its newest row is of 2026-11-18 08:00"
    )


def test_rows_that_have_only_dates_cannot_be_reported_exactly(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, "2026-11-17,1", "2026-11-18,2")
    with pytest.raises(NeverSucceeds, match="unreadable_table") as failure:
        collected(bucket, assign, NINE)
    assert failure.value.detail.startswith(
        f"{KEY}: no row can be read; row 2 ('date' is '2026-11-17', without the time of day that"
        ' window = "exact" needs); row 3'
    )


def test_one_table_of_days_and_one_of_hours_are_one_report(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *hours("2026-11-16T07:00-05:00", "2026-11-18T06:00-05:00"))
    put_rows(bucket, HEAD, "2026-11-16,3", "2026-11-17,4", key="metrics/days.csv")
    drafter = a_report(ORDERS, window="exact", rows_every="hour")
    days = a_report(ORDERS, id="days", key="metrics/days.csv").sources[0]
    both = drafter.model_copy(update={"sources": (drafter.sources[0], days)})
    material = report.collect(assign(both, window=MORNING))
    assert re.findall(r"\| Orders \| sum of orders \| (\d+) \|", material.figures) == ["24", "4"]
    assert "Weekly, 2026-11-17 06:00 to 2026-11-18 06:00 and 2026-11-17<" in material.attachments[1].text
    hourly = report.collect(assign(both, window=NINE))
    assert hourly.nothing_new == (
        f"{KEY} has no row for 2026-11-18 08:00 to 09:00 (America/New_York); its newest row is of 2026-11-18 06:00;"
        " metrics/days.csv: no day ends in America/New_York between the last slot and this one;"
        " set window = \"exact\" in source 'days' for reports about less than a day"
    )
