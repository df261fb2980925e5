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
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from drafter import Drafter
from galley.retry import NeverSucceeds
from galley.schedules import SchedulesUnavailable
from shapes import monitor
from shapes.monitor.news import Concern
from shapes.shape import Cursor, Material, Window
from sources.fetch import Fetched, FetchError, FetchLimits, NoNetwork, fetch
from unit.shapes.test_alarms import Heard, Policy, stories

SLOT = datetime(2026, 11, 27, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
NO_NETWORK = NoNetwork("https://shop.example/", "the connection failed (Network is unreachable)")
ONE = {"failures": 1, "successes": 1}


def a_drafter(*urls: str, monitor: dict[str, Any] | None = None, **source: Any) -> Drafter:
    """Return a monitor's drafter, whose sources are ``desk`` and then ``site1``, ``site2``: one look is enough."""
    sources = [
        {"kind": "health", "id": f"site{place}" if place else "desk", "url": url, **ONE, **source}
        for place, url in enumerate(urls or ("desk:/health",))
    ]
    file = {"name": "hourly", "title": "Health", "shape": "monitor", "instructions": "Be short.", "sources": sources}
    return Drafter.model_validate({**file, "monitor": monitor or {}})


class Answers:
    """A fetch that answers as it is told, and remembers what it was asked for."""

    def __init__(self, *answers: int | str | FetchError | Fetched) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, float, frozenset[tuple[str, int]]]] = []

    def __call__(self, url: str, *, limits: FetchLimits, trusted: frozenset[tuple[str, int]], **_: Any) -> Fetched:
        self.asked.append((url, limits.seconds, trusted))
        match self.answers.pop(0):
            case Fetched() as answer:
                return answer
            case FetchError() as error:
                raise error
            case str(reason):
                raise FetchError(url, reason)
            case int(status):
                return Fetched(status, {}, b"", url)


class Hours:
    """Looks at one hour after the other, with the cursors that the hour before stored."""

    def __init__(self, assign: Any, drafter: Drafter, *answers: int | str | FetchError | Fetched) -> None:
        self.assign = assign
        self.drafter = drafter
        self.fetch = Answers(*answers)
        self.cursors: Mapping[str, Cursor] = {}
        self.slot = SLOT - HOUR

    def look(self, *, stored: bool = True, after: timedelta = HOUR) -> Material:
        """Collect; with ``stored=False`` the draft is not stored. The schedule is due at each hour."""
        self.slot += after
        window = Window(self.slot - HOUR, self.slot, ZoneInfo("UTC"))
        given = self.assign(self.drafter, slot=self.slot, window=window, cursors=self.cursors, fetch=self.fetch)
        material: Material = monitor.collect(given)
        if stored:
            self.cursors = json.loads(json.dumps({**self.cursors, **material.cursors}))
        return material

    def titles(self, looks: int) -> list[list[str]]:
        """Return what is told by each of so many looks."""
        return [[item.title for item in self.look().items] for _ in range(looks)]


def test_an_outage_is_told_once_and_so_is_its_end(assign: Any) -> None:
    hours = Hours(assign, a_drafter(), 200, 200, 503, "it took longer than 10 s", 200, 200)
    first = hours.look()
    assert first.nothing_new == "desk is up"
    assert first.items == ()
    assert hours.look().nothing_new == "desk is up"
    alert = hours.look()
    assert alert.nothing_new is None
    assert [(item.id, item.title, item.source, item.link) for item in alert.items] == [
        ("h1", "desk is down", "desk", "http://127.0.0.1:8700/health")
    ]
    assert "it answered 503, expected was 200" in alert.items[0].text
    assert "It had been up since the look at 2026-11-27T06:07:12Z." in alert.items[0].text
    assert hours.look().nothing_new == "desk is still down, as was told for the slot 2026-11-27T08:00:00Z"
    recovery = hours.look()
    assert recovery.items[0].title == "desk is up again"
    assert "It had been down since the look at 2026-11-27T08:07:12Z." in recovery.items[0].text
    assert hours.look().nothing_new == "desk is up"


def test_an_alert_and_a_notice_stand_first_in_the_queue_and_expire_soon(assign: Any) -> None:
    hours = Hours(assign, a_drafter(monitor={"alert_expire_hours": 5}), 503, 200)
    for material in (hours.look(), hours.look()):
        assert (material.urgent, material.expire_hours) == (True, 5)
    hours = Hours(assign, a_drafter(), 503)
    assert hours.look().expire_hours == 24


