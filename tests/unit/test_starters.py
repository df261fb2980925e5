"""What ``galley new`` writes: right as it stands, and with every setting of its shape."""

from decimal import Decimal
from pathlib import Path

import pytest
from pydantic_core import PydanticUndefined

from drafter import read_drafter
from galley_cli.starting import ShapeName, starter
from support.settings import SHAPES, Line, lines_of, put_in, tables


def test_every_shape_has_a_starter() -> None:
    assert {str(shape) for shape in ShapeName} == set(SHAPES)


@pytest.mark.parametrize("shape", ShapeName)
def test_a_starter_is_a_drafter_as_it_stands(tmp_path: Path, shape: ShapeName) -> None:
    path = tmp_path / "price-watch.toml"
    path.write_text(starter(shape, "price-watch"), encoding="utf-8")
    made = read_drafter(path)
    assert (made.name, made.shape, made.title) == ("price-watch", str(shape), "Price watch")
    assert "my-drafter" not in path.read_text().casefold()
    assert "@" not in path.read_text(), "each part is put in"


@pytest.mark.parametrize("shape", ShapeName)
def test_every_setting_of_a_shape_is_in_its_starter_with_its_default(shape: ShapeName) -> None:
    there: dict[tuple[str, str], list[Line]] = {}
    for line in lines_of(starter(shape, "price-watch")):
        there.setdefault((line.label, line.name), []).append(line)
    wanted = {
        (table.label, name): field
        for table in tables()
        if shape in table.shapes
        for name, field in table.settings.items()
    }
    assert set(there) == set(wanted), "add what is missing to cli/galley_cli/starters"
    for place, field in wanted.items():
        if field.default is PydanticUndefined or field.default is None:
            continue
        assert [line.commented for line in there[place]] == [True], f"{place} has a default, so it is commented out"
        assert there[place][0].value == _as_toml(field.default), place


def _as_toml(value: object) -> object:
    return Decimal(str(value)) if isinstance(value, float) else value


@pytest.mark.parametrize("shape", ShapeName)
def test_every_line_that_is_commented_out_can_be_put_in(tmp_path: Path, shape: ShapeName) -> None:
    text = starter(shape, "price-watch").splitlines()
    commented = [line for line in lines_of("\n".join(text)) if line.commented]
    assert commented
    path = tmp_path / "price-watch.toml"
    for line in commented:
        path.write_text("\n".join(put_in(text, line.number)), encoding="utf-8")
        read_drafter(path)
