"""The digest: what is new in all sources together, and what is said when there is nothing or a source fails."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from drafter import Drafter
from drafter_file.digest import DigestSettings
from galley.drafts import Item
from galley.retry import NeverSucceeds, RetryLater
from shapes import digest
from shapes.shape import Cursor, Material
from sources.collected import Collected
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
        self.headers: dict[str, str] = {}
        self.asked: list[str] = []

    def __call__(self, url: str, **_: Any) -> Fetched:
        self.asked.append(url)
        page = self.pages[url]
        match page:
            case bytes():
                return Fetched(200, {"content-type": "application/rss+xml", **self.headers}, page, url)
            case int():
                return Fetched(page, {}, b"", url)
            case str():
                raise FetchError(url, page)


class Mornings:
    """Collects one morning after the other, with the cursors that the morning before stored."""

    def __init__(self, assign: Any, drafter: Drafter, web: Web, rejections: "Rejections | None" = None) -> None:
        self.assign, self.drafter, self.web = assign, drafter, web
        self.rejections: Any = rejections
        self.cursors: Mapping[str, Cursor] = {}
        self.slot = SLOT - timedelta(days=1)

    def collect(self, *, stored: bool = True) -> Material:
        """Collect; with ``stored=False`` the run dies before its draft is stored."""
        self.slot += timedelta(days=1)
        given = self.assign(
            self.drafter, slot=self.slot, cursors=self.cursors, fetch=self.web, rejected=self.rejections
        )
        material: Material = digest.collect(given)
        if stored:
            self.cursors = json.loads(json.dumps({**self.cursors, **material.cursors}))
        return material

    def reject(self, draft: Material) -> None:
        """Have the draft of this morning rejected."""
        self.rejections.drafts[self.slot] = draft.items


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
    web.pages = {ONE: 500, TWO: a_feed()}
    material = digest.collect(assign(a_drafter(ONE, TWO, mail=False), fetch=web))
    assert str(material.nothing_new).startswith(f"nothing new in feed1 ({ONE}), feed2 ({TWO}); feed1: ")
    assert "500" in str(material.nothing_new)


def test_an_empty_inbox_is_a_quiet_day(assign: Any) -> None:
    quiet = digest.collect(assign(a_drafter()))
    assert quiet == Material(nothing_new="nothing new in inbox (mail/)", cursors=quiet.cursors)


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
    assert mornings.collect().nothing_new == "nothing new in inbox (mail/)", "it is not named every day"
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
        assert mornings.collect().nothing_new == "nothing new in inbox (mail/)"
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


def test_a_link_that_another_source_had_in_an_earlier_draft_is_named_and_left_out(assign: Any, web: Web) -> None:
    web.pages = {ONE: a_feed(("Alpha", "https://news.example/a")), TWO: a_feed()}
    mornings = Mornings(assign, a_drafter(ONE, TWO, mail=False), web)
    mornings.collect()
    repeated = ("Alpha, days later", "https://news.example/a/?utm_campaign=x")
    web.pages[TWO] = a_feed(repeated, ("Beta", "https://news.example/b"))
    second = mornings.collect()
    assert [item.title for item in second.items] == ["Beta"]
    assert second.warnings == (
        "feed2: 1 left out, another source had the same link in an earlier draft: 'Alpha, days later'",
    )
    web.pages[ONE] = a_feed(("Alpha", "https://news.example/a"), ("Beta again", "https://news.example/b"))
    assert "'Beta again'" in str(mornings.collect().nothing_new)
    assert mornings.collect().nothing_new == f"nothing new in feed1 ({ONE}), feed2 ({TWO})"


def test_a_source_that_left_the_file_has_had_its_links_all_the_same(assign: Any, web: Web) -> None:
    web.pages = {ONE: a_feed(("Alpha", "https://news.example/a")), TWO: a_feed(("The same", "https://news.example/a"))}
    mornings = Mornings(assign, a_drafter(ONE, mail=False), web)
    mornings.collect()
    other = a_drafter(ONE, TWO, mail=False)
    mornings.drafter = other.model_copy(update={"sources": other.sources[1:]})
    assert mornings.collect().items == ()


def test_a_feed_that_has_not_changed_says_so_and_is_not_taken_for_an_empty_one(assign: Any, web: Web) -> None:
    web.pages = {ONE: a_feed(("Alpha", "https://one.example/a"))}
    web.headers = {"etag": '"1"'}
    mornings = Mornings(assign, a_drafter(ONE, mail=False), web)
    mornings.collect()
    web.pages[ONE] = 304
    unchanged = mornings.collect()
    assert unchanged.nothing_new == f"nothing new in feed1 ({ONE}; not changed, 304)"
    assert unchanged.cursors == {}
    web.pages[ONE] = a_feed(("Alpha", "https://one.example/a"), ("Beta", "https://one.example/b"))
    assert [item.title for item in mornings.collect().items] == ["Beta"]


def test_feeds_that_are_gone_make_quiet_days_that_say_so_and_are_asked_once(assign: Any, web: Web) -> None:
    web.pages = {ONE: 410, TWO: a_feed()}
    mornings = Mornings(assign, a_drafter(ONE, TWO, mail=False), web)
    first = str(mornings.collect().nothing_new)
    assert f"feed1 ({ONE}; gone for good, 410, and not asked again), feed2 ({TWO}); feed1: the feed {ONE}: " in first
    web.pages[TWO] = a_feed(("Beta", "https://two.example/b"))
    assert "it is gone for good (410)" in mornings.collect().warnings[0]
    web.pages[TWO] = a_feed(("Gamma", "https://two.example/c"))
    assert mornings.collect().warnings == ()
    web.pages[TWO] = 500
    with pytest.raises(RetryLater, match="no source can be read"):
        mornings.collect()
    web.pages[TWO] = 410
    assert "; gone for good, 410" in str(mornings.collect().nothing_new)
    assert web.asked.count(ONE) == 1


def test_a_first_draft_does_not_begin_with_the_whole_history(bucket: MemoryBucket, assign: Any, web: Web) -> None:
    deliver(bucket, **{f"m{number}": a_mail(f"Mail {number}") for number in range(7)})
    web.pages = {ONE: a_feed(*((f"One {number}", f"https://one.example/{number}") for number in range(9)))}
    mornings = Mornings(assign, a_drafter(ONE, first_run_items=4), web)
    first = mornings.collect()
    assert [item.id for item in first.items] == ["m1", "m2", "m3", "m4", "f1", "f2", "f3", "f4"]
    assert [warning.partition(" passed over")[0] for warning in first.warnings] == [
        "inbox: 3 older objects under mail/",
        f"feed1: the feed {ONE}: 5 older entries",
    ]
    assert mornings.collect().items == ()


def test_edits_and_quoted_text_follow_the_file(bucket: MemoryBucket, assign: Any, web: Web) -> None:
    reply = a_mail("Re: Rent") + b"\nOn Monday, Ann wrote:\n> Where is it?\n"
    deliver(bucket, a=reply)
    cut = digest.collect(assign(a_drafter())).items[0].text
    kept = digest.collect(assign(a_drafter(quoted_text="keep"))).items[0].text
    assert cut == "About Re: Rent.\n\n[quoted text cut, 2 lines]"
    assert kept == "About Re: Rent.\n\nOn Monday, Ann wrote:\n> Where is it?"
    web.pages = {ONE: a_feed(("Alpha", "https://one.example/a"))}
    mornings = Mornings(assign, a_drafter(ONE, mail=False, edits="take"), web)
    mornings.collect()
    web.pages[ONE] = a_feed(("Alpha, corrected", "https://one.example/a"))
    assert [item.title for item in mornings.collect().items] == ["Alpha, corrected"]


class Rejections:
    """Rejected drafts by slot; ``read`` are the slots whose items were asked for."""

    def __init__(self) -> None:
        self.drafts: dict[datetime, tuple[Item, ...] | None] = {}
        self.read: list[datetime] = []

    def slots(self) -> list[datetime]:
        return sorted(self.drafts)

    def items(self, slot: datetime) -> tuple[Item, ...] | None:
        self.read.append(slot)
        return self.drafts[slot]


def offering_again(**digest: Any) -> Drafter:
    """Return a digest's drafter that offers the items of rejected drafts again."""
    drafter = a_drafter()
    return drafter.model_validate(
        {**drafter.model_dump(), "digest": {"rejected_items": "offer_again", **digest}},
    )


