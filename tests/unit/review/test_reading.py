"""What the desk shows of drafts, runs and gates."""

import sqlite3
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import review
from galley.drafts import Attachment, Draft, Item
from galley.rules import Review, Rules
from galley.runs import SkipReason, Status
from galley.settings import ReviewSettings
from galley.store import Bill
from support.outside import SLOT, event, message
from unit.review.asking import BODY, DRAFT, TITLE, DeskClient, path_of


def test_the_waiting_drafts_come_longest_waiting_first(desk: DeskClient) -> None:
    desk.pending(SLOT)
    older = desk.pending(SLOT - timedelta(hours=2), "hourly-monitor")
    listed = desk.get("/drafts").json
    assert [one["run"] for one in listed["drafts"]] == [str(older.key), "daily-digest:2026-11-27T06:00:00Z"]
    assert listed["drafts"][1] == {
        "run": "daily-digest:2026-11-27T06:00:00Z",
        "drafter": "daily-digest",
        "slot": "2026-11-27T06:00:00Z",
        "title": TITLE,
        "warnings": 1,
        "urgent": False,
        "expires": None,
        "waiting_seconds": 560,
        "cost_nanousd": 2_700_000,
        "model": "claude-haiku-5-5",
        "version": 2,
        "text_hash": older.text_hash,
    }
    assert (listed["unreadable"], listed["next"]) == ([], None)


def test_only_pending_drafts_wait(desk: DeskClient) -> None:
    desk.decide("approve", desk.pending())
    desk.claimed(SLOT - timedelta(days=1))
    assert desk.get("/drafts").json["drafts"] == []


def test_a_long_list_comes_in_pages(desk: DeskClient) -> None:
    slots = [SLOT - timedelta(hours=hour) for hour in range(30)]
    keys = {str(desk.pending(slot).key) for slot in slots}
    first = desk.get("/drafts").json
    second = desk.get("/drafts", after=first["next"]).json
    assert len(first["drafts"]) == 25
    assert second["next"] is None
    assert {one["run"] for one in first["drafts"] + second["drafts"]} == keys


def test_urgent_drafts_stand_first_on_the_first_page_and_say_until_when_they_wait(desk: DeskClient) -> None:
    for hour in range(30):
        desk.pending(SLOT - timedelta(hours=hour))
    rules = Rules(expires=SLOT + timedelta(hours=2), urgent=True)
    alert = desk.pending(SLOT, "hourly-monitor", rules=rules)
    listed = desk.get("/drafts").json["drafts"]
    assert [(one["urgent"], one["expires"]) for one in listed] == [
        (True, "2026-11-27T08:00:00Z"),
        *[(False, None)] * 24,
    ]
    assert listed[0]["run"] == str(alert.key)
    shown = desk.get(path_of(alert)).json["run"]
    assert (shown["urgent"], shown["expires"], shown["review"]) == (True, "2026-11-27T08:00:00Z", "required")


def test_a_draft_that_nobody_reviews_waits_for_nobody_and_says_so(desk: DeskClient) -> None:
    run = desk.pending(rules=Rules(review=Review.NONE))
    assert desk.get("/drafts").json["drafts"] == []
    shown = desk.get(path_of(run)).json["run"]
    assert (shown["status"], shown["review"]) == ("approved", "none")
    assert (shown["decision"]["reviewer"], shown["decision"]["read_hash"]) == ("none (review = none)", "")


def test_an_unreadable_text_hides_no_other_draft(desk: DeskClient, tmp_path: Path) -> None:
    desk.pending(SLOT)
    desk.pending(SLOT - timedelta(days=1))
    _write(tmp_path, "UPDATE texts SET items = '[{}]' WHERE slot = '2026-11-26T06:00:00Z'")
    listed = desk.get("/drafts").json
    assert [one["slot"] for one in listed["drafts"]] == ["2026-11-27T06:00:00Z"]
    assert len(listed["unreadable"]) == 1
    assert "items[1]" in listed["unreadable"][0]


def test_a_draft_comes_with_all_that_a_decision_needs(desk: DeskClient) -> None:
    run = desk.pending()
    shown = desk.get(path_of(run)).json
    assert (shown["title"], shown["body"]) == (TITLE, BODY)
    assert (shown["version"], shown["text_hash"]) == (run.version, run.text_hash)
    assert "<li>The venue wants the headcount by noon.</li>" in shown["html"]
    assert shown["items"][0] == {
        "id": "m1",
        "title": "Invoice 4711",
        "text": "It is due on Friday.",
        "source": "mail",
        "author": "Ana Lima",
        "published": "2026-11-27T06:00:00Z",
        "link": "https://mail.example/m1",
        "link_host": "mail.example",
    }
    assert shown["items"][1]["link"] is None
    assert shown["warnings"] == ["Message 17 could not be decoded."]
    assert shown["channels"] == [{"kind": "email", "target": "team@galley.example"}]
    assert shown["model"] == "claude-haiku-5-5"
    assert shown["waiting_seconds"] == 560
    assert shown["original"] is None
    assert shown["run"]["status"] == "pending"
    assert shown["run"]["usage"]["input_tokens"] == 1200
    assert "owner" not in shown["run"]


