"""The sample material: put once, found by the sample drafters' latest slots, whenever that is."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from drafter import load_drafter
from galley.schedule import calendar_of, zone
from galley_cli import sample_material
from galley_cli.sample_material import MARKER, put_samples
from shapes import digest, report, sync
from shapes.shape import Material, Window
from support.memory_bucket import MemoryBucket

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "cli" / "galley_cli" / "samples"
NOW = datetime(2026, 11, 29, 18, tzinfo=UTC)

MOMENTS = [
    pytest.param(datetime(2026, 11, 29, 18, tzinfo=UTC), id="a Sunday evening"),
    pytest.param(datetime(2026, 11, 30, 5, 59, tzinfo=UTC), id="a Monday before six"),
    pytest.param(datetime(2026, 11, 30, 13, 1, tzinfo=UTC), id="just after New York's Monday at eight"),
    pytest.param(datetime(2026, 11, 30, 0, 30, tzinfo=UTC), id="a Monday in UTC, a Sunday in New York"),
    pytest.param(datetime(2026, 11, 27, 6, 0, tzinfo=UTC), id="at the slot it was written for"),
    pytest.param(datetime(2027, 3, 28, 3, tzinfo=UTC), id="the morning on which London's clocks go forward"),
    pytest.param(datetime(2027, 7, 14, 5, 0, 30, tzinfo=UTC), id="a summer morning, just after six in London"),
    pytest.param(datetime(2032, 2, 29, 12, tzinfo=UTC), id="years later"),
    pytest.param(datetime(2026, 1, 1, 0, 0, tzinfo=UTC), id="a clock that is a year behind"),
]


def schedules() -> Iterator[dict[str, Any]]:
    """Yield the properties of the template's schedules that name drafters."""
    loader = type("Loader", (yaml.SafeLoader,), {})
    loader.add_multi_constructor("!", lambda *_: None)
    template = yaml.load((ROOT / "template.yaml").read_text(), Loader=loader)  # noqa: S506 - a SafeLoader
    for event in template["Resources"]["DispatchFunction"]["Properties"]["Events"].values():
        yield event["Properties"]


def latest_window(name: str, now: datetime) -> Window:
    """Return the window of a drafter's latest slot, as template.yaml has its schedule."""
    properties = next(one for one in schedules() if name in json.loads(one["Input"])["drafters"])
    timezone = properties["ScheduleExpressionTimezone"]
    calendar = calendar_of(properties["ScheduleExpression"], timezone, datetime(2020, 1, 1, tzinfo=UTC))
    slot = calendar.latest_until(now)
    assert slot is not None
    before = calendar.latest_until(slot - timedelta(seconds=1))
    assert before is not None
    return Window(before, slot, zone(timezone))


def everything(bucket: MemoryBucket) -> dict[str, bytes]:
    """Return all objects of the bucket but the marker."""
    return {info.key: bucket.get(info.key, max_bytes=10**7) for info in bucket.list("") if info.key != MARKER}


def test_the_digests_schedule_is_that_of_the_template() -> None:
    digests = [one for one in schedules() if "daily-digest" in json.loads(one["Input"])["drafters"]]
    assert [(one["ScheduleExpression"], one["ScheduleExpressionTimezone"]) for one in digests] == [
        (sample_material.DIGEST_EXPRESSION, sample_material.DIGEST_ZONE)
    ]


@pytest.mark.parametrize("now", MOMENTS)
def test_the_latest_digest_has_every_mail_of_its_morning(bucket: MemoryBucket, assign: Any, now: datetime) -> None:
    bucket.now = now
    put_samples(bucket, now)
    window = latest_window("daily-digest", now)
    material = digest.collect(assign(load_drafter("daily-digest"), slot=window.end))
    assert len(material.items) == len(list((SAMPLES / "mail").glob("*.eml"))) == 14
    for item in material.items:
        assert item.published is not None
        assert timedelta(0) < window.end - item.published < timedelta(hours=13)
    assert len(material.warnings) == 1
    assert "08-anhaenger-fuer-die-messe.eml" in material.warnings[0]


@pytest.mark.parametrize("now", MOMENTS)
def test_the_latest_report_has_both_its_weeks(bucket: MemoryBucket, assign: Any, now: datetime) -> None:
    put_samples(bucket, now)
    window = latest_window("weekly-report", now)
    material = report.collect(assign(load_drafter("weekly-report"), slot=window.end, window=window))
    assert material.nothing_new is None
    assert material.warnings == ()
    assert len(material.items) == 7
    assert "14 rows of these days were read" in material.figures
    assert "no value" not in material.figures


