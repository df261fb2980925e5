"""Numbers, dates and times of a draft against those of its sources: what is one figure in two spellings, what not."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from galley.drafts import Item
from grounding import MOST_FINDINGS, Facts, Kind, Passage, Place, told, ungrounded
from quantities import exact
from support.briefs import SLOT, an_item

SAID = ("Morning mail", "Write about the 3 most important ones.")


def found_in(text: str, *sources: str, figures: str = "", items: tuple[Item, ...] = ()) -> list[str]:
    """Return what a text tells that these sources do not."""
    made = tuple(an_item(place, title="", text=text, author=None) for place, text in enumerate(sources, start=1))
    facts = Facts((*made, *items), figures, SAID, SLOT)
    return [finding.what for finding in ungrounded([Passage(text, Place(1))], facts)]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("1,234,567 visitors", "1,234,567 visitors"),
        ("1,234,567 visitors", "1.2 million visitors"),
        ("1,234,567 visitors", "1.23 million"),
        ("1,234,567 visitors", "1.2m visitors"),
        ("1,234,567 visitors", "1235k"),
        ("1,234,567 visitors", "about 1,200,000"),
        ("1.2 million euros", "€1,200,000"),
        ("€1.2m", "1.2 million euros"),
        ("12.3 %", "12 %"),
        ("12.3 %", "12%"),
        ("12.3%", "12.3 percent"),
        ("12.5 %", "13 per cent"),
        ("12.5 %", "12 percent"),
        ("12.35", "12.4"),
        ("12.45", "12.4"),
        ("a share of 0.123", "12.3 %"),
        ("grew by 12 %", "grew by 12 percentage points, or 12-percent"),
        ("Growth (%) | 7", "growth of 7 %"),
        ("1,234", "1234"),
        ("1234", "1,234"),
        ("1234", "1 234"),
        ("1234", "1\u202f234"),
        ("1234", "1'234"),
        ("1234", "1’234"),
        ("1.234,5", "1,234.5"),
        ("1,234.5", "1.234,5"),
        ("1.860 €", "€1,860"),
        ("1,860.00 EUR", "1.860 €"),
        ("12,34,567 rupees", "1,234,567 rupees"),
        ("-70.6%", "fell by 70.6 %"),
        ("the 3rd and the 17th", "on the 3rd and the 17th"),
        ("3 attempts", "three attempts"),
        ("three attempts", "3 attempts"),
        ("twenty-five boards", "25 boards"),
        ("two hundred boards", "200 boards"),
        ("fünf Tage", "5 days"),
        ("cinq jours", "five days"),
        ("2026-11-26", "26 November 2026"),
        ("2026-11-26", "November 26th"),
        ("2026-11-26", "Thursday 26 November"),
        ("26.11.2026", "26 Nov 2026"),
        ("11/26/2026", "Nov. 26, 2026"),
        ("26. November", "26 November"),
        ("le 3 février 2026", "3 February"),
        ("2026-11-16 to 2026-11-22", "from 16 to 22 November 2026"),
        ("2026-11-16 to 2026-11-22", "November 16–22"),
        ("2026-11-16 to 2026-11-22", "from Monday 16 to Sunday the 22nd"),
        ("2026-11-16 to 2026-11-22", "in week 47 of 2026, Q4"),
        ("August 7, 2024", "August 2024"),
        ("at 17:05", "at 5:05 pm"),
        ("5 p.m.", "17:00"),
        ("at 5 o'clock", "by 17:00"),
        ("17 Uhr", "5 pm"),
        ("2026-11-26T17:05:09Z", "17:05 on 26 November"),
        ("90 minutes", "1.5 hours"),
        ("1,234 ms", "1.2 s"),
        ("2048 MiB", "2 GiB"),
        ("2.4 m", "240 cm"),
        ("24 square metres", "24 square metres"),
        ("12 to 15 million", "between 12 and 15 million"),
        ("12,000,000 and 15,000,000", "12 to 15 million"),
        ("Django 5.0.7", "Django 5.0.7 of the 5.0 series"),
        ("CVE-2024-38875", "CVE-2024-38875"),
        ("order LR-20418", "order LR-20418"),
        ("sha 3fa85f64", "commit 3fa85f64"),
        ("07700 900418", "call 07700 900418"),
        ("97 of them", "nearly 100"),
        ("0.30000000000000004", "0.3"),
        ("1,234 of them", "more than 1,200"),
        ("Nothing with numbers", "the last 24 hours, the past 7 days, the week"),
        ("Nothing with numbers", "one letter, the first of two, two thirds of it"),
        ("Nothing with numbers", "the 3 most important ones"),
        ("Nothing with numbers", "due at 05:00 on 30 March 2026, yesterday 29 March"),
        ("Nothing with numbers", "a sentence that was cut at 12 [… cut]"),
        ("Nothing with numbers", "1. the first\n2. the second"),
        ("١٢٣٤ visitors", "1,234 visitors"),
    ],
)
def test_one_figure_in_two_spellings_is_one(source: str, text: str) -> None:
    assert found_in(text, source) == []


@pytest.mark.parametrize(
    ("source", "text", "named"),
    [
        ("1,234,567 visitors", "1,234,576 visitors", "1,234,576"),
        ("1,234,567 visitors", "1.3 million visitors", "1.3 million"),
        ("1,234,567 visitors", "1,200,000 visitors", "1,200,000"),
        ("12.3 %", "13 %", "13 %"),
        ("12.5 %", "12.6 %", "12.6 %"),
        ("12 orders, and 13 returns", "up 13 %", "13 %"),
        ("12.36", "12.3", "12.3"),
        ("€500", "$500", "$500"),
        ("1,234", "1,243", "1,243"),
        ("1.234,5", "1,234.6", "1,234.6"),
        ("6 attempts, 30 days", "three attempts", None),
        ("6 attempts, 30 days", "thirteen attempts", "thirteen"),
        ("the 17th", "the 18th", "18th"),
        ("2026-11-26", "27 November", "27 November"),
        ("2026-11-26", "26 October", "26 October"),
        ("2026-11-26", "26 November 2025", "26 November 2025"),
        ("2026-11-26", "2025-11-26", "2025-11-26"),
        ("2026-11-16 to 2026-11-22", "16 to 23 November", "16 to 23 November"),
        ("2026-11-16", "in week 48", "48"),
        ("2026-11-16", "in Q2", "2"),
        ("at 17:05", "at 17:06", "17:06"),
        ("at 17:05", "at 5:05 am", "5:05 am"),
        ("90 minutes", "2.5 hours", "2.5"),
        ("12 to 15 million", "12 to 16 million", "16 million"),
        ("Django 5.0.7", "Django 5.0.8", "5.0.8"),
        ("CVE-2024-38875", "CVE-2024-38876", "38876"),
        ("order LR-20418", "order LR-20481", "20481"),
        ("97 of them", "nearly 80", "80"),
        ("", "Sales rose to 4,711.", "4,711"),
        ("1234 visitors", "١٢٣٥ visitors", "١٢٣٥"),
        ("12345678901234567890123456789", "12345678901234567890123456788", "12345678901234567890123456788"),
    ],
)
def test_another_figure_is_found(source: str, text: str, named: str | None) -> None:
    assert found_in(text, source) == ([] if named is None else [named])


def told_exactly(text: str, *values: tuple[str, str], figures: str = "", item: str = "") -> list[str]:
    """Return what a text tells that neither these exact values do, nor what else stands in the figures and the item."""
    exactly = [reading for value, unit in values for reading in exact(Decimal(value), unit)]
    facts = Facts((an_item(title="", text=item, author=None),), figures, SAID, SLOT, exactly)
    return [finding.what for finding in ungrounded([Passage(text, Place(1))], facts)]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        ("2.4857142857", "", "2.49, 2.486, or about 2.5"),
        ("2.45", "", "2.5 or 2.4 or 2"),
        ("-70.6129", "%", "fell by 70.6 %, 70.61 percent, or 71%"),
        ("-5.04", "percentage points", "down 5.0 percentage points"),
        ("2500.5", "USD", "$2,500.50, $2,501, USD 2.5 thousand"),
        ("0.154", "", "a rate of 0.15, or 15.4 %"),
        ("90", "min", "90 minutes, or 1.5 hours"),
        ("1234567", "thousand people", "1,234,567 thousand people, or 1.23 billion"),
        ("1e30", "", "nothing that can be compared"),
    ],
)
def test_an_exact_value_may_be_told_with_any_rounding_and_in_any_form_of_its_unit(
    value: str, unit: str, text: str
) -> None:
    assert told_exactly(text, (value, unit)) == []


@pytest.mark.parametrize(
    ("value", "unit", "figures", "text", "named"),
    [
        pytest.param("6.45", "", "mean 6.5", "7 of them", "7", id="rounded twice"),
        pytest.param("2.45", "", "mean 2.5", "2.50", "2.50", id="more decimals than are so"),
        pytest.param("84.1", "", "down 84.1", "84.1 %", "84.1 %", id="another unit"),
        pytest.param("500", "USD", "500 USD", "€500", "€500", id="another currency"),
        pytest.param("143093", "", "143,093", "143.1", "143.1", id="its comma read as a point"),
        pytest.param("1", "", "143,093", "143.1", "143.1", id="the comma of another number read as a point"),
    ],
)
def test_what_a_figure_shows_rounded_counts_as_the_exact_value_that_it_is(
    value: str, unit: str, figures: str, text: str, named: str
) -> None:
    assert told_exactly(text, (value, unit), figures=figures) == [named]


def test_the_item_that_tells_of_a_figure_adds_no_reading_to_it() -> None:
    assert told_exactly("1.2 visits", ("1234", ""), item="Visits: 1,234") == ["1.2"]
    assert told_exactly("1.2 visits", ("1235", ""), item="Visits: 1,234") == [], "no figure: as it may be meant"


def test_what_stands_beside_the_exact_values_may_be_told_too() -> None:
    figures = "2026-11-16 to 2026-11-22; 21 rows were read; 1,204.5 was the target of 3 of 7 shops"
    said = "From 16 to 22 November 21 rows were read; 3 of 7 shops had a target of 1,204.5."
    assert told_exactly(said, ("84.1", ""), figures=figures) == []


@pytest.mark.parametrize("number", ["9" * 18, "9" * 19, "9" * 60, "0." + "9" * 17, "1,000,000,000,000,000", "0" * 18])
@pytest.mark.parametrize("unit", ["", " trillion", " trillion years", " PiB", " trillion PiB", " %", " to 5 trillion"])
def test_no_number_is_too_large_to_be_compared(number: str, unit: str) -> None:
    assert found_in(f"{number}{unit}", f"{number}{unit}") == []
    found_in(f"about {number}{unit}", "12, 0.5 and 100 %")


def test_items_may_be_counted() -> None:
    sources = ["Ada wrote.", "Ben wrote.", "Cy wrote.", "Di wrote."]
    assert found_in("4 mails, 3 urgent letters and three more", *sources) == []
    assert found_in("5 mails, 3 customers, five of them", *sources) == ["5", "five"]


def test_what_a_section_cites_and_lists_may_be_counted() -> None:
    facts = Facts(tuple(an_item(place, text="", title="", author=None) for place in range(1, 10)), "", SAID, SLOT)
    passage = Passage("7 customers wait.", Place(1), frozenset({7}))
    assert list(ungrounded([passage], facts)) == []
    assert len(list(ungrounded([replace(passage, counts=frozenset())], facts))) == 1


def test_figures_and_what_items_say_of_themselves_are_sources() -> None:
    item = an_item(
        title="Order 20611", author="Ada 77", source="list 5", published=datetime(2025, 2, 3, 4, 5, tzinfo=UTC)
    )
    text = "Order 20611 by 77 from list 5, of 3 February 2025 at 04:05: 8,150 up 3.5%."
    assert found_in(text, items=(item,), figures="| Sales | 8,150 | up 276 (+3.5%) |") == []


def test_a_finding_tells_where_it_is() -> None:
    text = f"{'Many words stand here. ' * 5}Then sales rose to 1,243 units in the north. {'More words follow. ' * 5}"
    facts = Facts((an_item(text="1,234 units"),), "", SAID, SLOT)
    (finding,) = ungrounded([Passage(text, Place(2, "Sales"))], facts)
    assert finding.kind is Kind.NUMBER
    assert str(finding) == (
        'a number that is in no source: 1,243 (section 2 "Sales": …words stand here. Then sales rose to 1,243 units in'
        " the north. More words follow.…)"
    )


def test_of_many_findings_the_first_are_named_and_the_rest_counted() -> None:
    text = " ".join(str(7_000 + number) for number in range(300))
    findings = list(ungrounded([Passage(text, Place(0))], Facts((), "", SAID, SLOT)))
    lines = list(told(findings))
    assert len(findings) == 300
    assert len(lines) == MOST_FINDINGS + 1
    assert lines[-1] == f"{Kind.NUMBER}: {300 - MOST_FINDINGS} more"


@pytest.mark.parametrize(
    "piece",
    [
        "1",
        "1,",
        "1.",
        "1 ",
        "1,234",
        "12 to ",
        "1 May ",
        "May 1, ",
        "1/",
        "1:",
        "one ",
        "two hundred ",
        "1-",
        "a1",
        "9" * 50,
        *("1 234", "1'", "mid-", "€", "1.5 m ", "3rd ", "10-11-12", "2026-11-", "1 and ", "%", "1 h "),
    ],
)
@pytest.mark.timeout(30)
def test_it_takes_time_in_proportion_to_the_text(piece: str) -> None:
    text = piece * (30_000 // len(piece))
    found_in(text, text[:25_000])


@pytest.mark.parametrize("piece", ["7\n\n", "\n 7", "\n\n\n\n\n\n7"])
@pytest.mark.timeout(30)
def test_numbers_of_no_source_take_time_in_proportion_too(piece: str) -> None:
    assert found_in(piece * (150_000 // len(piece)), "nothing")
