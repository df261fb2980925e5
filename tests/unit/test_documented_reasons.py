"""docs/operations.md says what each reason means that a run or a letter can show."""

import re
from pathlib import Path

import pytest

from galley.runs import SkipReason

ROOT = Path(__file__).parents[2]
CODE = "\n".join(
    path.read_text(encoding="utf-8")
    for folder in ("functions/draft", "functions/recover", "layers/galley/galley")
    for path in sorted((ROOT / folder).rglob("*.py"))
)
DOCUMENTED = (ROOT / "docs/operations.md").read_text(encoding="utf-8")

RAISED = re.compile(
    r"(?:RetryLater|AnswerLost|Fault|NeverSucceeds|SpendLimitReached|_fail|super\(\)\.__init__|dead_letter)\("
    r'\s*(?:[\w.]+,\s*)?"([a-z_]+)"'
)
NAMED = re.compile(r'^(?:ABANDONED|RECEIVES_EXHAUSTED) = "([a-z_]+)"', re.M)
RELEASED = re.compile(r'Status\.(?:EMPTY|EXPIRED|SUPERSEDED), "([a-z_]+)"')

REASONS = sorted(
    {found for pattern in (RAISED, NAMED, RELEASED) for found in pattern.findall(CODE)}
    | {str(one) for one in SkipReason}
)


def test_the_reasons_are_found_in_the_code() -> None:
    assert {"overloaded", "store_busy", "cursor_moved", "unexpected_error", "attempts_exhausted"} < set(REASONS)
    assert {"abandoned", "receives_exhausted", "nothing_new", "invalid_drafter", "invalid_message"} < set(REASONS)
    assert {"undecided", "replaced"} < set(REASONS)


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_says_what_to_do(reason: str) -> None:
    assert f"`{reason}`" in DOCUMENTED
