"""Documents: their titles, their text, and the chunks they are kept in."""

import pytest

from sources.documents import CHUNK_CHARS, Document, chunks, read_document
from support.memory_bucket import MemoryBucket


def read(bucket: MemoryBucket, text: str, name: str = "page.md") -> Document:
    """Return a document with this text."""
    bucket.put(f"docs/{name}", text.encode(), content_type="text/plain")
    document = read_document(bucket, f"docs/{name}")
    assert isinstance(document, Document)
    return document


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Leave and sickness\n\nText.", "Leave and sickness"),
        ("Preface.\n\n## Leave ##\n", "Leave"),
        ("\ufeff# With a mark\n", "With a mark"),
        ("# Windows\r\nText\r\n", "Windows"),
        ("Leave\n=====\n\nText.", "Leave"),
        ("=====\nLeave\n=====\n", "Leave"),
        (".. _label:\n\nLeave\n-----\n", "Leave"),
        ("Just words.\nAnd more.", "page.md"),
        ("#hashtag is no heading", "page.md"),
        ("", "page.md"),
        ("# In\u200bvis\u202eible", "Invisible"),
        ("text\n" * 60 + "# Too far down", "page.md"),
    ],
)
def test_a_title_is_the_first_heading_or_the_name(bucket: MemoryBucket, text: str, title: str) -> None:
    assert read(bucket, text).title == title


def test_a_page_of_html_is_read_for_its_words(bucket: MemoryBucket) -> None:
    page = "<html><head><title>x</title></head><body><p>Hello <b>you</b></p><p hidden>secret</p></body></html>"
    document = read(bucket, page, "page.HTML")
    assert document.text == "Hello you"
    assert document.title == "page.HTML"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\n\n  \n", []),
        ("a\n\n" + " " * 4_000 + "\n\nb", ["a\n\nb"]),
        ("a" + " " * 4_000 + "b", ["a", "b"]),
        ("One.\n\nTwo.", ["One.\n\nTwo."]),
        ("a" * 1_500, ["a" * 1_500]),
        ("a" * 1_501, ["a" * 1_500, "a"]),
        ("a" * 1_000 + "\n\n" + "b" * 1_000, ["a" * 1_000, "b" * 1_000]),
        ("a" * 748 + "\n \n\n" + "b" * 750, ["a" * 748 + "\n\n" + "b" * 750]),
        ("a" * 1_400 + ". " + "b" * 300, ["a" * 1_400 + ".", "b" * 300]),
        ("a" * 1_400 + "\n" + "b" * 300, ["a" * 1_400, "b" * 300]),
        ("a" * 1_400 + " " + "b" * 300, ["a" * 1_400, "b" * 300]),
        ("a" * 100 + " " + "b" * 1_600, [("a" * 100 + " " + "b" * 1_600)[:1_500], "b" * 201]),
    ],
)
def test_chunks_end_with_paragraphs_or_else_with_lines_sentences_words(text: str, expected: list[str]) -> None:
    assert list(chunks(text)) == expected


def test_chunks_keep_every_word() -> None:
    text = "\n\n".join(f"Paragraph {number} " + "says so. " * (number * 7 % 400) for number in range(60))
    pieces = list(chunks(text))
    assert " ".join(pieces).split() == text.split()
    assert all(0 < len(piece) <= CHUNK_CHARS for piece in pieces)
