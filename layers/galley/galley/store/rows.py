"""Rows: a run and a draft as plain values, the same in every store.

A row holds text, whole numbers, lists and maps, so that any table can keep it and a person can read it there. What is
None is left out. Instants are text in UTC, ``2026-03-29T05:00:00Z``.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from galley.drafts import Draft
from galley.explain import explain
from galley.instants import format_instant, in_utc, parse_instant
from galley.retry import NeverSucceeds
from galley.rules import Rules
from galley.runs import Run, RunKey, Status
from galley.schedules import ScheduleDefinition
from galley.store import (
    NOTHING_NOTED,
    Asked,
    Cursor,
    Pause,
    Rejection,
    StoredDraft,
    SweptDrafter,
    SweptSchedule,
    UnreadableRow,
)
from galley.texts import clip

Row = dict[str, Any]

_RUN_ROWS = "RUN#"
_RUN = TypeAdapter(Run)
_RULES = TypeAdapter(Rules)
_DRAFT = TypeAdapter(Draft)
_REJECTION = TypeAdapter(Rejection)
_DEFINITION = TypeAdapter(ScheduleDefinition)
_NOTED = TypeAdapter(dict[str, SweptDrafter])
_ROWS = TypeAdapter(list[Row])


def partition_of_runs(drafter: str) -> str:
    """Return the partition key under which a drafter's runs are kept, by their slots."""
    return f"{_RUN_ROWS}{drafter}"


def keys_of_run(key: RunKey) -> dict[str, dict[str, str]]:
    """Return the keys of a run's row as the table's stream tells them."""
    return {"pk": {"S": partition_of_runs(key.drafter)}, "sk": {"S": format_instant(key.slot)}}


def run_of_keys(keys: Mapping[str, Mapping[str, str]]) -> RunKey | None:
    """Return the run whose row a record of the table's stream is about; None for another kind of row.

    Raises:
        galley.runs.InvalidRunKey: when the row has the place of a run and the name of none.
    """
    partition = keys["pk"]["S"]
    if not partition.startswith(_RUN_ROWS):
        return None
    return RunKey.parse(f"{partition.removeprefix(_RUN_ROWS)}:{keys['sk']['S']}")


def run_row(run: Run) -> Row:
    """Return the run as a row. Of its rules only those that are set are in it, and none if none is."""
    row: Row = _RUN.dump_python(run, mode="json", exclude_none=True, exclude={"rules"})
    rules: Row = _RULES.dump_python(run.rules, mode="json", exclude_defaults=True)
    return row | ({"rules": rules} if rules else {})


def read_run(row: Mapping[str, object]) -> Run:
    """Return the run in a row; values that only a newer version knows are ignored.

    Raises:
        UnreadableRow: when something is missing or wrong.
    """
    where = f"run {row.get('drafter')}:{row.get('slot')}"
    try:
        run = _RUN.validate_python(dict(row))
        decision = run.decision and replace(run.decision, at=in_utc(run.decision.at))
        return replace(run, decision=decision, **_instants_in_utc(run))
    except ValidationError as error:
        raise UnreadableRow(explain(error, where)) from error
    except ValueError as error:
        raise UnreadableRow(f"{where}: {error}") from error


def draft_row(draft: Draft) -> Row:
    """Return a draft as a row; a reviewer's edit is kept beside it as ``edited_title`` and ``edited_body``."""
    row: Row = _DRAFT.dump_python(draft, mode="json", exclude_none=True)
    return row


def read_draft(row: Mapping[str, object]) -> StoredDraft:
    """Return the draft in a row, with the reviewer's edit where there is one.

    Raises:
        UnreadableRow: when something is missing or wrong.
    """
    try:
        draft = _DRAFT.validate_python(dict(row))
    except ValidationError as error:
        raise UnreadableRow(explain(error, f"draft {row.get('title')!r}")) from error
    title, body = row.get("edited_title"), row.get("edited_body")
    if title is None and body is None:
        return StoredDraft(draft)
    if isinstance(title, str) and isinstance(body, str):
        return StoredDraft(draft, title, body)
    raise UnreadableRow(f"draft {draft.title!r}: edited_title and edited_body must both be text")


def read_cursor(text: object, where: str) -> Cursor:
    """Return the cursor in a row's JSON text; ``where`` names the row. It is never guessed.

    Raises:
        NeverSucceeds: ``invalid_cursor``, when it is not a JSON object.
    """
    try:
        cursor = json.loads(str(text))
    except (ValueError, RecursionError):
        cursor = None
    if not isinstance(cursor, dict):
        raise NeverSucceeds(
            "invalid_cursor", f"{where} is {clip(repr(text), 100)}, not a JSON object; put back what it was"
        )
    return cursor


