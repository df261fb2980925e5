"""Every file of the mail corpus goes through collection, and yields what the message says.

The messages are those of CPython's own email tests, broken ones among them. What each of them yields stands here in
full, or by its beginning and its end; what differs from what a reader might expect has its reason beside it.
"""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sources import mail
from sources.collected import SourceLimits
from support.memory_bucket import MemoryBucket

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "mail"
FILES = sorted(path for path in FOLDER.glob("*") if path.is_file())
SLOT = datetime(2026, 3, 2, 6, tzinfo=UTC)

if not FILES:
    pytest.skip(f"the folder of real mails is absent: {FOLDER}", allow_module_level=True)

MIRROR = "a simple kind of mirror\nto reflect upon our own"
FORWARDED = "[Forwarded message from barry@digicool.com (Barry A. Warsaw): [Ppp] testing #{}]\n\nhello"
NO_SUBJECT = "(no subject)"

MESSAGES: dict[str, tuple[str, str | None, str | None, str]] = {
    # name: title, author, date as the sender gave it, text (a "…" in it stands for what is between)
    "msg_02.txt": (
        "Ppp digest, Vol 1 #2 - 5 msgs",
        "ppp-request@zzz.org",
        "2001-04-21T00:18:00+00:00",
        f"Send Ppp mailing list submissions to\nppp@zzz.org\n…{FORWARDED.format(5)}\n\n…/mailman/listinfo/ppp",
    ),
    "msg_04.txt": (
        "a simple multipart",
        "barry@python.org (Barry A. Warsaw)",
        "2001-09-11T04:05:05+00:00",
        f"{MIRROR}\n\n{MIRROR}",
    ),
    # The message that it forwards has no text.
    "msg_06.txt": (
        "forwarded message from Barry A. Warsaw",
        "barry@python.org (Barry A. Warsaw)",
        "2001-09-13T21:28:42+00:00",
        "[Forwarded message from barry@python.org (Barry A. Warsaw): testing]",
    ),
    "msg_08.txt": ("Lyrics", "Barry Warsaw <barry@python.org>", "2001-04-20T23:35:02+00:00", ""),
    "msg_10.txt": (
        "Lyrics",
        "Barry Warsaw <barry@python.org>",
        "2001-04-20T23:35:02+00:00",
        "This is a 7bit encoded message.\n\n¡This is a Quoted Printable encoded message!\n\n"
        "This is a Base64 encoded message.\n\nThis is a Base64 encoded message.\n\n"
        "This has no Content-Transfer-Encoding: header.",
    ),
    "msg_12.txt": ("Lyrics", "Barry Warsaw <barry@python.org>", "2001-04-20T23:35:02+00:00", ""),
    "msg_13.txt": (
        "Here is your dingus fish",
        "Barry <barry@digicool.com>",
        "2001-04-20T23:35:02+00:00",
        "A text/plain part\n\nHi there,\n\nThis is the dingus fish.\n\nAttachments: dingusfish.gif",
    ),
    "msg_15.txt": ("XX", "xx@xx.dk", None, "Some removed test.\n\nSome removed text."),
    # A multipart without its boundary is left in one piece, and read as the text that it looks like.
    "msg_17.txt": (
        "Here is your dingus fish",
        "Barry <barry@digicool.com>",
        "2001-04-20T23:35:02+00:00",
        "Hi there,\n\nThis is the dingus fish.\n\n"
        "[Non-text (image/gif) part of message omitted, filename dingusfish.gif]",
    ),
    "msg_21.txt": ("Test", "aperson@dom.ain", None, "One\n\nTwo"),
    "msg_23.txt": (NO_SUBJECT, "aperson@dom.ain", None, "A message part"),
    # A bounce of 1996 whose header names no boundary: read as text, its inner headers with it.
    "msg_25.txt": (
        "Returned mail: Too many hops 19 (17 max): from <linuxuser-admin@www.linux.org.uk> via [199.164.235.226], "
        "to <scoffman@wellpartner.com>",
        "Mail Delivery Subsystem <MAILER-DAEMON@zinfandel.lacita.com>",
        "2001-04-06T17:23:06+00:00",
        "This is a MIME-encapsulated message\n\n…554 Too many hops 19 (17 max)…",
    ),
    "msg_27.txt": (
        "bug demonstration 12345678911234567892123456789312345678941234567895123456789612345678971234567898112345678911"
        "234567892123456789112345678911234567892123456789 more text",
        "aperson@dom.ain (Anne P. Erson)",
        "2002-06-05T01:46:59+00:00",
        "test",
    ),
    # "-Me" is no signature's line.
    "msg_29.txt": (
        "This is a test message",
        "bbb@ddd.com (John X. Doe)",
        "2001-05-04T18:05:44+00:00",
        "Hi,\n\nDo you like this message?\n\n-Me",
    ),
    # The boundary in the text is not the one in the header.
    "msg_31.txt": (
        NO_SUBJECT,
        "aperson@dom.ain",
        None,
        "--BOUNDARY\nContent-Type: text/plain\n\nmessage 1…--BOUNDARY--",
    ),
    "msg_33.txt": (
        "Re: Limiting Perl CPU Utilization...",
        "Anne Person <aperson@example.com>",
        "2000-09-27T16:11:09+00:00",
        "part 1\n\npart 2",
    ),
    "msg_35.txt": (
        "here's something interesting",
        "aperson@dom.ain",
        None,
        "counter to RFC 2822, there's no separating newline here",
    ),
    "msg_37.txt": (NO_SUBJECT, None, None, "Blah\n\nBlah\n\nBlah"),
    # Nothing but a signature: it stays, or the mail would say nothing. Two of six attachments are named: the inner
    # boundaries are all the same, so that the first end of one is the end of all.
    "msg_39.txt": (
        NO_SUBJECT,
        None,
        None,
        "--\nIt's never too late to have a happy childhood.\n\n"
        "Attachments: unnamed application/octet-stream, unnamed application/octet-stream",
    ),
    "msg_41.txt": ("64423", '"Allison Dunlap" <xxx@example.com>', "2004-07-11T19:09:27+00:00", "Blah blah blah"),
    "msg_43.txt": (
        "Banned file: auto__mail.python.bat in mail from you",
        "MAILER DAEMON <>",
        "2004-11-27T03:41:44+00:00",
        "BANNED FILENAME ALERT\n\n…is set to block.\n\n"
        "Attachments: unnamed message/delivery-status, unnamed text/rfc822-headers",
    ),
    "msg_45.txt": ("test", "<foo@bar.baz>", None, "This is the signed contents.\n\nAttachments: signature.asc"),
    "msg_47.txt": (NO_SUBJECT, "arthur@example.example", "2001-01-01T00:01:00+00:00", "bar\n\nbaz"),
}

