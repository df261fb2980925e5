"""The digest: what is new in all sources together, and what is said when there is nothing or a source fails."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from drafter import Drafter
from galley.retry import NeverSucceeds, RetryLater
from shapes import digest
from shapes.digest import canonical
from shapes.shape import Cursor, Material
from sources.fetch import Fetched, FetchError
from support.memory_bucket import MemoryBucket

SLOT = datetime(2026, 11, 27, 6, tzinfo=UTC)
BEFORE = SLOT - timedelta(hours=8)
ONE, TWO = "https://one.example/feed", "https://two.example/feed"


def a_drafter(*urls: str, mail: bool = True, **source: Any) -> Drafter:
    """Return a digest's drafter: its inbox unless told otherwise, and a feed for each address."""
    sources: list[dict[str, Any]] = [{"kind": "mail", "id": "inbox", "prefix": "mail/", **source}] if mail else []
    sources += [{"kind": "feed", "id": f"feed{place}", "url": url, **source} for place, url in enumerate(urls, start=1)]
    return Drafter.model_validate(
        {"name": "daily", "title": "Digest", "shape": "digest", "instructions": "Be short.", "sources": sources}
    )


def a_mail(subject: str, date: datetime = BEFORE) -> bytes:
    """Return a mail with this subject."""
    head = (
        f"From: Ann <ann@example.com>\nSubject: {subject}\nDate: {format_datetime(date)}\nMessage-ID: <{subject}@x>\n"
    )
    return f"{head}\nAbout {subject}.\n".encode()


def deliver(bucket: MemoryBucket, **mails: bytes) -> None:
    """Put mails into the inbox by their names."""
    for name, body in mails.items():
        bucket.put(f"mail/{name}.eml", body, content_type="message/rfc822")


def a_feed(*entries: tuple[str, str], date: datetime = BEFORE) -> bytes:
    """Return an RSS feed of (title, link)."""
    items = "".join(
        f"<item><title>{title}</title><link>{link}</link><pubDate>{format_datetime(date)}</pubDate>"
        f"<description>On {title}.</description></item>"
        for title, link in entries
    )
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>F</title>{items}</channel></rss>'.encode()


class Web:
    """A fetch that gives each address its answer: a body, a status, or no answer at all with the reason."""

    def __init__(self, **answers: Any) -> None:
        self.pages: dict[str, bytes | int | str] = {}
        self.asked: list[str] = []

    def __call__(self, url: str, **_: Any) -> Fetched:
        self.asked.append(url)
        page = self.pages[url]
        match page:
            case bytes():
                return Fetched(200, {"content-type": "application/rss+xml"}, page, url)
            case int():
                return Fetched(page, {}, b"", url)
            case str():
                raise FetchError(url, page)


class Mornings:
    """Collects one morning after the other, with the cursors that the morning before stored."""

    def __init__(self, assign: Any, drafter: Drafter, web: Web) -> None:
        self.assign, self.drafter, self.web = assign, drafter, web
        self.cursors: Mapping[str, Cursor] = {}
        self.slot = SLOT - timedelta(days=1)

    def collect(self, *, stored: bool = True) -> Material:
        """Collect; with ``stored=False`` the run dies before its draft is stored."""
        self.slot += timedelta(days=1)
        given = self.assign(self.drafter, slot=self.slot, cursors=self.cursors, fetch=self.web)
        material: Material = digest.collect(given)
        if stored:
            self.cursors = json.loads(json.dumps({**self.cursors, **material.cursors}))
        return material


@pytest.fixture
def web() -> Web:
    """A web with nothing in it."""
    return Web()


def test_items_of_all_sources_have_ids_of_their_own(bucket: MemoryBucket, assign: Any, web: Web) -> None:
    deliver(bucket, a=a_mail("Rent"), b=a_mail("Lunch"))
    web.pages = {
        ONE: a_feed(("Alpha", "https://one.example/a"), ("Beta", "https://one.example/b")),
        TWO: a_feed(("Gamma", "https://two.example/c")),
    }
    material = digest.collect(assign(a_drafter(ONE, TWO), fetch=web))
    assert [(item.id, item.title) for item in material.items[:2]] == [("m1", "Rent"), ("m2", "Lunch")]
    assert [item.id for item in material.items[2:]] == ["f1", "f2", "f3"]
    assert {item.title for item in material.items[2:4]} == {"Alpha", "Beta"}
    assert material.items[4].link == "https://two.example/c"
    assert material.warnings == ()
    assert set(material.cursors) == {"inbox", "feed1", "feed2"}
    assert material.nothing_new is None