@pytest.mark.parametrize(
    ("link", "host"),
    [
        ("https://bank.example@evil.example/login", "evil.example"),
        ("https://xn--80ak6aa92e.com/", "xn--80ak6aa92e.com"),
        ("https://раураl.com/", "xn--l-7sba6dbr.com"),
        ("http://[2001:db8::1]:8080/", "[2001:db8::1]:8080"),
        ("HTTPS://Mail.Example:443/x", "mail.example:443"),
        ("https://evil.example\\@bank.example/", None),
        ("https://bank.example\t.evil.example/", None),
        ("https://bank%2eexample/", None),
        ("https://:80/", None),
        ("https://a..b/", None),
        ("https://mail.example:port/", None),
        ("javascript:alert(1)", None),
        ("java\nscript:alert(1)", None),
        ("data:text/html,x", None),
        ("//mail.example/", None),
        ("/drafts", None),
        ("", None),
    ],
)
def test_a_source_names_the_host_that_its_link_leads_to(desk: DeskClient, link: str, host: str | None) -> None:
    draft = Draft("Title", "Body", (Item("f1", "A", "Text", "feed", link),), (), "offline")
    shown = desk.get(path_of(desk.pending(draft=draft))).json
    assert shown["items"][0]["link_host"] == host


def test_what_goes_with_a_draft_is_shown_and_a_table_comes_as_its_cells(desk: DeskClient) -> None:
    table = Attachment("figures.csv", "text/csv", 'Figure,Group\nOrders,"<b>, ""x"""\n')
    chart = Attachment("chart.svg", "image/svg+xml", "<svg>ä</svg>")
    run = desk.pending(draft=replace(DRAFT, attachments=(table, chart)))
    shown = desk.get(path_of(run)).json
    assert shown["attachments"] == [
        {
            "name": "figures.csv",
            "media_type": "text/csv",
            "bytes": 33,
            "text": table.text,
            "rows": [["Figure", "Group"], ["Orders", '<b>, "x"']],
        },
        {"name": "chart.svg", "media_type": "image/svg+xml", "bytes": 13, "text": chart.text, "rows": None},
    ]
    assert shown["text_hash"] == run.text_hash
    assert desk.decide("approve", run, title="Shorter", body="One thing.").status == 200
    assert desk.get(path_of(run)).json["attachments"] == shown["attachments"]


@pytest.mark.guarantee("G7")
def test_g7_a_draft_whose_attachments_are_not_its_rows_is_not_shown(desk: DeskClient, tmp_path: Path) -> None:
    chart = Attachment("chart.svg", "image/svg+xml", "<svg/>")
    run = desk.pending(draft=replace(DRAFT, attachments=(chart,)))
    _write(tmp_path, "UPDATE texts SET attachments = '[]'")
    answer = desk.get(path_of(run))
    assert (answer.status, answer.json["error"]["code"]) == (500, "text_mismatch")


def test_a_decided_draft_can_still_be_read(desk: DeskClient) -> None:
    run = desk.pending()
    desk.decide("reject", run, reason="too_late")
    assert desk.get(path_of(run)).json["run"]["decision"]["reason"] == "too_late"


def test_a_run_without_a_draft_says_why(desk: DeskClient) -> None:
    desk.store.skip(message(), SkipReason.GATE, "five drafts wait", now=SLOT)
    answer = desk.get("/drafts/daily-digest/2026-11-27T06:00:00Z")
    assert (answer.status, answer.json["error"]["code"]) == (404, "not_found")
    assert answer.line == "daily-digest:2026-11-27T06:00:00Z has no draft: it is skipped (gate: five drafts wait)"


@pytest.mark.guarantee("G7")
def test_g7_a_text_that_is_not_the_rows_is_not_shown_for_decision(desk: DeskClient, tmp_path: Path) -> None:
    run = desk.pending()
    _write(tmp_path, "UPDATE texts SET body = 'Pay to another account.'")
    answer = desk.get(path_of(run))
    assert (answer.status, answer.json["error"]["code"]) == (500, "text_mismatch")
    assert "Pay" not in answer.body


def test_a_drafters_runs_come_newest_slot_first(desk: DeskClient) -> None:
    desk.pending(SLOT)
    desk.store.skip(message(slot=SLOT - timedelta(days=1)), SkipReason.PAUSED, "", now=SLOT)
    desk.pending(SLOT, "weekly-report")
    listed = desk.get("/runs", drafter="daily-digest").json
    assert [(one["slot"][:10], one["status"]) for one in listed["runs"]] == [
        ("2026-11-27", "pending"),
        ("2026-11-26", "skipped"),
    ]
    skipped = desk.get("/runs", drafter="daily-digest", status="skipped").json
    assert [one["reason"] for one in skipped["runs"]] == ["paused"]