def rejection_row(rejection: Rejection) -> Row:
    """Return a rejection as a row, or as a part of one."""
    return {"slot": format_instant(rejection.slot), "reason": str(rejection.reason), "words": rejection.words}


def read_rejections(rows: Iterable[object], drafter: str) -> tuple[tuple[Rejection, ...], tuple[str, ...]]:
    """Return the rejections in a drafter's rows, and those that are none, named: they are only told to the model."""
    found: list[Rejection] = []
    unreadable: list[str] = []
    for row in rows:
        try:
            read = _REJECTION.validate_python(row)
            found.append(replace(read, slot=in_utc(read.slot)))
        except (ValidationError, ValueError):
            unreadable.append(f"{clip(repr(row), 100)} is no rejection of a draft of {drafter}")
    return tuple(found), tuple(unreadable)


def schedule_row(swept: SweptSchedule) -> Row:
    """Return what the sweep knows of a schedule as a row.

    The definition's instants keep their fractions of a second: by the last of them it is told that it changed. So does
    the instant at which a former one was changed, which is the next one's.
    """
    row: Row = _DEFINITION.dump_python(swept.definition, mode="json", exclude_none=True)
    row["swept_until"] = format_instant(swept.swept_until)
    if swept.stopped is not None:
        row["stopped"] = format_instant(swept.stopped)
    if swept.ends is not None:
        row["ends"] = in_utc(swept.ends).isoformat()
    if swept.former:
        row["former"] = [schedule_row(one) for one in swept.former]
    if noted := {name: _noted_row(one) for name, one in swept.drafters.items() if one != NOTHING_NOTED}:
        row["drafters"] = noted
    return row


def read_schedule(row: Mapping[str, object]) -> SweptSchedule:
    """Return what the sweep knows of a schedule, out of its row; values that only a newer version knows are ignored.

    Raises:
        UnreadableRow: when something is missing or wrong.
    """
    where = f"schedule {row.get('name')}"
    try:
        definition = _DEFINITION.validate_python(dict(row))
        noted = _NOTED.validate_python(row.get("drafters", {}))
        former = _ROWS.validate_python(row.get("former", []))
        return SweptSchedule(
            replace(definition, **_instants_in_utc(definition)),
            parse_instant(str(row.get("swept_until"))),
            {name: _noted_in_utc(one) for name, one in noted.items()},
            _instant_or_none(row.get("stopped")),
            tuple(read_schedule(one) for one in former),
            _instant_or_none(row.get("ends")),
        )
    except ValidationError as error:
        raise UnreadableRow(explain(error, where)) from error
    except ValueError as error:
        raise UnreadableRow(f"{where}: {error}") from error


def last_pause(reason: str | None, since: str | None, until: str | None) -> Pause | None:
    """Return the pause of which a drafter's row tells; None where it tells of none that can be read.

    A drafter's gate must be had whatever was written there by hand: the pause is over.
    """
    try:
        return None if reason is None else Pause(reason, parse_instant(str(since)), parse_instant(str(until)))
    except ValueError:
        return None


def slot_of_row(drafter: str, slot: str) -> datetime:
    """Return the slot of a run's row by its key.

    Raises:
        UnreadableRow: when it is no instant.
    """
    try:
        return parse_instant(slot)
    except ValueError as error:
        raise UnreadableRow(f"run {drafter}:{slot}: {error}") from error


def status_of_row(status: object) -> Status | None:
    """Return the state in a run's row; None where it is none that this version knows."""
    try:
        return Status(str(status))
    except ValueError:
        return None


def _instant_or_none(text: object) -> datetime | None:
    return None if text is None else parse_instant(str(text))


def _noted_row(noted: SweptDrafter) -> Row:
    instants = {"silent_since": noted.silent_since, "in_flight": noted.in_flight}
    row: Row = {name: format_instant(instant) for name, instant in instants.items() if instant is not None}
    if noted.asked is not None:
        row["asked"] = {"at": format_instant(noted.asked.at), "through": format_instant(noted.asked.through)}
    return row


def _noted_in_utc(noted: SweptDrafter) -> SweptDrafter:
    asked = noted.asked and Asked(in_utc(noted.asked.at), in_utc(noted.asked.through))
    return SweptDrafter(
        noted.silent_since and in_utc(noted.silent_since), noted.in_flight and in_utc(noted.in_flight), asked
    )


def _instants_in_utc(read: Run | ScheduleDefinition) -> dict[str, Any]:
    """Return the instants by field, in UTC. Naive ones are refused."""
    values = {field.name: getattr(read, field.name) for field in fields(read)}
    return {name: in_utc(value) for name, value in values.items() if isinstance(value, datetime)}
