"""Documents: their titles, their text, and the chunks they are kept in."""

import pytest

from sources.documents import CHUNK_CHARS, Document, Listed, UnderPrefix, Unreadable, chunks, chunks_of, read_document
from support.memory_bucket import MemoryBucket


def read(bucket: MemoryBucket, text: str, name: str = "page.md") -> Document:
    """Return a document with this text."""
    bucket.put(f"docs/{name}", text.encode(), content_type="text/plain")
    document = UnderPrefix(bucket, "docs/").read(Listed(f"docs/{name}", "a tag"), "")
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
        ("# # \n", "#"),
        ("#  C# and F#  # \n", "C# and F"),
        ("", "page.md"),
        ("# In\u200bvis\u202eible", "Invisible"),
        ("text\n" * 60 + "# Too far down", "page.md"),
    ],
)
def test_a_title_is_the_first_heading_or_the_name(bucket: MemoryBucket, text: str, title: str) -> None:
    assert read(bucket, text).title == title


def test_a_page_of_html_is_read_for_its_words(bucket: MemoryBucket) -> None:
    head = "<html><head><title>Two &amp; a half</title></head>"
    page = f"{head}<body><p>Hello <b>you</b></p><p hidden>secret</p></body></html>"
    document = read(bucket, page, "page.HTML")
    assert document.text == "Hello you"
    assert document.title == "Two & a half"


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
        ("One.\n\n# Two\n\nText.\n\nThree\n=====\n\nText.", ["One.", "# Two\n\nText.", "Three\n=====\n\nText."]),
        ("One.\n\n=====\nTwo\n=====\n\nText.", ["One.", "=====\nTwo\n=====\n\nText."]),
        ("# One\n\n## Two", ["# One", "## Two"]),
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


def test_a_chunk_keeps_its_id_when_other_sections_change() -> None:
    sections = [f"# Section {number}\n\n" + "Words of it. " * 60 for number in range(5)]
    before = list(chunks_of("\n\n".join(sections)))
    sections.insert(1, "# New\n\nWords.")
    sections[4] = "# Section 3\n\nOther words."
    after = list(chunks_of("\n\n".join(sections)))
    kept = {chunk.id: chunk.text for chunk in before}.items() & {chunk.id: chunk.text for chunk in after}.items()
    assert [chunk.id in {name for name, _ in kept} for chunk in after] == [True, False, True, True, False, True]


def test_chunks_of_one_text_have_ids_of_their_own() -> None:
    first, second, third = chunks_of("# Same\n\n# Other\n\n# Same")
    assert third.id == f"{first.id}-2"
    assert len({first.id, second.id, third.id}) == 3


@pytest.mark.parametrize("charset", ["no-such", "rot13", "base64", "punycode", "idna", "unicode_escape"])
def test_a_charset_that_is_none_is_told(charset: str) -> None:
    found = read_document("https://a.example/", b"abc", "", is_html=False, charset=charset)
    assert found == Unreadable("https://a.example/", f"says that it is written in {charset}, which is not known")


def test_a_page_of_html_that_would_be_cut_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sources.documents.MAX_HTML_CHARS", 10)
    found = read_document("a.html", b"<p>12345678</p>", "", is_html=True)
    assert found == Unreadable("a.html", "has more than 10 characters of HTML; split it")


def test_a_tag_that_is_too_long_is_not_kept() -> None:
    found = read_document("a.md", b"# A", "t" * 101, is_html=False)
    assert isinstance(found, Document)
    assert found.tag == ""


@pytest.mark.parametrize(
    "line", ["# " + "#" * 1_000_000 + "a", "# " + "# " * 1_000_000 + "a", "# " + "a# " * 1_000_000]
)
@pytest.mark.timeout(30)
def test_a_line_of_signs_takes_time_in_proportion(line: str) -> None:
    assert len(list(chunks(line))) > 600


@pytest.mark.timeout(15)
def test_a_charset_that_decodes_in_quadratic_time_is_not_tried() -> None:
    body = b"a" * 2_000_000 + b"-" + b"a" * 2_000_000
    assert isinstance(read_document("a", body, "", is_html=False, charset="punycode"), Unreadable)
