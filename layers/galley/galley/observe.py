"""Logs and metrics: one logger and one set of metrics for a function.

Prompts, drafts and collected text are never logged: run keys, reasons and counts are.
"""

import warnings

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from galley.rules import Review
from galley.runs import Run, Status

logger = Logger(use_rfc3339=True, utc=True)
metrics = Metrics()
# An invocation in which nothing happened that is counted is no fault.
warnings.filterwarnings("ignore", message="No application metrics to publish", category=UserWarning)


def count(name: str, value: int = 1) -> None:
    """Count something that happened, under the function's namespace."""
    metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)


def count_at_once(name: str) -> None:
    """Count something that is noted right after, so that it is counted even if the function dies then."""
    count(name)
    metrics.flush_metrics()


def tell_outcome(run: Run) -> None:
    """Log and count what became of a run, under the name of its state.

    A run that was skipped is counted by its reason, a draft that is sent unread as unreviewed.
    """
    state = str(run.status)
    if run.status is Status.SKIPPED:
        state = f"skipped_{run.reason}"
    if run.status is Status.APPROVED and run.rules.review is Review.NONE:
        state = "unreviewed"
    logger.info("run %s is %s", run.key, state, extra={"run": str(run.key), "reason": run.reason, "trace": run.trace})
    count(f"run_{state}")