def test_the_first_sync_takes_the_handbook_in(bucket: MemoryBucket, assign: Any) -> None:
    put_samples(bucket, NOW)
    material: Material = sync.collect(assign(load_drafter("nightly-sync")))
    assert len(material.items) == 9
    assert all(not item.title.endswith(".md") for item in material.items), "each has a heading"
    assert material.warnings == ()


def test_the_mails_are_read_for_what_they_say(bucket: MemoryBucket, assign: Any) -> None:
    put_samples(bucket, NOW)
    window = latest_window("daily-digest", NOW)
    material = digest.collect(assign(load_drafter("daily-digest"), slot=window.end))
    by_name = {item.source.rpartition("/")[2][:2]: item for item in material.items}
    assert by_name["05"].title == "Demande de devis pour 14 bancs à Angers"
    assert "« Rowan » en mélèze" in by_name["05"].text
    assert "from £18.50 to £24.00 per drop" in by_name["06"].text
    assert by_name["07"].text.endswith("Attachments: vat-return.pdf")
    assert by_name["08"].author == "Jürgen Böhm <boehm@messebau-boehm.example>"
    assert "Packaging fees rise in spring" in by_name["04"].text
    assert "What changes for makers" not in by_name["04"].text, "hidden in the newsletter"
    assert by_name["14"].title == "Fwd: Eleven benches – when?"
    assert "I need a date that you\ncan keep" in by_name["14"].text


def test_all_of_it_is_put_once(bucket: MemoryBucket) -> None:
    assert put_samples(bucket, NOW) == 14 + 1 + 9
    there = everything(bucket)
    assert len(there) == 24
    assert put_samples(bucket, NOW + timedelta(days=30)) == 0
    assert everything(bucket) == there


def test_what_a_person_changed_or_deleted_stays_so(bucket: MemoryBucket) -> None:
    put_samples(bucket, NOW)
    bucket.put("metrics/sales.csv", b"date,orders\n", content_type="text/csv")
    bucket.delete("documents/handbook/deliveries.md")
    for info in list(bucket.list("mail/")):
        bucket.delete(info.key)
    before = everything(bucket)
    put_samples(bucket, NOW)
    assert everything(bucket) == before


def test_what_was_there_before_the_samples_stays(bucket: MemoryBucket) -> None:
    bucket.put("metrics/sales.csv", b"mine", content_type="text/csv")
    assert put_samples(bucket, NOW) == 23
    assert bucket.get("metrics/sales.csv", max_bytes=100) == b"mine"


class Dies(MemoryBucket):
    """A bucket that fails after so many writes."""

    writes_left = 10

    def put(self, key: str, body: bytes, *, content_type: str) -> None:
        if not self.writes_left:
            raise OSError("no space left on device")
        self.writes_left -= 1
        super().put(key, body, content_type=content_type)


def test_a_start_that_died_is_finished_by_the_next(bucket: MemoryBucket) -> None:
    dies = Dies()
    with pytest.raises(OSError, match="no space"):
        put_samples(dies, NOW)
    dies.writes_left = 1_000
    assert put_samples(dies, NOW) == 14
    put_samples(bucket, NOW)
    assert everything(dies) == everything(bucket)


def test_the_same_moment_gives_the_same_bytes_and_only_dates_are_moved(bucket: MemoryBucket) -> None:
    put_samples(bucket, sample_material.WRITTEN_FOR)
    there = everything(bucket)
    for path in (SAMPLES / "mail").iterdir():
        assert there[f"mail/daily-digest/{path.name}"] == path.read_bytes()
    for path in (SAMPLES / "documents").iterdir():
        assert there[f"documents/handbook/{path.name}"] == path.read_bytes()
    assert there["metrics/sales.csv"] == (SAMPLES / "metrics" / "sales.csv").read_bytes()


def test_mails_are_moved_by_their_date_header_alone(bucket: MemoryBucket) -> None:
    put_samples(bucket, datetime(2027, 7, 14, 12, tzinfo=UTC))
    for path in (SAMPLES / "mail").iterdir():
        moved = bucket.get(f"mail/daily-digest/{path.name}", max_bytes=10**6).split(b"\n")
        lines = list(zip(path.read_bytes().split(b"\n"), moved, strict=True))
        different = [(before[:6], after[:6]) for before, after in lines if before != after]
        assert different == [(b"Date: ", b"Date: ")], path.name


def test_a_naive_moment_is_refused(bucket: MemoryBucket) -> None:
    with pytest.raises(ValueError, match="has no timezone"):
        put_samples(bucket, datetime(2026, 11, 29))
