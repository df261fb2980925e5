"""Which documents that are gone may leave the index, and for which a person is asked. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from drafter_file.sync import DocumentsSource
from galley.runs import Run, Status

FEW = 5
"""So many are never held for being a large share: in a folder of nine documents one is more than a tenth."""
REFUSAL_HOLDS = timedelta(days=30)
"""How long a rejection is an answer; then the same is asked once more, so that no one has to remember it."""


class Permission(StrEnum):
    """What became of the question whether a document may be deleted."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    OPEN = "open"
    LAPSED = "lapsed"


def permission(run: Run | None, slot: datetime) -> Permission:
    """Return what the run whose draft asked says at a later slot.

    Only a person's decision allows anything. Where nobody decided, or the run's row is gone, it has to be asked anew.
    """
    if run is None:
        return Permission.LAPSED
    match run.status:
        case Status.APPROVED | Status.PUBLISHED | Status.PUBLISH_UNKNOWN if run.decision is not None:
            return Permission.ALLOWED
        case Status.REJECTED if run.decision is not None and slot - run.decision.at < REFUSAL_HOLDS:
            return Permission.REFUSED
        case Status.PENDING:
            return Permission.OPEN
        case _:
            return Permission.LAPSED


@dataclass(frozen=True, slots=True)
class Deletes:
    """What becomes of each document that is gone; keys are in order.

    ``now`` leave the index. All others stay in it: ``ask`` until a person allows it, ``open`` while an earlier draft
    that asks is undecided, ``refused`` because one was rejected. ``allowed`` are those of ``now`` that an approval let
    go.
    """

    now: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


def judge_deletes(
    gone: Mapping[str, Permission | None],
    *,
    source: DocumentsSource,
    before: int,
    left: int,
    returned: Collection[str] = (),
) -> Deletes:
    """Return what becomes of the documents that are gone: each with what was said of it, None if nobody was asked.

    ``before`` is how many the index held, ``left`` how many are still listed, ``returned`` those listed again whose
    deletion was refused. Those of which nobody was asked are held if they are too many together, or if nothing is
    left. What was once held leaves the index only by approval. What was refused is asked again with others that are
    held now, or when some of it has come back: then it is another question.
    """
    said = {one: sorted(key for key, word in gone.items() if word is one) for one in (None, *Permission)}
    fresh, refused = said[None], said[Permission.REFUSED]
    hold = len(fresh) > most_deletes(source, before) or (bool(fresh) and left == 0)
    again = refused if hold or returned else []
    return Deletes(
        now=tuple(sorted([*said[Permission.ALLOWED], *([] if hold else fresh)])),
        ask=tuple(sorted([*said[Permission.LAPSED], *again, *(fresh if hold else [])])),
        open=tuple(said[Permission.OPEN]),
        refused=tuple([] if again else refused),
        allowed=tuple(said[Permission.ALLOWED]),
    )


def most_deletes(source: DocumentsSource, before: int) -> int:
    """Return how many of so many documents may be deleted at once without asking."""
    return min(source.max_deletes, max(FEW, int(source.max_delete_share * before)))


def moves(gone: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return new key -> old key for documents that are gone under one and there under another, by their hashes.

    Of several with one hash the first go with the first, in the order of their keys.
    """
    old: dict[str, list[str]] = {}
    for key in sorted(gone, reverse=True):
        old.setdefault(gone[key], []).append(key)
    return {key: old[added[key]].pop() for key in sorted(added) if old.get(added[key])}
