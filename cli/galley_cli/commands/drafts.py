"""``galley drafts``: read what waits, and decide it."""

import csv
import io
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from galley.answers import conflict_line, draft_answer, run_answer, verdict
from galley.drafts import Attachment
from galley.edits import MAX_WORDS, checked_body, checked_title, checked_words
from galley.instants import format_instant
from galley.listing import all_watched
from galley.money import usd
from galley.reading import read_draft, read_run
from galley.rules import Review
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
    confirm,
    console,
    group,
)
from galley_cli.commands.shown import columns, status_of
from galley_cli.os_user import os_user

if TYPE_CHECKING:
    from rich.console import Console

drafts = group("drafts", "Read the drafts that wait for a decision, and decide them.")

SHORTEST_HASH = 8
"""How many characters of a hash name a text, at least."""

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
    """List the drafts that wait for a decision, the urgent ones first, then the oldest."""
    operating = Operating(state, stack, as_json)
    page = all_watched(operating.open().store, Status.PENDING)

    def table(console: "Console") -> None:
        listed = columns("run", "title", "drafted", "expires", "hash")
        for run in page.runs:
            title = f"urgent: {run.title}" if run.rules.urgent else run.title
            listed.add_row(
                str(run.key), title, _minute(run.drafted), _minute(run.rules.expires), (run.text_hash or "")[:12]
            )
        console.print(listed if page.runs else "No draft waits.")
        for line in page.unreadable:
            console.print(f"unreadable: {line}")

    operating.print({"drafts": [run_answer(run) for run in page.runs], "unreadable": list(page.unreadable)}, table)


