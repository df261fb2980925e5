"""``galley drafts``: read what waits, and decide it."""

import getpass
import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from galley.runs import RejectReason, Run, RunKey, Status
from galley.store import Approve, Conflict, NoSuchRun, Reject, Settled, StoredDraft
from galley_cli.commands.common import (
    DEFAULT_STATE,
    BadInput,
    JsonOption,
    Opened,
    Operating,
    Refused,
    StackOption,
    StateOption,
)
from galley_cli.commands.shown import columns, draft_json, run_json, state_of, watched

if TYPE_CHECKING:
    from rich.console import Console

drafts = typer.Typer(
    name="drafts", help="Read the drafts that wait for a decision, and decide them.", no_args_is_help=True
)

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="daily-digest:2026-03-29T05:00:00Z")]
HashOption = Annotated[
    str | None, typer.Option("--hash", metavar="HASH", help="The hash of the text that you read, or its beginning.")
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask; decide the text that is stored now.")]


@dataclass(frozen=True, slots=True)
class _Read:
    """A pending draft as it was read from the store."""

    run: Run
    stored: StoredDraft


@drafts.command("list")
def list_drafts(state: StateOption = DEFAULT_STATE, stack: StackOption = None, as_json: JsonOption = False) -> None:
    """List the drafts that wait for a decision, oldest first."""
    operating = Operating(state, stack, as_json)
    page = watched(operating.open().store, Status.PENDING)

    def table(console: "Console") -> None:
        listed = columns("run", "title", "drafted", "hash")
        for run in page.runs:
            listed.add_row(str(run.key), run.title, f"{run.drafted:%Y-%m-%d %H:%M}Z", (run.text_hash or "")[:12])
        console.print(listed if page.runs else "No draft waits.")
        for line in page.unreadable:
            console.print(f"unreadable: {line}")

    operating.print({"drafts": [run_json(run) for run in page.runs], "unreadable": list(page.unreadable)}, table)


@drafts.command()
def show(
    run: RunArgument, state: StateOption = DEFAULT_STATE, stack: StackOption = None, as_json: JsonOption = False
) -> None:
    """Show a draft: its text, its warnings, what it was made from, and the hash to decide it by."""
    operating = Operating(state, stack, as_json)
    opened = operating.open()
    key = RunKey.parse(run)
    row, stored = opened.store.run(key), opened.store.draft(key)
    if row is None:
        raise Refused(f"there is no run {key}")
    if stored is None:
        raise Refused(f"run {key} has no draft; it is {state_of(row)}{f' ({row.detail})' if row.detail else ''}")
    operating.print(draft_json(row, stored), lambda console: _print_draft(console, _Read(row, stored)))


@drafts.command()
def approve(
    run: RunArgument,
    read_hash: HashOption = None,
    yes: YesOption = False,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Approve a draft as it stands."""
    operating = Operating(state, stack, as_json)
    opened = operating.open()
    read = _read_to_decide(opened, run, read_hash, yes, "Approve this text?")
    _decide(operating, opened, read, Approve())


@drafts.command()
def reject(
    run: RunArgument,
    reason: Annotated[RejectReason, typer.Option(help="Why.")],
    words: Annotated[str, typer.Option(help="In your own words, at most 1000 characters.")] = "",
    read_hash: HashOption = None,
    yes: YesOption = False,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reject a draft, with the reason."""
    if len(words) > 1000:
        raise BadInput(f"--words has {len(words)} characters; use at most 1000")
    operating = Operating(state, stack, as_json)
    opened = operating.open()
    read = _read_to_decide(opened, run, read_hash, yes, "Reject this text?")
    _decide(operating, opened, read, Reject(reason, words))


@drafts.command()
def edit(
    run: RunArgument,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="The new text, its first line the title; - is standard input."),
    ] = None,
    read_hash: HashOption = None,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Edit a draft and approve the edit: in your editor, or from a file. The original is kept beside it."""
    operating = Operating(state, stack, as_json)
    opened = operating.open()
    read = _pending(opened, run, read_hash)
    text = _edited(read) if file is None else _text_of(file)
    title, _, body = text.lstrip().partition("\n")
    title, body = title.removeprefix("# ").strip(), body.strip()
    if not title or not body:
        raise BadInput("the edit needs a title in its first line and a text below it; nothing was decided")
    _decide(operating, opened, read, Approve(title, body))


def _read_to_decide(opened: Opened, run: str, read_hash: str | None, yes: bool, question: str) -> _Read:
    """Return the draft that the reviewer has read: by its hash, or because it is shown and confirmed here."""
    read = _pending(opened, run, read_hash)
    if read_hash is None and not yes:
        if not sys.stdin.isatty():
            raise BadInput(
                "say which text you decide: --hash with the hash that 'galley drafts show' prints, "
                "or --yes for whatever is stored now"
            )
        from galley_cli.commands.common import console

        _print_draft(console(), read)
        if not typer.confirm(question):
            raise Refused("nothing was decided")
    return read


def _pending(opened: Opened, run: str, read_hash: str | None) -> _Read:
    key = RunKey.parse(run)
    row, stored = opened.store.run(key), opened.store.draft(key)
    if row is None:
        raise Refused(f"there is no run {key}")
    if row.status is not Status.PENDING or stored is None:
        raise Refused(_is_now(row))
    if read_hash is not None and (len(read_hash) < 8 or not (row.text_hash or "").startswith(read_hash.lower())):
        raise Refused(
            f"run {key} has the text {(row.text_hash or '')[:12]} now, not {read_hash!r}; read it again "
            "(at least 8 characters of the hash are needed)"
        )
    return _Read(row, stored)


def _decide(operating: Operating, opened: Opened, read: _Read, verdict: Approve | Reject) -> None:
    outcome = opened.store.decide(
        read.run.key,
        verdict,
        version=read.run.version,
        read_hash=read.run.text_hash or "",
        reviewer=f"{getpass.getuser()} (command line)",
        now=opened.now(),
    )
    match outcome:
        case Settled(run):
            operating.print(run_json(run), lambda console: console.print(f"{run.key} is {run.status}."))
        case Conflict(run):
            raise Refused(_is_now(run))
        case NoSuchRun():
            raise Refused(f"there is no run {read.run.key} any more")


def _is_now(run: Run) -> str:
    who = ""
    if run.decision is not None:
        who = f", decided by {run.decision.reviewer} at {run.decision.at:%Y-%m-%d %H:%M}Z"
    return f"run {run.key} does not wait for a decision; it is {state_of(run)}{who}"


def _edited(read: _Read) -> str:
    """Return what the reviewer's editor left of the draft."""
    if not sys.stdin.isatty():
        raise BadInput("there is no terminal for an editor; give the new text with --file, - for standard input")
    before = f"{read.stored.title}\n\n{read.stored.body}\n"
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{read.run.drafter}.md"
        file.write_text(before, encoding="utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603 - the reviewer's own editor
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise BadInput(f"EDITOR is {editor!r}: {error}; nothing was decided") from error
        after = file.read_text(encoding="utf-8")
    if after == before:
        raise Refused("the text was not changed; nothing was decided")
    return after


def _text_of(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--file {file}: cannot be read as UTF-8 text ({error})") from error


def _print_draft(console: "Console", read: _Read) -> None:
    run, stored = read.run, read.stored
    console.print(f"{stored.title}\n{'=' * min(len(stored.title), 100)}\n\n{stored.body}\n")
    for warning in stored.draft.warnings:
        console.print(f"warning: {warning}")
    for item in stored.draft.items:
        console.print(f"[{item.id}] {item.title}{f' <{item.link}>' if item.link else ''}")
    goes_to = ", ".join(f"{channel.kind}:{channel.target}" for channel in stored.draft.channels) or "nowhere"
    console.print(f"\nrun {run.key}, {state_of(run)}; by {run.model}, ${run.cost_nanousd / 1e9:.4f}; goes to {goes_to}")
    console.print(f"hash {(run.text_hash or '')[:12]}")