@pytest.mark.guarantee("G6")
def test_g6_what_a_draft_has_is_not_collected_again_and_what_none_has_is(
    bucket: MemoryBucket, assign: Any, web: Web
) -> None:
    mornings = Mornings(assign, a_drafter(ONE), web)
    deliver(bucket, a=a_mail("Rent"))
    web.pages = {ONE: a_feed(("Alpha", "https://one.example/a"))}
    lost = mornings.collect(stored=False)
    again = mornings.collect()
    assert again.items == lost.items
    deliver(bucket, b=a_mail("Lunch"))
    assert [item.title for item in mornings.collect().items] == ["Lunch"]
    assert mornings.collect().nothing_new == f"nothing new in inbox (mail/), feed1 ({ONE})"


def test_a_source_that_fails_is_named_and_the_others_are_digested(bucket: MemoryBucket, assign: Any, web: Web) -> None:
    deliver(bucket, a=a_mail("Rent"), odd=b"\x00\x01 no mail")
    web.pages = {ONE: 500, TWO: a_feed(("Gamma", "https://two.example/c"))}
    material = digest.collect(assign(a_drafter(ONE, TWO), fetch=web))
    assert [item.id for item in material.items] == ["m1", "f1"]
    assert [warning.split(":")[0] for warning in material.warnings] == ["inbox", "feed1"]
    assert "mail/odd.eml" in material.warnings[0]
    assert ONE in material.warnings[1]
    assert "500" in material.warnings[1]
    assert "feed1" not in material.cursors


@pytest.mark.parametrize("answer", [404, 500, "it took longer than 20 s", b"<html>down for maintenance</html>", b""])
def test_when_no_source_can_be_read_it_is_no_quiet_day(assign: Any, web: Web, answer: bytes | int | str) -> None:
    web.pages = {ONE: answer, TWO: answer}
    with pytest.raises(RetryLater) as failure:
        digest.collect(assign(a_drafter(ONE, TWO, mail=False), fetch=web))
    assert failure.value.reason == "sources_unavailable"
    assert ONE in failure.value.detail
    assert TWO in failure.value.detail


def test_one_source_that_answers_makes_it_a_quiet_day_with_the_others_named(assign: Any, web: Web) -> None:
    web.pages = {ONE: 500, TWO: 304}
    material = digest.collect(assign(a_drafter(ONE, TWO, mail=False), fetch=web))
    assert str(material.nothing_new).startswith(f"nothing new in feed1 ({ONE}), feed2 ({TWO}); feed1: ")
    assert "500" in str(material.nothing_new)


def test_an_empty_inbox_is_a_quiet_day(assign: Any) -> None:
    assert digest.collect(assign(a_drafter())) == Material(nothing_new="nothing new in inbox (mail/)")


def test_what_came_after_the_slot_is_named_and_waits(bucket: MemoryBucket, assign: Any, web: Web) -> None:
    deliver(bucket, late=a_mail("Late", SLOT + timedelta(minutes=1)))
    mornings = Mornings(assign, a_drafter(), web)
    reason = str(mornings.collect().nothing_new)
    assert reason.startswith("nothing new in inbox (mail/); inbox: ")
    assert "mail/late.eml" in reason
    assert [item.title for item in mornings.collect().items] == ["Late"]


def test_mails_that_cannot_be_read_are_named_by_the_next_draft_even_after_a_quiet_day(
    bucket: MemoryBucket, assign: Any, web: Web
) -> None:
    deliver(bucket, odd=b"\x00\x01 no mail")
    mornings = Mornings(assign, a_drafter(), web)
    quiet = mornings.collect()
    assert "mail/odd.eml" in str(quiet.nothing_new)
    assert quiet.cursors == {}
    deliver(bucket, a=a_mail("Rent"))
    draft = mornings.collect()
    assert [item.title for item in draft.items] == ["Rent"]
    assert "mail/odd.eml" in draft.warnings[0]
    assert "odd" not in str(mornings.collect().nothing_new)


def test_a_copy_of_a_message_is_named_once_and_not_on_every_quiet_day(
    bucket: MemoryBucket, assign: Any, web: Web
) -> None:
    mornings = Mornings(assign, a_drafter(), web)
    deliver(bucket, a=a_mail("Rent"))
    mornings.collect()
    deliver(bucket, b=a_mail("Rent"), odd=b"\x00\x01 no mail", c=a_mail("Rent"))
    quiet = str(mornings.collect().nothing_new)
    assert "mail/b.eml" in quiet
    assert "mail/c.eml" in quiet
    for _ in range(2):
        again = str(mornings.collect().nothing_new)
        assert "the same message" not in again
        assert "mail/odd.eml" in again
    deliver(bucket, d=a_mail("Heating"))
    draft = mornings.collect()
    assert [item.title for item in draft.items] == ["Heating"]
    assert [warning.partition(":")[2][:14] for warning in draft.warnings] == [" mail/odd.eml:"]
    assert mornings.collect().nothing_new == "nothing new in inbox (mail/)"


