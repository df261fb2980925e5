"""What keeps a drafter's runs from becoming drafts, told to whoever sends them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from galley.store import DrafterState, Store
from galley.texts import counted
from galley_cli.checkout import find_checkout, put_on_path

if TYPE_CHECKING:
    from drafter import Drafter


@dataclass(frozen=True, slots=True)
class Obstacles:
    """A drafter's gate, and its file here or, in one line, what is wrong with it."""

    state: DrafterState
    file: "Drafter | None"
    problem: str | None

    @property
    def gate_takes(self) -> int | None:
        """How many more undecided drafts the gate takes now; None where the limit is not known."""
        return None if self.file is None else max(self.file.pending_limit - self.state.pending, 0)

    def notes(self, sending: int) -> tuple[str, ...]:
        """Return what may become of so many runs that are sent together, a line each; none where all is well."""
        name = self.state.drafter
        notes = []
        if sending and self.problem is not None:
            notes.append(f"drafter {name} has no good file here, and without one its runs fail: {self.problem}")
        if sending and self.state.paused is not None:
            notes.append(
                f"drafter {name} is paused {self.state.paused}; what is sent is recorded as skipped, not kept for later"
            )
        elif self.gate_takes is not None and sending > self.gate_takes:
            notes.append(
                f"drafter {name} has {counted(self.state.pending, 'undecided draft', 'undecided drafts')}, and its "
                f"gate takes {self.gate_takes or 'none'} now; runs that find it full are recorded as skipped, "
                "not kept for later"
            )
        return tuple(notes)


def obstacles(store: Store, drafter: str) -> Obstacles:
    """Return what stands in the way of a drafter's runs now."""
    file, problem = read_file(drafter)
    return Obstacles(store.drafter(drafter), file, problem)


def read_file(drafter: str) -> "tuple[Drafter | None, str | None]":
    """Return a drafter's file, or one line on why it cannot be read."""
    checkout = find_checkout()
    put_on_path(checkout)
    from drafter import InvalidDrafter, read_drafter

    try:
        return read_drafter(checkout.drafters / f"{drafter}.toml"), None
    except InvalidDrafter as error:
        return None, str(error)
