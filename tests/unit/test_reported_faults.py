"""Each public report of a scheduler's fault that could befall Galley is a test that bears the report's link.

A test bears a link in its docstring, as the first thing it says.
"""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
LINK = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+")

REPORTS = {
    "https://github.com/apache/airflow/issues/38098": "the day of a spring change had no run, and nothing said why",
    "https://github.com/apache/airflow/issues/35272": "after an autumn change the next run flipped for ever",
    "https://github.com/apache/airflow/issues/30195": "after a spring change two runs began at once, and then none",
    "https://github.com/PrefectHQ/prefect/issues/7461": "at the end of summer time each run was created once more",
    "https://github.com/kubernetes/kubernetes/issues/42649": "after a hundred missed starts a job never started again",
    "https://github.com/kubernetes/kubernetes/issues/121594": "a job ran in both passes of a repeated hour",
    "https://github.com/dagster-io/dagster/issues/13597": "an edit of the expression ran yesterday's slot at once",
    "https://github.com/dagster-io/dagster/issues/7010": "a schedule that was enabled again ran all the days between",
    "https://github.com/inngest/inngest/pull/3569": "after an outage all that was missed was fired in a burst",
    "https://github.com/triggerdotdev/trigger.dev/issues/1566": "with no worker one task was queued thousands of times",
    "https://github.com/argoproj/argo-workflows/issues/4445": "a schedule that was resumed fired twice",
    "https://github.com/agronholm/apscheduler/issues/606": "the midnight after a spring change was lost",
    "https://github.com/NousResearch/hermes-agent/pull/110261": "in a repeated hour a later slot was taken for due",
    "https://github.com/node-cron/node-cron/issues/492": "at a change the next slot did not move on, and a loop spun",
    "https://github.com/spring-projects/spring-framework/issues/36859": "a gap at midnight took the whole day",
    "https://github.com/aws-powertools/powertools-lambda-python/issues/1038": "a record stayed begun for good",
    "https://github.com/Loulen/prompt-driven-orchestrator/issues/505": "a schedule was gone, without a trace",
    "https://github.com/dragonmantank/cron-expression/issues/112": "a weekly job lost its week to a gap",
    "https://github.com/floci-io/floci/pull/3147": "weekdays were counted as Unix counts them",
    "https://github.com/sonichi/sutando/pull/3437": "one limit for lateness dropped daily jobs",
    "https://github.com/vikasprogrammer/agentric/issues/139": "approvals piled up, and the agents stalled",
    "https://github.com/gagan114662/os1-samantha/issues/146": "old items for review blocked new ones, unnoticed",
    "https://github.com/langchain-ai/managed-deepagents/issues/1": "each deployment added a second schedule",
    "https://github.com/aws/serverless-application-model/pull/3120": "two stacks could not share an account",
    "https://github.com/temporalio/temporal/issues/8087": "what was skipped showed in no metric",
    "https://github.com/itk-dev-rpa/OpenOrchestrator/issues/66": "a delayed trigger ran as often as it had been due",
}
"""The reports, and what went wrong there."""

CANNOT_BEFALL: dict[str, str] = {}
"""Those of them that no test bears, and why they cannot befall Galley."""


@cache
def linked_tests() -> dict[str, list[str]]:
    """Return the tests that begin with a link, by the link."""
    found = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                link = LINK.match(ast.get_docstring(node) or "")
                if link:
                    found[link[0]].append(f"{path.relative_to(TESTS)}:{node.lineno} {node.name}")
    return found


@pytest.mark.parametrize("report", REPORTS)
def test_each_report_is_a_test_or_cannot_befall_galley(report: str) -> None:
    assert (report in linked_tests()) != (report in CANNOT_BEFALL)


def test_there_are_26_reports_and_none_is_argued_away_that_is_not_among_them() -> None:
    assert len(REPORTS) == 26
    assert REPORTS.keys() >= CANNOT_BEFALL.keys()
