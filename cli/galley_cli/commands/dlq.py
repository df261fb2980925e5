"""``galley dlq``: what failed for good, from the queue of dead letters and from the table; sent again, or discarded."""

import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, assert_never

import typer

from galley.answers import run_answer
from galley.contract import Tick
from galley.queue import DeadLetter, DeadTick
from galley.runs import InvalidRunKey, RunKey
from galley.texts import counted, one_line
from galley_cli.commands.common import (
    DEFAULT_STATE,
    REFUSED,
    BadInput,
    JsonOption,
    Opened,
    Operating,
    Refused,
    StackOption,
    StateOption,
    confirm,
    group,
)
from galley_cli.commands.shown import columns, letter_json, printable, status_of, tick_json, value_lines
from galley_cli.dead import (
    Dead,
    DeadRun,
    DeadSweep,
    DeadThing,
    NamedTick,
    NotDone,
    Report,
    Resending,
    Unpublished,
    UnreadableTick,
    discard_dead,
    list_dead,
    new_things,
    read_dead_tick,
)
from galley_cli.obstacles import obstacles

if TYPE_CHECKING:
    from rich.console import Console

dlq = group("dlq", "See what failed for good, runs and ticks; send it again, or discard it.")

NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[RUN]...", help="As 'galley dlq list' names them: runs, letters, ticks.")
]
AllOption = Annotated[bool, typer.Option("--all", help="Everything that is dead, instead of what is named.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@dlq.command("list")
def list_command(state: StateOption = DEFAULT_STATE, stack: StackOption = None, as_json: JsonOption = False) -> None:
    """List dead runs and dead ticks, oldest first. A letter without a failed row, or the reverse, is shown as such."""
    operating = Operating(state, stack, as_json)
    dead = _listed(operating.open())

    def table(console: "Console") -> None:
        listed = columns("dead run", "reason", "letter", "row")
        for run in dead.runs:
            for letter in run.letters or (None,):
                row = "none" if run.row is None else status_of(run.row)
                last = "none" if letter is None else f"{letter.last:%Y-%m-%d %H:%M}Z"
                listed.add_row(run.name, _line(_reason(run, letter)), last, printable(row))
        console.print(listed if dead.runs else "No run is dead.")
        for named in dead.ticks:
            console.print(_tick_line(named))
        for line in dead.unreadable:
            console.print(f"unreadable: {_line(line)}")

    shown = {
        "runs": [one for run in dead.runs for one in _run_json(run)],
        "ticks": [_named_tick_json(tick) for tick in dead.ticks],
    }
    operating.print({**shown, "unreadable": list(dead.unreadable)}, table)


@dlq.command()
def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="As 'galley dlq list' names it: a run, a letter, a tick.")],
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show everything that is known of a dead run or a dead tick."""
    operating = Operating(state, stack, as_json)
    dead = _listed(operating.open())
    found = _look_up(dead.listed, run)
    if found is None:
        others = f"; unreadable: {'; '.join(dead.unreadable)}" if dead.unreadable else ""
        raise Refused(f"{_not_there(run)}{others}")
    runs = _run_json(found) if isinstance(found, DeadRun) else []
    ticks = [_named_tick_json(found)] if isinstance(found, NamedTick) else []

    def lines(console: "Console") -> None:
        for part in ("letter", "row"):
            for one in runs:
                for line in value_lines(one[part], part):
                    console.print(line)
        for tick in ticks:
            for line in value_lines(tick, "tick"):
                console.print(line)

    operating.print({"runs": runs, "ticks": ticks}, lines)


@dlq.command()
def resend(
    runs: NamesArgument = None,
    everything: AllOption = False,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send dead runs again, and dead ticks for their own slots. No grace binds them; every other limit does."""
    names = _names(runs, everything)
    operating = Operating(state, stack, as_json)
    opened = operating.open()
    resending = Resending(opened.store, opened.queue, now=opened.now, trace=str(uuid.uuid4()))
    report = resending.report
    with _telling(operating, report, _resent):
        if everything:
            resending.resend_all()
        else:
            resending.resend(_found(names, _listed(opened).named, report))
        sent = Counter(RunKey.parse(run).drafter for one in report.sent for run in one.runs)
        for drafter, number in sent.items():
            report.notes += obstacles(opened.store, drafter).notes(number)