def test_the_runs_of_a_watched_state_come_from_all_drafters(desk: DeskClient) -> None:
    for drafter in ("daily-digest", "weekly-report"):
        desk.store.release(desk.claimed(SLOT, drafter), Status.FAILED, "refusal", "no", Bill(), now=SLOT)
    listed = desk.get("/runs", status="failed").json
    assert {one["drafter"] for one in listed["runs"]} == {"daily-digest", "weekly-report"}


def test_one_run_is_its_row(desk: DeskClient) -> None:
    run = desk.pending()
    shown = desk.get(path_of(run, "runs")).json["run"]
    assert shown["contract"] == {"window_minutes": 30, "grace_minutes": 120, "catch_up": "latest"}
    assert (shown["status"], shown["attempts"], shown["origin"]) == ("pending", 1, "schedule")
    assert desk.get("/runs/daily-digest/2026-11-28T06:00:00Z").status == 404


def test_the_gates_of_the_named_drafters(desk: DeskClient) -> None:
    desk.pending()
    desk.store.pause("weekly-report", "by hand", now=SLOT)
    assert desk.get("/drafters", names="daily-digest, weekly-report,never-seen").json == {
        "drafters": [
            {"drafter": "daily-digest", "pending": 1, "paused": None},
            {"drafter": "weekly-report", "pending": 0, "paused": "by hand"},
            {"drafter": "never-seen", "pending": 0, "paused": None},
        ]
    }


@pytest.mark.parametrize(
    ("path", "query", "line"),
    [
        ("/drafts", {"after": "nowhere"}, "query: field 'after' is 'nowhere'"),
        ("/drafts", {"afer": "x"}, "query: afer is not known"),
        ("/runs", {}, "query: status is None: name a drafter or a status"),
        ("/runs", {"status": "bored"}, "query: status is 'bored'"),
        ("/runs", {"status": "empty"}, "without a drafter only approved, drafting, failed, pending"),
        ("/runs", {"drafter": "Daily Digest"}, "query: drafter is 'Daily Digest'"),
        ("/runs", {"drafter": "daily-digest", "after": "weekly-report:2026-11-27T06:00:00Z"}, "field 'after'"),
        ("/drafters", {}, "query: names is missing"),
        ("/drafters", {"names": "daily-digest,"}, "names[2] is ''"),
        ("/drafters", {"names": ",".join(["a"] * 51)}, "at most 50"),
        ("/runs/daily-digest/now", {}, "'daily-digest:now' is not a run"),
    ],
)
def test_a_wrong_query_is_told_by_field_and_value(
    desk: DeskClient, path: str, query: dict[str, str], line: str
) -> None:
    answer = desk.get(path, **query)
    assert answer.status == 422
    assert line in answer.line


@pytest.mark.parametrize("path", ["/nowhere", "/drafts/", "/drafts/daily-digest", "/runs/a/b/c", "/approve"])
def test_what_is_nowhere_is_not_found(desk: DeskClient, path: str) -> None:
    answer = desk.get(path)
    assert (answer.status, answer.line) == (404, f"there is nothing at {path}")


def test_a_post_to_what_is_only_read_is_refused(desk: DeskClient) -> None:
    for path in review._allowed:
        if not path.endswith(("approve", "reject")):
            there = path.replace("<drafter>", "a").replace("<slot>", "2026-11-27T06:00:00Z").replace("<name>", "b")
            answer = desk.ask("POST", there.replace("<version>", "c"), {})
            assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD, OPTIONS")


def test_a_head_is_answered_without_its_body(desk: DeskClient) -> None:
    answer = desk.ask("HEAD", "/drafts")
    assert (answer.status, answer.body) == (200, "")
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"


def test_health_opens_no_store(desk: DeskClient) -> None:
    desk.outside.store_ = None
    assert desk.ask("GET", "/health", claims=None).json == {"status": "ok"}


def test_the_settings_are_read_once_a_request(desk: DeskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    from_environment = ReviewSettings.from_environment

    def counted() -> ReviewSettings:
        read.append(1)
        return from_environment()

    monkeypatch.setattr(ReviewSettings, "from_environment", counted)
    for path in ("/config", "/drafts"):
        read.clear()
        assert desk.get(path).status == 200
        assert len(read) == 1


def test_the_sample_events_read(desk: DeskClient) -> None:
    desk.pending()
    assert [one["title"] for one in desk.invoke(event("review-list")).json["drafts"]] == [DRAFT.title]
    assert desk.invoke(event("review-read")).json["body"] == BODY
    assert desk.invoke(event("review-page")).headers["Content-Type"].startswith("text/html")


def _write(tmp_path: Path, statement: str) -> None:
    with sqlite3.connect(tmp_path / "state" / "galley.sqlite") as db:
        assert db.execute(statement).rowcount == 1
    db.close()
