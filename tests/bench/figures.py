"""What the benchmarks share: medians, tables, the machine they ran on, and the page that they are written to."""

import contextlib
import io
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

BEGIN, END = "<!-- figures: make bench -->", "<!-- end of figures -->"
PATIENCE_SECONDS = 180.0


def wait_until(done: Callable[[], bool], state: Callable[[], str]) -> None:
    """Look every few milliseconds until it is done; give up after a while and say how things stand."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not done after {PATIENCE_SECONDS:.0f} s: {state()}")
        time.sleep(0.004)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown; all columns but the first are figures."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (head, rule, *rows))


def spread(values: Sequence[float], unit: str, digits: int = 2) -> str:
    """Return the median, and the least and the greatest of several rounds."""
    return f"{median(values):.{digits}f} {unit} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def machine(*packages: str) -> str:
    """Return a line about what the figures were measured on, and with."""
    versions = [f"{name} {_version(name)}" for name in packages]
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, {', '.join([python, *versions])}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def write_section(page: Path, text: str) -> None:
    """Put the text between the marks of the page."""
    before = page.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    if not pattern.search(before):
        raise ValueError(f"{page}: has no section between {BEGIN!r} and {END!r}")
    page.write_text(pattern.sub(lambda _: f"{BEGIN}\n\n{text}\n\n{END}", before), encoding="utf-8")


@contextmanager
def unheard(*loggers: Any) -> Iterator[None]:
    """Let logs and metrics be made, and go nowhere."""
    nowhere = io.StringIO()
    handlers = [handler for logger in loggers for handler in logger.handlers]
    for handler in handlers:
        handler.setStream(nowhere)
    try:
        with contextlib.redirect_stdout(nowhere):
            yield
    finally:
        for handler in handlers:
            handler.setStream(sys.stdout)
