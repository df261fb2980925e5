"""A person decides: once, for the exact text that was read, and only by a POST in their own name."""

import base64
import json
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import review
from galley.drafts import text_hash
from galley.retry import NeverSucceeds
from galley.rules import Review, Rules
from galley.runs import Run, RunKey, SkipReason, Status, iso_week
from galley.store import DrafterState, Expire, RowsDisagree, StoreBusy, Supersede, Withdrawal
from support.outside import SLOT, Outside, event, message
from unit.review.asking import BODY, TITLE, Answer, DeskClient, path_of

G7 = pytest.mark.guarantee("G7")


def test_an_approval_says_who_when_and_for_which_text(desk: DeskClient) -> None:
    run = desk.pending()
    answer = desk.decide("approve", run)
    assert answer.status == 200
    assert answer.json["run"]["status"] == "approved"
    assert answer.json["run"]["decision"] == {
        "reviewer": "ana (sub-ana)",
        "at": "2026-11-27T06:10:00Z",
        "read_hash": run.text_hash,
        "edited": False,
        "reason": None,
        "words": "",
    }
    assert desk.store.drafter("daily-digest").pending == 0


def test_a_rejection_keeps_its_reason_and_the_reviewers_words(desk: DeskClient) -> None:
    run = desk.pending()
    answer = desk.decide("reject", run, reason="tone", words="  Too chatty.  ")
    assert answer.status == 200
    assert answer.json["run"]["status"] == "rejected"
    assert answer.json["run"]["decision"]["reason"] == "tone"
    assert answer.json["run"]["decision"]["words"] == "Too chatty."
    assert desk.store.week("daily-digest", iso_week(run.slot))["rejected:tone"] == 1


def test_an_approved_edit_is_kept_beside_the_original(desk: DeskClient) -> None:
    run = desk.pending()
    answer = desk.decide("approve", run, title="Shorter", body="One thing.\r\nToday.")
    assert answer.status == 200
    assert answer.json["run"]["decision"]["edited"] is True
    assert answer.json["run"]["text_hash"] == text_hash("Shorter", "One thing.\nToday.")
    shown = desk.get(path_of(run)).json
    assert (shown["title"], shown["body"]) == ("Shorter", "One thing.\nToday.")
    assert shown["original"] == {"title": TITLE, "body": BODY}


def test_an_edit_that_changes_nothing_is_none(desk: DeskClient) -> None:
    run = desk.pending()
    answer = desk.decide("approve", run, title=TITLE, body=BODY)
    assert answer.json["run"]["decision"]["edited"] is False


@G7
@pytest.mark.parametrize("second", [("approve", {}), ("reject", {"reason": "other"})])
def test_a_second_click_changes_nothing_and_is_told_of_the_first(
    desk: DeskClient, second: tuple[str, dict[str, str]]
) -> None:
    run = desk.pending()
    first = desk.decide("approve", run)
    answer = desk.decide(second[0], run, **second[1])
    assert answer.status == 409
    assert answer.json["error"]["code"] == "conflict"
    assert answer.json["run"] == first.json["run"]
    assert answer.line == (
        "daily-digest:2026-11-27T06:00:00Z was already approved by ana (sub-ana) at 2026-11-27T06:10:00Z;"
        " nothing was changed"
    )


@G7
def test_a_second_reviewer_gets_the_first_ones_decision(desk: DeskClient) -> None:
    run = desk.pending()
    desk.decide("reject", run, by="ben", reason="inaccurate", words="The date is wrong.")
    answer = desk.decide("approve", run, by="ana")
    assert answer.status == 409
    assert answer.json["run"]["status"] == "rejected"
    assert answer.json["run"]["decision"]["reviewer"] == "ben (sub-ben)"
    assert answer.json["run"]["decision"]["words"] == "The date is wrong."
    assert "was already rejected (inaccurate) by ben (sub-ben)" in answer.line


@G7
@pytest.mark.parametrize(
    ("why", "line"),
    [
        (Expire(), "expired (undecided): nobody decided on it until 2026-11-27T06:10:00Z"),
        (
            Supersede(RunKey("daily-digest", SLOT + timedelta(days=1))),
            "superseded (replaced): the draft of daily-digest:2026-11-28T06:00:00Z took its place",
        ),
    ],
)
def test_a_decision_on_a_draft_that_was_withdrawn_is_told_why(desk: DeskClient, why: Withdrawal, line: str) -> None:
    run = desk.pending()
    desk.store.withdraw(run, why, now=desk.outside.at)
    answer = desk.decide("approve", run)
    assert answer.status == 409
    assert answer.line == f"daily-digest:2026-11-27T06:00:00Z is {line}; there is nothing to decide"
    assert desk.get("/drafts").json["drafts"] == []


