"""What the tests of the stores are made of: messages, drafts, short ways to a state, and the whole of a store."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from galley.contract import CatchUp, Contract
from galley.drafts import Channel, Draft, Item
from galley.rules import NO_RULES, Rules
from galley.runs import WATCHED, Origin, Run, RunMessage, Status, Usage, iso_week
from galley.store import Approve, Bill, Claimed, ClaimOutcome, Limits, Reject, Settled, Store

DIGEST = "daily-digest"
REPORT = "weekly-report"
SLOT = datetime(2026, 3, 2, 6, tzinfo=UTC)
NOW = SLOT + timedelta(minutes=1)
DAY = "2026-03-02"
WEEK = "2026-W10"
LEASE = timedelta(minutes=5)
NO_LIMITS = Limits(pending=1_000, daily_budget_nanousd=None, worst_cost_nanousd=0)
BILL = Bill(Usage(input_tokens=900, output_tokens=100), cost_nanousd=3_000, model="claude-haiku-5-5")
CURSORS: Mapping[str, Mapping[str, object]] = {
    "mail": {"after": "inbox/2026-03-02", "seen": ["a", "b"], "count": 2, "whole": True},
    "feed": {"etag": 'W/"5f3"', "modified": None},
}
DRAFT = Draft(
    title="Montag: drei Mails – und ☕",
    body="## Heute\n\n- Anna asks for the *report* [m1]\n",
    items=(
        Item(
            id="m1",
            title="Report?",
            text="Where is it?",
            source="mail",
            link="https://example.com/m1",
            author="Anna <anna@example.com>",
            published=SLOT - timedelta(hours=3, microseconds=5),
        ),
        Item(id="m2", title="", text="", source="mail"),
    ),
    warnings=("one mail could not be decoded: inbox/3.eml",),
    model="claude-haiku-5-5",
    channels=(Channel("s3", "published/digest"),),
)
EDIT = Approve(title="Monday: three mails", body="Anna asks for the report.")


def message(drafter: str = DIGEST, slot: datetime = SLOT, **change: Any) -> RunMessage:
    """Return the message of a run, as a schedule would cause it."""
    fields: dict[str, Any] = {
        "origin": Origin.SCHEDULE,
        "contract": Contract(window_minutes=30, grace_minutes=120, catch_up=CatchUp.LATEST),
        "schedule": f"arn:aws:scheduler:eu-west-2:123456789012:schedule/galley/{drafter}",
        "trace": "1-67891233-abcdef012345678912345678",
        **change,
    }
    return RunMessage(drafter=drafter, slot=slot, **fields)


def later(number: int, drafter: str = DIGEST) -> RunMessage:
    """Return the message of the slot that many days later."""
    return message(drafter, SLOT + timedelta(days=number))


def claim(
    store: Store,
    asked: RunMessage | None = None,
    limits: Limits = NO_LIMITS,
    *,
    owner: str = "invocation-1",
    now: datetime = NOW,
) -> ClaimOutcome:
    """Claim a run, by default the one of ``message()``, for five minutes.

    Who claims a run for the second time at one instant must be another owner: to DynamoDB it is the same request again.
    """
    return store.claim(asked or message(), limits, owner=owner, now=now, lease_until=now + LEASE)


def claimed(
    store: Store,
    asked: RunMessage | None = None,
    limits: Limits = NO_LIMITS,
    *,
    owner: str = "invocation-1",
    now: datetime = NOW,
) -> Run:
    """Claim a run that is to be had."""
    outcome = claim(store, asked, limits, owner=owner, now=now)
    assert isinstance(outcome, Claimed), outcome
    return outcome.run


def settled(outcome: object) -> Run:
    """Return the run of an operation that did what was asked."""
    assert isinstance(outcome, Settled), outcome
    return outcome.run


def pending(
    store: Store,
    asked: RunMessage | None = None,
    draft: Draft = DRAFT,
    *,
    now: datetime = NOW,
    rules: Rules = NO_RULES,
) -> Run:
    """Bring a run before the reviewers, or, where its rules say so, past them."""
    run = claimed(store, asked, now=now)
    return settled(store.store(run, draft, {}, BILL, now=now, rules=rules))


def failed(store: Store, asked: RunMessage | None = None, *, now: datetime = NOW) -> Run:
    """Let a run fail for good."""
    run = claimed(store, asked, now=now)
    return settled(store.release(run, Status.FAILED, "refusal", "the model refused", BILL, now=now))


def queued(store: Store, asked: RunMessage | None = None, *, now: datetime = NOW) -> Run:
    """Let a run fail, and send it again."""
    return settled(store.resend(failed(store, asked, now=now).key, now=now))


def approved(store: Store, asked: RunMessage | None = None, *, now: datetime = NOW) -> Run:
    """Let a reviewer say yes."""
    return settled(decide(store, pending(store, asked, now=now), now=now))


def decide(
    store: Store,
    read: Run,
    verdict: Approve | Reject | None = None,
    *,
    reviewer: str = "anna",
    now: datetime = NOW,
    **instead: Any,
) -> object:
    """Decide on a run as it was read, a yes by default; ``instead`` changes what the reviewer claims to have read."""
    fields: dict[str, Any] = {"version": read.version, "read_hash": read.text_hash or "", **instead}
    return store.decide(read.key, verdict or Approve(), reviewer=reviewer, now=now, **fields)


def everything(store: Store) -> dict[str, Any]:
    """Return all that a store holds of the drafters of these tests, as far as its operations tell."""
    return {
        **{drafter: dict(_everything_of(store, drafter)) for drafter in (DIGEST, REPORT)},
        **{f"watched {status}": store.watched(status, limit=1_000) for status in WATCHED},
    }


def all_runs(store: Store, drafter: str) -> list[Run]:
    """Return all runs of a drafter, newest slot first."""
    page = store.history(drafter, limit=1_000)
    assert not page.unreadable
    return list(page.runs)


def _everything_of(store: Store, drafter: str) -> Iterator[tuple[str, object]]:
    runs = all_runs(store, drafter)
    yield "runs", runs
    yield "texts", {str(run.key): store.draft(run.key) for run in runs}
    yield "memory", store.memory(drafter)
    yield "state", store.drafter(drafter)
    yield "spend", [store.committed_nanousd(drafter, day) for day in (DAY, "2026-03-03", "2026-03-04")]
    yield "weeks", [dict(store.week(drafter, week)) for week in sorted({WEEK, *(iso_week(run.slot) for run in runs)})]
