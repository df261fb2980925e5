"""The command ``galley``. Exit codes: 0 done, 1 refused, 2 bad input."""

import io
import os
import sys
from collections.abc import Sequence

import typer

from galley import __version__
from galley_cli.commands import (
    backfill,
    calendar,
    check,
    dlq,
    draft,
    drafters,
    drafts,
    new,
    run,
    runs,
    schedules,
    slots,
    stats,
)
from galley_cli.commands.common import explained, show_help

app = typer.Typer(
    name="galley",
    help="Runs AI drafters on a calendar and puts a person in charge of what leaves.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
run.register(app)
app.add_typer(drafts.drafts)
app.add_typer(runs.runs)
app.add_typer(dlq.dlq)
app.add_typer(schedules.schedules)
slots.register(app)
calendar.register(app)
backfill.register(app)
drafters.register(app)
stats.register(app)
draft.register(app)
new.register(app)
check.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"galley {__version__}\n")
        raise typer.Exit


@app.callback()
def _galley(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Runs AI drafters on a calendar and puts a person in charge of what leaves."""
    show_help(context)


def invoke(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code. What a person did wrong is one line on standard error."""
    try:
        return int(app(args=list(arguments), prog_name="galley", standalone_mode=False) or 0)
    except typer.Abort:
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough; let the interpreter not stumble over it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        known = explained(error)
        if known is None:
            raise
        line, code = known
        if line:
            sys.stderr.write(f"galley: {' '.join(line.split())}\n")
        return code


def main() -> None:
    """Run the command line of this process. What its output's encoding lacks is printed as a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(invoke(sys.argv[1:]))
