"""Running tests on a mutant, without touching a file: a child of this process imports the edited code in its place.

The libraries are imported once, here, and every child is a fork that has them already: what is left of a run is the
import of our own code and the tests. Which tests run is known from a first run without a mutant, which notes for each
test the lines that it executes: only those that come by the edited statement are asked, the quickest first.
"""

import importlib
import importlib.util
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import pytest

from mutation.mutants import ROOT, Mutant

TESTS = (
    "tests/contract",
    "tests/unit/dispatch",
    "tests/unit/drafting",
    "tests/unit/layer",
    "tests/unit/local_adapters/test_queue.py",
    "tests/unit/local_adapters/test_state.py",
    "tests/unit/local_adapters/test_store.py",
    "tests/unit/local_adapters/test_store_and_others.py",
    "tests/unit/publish",
    "tests/unit/recover",
    "tests/unit/review/test_deciding.py",
)
"""The tests that are asked. Those of whole systems and of DynamoDB Local would notice much too, but later."""

LEFT_OUT = (
    "dynamodb_local",
    "test_races",
    "test_lost_answers",
    "test_bucket",
    "test_s3",
    "test_eventbridge",
    "test_published_file",
)
HEAVY = ("boto3", "hypothesis", "moto", "moto.dynamodb", "moto.sqs", "pydantic", "time_machine")
MOST_FAILURES = 3
SECONDS_FOR_A_TEST = 30
SECONDS_FOR_A_MUTANT = 240
FIRST = 12
"""How many tests are asked before all others: most mutants are noticed by them, and fewer files need be imported."""

_QUIET = ("-q", "--no-header", "--tb=no", "--assert=plain", "-W", "ignore:Module already imported")
_OPTIONS = (*_QUIET, "-p", "no:cacheprovider", "-p", "no:xdist", "-o", f"timeout={SECONDS_FOR_A_TEST}")
_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Reach:
    """Which tests execute which lines of the mutated files, what each test takes, and which were left out."""

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]
    left_out: tuple[str, ...]

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that come by the edited statement, the quickest first.

        What runs at import, like the table of transitions, may be noticed by any of them.
        """
        lines = self.lines.get(mutant.path, {})
        near = self.seconds if mutant.lines is None else {test for line in mutant.lines for test in lines.get(line, ())}
        return sorted(near, key=lambda test: self.seconds[test])


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant: the tests that failed on it (the first one only, unless all were asked for)."""

    mutant: Mutant
    noticed_by: tuple[str, ...]
    asked: int


def preload() -> None:
    """Import once what every child needs and no mutant touches."""
    for name in HEAVY:
        importlib.import_module(name)


def reach_of(paths: Iterable[str]) -> Reach:
    """Run all tests once without a mutant, and note what they execute.

    Tests that fail are left out: nothing can be told from them. A few that wait for one another in real time may, since
    they run slower while they are watched.

    Raises:
        RuntimeError: when the tests do not run, or more of them fail than that.
    """
    answer = _answer_of(*_forked(lambda: _trace(frozenset(paths))), seconds=3_600)
    if answer is None or len(answer["failed"]) > MOST_FAILURES:
        raise RuntimeError(f"tests fail without any mutant: {answer and answer['failed']}")
    failed = frozenset(answer["failed"])
    lines = {
        path: {int(line): [test for test in tests if test not in failed] for line, tests in found.items()}
        for path, found in answer["lines"].items()
    }
    seconds = {test: taken for test, taken in answer["seconds"].items() if test not in failed}
    return Reach(lines, seconds, tuple(sorted(failed)))


