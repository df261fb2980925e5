"""``galley backfill`` and ``galley tick``: slots that a person asks for, sent as a schedule would send them."""

import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from galley.contract import as_slot
from galley.instants import format_instant
from galley.runs import Origin, Run, RunKey, messages_for
from galley_cli.backfilling import MOST_SLOTS, Backfill, Order, Planned, Rerun, Step, plan
from galley_cli.commands.common import (
    DEFAULT_STATE,
    AsksAtOnce,
    BadInput,
    JsonOption,
    Moment,
    Operating,
    Refused,
    StackOption,
    StateOption,
    a_moment,
    an_instant,
    whole_number,
)
from galley_cli.commands.definitions import changed_since_start, drafters_of
from galley_cli.commands.shown import columns, printable, status_of
from galley_cli.deployed_schedules import NoSuchSchedule, Sending, schedule_named, schedule_of
from galley_cli.obstacles import Obstacles, obstacles
from galley_cli.rows import Unreadable, rows_at

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("backfill", cls=AsksAtOnce)(backfill)
    app.command("tick")(tick)


def backfill(
    drafter: Annotated[str, typer.Argument(metavar="DRAFTER", help="Its name, as 'galley drafters' lists it.")],
    begin: Annotated[
        Moment, typer.Option("--from", parser=a_moment, metavar="INSTANT", help="The first instant of the range.")
    ],
    until: Annotated[
        Moment, typer.Option("--to", parser=a_moment, metavar="INSTANT", help="Its end, which is not in it.")
    ],
    schedule: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose slots, where several schedules name the drafter.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what each slot would become.")] = False,
    order: Annotated[Order, typer.Option(help="Which slots are drafted first.")] = Order.OLDEST,
    rerun: Annotated[Rerun, typer.Option(help="Which slots that have a row are sent again.")] = Rerun.NONE,
    limit: Annotated[
        int | None,
        typer.Option(parser=whole_number(1, MOST_SLOTS), metavar="NUMBER", help="Send at most so many."),
    ] = None,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send the slots of a past range that have no row. No grace binds them; the gate, a pause and the budget do.

    An INSTANT is like 2026-03-29T05:00:00Z, or a date: its midnight in the schedule's timezone. The command can be
    repeated, also after it was interrupted: a slot is never drafted twice.
    """
    operating = Operating(state, stack, as_json)
    opened = operating.open()
    with _naming_what_a_start_takes_up(operating, schedule, drafter):
        found = schedule_of(opened.schedules.all(), drafter, schedule)
    first, end = (moment.at(found.schedule.timezone) for moment in (begin, until))
    if first >= end:
        raise BadInput(f"--from {format_instant(first)} is not before --to {format_instant(end)}")
    now = opened.now()
    slots = _slots(found, first, min(end, now), drafter)
    planned = plan(drafter, rows_at(opened.store, drafter, slots), order=order, rerun=rerun, limit=limit)
    in_the_way = obstacles(opened.store, drafter)
    told = _Told(found.schedule.name, first, end, dry_run, planned, in_the_way, end > now)
    if not as_json:
        for note in told.notes:
            sys.stderr.write(f"galley: {printable(note)}\n")
    sending = Backfill(opened.store, opened.queue, found.schedule, found.tick, now=opened.now, trace=str(uuid.uuid4()))
    try:
        if not dry_run:
            with _progress(told.to_send) as advance:
                sending.send(planned, advance)
    except BaseException:
        told.print(operating, drafter, sending)
        left = told.to_send - len(sending.sent) - len(sending.overtaken)
        sys.stderr.write(f"galley: broke off, {left} of {told.to_send} are not sent; the same command sends the rest\n")
        raise
    told.print(operating, drafter, sending)


def tick(
    schedule: Annotated[str, typer.Argument(metavar="SCHEDULE", help="Its name, as 'galley schedules' lists it.")],
    slot: Annotated[
        datetime | None,
        typer.Option(parser=an_instant, metavar="INSTANT", help="The slot to draft, whatever its grace."),
    ] = None,
    state: StateOption = DEFAULT_STATE,
    stack: StackOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send one tick by hand: the schedule's runs for the present minute, or for the slot that is given.

    A run that has a row already stays as it is.
    """
    operating = Operating(state, stack, as_json)
    opened = operating.open()
    with _naming_what_a_start_takes_up(operating, schedule):
        found = schedule_named(opened.schedules.all(), schedule)
    now = opened.now()
    if slot is not None:
        slot = _given_slot(slot)
        _look_at(slot, found, now)
    messages = messages_for(
        found.tick,
        slot or now.replace(second=0, microsecond=0),
        origin=Origin.MANUAL if slot is None else Origin.BACKFILL,
        schedule=found.schedule.arn,
        trace=str(uuid.uuid4()),
    )
    rows = {message.key: opened.store.run(message.key) for message in messages}
    missing = [message for message in messages if rows[message.key] is None]
    notes = [note for message in missing for note in obstacles(opened.store, message.drafter).notes(1)]
    if not as_json:
        for note in notes:
            sys.stderr.write(f"galley: {printable(note)}\n")
    if missing:
        opened.queue.send(missing)

    def lines(console: "Console") -> None:
        for key, row in rows.items():
            console.print(f"sent: {key}" if row is None else f"stays {printable(status_of(row))}: {key}")

    runs = [{"run": str(key), "sent": row is None, **_row_json(row)} for key, row in rows.items()]
    operating.print({"schedule": found.schedule.name, "runs": runs, "notes": notes}, lines)


def _given_slot(given: datetime) -> datetime:
    try:
        return as_slot(given)
    except ValueError as error:
        raise BadInput(f"--slot {format_instant(given)} {error}; nothing was sent") from error


def _look_at(slot: datetime, sending: Sending, now: datetime) -> None:
    """Refuse a slot that has not come; warn of one at which the schedule is not due."""
    if slot > now:
        raise Refused(f"slot {format_instant(slot)} has not come yet: a run for it now would take its own tick's place")
    if next(sending.calendar.between(slot, slot + timedelta(seconds=1)), None) is None:
        sys.stderr.write(
            f"galley: schedule {sending.schedule.name} is not due at {format_instant(slot)}; "
            "its run is about what came since the slot before\n"
        )


def _slots(sending: Sending, first: datetime, end: datetime, drafter: str) -> list[datetime]:
    """Return the schedule's slots in a range, also those from before it was made: a person asks for them."""
    slots = list(islice(sending.calendar.between(first, end), MOST_SLOTS + 1))
    if len(slots) > MOST_SLOTS:
        raise BadInput(
            f"schedule {sending.schedule.name} has more than {MOST_SLOTS} slots from {format_instant(first)} to "
            f"{format_instant(end)}; give a shorter range"
        )
    return [RunKey(drafter, slot).slot for slot in slots]


@contextmanager
def _naming_what_a_start_takes_up(
    operating: Operating, schedule: str | None, drafter: str | None = None
) -> Iterator[None]:
    """Where a schedule is not found, say so if template.yaml has it and the system was not started since."""
    try:
        yield
    except NoSuchSchedule as error:
        for one in changed_since_start(operating):
            if one.name == schedule or (schedule is None and drafter in drafters_of([one])):
                raise NoSuchSchedule(
                    f"{error}; {one.name} was changed in template.yaml since 'galley run' last started, "
                    "which takes it up at its next start"
                ) from error
        raise


@dataclass(frozen=True, slots=True)
class _Told:
    """What is told of a backfill."""

    schedule: str
    first: datetime
    end: datetime
    dry_run: bool
    planned: Sequence[Planned]
    in_the_way: Obstacles
    has_slots_to_come: bool

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person may not expect, a line each."""
        coming = ("slots that have not come yet are left to the schedule",) if self.has_slots_to_come else ()
        return (*coming, *self.in_the_way.notes(self.to_send))

    @property
    def to_send(self) -> int:
        """How many slots are to be sent."""
        return sum(one.step is not Step.LEAVE for one in self.planned)

    def print(self, operating: Operating, drafter: str, sending: Backfill) -> None:
        """Print what became of each slot, or would."""
        shown = [
            {
                "run": str(one.key),
                "slot": format_instant(one.key.slot),
                **_row_json(one.row),
                "step": str(one.step),
                "why": one.why or None,
                "sent": one.key in sending.sent,
            }
            for one in self.planned
        ]

        def table(console: "Console") -> None:
            listed = columns("run", "row", "backfill")
            for one in self.planned:
                listed.add_row(str(one.key), printable(_row_line(one.row)), printable(self._what(one, sending)))
            until_now = " until now" if self.has_slots_to_come else ""
            console.print(listed if self.planned else f"Schedule {self.schedule} has no slot in that range{until_now}.")
            if self.dry_run:
                takes = self.in_the_way.gate_takes
                gate = "" if takes is None else f", and the gate takes {min(takes, self.to_send)} of them now"
                console.print(f"{self.to_send} would be sent{gate if self.to_send else ''}; nothing was.")
            elif self.planned:
                console.print(f"{len(sending.sent)} sent.")

        data = {
            "drafter": drafter,
            "schedule": self.schedule,
            "from": format_instant(self.first),
            "to": format_instant(self.end),
            "dry_run": self.dry_run,
            "slots": shown,
            "sent": len(sending.sent),
            "gate_takes": self.in_the_way.gate_takes,
            "notes": list(self.notes),
        }
        operating.print(data, table)

    def _what(self, one: Planned, sending: Backfill) -> str:
        again = " again" if one.step is Step.RESEND else ""
        if one.step is Step.LEAVE:
            return f"left as it is: {one.why}" if one.why else "left as it is"
        if self.dry_run:
            return f"would be sent{again}"
        if one.key in sending.overtaken:
            return "left as it is: somebody else was first"
        return f"sent{again}" if one.key in sending.sent else "not sent"


def _row_json(row: Run | Unreadable | None) -> dict[str, Any]:
    match row:
        case Run():
            return {"status": str(row.status), "reason": row.reason}
        case Unreadable():
            return {"status": "unreadable", "reason": None}
    return {"status": None, "reason": None}


def _row_line(row: Run | Unreadable | None) -> str:
    match row:
        case Run():
            return status_of(row)
        case Unreadable():
            return "unreadable"
    return "none"


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Show at a terminal how many slots are done with; it is on standard error, so no output is spoilt by it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    with Progress(
        TextColumn("sending"),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True, markup=False),
        transient=True,
        disable=not (sys.stderr.isatty() and total),
    ) as shown:
        task = shown.add_task("sending", total=total)
        yield lambda number: shown.advance(task, number)
