"""The monitor: what a look means, what is told of it, and whom it may look at."""

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from drafter import Drafter
from galley.retry import NeverSucceeds
from shapes import monitor
from shapes.monitor import News, Standing, decide
from shapes.shape import Cursor, Material
from sources.fetch import Fetched, FetchError, FetchLimits, fetch
from sources.health import Down, Health, Up

SLOT = datetime(2026, 11, 27, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
UP, DOWN = Up(200, 12), Down("it answered 503, expected was 200", 503, 12)


def a_drafter(*urls: str, **source: Any) -> Drafter:
    """Return a monitor's drafter; its sources are ``desk`` and then ``site1``, ``site2``."""
    sources = [
        {"kind": "health", "id": f"site{place}" if place else "desk", "url": url, **source}
        for place, url in enumerate(urls or ("desk:/health",))
    ]
    return Drafter.model_validate(
        {"name": "hourly", "title": "Health", "shape": "monitor", "instructions": "Be short.", "sources": sources}
    )


def standing(state: str, hours: int = 0, *, announced: bool = False) -> Standing:
    """Return how something stands, since so many hours before the slot."""
    return Standing("up" if state == "up" else "down", SLOT - hours * HOUR, announced)


@pytest.mark.parametrize(
    ("before", "found", "news", "after"),
    [
        (None, UP, News.FIRST_UP, standing("up")),
        (None, DOWN, News.WENT_DOWN, standing("down", announced=True)),
        (standing("up", 5), UP, News.STILL_UP, standing("up", 5)),
        (standing("up", 5), DOWN, News.WENT_DOWN, standing("down", announced=True)),
        (standing("down", 5, announced=True), DOWN, News.STILL_DOWN, standing("down", 5, announced=True)),
        (standing("down", 5), DOWN, News.WENT_DOWN, standing("down", 5, announced=True)),
        (standing("down", 5, announced=True), UP, News.CAME_BACK, standing("up")),
        (standing("down", 5), UP, News.CAME_BACK_UNANNOUNCED, standing("up")),
    ],
)
def test_what_a_look_means(before: Standing | None, found: Health, news: News, after: Standing) -> None:
    assert decide(before, found, SLOT) == (news, after)


class Answers:
    """A fetch that answers as it is told, and remembers what it was asked for."""

    def __init__(self, *answers: int | str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, float, frozenset[tuple[str, int]]]] = []

    def __call__(self, url: str, *, limits: FetchLimits, trusted: frozenset[tuple[str, int]], **_: Any) -> Fetched:
        self.asked.append((url, limits.seconds, trusted))
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            raise FetchError(url, answer)
        return Fetched(answer, {}, b"", url)


class Hours:
    """Looks at one hour after the other, with the cursors that the hour before stored."""

    def __init__(self, assign: Any, drafter: Drafter, *answers: int | str) -> None:
        self.assign = assign
        self.drafter = drafter
        self.fetch = Answers(*answers)
        self.cursors: Mapping[str, Cursor] = {}
        self.slot = SLOT - HOUR

    def look(self, *, stored: bool = True) -> Material:
        """Collect; with ``stored=False`` the draft is not stored."""
        self.slot += HOUR
        given = self.assign(self.drafter, slot=self.slot, cursors=self.cursors, fetch=self.fetch)
        material: Material = monitor.collect(given)
        if stored:
            self.cursors = json.loads(json.dumps({**self.cursors, **material.cursors}))
        return material


