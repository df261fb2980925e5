"""What is mutated: the files that guarantees rest on, and the mutants that no rule finds."""

import ast
from collections.abc import Iterator

from mutation.mutants import (
    ROOT,
    Mutant,
    Target,
    constraints,
    dynamodb_conditions,
    mutants_of,
    sql_conditions,
    substituted,
    told_apart,
)

RUNS = "layers/galley/galley/runs.py"
SQS = "layers/galley/galley/queue/sqs.py"
SQLITE_QUEUE = "cli/galley_cli/local/queue.py"
SCHEDULE = "layers/galley/galley/schedule.py"
DESK = "functions/review/review.py"

_LISTING = {"draft", "drafter", "week", "watched", "history", "_page", "_after", "_place", "_query"}
_NOTATION = {"_attribute", "_attributes", "_plain", "_plain_row", "_value_bytes", "_item_bytes", "_disagreement"}
_STREAM = {"stream_after", "stream_position", "advance", "_watched_place", "_history_place", "_encoded", "_decoded"}

TARGETS = (
    Target("layers/galley/galley/store/changes.py"),
    Target(RUNS, without=frozenset({"parse", "_aware", "_utc", "read_message"})),
    Target("cli/galley_cli/local/store.py", without=frozenset(_LISTING | _STREAM), strings=sql_conditions),
    Target("cli/galley_cli/local/state.py", only=frozenset({"_MIGRATIONS", "write"}), strings=constraints),
    Target(
        "layers/galley/galley/store/dynamodb.py",
        without=frozenset(_LISTING | _NOTATION | {"memory"}),
        strings=dynamodb_conditions,
    ),
    Target("layers/galley/galley/retry.py", without=frozenset({"backoff"})),
    Target("functions/draft/drafting.py"),
    Target("functions/draft/authoring.py", without=frozenset({"_shown"})),
    Target("functions/draft/claimed_run.py", without=frozenset({"_exhausted"})),
    Target("functions/draft/attempt.py"),
    Target("functions/publish/publishing.py"),
    Target("functions/publish/publish.py"),
    Target("functions/recover/abandoned.py"),
    Target("functions/recover/unsent.py"),
    Target("functions/recover/sweep.py"),
    Target("functions/recover/catch_up.py"),
    Target("functions/recover/silence.py"),
    Target("functions/recover/stale.py"),
    Target("functions/draft/draft_rules.py"),
    Target("layers/galley/galley/withdrawing.py"),
)
"""Without listings, the notation of values, and the words of errors: no guarantee rests on those."""


def all_mutants() -> list[Mutant]:
    """Return every mutant, each with a name of its own."""
    found = [mutant for target in TARGETS for mutant in mutants_of(target)]
    return told_apart([*found, *_more_transitions(), *_by_hand()])


def _more_transitions() -> Iterator[Mutant]:
    """Allow what is forbidden: from each state all others, and into each state from all others."""
    table_ends = '"""The allowed transitions; ``None`` is a slot without a row."""'
    states = _states()
    for here in ("None", *(f"Status.{state}" for state in states)):
        what = f"from {here} to anything"
        yield substituted(RUNS, "TRANSITIONS", what, table_ends, f"TRANSITIONS[{here}] = frozenset(Status)")
    for there in states:
        wider = f"TRANSITIONS = {{here: ways | {{Status.{there}}} for here, ways in TRANSITIONS.items()}}"
        yield substituted(RUNS, "TRANSITIONS", f"from anything to Status.{there}", table_ends, wider)


def _states() -> list[str]:
    """Read the names of the states. Our own code is not imported here: a child of this process must import a mutant."""
    for node in ast.parse((ROOT / RUNS).read_bytes()).body:
        if isinstance(node, ast.ClassDef) and node.name == "Status":
            return [
                line.targets[0].id
                for line in node.body
                if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
            ]
    raise ValueError(f"{RUNS} has no states")


def _by_hand() -> Iterator[Mutant]:
    yield substituted(
        RUNS, "RunMessage.deduplication_id", "without the resend", "{self.key}#{self.resend}#", "{self.key}##"
    )
    yield substituted(RUNS, "RunMessage.deduplication_id", "without the renewal", "#{self.renewal}", "#")
    yield substituted(
        RUNS, "RunMessage.deduplication_id", "without the run", "{self.key}#{self.resend}", "#{self.resend}"
    )
    yield substituted(
        SQS,
        "_entry",
        "a group for each run",
        '"MessageGroupId": message.drafter',
        '"MessageGroupId": message.deduplication_id',
    )
    yield substituted(
        SQS, "_entry", "one group for all drafters", '"MessageGroupId": message.drafter', '"MessageGroupId": "all"'
    )
    yield substituted(SQS, "module", "one message in a request", "BATCH = 10\n", "BATCH = 1\n")
    yield substituted(SQLITE_QUEUE, "_Messages.add", "a group for each message", "group or message_id", "message_id")
    yield substituted(
        SCHEDULE,
        "_localise",
        "a wall time that does not exist is due",
        "tzinfo=None) == wall:",
        "tzinfo=None) == wall or True:",
    )
    yield substituted(
        SCHEDULE, "_localise", "a repeated hour is due on its second pass", "tzinfo=tz, fold=0)", "tzinfo=tz, fold=1)"
    )
    for way in ("approve", "reject"):
        old = f'@_route("POST", "/drafts/<drafter>/<slot>/{way}")'
        yield substituted(DESK, "module", f"{way} on a GET", old, old.replace("POST", "GET"))
