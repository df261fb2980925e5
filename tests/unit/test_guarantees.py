"""Each guarantee of docs/design.md has tests that bear its name."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def marked() -> list[tuple[str, list[str], str]]:
    """Return every test with a mark: where it is, its marks, and its name."""
    found = []
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
                marks = [mark for one in decorators for mark in re.findall(r"mark\.guarantee\('(G\d+)'\)", one)]
                found.append((f"{path.relative_to(TESTS)}:{node.lineno}", marks, node.name))
    return found


def test_every_guarantee_is_proved_under_its_name() -> None:
    proved = {mark for _, marks, _ in marked() for mark in marks}
    assert proved == {f"G{number}" for number in range(1, 12)}


def test_marks_and_names_agree() -> None:
    wrong = [
        f"{where} {name} {marks}"
        for where, marks, name in marked()
        if {f"G{number}" for number in re.findall(r"(?<=_g)\d+(?=_)", name)} != set(marks)
    ]
    assert wrong == []
