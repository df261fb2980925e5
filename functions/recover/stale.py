"""Undecided drafts that are past their time or whose place a newer one took: they leave the review queue."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from galley.listing import all_watched
from galley.retry import NeverSucceeds
from galley.rules import NO_RULES
from galley.runs import Run, Status
from galley.store import Expire, Store, StoreBusy, Supersede, UnreadableRow, Withdrawal
from galley.withdrawing import is_expired, replaces, withdraw


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The runs whose drafts expired, those whose drafts were superseded, and a line for what could not be done."""

    expired: tuple[str, ...]
    superseded: tuple[str, ...]
    broken: tuple[str, ...]


def withdraw_stale(store: Store, *, now: datetime) -> Withdrawn:
    """Withdraw each undecided draft whose rules, or a newer draft's, say so. One that cannot be had stops no other.

    A draft that replaces older ones has them withdrawn as soon as it is stored; here is made up for where that broke
    off. It may have been decided meanwhile, so it is looked for among all runs of the drafter, in one listing, back to
    the oldest undecided draft. A drafter none of whose undecided drafts has any rule costs no request.
    """
    waiting = all_watched(store, Status.PENDING)
    doing = _Withdrawing(store, now, broken=list(waiting.unreadable))
    of_drafter: dict[str, list[Run]] = defaultdict(list)
    for run in waiting.runs:
        of_drafter[run.drafter].append(run)
    for drafter, drafts in of_drafter.items():
        if any(run.rules != NO_RULES for run in drafts):
            doing.drafter(drafter, drafts)
    return Withdrawn(tuple(doing.expired), tuple(doing.superseded), tuple(doing.broken))


@dataclass(slots=True)
class _Withdrawing:
    """What was withdrawn so far, by one sweep."""

    store: Store
    now: datetime
    expired: list[str] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def drafter(self, drafter: str, drafts: Sequence[Run]) -> None:
        """Withdraw what is stale of one drafter's undecided drafts."""
        try:
            later = self._since(drafter, min(run.slot for run in drafts))
        except StoreBusy as error:
            self.broken.append(f"{drafter}: {error.detail}")
            later = []
        for older in drafts:
            newer = next((run for run in later if replaces(run, older)), None)
            if newer is not None:
                self._withdraw(older, Supersede(newer.key), self.superseded)
            elif is_expired(older, self.now):
                self._withdraw(older, Expire(), self.expired)

    def _since(self, drafter: str, oldest: datetime) -> list[Run]:
        """Return the drafter's runs, newest slot first, back to a slot."""
        runs: list[Run] = []
        after: str | None = None
        while True:
            page = self.store.history(drafter, after=after)
            runs.extend(page.runs)
            self.broken.extend(page.unreadable)
            after = page.next
            if after is None or (page.runs and page.runs[-1].slot <= oldest):
                return runs

    def _withdraw(self, run: Run, why: Withdrawal, done: list[str]) -> None:
        try:
            if withdraw(self.store, run, why, now=self.now) is not None:
                done.append(str(run.key))
        except (StoreBusy, NeverSucceeds) as error:
            self.broken.append(f"{run.key}: {error.detail}")
        except UnreadableRow as error:
            self.broken.append(str(error))