def judge(mutants: Sequence[Mutant], reach: Reach, *, jobs: int, every_test: bool = False) -> Iterator[Verdict]:
    """Run the tests on each mutant, so many at a time, and yield the verdicts as they come."""
    waiting = list(reversed(mutants))
    running: dict[int, tuple[Mutant, int, float, int]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            tests = reach.tests_of(mutant)
            if not tests:
                yield Verdict(mutant, (), 0)
                continue
            child, answers = _forked(lambda m=mutant, t=tests: _ask(m, t, every_test))  # type: ignore[misc]
            running[child] = (mutant, answers, time.monotonic(), len(tests))
        for child, (mutant, answers, began, asked) in list(running.items()):
            done, _ = os.waitpid(child, os.WNOHANG)
            took = time.monotonic() - began
            if done or took > SECONDS_FOR_A_MUTANT:
                del running[child]
                answer = _answer_of(child, answers, seconds=0, reaped=bool(done))
                if answer is None and done:
                    raise RuntimeError(f"the tests could not be run on: {mutant.name}")
                failed = [f"no end within {SECONDS_FOR_A_MUTANT} s"] if answer is None else answer["failed"]
                yield Verdict(mutant, tuple(failed), asked)
        time.sleep(0.02)


def _forked(work: Callable[[], dict[str, Any]]) -> tuple[int, int]:
    """Do the work in a fork; return its process and the file that its answer is written to."""
    answers = os.memfd_create("answer")
    child = os.fork()
    if child:
        return child, answers
    try:
        os.setsid()
        silence = os.open(os.devnull, os.O_RDWR)
        if "GALLEY_MUTATION_LOUD" not in os.environ:
            for stream in (0, 1, 2):
                os.dup2(silence, stream)
        answer = work()
        os.pwrite(answers, json.dumps(answer).encode(), 0)
        os._exit(0)
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(1)


def _answer_of(child: int, answers: int, *, seconds: float, reaped: bool = False) -> dict[str, Any] | None:
    until = time.monotonic() + seconds
    while not reaped and time.monotonic() < until:
        reaped = bool(os.waitpid(child, os.WNOHANG)[0])
        time.sleep(0.02)
    if not reaped:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(answers, "rb") as file:
        file.seek(0)
        text = file.read()
    return json.loads(text) if text else None


def _ask(mutant: Mutant, tests: Sequence[str], every_test: bool) -> dict[str, Any]:
    """Run tests on the mutant in this process, and return those that failed."""
    loader = Loading(mutant)
    sys.meta_path.insert(0, loader)
    failed: list[str] = []
    for some in (tests,) if every_test else (tests[:FIRST], tests[FIRST:]):
        if some and not failed:
            asked = Asked(some)
            files = sorted({test.partition("::")[0] for test in some})
            code = _pytest([*([] if every_test else ["-x"]), *files], asked)
            if not asked.failed and code is not pytest.ExitCode.OK:
                raise AssertionError(f"pytest ended with {code!r}")
            failed += asked.failed
    if not loader.used and not failed:
        raise AssertionError(f"the tests never imported {mutant.path}")
    return {"failed": failed}


def _pytest(arguments: Sequence[str], plugin: object) -> pytest.ExitCode:
    """Run pytest with its files in memory, where there is such a place: the databases of the tests write through."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        code = pytest.main([*_OPTIONS, f"--basetemp={folder}/pytest", *arguments], plugins=[plugin])
        return pytest.ExitCode(code)


class Asked:
    """A plugin of pytest that runs the named tests in their order, and remembers which failed."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._order = {test: place for place, test in enumerate(tests)}
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the tests that are asked for."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self._order), key=lambda item: self._order[item.nodeid]
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file whose import fails notices the mutant too."""
        if report.failed:
            self.failed.append(f"{report.nodeid} (import)")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure, in the test or around it."""
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)


class Loading(MetaPathFinder):
    """Imports a mutant in the place of its file. Nothing is written, not even bytecode."""

    def __init__(self, mutant: Mutant) -> None:
        self._path = ROOT / mutant.path
        source = self._path.read_bytes()
        self._code = compile(mutant.applied(source), str(self._path), "exec", dont_inherit=True)
        self.used = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the mutated module, and leave every other one to Python."""
        if fullname.rpartition(".")[2] not in {self._path.stem, self._path.parent.name}:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or Path(spec.origin).resolve() != self._path.resolve():
            return None
        self.used = True
        return importlib.util.spec_from_file_location(
            fullname, spec.origin, loader=_Given(fullname, spec.origin, self._code)
        )


class _Given(SourceFileLoader):
    def __init__(self, fullname: str, path: str, code: CodeType) -> None:
        super().__init__(fullname, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code


def _trace(paths: frozenset[str]) -> dict[str, Any]:
    tracing = Tracing({str(ROOT / path): path for path in paths})
    code = _pytest(TESTS, tracing)
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise AssertionError(f"pytest ended with {code!r}")
    return {"failed": tracing.failed, "lines": tracing.lines, "seconds": tracing.seconds}


@dataclass(eq=False)
class Tracing:
    """A plugin of pytest that notes which lines of some files each test executes, and how long it takes."""

    paths: dict[str, str]
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    _now: set[tuple[str, int]] = field(default_factory=set)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what is slow and says nothing of these files."""
        items[:] = [item for item in items if not any(word in item.nodeid for word in LEFT_OUT)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Trace the test and what its fixtures do."""
        self._now = set()
        began = time.perf_counter()
        threading.settrace(self._call)
        sys.settrace(self._call)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            self.seconds[item.nodeid] = time.perf_counter() - began
            for path, line in self._now:
                self.lines.setdefault(path, {}).setdefault(line, []).append(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        if report.failed:
            self.failed.append(report.nodeid)

    def _call(self, frame: FrameType, event: str, argument: object) -> Any:
        path = self.paths.get(frame.f_code.co_filename)
        if path is None or frame.f_code.co_name == "<module>":
            return None
        self._now.add((path, frame.f_lineno))

        def line(frame: FrameType, event: str, argument: object) -> Any:
            self._now.add((path, frame.f_lineno))
            return line

        return line