@G7
def test_a_draft_that_nobody_reviews_cannot_be_decided(desk: DeskClient) -> None:
    run = desk.pending(rules=Rules(review=Review.NONE))
    answer = desk.decide("reject", run, reason="tone")
    assert answer.status == 409
    assert answer.line == (
        "daily-digest:2026-11-27T06:00:00Z is approved and was never to be reviewed (review = none);"
        " there is nothing to decide"
    )


@G7
def test_of_two_edits_the_first_stands_and_the_original_too(desk: DeskClient) -> None:
    run = desk.pending()
    assert desk.decide("approve", run, by="ana", title="Ana's", body="Her text.").status == 200
    answer = desk.decide("approve", run, by="ben", title="Ben's", body="His text.")
    assert answer.status == 409
    assert answer.json["run"]["text_hash"] == text_hash("Ana's", "Her text.")
    assert "was already approved with an edit by ana" in answer.line
    stored = desk.store.draft(run.key)
    assert stored is not None
    assert (stored.title, stored.body, stored.draft.body) == ("Ana's", "Her text.", BODY)


@G7
@pytest.mark.parametrize(
    "read",
    [{"version": 1}, {"version": 3}, {"text_hash": text_hash("Another title", "Another text")}],
    ids=["an old page", "a newer page", "edited elsewhere"],
)
@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_a_text_other_than_the_one_that_was_read_is_not_decided_on(
    desk: DeskClient, verdict: str, read: dict[str, object]
) -> None:
    run = desk.pending()
    reason = {"reason": "other"} if verdict == "reject" else {}
    answer = desk.decide(verdict, run, **read, **reason)
    assert answer.status == 409
    assert "is not the one that was read" in answer.line
    assert answer.json["run"]["version"] == run.version
    assert answer.json["run"]["text_hash"] == run.text_hash
    assert desk.store.run(run.key) == run


@G7
def test_of_twenty_at_once_one_decides_and_the_others_are_told_who(desk: DeskClient) -> None:
    run = desk.pending()

    def click(number: int) -> tuple[str, Answer]:
        name = f"reviewer-{number}"
        verdict, reason = ("approve", {}) if number % 2 else ("reject", {"reason": "other"})
        body = {"version": run.version, "text_hash": run.text_hash, **reason}
        claims = {"sub": name, "username": name}
        return name, desk.ask("POST", f"{path_of(run)}/{verdict}", body, claims=claims)

    with ThreadPoolExecutor(20) as clicks:
        answers = list(clicks.map(click, range(20)))
    won = [(name, answer) for name, answer in answers if answer.status == 200]
    assert len(won) == 1
    winner, answer = won[0]
    assert answer.json["run"]["decision"]["reviewer"] == winner
    lost = [answer for _, answer in answers if answer.status == 409]
    assert len(lost) == 19
    assert {answer.json["run"]["decision"]["reviewer"] for answer in lost} == {winner}
    assert desk.store.drafter("daily-digest").pending == 0


@G7
def test_requests_in_one_process_never_see_each_others_event(desk: DeskClient, outside: Outside) -> None:
    inside: list[str] = []
    most: list[int] = []

    def slow(name: str) -> DrafterState:
        inside.append(name)
        most.append(len(inside))
        time.sleep(0.02)
        inside.pop()
        return DrafterState(name)

    outside.store_ = _with(outside.store_, drafter=slow)
    with ThreadPoolExecutor(6) as requests:
        answers = list(requests.map(lambda name: desk.get("/drafters", names=name).json, "abcdef"))
    assert [answer["drafters"][0]["drafter"] for answer in answers] == list("abcdef")
    assert most == [1] * 6


