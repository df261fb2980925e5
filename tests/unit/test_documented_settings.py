"""docs/writing-a-drafter.md lists every setting of every shape, with its default, its bounds and its choices."""

import re
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from support.outside import ROOT
from support.settings import Table, bounds, choices, tables

PAGE = (ROOT / "docs/writing-a-drafter.md").read_text(encoding="utf-8")
TABLES = list(tables())


@dataclass(frozen=True)
class Row:
    """What the page says of a setting."""

    type: str
    default: str
    meaning: str


def heading_of(table: Table) -> str:
    if not table.heading:
        return "### The whole file"
    return f"### `{table.heading}`" + (f' kind = "{table.kind}"' if table.kind else "")


def rows_of(table: Table) -> dict[str, Row]:
    """Return the rows of the first table below a heading."""
    _, found, below = PAGE.partition(f"\n{heading_of(table)}\n")
    assert found, f"docs/writing-a-drafter.md has no heading {heading_of(table)!r}"
    section = re.split(r"\n##", below)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", section, re.M)]
    assert cells[0] == ["setting", "type", "default", "meaning"]
    return {name.strip("`"): Row(*rest) for name, *rest in cells[2:]}


@pytest.mark.parametrize("table", TABLES, ids=heading_of)
def test_every_setting_has_its_row_and_no_row_is_without_a_setting(table: Table) -> None:
    assert set(rows_of(table)) == set(table.settings)


@pytest.mark.parametrize("table", TABLES, ids=heading_of)
def test_each_row_has_the_default_the_bounds_and_the_choices(table: Table) -> None:
    rows = rows_of(table)
    for name, field in table.settings.items():
        assert rows[name].default == default_of(field), name
        assert rows[name].type, name
        assert rows[name].meaning or name == "kind", name
        told = set(re.findall(r"[a-z_0-9]+", rows[name].type))
        assert set(choices(field.annotation)) <= told, name
        limits = bounds(field)
        numbers = {str(int(limits[one])) for one in ("gt", "ge", "lt", "le") if one in limits}
        assert numbers <= told, f"{name}: {rows[name].type} lacks a bound of {numbers}"


def default_of(field: FieldInfo) -> str:
    """Return a default as the page has it: as one would write it into the file."""
    value: Any = field.default
    if value is PydanticUndefined:
        return ""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def test_no_heading_is_of_a_table_that_there_is_not() -> None:
    headings = set(re.findall(r"^### (?:The whole file|`\[.*)$", PAGE, re.M))
    assert headings == {heading_of(table) for table in TABLES}
