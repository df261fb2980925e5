"""Drafts that are past their time, and drafts whose place a newer one took while their withdrawal broke off."""

from datetime import datetime, timedelta
from typing import Any

import pytest

import recover
import stale
from galley import observe, system
from galley.drafts import Draft
from galley.rules import NO_RULES, Rules
from galley.runs import RejectReason, Run, SkipReason, Status
from galley.store import (
    Approve,
    Bill,
    Claimed,
    Limits,
    Page,
    Reject,
    RowsDisagree,
    Settled,
    Store,
    StoreBusy,
    UnreadableRow,
)
from support.outside import SLOT, Context, FixedSchedules, Outside, RecordingQueue, event, message, schedule

LIMITS = Limits(pending=1_000, daily_budget_nanousd=None, worst_cost_nanousd=0)
DRAFT = Draft("Friday", "Two mails.", (), (), "offline")
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
EXPIRES = Rules(expires=SLOT + DAY)
SUPERSEDES = Rules(supersedes_earlier=True)


def withdraw_stale(store: Store, *, now: datetime, drafters: int = 99) -> stale.Withdrawn:
    """Do what a sweep does that has time for so many drafters."""
    left = [False] * drafters
    return stale.withdraw_stale(store, now=now, is_out_of_time=lambda: left.pop() if left else True)


def drafted(
    store: Store, day: int = 0, rules: Rules = NO_RULES, drafter: str = "daily-digest", after: timedelta = HOUR
) -> Run:
    """Store a draft for the slot of a day, so long after it."""
    slot = SLOT + day * DAY
    now = slot + after
    asked = message(drafter, slot)
    claimed = store.claim(asked, LIMITS, owner=f"{slot}", now=now, lease_until=now + HOUR)
    assert isinstance(claimed, Claimed)
    stored = store.store(claimed.run, DRAFT, {}, Bill(), now=now, rules=rules)
    assert isinstance(stored, Settled)
    return stored.run


def decided(store: Store, run: Run, verdict: Approve | Reject) -> None:
    outcome = store.decide(
        run.key, verdict, version=run.version, read_hash=run.text_hash or "", reviewer="ada", now=run.changed
    )
    assert isinstance(outcome, Settled)


def status(store: Store, run: Run) -> Status:
    found = store.run(run.key)
    assert found is not None
    return found.status