def test_the_items_of_a_rejected_draft_are_dropped_and_not_even_asked_for(bucket: MemoryBucket, assign: Any) -> None:
    deliver(bucket, a=a_mail("Rent"))
    mornings = Mornings(assign, a_drafter(), Web())
    mornings.collect()
    assert mornings.collect().nothing_new


def test_the_items_of_a_rejected_draft_are_offered_once_more_where_the_file_says_so(
    bucket: MemoryBucket, assign: Any
) -> None:
    mornings = Mornings(assign, offering_again(), Web(), Rejections())
    deliver(bucket, a=a_mail("Rent"), b=a_mail("Lunch"))
    first = mornings.collect()
    assert (len(first.items), first.warnings) == (2, ())
    mornings.reject(first)

    deliver(bucket, c=a_mail("Heating"))
    lost = mornings.collect(stored=False)
    second = mornings.collect()
    assert second.items == lost.items, "a draft that was lost has offered nothing"
    assert [(item.id, item.title) for item in second.items] == [("m1", "Heating"), ("r1", "Rent"), ("r2", "Lunch")]
    assert second.warnings == ("2 items offered again, the draft of 2026-11-27T06:00:00Z was rejected",)
    mornings.reject(second)

    third = mornings.collect()
    assert [(item.id, item.title) for item in third.items] == [("r1", "Heating")], "the others had their second time"
    read = len(mornings.rejections.read)
    assert mornings.collect().nothing_new == "nothing new in inbox (mail/)"
    assert len(mornings.rejections.read) == read, "what is dealt with is not read again"


