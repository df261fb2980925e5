"""What is between a run's claim and its store: collect, brief the model, make the draft of its answer.

Nothing here changes a row. A run does it under its lease; ``galley draft`` does the same without one, so that an author
sees what a run would.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from attempt import Workplace
from draft_rules import marked
from drafter import Drafter
from galley.drafts import Draft, Item
from galley.retry import NeverSucceeds
from galley.runs import RunKey, RunMessage
from galley.store import Cursor, Memory
from galley.texts import clip_bytes
from grounding import told
from quantities import exact
from rejected_drafts import StoredRejections
from shapes import digest, monitor, report, sync
from shapes.shape import Assignment, Material, Shape
from windows import window_of
from writing import Answer, Brief, compose, read_answer

SHAPES: dict[str, Shape] = {"digest": digest, "report": report, "sync": sync, "monitor": monitor}
SHOWN_BYTES = 8_000
"""How much of each item's text is kept beside the draft for the reviewer, in UTF-8."""
SHOWN_BYTES_IN_ALL = 200_000
"""How much of all items' texts is kept: a table row holds 400 KB, the draft and a reviewer's edit with it."""


def collect(
    message: RunMessage,
    drafter: Drafter,
    outside: Workplace,
    *,
    deadline: datetime,
    cursors: Callable[[], Mapping[str, Cursor]],
) -> Material:
    """Return what the drafter's shape collects for the run that a message asks for.

    ``deadline`` is when the run's time is up, in UTC. Of the store only rows are read; a sync writes its index into
    ``outside.bucket``.

    Raises:
        galley.retry.RetryLater: when the sources may answer later.
        galley.retry.NeverSucceeds: when they never will as they are.
    """
    assignment = Assignment(
        drafter=drafter,
        slot=message.slot,
        looked_at=outside.now(),
        window=lambda: window_of(message, drafter, outside.schedules),
        cursors=cursors,
        rejected=StoredRejections(outside.store, drafter.name),
        bucket=outside.bucket,
        fetch=outside.fetch,
        desk_url=outside.desk_url,
        time_left=lambda: deadline - outside.now(),
        earlier_run=lambda slot: outside.store.run(RunKey(drafter.name, slot)),
    )
    return SHAPES[drafter.shape].collect(assignment)


def brief_of(drafter: Drafter, material: Material, slot: datetime, memory: Memory) -> Brief:
    """Return what the model is asked to write."""
    return Brief(
        drafter=drafter.name,
        shape=drafter.shape,
        title=drafter.title,
        instructions=drafter.instructions,
        items=material.items,
        figures=material.figures,
        values=tuple(reading for figure in material.values for reading in exact(figure.value, figure.unit)),
        slot=slot,
        model=drafter.model,
        max_input_tokens=drafter.max_input_tokens,
        max_output_tokens=drafter.max_output_tokens,
        rejections=memory.rejections,
    )


def draft_of(answer: Answer, brief: Brief, drafter: Drafter, material: Material, memory: Memory) -> Draft:
    """Return the draft that code makes of an answer, as it would be stored.

    Raises:
        galley.retry.RetryLater: when the answer broke off.
        galley.retry.NeverSucceeds: when it is not fit for a draft; ``not_grounded``, when a strict drafter's text says
            what its sources do not.
    """
    composed = compose(read_answer(answer, brief), brief)
    if drafter.strict and composed.findings:
        raise NeverSucceeds("not_grounded", "; ".join(told(composed.findings)))
    return Draft(
        title=composed.title,
        body=marked(composed.body, drafter.review),
        items=_shown(material.items),
        warnings=(*material.warnings, *map(_not_told, memory.unreadable), *composed.warnings),
        model=answer.model,
        channels=drafter.destinations,
        attachments=material.attachments,
    )


def _not_told(unreadable: str) -> str:
    return f"the model was not told why an earlier draft was rejected: {unreadable}"


def _shown(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return the items as they are kept beside the draft, each cut to its share of what a row can hold."""
    share = min(SHOWN_BYTES, SHOWN_BYTES_IN_ALL // max(1, len(items)))
    return tuple(replace(item, text=clip_bytes(item.text, share)) for item in items)