def test_it_takes_two_looks_in_a_row_unless_the_file_says_otherwise(assign: Any) -> None:
    two = Hours(assign, a_drafter(failures=2, successes=2), 200, 200, 503, 200, 503, 500, 200, 503, 200, 200)
    assert two.titles(4) == [[]] * 4
    assert (
        two.look().nothing_new == "desk is down by 1 of 2 looks in a row: it answered 503, expected was 200, after 0 ms"
    )
    alert = two.look()
    assert alert.items[0].text == (
        "desk is down: it answered 500, expected was 200, after 0 ms, when looked at, 2026-11-27T11:07:12Z. "
        "2 looks in a row said so, the first at 2026-11-27T10:07:12Z. "
        "It had been up since the look at 2026-11-27T06:07:12Z."
    )
    assert two.look().nothing_new == "desk is up by 1 of 2 looks in a row"
    assert two.look().nothing_new == "desk is still down, as was told for the slot 2026-11-27T11:00:00Z"
    assert two.titles(2) == [[], ["desk is up again"]]
    plain = Drafter.model_validate(
        {
            "name": "hourly",
            "title": "Health",
            "shape": "monitor",
            "instructions": "Be short.",
            "sources": [{"kind": "health", "id": "desk", "url": "desk:/health"}],
        }
    )
    assert Hours(assign, plain, 503, 503).titles(2) == [[], ["desk is down"]]


def test_an_item_says_when_it_was_looked_at_and_not_that_this_was_the_slot(assign: Any) -> None:
    hours = Hours(assign, a_drafter(), 200, 503, 200)
    hours.look()
    alert, recovery = hours.look().items[0].text, hours.look().items[0].text
    assert re.match(r"desk is down: it answered 503, .* when looked at, 2026-11-27T07:07:12Z\.", alert)
    assert re.match(r"desk is up again: it answered 200 in \d+ ms, when looked at, 2026-11-27T08:07:12Z\.", recovery)