@drafts.command()
def show(
    run: RunArgument,
    attachment: Annotated[
        str | None,
        typer.Option(
            "--attachment", metavar="NAME", help="Write only this attachment, as it is: redirect it to a file."
        ),
    ] = None,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a draft: its text, warnings and attachments, what it was made from, and the hash to decide it by."""
    operating = Operating(state, stack, as_json)
    opened = operating.open()
    row, stored = read_draft(opened.store, RunKey.parse(run))
    if attachment is not None:
        _write_attachment(stored, attachment)
        return
    operating.print(draft_answer(row, stored), lambda console: _print_draft(console, _Read(row, stored)))


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
    words: Annotated[str, typer.Option(help=f"In your own words, at most {MAX_WORDS} characters.")] = "",
    read_hash: HashOption = None,
    yes: YesOption = False,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reject a draft, with the reason."""
    words = _checked("--words", checked_words, words)
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
    yes: YesOption = False,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Edit a draft and approve the edit: in your editor, or from a file. The original is kept beside it."""
    operating = Operating(state, stack, as_json)
    opened = operating.open()
    read = _pending(opened, run, read_hash)
    if file is None:
        with _edited(read) as text:
            edit = _edit_of(text, read)
            if not yes:
                confirm("Approve this edit?", "nothing was decided")
            _decide(operating, opened, read, edit)
        return
    edit = _edit_of(_text_of(file), read)
    if read_hash is None and not yes:
        _need_terminal()
        console().print(f"{edit.title}\n\n{edit.body}\n")
        confirm("Approve this edit?", "nothing was decided")
    _decide(operating, opened, read, edit)


def _edit_of(text: str, read: _Read) -> Approve:
    """Return the edit in a text, its first line the title; the body ends as the one that was read ends."""
    title, _, body = text.lstrip().partition("\n")
    title, body = title.removeprefix("# ").strip(), body.strip()
    if not title or not body:
        raise BadInput("the edit needs a title in its first line and a text below it; nothing was decided")
    if read.stored.body.endswith("\n"):
        body += "\n"
    return Approve(_checked("the edit's title", checked_title, title), _checked("the edit's text", checked_body, body))


def _checked(what: str, check: Callable[[str], str], text: str) -> str:
    try:
        return check(text)
    except ValueError as error:
        raise BadInput(f"{what} {error}; nothing was decided") from error


def _read_to_decide(opened: Opened, run: str, read_hash: str | None, yes: bool, question: str) -> _Read:
    """Return the draft that the reviewer has read: by its hash, or because it is shown and confirmed here."""
    read = _pending(opened, run, read_hash)
    if read_hash is None and not yes:
        _need_terminal()
        _print_draft(console(), read)
        confirm(question, "nothing was decided")
    return read


def _need_terminal() -> None:
    if not sys.stdin.isatty():
        raise BadInput(
            "say which text you decide: --hash with the hash that 'galley drafts show' prints, "
            "or --yes for whatever is stored now"
        )


def _pending(opened: Opened, run: str, read_hash: str | None) -> _Read:
    if read_hash is not None and len(read_hash) < SHORTEST_HASH:
        raise BadInput(f"--hash {read_hash!r} is too short; give at least {SHORTEST_HASH} characters of the hash")
    row = read_run(opened.store, RunKey.parse(run))
    if row.status is not Status.PENDING:
        raise Refused(conflict_line(row, row.version))
    row, stored = read_draft(opened.store, row.key)
    if read_hash is not None and not (row.text_hash or "").startswith(read_hash.lower()):
        raise Refused(f"run {row.key} has the text {(row.text_hash or '')[:12]} now, not {read_hash!r}; read it again")
    return _Read(row, stored)


def _decide(operating: Operating, opened: Opened, read: _Read, verdict: Approve | Reject) -> None:
    outcome = opened.store.decide(
        read.run.key,
        verdict,
        version=read.run.version,
        read_hash=read.run.text_hash or "",
        reviewer=f"{os_user()} (command line)",
        now=opened.now(),
    )
    match outcome:
        case Settled(run):
            operating.print(run_answer(run), lambda console: console.print(f"{run.key} is {run.status}."))
        case Conflict(run):
            raise Refused(conflict_line(run, read.run.version))
        case NoSuchRun():
            raise Refused(f"there is no run {read.run.key} any more")


@contextmanager
def _edited(read: _Read) -> Iterator[str]:
    """Give what the reviewer's editor left of the draft, in a file that stays where the block does not decide it."""
    if not sys.stdin.isatty():
        raise BadInput("there is no terminal for an editor; give the new text with --file, - for standard input")
    before = f"{read.stored.title}\n\n{read.stored.body}\n"
    folder = Path(tempfile.mkdtemp(prefix="galley-edit-"))
    file = folder / f"{read.run.drafter}.md"
    file.write_text(before, encoding="utf-8")
    try:
        _run_editor(file)
        after = _text_of(file)
        if after == before:
            raise Refused("the text was not changed; nothing was decided")
        yield after
    except BaseException:
        if file.is_file() and file.read_bytes() != before.encode():
            sys.stderr.write(f"galley: your text is kept in {file}; edit takes it with --file\n")
            raise
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _run_editor(file: Path) -> None:
    variable = next((name for name in ("VISUAL", "EDITOR") if os.environ.get(name)), None)
    editor = os.environ[variable] if variable else "vi"
    remedy = f"nothing was decided; set {variable or 'EDITOR'} to your editor, or give the new text with --file"
    named = f"{variable} is {editor!r}" if variable else f"the editor is {editor!r}"
    try:
        subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603 - the reviewer's own editor
    except FileNotFoundError as error:
        raise BadInput(f"{named}: there is no such program; {remedy}") from error
    except subprocess.CalledProcessError as error:
        ended = f"was ended by signal {-error.returncode}" if error.returncode < 0 else f"failed ({error.returncode})"
        raise BadInput(f"{named}: it {ended}; {remedy}") from error
    except OSError as error:
        raise BadInput(f"{named}: it cannot be started ({error.strerror}); {remedy}") from error
    except ValueError as error:
        raise BadInput(f"{named}: a quotation mark is not closed; {remedy}") from error


def _text_of(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BadInput(f"--file {file}: there is no such file; nothing was decided") from error
    except OSError as error:
        raise BadInput(f"--file {file}: cannot be read ({error.strerror}); nothing was decided") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"--file {file}: is not UTF-8 text; nothing was decided") from error


def _write_attachment(stored: StoredDraft, name: str) -> None:
    named = {attachment.name: attachment for attachment in stored.draft.attachments}
    if name not in named:
        raise BadInput(f"--attachment {name!r}: the draft has {', '.join(named) or 'no attachments'}")
    sys.stdout.buffer.write(named[name].text.encode())
    sys.stdout.flush()


def _print_attachment(console: "Console", attachment: Attachment) -> None:
    console.print(f"attachment {attachment.name} ({attachment.media_type}, {attachment.size:,} bytes)")
    if attachment.media_type != "text/csv":
        return
    head, *rows = csv.reader(io.StringIO(attachment.text))
    table = columns(*head)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _minute(instant: datetime | None) -> str:
    return "" if instant is None else f"{instant:%Y-%m-%d %H:%M}Z"


def _print_draft(console: "Console", read: _Read) -> None:
    run, stored = read.run, read.stored
    if run.rules.review is Review.NONE:
        console.print("Nobody reviews this draft: it is sent unread (review = none).\n")
    console.print(f"{stored.title}\n{'=' * min(len(stored.title), 100)}\n\n{stored.body}\n")
    for warning in stored.draft.warnings:
        console.print(f"warning: {warning}")
    for attachment in stored.draft.attachments:
        _print_attachment(console, attachment)
    for item in stored.draft.items:
        console.print(f"[{item.id}] {item.title}{f' <{item.link}>' if item.link else ''}")
    goes_to = ", ".join(f"{channel.kind}:{channel.target}" for channel in stored.draft.channels) or "nowhere"
    console.print(f"\nrun {run.key}, {status_of(run)}; by {run.model}, {usd(run.cost_nanousd)}; goes to {goes_to}")
    if run.decision is not None and run.rules.review is not Review.NONE:
        console.print(f"{verdict(run.decision)} by {run.decision.reviewer} at {format_instant(run.decision.at)}")
        if run.decision.words:
            console.print(f"words: {run.decision.words}")
    if run.status in {Status.EXPIRED, Status.SUPERSEDED}:
        console.print(f"{run.status}: {run.detail}")
    if run.status is Status.PENDING and run.rules.expires is not None:
        console.print(f"expires {_minute(run.rules.expires)}, if nobody decides on it")
    console.print(f"hash {(run.text_hash or '')[:12]}")
