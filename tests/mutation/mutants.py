"""Finding mutants: small edits of the code that take one condition, one write or one number away.

Nothing is listed by hand that the code itself can tell: every guard is made to hold never and always, every operand and
every part of a comparison is left out, every bound is moved by one, and so on (``_Finder``). Conditions inside strings,
DynamoDB's and SQL's, are edited inside their strings: a term is replaced by one that always or never holds and that
names the same placeholders, so that the request stays a valid one. Tools for mutation tests in general (mutmut,
cosmic-ray) replace such a string as a whole, which any test notices and which proves nothing.

What cannot be found by rule, like the order of two calls, is in ``by_hand``.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit of one file. ``where`` is the function, ``what`` the edit in words; together they are its name.

    ``begin`` and ``end`` are offsets in the file's bytes. ``lines`` are those of the statement that is edited; None for
    one that runs at import.
    """

    path: str
    where: str
    what: str
    line: int
    begin: int
    end: int
    text: str
    lines: range | None

    @property
    def name(self) -> str:
        """What the mutant is called wherever it must be told from all others; no line number is in it."""
        return f"{Path(self.path).name} {self.where}: {self.what}"

    def applied(self, source: bytes) -> bytes:
        """Return the file with the edit made."""
        return source[: self.begin] + self.text.encode() + source[self.end :]


@dataclass(frozen=True, slots=True)
class Target:
    """A file that guarantees rest on. ``only`` or ``without`` name functions; ``strings`` finds in its strings."""

    path: str
    only: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    strings: Callable[[str], Iterator["Edit"]] | None = None

    def has(self, where: str) -> bool:
        """Tell whether a function is to be mutated, by its qualified name."""
        names = set(where.split("."))
        return not names & self.without and (not self.only or bool(names & self.only))


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit within a text: from where to where, by what, and what to call it."""

    begin: int
    end: int
    text: str
    what: str


_TERM = re.compile(r"attribute_(?:not_)?exists\((?:\w+|\{[^}]*\}+)\)|[#\w]+ (?P<op><=|>=|<|>|=) :\w+")
_SQL_TERM = re.compile(r"\w+ (?:=|<=|>=|<|>|IS) \?|\w+ IS NOT NULL")
_SUM = re.compile(r"(\w+) = \1 \+ ([\w.]+|\?)")
_KEPT = re.compile(r"(\w+) = excluded\.\1\b")
_CONSTRAINT = re.compile(r" CHECK \([^)]*\)|,\s*FOREIGN KEY \([^)]*\) REFERENCES \w+ \([^)]*\)| UNIQUE\b")
_MOVED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_BOUNDS: dict[type[ast.cmpop], str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}


def dynamodb_conditions(text: str) -> Iterator[Edit]:
    """Edit each term of a condition expression of DynamoDB's."""
    if re.match(r"f?[\"'](SET|ADD|REMOVE) ", text):
        return
    for term in _TERM.finditer(text):
        it = term.group()
        yield Edit(term.start(), term.end(), f"({it} OR NOT {it})", f"without `{it}`")
        yield Edit(term.start(), term.end(), f"({it} AND NOT {it})", f"`{it}` never holds")
        if moved := _MOVED.get(term.group("op") or ""):
            at, until = term.span("op")
            yield Edit(at, until, moved, f"`{it}` becomes {moved}")


def sql_conditions(text: str) -> Iterator[Edit]:
    """Edit each term of a WHERE, and what an upsert makes of the value that is there."""
    begin = text.rfind("WHERE ")
    for term in _SQL_TERM.finditer(text, begin) if begin >= 0 else ():
        yield Edit(term.start(), term.end(), f"({term.group()} OR 1)", f"without `{term.group()}`")
    for added in _SUM.finditer(text):
        yield Edit(added.start(), added.end(), f"{added[1]} = {added[2]}", f"`{added.group()}` forgets what was there")
    for kept in _KEPT.finditer(text):
        yield Edit(kept.start(), kept.end(), f"{kept[1]} = {kept[1]}", f"`{kept.group()}` keeps what was there")


def constraints(text: str) -> Iterator[Edit]:
    """Take the constraints of a table away."""
    table = re.search(r"CREATE TABLE (\w+)", text)
    for found in _CONSTRAINT.finditer(text):
        it = " ".join(found.group().strip(" ,\n").split())
        yield Edit(found.start(), found.end(), "", f"without `{it}` on {table[1] if table else '?'}")


