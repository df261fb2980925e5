"""Why reviewers rejected a drafter's latest drafts: the next one is written with that in view. Pure."""

from collections.abc import Iterable

from galley.runs import Run, Status
from galley.texts import one_line
from writing import Rejection

RUNS_LOOKED_AT = 10
"""Rejections are looked for among so many of a drafter's newest runs: older ones are no longer news."""
MOST_REJECTIONS = 5
MOST_WORDS_CHARS = 300


def rejections_in(runs: Iterable[Run]) -> tuple[Rejection, ...]:
    """Return the newest rejections among runs that come newest first, each with the beginning of its words."""
    found = [
        Rejection(run.slot, str(run.decision.reason), one_line(run.decision.words, MOST_WORDS_CHARS))
        for run in runs
        if run.status is Status.REJECTED and run.decision is not None and run.decision.reason is not None
    ]
    return tuple(found[:MOST_REJECTIONS])