@dlq.command()
def discard(
    runs: NamesArgument = None,
    everything: AllOption = False,
    yes: YesOption = False,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Discard dead letters and dead ticks for good. A failed run stays in the table, and is listed here no longer."""
    names = _names(runs, everything)
    if not yes and not sys.stdin.isatty():
        raise BadInput("there is no terminal to ask at; --yes discards without asking")
    operating = Operating(state, stack, as_json)
    opened = operating.open()
    report = Report()
    with _telling(operating, report, _discarded):
        if everything:
            for things in new_things(opened.store, opened.queue, report):
                _discard(opened, things, report, yes=yes)
        else:
            _discard(opened, _found(names, _listed(opened).listed, report), report, yes=yes)


def _discard(opened: Opened, things: Sequence[DeadThing], report: Report, *, yes: bool) -> None:
    if things and not yes:
        _confirm(things)
    discard_dead(opened.store, opened.queue, things, now=opened.now(), report=report)


def _confirm(things: Sequence[DeadThing]) -> None:
    """Say what will be lost and ask, on standard error; refuse unless the answer is yes."""
    for thing in things:
        sys.stderr.write(f"{_loss(thing)}\n")
    confirm("Discard this for good?", "this was not discarded")


def _loss(thing: DeadThing) -> str:
    match thing:
        case NamedTick():
            return _tick_line(thing)
        case DeadRun(name, _, letters):
            reason = _line(_reason(thing, letters[-1] if letters else None))
            return f"{name}  {counted(len(letters), 'letter', 'letters')}; {reason}"
    assert_never(thing)


def _names(given: Sequence[str] | None, everything: bool) -> list[str]:
    """Return what was named, each once."""
    names = list(dict.fromkeys(given or ()))
    if bool(names) == everything:
        raise BadInput("name what 'galley dlq list' shows, or give --all for everything; one of the two")
    return names


def _found(names: Iterable[str], find: Callable[[str], DeadThing | None], report: Report) -> list[DeadThing]:
    """Return what is found under the names, each once; what is not there is refused in the report."""
    found: dict[str, DeadThing] = {}
    for name in names:
        thing = _look_up(find, name)
        if thing is None:
            report.refused.append(NotDone(name, _not_there(name)))
        else:
            found[thing.name] = thing
    return list(found.values())


def _look_up(find: Callable[[str], DeadThing | None], name: str) -> DeadThing | None:
    """Find something, or say how things are named."""
    try:
        return find(name)
    except InvalidRunKey as error:
        raise BadInput(f"{error}, or as 'galley dlq list' names it") from error


def _not_there(name: str) -> str:
    return f"no dead letter, no failed run and no dead tick is named {name!r}; see 'galley dlq list'"


def _listed(opened: Opened) -> Dead:
    return list_dead(opened.store, opened.queue)


def _reason(run: DeadRun, letter: DeadLetter | None) -> str:
    """Return why a run died, in the letter's words where there is one."""
    if letter is not None:
        return f"{letter.reason}: {letter.detail}"
    return f"{run.row.reason}: {run.row.detail}" if run.row is not None else ""


def _tick_line(named: NamedTick) -> str:
    tick = named.tick
    died = _line(f"{_what(tick)} at {tick.at:%Y-%m-%d %H:%M}Z: {tick.reason}: {tick.detail}")
    return f"{named.name}  {died}"


def _what(tick: DeadTick) -> str:
    """Return what died: a tick, a sweep, or the record of an approved run that publish could not handle."""
    match read_dead_tick(tick):
        case Unpublished(run):
            return f"not published: {run}"
        case DeadSweep():
            return "dead sweep"
        case Tick(drafters=drafters):
            return f"dead tick of {', '.join(drafters)}"
        case UnreadableTick():
            return "unreadable dead tick"


def _line(text: str) -> str:
    return printable(one_line(text))


def _run_json(run: DeadRun) -> list[dict[str, Any]]:
    """Return the run's letters, each beside the row; a row without a letter stands alone."""
    row = None if run.row is None else run_answer(run.row)
    return [
        {"run": run.name, "letter": None if letter is None else letter_json(letter), "row": row}
        for letter in run.letters or (None,)
    ]


def _named_tick_json(named: NamedTick) -> dict[str, Any]:
    return {"name": named.name, **tick_json(named.tick)}


@contextmanager
def _telling(
    operating: Operating, report: Report, done: Callable[[Report], tuple[dict[str, Any], list[str]]]
) -> Iterator[None]:
    """Print what became of everything, also of what came before an error; exit with 1 when something was refused.

    ``done`` returns what was done, as JSON and as lines. For a person what was not done is on standard error.
    """
    try:
        yield
    except BaseException:
        if report != Report():
            _print(operating, report, *done(report))
        raise
    _print(operating, report, *done(report))
    if report.refused:
        raise typer.Exit(REFUSED)


def _print(operating: Operating, report: Report, shown: dict[str, Any], lines: Sequence[str]) -> None:
    def print_lines(console: "Console") -> None:
        for line in lines:
            console.print(line)
        if report == Report():
            console.print("Nothing is dead.")

    refused = [asdict(one) for one in report.refused]
    operating.print({**shown, "refused": refused, "not_found": report.not_found}, print_lines)
    if operating.as_json:
        return
    for note in report.notes:
        sys.stderr.write(f"galley: {_line(note)}\n")
    for one in report.refused:
        sys.stderr.write(f"galley: {_line(one.why)}\n")
    for name in report.not_found:
        sys.stderr.write(f"galley: {printable(name)} was not there any more to be taken away; see 'galley dlq list'\n")


def _resent(report: Report) -> tuple[dict[str, Any], list[str]]:
    lines = []
    for sent in report.sent:
        of = "" if sent.runs == (sent.name,) else f"{sent.name}: "
        lines.append(f"sent again: {of}{', '.join(sent.runs)}")
    lines += [f"was sent again before, and only its letter was left: {name}" for name in report.sent_before]
    resent = [asdict(sent) for sent in report.sent]
    return {"resent": resent, "sent_before": report.sent_before, "notes": report.notes}, lines


def _discarded(report: Report) -> tuple[dict[str, Any], list[str]]:
    return {"discarded": report.discarded}, [f"discarded: {name}" for name in report.discarded]
