"""Each setting of each shape, given wrongly in each way: one line names file, setting, value and remedy."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic.fields import FieldInfo

from drafter import InvalidDrafter, read_drafter
from galley_cli.main import invoke
from galley_cli.starting import ShapeName, starter
from support.settings import Line, bounds, choices, lines_of, put_in, tables

NAME = "price-watch"


def settings() -> Iterator[Any]:
    """Yield every setting once: a shape's text with that setting in it, the line it is on, and its field."""
    done = set()
    for shape in ShapeName:
        text = starter(shape, NAME).splitlines()
        fields = {(table.label, name): field for table in tables() for name, field in table.settings.items()}
        for line in lines_of("\n".join(text)):
            if (line.label, line.name) not in done:
                done.add((line.label, line.name))
                field = fields[line.label, line.name]
                yield pytest.param(put_in(text, line.number), line, field, id=f"{line.label} {line.name}".strip())


SETTINGS = list(settings())
every_setting = pytest.mark.parametrize(("text", "line", "field"), SETTINGS)
every_choice = pytest.mark.parametrize(
    ("text", "line", "field"), [one for one in SETTINGS if choices(one.values[2].annotation)]
)
everything_required = pytest.mark.parametrize(
    ("text", "line", "field"), [one for one in SETTINGS if one.values[2].is_required()]
)


def told(tmp_path: Path, text: list[str], line: Line, *instead: str) -> str:
    """Return what is said of the text with other lines in the setting's place, without the file's name."""
    end = line.number + 1
    if text[line.number].endswith('"""'):
        end = text.index('"""', end) + 1
    path = tmp_path / f"{NAME}.toml"
    path.write_text("\n".join([*text[: line.number], *instead, *text[end:]]), encoding="utf-8")
    with pytest.raises(InvalidDrafter) as failure:
        read_drafter(path)
    said = str(failure.value)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    return said.removeprefix(f"{path}: ")


@every_setting
def test_a_value_of_another_type_is_named_with_what_it_must_be(
    tmp_path: Path, text: list[str], line: Line, field: FieldInfo
) -> None:
    is_text = line.value is None or isinstance(line.value, str)
    wrong = "7" if is_text else "'seven'"
    said = told(tmp_path, text, line, f"{line.name} = {wrong}")
    assert f"{line.name} is {wrong}: " in said
    expected = choices(field.annotation)
    remedy = said.partition(": give ")[2] or said.partition(": use ")[2]
    assert remedy, said
    assert all(str(choice) in remedy for choice in expected), said


@every_setting
def test_a_value_out_of_its_range_is_named_with_the_bound(
    tmp_path: Path, text: list[str], line: Line, field: FieldInfo
) -> None:
    limits = bounds(field)
    for bound, wrong in (("ge", -1), ("gt", 0), ("le", 1), ("lt", 0)):
        if bound in limits and not isinstance(line.value, str):
            value = limits[bound] + wrong
            said = told(tmp_path, text, line, f"{line.name} = {value}")
            assert f"{line.name} is {value}: give " in said
            assert str(limits[bound]) in said.partition(": give ")[2], said
    if isinstance(line.value, str) and limits.get("min_length") == 1:
        assert f"{line.name} is '': must not be empty" in told(tmp_path, text, line, f'{line.name} = ""')
    if isinstance(line.value, str) and "max_length" in limits:
        long = f'"{line.value}{"a" * (limits["max_length"] + 1)}"'
        assert f"give at most {limits['max_length']} characters" in told(tmp_path, text, line, f"{line.name} = {long}")


@every_choice
def test_a_choice_that_there_is_not_is_named_with_those_that_there_are(
    tmp_path: Path, text: list[str], line: Line, field: FieldInfo
) -> None:
    said = told(tmp_path, text, line, f'{line.name} = "nonsense"')
    assert f"{line.name} is 'nonsense': use " in said
    assert all(str(one) in said.partition(": use ")[2] for one in choices(field.annotation)), said


@everything_required
def test_what_must_be_there_is_missed(tmp_path: Path, text: list[str], line: Line, field: FieldInfo) -> None:
    said = told(tmp_path, text, line)
    assert f"{line.name} is missing; add it" in said
    assert all(str(one) in said for one in choices(field.annotation)), said


@every_setting
def test_a_misspelt_setting_is_named_with_the_one_that_was_meant(
    tmp_path: Path, text: list[str], line: Line, field: FieldInfo
) -> None:
    wrong = line.name[:-1]
    said = told(tmp_path, text, line, text[line.number].replace(line.name, wrong, 1), *_rest(text, line))
    assert f"{wrong} is not known; did you mean {line.name}?" in said or line.name == "kind", said
    if line.name == "kind":
        assert "kind is missing; add it" in said


def _rest(text: list[str], line: Line) -> list[str]:
    """Return the further lines of a value that has several."""
    if not text[line.number].endswith('"""'):
        return []
    return text[line.number + 1 : text.index('"""', line.number + 1) + 1]


@pytest.mark.parametrize("table", list(tables()), ids=lambda table: table.label or "the whole file")
def test_a_setting_that_is_like_none_is_named_with_all_that_there_are(tmp_path: Path, table: Any) -> None:
    shape = ShapeName(min(table.shapes))
    text = starter(shape, NAME).splitlines()
    line = next(line for line in lines_of("\n".join(text)) if line.label == table.label)
    shown = put_in(text, line.number)
    said = told(tmp_path, shown, line, 'zzzz = "x"', shown[line.number], *_rest(shown, line))
    assert "zzzz is not known; remove it or use one of " in said
    assert set(table.settings) <= set(said.partition("use one of ")[2].replace(",", "").split()), said


def test_the_command_says_so_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "my.toml"
    path.write_text(starter(ShapeName.DIGEST, NAME).replace("# pending_limit = 3", "pending_limt = 3"))
    assert invoke(["draft", "daily-digest", "--file", str(path)]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (
        "",
        f"galley: {path}: pending_limt is not known; did you mean pending_limit?\n",
    )