def test_a_draft_expires_when_its_time_is_over_and_not_before(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(observe, "count", told.append)
    run, without_end = drafted(store, 0, EXPIRES), drafted(store, 1)

    assert withdraw_stale(store, now=SLOT + DAY - SECOND).expired == ()
    assert status(store, run) is Status.PENDING
    withdrawn = withdraw_stale(store, now=SLOT + DAY)

    assert (withdrawn.expired, withdrawn.superseded, withdrawn.broken) == ((str(run.key),), (), ())
    assert (status(store, run), status(store, without_end)) == (Status.EXPIRED, Status.PENDING)
    assert store.drafter("daily-digest").pending == 1
    assert told == ["run_expired"]
    assert withdraw_stale(store, now=SLOT + 2 * DAY).expired == ()


def test_what_a_newer_draft_replaces_is_superseded_in_its_name(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(observe, "count", told.append)
    oldest, older, newer = drafted(store, 0), drafted(store, 1), drafted(store, 2, SUPERSEDES)
    elsewhere = drafted(store, 0, drafter="weekly-report")

    withdrawn = withdraw_stale(store, now=SLOT + 3 * DAY)

    assert set(withdrawn.superseded) == {str(oldest.key), str(older.key)}
    assert [status(store, run) for run in (oldest, older, newer, elsewhere)] == [
        *[Status.SUPERSEDED] * 2,
        *[Status.PENDING] * 2,
    ]
    row = store.run(oldest.key)
    assert row is not None
    assert row.detail == f"the draft of {newer.key} took its place"
    assert told == ["run_superseded"] * 2


@pytest.mark.parametrize("verdict", [Approve(), Reject(RejectReason.TONE)])
def test_a_newer_draft_replaces_older_ones_though_it_was_decided_meanwhile(
    store: Store, verdict: Approve | Reject
) -> None:
    older, newer = drafted(store, 0, SUPERSEDES), drafted(store, 1, SUPERSEDES)
    decided(store, newer, verdict)

    assert withdraw_stale(store, now=SLOT + 2 * DAY).superseded == (str(older.key),)


def test_a_newer_draft_is_found_behind_a_page_of_others(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    history = store.history
    asked: list[str | None] = []

    def one_at_a_time(drafter: str, after: str | None = None) -> Page:
        """Give one run on a page, and before the first a page of which no row can be read."""
        asked.append(after)
        return (
            Page((), ("run x: no",), "~")
            if after is None
            else history(drafter, limit=1, after=after.strip("~") or None)
        )

    monkeypatch.setattr(store, "history", one_at_a_time)
    decided(store, drafted(store, 0), Approve())
    older, newer, newest = drafted(store, 1, SUPERSEDES), drafted(store, 2, SUPERSEDES), drafted(store, 3)
    decided(store, newer, Approve())

    withdrawn = withdraw_stale(store, now=SLOT + 4 * DAY)

    assert (withdrawn.superseded, withdrawn.broken) == ((str(older.key),), ("run x: no",))
    assert status(store, newest) is Status.PENDING
    assert len(asked) == 4  # no page behind that of the oldest undecided draft


def test_a_draft_that_nobody_decides_on_does_not_let_each_sweep_read_all_that_came_after_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stale, "MOST_LOOKED_AT", 200)
    alert = drafted(store, 0, Rules(urgent=True), "site-monitor")
    for minute in range(1, 1_000):
        asked = message("site-monitor", SLOT + minute * MINUTE)
        store.skip(asked, SkipReason.GATE, "", now=SLOT + minute * MINUTE)
    history = store.history
    pages: list[str | None] = []

    def counting(drafter: str, after: str | None = None) -> Page:
        pages.append(after)
        return history(drafter, after=after)

    monkeypatch.setattr(store, "history", counting)
    assert withdraw_stale(store, now=SLOT + DAY).broken == ()
    assert len(pages) == 2

    recovery = drafted(store, 1, Rules(supersedes=(alert.slot,)), "site-monitor")
    for minute in range(1, 1_000):
        asked = message("site-monitor", recovery.slot + minute * MINUTE)
        store.skip(asked, SkipReason.GATE, "", now=recovery.slot + minute * MINUTE)
    assert withdraw_stale(store, now=SLOT + 2 * DAY).superseded == (str(alert.key),), "an undecided one is not far"


def test_rows_that_cannot_be_read_count_among_those_that_were_looked_at(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stale, "MOST_LOOKED_AT", 200)
    drafted(store, 0, Rules(urgent=True), "site-monitor")
    pages: list[str | None] = []

    def damaged(drafter: str, after: str | None = None) -> Page:
        assert len(pages) < 5, "it reads on and on"
        pages.append(after)
        return Page((), ("a row that cannot be read",) * 100, next="more")

    monkeypatch.setattr(store, "history", damaged)
    withdraw_stale(store, now=SLOT + DAY)
    assert len(pages) == 2


def test_what_there_is_no_time_for_is_left_to_the_next_sweep_and_said(store: Store) -> None:
    for number in range(5):
        drafted(store, 0, EXPIRES, f"drafter-{number}")
    withdrawn = withdraw_stale(store, now=SLOT + DAY, drafters=2)
    assert len(withdrawn.expired) == 2
    assert withdrawn.unfinished == ("the undecided drafts of 3 drafters wait for the next sweep",)
    rest = withdraw_stale(store, now=SLOT + DAY)
    assert (len(rest.expired), rest.unfinished) == (3, ())


def test_slots_get_their_outcomes_before_undecided_drafts_take_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drafts of thousands of drafters are looked at one by one; a sweep that has time for one thing has it for G4."""
    for name in ("TABLE", "RUNS_QUEUE_URL", "DEAD_RUNS_QUEUE_URL", "SCHEDULE_GROUP"):
        monkeypatch.setenv(f"GALLEY_{name}", "test")
    drafted(store, 0, EXPIRES, "weekly-report")
    context = Context()
    history = store.history

    def slow(drafter: str, **place: Any) -> Page:
        context.remaining = timedelta()
        return history(drafter, **place)

    monkeypatch.setattr(store, "history", slow)
    daily = schedule(created=SLOT, modified=SLOT)
    at = SLOT + DAY + 10 * MINUTE
    system.install(Outside(store_=store, queue_=RecordingQueue(), schedules_=FixedSchedules((daily,)), at=at))

    answer = recover.handler(event("recover"), context)

    assert answer["caught_up"] == ["daily-digest:2026-11-28T06:00:00Z"]
    assert len(answer["expired"]) == 1


def test_an_earlier_slot_that_was_drafted_later_stays(store: Store) -> None:
    newer = drafted(store, 1, SUPERSEDES)
    backfilled = drafted(store, 0, SUPERSEDES, after=3 * DAY)

    assert withdraw_stale(store, now=SLOT + 4 * DAY).superseded == ()
    assert {status(store, newer), status(store, backfilled)} == {Status.PENDING}


def test_a_draft_replaces_the_ones_that_it_names_and_no_others(store: Store) -> None:
    other, alert = drafted(store, 0), drafted(store, 1)
    recovery = drafted(store, 2, Rules(supersedes=(alert.slot,)))

    assert withdraw_stale(store, now=SLOT + 3 * DAY).superseded == (str(alert.key),)
    assert {status(store, other), status(store, recovery)} == {Status.PENDING}


def test_what_was_decided_is_neither_expired_nor_superseded(store: Store) -> None:
    older = drafted(store, 0, EXPIRES)
    decided(store, older, Approve())
    drafted(store, 1, SUPERSEDES)

    withdrawn = withdraw_stale(store, now=SLOT + 5 * DAY)

    assert (withdrawn.expired, withdrawn.superseded) == ((), ())
    assert status(store, older) is Status.APPROVED


def test_a_decision_at_the_same_moment_wins_and_nothing_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = drafted(store, 0, EXPIRES)
    read = store.watched(Status.PENDING)
    decided(store, run, Approve())
    monkeypatch.setattr(store, "watched", lambda status, after=None: read)

    withdrawn = withdraw_stale(store, now=SLOT + 2 * DAY)

    assert (withdrawn.expired, withdrawn.broken) == ((), ())
    assert status(store, run) is Status.APPROVED


def test_a_drafter_without_rules_costs_no_request(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    drafted(store, 0)
    monkeypatch.setattr(store, "history", lambda *_, **__: pytest.fail("nothing says that it has rules"))
    assert withdraw_stale(store, now=SLOT + DAY).broken == ()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (StoreBusy("others hold the rows"), "daily-digest:2026-11-27T06:00:00Z: others hold the rows"),
        (RowsDisagree("it was written by hand"), "daily-digest:2026-11-27T06:00:00Z: it was written by hand"),
        (UnreadableRow("run x: no"), "run x: no"),
    ],
)
def test_one_that_cannot_be_withdrawn_stops_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception, line: str
) -> None:
    first, second = drafted(store, 0, EXPIRES), drafted(store, 1, EXPIRES)
    withdraw = store.withdraw

    def broken(run: Run, *given: object, **named: object) -> object:
        if run.key == first.key:
            raise error
        return withdraw(run, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "withdraw", broken)
    withdrawn = withdraw_stale(store, now=SLOT + 2 * DAY)

    assert withdrawn.expired == (str(second.key),)
    assert withdrawn.broken == (line,)


def test_drafts_expire_although_their_drafters_history_cannot_be_had(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(*_: object, **__: object) -> Page:
        raise StoreBusy("no answer")

    run = drafted(store, 0, EXPIRES)
    monkeypatch.setattr(store, "history", held)

    withdrawn = withdraw_stale(store, now=SLOT + DAY)

    assert withdrawn.expired == (str(run.key),)
    assert withdrawn.broken == ("daily-digest: no answer",)


def test_a_drafter_whose_history_ends_before_its_oldest_draft_is_done_with(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = drafted(store, 0, EXPIRES)
    monkeypatch.setattr(store, "history", lambda drafter, after=None: Page((), ("run x: no",)))

    withdrawn = withdraw_stale(store, now=SLOT + DAY)

    assert (withdrawn.expired, withdrawn.broken) == ((str(run.key),), ("run x: no",))


def test_a_row_that_cannot_be_read_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "watched", lambda status, after=None: Page((), ("run x: no",)))
    assert withdraw_stale(store, now=SLOT).broken == ("run x: no",)


def test_the_sweep_says_what_it_withdrew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TABLE", "RUNS_QUEUE_URL", "DEAD_RUNS_QUEUE_URL", "SCHEDULE_GROUP"):
        monkeypatch.setenv(f"GALLEY_{name}", "test")
    expired = drafted(store, 0, EXPIRES, "weekly-report")
    older, newer = drafted(store, 0), drafted(store, 1, SUPERSEDES)
    at = SLOT + 2 * DAY
    system.install(Outside(store_=store, queue_=RecordingQueue(), schedules_=FixedSchedules(), at=at))

    answer = recover.handler(event("recover"), Context())

    assert (answer["expired"], answer["superseded"]) == ([str(expired.key)], [str(older.key)])
    assert status(store, newer) is Status.PENDING
