"""The runs without an outcome that have a row: listed once, for all who look at them."""

from dataclasses import dataclass

from galley.listing import all_watched
from galley.runs import IN_FLIGHT, Run
from galley.store import Store


@dataclass(frozen=True, slots=True)
class InFlight:
    """The queued and the drafting runs, each state's longest waiting first, and a line for each unreadable row."""

    runs: tuple[Run, ...]
    broken: tuple[str, ...]

    def without(self, keys: tuple[str, ...]) -> tuple[Run, ...]:
        """Return the runs but for those of the given keys."""
        return tuple(run for run in self.runs if str(run.key) not in keys)


def list_in_flight(store: Store) -> InFlight:
    """Return all runs without an outcome, from one listing for each of their states.

    A listing may be behind the rows by a moment; who changes a run on its word has the store compare the row.

    Raises:
        galley.store.StoreBusy: when the table gives no answer.
    """
    listed = [all_watched(store, status) for status in sorted(IN_FLIGHT)]
    return InFlight(
        tuple(run for page in listed for run in page.runs), tuple(line for page in listed for line in page.unreadable)
    )