def test_a_link_that_two_sources_have_is_taken_once(assign: Any, web: Web) -> None:
    web.pages = {
        ONE: a_feed(("Alpha", "https://news.example/a?utm_source=one")),
        TWO: a_feed(("The same", "http://www.news.example/a/#top"), ("Other", "https://news.example/b")),
    }
    mornings = Mornings(assign, a_drafter(ONE, TWO, mail=False), web)
    material = mornings.collect()
    assert [(item.id, item.title) for item in material.items] == [("f1", "Alpha"), ("f2", "Other")]
    assert material.warnings == ("feed2: 1 left out, another source has the same link: 'The same'",)
    assert mornings.collect().nothing_new


def test_a_link_that_one_source_has_twice_is_its_own_affair(assign: Any, web: Web) -> None:
    web.pages = {ONE: a_feed(("Today", "https://one.example/log#1"), ("Yesterday", "https://one.example/log#2"))}
    material = digest.collect(assign(a_drafter(ONE, mail=False), fetch=web))
    assert len(material.items) == 2


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.example/x", "http://A.example:80/x/", True),
        ("https://a.example/x?id=1&utm_medium=mail&fbclid=z", "https://www.a.example/x?id=1", True),
        ("https://a.example/x?q=a%20b", "https://a.example/x?q=a+b", True),
        ("https://a.example/x#part", "https://a.example/x", True),
        ("https://a.example/x?id=1", "https://a.example/x?id=2", False),
        ("https://a.example/x?id=", "https://a.example/x", False),
        ("https://a.example/x", "https://a.example/X", False),
        ("https://a.example:8443/x", "https://a.example/x", False),
        ("https://a.example/x", "https://b.example/x", False),
        ("https://a.example:99999/", "https://a.example/", False),
    ],
)
def test_links_are_compared_by_where_they_lead(one: str, other: str, same: bool) -> None:
    assert (canonical(one) == canonical(other)) is same


def test_a_draft_has_a_limit_and_no_source_keeps_the_others_out(
    bucket: MemoryBucket, assign: Any, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "MOST_ITEMS", 4)
    deliver(bucket, **{f"m{number}": a_mail(f"Mail {number}") for number in range(9)})
    web.pages = {
        ONE: a_feed(*((f"One {number}", f"https://one.example/{number}") for number in range(3))),
        TWO: a_feed(*((f"Two {number}", f"https://two.example/{number}") for number in range(3))),
    }
    mornings = Mornings(assign, a_drafter(ONE, TWO), web)
    drafts = [mornings.collect() for _ in range(8)]
    assert [item.id for item in drafts[0].items] == ["m1", "m2", "f1", "f2"]
    assert any(warning.startswith("inbox: ") for warning in drafts[0].warnings)
    titles = [item.title for draft in drafts for item in draft.items]
    assert len(titles) == len(set(titles)) == 15
    assert drafts[-1].nothing_new


def test_a_sources_own_limit_holds(bucket: MemoryBucket, assign: Any, web: Web) -> None:
    deliver(bucket, **{f"m{number}": a_mail(f"Mail {number}") for number in range(5)})
    mornings = Mornings(assign, a_drafter(max_items=2), web)
    assert [len(mornings.collect().items) for _ in range(4)] == [2, 2, 1, 0]


def test_a_cursor_of_another_version_is_refused(assign: Any) -> None:
    with pytest.raises(NeverSucceeds) as failure:
        digest.collect(assign(a_drafter(), cursors={"inbox": {"page": 3}}))
    assert failure.value.reason == "invalid_cursor"


def test_every_real_message_is_an_item_or_named(bucket: MemoryBucket, assign: Any, shared_data: Path) -> None:
    paths = sorted((shared_data / "mail").iterdir())
    for path in paths:
        bucket.put(f"mail/{path.name}", path.read_bytes(), content_type="message/rfc822")
    material = digest.collect(assign(a_drafter(max_items=500), slot=bucket.now))
    digested = {item.source for item in material.items}
    named = " ".join(material.warnings)
    assert len(digested) > 20
    assert [path.name for path in paths if f"mail/{path.name}" not in digested and path.name not in named] == []
