"""Says after a simulation what happened in its stories, so that one sees that they were not idle."""

import os
from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Add up what each chunk of stories recorded, from whichever worker. Only ``make simulate`` is worth the lines."""
    if "STORIES" not in os.environ:
        return
    happened: dict[str, Counter[str]] = {}
    for report in terminalreporter.getreports("passed"):
        for name, value in getattr(report, "user_properties", []) if report.when == "call" else []:
            if name == "happened":
                store, counts = value
                happened.setdefault(store, Counter()).update(counts)
    for store, counts in sorted(happened.items()):
        terminalreporter.section(f"{counts.pop('stories', 0)} stories passed {store}")
        for what, times in sorted(counts.items()):
            terminalreporter.line(f"{times:9,} {what}")
