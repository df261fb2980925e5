"""The life of a slot: from where each state is reached, and from nowhere else."""

from dataclasses import replace

import pytest

from galley.runs import Origin, Run, Status
from galley.store.changes import Change
from support.outside import CONTRACT, SLOT

REACHED_FROM: dict[Status, set[Status | None]] = {
    Status.QUEUED: {None, Status.FAILED},
    Status.DRAFTING: {None, Status.QUEUED},
    Status.PENDING: {Status.DRAFTING},
    Status.APPROVED: {Status.DRAFTING, Status.PENDING, Status.PUBLISH_UNKNOWN},
    Status.REJECTED: {Status.PENDING},
    Status.EXPIRED: {Status.PENDING},
    Status.SUPERSEDED: {Status.PENDING},
    Status.PUBLISHED: {Status.APPROVED, Status.PUBLISH_UNKNOWN},
    Status.PUBLISH_UNKNOWN: {Status.APPROVED},
    Status.EMPTY: {Status.DRAFTING},
    Status.FAILED: {Status.DRAFTING},
    Status.SKIPPED: {None, Status.QUEUED, Status.DRAFTING},
}
RUN = Run("daily-digest", SLOT, Status.DRAFTING, 1, Origin.SCHEDULE, CONTRACT, created=SLOT, changed=SLOT)


@pytest.mark.parametrize("here", [None, *Status], ids=lambda here: str(here or "absent"))
@pytest.mark.parametrize("there", Status, ids=str)
def test_a_state_is_reached_from_where_it_may_and_from_nowhere_else(here: Status | None, there: Status) -> None:
    before = None if here is None else replace(RUN, status=here)
    after = replace(RUN, status=there)
    if here is there or here in REACHED_FROM[there]:
        assert Change(before, after).after is after
    else:
        with pytest.raises(ValueError, match=f"cannot go from {here} to {there}"):
            Change(before, after)
