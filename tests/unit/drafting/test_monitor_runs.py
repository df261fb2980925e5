"""A monitor's runs, one after the other, on a store: an alert, what becomes of it, and the notice that it is over."""

from datetime import timedelta
from pathlib import Path

import pytest

from attempt import Done
from drafter import Drafter
from galley.retry import NeverSucceeds
from galley.rules import Review
from galley.runs import Run, RunKey, SkipReason, Status
from galley.store import Store
from galley_cli.local.bucket import FolderBucket
from shapes import monitor
from sources.health import Down, Health, Up
from support.outside import SLOT, message
from unit.drafting.test_run_protocol import ANSWER, Bench

HOUR = timedelta(hours=1)
UP, DOWN = Up(200, 12), Down("it answered 503, expected was 200", 503, 12)


def a_monitor(*sources: str, review: Review = Review.REQUIRED, pending_limit: int = 2) -> Drafter:
    return Drafter.model_validate(
        {
            "name": "daily-digest",
            "title": "Health",
            "shape": "monitor",
            "instructions": "Be short.",
            "review": review,
            "pending_limit": pending_limit,
            "period_hours": 1,
            "sources": [
                {"kind": "health", "id": source, "url": "desk:/health", "failures": 1, "successes": 1}
                for source in sources or ("desk",)
            ],
        }
    )


class Watch:
    """A monitor's workplace: its slots are due at each hour, and its sources are as a test says."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.found: dict[str, Health] = {}
        self.hour = -1

    def run(self, **found: Health) -> Run:
        """Have the next hour's slot drafted, with the sources found like this, and return its row."""
        self.found = found
        self.hour += 1
        self.bench.at = SLOT + self.hour * HOUR + timedelta(minutes=1)
        assert self.bench.deliver(message(slot=SLOT + self.hour * HOUR, schedule=None)) == Done()
        return self.row(self.hour)

    def row(self, hour: int) -> Run:
        row = self.bench.store.run(RunKey("daily-digest", SLOT + hour * HOUR))
        assert row is not None
        return row


@pytest.fixture
def watch(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch(Bench(store, FolderBucket(tmp_path / "bucket"), drafter=a_monitor()))
    monkeypatch.setattr(monitor, "check", lambda source, **_: watch.found[source.id])
    return watch


def test_a_notice_replaces_the_undecided_alert(watch: Watch) -> None:
    alert = watch.run(desk=DOWN)
    assert (alert.status, alert.rules.urgent) == (Status.PENDING, True)
    assert alert.drafted is not None
    assert alert.rules.expires == alert.drafted + timedelta(hours=24)
    assert watch.run(desk=DOWN).status is Status.EMPTY
    notice = watch.run(desk=UP)
    assert (notice.status, notice.rules.supersedes) == (Status.PENDING, (SLOT,))
    assert watch.row(0).status is Status.SUPERSEDED
    assert watch.bench.store.drafter("daily-digest").pending == 1


def test_an_alert_about_two_stays_until_both_are_over(watch: Watch) -> None:
    watch.bench.drafter = a_monitor("desk", "shop", pending_limit=3)
    watch.run(desk=DOWN, shop=DOWN)
    assert watch.run(desk=UP, shop=DOWN).status is Status.PENDING
    assert watch.row(0).status is Status.PENDING
    assert watch.run(desk=UP, shop=UP).status is Status.PENDING
    assert [watch.row(hour).status for hour in range(3)] == [Status.SUPERSEDED, Status.PENDING, Status.PENDING]


def test_an_alert_that_failed_has_no_notice_and_one_that_is_stored_later_has(watch: Watch) -> None:
    watch.bench.model.script = [NeverSucceeds("refusal", "it would not"), ANSWER, ANSWER]
    assert watch.run(desk=DOWN).status is Status.FAILED
    assert watch.run(desk=UP).status is Status.EMPTY
    assert watch.run(desk=DOWN).status is Status.PENDING
    assert watch.run(desk=UP).rules.supersedes == (SLOT + 2 * HOUR,)


def test_a_shut_gate_is_blind_and_what_it_did_not_see_is_told_afterwards(watch: Watch) -> None:
    watch.bench.drafter = a_monitor(pending_limit=1)
    watch.run(desk=DOWN)
    gated = watch.run(desk=UP)
    assert (gated.status, gated.reason) == (Status.SKIPPED, SkipReason.GATE)
    watch.bench.drafter = a_monitor()
    notice = watch.run(desk=UP)
    stored = watch.bench.store.draft(notice.key)
    assert stored is not None
    assert "A look was missed since the last one, 2026-11-27T06:01:00Z." in stored.draft.items[0].text
    assert watch.row(0).status is Status.SUPERSEDED


def test_without_review_alert_and_notice_are_sent_unread(watch: Watch) -> None:
    watch.bench.drafter = a_monitor(review=Review.NONE)
    assert [watch.run(desk=found).status for found in (DOWN, UP)] == [Status.APPROVED, Status.APPROVED]
    assert watch.row(0).status is Status.APPROVED, "what was sent is not taken back"