NO_MESSAGES = {
    # The text of msg_02 without its headers: without a single one it could be anything.
    "msg_19.txt": "it has none of a mail's headers",
    **dict.fromkeys(
        ["python.exr", "python.pgm", "python.ppm", "python.sgi", "python.webp", "sndhdr.aifc"],
        "it has none of a mail's headers",
    ),
}
"""Pictures and a sound that lie among the messages, and what is no message any more."""


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_a_message_of_the_corpus_yields_what_it_says(path: Path) -> None:
    bucket = MemoryBucket()
    bucket.add(f"inbox/{path.name}", path.read_bytes(), SLOT)
    collected = mail.collect(bucket, "inbox/", None, SLOT, SourceLimits())
    if path.name in NO_MESSAGES:
        assert collected.items == ()
        assert collected.warnings == (f"inbox/{path.name}: not read: {NO_MESSAGES[path.name]}",)
        return
    (item,) = collected.items
    title, author, date, text = MESSAGES[path.name]
    assert (item.title, item.author, collected.warnings) == (title, author, ())
    assert item.published == (SLOT if date is None else datetime.fromisoformat(date)), "its own date, or its arrival"
    if "…" not in text:
        assert item.text == text
        return
    begin, *middle, end = text.split("…")
    assert item.text.startswith(begin)
    assert item.text.endswith((end, " [… cut]"))
    assert all(part in item.text for part in middle)


def test_nothing_is_expected_of_files_that_are_not_there() -> None:
    assert {path.name for path in FILES} == {*MESSAGES, *NO_MESSAGES}
