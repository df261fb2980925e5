"""``galley draft``: what a drafter would make of a slot. Nothing is stored, claimed, booked or written."""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from galley.contract import CatchUp, Contract, as_slot
from galley.instants import format_instant
from galley.money import usd
from galley.runs import Origin, RunKey, RunMessage
from galley.schedules import ScheduleDefinition, Schedules
from galley_cli.backfilling import backfill_message
from galley_cli.checkout import find_checkout, put_on_path
from galley_cli.commands.common import (
    DEFAULT_STATE,
    BadInput,
    JsonOption,
    Operating,
    Refused,
    StackOption,
    StateOption,
    an_instant,
)
from galley_cli.commands.definitions import definitions, drafters_of
from galley_cli.commands.run import DEFAULT_PORT
from galley_cli.commands.shown import as_json as plain
from galley_cli.commands.shown import printable
from galley_cli.deployed_schedules import Sending, schedule_of
from galley_cli.local.environment import MODEL_KEY, model_provider

if TYPE_CHECKING:
    from rich.console import Console

    from drafter import Drafter
    from galley.bucket import Bucket
    from galley.queue import RunQueue
    from galley.store import Store
    from galley_cli.local.state import StateDirectory
    from galley_cli.rehearsal import Drafted, Rehearsal, Sent
    from model import Model
    from shapes.shape import Material

_BY_HAND = Contract(window_minutes=30, grace_minutes=120, catch_up=CatchUp.NONE)
"""What a run without a schedule promises; a rehearsal keeps none of it."""


class Show(StrEnum):
    """What is shown in the draft's place."""

    PROMPT = "prompt"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("draft")(draft)