def test_an_outage_is_told_once_and_so_is_its_end(assign: Any) -> None:
    hours = Hours(assign, a_drafter(), 200, 200, 503, "it took longer than 10 s", 200, 200)
    first = hours.look()
    assert first == Material(
        cursors={"desk": {"state": "up", "since": "2026-11-27T06:00:00Z", "announced": False}},
        nothing_new="desk is up",
    )
    assert hours.look().nothing_new == "desk is up"
    alert = hours.look()
    assert alert.nothing_new is None
    assert [(item.id, item.title, item.source, item.link) for item in alert.items] == [
        ("h1", "desk is down", "desk", "http://127.0.0.1:8700/health")
    ]
    assert "it answered 503, expected was 200" in alert.items[0].text
    assert "It had been up since the look for the slot 2026-11-27T06:00:00Z." in alert.items[0].text
    assert hours.look().nothing_new == "desk is still down, announced at 2026-11-27T08:00:00Z"
    recovery = hours.look()
    assert recovery.items[0].title == "desk is up again"
    assert "It had been down since the look for the slot 2026-11-27T08:00:00Z." in recovery.items[0].text
    assert hours.look().nothing_new == "desk is up"


def test_an_item_says_when_it_was_looked_at_and_not_that_this_was_the_slot(assign: Any) -> None:
    hours = Hours(assign, a_drafter(), 200, 503, 200)
    hours.look()
    alert, recovery = hours.look().items[0].text, hours.look().items[0].text
    assert re.match(r"desk is down: it answered 503, .* when looked at, 2026-11-27T07:07:12Z\.", alert)
    assert re.match(r"desk is up again: it answered 200 in \d+ ms when looked at, 2026-11-27T08:07:12Z\.", recovery)


@pytest.mark.guarantee("G6")
def test_g6_an_alert_that_was_not_stored_is_drafted_by_the_next_run(assign: Any) -> None:
    hours = Hours(assign, a_drafter(), 200, 503, 503, 200)
    hours.look()
    hours.look(stored=False)
    assert hours.look().items[0].title == "desk is down"
    assert hours.look().items[0].title == "desk is up again"


def test_an_outage_that_was_never_announced_has_no_recovery(assign: Any) -> None:
    hours = Hours(assign, a_drafter(), 200, 503, 200)
    hours.look()
    hours.look(stored=False)
    assert hours.look().nothing_new == "desk is up"


def test_down_at_the_first_look_is_told(assign: Any) -> None:
    alert = Hours(assign, a_drafter(), "no connection (Connection refused)").look()
    assert "no connection (Connection refused)" in alert.items[0].text
    assert "It had not been looked at before." in alert.items[0].text
    assert alert.figures.splitlines()[2].startswith("| desk | down | none | ")


def test_only_what_is_news_is_an_item_and_all_are_in_the_figures(assign: Any) -> None:
    drafter = a_drafter("desk:/health", "https://one.example/", "https://two.example/")
    seen = {"https://one.example/": 500}

    def answer(url: str, **_: Any) -> Fetched:
        return Fetched(seen.get(url, 200), {}, b"", url)

    material = monitor.collect(assign(drafter, slot=SLOT, fetch=answer))
    assert [(item.id, item.source, item.link) for item in material.items] == [("h1", "site1", "https://one.example/")]
    assert [line.split(" | ")[:2] for line in material.figures.splitlines()[2:]] == [
        ["| desk", "up"],
        ["| site1", "down"],
        ["| site2", "up"],
    ]
    assert {name: cursor["state"] for name, cursor in material.cursors.items()} == {
        "desk": "up",
        "site1": "down",
        "site2": "up",
    }
    seen.clear()
    recovery = monitor.collect(assign(drafter, slot=SLOT + HOUR, fetch=answer, cursors=material.cursors))
    assert [item.title for item in recovery.items] == ["site1 is up again"]


def test_only_the_desk_is_trusted_and_each_has_its_own_time_limit(assign: Any) -> None:
    drafter = a_drafter("desk:/health?x=1", timeout_seconds=7)
    hours = Hours(assign, drafter, 200)
    hours.look()
    assert hours.fetch.asked == [("http://127.0.0.1:8700/health?x=1", 7, frozenset({("127.0.0.1", 8700)}))]
    hours = Hours(assign, a_drafter("https://desk.example/health"), 200)
    hours.look()
    assert hours.fetch.asked == [("https://desk.example/health", 10, frozenset())]


