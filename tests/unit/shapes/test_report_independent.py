"""Real tables, every window of a schedule, and each figure computed a second time: by DuckDB, in SQL."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pytest

from galley.schedule import calendar_of
from shapes import report
from shapes.shape import Material, Window
from spans import Span
from support.memory_bucket import MemoryBucket
from unit.shapes.reports import a_metric, a_report, as_json_lines

SEATTLE, LONDON = "America/Los_Angeles", "Europe/London"
MONDAYS, FIRST_OF_MONTH, NEW_YEAR = "cron(0 8 ? * MON *)", "cron(0 6 1 * ? *)", "cron(30 0 1 1 ? *)"

Figures = dict[str, Decimal | None]


@pytest.fixture
def sql() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"autoinstall_known_extensions": False, "threads": 1}) as connection:
        yield connection


def load(sql: duckdb.DuckDBPyConnection, file: Path) -> bytes:
    """Let DuckDB read a file, each cell as text, and return its bytes for the report to read."""
    sql.execute("CREATE TABLE raw AS SELECT * FROM read_csv(?, all_varchar = true)", [str(file)])
    return file.read_bytes()


def windows(expression: str, zone: str, first: date, last: date) -> Iterator[Window]:
    """Yield the windows of a schedule between two dates, latest first, found as a run finds its own."""
    calendar = calendar_of(expression, zone, datetime(2000, 1, 1, tzinfo=UTC))
    end = calendar.latest_until(datetime(last.year, last.month, last.day, 23, tzinfo=UTC))
    while end is not None and end.date() > first:
        start = calendar.latest_until(end - timedelta(seconds=1))
        if start is None:
            return
        yield Window(start, end, ZoneInfo(zone))
        end = start


def computed(material: Material, days: str) -> Figures:
    """Return the figures over some days, by what they are of."""
    return {one.label.removesuffix(f", {days}"): one.value for one in material.values if one.label.endswith(days)}


def reported(window: Window) -> tuple[date, date]:
    """Return the first and the last day, read off the window's local clock and nothing else."""
    local = [moment.astimezone(window.zone).replace(tzinfo=None) for moment in (window.start, window.end)]
    return local[0].date(), local[1].date() - timedelta(days=1)


def span(first: date, last: date) -> str:
    return f"{first} to {last}" if first != last else str(first)


def assert_alike(found: Figures, name: str, expected: Any) -> None:
    """Check a figure: exactly where DuckDB computes in decimals, to twelve digits where it computes in doubles."""
    if expected is None:
        assert name not in found, name
    elif isinstance(expected, float):
        assert float(found[name] or 0) == pytest.approx(expected, rel=1e-12), name
    else:
        assert found[name] == expected, name


WEATHER = """
    SELECT sum(precipitation::DECIMAL(18, 3)), avg(wind::DOUBLE), count(weather),
           min(temp_min::DECIMAL(18, 3)), max(temp_max::DECIMAL(18, 3)), arg_max(wind::DECIMAL(18, 3), day),
           sum(precipitation::DOUBLE) / count(weather)
    FROM (SELECT *, strptime(date, '%Y/%m/%d')::DATE AS day FROM raw)
    WHERE day BETWEEN ? AND ?
"""
WEATHER_NAMES = ("Rain", "Wind", "Days", "Coldest", "Warmest", "Last wind", "Rain a day")


