"""The model of the benchmarks: 20 ms, and always the same answer. It stands in the place of functions/draft/offline.py.

Each call leaves a byte in the file ``calls`` beside the module, so that calls can be counted across processes.
"""

import os
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from galley.runs import Usage
from writing import Answer, Brief

SECONDS = 0.02
TEXT = (
    '{"title": "Nothing unusual", "sections": [{"heading": "What happened", "text": "'
    + "Orders and revenue went as in the days before; nobody waits for an answer. " * 12
    + '", "cites": []}]}'
)
"""About a kilobyte, in the form that is asked for."""


def call(calls: Path) -> str:
    """Take as long as a call does, note it in the file, and return what was answered."""
    note = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(note, b".")
    os.close(note)
    time.sleep(SECONDS)
    return TEXT


@dataclass(frozen=True)
class OfflineModel:
    """Answers after its time, and costs nothing."""

    def write(self, brief: Brief, *, remaining: timedelta) -> Answer:
        text = call(Path(__file__).with_name("calls"))
        return Answer(model="slow", stop="end_turn", text=text, usage=Usage(1_000, 200), cost_nanousd=0)

    def worst_cost(self, model: str, max_input_tokens: int, max_output_tokens: int) -> int:
        return 0
