"""One story, told on any stage that has the five functions, and how it ends there.

The stage is AWS, or one machine. The story puts the same material into either bucket, moves either clock to the same
instants and says the same words to either desk, so it must end with the same rows, texts, cursors, counts, dead letters
and objects. ``DIFFERS`` lists what cannot be the same, and why; everything else is compared as it stands.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Protocol

from galley.bucket import Bucket
from galley.instants import format_instant
from galley.queue import DeadLetter, RunQueue
from galley.runs import WATCHED, Origin, Run, RunMessage, iso_week
from galley.store import DrafterState, Rejection, Store, StoredDraft
from galley.store.rows import run_row
from galley_cli.sample_material import put_samples
from sources.collected import short_hash
from support.outside import CONTRACT

DRAFTERS = ("daily-digest", "hourly-monitor", "nightly-sync", "weekly-report")
MISTAKE = "no-such-drafter"

MONDAY = datetime(2026, 11, 23, 14, 10, tzinfo=UTC)
MONDAY_LATER = datetime(2026, 11, 23, 16, 0, 30, tzinfo=UTC)
TUESDAY = datetime(2026, 11, 24, 6, 31, tzinfo=UTC)
NEXT_MONDAY = datetime(2026, 11, 30, 13, 31, tzinfo=UTC)

FIRST_SLOTS = {
    "daily-digest": datetime(2026, 11, 23, 6, tzinfo=UTC),
    "hourly-monitor": datetime(2026, 11, 23, 14, tzinfo=UTC),
    "nightly-sync": datetime(2026, 11, 22, 15, 30, tzinfo=UTC),
    "weekly-report": datetime(2026, 11, 23, 13, tzinfo=UTC),
}
"""The slots that were due last when the system starts."""

SECOND_SLOTS = {
    "daily-digest": datetime(2026, 11, 24, 6, tzinfo=UTC),
    "hourly-monitor": datetime(2026, 11, 23, 16, tzinfo=UTC),
    "nightly-sync": datetime(2026, 11, 23, 15, 30, tzinfo=UTC),
    "weekly-report": datetime(2026, 11, 30, 13, tzinfo=UTC),
}


@dataclass(frozen=True)
class Difference:
    """Why a field cannot be the same on two stages, and what of it is compared instead, where it has a value."""

    why: str
    instead: Callable[[Any], Any]


DIFFERS: Mapping[str, Difference] = {
    "trace": Difference("the id of the request that caused the run", bool),
    "schedule": Difference(
        "an ARN names an account and a group; the schedule's own name ends it", lambda arn: _name(arn)
    ),
    "reviewer": Difference("one is a user of Cognito's, the other of the machine's", bool),
}
"""All fields of rows and messages that the same story cannot have in common on two stages.

In cursors there are etags, which S3 and a folder make differently. They are compared as the keys of the objects that
have them in the bucket: so an etag that no object has is found out.
"""

_MAIL = b"""From: Priya Nair <priya@example.com>
To: office@example.com
Subject: Two benches short
Date: Mon, 23 Nov 2026 20:14:00 +0000
Message-ID: <two-benches@example.com>
Content-Type: text/plain; charset=utf-8

