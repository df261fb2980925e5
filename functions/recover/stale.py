"""Undecided drafts that are past their time or whose place a newer one took: they leave the review queue."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from galley.listing import all_watched
from galley.retry import NeverSucceeds
from galley.rules import NO_RULES
from galley.runs import Run, Status
from galley.store import Expire, Store, StoreBusy, Supersede, UnreadableRow, Withdrawal
from galley.texts import counted
from galley.withdrawing import is_expired, replaces, withdraw

MOST_LOOKED_AT = 1_000
"""Among how many of a drafter's newest runs a decided one is looked for that replaced an undecided draft.

The sweep that comes after the one that broke off finds it among the newest. An alert that nobody ever decides on does
not let each sweep read all that came after it.
"""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The runs whose drafts expired and those whose drafts were superseded.

    And a line for what could not be done, and one for what is left to the next sweep.
    """

    expired: tuple[str, ...]
    superseded: tuple[str, ...]
    broken: tuple[str, ...]
    unfinished: tuple[str, ...]


def withdraw_stale(store: Store, *, now: datetime, is_out_of_time: Callable[[], bool]) -> Withdrawn:
    """Withdraw each undecided draft whose rules, or a newer draft's, say so. One that cannot be had stops no other.

    A draft that replaces older ones has them withdrawn as soon as it is stored; here is made up for where that broke
    off. It may have been decided meanwhile, so it is looked for among the runs of the drafter, in one listing, back to
    the oldest undecided draft or as far as ``MOST_LOOKED_AT``. A drafter none of whose undecided drafts has any rule
    costs no request.
    """
    waiting = all_watched(store, Status.PENDING)
    doing = _Withdrawing(store, now, broken=list(waiting.unreadable))
    of_drafter: dict[str, list[Run]] = defaultdict(list)
    for run in waiting.runs:
        of_drafter[run.drafter].append(run)
    unfinished: list[str] = []
    with_rules = [one for one in of_drafter.items() if any(run.rules != NO_RULES for run in one[1])]
    for place, (drafter, drafts) in enumerate(with_rules):
        if is_out_of_time():
            left = counted(len(with_rules) - place, "drafter", "drafters")
            unfinished.append(f"the undecided drafts of {left} wait for the next sweep")
            break
        doing.drafter(drafter, drafts)
    return Withdrawn(tuple(doing.expired), tuple(doing.superseded), tuple(doing.broken), tuple(unfinished))


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
        newest_first = sorted({run.key: run for run in (*drafts, *later)}.values(), key=lambda run: run.slot)[::-1]
        for older in drafts:
            newer = next((run for run in newest_first if replaces(run, older)), None)
            if newer is not None:
                self._withdraw(older, Supersede(newer.key), self.superseded)
            elif is_expired(older, self.now):
                self._withdraw(older, Expire(), self.expired)

    def _since(self, drafter: str, oldest: datetime) -> list[Run]:
        """Return the drafter's runs, newest slot first, back to a slot, or as many as are looked at."""
        runs: list[Run] = []
        looked_at = 0
        after: str | None = None
        while True:
            page = self.store.history(drafter, after=after)
            runs.extend(page.runs)
            self.broken.extend(page.unreadable)
            after = page.next
            looked_at += len(page.runs) + len(page.unreadable)
            is_far_enough = looked_at >= MOST_LOOKED_AT or (page.runs and page.runs[-1].slot <= oldest)
            if after is None or is_far_enough:
                return runs

    def _withdraw(self, run: Run, why: Withdrawal, done: list[str]) -> None:
        try:
            if withdraw(self.store, run, why, now=self.now) is not None:
                done.append(str(run.key))
        except (StoreBusy, NeverSucceeds) as error:
            self.broken.append(f"{run.key}: {error.detail}")
        except UnreadableRow as error:
            self.broken.append(str(error))
