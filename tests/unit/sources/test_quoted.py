"""What a mail quotes and its signature are cut, with a mark; what it is sent for is not."""

import pytest

from sources.clean import html_to_text
from sources.message import read_message
from sources.quoted import MOST_LINES_UNDER_BARE_HYPHENS, MOST_SIGNATURE_LINES, without_quotes

CUT = [
    ("quoted below", "Yes, Friday.\n\nOn 3 March 2026, Ann wrote:\n> When?\n>\n> Ann", "Yes, Friday.\n\n«4»"),
    (
        "a wrapped attribution",
        "Yes.\n\nOn Tue, 3 Mar 2026 at 10:15, Ann Example\n<ann@example.org> wrote:\n\n> When?\n",
        "Yes.\n\n«3»\n",
    ),
    ("German", "Ja.\n\nAm 03.03.26 um 10:15 schrieb Ann Example:\n> Wann?", "Ja.\n\n«2»"),
    ("French", "Oui.\n\nLe mar. 3 mars 2026 à 10:15, Ann a écrit :\n> Quand ?", "Oui.\n\n«2»"),
    ("Spanish", "Sí.\n\nEl mar, 3 mar 2026 a las 10:15, Ann escribió:\n> ¿Cuándo?", "Sí.\n\n«2»"),
    ("Russian", "Да.\n\nвт, 3 мар. 2026 г. в 10:15, Ann написал:\n> Когда?", "Да.\n\n«2»"),
    ("an author without a verb", "Да.\n\nAnn <a@example.org>:\n> Когда?", "Да.\n\nAnn <a@example.org>:\n«1»"),
    ("between the lines", "> When?\nFriday.\n> Where?\n> And who?\nHere, Bob.", "«1»\nFriday.\n«2»\nHere, Bob."),
    ("two levels", "Fine.\n>> When?\n> Friday?", "Fine.\n«2»"),
    ("without a sign", "See below.\n\n-----Original Message-----\nFrom: Ann\n\nWhen?", "See below.\n\n«3»"),
    ("German without a sign", "Ja.\n-----Ursprüngliche Nachricht-----\nVon: Ann\nWann?", "Ja.\n«3»"),
    (
        "Outlook's headers",
        f"Fine.\n\n{'_' * 32}\nFrom: Ann <a@example.org>\nSent: Tuesday\nTo: Bob\nSubject: It\n\nWhen?",
        "Fine.\n\n«6»",
    ),
    ("headers alone", "Fine.\n\n*Von:* Ann\n*Gesendet:* Dienstag\n*An:* Bob\n*Betreff:* Es\n\nWann?", "Fine.\n\n«5»"),
    ("a signature", "Words.\n-- \nBob\nExample Ltd", "Words.\n[signature cut, 2 lines]"),
    ("a signature whose blank is lost", "Words.\n--\nBob", "Words.\n[signature cut, 1 line]"),
    ("a signature above a quotation", "Fine.\n-- \nBob\n\n> When?", "Fine.\n[signature cut, 1 line]\n«1»"),
    ("a telephone's line", "Fine.\n\nSent from my iPhone", "Fine.\n\n[signature cut, 1 line]"),
    ("a German telephone's", "Ja.\n\nVon meinem iPhone gesendet", "Ja.\n\n[signature cut, 1 line]"),
]


@pytest.mark.parametrize(("name", "text", "own"), CUT, ids=[name for name, *_ in CUT])
def test_what_marks_itself_as_quoted_or_signed_is_cut_and_counted(name: str, text: str, own: str) -> None:
    for number in range(1, 9):
        own = own.replace(f"«{number}»", f"[quoted text cut, {number} line{'s' if number > 1 else ''}]")
    assert without_quotes(text) == own


KEPT = [
    ("nothing quoted", "Words.\n\nMore words."),
    ("nothing but a quotation", "> When?\n> Where?"),
    ("nothing but a quotation with its author", "Ann wrote:\n> When?"),
    ("nothing but a signature", "-- \nBob"),
    ("nothing but an answered mail", "-----Original Message-----\nFrom: Ann\n\nWhen?"),
    (
        "a forwarded mail",
        "For you.\n\n---------- Forwarded message ---------\nFrom: Ann\nDate: x\nSubject: y\n\n> Words",
    ),
    ("one that Apple forwards", "For you.\n\nBegin forwarded message:\n\nFrom: Ann\nDate: x\nSubject: y\n\nWords"),
    ("a sentence that names a writer", "On Monday Ann wrote:\nCome at ten.\nSo I did."),
    ("an mbox file's escape", "We begin.\n>From the start it was clear."),
    ("a list of two headers", "Words.\nFrom: here\nTo: there\nand back."),
    ("a long text under two hyphens", "\n".join(["Words.", "-- ", *["a line"] * (MOST_SIGNATURE_LINES + 1)])),
    ("a part under bare hyphens", "\n".join(["Words.", "--", *["a line"] * (MOST_LINES_UNDER_BARE_HYPHENS + 1)])),
    ("hyphens at the end", "Words.\n-- \n"),
    ("a rule", "Words.\n----------\nMore words."),
    ("words about a telephone", "Sent from my iPhone\nis what he always writes."),
]