def test_a_late_look_warns_that_it_does_not_tell_of_its_slot(assign: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Hours(assign, a_drafter(), 503).look().warnings == ()
    monkeypatch.setattr(monitor, "LATE", timedelta(minutes=7, seconds=12))
    assert Hours(assign, a_drafter(), 503).look().warnings == ()
    monkeypatch.setattr(monitor, "LATE", timedelta(minutes=7))
    assert Hours(assign, a_drafter(), 503).look().warnings == (
        "it was looked at 7 minutes after the slot: this tells of 2026-11-27T06:07:12Z, not of the slot",
    )


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
    assert set(material.cursors) == {"desk", "site1", "site2"}
    seen.clear()
    window = Window(SLOT, SLOT + HOUR, ZoneInfo("UTC"))
    given = assign(drafter, slot=SLOT + HOUR, window=window, fetch=answer, cursors=material.cursors)
    recovery = monitor.collect(given)
    assert [item.title for item in recovery.items] == ["site1 is up again"]


def test_a_notice_replaces_an_alert_once_all_that_it_told_is_over(assign: Any) -> None:
    drafter = a_drafter("desk:/health", "https://one.example/")
    states = iter([(503, 503), (200, 503), (200, 200), (503, 200)])
    now: dict[str, int] = {}

    def answer(url: str, **_: Any) -> Fetched:
        return Fetched(now[url], {}, b"", url)

    hours = Hours(assign, drafter)
    hours.fetch = answer  # type: ignore[assignment]  # it asks nothing of it
    supersedes = []
    for desk, site in states:
        now.update({"http://127.0.0.1:8700/health": desk, "https://one.example/": site})
        supersedes.append(hours.look().supersedes)
    alert, notice = SLOT, SLOT + HOUR
    assert supersedes[0] == ()
    assert supersedes[1] == (), "the alert still says something that is so"
    assert supersedes[2] == (alert,)
    assert supersedes[3] == (notice,), "that it is up again is no longer so"


def test_an_alert_that_was_not_stored_is_not_replaced(assign: Any) -> None:
    hours = Hours(assign, a_drafter(), 503, 503, 200)
    hours.look(stored=False)
    hours.look()
    assert hours.look().supersedes == (SLOT + HOUR,)


def test_what_is_still_so_a_day_later_is_told_again_in_place_of_the_alert(assign: Any) -> None:
    hours = Hours(assign, a_drafter(), *[503] * 26)
    assert hours.titles(24) == [["desk is down"], *[[]] * 23]
    reminder = hours.look()
    assert [item.title for item in reminder.items] == ["desk is still down"]
    assert "It had been down since the look at 2026-11-27T06:07:12Z, as was told" in reminder.items[0].text
    assert reminder.supersedes == (SLOT,)
    assert hours.look().nothing_new == "desk is still down, as was told for the slot 2026-11-28T06:00:00Z"
    never = Hours(assign, a_drafter(monitor={"remind_hours": 0}), *[503] * 30)
    assert never.titles(30) == [["desk is down"], *[[]] * 29]


def test_what_goes_down_again_and_again_is_told_as_flapping_until_it_is_stable(assign: Any) -> None:
    hours = Hours(assign, a_drafter(), *[503, 200] * 4, *[200] * 6)
    assert hours.titles(4) == [["desk is down"], ["desk is up again"]] * 2
    flapping = hours.look()
    assert [item.title for item in flapping.items] == ["desk is flapping: it is down once more"]
    assert "It has gone wrong 3 times since 2026-11-27T06:07:12Z." in flapping.items[0].text
    assert "Only reminders are sent until it has been the same for 6 hours." in flapping.items[0].text
    assert flapping.figures.splitlines()[2].startswith("| desk | down, flapping | 503 ")
    assert hours.look().nothing_new == "desk is flapping, as was told for the slot 2026-11-27T10:00:00Z"
    assert hours.titles(7) == [[]] * 7
    stable = hours.look()
    assert [item.title for item in stable.items] == ["desk has stopped flapping and is up"]
    assert stable.supersedes == (SLOT + 4 * HOUR,)


def test_without_a_network_nothing_is_known_and_nothing_is_over(assign: Any) -> None:
    drafter = a_drafter(failures=2)
    hours = Hours(assign, drafter, 200, 503, 503, NO_NETWORK, NO_NETWORK, NO_NETWORK, 200)
    assert hours.titles(3) == [[], [], ["desk is down"]]
    assert hours.look().nothing_new == (
        "desk is unknown: the connection failed (Network is unreachable), "
        "and cannot be looked at by 1 of 2 looks in a row"
    )
    blind = hours.look()
    assert [item.title for item in blind.items] == ["desk cannot be looked at"]
    assert "It could be looked at since the look at 2026-11-27T06:07:12Z." in blind.items[0].text
    assert blind.figures.splitlines()[2].startswith("| desk | unknown | none | none | ")
    assert blind.supersedes == ()
    assert "still cannot be looked at, as was told" in str(hours.look().nothing_new)
    both = hours.look()
    assert [item.title for item in both.items] == ["desk is up again", "desk can be looked at again"]
    assert both.supersedes == (SLOT + 2 * HOUR, SLOT + 4 * HOUR)


def test_a_look_that_was_missed_says_nothing_and_good_looks_count_anew_after_it(assign: Any) -> None:
    hours = Hours(assign, a_drafter(successes=2), 503, 200, 200, 200)
    hours.look()
    hours.look()
    after_a_gap = hours.look(after=2 * HOUR)
    assert after_a_gap.nothing_new == "desk is up by 1 of 2 looks in a row"
    assert hours.look().items[0].title == "desk is up again"


def test_what_is_told_after_a_missed_look_says_so(assign: Any) -> None:
    hours = Hours(assign, a_drafter(), 503, 200)
    hours.look()
    assert "A look was missed since the last one, 2026-11-27T06:07:12Z." in hours.look(after=3 * HOUR).items[0].text


def test_the_schedule_is_asked_only_where_a_missed_look_matters(assign: Any) -> None:
    def look(place: int, status: int, cursors: Mapping[str, Cursor]) -> Mapping[str, Cursor]:
        """Look without a schedule to be asked."""
        return monitor.collect(
            assign(a_drafter(), slot=SLOT + place * HOUR, fetch=Answers(status), cursors=cursors)
        ).cursors

    down = look(2, 503, look(1, 200, look(0, 200, {})))
    with pytest.raises(AssertionError, match="must not ask for its window"):
        look(3, 503, down)
    hours = Hours(assign, a_drafter(), 503, 200)
    hours.look()
    hours.look()
    look(5, 200, hours.cursors)


def test_the_schedule_is_asked_once_for_all_sources_and_a_look_at_the_slot_before_was_not_missed(assign: Any) -> None:
    drafter = a_drafter("desk:/health", "https://one.example/")
    hours = Hours(assign, drafter, 503, 503)
    hours.look()
    given = assign(drafter, slot=SLOT + HOUR, fetch=Answers(200, 200), cursors=hours.cursors)
    asked = []

    def window() -> Window:
        asked.append(given.slot)
        return Window(SLOT + timedelta(minutes=7, seconds=12), given.slot, ZoneInfo("UTC"))

    object.__setattr__(given, "window", window)
    assert not any("was missed" in item.text for item in monitor.collect(given).items)
    assert len(asked) == 1


def test_instants_are_kept_to_the_second(assign: Any) -> None:
    given = assign(a_drafter(), slot=SLOT, fetch=Answers(503))
    object.__setattr__(given, "looked_at", SLOT + timedelta(microseconds=900_001))
    assert ".9" not in json.dumps(monitor.collect(given).cursors)


@pytest.mark.parametrize(
    "error", [NeverSucceeds("schedule_missing", "it is gone"), SchedulesUnavailable("it does not answer")]
)
def test_a_schedule_that_cannot_be_had_keeps_nothing_from_being_told(assign: Any, error: Exception) -> None:
    hours = Hours(assign, a_drafter(), 503)
    hours.look()
    given = assign(a_drafter(), slot=SLOT + HOUR, fetch=Answers(200), cursors=hours.cursors)

    def fail() -> Window:
        raise error

    object.__setattr__(given, "window", fail)
    material = monitor.collect(given)
    assert material.items[0].title == "desk is up again"
    assert material.warnings == (f"whether a look was missed cannot be told, the schedule cannot be had: {error}",)


def test_slots_that_are_made_up_at_once_are_one_look(assign: Any) -> None:
    hours = Hours(assign, a_drafter(failures=2), 503, 503, 503, 503)
    hours.look()
    for seconds in (1, 28):
        again = hours.look(after=timedelta(seconds=seconds))
        assert again.nothing_new == (
            "desk was looked at only seconds ago, at 2026-11-27T06:07:12Z; this look does not count"
        )
    assert hours.look(after=timedelta(seconds=1)).items[0].title == "desk is down"


@pytest.fixture
def milliseconds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long each answer takes, to be set by a test; one that it does not set takes no time."""
    left: list[int] = []
    monkeypatch.setattr("sources.health._since", lambda began: left.pop(0) if left else 0)
    return left


def test_a_slow_answer_is_told_apart_from_none(assign: Any, milliseconds: list[int]) -> None:
    milliseconds += [500, 501, 400]
    hours = Hours(assign, a_drafter(slow_milliseconds=500), 200, 200, 200, 503, 200)
    assert hours.look().nothing_new == "desk is up"
    slow = hours.look()
    assert [item.title for item in slow.items] == ["desk is slow"]
    assert "it answered 200 in 501 ms, and more than 500 ms are slow" in slow.items[0].text
    assert slow.figures.splitlines()[2].startswith("| desk | up, slow | 200 | 501 | ")
    assert hours.titles(3) == [["desk is fast enough again"], ["desk is down"], ["desk is up again"]]


@pytest.mark.parametrize("answer", [503, NO_NETWORK], ids=["down", "unknown"])
def test_a_slow_one_is_not_told_twice_for_want_of_an_answer_in_between(
    assign: Any, milliseconds: list[int], answer: int | FetchError
) -> None:
    milliseconds += [900, 900, 900, 100] if answer == 503 else [900, 900, 100]
    hours = Hours(assign, a_drafter(slow_milliseconds=500), 200, answer, 200, 200)
    told = hours.titles(4)
    assert told[0] == ["desk is slow"]
    assert len(told[1]) == len(told[2]) == 1
    assert not any("slow" in title for titles in told[1:3] for title in titles)
    assert told[3] == ["desk is fast enough again"]


def test_what_is_watched_only_from_now_on_has_no_past(assign: Any, milliseconds: list[int]) -> None:
    milliseconds += [900, 900]
    hours = Hours(assign, a_drafter(), 200, 200)
    hours.look()
    hours.drafter = a_drafter(slow_milliseconds=500)
    assert "It had not been looked at before." in hours.look().items[0].text


def test_a_certificate_that_ends_soon_is_told_apart_from_no_answer(assign: Any) -> None:
    def until(days: float) -> Fetched:
        ends = SLOT + timedelta(minutes=7, seconds=12, days=days)
        return Fetched(200, {}, b"", "https://one.example/", certificate_ends=ends)

    drafter = a_drafter("https://one.example/", certificate_days=14)
    hours = Hours(assign, drafter, until(14), until(14), NO_NETWORK, "its certificate is not valid", until(99))
    assert hours.look().nothing_new == "desk is up"
    alert = hours.look()
    assert [item.title for item in alert.items] == ["desk has a certificate that ends soon"]
    assert "its certificate ends 2026-12-11T06:07:12Z, in 13 days" in alert.items[0].text
    assert alert.figures.splitlines()[2].endswith(" | 2026-12-11T06:07:12Z |")
    assert [item.title for item in hours.look().items] == ["desk cannot be looked at"]
    assert [item.title for item in hours.look().items] == ["desk is down", "desk can be looked at again"]
    assert [item.title for item in hours.look().items] == [
        "desk is up again",
        "desk has a new certificate",
    ]
    unasked = Hours(assign, a_drafter("https://one.example/"), until(1))
    assert unasked.look().nothing_new == "desk is up"


def test_only_the_desk_is_trusted_and_each_has_its_own_time_limit(assign: Any) -> None:
    drafter = a_drafter("desk:/health?x=1", timeout_seconds=7)
    hours = Hours(assign, drafter, 200)
    hours.look()
    assert hours.fetch.asked == [("http://127.0.0.1:8700/health?x=1", 7, frozenset({("127.0.0.1", 8700)}))]
    for url in ("https://desk.example/health", "https://8.8.8.8/health"):
        hours = Hours(assign, a_drafter(url), 200)
        hours.look()
        assert hours.fetch.asked == [(url, 10, frozenset())]


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


@pytest.mark.parametrize(
    ("cursor", "field"),
    [
        ({"state": "flapping"}, "state"),
        ({"looked_at": "2026-11-27T06:07:12", "alarms": {}}, "looked_at"),
        ({"looked_at": "2026-11-27T06:07:12Z", "alarms": {"smell": {}}}, "alarms.smell.[key]"),
        ({"looked_at": "2026-11-27T06:07:12Z", "alarms": {"answer": {"state": "up"}}}, "alarms.answer.state"),
        ({"alarms": {}}, "looked_at"),
        ({"looked_at": "9999-12-31T23:59:59-12:00", "alarms": {}}, "looked_at"),
        (
            {
                "looked_at": "2026-11-27T06:07:12Z",
                "alarms": {"answer": {"state": "bad", "since": "0001-01-01T00:00+12"}},
            },
            "alarms.answer.since",
        ),
    ],
)
def test_a_cursor_of_another_version_is_refused(assign: Any, cursor: Cursor, field: str) -> None:
    with pytest.raises(NeverSucceeds) as failure:
        monitor.collect(assign(a_drafter(), fetch=Answers(200), cursors={"desk": cursor}))
    assert failure.value.reason == "invalid_cursor"
    assert f"the stored cursor of the health of 'desk', field '{field}': " in failure.value.detail


@pytest.mark.parametrize(
    ("cursor", "status", "title", "supersedes"),
    [
        ({"state": "up", "since": "2026-11-27T03:00:00Z", "announced": False}, 503, "desk is down", ()),
        (
            {"state": "down", "since": "2026-11-27T03:00:00Z", "announced": True},
            200,
            "desk is up again",
            (SLOT - 3 * HOUR,),
        ),
        ({"state": "down", "since": "2026-11-27T03:00:00Z", "announced": True}, 503, None, ()),
        ({"state": "down", "since": "2026-11-27T03:00:00Z", "announced": False}, 200, None, ()),
        ({"state": "up", "since": "2026-11-27T03:00:00Z", "announced": False}, 200, None, ()),
    ],
)
def test_a_cursor_that_only_knows_up_or_down_is_gone_on_from(
    assign: Any, cursor: Cursor, status: int, title: str | None, supersedes: tuple[datetime, ...]
) -> None:
    material = monitor.collect(assign(a_drafter(), slot=SLOT, fetch=Answers(status), cursors={"desk": cursor}))
    assert [item.title for item in material.items] == ([title] if title else [])
    assert material.supersedes == supersedes
    if title is not None:
        assert "since the look at 2026-11-27T03:00:00Z" in material.items[0].text


def test_a_certificate_that_was_to_be_seen_and_is_not_there_is_said(assign: Any) -> None:
    hours = Hours(assign, a_drafter("desk:/health", certificate_days=14), 200, 503)
    assert hours.look().nothing_new == "desk is up, and has no certificate to be seen"
    assert [item.title for item in hours.look().items] == ["desk is down"]


@given(stories())
def test_how_an_alarm_stands_is_kept_whole_and_small(story: tuple[Policy, list[Heard]]) -> None:
    for one in story[1]:
        cursor = json.loads(json.dumps(monitor._cursor({Concern.ANSWER: one.after}, one.at)))
        watched = monitor._watched(cursor, a_drafter().sources[0])  # type: ignore[arg-type]  # it is a HealthSource
        assert watched.at == one.at
        assert watched.alarms == {Concern.ANSWER: one.after}
        assert len(json.dumps(cursor)) < 700


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
    alarms: Any = material.cursors["desk"]["alarms"]
    assert alarms["answer"]["state"] == ("good" if state == "up" else "bad")


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