def test_no_text_and_no_token_comes_into_a_log(
    desk: DeskClient, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.pending()
    for name in ("review-read", "review-approve", "review-reject"):
        desk.invoke(event(name))
    logged = " ".join(str(vars(record)) for record in caplog.records) + capsys.readouterr().out
    assert "decision: conflict" in caplog.text
    for secret in (TITLE, "Harbour Print", "It is due on Friday.", "Too chatty", "Bearer"):
        assert secret not in logged


@G7
def test_reading_decides_nothing_however_often(desk: DeskClient, tmp_path: Path) -> None:
    run = desk.pending()
    desk.pending(SLOT - timedelta(days=1))
    rows = _rows(tmp_path)
    paths = [*review._allowed, "/drafts/<drafter>/<slot>/decide", "/nowhere"]
    body = json.dumps({"version": run.version, "text_hash": run.text_hash, "reason": "other"})
    query = {"drafter": run.drafter, "names": run.drafter, "verdict": "approve"}
    for method in ("GET", "HEAD", "OPTIONS"):
        for path in paths:
            there = path.replace("<drafter>", run.drafter).replace("<slot>", "2026-11-27T06:00:00Z")
            for _ in range(10):
                answer = desk.ask(method, there, body, query=query)
                assert answer.status != 500
                if path.endswith(("approve", "reject")) and method != "OPTIONS":
                    assert answer.status == 405
                    assert answer.headers["Allow"] == "OPTIONS, POST"
    assert _rows(tmp_path) == rows
    assert desk.decide("approve", run).status == 200


def _rows(tmp_path: Path) -> list[str]:
    with sqlite3.connect(tmp_path / "state" / "galley.sqlite") as db:
        rows = list(db.iterdump())
    db.close()
    return rows


def _status(desk: DeskClient, run: Run) -> Status:
    now = desk.store.run(run.key)
    assert now is not None
    return now.status


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("end", ["", "/approve", "/reject"])
def test_only_a_post_decides(desk: DeskClient, method: str, end: str) -> None:
    run = desk.pending()
    answer = desk.ask(method, path_of(run) + end, {"version": run.version, "text_hash": run.text_hash})
    assert answer.status == 405
    assert answer.line.endswith(f"not {method}")
    assert desk.store.run(run.key) == run


@pytest.mark.parametrize(
    ("claims", "reviewer"),
    [
        ({"sub": "s-1", "username": "ana"}, "ana (s-1)"),
        ({"sub": "s-1", "username": "ana", "email": "ana@galley.example"}, "ana@galley.example (s-1)"),
        ({"sub": "s-1", "username": "s-1"}, "s-1"),
        ({"sub": "s-1"}, "s-1"),
        ({"iss": "local", "sub": "ana", "username": "ana"}, "ana"),
    ],
)
def test_the_reviewer_is_who_the_login_says(desk: DeskClient, claims: dict[str, str], reviewer: str) -> None:
    run = desk.pending()
    body = {"version": run.version, "text_hash": run.text_hash}
    answer = desk.ask("POST", f"{path_of(run)}/approve", body, claims=claims)
    assert answer.json["run"]["decision"]["reviewer"] == reviewer


@pytest.mark.parametrize(
    "claims",
    [None, {}, {"username": "ana"}, {"sub": ""}, {"sub": "s-1", "username": "ana\nben"}, {"sub": "s" * 400}],
)
def test_nobody_decides_without_a_name(desk: DeskClient, claims: dict[str, str] | None) -> None:
    run = desk.pending()
    body = {"version": run.version, "text_hash": run.text_hash}
    answer = desk.ask("POST", f"{path_of(run)}/approve", body, claims=claims)
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert desk.store.run(run.key) == run


HASH = "0" * 64
WRONG = [
    ("approve", "", "body: is not JSON"),
    ("approve", "{", "body: is not JSON"),
    ("approve", [], "body: give named fields"),
    ("approve", {"text_hash": HASH}, "body: version is missing; add it"),
    ("approve", {"version": 2}, "body: text_hash is missing; add it"),
    ("approve", {"version": "2", "text_hash": HASH}, "version is '2'"),
    ("approve", {"version": 2.0, "text_hash": HASH}, "version is 2.0"),
    ("approve", {"version": True, "text_hash": HASH}, "version is True"),
    ("approve", {"version": 0, "text_hash": HASH}, "version is 0"),
    ("approve", {"version": 2, "text_hash": "abc"}, "text_hash is 'abc'"),
    ("approve", {"version": 2, "text_hash": HASH, "reviewer": "ben"}, "reviewer is not known"),
    ("approve", {"version": 2, "text_hash": HASH, "title": "T"}, "an edit sends title and body together"),
    ("approve", {"version": 2, "text_hash": HASH, "body": "B"}, "an edit sends title and body together"),
    ("approve", {"version": 2, "text_hash": HASH, "title": " ", "body": "B"}, "title is ' '"),
    ("approve", {"version": 2, "text_hash": HASH, "title": "T", "body": "\n"}, "body is '\\n'"),
    ("approve", {"version": 2, "text_hash": HASH, "title": "T\nBcc: x", "body": "B"}, "must be one line"),
    ("approve", {"version": 2, "text_hash": HASH, "title": "T\u2028x", "body": "B"}, "must be one line"),
    ("approve", {"version": 2, "text_hash": HASH, "title": "T", "body": "a\u0000b"}, "control characters"),
    ("approve", {"version": 2, "text_hash": HASH, "title": "T" * 301, "body": "B"}, "at most 300 characters"),
    ("approve", {"version": 2, "text_hash": HASH, "title": "T", "body": "B" * 60_001}, "at most 60000 characters"),
    ("reject", {"version": 2, "text_hash": HASH}, "reason is missing"),
    ("reject", {"version": 2, "text_hash": HASH, "reason": "bored"}, "reason is 'bored'"),
    ("reject", {"version": 2, "text_hash": HASH, "reason": "tone", "words": "w" * 2001}, "at most 2000 characters"),
    ("reject", {"version": 2, "text_hash": HASH, "reason": "tone", "words": 7}, "words is 7"),
]


@pytest.mark.parametrize(("verdict", "body", "line"), WRONG)
def test_a_wrong_body_is_told_by_field_and_value(desk: DeskClient, verdict: str, body: object, line: str) -> None:
    run = desk.pending()
    answer = desk.ask("POST", f"{path_of(run)}/{verdict}", body)
    assert answer.status == 422
    assert line in answer.line
    assert "\n" not in answer.line
    assert len(answer.line) < 400
    assert desk.store.run(run.key) == run


def test_a_body_may_come_encoded(desk: DeskClient) -> None:
    run = desk.pending()
    asked = event("review-approve")
    asked["body"] = base64.b64encode(asked["body"].encode()).decode()
    asked["isBase64Encoded"] = True
    assert desk.invoke(asked).status == 200
    asked["body"] = base64.b64encode(b"\xff\xfe").decode()
    answer = desk.invoke(asked)
    assert (answer.status, answer.line) == (422, "body: is not UTF-8; send JSON")
    assert _status(desk, run) is Status.APPROVED


@pytest.mark.parametrize(
    ("path", "status", "line"),
    [
        ("/drafts/daily-digest/2026-11-28T06:00:00Z/approve", 404, "there is no run daily-digest:2026-11-28T06:00:00Z"),
        ("/drafts/daily-digest/tomorrow/approve", 422, "'daily-digest:tomorrow' is not a run"),
        ("/drafts/Daily%20Digest/2026-11-28T06:00:00Z/approve", 422, "is not a run"),
        ("/drafts/daily-digest/2026-11-28T06:00:00/approve", 422, "is not a run"),
        ("/drafts/daily-digest/2026-11-28T06%3A00%3A00Z/approve", 404, "there is no run"),
    ],
)
def test_what_is_not_there_cannot_be_decided_on(desk: DeskClient, path: str, status: int, line: str) -> None:
    answer = desk.ask("POST", path, {"version": 2, "text_hash": HASH})
    assert answer.status == status
    assert line in answer.line


def test_a_run_without_a_draft_is_told_as_it_is(desk: DeskClient) -> None:
    desk.store.skip(message(), SkipReason.GATE, "five drafts wait", now=SLOT)
    answer = desk.ask("POST", "/drafts/daily-digest/2026-11-27T06:00:00Z/approve", {"version": 1, "text_hash": HASH})
    assert answer.status == 409
    assert answer.line == "daily-digest:2026-11-27T06:00:00Z is skipped (gate); there is nothing to decide"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (StoreBusy("other writers held the rows; try again"), 503, "other writers held the rows; try again"),
        (NeverSucceeds("draft_too_large", "the edit does not fit"), 422, "draft_too_large: the edit does not fit"),
        (RowsDisagree("pending would fall below zero"), 500, "pending would fall below zero"),
        (
            RuntimeError("secret"),
            500,
            "the desk failed; its log tells more under 8bb4a1e0-5b7f-4d06-8d3e-0f5f6f3c1a11",
        ),
    ],
)
def test_a_store_that_fails_is_one_line(
    desk: DeskClient, outside: Outside, error: Exception, status: int, line: str
) -> None:
    run = desk.pending()

    def fails(*_: object, **__: object) -> None:
        raise error

    outside.store_ = _with(outside.store_, decide=fails)
    answer = desk.decide("approve", run)
    assert (answer.status, answer.line) == (status, line)
    assert "Content-Security-Policy" in answer.headers
    assert ("Retry-After" in answer.headers) == (status == 503)


def _with(store: Any, **methods: Callable[..., object]) -> Any:
    """Return the store with some of its methods replaced."""

    class Replaced:
        def __getattr__(self, name: str) -> object:
            return methods.get(name) or getattr(store, name)

    return Replaced()


@pytest.mark.parametrize(("name", "status"), [("review-approve", "approved"), ("review-reject", "rejected")])
def test_the_sample_events_decide(desk: DeskClient, name: str, status: str) -> None:
    run = desk.pending()
    answer = desk.invoke(event(name))
    assert answer.status == 200
    assert _status(desk, run) == status
    assert answer.json["run"]["decision"]["reviewer"] == "ana.lima (56d2a284-1071-70d3-0a1c-6c1f2f8f0b1e)"
