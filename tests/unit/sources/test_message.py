"""Mails as they come: well formed, broken, in strange charsets, and things that are no mails."""

import contextlib
from datetime import UTC, datetime

import pytest

from sources.message import MAX_BOUNDARIES, MAX_LINES, NotAMessage, decode, read_message


def _message(head: str, body: str | bytes = "Hello") -> bytes:
    text = body if isinstance(body, bytes) else body.encode()
    return head.encode() + b"\n\n" + text


def _multipart(kind: str, *parts: str, head: str = "From: a@example.org") -> bytes:
    inner = "".join(f"--B\n{part}\n" for part in parts)
    return f'{head}\nContent-Type: multipart/{kind}; boundary="B"\n\n{inner}--B--\n'.encode()


PLAIN = "Content-Type: text/plain\n\nplain words"
HTML = "Content-Type: text/html\n\n<p>marked <b>words</b></p>"

TEXTS = [
    ("plain", _message("Subject: s"), "Hello"),
    ("html only", _message("Subject: s\nContent-Type: text/html", "<p>Hi <b>you</b></p>"), "Hi you"),
    ("alternatives", _multipart("alternative", PLAIN, HTML), "plain words"),
    ("html before plain", _multipart("alternative", HTML, PLAIN), "plain words"),
    ("empty plain", _multipart("alternative", "Content-Type: text/plain\n\n  ", HTML), "marked words"),
    ("mixed", _multipart("mixed", PLAIN, HTML), "plain words\n\nmarked words"),
    (
        "attachments are names",
        _multipart(
            "mixed",
            PLAIN,
            'Content-Type: text/plain\nContent-Disposition: attachment; filename="notes.txt"\n\nsecret',
            "Content-Type: image/png\nContent-Disposition: inline; filename*=utf-8''caf%C3%A9.png\n\nxx",
            "Content-Type: application/pdf\n\nxx",
            'Content-Type: text/calendar; name="../../invite.ics"\n\nBEGIN:VCALENDAR',
        ),
        "plain words\n\nAttachments: notes.txt, café.png, unnamed application/pdf, .._.._invite.ics",
    ),
    (
        "nothing but attachments",
        _multipart("mixed", 'Content-Type: application/pdf; name="a.pdf"\n\nxx'),
        "Attachments: a.pdf",
    ),
    (
        "forwarded",
        _multipart(
            "mixed",
            PLAIN,
            "Content-Type: message/rfc822\n\nFrom: b@example.org\nSubject: =?utf-8?q?=C3=9Cber?=\n\ninner words",
        ),
        "plain words\n\n[Forwarded message from b@example.org: Über]\n\ninner words",
    ),
    (
        "related within alternative",
        _multipart(
            "alternative",
            'Content-Type: multipart/related; boundary="C"\n\n--C\n' + HTML + "\n--C--",
            "Content-Type: text/calendar\n\nBEGIN",
        ),
        "marked words\n\nAttachments: unnamed text/calendar",
    ),
    ("no boundary", _message("Subject: s\nContent-Type: multipart/mixed"), "Hello"),
    ("unknown transfer encoding", _message("Subject: s\nContent-Transfer-Encoding: rot13"), "Hello"),
    ("base64 cut short", _message("Subject: s\nContent-Transfer-Encoding: base64", "SGVsbG8gd29ybGQ"), "Hello world"),
    (
        "quoted-printable",
        _message("Subject: s\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable")
        + b" =E2=82=AC =ZZ",
        "Hello € =ZZ",
    ),
    ("invisible characters", _message("Subject: s", "a\u200b\u202eb"), "ab"),
]


@pytest.mark.parametrize(("name", "raw", "text"), TEXTS)
def test_a_message_is_read_for_its_words(name: str, raw: bytes, text: str) -> None:
    assert read_message(raw, 1_000).text == text, name


