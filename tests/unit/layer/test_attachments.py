"""What goes with a draft: what it may be, and that its hash is of it too."""

import hashlib
from dataclasses import replace

import pytest

from galley.drafts import MOST_ATTACHED_BYTES, MOST_ATTACHMENTS, Attachment, Draft, attachments_hash, text_hash
from galley.store import StoredDraft
from galley.store.rows import draft_row, read_draft

CHART = Attachment("chart.svg", "image/svg+xml", "<svg/>\n")
TABLE = Attachment("figures.csv", "text/csv", "a,b\n1,2\n")
DRAFT = Draft("Title", "Body", (), (), "offline", attachments=(TABLE, CHART))


def test_a_text_without_attachments_has_the_hash_that_stored_rows_have() -> None:
    assert text_hash("Title", "Body") == hashlib.sha256(b"5\nTitle\nBody").hexdigest()
    assert attachments_hash(()) is None
    assert StoredDraft(replace(DRAFT, attachments=())).text_hash == text_hash("Title", "Body")


def test_whatever_changes_in_an_attachment_changes_the_hash() -> None:
    several = [
        (),
        (TABLE,),
        (CHART,),
        (TABLE, CHART),
        (CHART, TABLE),
        (replace(TABLE, text="a,b\n1,3\n"), CHART),
        (replace(TABLE, name="figures-2.csv"), CHART),
        (replace(TABLE, media_type="image/svg+xml"), CHART),
        (replace(TABLE, text=""), replace(CHART, text=TABLE.text + CHART.text)),
    ]
    hashes = {StoredDraft(replace(DRAFT, attachments=attachments)).text_hash for attachments in several}
    assert len(hashes) == len(several)


def test_no_title_takes_the_place_of_attachments() -> None:
    attached = attachments_hash((TABLE,))
    assert text_hash(f"with {attached}\n5\nTitle", "Body") != text_hash("Title", "Body", attached)


@pytest.mark.parametrize(
    "name",
    ["", "chart", "Chart.svg", "../chart.svg", "a/chart.svg", "chart.svg\n", "chart.html", "-.svg", "a" * 41 + ".svg"],
)
def test_a_name_that_could_be_no_end_of_a_key_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="needs a name like"):
        Attachment(name, "image/svg+xml", "")


def test_another_media_type_is_refused() -> None:
    with pytest.raises(ValueError, match="'text/html'; it must be one of text/csv, image/svg"):
        Attachment("chart.svg", "text/html", "")


def test_attachments_beyond_what_a_row_has_room_for_are_refused() -> None:
    with pytest.raises(ValueError, match="are too much"):
        replace(DRAFT, attachments=(replace(TABLE, text="ä" * (MOST_ATTACHED_BYTES // 2)), CHART))
    many = tuple(Attachment(f"chart-{number}.svg", "image/svg+xml", "") for number in range(MOST_ATTACHMENTS + 1))
    with pytest.raises(ValueError, match="are too much"):
        replace(DRAFT, attachments=many)


def test_two_attachments_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="repeat a name"):
        replace(DRAFT, attachments=(TABLE, TABLE))


def test_a_row_from_before_there_were_attachments_is_read() -> None:
    row = draft_row(DRAFT)
    del row["attachments"]
    assert read_draft(row) == StoredDraft(replace(DRAFT, attachments=()))
