"""What the shapes' tests share: a bucket, and assignments that give a shape no more than it may use."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from drafter import Drafter
from galley.drafts import Item
from galley.runs import Run
from shapes.shape import Assignment, Cursor, Fetch, RejectedDrafts, Window
from sources.fetch import Fetched
from support.memory_bucket import MemoryBucket

SLOT = datetime(2026, 11, 27, 6, tzinfo=UTC)

LOOKED_AFTER = timedelta(minutes=7, seconds=12)
"""How long after its slot a run of these tests looks at its sources."""

Assign = Callable[..., Assignment]


@pytest.fixture
def bucket() -> MemoryBucket:
    """An empty bucket; what is put into it has arrived some days after the slot of the tests."""
    empty = MemoryBucket()
    empty.now = SLOT + timedelta(days=5)
    return empty


@pytest.fixture
def assign(bucket: MemoryBucket) -> Assign:
    """Make an assignment of a drafter; what a test does not give must not be asked for."""

    def make(
        drafter: Drafter,
        *,
        slot: datetime = SLOT,
        window: Window | None = None,
        cursors: Mapping[str, Cursor] | None = None,
        rejected: RejectedDrafts | None = None,
        fetch: Fetch = _no_fetch,
        desk_url: str = "http://127.0.0.1:8700",
        time_left: Callable[[], timedelta] = lambda: timedelta(minutes=5),
        earlier_run: Callable[[datetime], Run | None] | None = None,
    ) -> Assignment:
        def given() -> Window:
            assert window is not None, "this shape must not ask for its window"
            return window

        return Assignment(
            drafter=drafter,
            slot=slot,
            looked_at=slot + LOOKED_AFTER,
            window=given,
            cursors=lambda: cursors or {},
            rejected=rejected or _NotAsked(),
            bucket=bucket,
            fetch=fetch,
            desk_url=desk_url,
            time_left=time_left,
            earlier_run=earlier_run or _no_earlier_run,
        )

    return make


@pytest.fixture
def shared_data() -> Path:
    """The folder of real data beside the project."""
    folder = Path(__file__).parents[4] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here")
    return folder


def _no_earlier_run(slot: datetime) -> Run | None:
    raise AssertionError(f"this shape must not ask for the run of {slot}")


class _NotAsked:
    def slots(self) -> Sequence[datetime]:
        raise AssertionError("this shape must not ask for rejected drafts")

    def items(self, slot: datetime) -> tuple[Item, ...] | None:
        raise AssertionError(f"this shape must not ask for the items of {slot}")


def _no_fetch(url: str, **_: Any) -> Fetched:
    raise AssertionError(f"this shape must not fetch {url}")
