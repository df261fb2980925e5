"""The drafters of a story, what their sources hold, and the shape that collects it.

A source is a numbered log. A cursor is the number of the last entry that it passed, so that what a draft consumed can
be counted: some entries are noise, which makes no item but is passed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cache

from drafter import Drafter, InvalidDrafter
from galley.drafts import Item
from galley.instants import format_instant, parse_instant
from galley.money import NANOUSD
from galley.retry import RetryLater
from shapes.shape import Assignment, Material
from simulation.story import Ruled, Service, Settings
from simulation.world import World

WORST_COST = 1_000_000
"""What a call can cost at most, in nano-dollars."""
MOST_ITEMS = 3
SOURCES = ("inbox", "news")


@dataclass
class Sources:
    """The logs of every drafter's sources. Each entry is noise (False) or an item (True)."""

    world: World
    ruled: Callable[[str], Ruled]
    logs: dict[tuple[str, str], list[bool]] = field(default_factory=dict)

    def add(self, drafter: str, items: int) -> None:
        """Let so many entries come to a drafter's sources, and now and then some noise."""
        for _ in range(items):
            log = self.log(drafter, self.world.random.choice(SOURCES))
            log.append(True)
            if self.world.random.random() < 0.2:
                log.append(False)

    def log(self, drafter: str, source: str) -> list[bool]:
        """Return a source's log."""
        return self.logs.setdefault((drafter, source), [])

    def collect(self, assignment: Assignment) -> Material:
        """Collect what is new in each source, a few entries of each; stands in the place of the shapes.

        The cursor holds the slot at which it moved, too: a draft may name the last one that was made of the source.
        """
        items: list[Item] = []
        cursors: dict[str, Mapping[str, object]] = {}
        name = assignment.drafter.name
        read = assignment.cursors()
        ruled = self.ruled(name)
        named: set[datetime] = set()
        for source in SOURCES:
            entries = self._read(name, source)
            before = read.get(source, {}).get("through", 0)
            assert isinstance(before, int)
            new = entries[before : before + MOST_ITEMS]
            items += [
                Item(id=f"{source[0]}{number}", title=f"{source} {number}", text="news", source=source)
                for number, is_item in enumerate(new, before + 1)
                if is_item
            ]
            if new:
                cursors[source] = {"through": before + len(new), "slot": format_instant(assignment.slot)}
                named |= {parse_instant(str(read[source]["slot"]))} if source in read else set()
        if not items:
            return Material(cursors=cursors, nothing_new="nothing new")
        supersedes = tuple(sorted(named)) if ruled.names else ()
        return Material(items=tuple(items), cursors=cursors, supersedes=supersedes, urgent=ruled.names)

    def _read(self, drafter: str, source: str) -> tuple[bool, ...]:
        def read() -> tuple[bool, ...]:
            return tuple(self.log(drafter, source))

        return self.world.call(Service.BUCKET, f"read {source}", read, refuse=_down, lose=_down)


def _down() -> tuple[bool, ...]:
    raise RetryLater("sources_unavailable", "a source does not answer")


@dataclass
class Catalogue:
    """The drafters as they are deployed now."""

    settings: Settings
    now: Callable[[], datetime]
    budgets: dict[str, list[tuple[datetime, int | None]]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    ever_broken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.budgets = {
            name: [(self.now(), calls)] for name, calls in zip(self.names, self.settings.budgets, strict=False)
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The drafters' names."""
        return tuple(f"drafter-{number}" for number in range(len(self.settings.limits)))

    def name(self, number: int) -> str:
        """Return the name of a drafter by a step's number, of which there may be fewer."""
        return self.names[number % len(self.names)]

    def limit(self, name: str) -> int:
        """Return a drafter's limit of undecided drafts."""
        limit = self.settings.limits[self.names.index(name)]
        return max(limit, 2) if self.ruled(name).supersede else limit

    def ruled(self, name: str) -> Ruled:
        """Return what becomes of a drafter's drafts."""
        return dict(zip(self.names, self.settings.rules, strict=False)).get(name, Ruled())

    def budget_nanousd(self, name: str) -> int | None:
        """Return a drafter's budget for a day."""
        _, calls = self.budgets[name][-1]
        return None if calls is None else calls * WORST_COST

    def set_budget(self, name: str, calls: int) -> None:
        """Give a drafter another budget, in worst costs of a call."""
        self.budgets[name].append((self.now(), calls))

    def budgets_since(self, name: str, instant: datetime) -> list[int | None]:
        """Return every budget that a drafter has had since an instant, in worst costs of a call."""
        history = self.budgets[name]
        ends = [began for began, _ in history[1:]]
        return [calls for (_, calls), end in zip(history, [*ends, None], strict=True) if end is None or end >= instant]

    def toggle(self, name: str) -> None:
        """Break a drafter's file, or mend it."""
        self.broken ^= {name}
        self.ever_broken.add(name)

    def read(self, name: str) -> Drafter:
        """Return a drafter, as ``drafter.load_drafter`` does."""
        if name in self.broken or name not in self.names:
            raise InvalidDrafter(f"drafter {name!r} is not known")
        return _drafter(name, self.limit(name), self.budget_nanousd(name), self.ruled(name))


@cache
def _drafter(name: str, limit: int, budget_nanousd: int | None, ruled: Ruled) -> Drafter:
    # A budget of less than a millionth of a dollar cannot be written in a file, but bounds a story's calls well.
    budget = None if budget_nanousd is None else Decimal(budget_nanousd) / NANOUSD
    drafter = Drafter.model_validate(
        {
            "name": name,
            "title": f"Digest of {name}",
            "shape": "monitor" if ruled.unread else "digest",
            "instructions": "Be short.",
            "pending_limit": limit,
            "expire_hours": ruled.expire_hours,
            "supersede": ruled.supersede,
            "review": "none" if ruled.unread else "required",
            "sources": [
                {"kind": "health", "id": source, "url": "desk:/health"}
                if ruled.unread
                else {"kind": "mail", "id": source, "prefix": f"{source}/"}
                for source in SOURCES
            ],
        }
    )
    return drafter.model_copy(update={"daily_budget_usd": budget})