def draft(
    drafter: Annotated[str, typer.Argument(metavar="DRAFTER", help="Its name: that of its file, without .toml.")],
    slot: Annotated[
        datetime | None,
        typer.Option(
            parser=an_instant,
            metavar="INSTANT",
            help="The slot; without one the latest that is due, or the present minute where no schedule names it.",
        ),
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose slots, where several schedules name the drafter.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Read the drafter from this file instead of its own.")
    ] = None,
    show: Annotated[Show | None, typer.Option(help="Show what the model would be sent, and do not call it.")] = None,
    afresh: Annotated[
        bool, typer.Option("--afresh", help="Read the sources as a first run does, as if nothing had been drafted.")
    ] = False,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draft one slot for its author: the real sources and the real model, and nothing is stored.

    Claude writes where ANTHROPIC_API_KEY is set, else the offline model. The call costs money and is booked nowhere;
    it is refused where a run's would be, by the day's budget.
    """
    operating = Operating(state, stack, as_json)
    put_on_path(find_checkout())
    read = _read(drafter, file)
    with _opened(operating) as opened, _logged():
        rehearsal, notes = _rehearsal(opened, read, schedule, slot, afresh)
        if show is None and (why := rehearsal.over_budget()):
            raise Refused(f"a run of {drafter} would be skipped for its budget: {why}")
        material = rehearsal.collect()
        notes += rehearsal.notes()
        if material.nothing_new is not None and not afresh and opened.store.memory(drafter).cursors:
            notes.append("--afresh reads the sources as a first run does, whatever has been drafted from them")
        told = _Told(rehearsal, material, tuple(notes))
        if material.nothing_new is not None:
            told.print_quiet(operating, material.nothing_new)
        elif show is Show.PROMPT:
            told.print_prompt(operating, rehearsal.prompt(material))
        else:
            told.print_draft(operating, rehearsal.write(material))


@dataclass(frozen=True, slots=True)
class _Told:
    """What is told of a rehearsal, whatever came of it."""

    rehearsal: "Rehearsal"
    material: "Material"
    notes: tuple[str, ...]

    def print_draft(self, operating: Operating, drafted: "Drafted") -> None:
        """Print the draft as it would be stored."""
        draft, answer = drafted.draft, drafted.answer

        def lines(console: "Console") -> None:
            console.print(f"{draft.title}\n{'=' * min(len(draft.title), 100)}\n\n{draft.body}\n")
            for warning in draft.warnings:
                console.print(f"warning: {warning}")
            for item in draft.items:
                console.print(f"[{item.id}] {item.title}{f' <{item.link}>' if item.link else ''}")
            for one in draft.attachments:
                console.print(f"attached: {one.name}, {one.media_type}, {one.size:,} bytes")
            goes_to = ", ".join(f"{channel.kind}:{channel.target}" for channel in draft.channels) or "nowhere"
            self._print_end(console)
            if drafted.rules.expires is not None:
                console.print(f"undecided, it would expire at {format_instant(drafted.rules.expires)}")
            console.print(f"by {draft.model}, {usd(answer.cost_nanousd)}; goes to {goes_to}")

        data = {
            "outcome": "draft",
            **plain(draft),
            "rules": plain(drafted.rules),
            "usage": plain(answer.usage),
            "cost_nanousd": answer.cost_nanousd,
            **self._json(),
        }
        self._print(operating, data, lines)

    def print_quiet(self, operating: Operating, why: str) -> None:
        """Print that there is nothing to draft, and why."""

        def lines(console: "Console") -> None:
            console.print(f"empty: {why}\n")
            self._print_end(console)

        warnings = list(self.material.warnings)
        self._print(operating, {"outcome": "empty", "detail": why, "warnings": warnings, **self._json()}, lines)

    def print_prompt(self, operating: Operating, sent: "Sent") -> None:
        """Print what the model would be sent, letter for letter but for control characters; in JSON with those."""
        prompt, brief = sent.prompt, sent.brief
        about = (
            f"{brief.model} would read at most {sent.input_tokens} tokens of {brief.max_input_tokens} and write "
            f"at most {brief.max_output_tokens}: {usd(sent.cost_nanousd)} at most"
        )

        def lines(console: "Console") -> None:
            for name, text in (("system", prompt.system), ("user", prompt.user)):
                sys.stdout.write(f"--- {name}\n{printable(text)}\n")
            sys.stdout.write("---\n")
            for what, ids in (("read only in part", prompt.shortened), ("not read", prompt.left_out)):
                if ids:
                    console.print(f"{what}, over the limit of input tokens: {', '.join(ids)}")
            self._print_end(console)
            console.print(f"{about}; it was not called")

        data = {
            "outcome": "prompt",
            "model": brief.model,
            "system": prompt.system,
            "user": prompt.user,
            "shortened": list(prompt.shortened),
            "left_out": list(prompt.left_out),
            "input_tokens": sent.input_tokens,
            "max_output_tokens": brief.max_output_tokens,
            "cost_nanousd": sent.cost_nanousd,
            "warnings": list(self.material.warnings),
            **self._json(),
        }
        self._print(operating, data, lines)

    def _print(self, operating: Operating, data: dict[str, Any], lines: "Callable[[Console], None]") -> None:
        if not operating.as_json:
            for note in self.notes:
                sys.stderr.write(f"galley: {printable(note)}\n")
        operating.print(data, lines)

    def _print_end(self, console: "Console") -> None:
        rehearsal, window = self.rehearsal, self.rehearsal.window
        span = " to ".join(f"{end.astimezone(window.zone):%Y-%m-%d %H:%M}" for end in (window.start, window.end))
        console.print(f"\nrun {rehearsal.message.key}, about {span} {window.zone.key}; nothing was stored")
        written, removed = rehearsal.bucket.written, rehearsal.bucket.removed
        if written or removed:
            console.print(f"the index would change: {len(written)} written, {len(removed)} removed")
        drafter = rehearsal.drafter
        budget = drafter.daily_budget_nanousd
        ceiling = "no daily budget" if budget is None else f"of {usd(budget)} a day"
        console.print(f"a run with {drafter.model} reserves {usd(rehearsal.reserved_nanousd)}, {ceiling}")

    def _json(self) -> dict[str, Any]:
        rehearsal, window = self.rehearsal, self.rehearsal.window
        return {
            "run": str(rehearsal.message.key),
            "drafter": rehearsal.drafter.name,
            "slot": format_instant(rehearsal.message.slot),
            "schedule": rehearsal.message.schedule,
            "window": {
                "from": format_instant(window.start),
                "to": format_instant(window.end),
                "timezone": window.zone.key,
            },
            "reserved_nanousd": rehearsal.reserved_nanousd,
            "daily_budget_nanousd": rehearsal.drafter.daily_budget_nanousd,
            "cursors": sorted(self.material.cursors),
            "written": list(rehearsal.bucket.written),
            "removed": list(rehearsal.bucket.removed),
            "notes": list(self.notes),
        }


def _read(name: str, file: Path | None) -> "Drafter":
    from drafter import load_drafter, read_drafter

    return load_drafter(name, find_checkout().drafters) if file is None else read_drafter(file, name)


@dataclass(frozen=True, slots=True)
class _System:
    """What a run would meet: the rows, the sources, the schedules. ``desk_url`` is None where no desk runs."""

    store: "Store"
    queue: "RunQueue"
    bucket: "Bucket"
    schedules: Schedules
    desk_url: str | None
    now: Callable[[], datetime]


@contextmanager
def _opened(operating: Operating) -> Iterator[_System]:
    """Open the system. On one machine the schedules are those of template.yaml as it stands.

    Where none has run here yet, it is as it would be at its first start, in a folder that is gone afterwards.
    """
    if operating.stack is not None:
        from galley_cli.stack import open_sources

        opened, sources = operating.open(), open_sources(operating.stack)
        yield _System(opened.store, opened.queue, sources.bucket, opened.schedules, sources.desk_url, opened.now)
        return
    from galley_cli.local.state import StateDirectory
    from galley_cli.sample_material import put_samples

    if operating.state is not DEFAULT_STATE or StateDirectory.is_there(DEFAULT_STATE):
        yield _opened_here(operating, StateDirectory.open_existing(operating.state))
        return
    with TemporaryDirectory() as folder:
        opened_here = _opened_here(operating, StateDirectory.open(Path(folder)))
        put_samples(opened_here.bucket, opened_here.now())
        sys.stderr.write(f"galley: nothing has run on {DEFAULT_STATE} yet; its bucket would hold the sample material\n")
        yield opened_here


@contextmanager
def _logged() -> Iterator[None]:
    """Let what the function would log be read on standard error: standard output is for the draft."""
    from galley.observe import logger

    told = logging.StreamHandler(sys.stderr)
    told.setFormatter(logging.Formatter("galley: %(message)s"))
    before = list(logger.handlers)
    logger.handlers[:] = [told]
    try:
        yield
    finally:
        logger.handlers[:] = before


def _opened_here(operating: Operating, state: "StateDirectory") -> _System:
    from galley_cli.local.system import LocalSystem
    from galley_cli.template import TemplateSchedules

    found = definitions(operating)
    for problem in found.problems:
        sys.stderr.write(f"galley: {printable(problem)}\n")
    schedules = TemplateSchedules(found.schedules)
    system = LocalSystem(state, schedules, {})
    facts = state.running()
    desk_url = None if facts is None else str(facts.get("desk", "")) or None
    return _System(system.local_store, system.local_queues, system.local_bucket, schedules, desk_url, system.now)


def _rehearsal(
    system: _System, drafter: "Drafter", schedule: str | None, slot: datetime | None, afresh: bool
) -> tuple["Rehearsal", list[str]]:
    from attempt import Workplace
    from drafter_file.monitor import HealthSource
    from galley_cli.dry_bucket import DryBucket
    from galley_cli.rehearsal import Rehearsal
    from galley_cli.template import DRAFT, read_template
    from sources.fetch import fetch
    from sources.health import DESK

    now = system.now()
    found = _schedule_of(system.schedules.all(), drafter.name, schedule)
    notes: list[str] = []
    message = _message(drafter.name, found, slot, now, notes)
    bucket = DryBucket(system.bucket, system.now)
    desk_url = system.desk_url
    if desk_url is None:
        desk_url = f"http://127.0.0.1:{DEFAULT_PORT}"
        if any(isinstance(source, HealthSource) and source.url.startswith(DESK) for source in drafter.sources):
            notes.append(f"no system runs here, so desk: stands for {desk_url}, where nothing may answer")
    outside = Workplace(
        store=system.store,
        queue=system.queue,
        bucket=bucket,
        schedules=system.schedules,
        model=_model(),
        fetch=fetch,
        desk_url=desk_url.rstrip("/"),
        now=system.now,
    )
    limit = read_template(find_checkout().template).functions[DRAFT].time_limit
    return Rehearsal(drafter, message, outside, bucket, now + limit, afresh), notes


def _schedule_of(schedules: Sequence[ScheduleDefinition], drafter: str, name: str | None) -> Sending | None:
    """Return the schedule that names the drafter; None where none does and none is asked for."""
    return schedule_of(schedules, drafter, name) if name is not None or drafter in drafters_of(schedules) else None


def _message(drafter: str, found: Sending | None, slot: datetime | None, now: datetime, notes: list[str]) -> RunMessage:
    """Return the message by which a person would ask for the run."""
    minute = now.replace(second=0, microsecond=0)
    if slot is not None:
        slot = _slot(slot, now)
    if found is None:
        notes.append(f"no schedule names drafter {drafter}; its window is its own period_hours and timezone")
        key = RunKey(drafter, slot or minute)
        return RunMessage(drafter=drafter, slot=key.slot, origin=Origin.MANUAL, contract=_BY_HAND)
    name = found.schedule.name
    latest = found.calendar.latest_until(now)
    if slot is None and latest is None:
        notes.append(f"schedule {name} has not been due yet, so the slot is the present minute")
    elif slot is not None and next(found.calendar.between(slot, slot + timedelta(seconds=1)), None) is None:
        notes.append(f"schedule {name} is not due at {format_instant(slot)}; its window begins at the slot before")
    return backfill_message(found.tick, RunKey(drafter, slot or latest or minute), found.schedule, "")


def _slot(slot: datetime, now: datetime) -> datetime:
    try:
        slot = as_slot(slot)
    except ValueError as error:
        raise BadInput(f"--slot {format_instant(slot)} {error}") from error
    if slot > now:
        raise Refused(f"slot {format_instant(slot)} has not come yet; give one that has, or none for the latest")
    return slot


def _model() -> "Model":
    from model import open_model

    def key(*, refresh: bool) -> str:
        return os.environ[MODEL_KEY]

    return open_model(model_provider(os.environ), key=key)