def test_what_was_rejected_before_the_file_said_so_is_not_offered(bucket: MemoryBucket, assign: Any) -> None:
    rejections = Rejections()
    rejections.drafts[SLOT - timedelta(days=3)] = (Item("m1", "Old", "Words", "mail/old.eml"),)
    mornings = Mornings(assign, offering_again(), Web(), rejections)
    assert mornings.collect().items == ()
    assert rejections.read == []
    rejections.drafts[SLOT - timedelta(days=4)] = (Item("m1", "Late", "Words", "mail/late.eml"),)
    assert [item.title for item in mornings.collect().items] == ["Late"], "an older slot, rejected later"


def test_a_large_rejected_draft_is_offered_in_parts_beside_what_is_new(bucket: MemoryBucket, assign: Any) -> None:
    mornings = Mornings(assign, offering_again(max_items=8), Web(), Rejections())
    mornings.collect()
    mornings.rejections.drafts[SLOT] = tuple(Item(f"m{n}", f"Old {n}", "Words", f"mail/{n}") for n in range(5))
    deliver(bucket, **{f"m{number}": a_mail(f"Mail {number}") for number in range(20)})
    drafts = [mornings.collect() for _ in range(4)]
    assert [len(draft.items) for draft in drafts] == [8, 8, 8, 1]
    again = [[item.title for item in draft.items if item.id.startswith("r")] for draft in drafts]
    assert again == [["Old 0", "Old 1"], ["Old 2", "Old 3"], ["Old 4"], []]
    assert drafts[0].warnings[0].endswith("was rejected; 3 more for the next draft")


def test_items_that_cannot_be_had_any_more_are_told_once(assign: Any) -> None:
    mornings = Mornings(assign, offering_again(), Web(), Rejections())
    mornings.collect()
    mornings.rejections.drafts[SLOT] = None
    assert "the items of the rejected draft of 2026-11-27T06:00:00Z cannot be" in str(mornings.collect().nothing_new)
    assert mornings.collect().nothing_new == "nothing new in inbox (mail/)"


def test_many_sources_remember_no_more_than_one_transaction_takes(assign: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def collect(*arguments: Any) -> Collected:
        given.append(arguments[4].memory)
        return Collected((), (), None)

    monkeypatch.setattr(digest.feed, "collect", collect)
    for number, share in [(1, 1.0), (5, 1.0), (49, 5 / 49)]:
        given.clear()
        digest.collect(assign(a_drafter(*(f"https://{n}.example/" for n in range(number)), mail=False)))
        assert given == [share] * number


def test_a_draft_has_a_limit_and_no_source_keeps_the_others_out(bucket: MemoryBucket, assign: Any, web: Web) -> None:
    deliver(bucket, **{f"m{number}": a_mail(f"Mail {number}") for number in range(9)})
    web.pages = {
        ONE: a_feed(*((f"One {number}", f"https://one.example/{number}") for number in range(3))),
        TWO: a_feed(*((f"Two {number}", f"https://two.example/{number}") for number in range(3))),
    }
    drafter = a_drafter(ONE, TWO).model_copy(update={"digest": DigestSettings(max_items=4)})
    mornings = Mornings(assign, drafter, web)
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