@pytest.mark.parametrize(
    ("charset", "data", "text", "remark"),
    [
        ("utf-8", "café".encode(), "café", None),
        ("ISO-8859-1", b"caf\xe9 \x93quoted\x94", "café “quoted”", None),
        ("windows-1252", b"\x80", "€", None),
        ("koi8-r", "привет".encode("koi8-r"), "привет", None),
        ("gb2312", "鎔".encode("gb18030"), "鎔", None),
        ("iso-8859-8-i", "שלום".encode("iso-8859-8"), "שלום", None),
        ("utf-16", "hi".encode("utf-16"), "hi", None),
        (None, b"ascii", "ascii", None),
        (None, "café".encode(), "café", None),
        (None, b"caf\xe9", "café", "it declares no charset and is not UTF-8; read as Latin-1"),
        ("x-unknown", "café".encode(), "café", "its charset 'x-unknown' is unknown; read as UTF-8"),
        ("x-unknown", b"caf\xe9", "café", "its charset 'x-unknown' is unknown; read as Latin-1"),
        ("us-ascii", b"caf\xe9", "café", "its charset 'us-ascii' is not what the text is in; read as Latin-1"),
        ("utf-8", b"caf\xe9", "café", "its charset 'utf-8' is not what the text is in; read as Latin-1"),
        ("punycode", b"a-b", "a-b", "its charset 'punycode' is unknown; read as UTF-8"),
        ("rot13", b"nop", "nop", "its charset 'rot13' is unknown; read as UTF-8"),
        ("zlib", b"x", "x", "its charset 'zlib' is unknown; read as UTF-8"),
        ("a\0b", b"x", "x", "its charset 'ab' is unknown; read as UTF-8"),
    ],
)
def test_text_is_decoded_in_its_charset_or_by_a_guess_that_is_told(
    charset: str | None, data: bytes, text: str, remark: str | None
) -> None:
    assert decode(data, charset) == (text, remark)


def test_a_guessed_charset_is_a_warning_of_the_message() -> None:
    raw = _message("Subject: s\nContent-Type: text/plain; charset=x-unknown", b"caf\xe9")
    assert read_message(raw, 100).warnings == ("its charset 'x-unknown' is unknown; read as Latin-1",)


@pytest.mark.parametrize(
    ("header", "title"),
    [
        ("Subject: plain", "plain"),
        ("Subject: =?utf-8?q?caf=C3=A9?= =?utf-8?b?w6k=?= and more", "caféé and more"),
        ("Subject: =?x-unknown?q?caf=E9?=", "café"),
        ("Subject: =?utf-8?b?not base64", "=?utf-8?b?not base64"),
        ("Subject: =?utf-8?b?w6k?=", "é"),
        ("Subject: bare café", "bare café"),
        ("Subject: folded\n over lines", "folded over lines"),
        ("Subject: a\u202eb\u200bc", "abc"),
        ("Subject:", "(no subject)"),
        ("To: someone", "(no subject)"),
        ("Subject: " + "long " * 200, ("long " * 200)[:292].strip() + " [… cut]"),
    ],
)
def test_the_subject_is_decoded_whatever_it_is_in(header: str, title: str) -> None:
    assert read_message(_message(header), 100).title == title


@pytest.mark.parametrize(
    ("date", "instant"),
    [
        ("Fri, 20 Mar 2026 20:18:00 -0400 (EDT)", datetime(2026, 3, 21, 0, 18, tzinfo=UTC)),
        ("20 Mar 2026 20:18 +0000", datetime(2026, 3, 20, 20, 18, tzinfo=UTC)),
        ("Fri, 20 Mar 2026 20:18:00 -0000", datetime(2026, 3, 20, 20, 18, tzinfo=UTC)),
        ("yesterday", None),
        ("", None),
        ("Fri, 99 Mar 2026 20:18:00 +0000", None),
        ("Fri, 31 Dec 9999 23:00:00 -2300", None),
        ("Mon, 1 Jan 99999 00:00:00 +0000", None),
        ("Fri, 20 Mar 2026 20:18:00 +99999999999999", None),
    ],
)
def test_the_senders_date_is_in_utc_or_there_is_none(date: str, instant: datetime | None) -> None:
    assert read_message(_message(f"Date: {date}"), 100).date == instant