Order 20611 came with four benches instead of six. When do the other two leave?
"""
_NO_MAIL = b"\x00\x01\x02 this is no mail \xff"


class Stage(Protocol):
    """A system with everything that the story touches. ``settle`` is called after each step."""

    store: Store
    queue: RunQueue
    bucket: Bucket

    def at(self, now: datetime) -> None:
        """Move every clock of the system to an instant, where it stands still."""
        ...

    def start(self) -> None:
        """Start the system for the first time: the latest due slot of each schedule is drafted."""
        ...

    def tick(self, schedule: str, slot: datetime) -> None:
        """Let a schedule (by its name) be due."""
        ...

    def send_text(self, body: str) -> None:
        """Put any text into the queue of run messages."""
        ...

    def ask_desk(self, method: str, path: str, body: Mapping[str, object] | None = None) -> tuple[int, Any]:
        """Ask the review desk as a reviewer; return the status and what the JSON of its answer says."""
        ...

    def settle(self) -> None:
        """Let everything happen that happens without anybody: no message waits and no change is unseen."""
        ...


def tell(stage: Stage) -> None:
    """Tell the story: four drafters, two slots each, a yes that is published, a no, and two poisoned messages."""
    stage.at(MONDAY)
    put_samples(stage.bucket, MONDAY)
    stage.start()
    stage.settle()

    _decide(stage, "nightly-sync", "approve", {})
    stage.settle()

    stage.at(MONDAY_LATER)
    handbook = "documents/handbook"
    _put(stage, f"{handbook}/buying-timber.md", b"# Buying timber\n\nLarch is ordered on Mondays from now on.\n")
    _put(stage, f"{handbook}/visitors.md", b"# Visitors\n\nVisitors sign the book at the gate.\n")
    stage.bucket.delete(f"{handbook}/deliveries.md")
    stage.tick("NightlySync", SECOND_SLOTS["nightly-sync"])
    stage.tick("HourlyMonitor", SECOND_SLOTS["hourly-monitor"])
    stage.settle()

    stage.at(TUESDAY)
    _put(stage, "mail/daily-digest/two-benches.eml", _MAIL)
    _put(stage, "mail/daily-digest/scan.eml", _NO_MAIL)
    for _ in range(2):  # Scheduler delivers at least once
        stage.tick("DailyDigest", SECOND_SLOTS["daily-digest"])
        stage.settle()
    _decide(stage, "daily-digest", "reject", {"reason": "tone", "words": "Too chatty for clients."})

    stage.at(NEXT_MONDAY)
    _add_a_week_of_figures(stage)
    stage.tick("WeeklyReport", SECOND_SLOTS["weekly-report"])
    stage.settle()

    mistake = RunMessage(drafter=MISTAKE, slot=NEXT_MONDAY, origin=Origin.MANUAL, contract=CONTRACT)
    stage.queue.send([mistake])
    stage.send_text('{"drafter": "daily-digest", "slot": "2026-11-30T06:00:00"}')
    stage.settle()


@dataclass(frozen=True)
class Ending:
    """All that a story has left behind, as far as two stages can have it in common."""

    runs: Mapping[str, Mapping[str, Any]]
    texts: Mapping[str, StoredDraft | None]
    cursors: Mapping[str, Any]
    rejections: Mapping[str, Sequence[Rejection]]
    gates: Sequence[DrafterState]
    spend: Mapping[str, int]
    weeks: Mapping[str, Mapping[str, int]]
    watched: Mapping[str, Sequence[str]]
    dead: Sequence[Mapping[str, Any]]
    objects: Mapping[str, bytes]


def ending_of(stage: Stage) -> Ending:
    """Return how the story ended, with what ``DIFFERS`` names replaced by what is compared instead."""
    drafters = (*DRAFTERS, MISTAKE)
    store = stage.store
    runs: list[Run] = []
    for drafter in drafters:
        page = store.history(drafter, limit=1_000)
        assert page.unreadable == ()
        runs += page.runs
    days = sorted({run.created.date().isoformat() for run in runs})
    weeks = sorted({iso_week(run.slot) for run in runs})
    return Ending(
        runs={str(run.key): _comparable(run_row(run)) for run in runs},
        texts={str(run.key): store.draft(run.key) for run in runs},
        cursors={drafter: _comparable_cursors(store.memory(drafter).cursors, stage.bucket) for drafter in drafters},
        rejections={drafter: store.memory(drafter).rejections for drafter in drafters},
        gates=[store.drafter(drafter) for drafter in drafters],
        spend={f"{drafter} {day}": store.committed_nanousd(drafter, day) for drafter in drafters for day in days},
        weeks={f"{drafter} {week}": dict(store.week(drafter, week)) for drafter in drafters for week in weeks},
        watched={str(status): [str(run.key) for run in store.watched(status).runs] for status in sorted(WATCHED)},
        dead=sorted(map(_comparable_letter, stage.queue.dead_runs()), key=lambda letter: str(letter["reason"])),
        objects={
            info.key: stage.bucket.get(info.key, max_bytes=1_000_000)
            for prefix in ("published/", "index/")
            for info in stage.bucket.list(prefix)
        },
    )


def _put(stage: Stage, key: str, body: bytes) -> None:
    stage.bucket.put(key, body, content_type="application/octet-stream")


def _add_a_week_of_figures(stage: Stage) -> None:
    """Let the table go on for seven days, with the figures of its last seven."""
    lines = stage.bucket.get("metrics/sales.csv", max_bytes=1_000_000).decode().splitlines()
    for line in lines[-7:]:
        day, comma, figures = line.partition(",")
        lines.append(f"{date.fromisoformat(day) + timedelta(days=7)}{comma}{figures}")
    _put(stage, "metrics/sales.csv", "\n".join((*lines, "")).encode())


def _decide(stage: Stage, drafter: str, verdict: str, words: Mapping[str, object]) -> None:
    """Read the drafter's first draft at the desk, and decide on what was read."""
    path = f"/drafts/{drafter}/{format_instant(FIRST_SLOTS[drafter])}"
    status, read = stage.ask_desk("GET", path)
    assert status == 200, read
    decision = {"version": read["version"], "text_hash": read["text_hash"], **words}
    for expected in (200, 409):  # a second click finds that it is decided
        status, answer = stage.ask_desk("POST", f"{path}/{verdict}", decision)
        assert status == expected, answer


def _comparable(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a row or a message, with what differs replaced, on whatever level it stands."""
    return {name: _comparable_value(name, value) for name, value in fields.items()}


def _comparable_value(name: str, value: Any) -> Any:
    if name in DIFFERS and value is not None:
        return DIFFERS[name].instead(value)
    return _comparable(value) if isinstance(value, Mapping) else value


def _comparable_letter(letter: DeadLetter) -> dict[str, Any]:
    return {
        "body": _comparable(json.loads(letter.body)),
        "run": letter.run,
        "reason": letter.reason,
        "detail": letter.detail,
        "error_type": letter.error_type,
        "attempts": letter.attempts,
        "first": letter.first,
        "last": letter.last,
    }


def _name(arn: str) -> str:
    return arn.rpartition("/")[2]


def _comparable_cursors(cursors: Mapping[str, Mapping[str, Any]], bucket: Bucket) -> dict[str, Any]:
    """Return the cursors with each etag, and each hash of a key and an etag, replaced by the key of its object."""
    objects = {info.key: info.etag for info in bucket.list("")}
    names = {short_hash(key, etag): key for key, etag in objects.items()} | {
        f"{key} {etag}": key for key, etag in objects.items()
    }
    return {source: _comparable_cursor(dict(cursor), names) for source, cursor in cursors.items()}


def _comparable_cursor(cursor: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    if "seen" in cursor:
        cursor["seen"] = [names[seen] for seen in cursor["seen"]]
    if "documents" in cursor:
        cursor["documents"] = {
            key: [sha256, names[f"index/nightly-sync/handbook/{key}.json {entry}"], names[f"{key} {tag}"], asked]
            for key, (sha256, entry, tag, asked) in cursor["documents"].items()
        }
    return cursor
