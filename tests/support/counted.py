"""What a week's counters must say, told from the rows alone."""

from collections import Counter
from collections.abc import Iterable, Mapping

from galley.runs import Run, Status

ENDED = {
    Status.EMPTY: "empty",
    Status.FAILED: "failed",
    Status.SKIPPED: "skipped",
    Status.EXPIRED: "expired",
    Status.SUPERSEDED: "superseded",
}
"""What is counted by the state in which a run stays."""


def counted_in_rows(runs: Iterable[Run]) -> Mapping[str, Mapping[str, int]]:
    """Return the counters of each ISO week in which there is a run, without those that are zero."""
    weeks: dict[str, Counter[str]] = {}
    for run in runs:
        weeks.setdefault(run.slot.strftime("%G-W%V"), Counter()).update(_of_a_run(run))
    return {week: {name: count for name, count in counters.items() if count} for week, counters in weeks.items()}


def as_rows_tell(week: Mapping[str, int]) -> Mapping[str, int]:
    """Return a week's counters in the form of ``counted_in_rows``: what was sent again has not failed any more."""
    told = Counter(week)
    told["failed"] -= told.pop("resent", 0)
    return {name: count for name, count in told.items() if count}


def _of_a_run(run: Run) -> Counter[str]:
    usage = run.usage
    tokens = (usage.input_tokens, usage.output_tokens, usage.cache_write_tokens, usage.cache_read_tokens)
    counted = Counter(tokens=sum(tokens), cost_nanousd=run.cost_nanousd, drafted=int(run.drafted is not None))
    if name := ENDED.get(run.status):
        counted[name] += 1
    if run.status is Status.SKIPPED:
        counted[f"skipped:{run.reason}"] += 1
    if run.decision is None:
        return counted
    if not run.decision.read_hash:
        counted["unreviewed"] += 1
        return counted
    assert run.drafted is not None
    counted["minutes_to_decision"] += int((run.decision.at - run.drafted).total_seconds() // 60)
    if run.decision.reason is None:
        counted["approved"] += 1
        counted["edited"] += int(run.decision.edited)
    else:
        counted["rejected"] += 1
        counted[f"rejected:{run.decision.reason}"] += 1
    return counted