@pytest.mark.parametrize(
    ("desk_url", "looked_at"),
    [
        ("http://127.0.0.1:8700/", ("http://127.0.0.1:8700/health", ("127.0.0.1", 8700))),
        (
            "https://abc.execute-api.example",
            ("https://abc.execute-api.example/health", ("abc.execute-api.example", 443)),
        ),
        ("http://[::1]:8700", ("http://[::1]:8700/health", ("::1", 8700))),
    ],
)
def test_the_desk_is_wherever_it_runs(assign: Any, desk_url: str, looked_at: tuple[str, tuple[str, int]]) -> None:
    answers = Answers(200)
    monitor.collect(assign(a_drafter(), fetch=answers, desk_url=desk_url))
    assert [(url, *trusted) for url, _, trusted in answers.asked] == [looked_at]


@pytest.mark.parametrize(
    ("url", "desk_url", "said"),
    [
        ("desk:/health", "", "source 'desk' looks at desk:/health, but the review desk's address is ''"),
        ("http://127.0.0.1:8700/health", "http://127.0.0.1:8700", "is in a private network"),
        ("http://[::1]/", "http://127.0.0.1:8700", "is in a private network"),
        ("http://169.254.169.254/latest/meta-data", "http://127.0.0.1:8700", "is in a private network"),
        ("http://host:notaport/", "http://127.0.0.1:8700", "http://host:notaport/ is not an address"),
        ("http://[::1/", "http://127.0.0.1:8700", "is not an address"),
        ("http://:80/", "http://127.0.0.1:8700", "has no host"),
    ],
)
def test_an_address_that_is_itself_at_fault_never_succeeds(assign: Any, url: str, desk_url: str, said: str) -> None:
    with pytest.raises(NeverSucceeds) as failure:
        monitor.collect(assign(a_drafter(url), desk_url=desk_url))
    assert failure.value.reason == "invalid_address"
    assert said in failure.value.detail
    assert "'desk'" in failure.value.detail


def test_a_cursor_of_another_version_is_refused(assign: Any) -> None:
    with pytest.raises(NeverSucceeds) as failure:
        monitor.collect(assign(a_drafter(), fetch=Answers(200), cursors={"desk": {"state": "flapping"}}))
    assert failure.value.reason == "invalid_cursor"


@contextmanager
def a_desk(respond: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Serve on the loopback address and give the server's address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            respond(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer_with(status: int) -> Callable[[BaseHTTPRequestHandler], None]:
    """Answer with a status and a short body."""

    def respond(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Content-Length", "2")
        request.end_headers()
        request.wfile.write(b"ok")

    return respond


on_loopback = pytest.mark.allow_hosts(["127.0.0.1"])


@on_loopback
@pytest.mark.parametrize(
    ("status", "expected", "state"), [(200, 200, "up"), (503, 200, "down"), (204, 200, "down"), (418, 418, "up")]
)
def test_a_desk_on_the_loopback_address_is_really_looked_at(
    assign: Any, status: int, expected: int, state: str
) -> None:
    with a_desk(answer_with(status)) as desk_url:
        material = monitor.collect(assign(a_drafter(expect_status=expected), fetch=fetch, desk_url=desk_url))
    assert material.cursors["desk"]["state"] == state


@on_loopback
def test_a_desk_that_answers_too_slowly_is_down(assign: Any) -> None:
    release = threading.Event()

    def respond(request: BaseHTTPRequestHandler) -> None:
        release.wait(10)

    with a_desk(respond) as desk_url:
        material = monitor.collect(assign(a_drafter(timeout_seconds=1), fetch=fetch, desk_url=desk_url))
        release.set()
    assert "it took longer than 1 s" in material.items[0].text


@on_loopback
def test_a_desk_that_is_not_there_is_down(assign: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    material = monitor.collect(assign(a_drafter(), fetch=fetch, desk_url=f"http://127.0.0.1:{port}"))
    assert "refused" in material.items[0].text