@pytest.mark.parametrize(("name", "text"), KEPT, ids=[name for name, _ in KEPT])
def test_what_a_mail_is_sent_for_is_kept(name: str, text: str) -> None:
    assert without_quotes(text) == text


@pytest.mark.parametrize("subject", ["Fwd: It", "FW: It", "WG: Es", "TR: Ceci", "[list] Fwd: It", "fwd : It"])
def test_a_forwarding_mail_keeps_what_it_passes_on(subject: str) -> None:
    text = "See below.\n\n-----Original Message-----\nFrom: Ann\n> When?\n-- \nBob"
    kept = without_quotes(text, subject=subject)
    assert kept == "See below.\n\n-----Original Message-----\nFrom: Ann\n> When?\n[signature cut, 1 line]"
    assert "When" not in without_quotes(text, subject=f"Re: {subject}")


HTML = [
    (
        "Gmail",
        '<div>Yes.</div><div class="gmail_quote gmail_quote_container"><div class="gmail_attr">On Tue, Ann wrote:</div>'
        '<blockquote class="gmail_quote" style="margin:0">When?<div>Ann</div></blockquote></div>',
        "Yes.\n\n[quoted text cut, 3 lines]",
    ),
    (
        "Apple Mail",
        '<body>Yes.<br><div><blockquote type="cite"><div>On 3 Mar, Ann wrote:</div><p>When?</p></blockquote></div>',
        "Yes.\n\n[quoted text cut, 2 lines]",
    ),
    (
        "Thunderbird",
        '<p>Yes.</p><div class="moz-cite-prefix">On 3 Mar, Ann wrote:</div><blockquote type=cite>When?</blockquote>'
        "<p>Bye.</p>",
        "Yes.\n\n[quoted text cut, 2 lines]\n\nBye.",
    ),
    (
        "Outlook",
        "<p>Yes.</p><div><p><b>From:</b> Ann<br><b>Sent:</b> Tuesday<br><b>To:</b> Bob<br><b>Subject:</b> It</p></div>"
        "<p>When?",
        "Yes.\n\n[quoted text cut, 5 lines]",
    ),
    ("a quotation of its own", "<p>He said:</p><blockquote>To be.</blockquote>", "He said:\n\nTo be."),
    (
        "what Gmail forwards",
        '<div>For you.</div><div class="gmail_quote"><div>---------- Forwarded message ---------'
        "<br>From: Ann</div>Words</div>",
        "For you.\n\n---------- Forwarded message ---------\nFrom: Ann\nWords",
    ),
    ("a mark in the text", "<p>A&#xe0f0;B</p><p>\ue0f0</p><p>C</p>", "AB\n\nC"),
    ("hidden within", '<p>A</p><div hidden><blockquote type="cite">x</blockquote></div><p>B</p>', "A\n\nB"),
]


@pytest.mark.parametrize(("name", "markup", "own"), HTML, ids=[name for name, *_ in HTML])
def test_what_a_mail_program_encloses_as_quoted_is_cut(name: str, markup: str, own: str) -> None:
    raw = f"From: bob@example.org\nContent-Type: text/html; charset=utf-8\n\n{markup}".encode()
    assert read_message(raw, 1_000).text == own


def test_feeds_and_documents_keep_every_quotation() -> None:
    assert html_to_text('<p>A</p><blockquote type="cite">B</blockquote>') == "A\n\nB"


def test_a_mark_in_plain_text_hides_nothing() -> None:
    raw = "From: bob@example.org\nContent-Type: text/plain; charset=utf-8\n\nA\n\ue0f0\nB".encode()
    assert read_message(raw, 1_000).text == "A\n\nB"


def test_each_part_is_cut_by_itself_and_attachments_are_still_named() -> None:
    raw = (
        b"From: bob@example.org\nSubject: Re: It\nContent-Type: multipart/mixed; boundary=B\n\n"
        b"--B\nContent-Type: text/plain\n\nYes.\n-- \nBob\n--B\nContent-Type: application/pdf; name=a.pdf\n\nx\n"
        b"--B\nContent-Type: text/plain\n\nAnn wrote:\n> When?\n--B--\n"
    )
    text = read_message(raw, 1_000).text
    assert text == "Yes.\n[signature cut, 1 line]\n\nAnn wrote:\n> When?\n\nAttachments: a.pdf"
    assert "Bob" in read_message(raw, 1_000, "keep").text


@pytest.mark.parametrize(
    "text",
    [
        "On " + "wrote " * 200_000 + ":\n> x",
        ("wrote wrote wrote wrote:\nx\n> y\n" * 30_000),
        "From: a\n" * 120_000,
        "From: a\nSent: b\n\n" * 60_000,
        "-" * 1_000_000,
        ("_" * 299 + "\n") * 3_000,
        "> " * 500_000,
        "\ue0f0\n" * 300_000,
        "-- \n" * 250_000,
        "forwarded message " * 50_000,
        "\n" * 1_000_000,
    ],
)
@pytest.mark.timeout(30)
def test_no_mail_takes_long(text: str) -> None:
    without_quotes(text)
