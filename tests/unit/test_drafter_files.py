"""A drafter's file: the four that come with Galley are right, and one that is wrong says where, in one line."""

from decimal import Decimal
from pathlib import Path

import pytest

from drafter import DRAFTERS, SOURCES_OF_SHAPE, Drafter, InvalidDrafter, drafter_names, load_drafter, read_drafter
from drafter_file.digest import DigestSettings
from galley.drafts import Channel
from galley.rules import Review

DIGEST = """\
title = "Digest"
shape = "digest"
instructions = "Be short."

[[sources]]
kind = "mail"
id = "inbox"
prefix = "mail/"
"""

FEED = """
[[sources]]
kind = "feed"
id = "news"
url = "https://news.example/feed"
"""

REPORT = """\
title = "Report"
shape = "report"
instructions = "Be short."

[[sources]]
kind = "table"
id = "sales"
key = "metrics/sales.csv"
date_column = "date"
metrics = [{ name = "Orders", column = "orders", aggregate = "sum" }]
"""

SYNC = """\
title = "Sync"
shape = "sync"
instructions = "Be short."

[[sources]]
kind = "documents"
id = "handbook"
prefix = "documents/"
"""

MONITOR = """\
title = "Monitor"
shape = "monitor"
instructions = "Be short."

[[sources]]
kind = "health"
id = "desk"
url = "desk:/health"
"""


def write(folder: Path, text: str, name: str = "sample") -> Path:
    """Write a drafter's file."""
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_four_that_come_with_galley() -> None:
    drafters = {name: load_drafter(name) for name in drafter_names()}
    assert {name: drafter.shape for name, drafter in drafters.items()} == {
        "daily-digest": "digest",
        "hourly-monitor": "monitor",
        "nightly-sync": "sync",
        "weekly-report": "report",
    }
    assert {drafter.shape for drafter in drafters.values()} == set(SOURCES_OF_SHAPE)
    assert {drafter.timezone for drafter in drafters.values()} == {
        "Europe/London",
        "America/New_York",
        "Australia/Sydney",
        "UTC",
    }
    for drafter in drafters.values():
        assert drafter.daily_budget_nanousd
        assert drafter.destinations == (Channel("s3", "published/"),)


def test_what_is_not_said_has_its_default(tmp_path: Path) -> None:
    drafter = read_drafter(write(tmp_path, DIGEST))
    assert drafter.name == "sample"
    assert drafter.pending_limit == 3
    assert drafter.daily_budget_usd is None
    assert drafter.daily_budget_nanousd is None
    assert (drafter.timezone, drafter.period_hours) == ("UTC", 24)
    assert drafter.destinations == (Channel("s3", "published/"),)


@pytest.mark.parametrize("text", [DIGEST + FEED, REPORT, SYNC, MONITOR])
def test_every_shape_and_source_can_be_written(tmp_path: Path, text: str) -> None:
    assert isinstance(read_drafter(write(tmp_path, text)), Drafter)


def test_what_a_digest_may_say_of_itself(tmp_path: Path) -> None:
    drafter = read_drafter(write(tmp_path, f"{DIGEST}[digest]\nmax_items = 30\nrejected_items = 'offer_again'\n"))
    assert drafter.digest == DigestSettings(max_items=30, rejected_items="offer_again")
    assert read_drafter(write(tmp_path, DIGEST)).digest is None


def test_what_becomes_of_drafts_can_be_set(tmp_path: Path) -> None:
    plain = read_drafter(write(tmp_path, DIGEST))
    assert (plain.expire_hours, plain.supersede, plain.review) == (None, False, Review.REQUIRED)
    digest = read_drafter(write(tmp_path, f"expire_hours = 36\nsupersede = true\npending_limit = 2\n{DIGEST}"))
    assert (digest.expire_hours, digest.supersede) == (36, True)
    assert read_drafter(write(tmp_path, f'review = "none"\n{MONITOR}')).review is Review.NONE