def test_weeks_of_four_years_across_clock_changes_and_the_years_ends(
    bucket: MemoryBucket, assign: Any, shared_data: Path, sql: duckdb.DuckDBPyConnection
) -> None:
    bucket.put("weather.csv", load(sql, shared_data / "metrics" / "seattle-weather.csv"), content_type="text/csv")
    drafter = a_report(
        a_metric("Rain", column="precipitation"),
        a_metric("Wind", "mean"),
        a_metric("Days", "count", column="weather"),
        a_metric("Coldest", "min", column="temp_min"),
        a_metric("Warmest", "max", column="temp_max"),
        a_metric("Last wind", "last", column="wind"),
        a_metric("Rain a day", "ratio", numerator="Rain", denominator="Days"),
        key="weather.csv",
    )
    hours = set()
    lasts = []
    for at, window in enumerate(windows(MONDAYS, SEATTLE, date(2012, 1, 9), date(2015, 12, 28))):
        is_special = window.end - window.start != timedelta(days=7) or reported(window)[0].month == 12
        if at % 5 and not is_special:
            continue
        material = report.collect(assign(drafter, window=window))
        first, last = reported(window)
        assert (last - first).days == 6
        hours.add((window.end - window.start) // timedelta(hours=1))
        lasts.append(last)
        for shift in (0, 7, 364):
            begin, end = first - timedelta(days=shift), last - timedelta(days=shift)
            expected = sql.execute(WEATHER, [begin, end]).fetchone()
            assert expected is not None
            if not expected[2]:
                continue
            found = computed(material, span(begin, end))
            for name, value in zip(WEATHER_NAMES, expected, strict=True):
                assert_alike(found, name, value)
    assert hours == {167, 168, 169}, "weeks in which clocks change are among them"
    assert len(lasts) > 55
    assert {last.year for last in lasts if last.month == 1 and last.day < 7} == {2013, 2014, 2015}, "years' ends too"


HOURLY = """
    CREATE TABLE hourly AS
    SELECT moment, (h.hour + 1) * precipitation::DECIMAL(18, 3) AS rain
    FROM (SELECT *, strptime(date, '%Y/%m/%d') + (INTERVAL 1 HOUR) * h.hour AS moment
          FROM raw, range(24) AS h(hour)) AS h
    WHERE moment BETWEEN '2015-03-03' AND '2015-03-12' OR moment BETWEEN '2015-10-27' AND '2015-11-05'
"""
HOURLY_RAIN = """
    SELECT sum(rain), count(*), arg_max(rain, moment) FROM hourly
    WHERE (moment - CASE WHEN moment >= '2015-03-08 10:00' AND moment < '2015-11-01 09:00'
                         THEN INTERVAL 7 HOUR ELSE INTERVAL 8 HOUR END)::DATE BETWEEN ? AND ?
"""


@pytest.mark.parametrize("written", ["instants", "local times of another zone"])
def test_hourly_rows_fall_into_the_local_days_of_the_schedule_where_clocks_change(
    bucket: MemoryBucket, assign: Any, shared_data: Path, sql: duckdb.DuckDBPyConnection, written: str
) -> None:
    load(sql, shared_data / "metrics" / "seattle-weather.csv")
    sql.execute(HOURLY)
    rows = sql.execute("SELECT moment, rain FROM hourly").fetchall()
    zoned = written == "instants"
    bucket.put(
        "hourly.jsonl",
        as_json_lines(
            {"date": f"{moment.isoformat()}{'Z' if zoned else ''}", "rain": str(rain)} for moment, rain in rows
        ),
        content_type="application/x-ndjson",
    )
    drafter = a_report(
        a_metric("Rain"),
        a_metric("Hours", "count", column="rain"),
        a_metric("Last", "last", column="rain"),
        key="hourly.jsonl",
        **({} if zoned else {"date_zone": "UTC"}),
    )
    counts = set()
    for last in (date(2015, 3, 10), date(2015, 11, 3)):
        for window in windows("cron(0 8 * * ? *)", SEATTLE, last - timedelta(days=4), last):
            material = report.collect(assign(drafter, window=window))
            day, _ = reported(window)
            for begin in (day, day - timedelta(days=1)):
                rain, hours, latest = sql.execute(HOURLY_RAIN, [begin, begin]).fetchall()[0]
                found = computed(material, str(begin))
                assert (found["Rain"], found["Hours"], found["Last"]) == (rain, hours, latest)
                counts.add(hours)
    assert counts == {23, 24, 25}


EXACT_HOURLY = """
    CREATE TABLE hourly AS
    SELECT moment, (h.hour + 1) * precipitation::DECIMAL(18, 3) + 1 AS rain, weather
    FROM (SELECT *, strptime(date, '%Y/%m/%d') + (INTERVAL 1 HOUR) * h.hour AS moment
          FROM raw, range(24) AS h(hour)) AS h
"""
EXACT_RAIN = """
    SELECT sum(rain), count(*), avg(rain::DOUBLE), min(rain), arg_max(rain, moment),
           sum(CASE WHEN weather = 'rain' THEN rain END)
    FROM hourly WHERE moment > ? AND moment <= ?
"""
EXACT_NAMES = ("Rain", "Hours", "Mean", "Least", "Last", "Rain, rain")


def shifted(moment: datetime, zone: ZoneInfo, days: int) -> datetime:
    """Return the instant so many days earlier by the clocks."""
    wall = moment.astimezone(zone).replace(tzinfo=None) - timedelta(days=days)
    return wall.replace(tzinfo=zone).astimezone(UTC)


@pytest.mark.parametrize(
    ("expression", "back", "ahead", "previous", "lengths"),
    [
        pytest.param("cron(0 6 * * ? *)", 3, 1, True, {23, 24, 25}, id="each morning"),
        pytest.param("cron(20 * * * ? *)", 1, 0, True, {1, 2}, id="each hour"),
        pytest.param("cron(0 */6 * * ? *)", 2, 1, True, {5, 6, 7}, id="each six hours"),
        pytest.param("cron(30 17 ? * MON,WED,FRI *)", 4, 2, False, {48, 71, 73}, id="three days a week"),
    ],
)
def test_exact_windows_of_an_hourly_table_across_clock_changes_and_a_years_end(
    bucket: MemoryBucket,
    assign: Any,
    shared_data: Path,
    sql: duckdb.DuckDBPyConnection,
    expression: str,
    back: int,
    ahead: int,
    previous: bool,
    lengths: set[int],
) -> None:
    load(sql, shared_data / "metrics" / "seattle-weather.csv")
    sql.execute(EXACT_HOURLY)
    zone = ZoneInfo(SEATTLE)
    metrics = (
        a_metric("Rain", group_by="weather", max_groups=12),
        a_metric("Hours", "count", column="rain"),
        a_metric("Mean", "mean", column="rain"),
        a_metric("Least", "min", column="rain"),
        a_metric("Last", "last", column="rain"),
    )
    drafter = a_report(*metrics, key="hourly.jsonl", window="exact", rows_every="hour")
    found_lengths = set()
    for day in (date(2015, 3, 8), date(2015, 11, 1), date(2015, 1, 1)):
        midnight = datetime(day.year, day.month, day.day)
        held = [midnight - timedelta(days=past) for past in (12, -4, 380, 360)]
        rows = sql.execute(
            "SELECT moment, rain, weather FROM hourly WHERE moment BETWEEN ? AND ? OR moment BETWEEN ? AND ?",
            held,
        ).fetchall()
        lines = ({"date": f"{at.isoformat()}Z", "rain": str(rain), "weather": kind} for at, rain, kind in rows)
        bucket.put("hourly.jsonl", as_json_lines(lines), content_type="application/x-ndjson")
        slots = list(windows(expression, SEATTLE, day - timedelta(days=back), day + timedelta(days=ahead)))
        for one, earlier in pairwise(slots):
            window = Window(one.start, one.end, one.zone, earlier.start)
            length = window.end - window.start
            ends = [moment.astimezone(zone).replace(tzinfo=None) for moment in (window.start, window.end)]
            wall = ends[1] - ends[0]
            material = report.collect(assign(drafter, window=window))
            found_lengths.add(length // timedelta(hours=1))
            figures = {one.label: one.value for one in material.values}
            before = earlier.start if previous else shifted(window.start, zone, wall.days)
            ago = shifted(window.end, zone, 364)
            ago_start = shifted(window.start, zone, 364) if wall >= timedelta(days=1) else ago - length
            for start, end in ((window.start, window.end), (before, window.start), (ago_start, ago)):
                naive = [moment.replace(tzinfo=None) for moment in (start, end)]
                expected = sql.execute(EXACT_RAIN, naive).fetchone()
                assert expected is not None
                assert expected[1]
                told = str(Span(start, end, zone))
                for name, value in zip(EXACT_NAMES, expected, strict=True):
                    assert_alike({name: figures[f"{name}, {told}"]} if value is not None else {}, name, value)
            parts = [value for label, value in figures.items() if label.startswith("Rain, hour up to ")]
            assert not parts or sum(parts) == figures[f"Rain, {Span(window.start, window.end, zone)}"]
            assert len(parts) in (0, length // timedelta(hours=1))
    assert found_lengths == lengths


EMPLOYMENT = """
    SELECT sum(nonfarm::DECIMAL(18, 3)), sum(retail_trade::DECIMAL(18, 3)),
           100 * sum(private::DOUBLE) / sum(nonfarm::DOUBLE)
    FROM raw WHERE month::DATE BETWEEN ? AND ?
"""


def test_each_month_of_ten_years_beside_the_month_before_and_a_year_ago(
    bucket: MemoryBucket, assign: Any, shared_data: Path, sql: duckdb.DuckDBPyConnection
) -> None:
    bucket.put("jobs.csv", load(sql, shared_data / "metrics" / "us-employment.csv"), content_type="text/csv")
    drafter = a_report(
        a_metric("Jobs", column="nonfarm"),
        a_metric("Retail", column="retail_trade"),
        a_metric("Private", column="private"),
        a_metric("Share", "ratio", numerator="Private", denominator="Jobs", percent=True),
        key="jobs.csv",
        date_column="month",
        rows_every="month",
    )
    seen = 0
    for window in windows(FIRST_OF_MONTH, LONDON, date(2006, 2, 1), date(2016, 1, 1)):
        material = report.collect(assign(drafter, window=window))
        first, last = reported(window)
        month = first.year * 12 + first.month - 1
        for shift in (0, 1, 12):
            year, number = divmod(month - shift, 12)
            begin = date(year, number + 1, 1)
            end = _last_of(begin)
            expected = sql.execute(EMPLOYMENT, [begin, end]).fetchone()
            assert expected is not None
            found = computed(material, span(begin, end))
            for name, value in zip(("Jobs", "Retail", "Share"), expected, strict=True):
                assert_alike(found, name, value)
        assert last == _last_of(first)
        assert material.warnings == ()
        seen += 1
    assert seen == 119


def _last_of(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


STOCKS = """
    SELECT symbol, avg(price::DOUBLE)
    FROM (SELECT *, strptime(date, '%b %-d %Y')::DATE AS day FROM raw)
    WHERE day BETWEEN ? AND ? GROUP BY symbol
"""


def test_each_quarter_of_prices_by_symbol_with_dates_written_out(
    bucket: MemoryBucket, assign: Any, shared_data: Path, sql: duckdb.DuckDBPyConnection
) -> None:
    bucket.put("stocks.csv", load(sql, shared_data / "metrics" / "stocks.csv"), content_type="text/csv")
    drafter = a_report(
        a_metric("Price", "mean", group_by="symbol", unit="USD"),
        key="stocks.csv",
        date_format="%b %d %Y",
        rows_every="month",
    )
    seen = 0
    for window in windows("cron(0 9 1 1,4,7,10 ? *)", "America/New_York", date(2000, 4, 1), date(2010, 1, 2)):
        material = report.collect(assign(drafter, window=window))
        first, last = reported(window)
        found = computed(material, span(first, last))
        expected = dict(sql.execute(STOCKS, [first, last]).fetchall())
        assert {name.partition(", ")[2] for name in found if ", " in name} == expected.keys()
        for symbol, price in expected.items():
            assert_alike(found, f"Price, {symbol}", price)
        seen += 1
    assert seen == 39


ELECTRICITY = """
    SELECT source, sum(net_generation::DECIMAL(18, 3)) FROM raw
    WHERE year::DATE BETWEEN ? AND ? GROUP BY ROLLUP (source)
"""


def test_each_year_of_electricity_by_source(
    bucket: MemoryBucket, assign: Any, shared_data: Path, sql: duckdb.DuckDBPyConnection
) -> None:
    bucket.put("power.csv", load(sql, shared_data / "metrics" / "iowa-electricity.csv"), content_type="text/csv")
    drafter = a_report(
        a_metric("Power", column="net_generation", group_by="source"),
        key="power.csv",
        date_column="year",
        rows_every="year",
    )
    years = []
    for window in windows(NEW_YEAR, "America/Chicago", date(2002, 1, 2), date(2018, 1, 2)):
        material = report.collect(assign(drafter, window=window))
        first, last = reported(window)
        for begin, end in ((first, last), (first.replace(year=first.year - 1), last.replace(year=last.year - 1))):
            found = computed(material, span(begin, end))
            for source, power in sql.execute(ELECTRICITY, [begin, end]).fetchall():
                assert_alike(found, "Power" if source is None else f"Power, {source}", power)
        years.append(first.year)
    assert years == list(range(2017, 2001, -1))