_DROPPED_KEYWORDS = {
    "Bill": None,
    "Change": None,
    "Decision": None,
    "_counted": None,
    "_update": None,
    "replace": None,
    "next_attempt": frozenset({"after", "ends"}),
    "release": frozenset({"cursors"}),
    "get_item": frozenset({"ConsistentRead"}),
    "transact_write_items": frozenset({"ClientRequestToken"}),
}
"""Calls whose keywords are left out in turn; the named ones only, or all of them."""

_DROPPED_KEYS = frozenset({"ConditionExpression", "ReturnValuesOnConditionCheckFailure"})
_SILENT = ("logger.", "super().", "assert_never(")


class _Finder(ast.NodeVisitor):
    """Walks through a module and notes what to edit. Each method says which rule it is."""

    def __init__(self, target: Target, source: bytes) -> None:
        self.target = target
        self.source = source
        self.found: list[Mutant] = []
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._names: list[str] = []
        self._functions = 0
        self._statement: ast.stmt | None = None

    def visit(self, node: ast.AST) -> None:
        outer = self._statement
        if isinstance(node, ast.stmt):
            self._statement = node
        super().visit(node)
        self._statement = outer

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._within(node.name, node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A letter is buried after what should come after it."""
        self._functions += 1
        self._names.append(node.name)
        for statement in node.body[:-1]:
            after = self.source[self._end(statement) : self._end(node)]
            if isinstance(statement, ast.Expr) and ".bury(" in self._text(statement) and b".release(" in after:
                self._bury_last(statement, node.body[-1])
        self._names.pop()
        self._within(node.name, node.body)
        self._functions -= 1

    def _bury_last(self, burial: ast.Expr, last: ast.stmt) -> None:
        rest = self.source[self._end(burial) : self._end(last)].decode()
        indent = " " * burial.col_offset
        later = f"try:{rest}".replace("\n", "\n    ") + f"\n{indent}finally:\n{indent}    {self._text(burial)}"
        self._statement = burial
        self._note(self._begin(burial), self._end(last), later, "the row before the letter", burial.lineno)

    def _within(self, name: str, body: Sequence[ast.stmt]) -> None:
        self._names.append(name)
        for statement in body:
            self.visit(statement)
        self._names.pop()

    def visit_If(self, node: ast.If) -> None:
        if self._text(node.test) == "TYPE_CHECKING":
            return
        self._guard(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._guard(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._edit(node.test, "False", f"`while {self._said(node.test)}` never")
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._guard(test)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        """What a function tells of a condition is told wrongly."""
        value = node.value
        if isinstance(value, ast.Compare | ast.BoolOp) or (
            isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
        ):
            self._guard(value)
        self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> None:
        """A case is never taken."""
        at = self._end(node.guard or node.pattern)
        said = self._said(node.pattern)
        takes_all = isinstance(node.pattern, ast.MatchAs) and node.pattern.pattern is None
        if not takes_all:
            text = " and False" if node.guard else " if False"
            self._note(at, at, text, f"`case {said}` is not told apart", node.pattern.lineno)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Each operand is left out in turn."""
        word = " and " if isinstance(node.op, ast.And) else " or "
        for left_out in node.values:
            rest = word.join(f"({self._text(value)})" for value in node.values if value is not left_out)
            self._edit(node, f"({rest})", f"without `{word.strip()} {self._said(left_out)}`")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """A bound is moved by one, half of a chain is left out, one of several values is not compared."""
        parts = [node.left, *node.comparators]
        for place, operator in enumerate(node.ops):
            if (moved := _BOUNDS.get(type(operator))) is not None:
                begin, end = self._end(parts[place]), self._begin(parts[place + 1])
                between = self.source[begin:end].decode()
                self._note(
                    begin,
                    end,
                    re.sub(r"[<>]=?", moved, between, count=1),
                    f"`{self._said(node)}` becomes {moved}" + (f" at {place + 1}" if len(node.ops) > 1 else ""),
                    node.lineno,
                )
        if len(node.ops) == 2:
            first = self.source[self._begin(node.left) : self._end(parts[1])]
            for half in (first, self.source[self._begin(parts[1]) : self._end(node)]):
                self._edit(node, half.decode(), f"of `{self._said(node)}` only `{half.decode()}`")
        left, right = node.left, node.comparators[0]
        if isinstance(left, ast.Tuple) and isinstance(right, ast.Tuple):
            for place, value in enumerate(left.elts):
                one, other = self._shorter(left, place), self._shorter(right, place)
                between = self.source[self._end(left) : self._begin(right)].decode()
                self._edit(node, f"{one}{between}{other}", f"without comparing `{self._said(value)}`")
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> None:
        self._members(node.elts, "{}", "set()")
        self.generic_visit(node)

    def visit_List(self, node: ast.List) -> None:
        """One of several writes of a transaction is left out."""
        if len(node.elts) > 1 or any(isinstance(value, ast.Starred) for value in node.elts):
            for left_out in node.elts:
                rest = ", ".join(self._text(value) for value in node.elts if value is not left_out)
                self._edit(node, f"[{rest}]", f"without `{self._said(left_out)}`")
        self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        """One of several names is left out."""
        if (
            self._functions
            and len(node.elts) > 1
            and all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in node.elts)
        ):
            for place, value in enumerate(node.elts):
                self._edit(node, self._shorter(node, place), f"without {self._said(value)}")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Nothing is added or taken off."""
        if isinstance(node.op, ast.Add | ast.Sub):
            sign = "+" if isinstance(node.op, ast.Add) else "-"
            self._edit(node, f"({self._text(node.left)})", f"without `{sign} {self._said(node.right)}`")
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        """A part of a request is left out, or a number in it is one more; a table's values are named by their keys."""
        if not self._functions:
            for key, value in zip(node.keys, node.values, strict=True):
                self._names.append("?" if key is None else self._text(key))
                self.visit(value)
                self._names.pop()
            return
        for place, key in enumerate(node.keys):
            value = node.values[place]
            is_text = isinstance(value, ast.Call) and self._text(value.func) == "json.dumps"
            if isinstance(key, ast.Constant) and str(key.value).startswith(":") and not is_text:
                self._edit(value, f"{self._text(value)} + 1", f"{key.value} is one more")
            if isinstance(key, ast.Constant) and key.value in _DROPPED_KEYS:
                rest = [
                    f"{self._text(one)}: {self._text(value)}" if one is not None else f"**{self._text(value)}"
                    for index, (one, value) in enumerate(zip(node.keys, node.values, strict=True))
                    if index != place
                ]
                self._edit(node, "{" + ", ".join(rest) + "}", f"without {key.value}")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """A named argument is left out; no cursors are given; a change commits or counts nothing."""
        callee = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if callee in _DROPPED_KEYWORDS:
            allowed = _DROPPED_KEYWORDS[callee]
            arguments = [*node.args, *node.keywords]
            for keyword in node.keywords:
                if keyword.arg is not None and (allowed is None or keyword.arg in allowed):
                    rest = ", ".join(self._text(one) for one in arguments if one is not keyword)
                    self._edit(node, f"{self._text(node.func)}({rest})", f"{callee} without `{self._said(keyword)}`")
        for value in node.args:
            if self._text(value).endswith("cursors"):
                self._edit(value, "{}", f"`{callee}` with no cursors instead of `{self._said(value)}`")
        if callee == "Change":
            for value, nothing in zip(node.args[2:], ("0", "{}"), strict=False):
                self._edit(value, nothing, f"a change with {nothing} instead of `{self._said(value)}`")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """A call that is made for what it does is not made."""
        value = node.value
        said = self._said(value)
        if isinstance(value, ast.Yield | ast.YieldFrom):
            self._edit(node, "yield from ()", f"without `{said}`")
        elif isinstance(value, ast.Call) and not said.startswith(_SILENT):
            self._edit(node, "pass", f"without `{said}`")
        if not isinstance(value, ast.Constant):
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """What is noted on an object is not noted."""
        if (
            isinstance(node.targets[0], ast.Attribute | ast.Subscript)
            and self._functions
            and self._names[-1] != "__init__"
        ):
            self._edit(node, "pass", f"without `{self._said(node)}`")
        self._within_table(node.targets[0], node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._within_table(node.target, node.value)

    def _within_table(self, target: ast.expr, value: ast.expr) -> None:
        if self._functions:
            self.visit(value)
        else:
            self._names.append(self._text(target))
            self.visit(value)
            self._names.pop()

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """An error is not caught."""
        if isinstance(node.type, ast.Tuple):
            for place, kind in enumerate(node.type.elts):
                self._edit(node.type, self._shorter(node.type, place), f"without catching {self._said(kind)}")
        elif node.type is not None and self._said(node.type) != "BaseException":
            self._edit(node.type, "()", f"without catching {self._said(node.type)}")
        for statement in node.body:
            self.visit(statement)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._string(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._string(node)

    def _string(self, node: ast.expr) -> None:
        if self.target.strings is None:
            return
        begin = self._begin(node)
        text = self.source[begin : self._end(node)].decode()
        for edit in self.target.strings(text):
            at = begin + len(text[: edit.begin].encode())
            until = begin + len(text[: edit.end].encode())
            line = node.lineno + text[: edit.begin].count("\n")
            self._note(at, until, edit.text, edit.what, line)

    def _guard(self, test: ast.expr) -> None:
        """A condition never holds, or always."""
        if isinstance(test, ast.Constant):
            return
        self._edit(test, "False", f"`{self._said(test)}` never")
        self._edit(test, "True", f"`{self._said(test)}` always")

    def _members(self, values: Sequence[ast.expr], around: str, empty: str) -> None:
        for left_out in values:
            rest = ", ".join(self._text(value) for value in values if value is not left_out)
            self._note(
                self._begin(values[0]) - 1 if not rest else self._begin(values[0]),
                self._end(values[-1]) + 1 if not rest else self._end(values[-1]),
                rest or empty,
                f"without {self._said(left_out)}",
                left_out.lineno,
            )

    def _shorter(self, node: ast.Tuple, place: int) -> str:
        rest = [self._text(value) for index, value in enumerate(node.elts) if index != place]
        return f"({', '.join(rest)},)"

    def _edit(self, node: ast.expr | ast.stmt, text: str, what: str) -> None:
        self._note(self._begin(node), self._end(node), text, what, node.lineno)

    def _note(self, begin: int, end: int, text: str, what: str, line: int) -> None:
        where = ".".join(self._names) or "module"
        if not self.target.has(where):
            return
        statement = self._statement
        assert statement is not None
        last = statement.end_lineno or statement.lineno
        if body := getattr(statement, "body", None):
            last = max(statement.lineno, line, min(last, body[0].lineno - 1))
        lines = range(min(line, statement.lineno), last + 1) if self._functions else None
        if isinstance(statement, ast.Match | ast.Try):
            lines = range(line, line + 1)
        self.found.append(Mutant(self.target.path, where, what, line, begin, end, text, lines))

    def _begin(self, node: ast.AST) -> int:
        return self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]

    def _end(self, node: ast.AST) -> int:
        return self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def _text(self, node: ast.AST) -> str:
        return self.source[self._begin(node) : self._end(node)].decode()

    def _said(self, node: ast.AST) -> str:
        """Return code as it is shown: on one line, and cut where it is long."""
        said = " ".join(self._text(node).split())
        return said if len(said) <= 90 else f"{said[:89]}…"


def mutants_of(target: Target) -> list[Mutant]:
    """Return the mutants of a file that are found by rule, in the file's order."""
    source = (ROOT / target.path).read_bytes()
    finder = _Finder(target, source)
    finder.visit(ast.parse(source))
    return finder.found


def substituted(path: str, where: str, what: str, old: str, new: str) -> Mutant:
    """Return the mutant that puts one text in the place of another, which must be there exactly once.

    Raises:
        ValueError: when it is not.
    """
    source = (ROOT / path).read_bytes()
    if source.count(old.encode()) != 1:
        raise ValueError(f"{path} holds {source.count(old.encode())} times what {what!r} replaces:\n{old}")
    begin = source.index(old.encode())
    line = source[:begin].count(b"\n") + 1
    at_import = source[begin - 1 : begin] == b"\n" and not old[0].isspace()
    lines = None if at_import else range(line, line + old.count("\n") + 1)
    return Mutant(path, where, what, line, begin, begin + len(old.encode()), new, lines)


def told_apart(mutants: Iterable[Mutant]) -> list[Mutant]:
    """Return the mutants with a number in the names that would be the same."""
    seen: Counter[str] = Counter()
    named = []
    for mutant in mutants:
        seen[mutant.name] += 1
        again = seen[mutant.name]
        named.append(mutant if again == 1 else replace(mutant, what=f"{mutant.what} ({again})"))
    return named
