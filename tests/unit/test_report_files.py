"""A report's file: what fits together, and the one line that says what does not."""

from pathlib import Path
from typing import Any

import pytest

from drafter import InvalidDrafter, read_drafter

FILE = """
title = "Weekly"
shape = "report"
instructions = "Be short."

[[sources]]
kind = "table"
id = "sales"
{source}

[[sources.metrics]]
name = "Orders"
aggregate = "sum"
column = "orders"

[[sources.metrics]]
{metric}
"""
KEY = 'key = "metrics/sales.csv"\ndate_column = "date"'
RATIO = 'name = "Rate"\naggregate = "ratio"\nnumerator = "Orders"\ndenominator = "Orders"'


def write(folder: Path, source: str = KEY, metric: str = RATIO) -> Path:
    path = folder / "weekly.toml"
    path.write_text(FILE.format(source=source, metric=metric))
    return path


@pytest.mark.parametrize(
    "source",
    [
        KEY,
        'url = "https://data.example/sales.csv"\ndate_column = "date"',
        f'{KEY}\nformat = "json_lines"\nrows_every = "month"\ndate_zone = "Europe/London"',
        f'{KEY}\ndate_format = "%b %d %Y"',
        f'{KEY}\ndate_format = "%d.%m.%Y %H:%M"\ndate_zone = "UTC"',
        f'{KEY}\nwindow = "exact"\nrows_every = "hour"\nrow_time = "start"',
        f'{KEY}\nwindow = "exact"\nrows_every = "any"\ndate_format = "%d.%m.%Y %H:%M"\ndate_zone = "UTC"',
    ],
)
def test_a_table_that_can_be_read(tmp_path: Path, source: str) -> None:
    read_drafter(write(tmp_path, source))


@pytest.mark.parametrize(
    "metric",
    [
        RATIO,
        f'{RATIO}\npercent = true\ndecimals = 2\ngroup_by = "country"\nmax_groups = 12',
        'name = "Revenue"\naggregate = "mean"\ncolumn = "revenue"\nunit = "USD"',
        'name = "Half"\naggregate = "max"\ncolumn = "n"\nunit = ""',
    ],
)
def test_a_metric_that_can_be_computed(tmp_path: Path, metric: str) -> None:
    read_drafter(write(tmp_path, metric=metric))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"source": 'date_column = "date"'}, "source 'sales' needs a key in the bucket or a url, one of them"),
        ({"source": f'{KEY}\nurl = "https://data.example/x"'}, "needs a key in the bucket or a url, one of them"),
        ({"source": f'{KEY}\nformat = "parquet"'}, "'parquet'"),
        ({"source": f'{KEY}\ndate_zone = "Europe/Londn"'}, "Europe/Londn"),
        ({"source": f'{KEY}\ndate_format = "%Y-%m"'}, "does not name a day"),
        ({"source": f'{KEY}\ndate_format = "%Q"'}, "date_format"),
        ({"source": f'{KEY}\ndate_format = "%Y-%m-%d %H:%M"'}, "has a time of day; give date_zone"),
        (
            {"source": f'{KEY}\nrows_every = "hour"'},
            "source 'sales': rows_every 'hour' is for window = \"exact\"; with days, give 'day'",
        ),
        ({"source": f'{KEY}\nrows_every = "minute"'}, "'minute'"),
        ({"source": f'{KEY}\nwindow = "hours"'}, "'hours'"),
        (
            {"source": f'{KEY}\nwindow = "exact"\nrows_every = "month"'},
            "rows_every 'month' is for window = \"days\"; an exact window takes 'hour', 'day' or 'any'",
        ),
        (
            {"source": f'{KEY}\nwindow = "exact"\ndate_format = "%d.%m.%Y"'},
            "window \"exact\" needs each row's time of day, and date_format '%d.%m.%Y' has none",
        ),
        ({"source": f'{KEY}\nrow_time = "start"'}, 'row_time "start" is for window = "exact" with rows_every'),
        (
            {"source": f'{KEY}\nrow_time = "start"\nwindow = "exact"\nrows_every = "any"'},
            'row_time "start" is for window = "exact" with rows_every',
        ),
        ({"metric": RATIO.replace('"ratio"', '"median"')}, "'median'"),
        (
            {"metric": f'{RATIO}\ncolumn = "x"'},
            "metric 'Rate' is a ratio: give numerator and denominator, and no column",
        ),
        ({"metric": RATIO.replace('denominator = "Orders"', "")}, "give numerator and denominator"),
        ({"metric": RATIO.replace('denominator = "Orders"', 'denominator = "Order"')}, "metric 'Rate' divides 'Order'"),
        ({"metric": RATIO.replace('denominator = "Orders"', 'denominator = "Rate"')}, "metric 'Rate' divides 'Rate'"),
        ({"metric": 'name = "Rate"\naggregate = "sum"'}, "metric 'Rate' is a sum: give column"),
        ({"metric": f'{RATIO}\nunit = "USD"\npercent = true'}, "has the unit 'USD' and percent; keep one of them"),
        ({"metric": f'{RATIO}\nunit = "5 USD"'}, "unit"),
        ({"metric": f'{RATIO}\ngroup_by = "a"\nmax_groups = 13'}, "max_groups"),
        ({"metric": f"{RATIO}\ndecimals = 10"}, "decimals"),
        ({"metric": RATIO.replace('"Rate"', '"Orders"')}, "names ['Orders', 'Orders'] repeat"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    path = write(tmp_path, **fields)
    with pytest.raises(InvalidDrafter) as refused:
        read_drafter(path)
    line = str(refused.value)
    assert line.startswith(str(path))
    assert said in line
    assert "\n" not in line
