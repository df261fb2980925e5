"""What a report computes beside plain aggregates, what it compares, and what it says of rows that came late."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from galley.retry import NeverSucceeds
from offline import OfflineModel
from shapes import report
from shapes.shape import Figure, Material
from sources.fetch import Fetched
from support.briefs import a_brief
from support.memory_bucket import MemoryBucket
from unit.shapes.reports import KEY, a_metric, a_report, between, each_day, put_rows
from writing import compose, read_answer

WEEK = ("2026-11-16", "2026-11-22")
RATE = a_metric("Rate", "ratio", numerator="Returns", denominator="Orders", percent=True)
ORDERS, RETURNS = a_metric("Orders"), a_metric("Returns")
HEAD = "date,orders,returns,country"


def collected(bucket: MemoryBucket, assign: Any, *metrics: Any, **more: Any) -> Material:
    days = more.pop("days", WEEK)
    cursors = more.pop("cursors", None)
    return report.collect(assign(a_report(*metrics, **more), window=between(*days), cursors=cursors))


def test_a_ratio_divides_the_whole_windows_figures(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, "2026-11-10,10,1,", "2026-11-16,10,5,", "2026-11-17,90,0,")
    material = collected(bucket, assign, ORDERS, RETURNS, RATE)
    assert "| Rate | Returns / Orders | 5.0% | 10.0% | down 5.0 percentage points |" in material.figures
    assert Figure(Decimal(5), "%", "Rate, 2026-11-16 to 2026-11-22") in material.values
    assert Figure(Decimal(-5), "percentage points", "Rate, change since 2026-11-09 to 2026-11-15") in material.values


def test_a_division_by_zero_is_said_in_its_place_and_as_a_warning(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *(f"{day},0,0," for day in each_day("2026-11-09", "2026-11-22")))
    material = collected(bucket, assign, ORDERS, RETURNS, RATE)
    assert "| Rate | Returns / Orders | no value, Orders is 0 | no value, Orders is 0 |" in material.figures
    assert material.warnings == (f"{KEY}: 'Rate' has no value, Orders is 0",)


def test_a_ratio_without_a_value_names_the_part_that_has_none(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *(f"{day},4,," for day in each_day("2026-11-09", "2026-11-22")))
    material = collected(bucket, assign, ORDERS, RETURNS, RATE)
    assert "| no value, Returns has none |" in material.figures
    assert f"{KEY}: 'Rate' has no value, Returns has none" in material.warnings


def test_a_mean_of_percentages_is_shown_as_one_and_a_unit_stands_behind(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, "date,share,revenue", "2026-11-10,0.5,1000", "2026-11-16,0.1234,2500.5")
    metrics = (
        a_metric("Share", "mean", percent=True, decimals=2),
        a_metric("Revenue", unit="USD", decimals=0),
    )
    material = collected(bucket, assign, *metrics)
    assert "| Share | mean of share | 12.34% | 50.00% | down 37.66 percentage points |" in material.figures
    assert "| Revenue | sum of revenue | 2,501 USD | 1,000 USD | up 1,501 USD (+150.1%) |" in material.figures
    assert Figure(Decimal("2500.5"), "USD", "Revenue, 2026-11-16 to 2026-11-22") in material.values


def test_a_change_too_small_to_show_is_not_shown_as_none(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, "date,share", "2026-11-10,1", "2026-11-16,1.001")
    material = collected(bucket, assign, a_metric("Share", decimals=1))
    assert "| 1.0 | 1.0 | up less than 0.1 (+0.1%) |" in material.figures


def test_the_largest_groups_are_told_apart_and_the_rest_put_together(bucket: MemoryBucket, assign: Any) -> None:
    rows = [f"2026-11-16,{orders},1,{country}" for orders, country in ((5, "FI"), (9, "DE"), (1, "SE"), (2, ""))]
    put_rows(bucket, HEAD, *rows, "2026-11-10,4,0,DE", "2026-11-10,7,0,PT")
    material = collected(bucket, assign, a_metric("Orders", group_by="country", max_groups=2))
    table = material.figures.split("\n\n")[2].splitlines()
    assert table[0].startswith("| Orders by country | 2026-11-16 to 2026-11-22 | 2026-11-09 to 2026-11-15 |")
    assert table[2:] == [
        "| DE | 9 | 4 | up 5 (+125.0%) |",
        "| FI | 5 | no value | not comparable, that time has no value |",
        "| others (3) | 3 | 7 | down 4 (-57.1%) |",
    ]
    assert Figure(Decimal(3), "", "Orders, others (3), 2026-11-16 to 2026-11-22") in material.values


def test_a_grouped_ratio_is_each_groups_own(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, "2026-11-16,10,1,FI", "2026-11-16,2,1,DE", "2026-11-17,10,2,FI", "2026-11-17,0,3,SE")
    material = collected(bucket, assign, ORDERS, RETURNS, RATE | {"group_by": "country"})
    assert "| DE | 50.0% |" in material.figures
    assert "| FI | 15.0% |" in material.figures
    assert "| SE | no value, Orders is 0 |" in material.figures


def test_groups_beyond_what_is_told_apart_are_among_the_others(
    bucket: MemoryBucket, assign: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sources.table.MOST_GROUPS", 3)
    put_rows(bucket, HEAD, *(f"2026-11-16,{number},0,c{number}" for number in range(1, 9)))
    material = collected(bucket, assign, a_metric("Orders", group_by="country", max_groups=2))
    assert "| c3 | 3 |" in material.figures
    assert f"| others (more than 1) | {1 + 4 + 5 + 6 + 7 + 8} |" in material.figures
    assert any("'country' has more than" in warning for warning in material.warnings)


def test_what_stands_in_a_column_is_never_live_in_the_figures(bucket: MemoryBucket, assign: Any) -> None:
    hostile = [
        "[x](https://evil.example)",
        "![p](//evil.example/p)",
        "<script>alert(1)</script>",
        "a | b",
        "https://evil.example",
    ]
    put_rows(bucket, HEAD, *(f'2026-11-16,{number},0,"{text}"' for number, text in enumerate(hostile, start=1)))
    material = collected(bucket, assign, a_metric("Orders", group_by="country"))
    assert "evil.example)" not in material.figures
    assert "https://evil" not in material.figures
    assert "<script" not in material.figures
    assert "| a \\| b | 4 |" in material.figures


def test_a_week_is_compared_with_the_same_weekdays_a_year_ago(bucket: MemoryBucket, assign: Any) -> None:
    rows = [
        f"{day},{orders},0,"
        for first, last, orders in (("2025-11-17", "2025-11-23", 5), ("2026-11-09", "2026-11-22", 10))
        for day in each_day(first, last)
    ]
    put_rows(bucket, HEAD, *rows, "2025-11-16,999,0,", "2025-11-24,999,0,")
    material = collected(bucket, assign, ORDERS)
    assert "| 70 | 70 | unchanged | 35 | up 35 (+100.0%) |" in material.figures
    assert "and with 2025-11-17 to 2025-11-23; 21 rows" in material.figures
    assert material.items[0].text.endswith("A year ago, 2025-11-17 to 2025-11-23: 35; change: up 35 (+100.0%).")
    assert material.warnings == ()


def test_a_year_ago_in_part_is_uneven_and_without_rows_it_is_not_shown(bucket: MemoryBucket, assign: Any) -> None:
    rows = [f"{day},10,0," for day in each_day("2026-11-09", "2026-11-22")]
    put_rows(bucket, HEAD, *rows)
    assert "year" not in collected(bucket, assign, ORDERS).figures
    put_rows(bucket, HEAD, "2025-11-17,5,0,", *rows)
    material = collected(bucket, assign, ORDERS)
    assert "| 5 | up 65 (+1,300.0%) |" in material.figures
    assert material.warnings == (
        f"{KEY}: the comparison is uneven, no row for 2025-11-18, 2025-11-19, 2025-11-20, 2025-11-21, 2025-11-22,"
        " 2025-11-23, 6 of the 7 days a year ago",
    )


def test_months_are_compared_with_months_and_their_lengths_are_said(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, "2025-02-01,3,0,", "2026-01-01,5,0,", "2026-02-01,4,0,", "2026-03-01,900,0,")
    material = collected(bucket, assign, ORDERS, days=("2026-02-01", "2026-02-28"), rows_every="month")
    assert (
        "compared with 2026-01-01 to 2026-01-31, 28 days with 31 and with 2025-02-01 to 2025-02-28" in material.figures
    )
    assert "| 4 | 5 | down 1 (-20.0%) | 3 | up 1 (+33.3%) |" in material.figures
    assert material.warnings == (), "one row a month is all there should be"


def test_a_missing_month_is_named_and_a_window_that_is_not_over_is_partial(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *(f"2026-{month:02d}-01,5,0," for month in (1, 2, 3, 4, 6, 7, 8)))
    material = collected(bucket, assign, ORDERS, days=("2026-07-01", "2026-09-30"), rows_every="month")
    assert material.warnings == (
        f"{KEY}: no row for 2026-09, 1 of the 3 months of the report; the window is partial, the newest row is of"
        " 2026-08-01",
        f"{KEY}: the comparison is uneven, no row for 2026-05, 1 of the 3 months before",
    )
    assert "| Month | Orders |" in material.figures
    assert "| 2026-09 | no row |" in material.figures


def test_days_after_the_newest_row_make_the_window_partial(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *(f"{day},1,0," for day in each_day("2026-11-09", "2026-11-20")))
    (warning,) = collected(bucket, assign, ORDERS).warnings
    assert warning == (
        f"{KEY}: no row for 2026-11-21, 2026-11-22, 2 of the 7 days of the report; the window is partial,"
        " the newest row is of 2026-11-20"
    )


def two_reports(bucket: MemoryBucket, assign: Any, first: list[str], second: list[str], *metrics: Any) -> Material:
    put_rows(bucket, HEAD, *first)
    earlier = collected(bucket, assign, *metrics, days=("2026-11-09", "2026-11-15"))
    put_rows(bucket, HEAD, *second)
    return collected(bucket, assign, *metrics, cursors=earlier.cursors)


WEEKS = [f"{day},10,1," for day in each_day("2026-11-02", "2026-11-22")]


def test_rows_that_came_late_for_a_reported_window_are_told_once(bucket: MemoryBucket, assign: Any) -> None:
    late = "2026-11-15,4,0,"
    material = two_reports(bucket, assign, WEEKS[:14], [*WEEKS, late], ORDERS, RATE, RETURNS)
    line = (
        f"{KEY}: 2026-11-09 to 2026-11-15 was already reported with 7 rows, it has 8 now;"
        " Orders was 70, is 74 (up 4 (+5.7%)); Rate was 10.0%, is 9.5% (down 0.5 percentage points)"
    )
    assert material.warnings == (line,)
    assert f"Changed since it was reported:\n\n- {line}" in material.figures
    told = Figure(Decimal(70), "", "Orders, 2026-11-09 to 2026-11-15, as it was reported")
    assert told in material.values
    put_rows(bucket, HEAD, *WEEKS, late, *(f"{day},10,1," for day in each_day("2026-11-23", "2026-11-29")))
    after = collected(
        bucket, assign, ORDERS, RATE, RETURNS, days=("2026-11-23", "2026-11-29"), cursors=material.cursors
    )
    assert after.warnings == ()


def test_a_figure_that_was_corrected_is_told_too(bucket: MemoryBucket, assign: Any) -> None:
    corrected = [row.replace("2026-11-10,10", "2026-11-10,9") for row in WEEKS]
    material = two_reports(bucket, assign, WEEKS[:14], corrected, ORDERS)
    assert material.warnings == (
        f"{KEY}: 2026-11-09 to 2026-11-15 was already reported; Orders was 70, is 69 (down 1 (-1.4%))",
    )


def test_nothing_late_is_nothing_told(bucket: MemoryBucket, assign: Any) -> None:
    assert two_reports(bucket, assign, WEEKS[:14], WEEKS, ORDERS).warnings == ()


def test_a_table_that_no_longer_reaches_back_has_no_late_rows(bucket: MemoryBucket, assign: Any) -> None:
    material = two_reports(bucket, assign, WEEKS[:14], WEEKS[9:], ORDERS)
    assert [warning for warning in material.warnings if "already reported" in warning] == []


def test_a_metric_that_is_computed_in_another_way_is_not_compared(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *WEEKS)
    earlier = collected(bucket, assign, ORDERS, days=("2026-11-09", "2026-11-15"))
    material = collected(bucket, assign, a_metric("Orders", "max"), cursors=earlier.cursors)
    assert material.warnings == ()


def test_a_backfill_sees_no_report_that_came_after_it_and_forgets_none(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *WEEKS)
    later = collected(bucket, assign, ORDERS)
    put_rows(bucket, HEAD, *WEEKS, "2026-11-20,5,0,")
    backfill = collected(bucket, assign, ORDERS, days=("2026-11-09", "2026-11-15"), cursors=later.cursors)
    assert backfill.warnings == ()
    reports: Any = backfill.cursors["sales"]["reports"]
    assert [one["first"] for one in reports] == ["2026-11-09", "2026-11-16"]
    assert reports[1]["rows"] == 7, "it still says what was reported"


def test_only_the_latest_reports_are_remembered(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *(f"{day},1,0," for day in each_day("2026-11-01", "2026-11-22")))
    cursors: Any = {}
    for day in each_day("2026-11-05", "2026-11-14"):
        cursors = collected(bucket, assign, ORDERS, days=(str(day), str(day)), cursors=cursors).cursors
    assert [one["first"] for one in cursors["sales"]["reports"]] == [f"2026-11-{day}" for day in range(10, 15)]


NO_NUMBER = {"first": "2026-11-09", "last": "2026-11-15", "oldest": "2026-11-09", "rows": 1, "figures": {"a": "NaN"}}


@pytest.mark.parametrize(
    "cursor",
    [
        {"place": KEY, "reports": [{"first": "soon"}]},
        {"place": KEY, "reports": [NO_NUMBER]},
        {"through": 7},
    ],
)
def test_a_cursor_that_is_not_one_of_ours_is_not_guessed(bucket: MemoryBucket, assign: Any, cursor: Any) -> None:
    put_rows(bucket, HEAD, *WEEKS)
    with pytest.raises(NeverSucceeds, match="invalid_cursor"):
        collected(bucket, assign, ORDERS, cursors={"sales": cursor})


def test_without_a_row_in_the_window_it_is_remembered_that_there_was_none(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *WEEKS[:14])
    material = collected(bucket, assign, ORDERS)
    assert material.nothing_new is not None
    assert (material.attachments, material.values) == ((), ())
    put_rows(bucket, HEAD, *WEEKS, "2026-11-23,5,0,")
    later = collected(bucket, assign, ORDERS, days=("2026-11-23", "2026-11-29"), cursors=material.cursors)
    week = sum(int(row.split(",")[1]) for row in WEEKS if "2026-11-16" <= row[:10] <= "2026-11-22")
    assert later.warnings[-1] == (
        f"{KEY}: 2026-11-16 to 2026-11-22 was not reported, it had no row; it has 7 now; Orders is {week}"
    )


def test_what_changed_before_an_empty_window_is_told_by_the_next_report(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, HEAD, *WEEKS[:14])
    first = collected(bucket, assign, ORDERS, days=("2026-11-09", "2026-11-15"))
    put_rows(bucket, HEAD, *WEEKS[:14], "2026-11-15,4,0,")
    empty = collected(bucket, assign, ORDERS, cursors=first.cursors)
    assert empty.nothing_new is not None
    put_rows(bucket, HEAD, *WEEKS[:14], "2026-11-15,4,0,", "2026-11-23,5,0,")
    later = collected(bucket, assign, ORDERS, days=("2026-11-23", "2026-11-29"), cursors=empty.cursors)
    assert [line for line in later.warnings if "was already reported" in line]
    assert not [line for line in later.warnings if "was not reported" in line], "it still has no row"


def test_a_table_at_an_address_is_named_by_its_id_in_the_draft(bucket: MemoryBucket, assign: Any) -> None:
    first = "\n".join([HEAD, *WEEKS[:14]]).encode()
    late = "\n".join([HEAD, *WEEKS, "2026-11-15,4,0,"]).encode()
    drafter = a_report(ORDERS, url="https://data.example/sales.csv?token=secret")

    def look(body: bytes, days: tuple[str, str], cursors: Any) -> Material:
        def fetch(url: str, **_: Any) -> Fetched:
            return Fetched(200, {}, body, url)

        return report.collect(assign(drafter, window=between(*days), fetch=fetch, cursors=cursors))

    earlier = look(first, ("2026-11-09", "2026-11-15"), {})
    material = look(late, WEEK, earlier.cursors)
    assert material.warnings[0].startswith("sales: 2026-11-09 to 2026-11-15 was already reported")
    assert f"- {material.warnings[0]}" in material.figures
    answer = OfflineModel().write(a_brief(*material.items, figures=material.figures), remaining=timedelta())
    brief = a_brief(*material.items, figures=material.figures)
    composed = compose(read_answer(answer, brief), brief)
    assert composed.warnings == (), "no address of its own is taken out of it"
    for text in (composed.body, material.figures, *(one.text for one in material.attachments)):
        assert "secret" not in text
        assert "data.example" not in text
