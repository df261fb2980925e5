"""Mail in a bucket: every message in exactly one draft, oldest first, whatever is among them."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galley.bucket import ObjectUnreadable
from galley.retry import NeverSucceeds
from sources import mail
from sources.collected import Collected, SourceLimits
from sources.message import Message, read_message
from support.memory_bucket import MemoryBucket

SLOT = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
EARLIER = SLOT - timedelta(hours=2)
LATER = SLOT + timedelta(minutes=5)
PREFIX = "inbox/"


def _mail(subject: str, *, date: datetime | None = None, message_id: str = "", body: str = "Words") -> bytes:
    head = ["From: ada@example.org", f"Subject: {subject}"]
    if date is not None:
        head.append(f"Date: {format_datetime(date)}")
    if message_id:
        head.append(f"Message-ID: <{message_id}@example.org>")
    return "\n".join([*head, "", body]).encode()


def _collect(
    bucket: MemoryBucket,
    cursor: Mapping[str, object] | None = None,
    until: datetime = SLOT,
    limits: SourceLimits | None = None,
) -> Collected:
    return mail.collect(bucket, PREFIX, cursor, until, limits or SourceLimits())


def _titles(collected: Collected) -> list[str]:
    return [item.title for item in collected.items]


@pytest.fixture
def bucket() -> MemoryBucket:
    return MemoryBucket()


def test_a_message_becomes_an_item_that_names_its_object(bucket: MemoryBucket) -> None:
    bucket.add("inbox/a.eml", _mail("Hello", date=EARLIER, body="Two words"), EARLIER + timedelta(minutes=1))
    bucket.add("other/b.eml", _mail("Elsewhere"), EARLIER)

    collected = _collect(bucket)

    (item,) = collected.items
    assert (item.id, item.title, item.text, item.source) == ("m1", "Hello", "Two words", "inbox/a.eml")
    assert (item.author, item.link, item.published) == ("ada@example.org", None, EARLIER)
    assert collected.warnings == ()
    assert collected.left_out == 0


def test_items_are_in_the_order_of_arrival_then_of_keys(bucket: MemoryBucket) -> None:
    for key, title, arrived in [
        ("b", "third", EARLIER),
        ("z", "first", EARLIER - timedelta(hours=1)),
        ("a", "second", EARLIER),
    ]:
        bucket.add(f"inbox/{key}", _mail(title), arrived)
    assert _titles(_collect(bucket)) == ["first", "second", "third"]
    assert [item.id for item in _collect(bucket).items] == ["m1", "m2", "m3"]


def test_nothing_new_leaves_the_cursor_as_it_is(bucket: MemoryBucket) -> None:
    bucket.add("inbox/a", _mail("one"), EARLIER)
    first = _collect(bucket)
    again = _collect(bucket, first.cursor)
    assert (again.items, again.warnings, again.cursor, again.cursor_if_empty) == ((), (), None, None)


def test_three_hundred_messages_take_six_runs_of_fifty_oldest_first(bucket: MemoryBucket) -> None:
    for number in range(300):
        arrived = EARLIER - timedelta(days=5) + timedelta(minutes=15 * number)
        bucket.add(f"inbox/{(number * 7919) % 300:03}", _mail(f"{number}", message_id=str(number)), arrived)

    cursor: Mapping[str, object] | None = None
    titles: list[str] = []
    for run in range(6):
        collected = _collect(bucket, cursor, limits=SourceLimits(max_items=50))
        assert len(collected.items) == 50
        assert collected.left_out == 250 - 50 * run
        titles += _titles(collected)
        cursor = collected.cursor
    assert titles == [str(number) for number in range(300)]
    assert _collect(bucket, cursor, limits=SourceLimits(max_items=50)).items == ()


def test_what_is_beyond_the_limit_is_told_and_not_read(bucket: MemoryBucket) -> None:
    for number in range(5):
        bucket.add(f"inbox/{number}", _mail(f"{number}"), EARLIER)
    collected = _collect(bucket, limits=SourceLimits(max_items=2))
    assert collected.left_out == 3
    assert collected.warnings[0].startswith("3 more objects under inbox/ left for the next draft")
    assert bucket.reads == ["inbox/0", "inbox/1"]


class Ticking:
    """A clock that goes on by some seconds whenever it is looked at."""

    def __init__(self, seconds: float) -> None:
        self.now, self.seconds = 1_000.0, seconds

    def __call__(self) -> float:
        self.now += self.seconds
        return self.now


@pytest.mark.parametrize(("seconds", "at_once"), [(25, 3), (90, 1), (0.1, 6)])
def test_what_was_not_read_in_time_waits_is_named_and_is_not_consumed(
    bucket: MemoryBucket, seconds: float, at_once: int
) -> None:
    for number in range(5):
        bucket.add(f"inbox/{number}", _mail(f"{number}", message_id=str(number)), EARLIER)
    bucket.add("inbox/5", b"no mail", EARLIER)
    cursor: Mapping[str, object] | None = None
    titles: list[str] = []
    while len(titles) < 5:
        before = len(bucket.reads)
        collected = mail.collect(bucket, PREFIX, cursor, SLOT, SourceLimits(seconds=60), clock=Ticking(seconds))
        read = len(bucket.reads) - before
        assert read <= at_once
        titles += _titles(collected)
        cursor = collected.cursor
        assert collected.left_out == 6 - len(bucket.reads)
        if collected.left_out:
            (warning,) = collected.warnings
            assert "left for the next draft; reading stopped after 60 seconds: inbox/" in warning
            assert warning.endswith("inbox/5")
    assert titles == ["0", "1", "2", "3", "4"]


def test_objects_of_one_second_are_neither_lost_nor_repeated_when_one_appears_late(bucket: MemoryBucket) -> None:
    bucket.add("inbox/b", _mail("b"), EARLIER)
    bucket.add("inbox/d", _mail("d"), EARLIER)
    first = _collect(bucket)
    bucket.add("inbox/a", _mail("a"), EARLIER)
    bucket.add("inbox/c", _mail("c"), EARLIER)
    second = _collect(bucket, first.cursor)
    assert (_titles(first), _titles(second)) == (["b", "d"], ["a", "c"])


def test_an_object_that_becomes_visible_hours_late_is_taken(bucket: MemoryBucket) -> None:
    for hour in range(48):
        bucket.add(f"inbox/{hour:02}", _mail(f"{hour}"), SLOT - timedelta(hours=48 - hour))
    first = _collect(bucket)
    bucket.add("inbox/late", _mail("late"), SLOT - timedelta(hours=24))
    assert _titles(_collect(bucket, first.cursor)) == ["late"]


def test_the_memory_reaches_a_day_back_and_no_further(bucket: MemoryBucket) -> None:
    for hour in range(100):
        bucket.add(f"inbox/{hour:03}", _mail(f"{hour}"), SLOT - timedelta(hours=100 - hour))
    cursor: Any = _collect(bucket, limits=SourceLimits(max_items=200)).cursor
    assert len(cursor["seen"]) == 25
    assert cursor["after"] == {"modified": "2026-03-01T04:00:00Z", "key": "inbox/074"}


def test_a_message_dated_after_the_slot_waits_for_the_next_draft(bucket: MemoryBucket) -> None:
    bucket.add("inbox/a", _mail("in time", date=EARLIER), EARLIER)
    bucket.add("inbox/b", _mail("too late", date=LATER), LATER + timedelta(minutes=1))
    bucket.add("inbox/c", _mail("written in time", date=EARLIER), LATER + timedelta(minutes=2))

    first = _collect(bucket)
    assert _titles(first) == ["in time", "written in time"]
    assert first.warnings == ("1 message arrived after 2026-03-02T06:00:00Z, for the next draft: inbox/b",)
    assert first.left_out == 0

    second = _collect(bucket, first.cursor, until=SLOT + timedelta(days=1))
    assert _titles(second) == ["too late"]


@pytest.mark.parametrize(
    ("date", "arrived", "taken"),
    [
        (None, SLOT, True),
        (None, SLOT + timedelta(seconds=1), False),
        (SLOT, LATER, True),
        (SLOT + timedelta(seconds=1), LATER, False),
        (SLOT - timedelta(days=9_000), LATER, True),
        (LATER + timedelta(days=400), EARLIER, True),
    ],
    ids=["at the slot", "after it", "dated at it", "dated after it", "dated long ago", "dated after its arrival"],
)
def test_a_message_was_there_by_its_date_or_else_by_its_arrival(
    bucket: MemoryBucket, date: datetime | None, arrived: datetime, taken: bool
) -> None:
    bucket.add("inbox/a", _mail("it", date=date), arrived)
    assert bool(_collect(bucket).items) is taken


def test_many_late_messages_are_named_up_to_a_bound(bucket: MemoryBucket) -> None:
    for number in range(30):
        bucket.add(f"inbox/{number:02}", _mail("late"), LATER)
    (warning,) = _collect(bucket).warnings
    assert warning.startswith("30 messages arrived after")
    assert warning.endswith("inbox/19 and 10 more")


BAD = {
    "inbox/1-picture.png": (b"\x89PNG\r\n\x1a\n\0\0", "not read: it has none of a mail's headers"),
    "inbox/2-empty": (b"", "not read: it is empty"),
    "inbox/3-large": (_mail("large", body="x" * 3_000), "not read: it has 3,0"),
}


def test_what_is_no_message_is_named_once_and_hides_nothing(bucket: MemoryBucket) -> None:
    for key, (body, _) in BAD.items():
        bucket.add(key, body, EARLIER)
    bucket.add("inbox/4", _mail("good"), EARLIER)
    bucket.add("inbox/", b"", EARLIER)

    first = _collect(bucket, limits=SourceLimits(max_bytes=2_000))
    assert _titles(first) == ["good"]
    assert len(first.warnings) == len(BAD)
    for (key, (_, reason)), warning in zip(BAD.items(), first.warnings, strict=True):
        assert warning.startswith(f"{key}: {reason}")
    assert "inbox/3-large" not in bucket.reads
    second = _collect(bucket, first.cursor, limits=SourceLimits(max_bytes=2_000))
    assert (second.items, second.warnings) == ((), ())


def test_an_unreadable_object_is_set_aside_even_when_it_came_after_the_slot(bucket: MemoryBucket) -> None:
    bucket.add("inbox/a.png", b"\x89PNG", LATER)
    first = _collect(bucket)
    assert first.warnings == ("inbox/a.png: not read: it has none of a mail's headers",)
    assert _collect(bucket, first.cursor).warnings == ()


def test_a_thousand_pictures_are_named_some_at_a_time_and_do_not_block(bucket: MemoryBucket) -> None:
    for number in range(450):
        bucket.add(f"inbox/{number:03}.png", b"\x89PNG", EARLIER)
    bucket.add("inbox/mail", _mail("good"), EARLIER)
    cursor: Mapping[str, object] | None = None
    named: list[str] = []
    titles: list[str] = []
    for _ in range(3):
        collected = _collect(bucket, cursor)
        named += [warning.split(":")[0] for warning in collected.warnings if "not read" in warning]
        titles += _titles(collected)
        cursor = collected.cursor
    assert named == [f"inbox/{number:03}.png" for number in range(450)]
    assert titles == ["good"]


class Locked(MemoryBucket):
    """A bucket that does not hand out some of its objects."""

    locked: frozenset[str] = frozenset()

    def get(self, key: str, *, max_bytes: int) -> bytes:
        if key in self.locked:
            raise ObjectUnreadable(f"{key} is archived: restore it")
        return super().get(key, max_bytes=max_bytes)


def _mornings(bucket: MemoryBucket, days: int, *, drafts: bool = True) -> list[Collected]:
    """Collect day after day, each with the cursor of the one before, as it is with a draft or without one."""
    cursor: Mapping[str, object] | None = None
    told = []
    for day in range(days):
        collected = _collect(bucket, cursor, until=SLOT + timedelta(days=day))
        moved = collected.cursor if drafts else collected.cursor_if_empty
        cursor = json.loads(json.dumps(moved)) if moved is not None else cursor
        told.append(collected)
    return told


@pytest.mark.parametrize("drafts", [True, False])
def test_an_object_that_the_bucket_keeps_back_is_tried_three_times_and_holds_up_none(drafts: bool) -> None:
    bucket = Locked()
    bucket.locked = frozenset({"inbox/a"})
    bucket.add("inbox/a", _mail("kept back"), EARLIER - timedelta(days=9))
    bucket.add("inbox/b", _mail("there"), EARLIER)
    told = _mornings(bucket, 5, drafts=drafts)
    assert _titles(told[0]) == ["there"]
    assert [collected.warnings for collected in told] == [
        ("inbox/a: not read yet: inbox/a is archived: restore it; it is tried with 3 drafts in all",),
        (),
        ("inbox/a: not read: inbox/a is archived: restore it; set aside after 3 tries",),
        (),
        (),
    ]


def test_an_object_that_can_be_read_at_last_is_taken() -> None:
    bucket = Locked()
    bucket.locked = frozenset({"inbox/a"})
    bucket.add("inbox/a", _mail("kept back"), EARLIER)
    first = _collect(bucket)
    bucket.locked = frozenset()
    second = _collect(bucket, first.cursor)
    assert (_titles(second), second.warnings) == (["kept back"], ())
    assert _collect(bucket, second.cursor).items == ()


def test_an_error_that_nobody_foresaw_in_one_message_holds_up_none(
    bucket: MemoryBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(raw: bytes, *rest: Any) -> Message:
        if b"poison" in raw:
            raise RecursionError
        return read_message(raw, *rest)

    monkeypatch.setattr(mail, "read_message", read)
    bucket.add("inbox/a", _mail("poison"), EARLIER)
    bucket.add("inbox/b", _mail("good"), EARLIER)
    told = _mornings(bucket, 4)
    assert [_titles(collected) for collected in told] == [["good"], [], [], []]
    assert "reading it met an unexpected error (RecursionError)" in told[0].warnings[0]
    assert told[2].warnings[0].endswith("set aside after 3 tries")


def test_beyond_a_bound_objects_are_set_aside_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail, "MAX_TRIED", 2)
    bucket = Locked()
    keys = [f"inbox/{number}" for number in range(5)]
    bucket.locked = frozenset(keys)
    for key in keys:
        bucket.add(key, _mail("kept back"), EARLIER)
    first = _collect(bucket)
    assert sum("set aside after 1 try" in warning for warning in first.warnings) == 3
    assert first.cursor is not None
    assert len(first.cursor["tries"]) == 2  # type: ignore[arg-type]


def test_what_was_set_aside_on_quiet_days_is_told_once_each_day_and_once_more_by_the_next_draft(
    bucket: MemoryBucket,
) -> None:
    bucket.add("inbox/1.png", b"\x89PNG", EARLIER)
    first = _collect(bucket)
    bucket.add("inbox/2.png", b"\x89PNG", EARLIER)
    second = _collect(bucket, first.cursor_if_empty)
    third = _collect(bucket, second.cursor_if_empty)
    assert ([len(one.warnings) for one in (first, second, third)], third.cursor_if_empty) == ([1, 1, 0], None)
    assert bucket.reads == ["inbox/1.png", "inbox/2.png"], "it is not read again"
    assert third.untold == (*first.warnings, *second.warnings)
    assert _collect(bucket, third.cursor).untold == ()


def test_the_lines_that_wait_for_a_draft_are_bounded(bucket: MemoryBucket) -> None:
    cursor: Mapping[str, object] | None = None
    for day in range(3):
        for number in range(50):
            bucket.add(f"inbox/{day}-{number}-{'x' * 400}.png", b"\x89PNG", EARLIER)
        cursor = _collect(bucket, cursor).cursor_if_empty
    untold = _collect(bucket, cursor).untold
    assert len(untold) == mail.MAX_UNTOLD
    assert untold[-1] == "and more objects that were not read, which earlier runs named"
    assert max(map(len, untold)) <= mail.MAX_UNTOLD_CHARS


def test_the_first_draft_has_the_newest_messages_and_says_what_it_passed_over(bucket: MemoryBucket) -> None:
    for number in range(9):
        bucket.add(f"inbox/{number}", _mail(f"{number}"), SLOT - timedelta(days=10 - number))
    first = _collect(bucket, limits=SourceLimits(first_run=3))
    assert _titles(first) == ["6", "7", "8"]
    assert first.warnings == (
        "6 older objects under inbox/ passed over (2026-02-20T06:00:00Z to 2026-02-25T06:00:00Z): "
        "this is the first draft from there",
    )
    assert bucket.reads == ["inbox/6", "inbox/7", "inbox/8"]
    bucket.add("inbox/9", _mail("9"), SLOT)
    second = _collect(bucket, first.cursor, limits=SourceLimits(first_run=3))
    assert (_titles(second), second.warnings) == (["9"], ())


def test_what_was_passed_over_is_told_by_the_next_draft_where_the_first_run_made_none(bucket: MemoryBucket) -> None:
    for number in range(5):
        bucket.add(f"inbox/{number}", _mail(f"{number}", date=LATER), LATER)
    first = _collect(bucket, limits=SourceLimits(first_run=2))
    assert first.items == ()
    second = _collect(bucket, first.cursor_if_empty, until=LATER, limits=SourceLimits(first_run=2))
    assert _titles(second) == ["3", "4"]
    assert second.untold == first.warnings[:1]


def test_what_comes_to_a_mailbox_that_was_found_empty_is_no_history(bucket: MemoryBucket) -> None:
    cursor = _collect(bucket, limits=SourceLimits(first_run=2)).cursor_if_empty
    for number in range(5):
        bucket.add(f"inbox/{number}", _mail(f"{number}"), SLOT)
    assert len(_collect(bucket, cursor, limits=SourceLimits(first_run=2)).items) == 5


def test_another_prefix_begins_anew_but_drafts_no_message_twice(bucket: MemoryBucket) -> None:
    letter = _mail("Once", message_id="1")
    bucket.add("inbox/a", letter, EARLIER - timedelta(days=2))
    bucket.add("inbox/b", _mail("later"), EARLIER)
    cursor = _collect(bucket).cursor
    bucket.add("post/a", letter, EARLIER - timedelta(days=4))
    bucket.add("post/b", _mail("older than the other mailbox's"), EARLIER - timedelta(days=3))
    collected = mail.collect(bucket, "post/", cursor, SLOT, SourceLimits())
    assert _titles(collected) == ["older than the other mailbox's"]
    assert "the same message as an earlier one" in collected.warnings[0]


def test_a_cursor_from_before_prefixes_were_kept_goes_on(bucket: MemoryBucket) -> None:
    bucket.add("inbox/a", _mail("one"), EARLIER)
    cursor = dict(_collect(bucket).cursor or {})
    before = {name: cursor[name] for name in ("after", "seen", "messages")}
    again = _collect(bucket, before, limits=SourceLimits(first_run=1))
    assert (again.items, again.cursor) == ((), None)


def test_an_object_deleted_before_it_is_read_is_named(bucket: MemoryBucket) -> None:
    bucket.add("inbox/a", _mail("gone"), EARLIER)
    bucket.add("inbox/b", _mail("there"), EARLIER)
    bucket.vanishing = {"inbox/a"}
    collected = _collect(bucket)
    assert _titles(collected) == ["there"]
    assert collected.warnings == ("inbox/a: it was deleted before it could be read",)


def test_an_object_that_grew_since_the_listing_is_named(bucket: MemoryBucket) -> None:
    bucket.add("inbox/a", _mail("grew", body="x" * 100), EARLIER)
    listing = list(bucket.list(PREFIX))
    bucket.add("inbox/a", _mail("grew", body="x" * 9_000), EARLIER)
    bucket.list = lambda prefix: iter(listing)  # type: ignore[method-assign]
    (warning,) = _collect(bucket, limits=SourceLimits(max_bytes=1_000)).warnings
    assert "at most 1,000 are read" in warning


def test_a_second_copy_of_a_message_is_named_and_not_drafted(bucket: MemoryBucket) -> None:
    letter = _mail("Once", date=EARLIER, message_id="1")
    bucket.add("inbox/a", letter, EARLIER)
    bucket.add("inbox/b", b"Received: by another way\n" + letter, EARLIER)
    first = _collect(bucket)
    assert _titles(first) == ["Once"]
    assert first.warnings == ("inbox/b: not taken: the same message as an earlier one (Once)",)

    bucket.add("inbox/c", letter, SLOT + timedelta(days=3))
    second = _collect(bucket, first.cursor, until=SLOT + timedelta(days=4))
    assert second.items == ()
    assert second.warnings == ("inbox/c: not taken: the same message as an earlier one (Once)",)


def test_a_key_written_anew_is_another_message_and_the_same_content_is_not(bucket: MemoryBucket) -> None:
    bucket.add("inbox/note", _mail("first"), EARLIER)
    first = _collect(bucket)
    bucket.add("inbox/note", _mail("second"), EARLIER + timedelta(minutes=1))
    second = _collect(bucket, first.cursor)
    bucket.add("inbox/note", _mail("second"), EARLIER + timedelta(minutes=2))
    third = _collect(bucket, second.cursor)
    assert [_titles(first), _titles(second), _titles(third)] == [["first"], ["second"], []]


def test_what_had_to_be_guessed_is_a_warning_with_the_key(bucket: MemoryBucket) -> None:
    bucket.add("inbox/a", b"From: a\nContent-Type: text/plain; charset=x-odd\n\ncaf\xe9", EARLIER)
    assert _collect(bucket).warnings == ("inbox/a: its charset 'x-odd' is unknown; read as Latin-1",)


def test_a_key_cannot_forge_lines_in_a_warning(bucket: MemoryBucket) -> None:
    bucket.add("inbox/a\n- all is well\u202e", b"\x89PNG", EARLIER)
    (warning,) = _collect(bucket).warnings
    assert warning.startswith("inbox/a - all is well: not read")


def test_the_cursor_stays_far_below_the_tables_limit(bucket: MemoryBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail, "MAX_REMEMBERED_OBJECTS", 40)
    monkeypatch.setattr(mail, "MAX_REMEMBERED_MESSAGES", 30)
    for number in range(100):
        bucket.add(f"inbox/{number:03}", _mail(f"{number}", message_id=str(number)), EARLIER)
    first = _collect(bucket, limits=SourceLimits(max_items=100))
    cursor: Any = first.cursor
    assert len(first.items) == 100
    assert (len(cursor["seen"]), len(cursor["messages"])) == (40, 30)
    assert _collect(bucket, cursor).items == ()
    bucket.add("inbox/again", _mail("99", message_id="99"), SLOT)
    assert "the same message as an earlier one" in _collect(bucket, cursor).warnings[0]


def test_the_largest_cursor_is_far_below_the_four_hundred_kilobytes_of_a_row() -> None:
    entry = len('"0123456789abcdef", ')
    remembered = mail.MAX_OBJECTS_BEYOND_PLACE + mail.MAX_REMEMBERED_MESSAGES + 500
    tries = mail.MAX_TRIED * len('"0123456789abcdef": 2, ')
    untold = mail.MAX_UNTOLD * mail.MAX_UNTOLD_CHARS * len(json.dumps("\U0001f600"))
    assert remembered * entry + tries + untold < 320_000


def test_an_object_that_waits_is_never_passed_however_much_is_done_beyond_it(
    bucket: MemoryBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "MAX_REMEMBERED_OBJECTS", 3)
    monkeypatch.setattr(mail, "MAX_OBJECTS_BEYOND_PLACE", 10)
    bucket.add("inbox/000", _mail("waits"), LATER)
    for number in range(1, 31):
        bucket.add(f"inbox/{number:03}", _mail(f"{number}", date=EARLIER), LATER)
    first = _collect(bucket)
    assert (len(first.items), first.left_out) == (10, 20)
    second = _collect(bucket, first.cursor)
    assert (second.items, second.left_out) == ((), 20)
    third = _collect(bucket, first.cursor, until=LATER)
    assert third.items[0].title == "waits"
    rest = _collect(bucket, third.cursor, until=LATER)
    assert sorted(_titles(third) + _titles(rest) + _titles(first)) == sorted(["waits", *map(str, range(1, 31))])


@pytest.mark.parametrize(
    "cursor",
    [
        {"after": "yesterday"},
        {"seen": 1},
        {"version": 2},
        {"after": {"modified": "2026-03-02T06:00:00", "key": "a"}},
        {"after": {"modified": "9999-12-31T23:59:59-12:00", "key": "a"}},
    ],
)
def test_a_cursor_of_another_kind_is_refused_rather_than_begun_anew(
    bucket: MemoryBucket, cursor: Mapping[str, object]
) -> None:
    with pytest.raises(NeverSucceeds, match="the stored cursor of the mail under 'inbox/', field"):
        _collect(bucket, cursor)


def test_a_naive_slot_is_refused(bucket: MemoryBucket) -> None:
    with pytest.raises(ValueError, match="no timezone"):
        _collect(bucket, until=datetime(2026, 3, 2))


@settings(derandomize=True, max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20), st.booleans(), st.booleans()), min_size=1, max_size=40),
    st.integers(1, 5),
)
def test_every_message_is_drafted_exactly_once_however_late_it_appears(
    arrivals: list[tuple[int, int, bool, bool]], limit: int
) -> None:
    """Hourly runs; an object arrives in some hour and becomes visible up to 20 hours later."""
    bucket = MemoryBucket()
    cursor: Mapping[str, object] | None = None
    drafted: list[str] = []
    named: list[str] = []
    for hour in range(52 + len(arrivals)):
        until = SLOT + timedelta(hours=hour)
        for number, (arrived, delay, dated, good) in enumerate(arrivals):
            if arrived + delay == hour:
                instant = SLOT + timedelta(hours=arrived)
                body = _mail(f"{number}", date=instant if dated else None) if good else f"{number}".encode()
                bucket.add(f"inbox/{number % 7}-{number}", body, instant)
        collected = _collect(bucket, cursor, until=until, limits=SourceLimits(max_items=limit))
        drafted += [item.source for item in collected.items]
        named += [warning.split(":")[0] for warning in collected.warnings if "not read" in warning]
        cursor = cursor if collected.cursor is None else collected.cursor
    keys = [(f"inbox/{number % 7}-{number}", good) for number, (*_, good) in enumerate(arrivals)]
    assert sorted(drafted) == sorted(key for key, good in keys if good)
    assert sorted(named) == sorted(key for key, good in keys if not good)


def test_every_file_of_the_real_mails_is_an_item_or_named(bucket: MemoryBucket, material: Path) -> None:
    files = sorted((material / "mail").iterdir())
    for file in files:
        bucket.add(f"inbox/{file.name}", file.read_bytes(), LATER)
    first = _collect(bucket)
    sources = {item.source for item in first.items}
    told = "\n".join(first.warnings)
    assert len(files) >= 30
    assert [file.name for file in files if f"inbox/{file.name}" not in sources and file.name not in told] == []
    assert len(sources) >= 14

    second = _collect(bucket, first.cursor, until=LATER)
    assert not {item.source for item in second.items} & sources
    unread = sum("not read" in warning for warning in first.warnings)
    assert len(sources) + len(second.items) + unread == len(files)
    assert _collect(bucket, second.cursor, until=LATER).cursor is None