def test_a_budget_is_exact(tmp_path: Path) -> None:
    drafter = read_drafter(write(tmp_path, f"daily_budget_usd = 0.1\n{DIGEST}"))
    assert drafter.daily_budget_usd == Decimal("0.1")
    assert drafter.daily_budget_nanousd == 100_000_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            SYNC.replace("prefix", "url").replace("documents/", "https://a.example/") + 'prefix = "documents/"\n',
            "sources[1] 'handbook': needs either a prefix of the bucket or the url of a list of addresses",
            id="documents in two places",
        ),
        pytest.param(
            SYNC.replace('prefix = "documents/"\n', ""),
            "sources[1] 'handbook': needs either a prefix of the bucket or the url of a list of addresses",
            id="documents nowhere",
        ),
        pytest.param(
            SYNC + "max_delete_share = 10\n",
            "sources[1] 'handbook': max_delete_share is 10: give at most 1.0",
            id="a share in percent",
        ),
        pytest.param(
            SYNC + "max_deletes = -1\n",
            "sources[1] 'handbook': max_deletes is -1: give at least 0",
            id="fewer deletes than none",
        ),
        pytest.param(
            DIGEST + 'colour = "green"\n',
            "sources[1] 'inbox': colour is not known; remove it or use one of kind, id, prefix, max_items",
            id="unknown key of a source",
        ),
        pytest.param(
            f"supersede = true\npending_limit = 1\n{DIGEST}",
            "supersede is True: needs a pending_limit of at least 2: "
            "a new draft takes its own place before it replaces the older one",
            id="no room to supersede",
        ),
        pytest.param(
            f'review = "none"\n{DIGEST}',
            "review is 'none': only a monitor's drafts may be sent unread, and this is a digest; use required",
            id="a digest that nobody reviews",
        ),
        pytest.param(f'review = "never"\n{MONITOR}', "review is 'never': use required or none", id="an unknown review"),
        pytest.param(f"expire_hours = 0\n{DIGEST}", "expire_hours is 0: ", id="no time to decide"),
        pytest.param(
            f"pending_limits = 3\n{DIGEST}",
            "pending_limits is not known; did you mean pending_limit?",
            id="unknown key",
        ),
        pytest.param(
            DIGEST + "daily_budget_usd = 1\n",
            "sources[1] 'inbox': daily_budget_usd is not known here, but for the whole file; put it above the first [",
            id="a key of the whole file below a table",
        ),
        pytest.param(
            DIGEST.replace('shape = "digest"\n', ""),
            "shape is missing; add it: digest, report, sync or monitor",
            id="no shape",
        ),
        pytest.param(DIGEST.replace('title = "Digest"\n', ""), "title is missing; add it", id="missing field"),
        pytest.param(
            DIGEST.replace('prefix = "mail/"\n', ""),
            "sources[1] 'inbox': prefix is missing; add it",
            id="missing field of a source",
        ),
        pytest.param(DIGEST.partition("[[")[0], "sources is missing; add it", id="no sources"),
        pytest.param(
            f"sources = []\n{DIGEST.partition('[[')[0]}", "sources is []: give at least 1", id="empty sources"
        ),
        pytest.param(
            f'pending_limit = "3"\n{DIGEST}', "pending_limit is '3': give a whole number", id="text for a number"
        ),
        pytest.param(
            f"pending_limit = 2.5\n{DIGEST}", "pending_limit is 2.5: give a whole number", id="part of a draft"
        ),
        pytest.param(
            f"pending_limit = true\n{DIGEST}", "pending_limit is True: give a whole number", id="yes for a number"
        ),
        pytest.param(f"pending_limit = 0\n{DIGEST}", "pending_limit is 0: give at least 1", id="no draft at all"),
        pytest.param(
            f"daily_budget_usd = -1\n{DIGEST}", "daily_budget_usd is -1: give more than 0", id="negative budget"
        ),
        pytest.param(
            f"daily_budget_usd = inf\n{DIGEST}",
            "daily_budget_usd is inf: give a finite number",
            id="infinite budget",
        ),
        pytest.param(
            f"max_input_tokens = 200_000\n{DIGEST}", "max_input_tokens is 200000: give at most 100000", id="dear input"
        ),
        pytest.param(
            f'timezone = "Europe/Londn"\n{DIGEST}',
            "timezone is 'Europe/Londn': does not exist; use an IANA name like Europe/London",
            id="unknown zone",
        ),
        pytest.param(
            f'timezone = "../etc/passwd"\n{DIGEST}', "timezone is '../etc/passwd': does not exist", id="no zone"
        ),
        pytest.param(f"period_hours = 0\n{DIGEST}", "period_hours is 0: give at least 1", id="no period"),
        pytest.param(
            DIGEST.replace('"digest"', '"summary"'),
            "shape is 'summary': use digest, report, sync or monitor",
            id="unknown shape",
        ),
        pytest.param(
            DIGEST.replace('"mail"', '"imap"'),
            "sources[1] 'inbox': kind is 'imap': use mail, feed, table, documents or health",
            id="unknown kind of source",
        ),
        pytest.param(
            DIGEST.replace('shape = "digest"', 'shape = "report"'),
            "source 'inbox' is of kind 'mail', but a report reads only table",
            id="a source of the wrong kind",
        ),
        pytest.param(
            DIGEST.replace('"mail"', '"table"'),
            "source 'inbox' is of kind 'table', but a digest reads only feed, mail",
            id="a source of the wrong kind, without what that kind needs",
        ),
        pytest.param(
            DIGEST + FEED.replace('"news"', '"inbox"'),
            "source ids ['inbox', 'inbox'] repeat; give each",
            id="ids repeat",
        ),
        pytest.param(
            DIGEST.replace('"inbox"', '"In Box"'),
            "sources[1] 'In Box': id is 'In Box': use a-z, 0-9 and -, beginning with a letter",
            id="id of another form",
        ),
        pytest.param(
            DIGEST + 'quoted_text = "hide"\n',
            "sources[1] 'inbox': quoted_text is 'hide': use cut or keep",
            id="unknown word for quoted text",
        ),
        pytest.param(
            DIGEST + FEED + 'edits = "redraft"\n',
            "sources[2] 'news': edits is 'redraft': use ignore or take",
            id="unknown word for edits",
        ),
        pytest.param(
            DIGEST + "first_run_items = 0\n",
            "sources[1] 'inbox': first_run_items is 0: give at least 1",
            id="no first draft",
        ),
        pytest.param(
            DIGEST + '[digest]\nrejected_items = "keep"\n',
            "digest.rejected_items is 'keep': use drop or offer_again",
            id="unknown word for rejected items",
        ),
        pytest.param(
            DIGEST + FEED + "[digest]\nmax_items = 2\n",
            "[digest] max_items = 2 is too few for 2 sources; give at least 3, one for each and one to spare",
            id="fewer items than sources",
        ),
        pytest.param(
            REPORT + "[digest]\nmax_items = 9\n", "[digest] is not for a report; remove it", id="another shape's table"
        ),
        pytest.param(
            DIGEST.replace('"mail/"', '"/mail/"'),
            "sources[1] 'inbox': prefix is '/mail/': must be the beginning of a key, without a leading /",
            id="a path for a prefix",
        ),
        pytest.param(
            DIGEST.replace('"mail/"', '"a/../b/"'),
            "sources[1] 'inbox': prefix is 'a/../b/': must be",
            id="a way out",
        ),
        pytest.param(
            DIGEST + FEED.replace("https:", "file:"),
            "sources[2] 'news': url is 'file://news.example/feed': must be an http or https address",
            id="a file for a feed",
        ),
        pytest.param(
            DIGEST + FEED.replace("https://", "https://me:secret@"),
            "must be an http or https address without a user name",
            id="a password in an address",
        ),
        pytest.param(
            DIGEST + FEED.replace("https://news.example/feed", "desk:/health"),
            "sources[2] 'news': url is 'desk:/health': must be an http or https address",
            id="the desk is no feed",
        ),
        pytest.param(
            REPORT.replace('"sum"', '"median"'),
            "metrics[1] 'Orders': aggregate is 'median': use sum, mean, count, min, max, last or ratio",
            id="unknown aggregate",
        ),
        pytest.param(
            REPORT.replace(" }]", ' }, { name = "Orders", column = "visits", aggregate = "sum" }]'),
            "names ['Orders', 'Orders'] repeat; give each metric its own name",
            id="metrics' names repeat",
        ),
        pytest.param(
            SYNC.replace('"documents/"', '"index/"'),
            "sources[1] 'handbook': prefix is 'index/': takes in index/",
            id="the index itself",
        ),
        pytest.param(SYNC.replace('"documents/"', '"i"'), "is 'i': takes in index/", id="the index among others"),
        pytest.param(
            MONITOR.replace("desk:/health", "desk:health"),
            "or desk:/health for the review desk",
            id="no path at the desk",
        ),
        pytest.param(
            MONITOR + "expect_status = 42\n",
            "sources[1] 'desk': expect_status is 42: give at least 100",
            id="no status",
        ),
        pytest.param(
            MONITOR + 'body_matches = "ok("\n',
            "sources[1] 'desk': body_matches is 'ok(': is no regular expression of Rust's regex crate (unclosed group)",
            id="a pattern that is none",
        ),
        pytest.param(
            MONITOR + 'body_matches = "a(?=b)"\n',
            "(look-around, including look-ahead and look-behind, is not supported)",
            id="a pattern that could take for ever",
        ),
        pytest.param(
            MONITOR.replace("desk:/health", "http://shop.example/") + "certificate_days = 14\n",
            "sources[1] 'desk': certificate_days = 14, but http://shop.example/ is without a certificate; use https",
            id="no certificate",
        ),
        pytest.param(
            MONITOR + "slow_milliseconds = 5000\ntimeout_seconds = 5\n",
            "sources[1] 'desk': slow_milliseconds = 5000 is never reached, "
            "since it is down after timeout_seconds = 5; give less",
            id="slower than down",
        ),
        pytest.param(
            MONITOR + "failures = 0\n", "sources[1] 'desk': failures is 0: give at least 1", id="down before a look"
        ),
        pytest.param(
            MONITOR + "[monitor]\nflapping = 1\n", "monitor.flapping is 1: give at least 2", id="each outage flaps"
        ),
        pytest.param(
            MONITOR + "[monitor]\nremind_hours = -1\n",
            "monitor.remind_hours is -1: give at least 0",
            id="a reminder from before",
        ),
        pytest.param(
            DIGEST + "[monitor]\nremind_hours = 1\n", "[monitor] is not for a digest; remove it", id="no monitor"
        ),
        pytest.param(
            MONITOR + "timeout_seconds = 61\n",
            "sources[1] 'desk': timeout_seconds is 61: give at most 60",
            id="too long",
        ),
        pytest.param(
            DIGEST + '\n[[channels]]\nkind = "s3"\nprefix = "mail/"\n',
            "channels[1]: prefix is 'mail/': must begin with published/",
            id="publishing into the sources",
        ),
        pytest.param(f'name = "other"\n{DIGEST}', "name is not known; a drafter is named by its file", id="a name"),
        pytest.param("title = Digest\n", "is not a TOML file in UTF-8", id="no TOML"),
    ],
)
def test_a_wrong_file_says_which_field_and_value_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InvalidDrafter) as failure:
        read_drafter(path)
    message = str(failure.value)
    assert message.startswith(f"{path}: ")
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"title = {'[' * 5_000}", id="lists without end"),
        pytest.param(f"title = {'[' * 400}{']' * 400}", id="lists within lists"),
        pytest.param(f"title = {'{a=' * 5_000}", id="tables without end"),
        pytest.param(f"[{'.'.join('a' * 5_000)}]\nb = 1", id="a table's name without end"),
        pytest.param(f"pending_limit = {'9' * 5_000}\n{DIGEST}", id="a number without end"),
        pytest.param(f"pending_limit = 0x{'f' * 5_000}\n{DIGEST}", id="a hexadecimal number without end"),
        pytest.param(f"daily_budget_usd = 1e{'9' * 5_000}\n{DIGEST}", id="an exponent without end"),
        pytest.param(f"daily_budget_usd = 0x{'f' * 5_000}\n{DIGEST}", id="a budget without end"),
        pytest.param('title = "a\x00b"\n', id="a NUL"),
        pytest.param(f'"a\\nb" = 1\n{DIGEST}', id="a name of two lines"),
        pytest.param(f"title = 0001-01-01T00:00:00+23:59\n{DIGEST}".replace('title = "Digest"', ""), id="a date"),
        pytest.param("".join(f"x{number} = 1\n" for number in range(500)) + DIGEST, id="five hundred names"),
    ],
)
def test_a_file_that_means_harm_is_one_line_too(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InvalidDrafter) as failure:
        read_drafter(path)
    message = str(failure.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < len(str(path)) + 2_000
    with pytest.raises(InvalidDrafter):
        load_drafter("sample", tmp_path)


@pytest.mark.parametrize("path", ["a\0b.toml", "x" * 300 + ".toml", "."])
def test_a_path_that_is_no_file_is_one_line_too(tmp_path: Path, path: str) -> None:
    with pytest.raises(InvalidDrafter):
        read_drafter(tmp_path / path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            DIGEST + "max_item = 3\n",
            "sources[1] 'inbox': max_item is not known; did you mean max_items?",
        ),
        (DIGEST.replace('prefix = "mail/"', ""), "sources[1] 'inbox': prefix is missing; add it"),
        (DIGEST.replace('id = "inbox"', ""), "sources[1]: id is missing; add it"),
        (
            DIGEST.replace('kind = "mail"', ""),
            "sources[1] 'inbox': kind is missing; add it: mail, feed, table, documents or health",
        ),
        (
            DIGEST.replace('"mail"', '"mial"'),
            "sources[1] 'inbox': kind is 'mial': use mail, feed, table, documents or health",
        ),
        (
            DIGEST.replace('kind = "mail"', "kind = 7"),
            "sources[1] 'inbox': kind is 7: use mail, feed, table, documents or health",
        ),
        (
            DIGEST + FEED.replace('"feed"', '"rss"'),
            "sources[2] 'news': kind is 'rss': use mail, feed, table, documents or health",
        ),
        (
            DIGEST + 'mail = "x"\n',
            "sources[1] 'inbox': mail is not known; remove it or use one of kind, id, prefix, "
            "max_items, first_run_items, quoted_text",
        ),
        (f"pending_limit = 'three'\n{DIGEST}", "pending_limit is 'three': give a whole number"),
        (DIGEST.replace('"Digest"', "5"), "title is 5: give text in quotes"),
        (f"sources = 'mail'\n{DIGEST.partition('[[')[0]}", "sources is 'mail': give a list"),
        (f"sources = ['mail']\n{DIGEST.partition('[[')[0]}", "sources[1] is 'mail': give named fields"),
        (
            DIGEST.replace('shape = "digest"', 'shape = "report"'),
            "source 'inbox' is of kind 'mail', but a report reads only table",
        ),
        (
            REPORT.replace('"orders"', "3"),
            "sources[1] 'sales': metrics[1] 'Orders': column is 3: give text in quotes",
        ),
    ],
)
def test_what_is_wrong_is_the_whole_of_what_is_said(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InvalidDrafter) as failure:
        read_drafter(path)
    assert str(failure.value) == f"{path}: {said}"


