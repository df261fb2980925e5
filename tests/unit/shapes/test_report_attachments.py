"""The table and the chart that go with a report: what is in them, what can never be, and how large they get."""

import csv
import io
import re
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import pytest

from galley.drafts import MOST_ATTACHED_BYTES, Attachment, Draft
from shapes import report
from shapes.report.chart import MOST_PANELS, Bar, Panel, draw
from shapes.shape import Material
from support.memory_bucket import MemoryBucket
from unit.shapes.reports import KEY, a_metric, a_report, between, each_day, put_rows

SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = {
    "svg": {"viewBox", "width", "height", "role", "font-family", "font-size"},
    "title": set[str](),
    "g": {"transform"},
    "rect": {"x", "y", "width", "height", "fill"},
    "path": {"d", "fill", "stroke"},
    "text": {"x", "y", "fill", "text-anchor", "font-weight"},
}
HOSTILE = (
    "<script>alert(1)</script>",
    '"><image href="https://evil.example/p.png"/>',
    "]]><!ENTITY x SYSTEM 'file:///etc/passwd'>",
    "&xxe; &#x3c;script&#x3e;",
    "a\x00b\x0bc\ud800d\u202ee\uffff",
)


def attached(
    bucket: MemoryBucket, assign: Any, *metrics: Any, **source: Any
) -> tuple[Attachment, Attachment, Material]:
    material = report.collect(assign(a_report(*metrics, **source), window=between("2026-11-16", "2026-11-22")))
    table, chart = material.attachments
    return table, chart, material


def is_harmless(svg: str) -> ElementTree.Element:
    """Check that a drawing is of shapes and text alone, and return it."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    for element in root.iter():
        name = element.tag.removeprefix(SVG)
        assert set(element.attrib) <= ALLOWED[name], (name, element.attrib)
        for value in element.attrib.values():
            assert re.fullmatch(r"[\w .#()-]*", value), value
    assert "<!" not in svg
    assert "<?" not in svg
    return root


def test_the_table_holds_every_figure_for_programs(bucket: MemoryBucket, assign: Any) -> None:
    rows = [f"{day},{1000 + number}.5,FI" for number, day in enumerate(each_day("2026-11-09", "2026-11-22"))]
    put_rows(bucket, "date,revenue,country", *rows)
    table, _, _ = attached(bucket, assign, a_metric("Revenue", unit="USD", group_by="country"))
    assert (table.name, table.media_type) == ("figures.csv", "text/csv")
    found = list(csv.DictReader(io.StringIO(table.text)))
    total = {"Table": KEY, "Figure": "Revenue", "Group": "", "Unit": "USD", "From": "2026-11-16", "To": "2026-11-22"}
    figures = {"Value": "7073.5", "Before": "7024.5", "Change": "49.0", "Change %": "0.7", "Year ago": ""}
    assert found[0] == total | figures
    assert found[1] == total | figures | {"Group": "FI"}
    assert [row["Value"] for row in found[2:]] == [f"{1007 + number}.5" for number in range(7)]
    assert sum(Decimal(row["Value"]) for row in found[2:]) == Decimal("7073.5")


def test_no_cell_of_the_table_is_a_formula(bucket: MemoryBucket, assign: Any) -> None:
    groups = ["=HYPERLINK(1)", "+1", "-1", "@x", "FI"]
    put_rows(bucket, "date,orders,country", *(f'2026-11-16,-1,"{group}"' for group in groups))
    table, _, _ = attached(bucket, assign, a_metric("Orders", group_by="country", max_groups=9))
    found = list(csv.DictReader(io.StringIO(table.text)))
    assert {row["Group"] for row in found} == {"", "'=HYPERLINK(1)", "'+1", "'-1", "'@x", "FI"}
    assert found[0]["Value"] == "-5", "a number stays one"


def test_the_chart_shows_each_day_beside_the_one_before_it(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, "date,orders", *(f"{day},{day.day}" for day in each_day("2026-11-09", "2026-11-22")))
    _, chart, _ = attached(bucket, assign, a_metric("Orders"))
    assert (chart.name, chart.media_type) == ("chart.svg", "image/svg+xml")
    root = is_harmless(chart.text)
    before, now, _ = [path.attrib["d"] for path in root.iter(f"{SVG}path")]
    heights = [float(found) for found in re.findall(r"v(-?[\d.]+)", now)]
    assert heights == pytest.approx([-66 * day / 22 for day in range(16, 23)], abs=0.06)
    assert len(re.findall("M", before)) == 7
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts[:4] == ["Orders", "133, before 84", "Mon 2026-11-16", "Sun 2026-11-22"]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_in_a_chart_becomes_markup(text: str) -> None:
    root = is_harmless(draw(text, [Panel(text, text, (Bar(text, Decimal(1), Decimal(-2)),))]))
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == set(ALLOWED)
    assert "script" not in {element.tag for element in root.iter()}


@pytest.mark.parametrize(
    "bars",
    [
        pytest.param((), id="none"),
        pytest.param((Bar("a", None, None), Bar("b", None, None)), id="without values"),
        pytest.param((Bar("a", Decimal(0), Decimal(0)),), id="zeros"),
        pytest.param((Bar("a", Decimal("9e249"), Decimal("-9e249")), Bar("b", Decimal("1e-90"))), id="huge and tiny"),
        pytest.param((Bar("a", Decimal("9e307"), Decimal("-9e307")),), id="as far apart as can be"),
        pytest.param(tuple(Bar(str(at), Decimal(-at)) for at in range(99)), id="many and negative"),
    ],
)
def test_any_bars_can_be_drawn(bars: tuple[Bar, ...]) -> None:
    svg = draw("Title", [Panel("Orders", "1", bars)])
    is_harmless(svg)
    assert "nan" not in svg
    assert "inf" not in svg


def test_what_does_not_fit_is_left_out_and_said(bucket: MemoryBucket, assign: Any) -> None:
    names = [f"{number} {'ä' * 90}" for number in range(20)]
    days = each_day("2026-11-09", "2026-11-22")
    rows = [f'{day},{"9" * 28}.123456789012,"{"ö" * 50}{at}"' for day in days for at in range(12)]
    put_rows(bucket, "date,orders,country", *rows)
    metrics = [a_metric(name, column="orders", group_by="country", max_groups=12) for name in names]
    table, chart, material = attached(bucket, assign, *metrics)
    assert table.size + chart.size <= MOST_ATTACHED_BYTES
    assert re.search(r"figures\.csv is full, \d+ of its lines are left out", material.warnings[0])
    texts = [text.text for text in is_harmless(chart.text).iter(f"{SVG}text")]
    assert texts[-1] == f"and {20 - MOST_PANELS} figures not drawn"
    Draft("Title", "Body", (), (), "offline", attachments=material.attachments)


def test_a_figure_of_one_period_is_drawn_as_bars_of_the_times_compared(bucket: MemoryBucket, assign: Any) -> None:
    put_rows(bucket, "date,orders", "2025-11-17,4", "2026-11-09,5", "2026-11-16,6")
    _, chart, _ = attached(bucket, assign, a_metric("Orders"), rows_every="any")
    texts = [text.text for text in is_harmless(chart.text).iter(f"{SVG}text")]
    assert texts[2:4] == ["a year ago, 2025-11-17", "2026-11-16 to 2026-11-22"]