def test_long_text_is_clipped_and_keeps_the_attachments_names() -> None:
    raw = _multipart("mixed", "Content-Type: text/plain\n\n" + "word " * 500, 'Content-Type: a/b; name="c.pdf"\n\nx')
    text = read_message(raw, 100).text
    assert len(text) <= 100
    assert text.endswith(" [… cut]\n\nAttachments: c.pdf")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "empty"),
        (b" \r\n \n", "empty"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "headers"),
        (b"RIFF\xa8\1\0\0WEBPVP8 : x\n\n", "headers"),
        (b"Just a note.\n\nFrom: me", "headers"),
        (b'{"From": "json"}', "headers"),
        (b"From: a\n\n" + b"\n--x" * (MAX_BOUNDARIES + 1), "boundaries"),
        (b"From: a\n" * (MAX_LINES + 1), "lines"),
        (b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (i, i) for i in range(1_400)), "parsed"),
        (b"Content-Type: message/rfc822\n\n" * 2_000, "parsed"),
    ],
    ids=["nothing", "blanks", "png", "webp", "note", "json", "boundaries", "lines", "nested", "forwarded for ever"],
)
def test_what_is_no_mail_says_why(raw: bytes, reason: str) -> None:
    with pytest.raises(NotAMessage, match=reason):
        read_message(raw, 100)


def _nested(boundaries: int, lines: int, parameter: bytes = b"boundary=") -> bytes:
    """Return a mail of so many parts within parts, none of which is closed, and so many lines in the last."""
    heads = (
        b"Content-Type: multipart/mixed;\n %sb%d\n\n--b%d\n" % (parameter, number, number)
        for number in range(boundaries)
    )
    return b"From: a@example.org\n" + b"".join(heads) + b"\nx" + b"\n" * lines


@pytest.mark.parametrize("parameter", [b"boundary=", b"BOUNDARY =", b"boundary*=us-ascii''", b"boundary*0="])
@pytest.mark.parametrize("boundaries", [2, 19, 60, 150, 450])
@pytest.mark.timeout(30)
def test_parts_within_parts_take_no_more_than_a_moment(boundaries: int, parameter: bytes) -> None:
    raw = _nested(boundaries, 480_000, parameter)
    with contextlib.suppress(NotAMessage):
        read_message(raw, 100)


def test_a_large_mail_of_many_parts_is_read() -> None:
    lines = "x" * 76 + "\n"
    raw = _multipart("mixed", *[f"Content-Type: text/plain\n\nWords\n{lines * 1_000}"] * 100)
    assert len(raw) > 7_000_000
    assert read_message(raw, 100).text.startswith("Words")


def test_parts_beyond_the_limit_are_told() -> None:
    raw = _multipart("mixed", *["Content-Type: text/plain\n\nx"] * 300)
    message = read_message(raw, 10_000)
    assert message.text.count("x") == 199
    assert message.warnings == ("only its first 200 parts, 20 levels deep, are read",)


@pytest.mark.parametrize(
    "raw",
    [
        b"From: x\nContent-Type: text/plain; " + b"a=b; " * 300_000 + b"\n\nx",
        b"From: x\nContent-Type: text/plain; charset*" + b"0*=a; charset*" * 100_000 + b"\n\nx",
        b"From: x\nSubject: " + b"=?utf-8?q?a?= " * 100_000 + b"\n\nx",
        b"From: x\nDate: " + b"(" * 1_000_000 + b"\n\nx",
        b"From: " + b"<" * 1_000_000 + b"\n\nx",
        b"From: x\nContent-Type: text/plain; charset=punycode\n\n" + b"a-bcdefg" * 100_000,
        b"From: x\nContent-Type: text/html\n\n" + b"<a " * 300_000,
    ],
    ids=["parameters", "continuations", "encoded words", "comments", "angles", "punycode", "open tags"],
)
@pytest.mark.timeout(30)  # the first takes the plain library a minute and a half
def test_a_hostile_message_takes_no_more_than_a_moment(raw: bytes) -> None:
    read_message(raw, 1_000)


def test_copies_have_one_fingerprint_and_a_borrowed_message_id_has_another() -> None:
    def fingerprint(head: str, body: str = "x") -> str:
        return read_message(_message(head, body), 100).fingerprint

    head = "Message-ID: <1@example.org>\nFrom: a@example.org\nDate: Fri, 20 Mar 2026 20:18:00 +0000"
    assert fingerprint("Received: one\n" + head) == fingerprint("Received: two\n" + head)
    assert fingerprint(head) != fingerprint(head.replace("a@", "b@"))
    assert fingerprint("From: a") == fingerprint("From: a")
    assert fingerprint("From: a", "x") != fingerprint("From: a", "y")