def test_of_many_wrong_fields_twenty_are_named_and_the_others_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "".join(f"x{number} = 1\n" for number in range(25)) + DIGEST)
    with pytest.raises(InvalidDrafter) as failure:
        read_drafter(path)
    assert str(failure.value).count("is not known") == 20
    assert str(failure.value).endswith("; and 5 more")


def test_every_wrong_field_is_named_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, f'colour = "red"\ntimezone = "Mars/Base"\n{DIGEST}'.replace('title = "Digest"\n', ""))
    with pytest.raises(InvalidDrafter) as failure:
        read_drafter(path)
    assert {"colour", "timezone", "title"} <= set(str(failure.value).split())


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    path = tmp_path / "sample.toml"
    path.write_bytes(b'title = "Caf\xe9"\n')
    with pytest.raises(InvalidDrafter, match="is not a TOML file in UTF-8"):
        read_drafter(path)


@pytest.mark.parametrize("name", ["Sample", "a_b", "1st", "x" * 64])
def test_a_file_whose_name_is_no_drafters_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        InvalidDrafter, match=rf"name is '{name}': use a-z, 0-9 and -, beginning with a letter, at most 63 "
    ):
        read_drafter(write(tmp_path, DIGEST, name))


@pytest.mark.parametrize("name", ["nobody", "../daily-digest", "", "daily-digest/", "DAILY-DIGEST"])
def test_a_drafter_that_is_not_there_is_told_with_those_that_are(name: str) -> None:
    with pytest.raises(InvalidDrafter) as failure:
        load_drafter(name)
    assert str(failure.value) == (
        f"drafter {name!r} is not known; the drafters are: daily-digest, hourly-monitor, nightly-sync, weekly-report"
    )


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidDrafter, match="there is no such file"):
        read_drafter(tmp_path / "none.toml")


def test_a_wrong_file_does_not_hide_the_others(tmp_path: Path) -> None:
    write(tmp_path, DIGEST, "good")
    write(tmp_path, "nonsense", "bad")
    assert drafter_names(tmp_path) == ("bad", "good")
    assert load_drafter("good", tmp_path).title == "Digest"
    with pytest.raises(InvalidDrafter, match=r"bad\.toml"):
        load_drafter("bad", tmp_path)


def test_the_folder_holds_nothing_but_drafters() -> None:
    assert {path.suffix for path in DRAFTERS.iterdir()} == {".toml"}
