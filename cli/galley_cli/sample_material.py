"""The material of the sample drafters, put into the bucket once: a morning's mail, a table of figures, a handbook."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from importlib.resources import files
from importlib.resources.abc import Traversable

from galley.bucket import Bucket
from galley.instants import format_instant, in_utc
from galley.schedule import calendar_of

MARKER = "samples/put.json"
"""Its presence in the bucket says that the material has been put."""

DIGEST_EXPRESSION, DIGEST_ZONE = "cron(0 6 ? * MON-FRI *)", "Europe/London"
"""When the sample digest is due, as template.yaml has it; a test compares the two."""

WRITTEN_FOR = datetime(2026, 11, 27, 6, tzinfo=UTC)
"""The digest's slot that the mails were written for: all of them are of the evening, night and morning before it."""

LAST_SUNDAY = date(2026, 11, 22)
"""The last day of the table as it was written."""

_CONTENT_TYPES = {".eml": "message/rfc822", ".csv": "text/csv; charset=utf-8", ".md": "text/markdown; charset=utf-8"}
_DATE_HEADER = re.compile(rb"^Date: ([^\r\n]+)", re.MULTILINE)
_DATE_CELL = re.compile(rb"^(\d{4}-\d{2}-\d{2}),", re.MULTILINE)


def put_samples(bucket: Bucket, now: datetime) -> int:
    """Put the sample material where the sample drafters look for it, once, and return how many objects were written.

    It is made as old as it must be for the drafters' latest slots to find it, whenever that is: the mails are dated to
    the evening and night before the digest's latest slot, and the table ends on the last Sunday before ``now``, so that
    the latest weekly report has its two whole weeks. The times of day and the table's days of the week stay as they
    were. The same ``now`` gives the same bytes.

    A marker is written last. With it in the bucket nothing is written any more, so what a person changes or deletes
    stays so; without it, objects that are already there are left as they are.

    Raises:
        ValueError: for a naive datetime.
    """
    now = in_utc(now)
    if any(info.key == MARKER for info in bucket.list(MARKER)):
        return 0
    there: set[str] = set()
    for prefix in ("mail/daily-digest/", "metrics/", "documents/handbook/"):
        there.update(info.key for info in bucket.list(prefix))
    written = 0
    for key, body in sorted(_material(now)):
        if key in there:
            continue
        bucket.put(key, body, content_type=_CONTENT_TYPES[key[key.rindex(".") :]])
        written += 1
    bucket.put(MARKER, json.dumps({"put": format_instant(now)}).encode(), content_type="application/json")
    return written


def _material(now: datetime) -> Iterator[tuple[str, bytes]]:
    samples = files("galley_cli") / "samples"
    later = _latest_digest(now) - WRITTEN_FOR
    for file in _files(samples / "mail", ".eml"):
        yield f"mail/daily-digest/{file.name}", _redate_mail(file.read_bytes(), later)
    for file in _files(samples / "metrics", ".csv"):
        yield f"metrics/{file.name}", _redate_table(file.read_bytes(), _last_sunday(now) - LAST_SUNDAY)
    for file in _files(samples / "documents", ".md"):
        yield f"documents/handbook/{file.name}", file.read_bytes()


def _files(folder: Traversable, ending: str) -> list[Traversable]:
    return [file for file in folder.iterdir() if file.name.endswith(ending)]


def _latest_digest(now: datetime) -> datetime:
    slot = calendar_of(DIGEST_EXPRESSION, DIGEST_ZONE, WRITTEN_FOR).latest_until(now)
    return WRITTEN_FOR if slot is None else slot


def _last_sunday(now: datetime) -> date:
    yesterday = now.date() - timedelta(days=1)
    return yesterday - timedelta(days=yesterday.isoweekday() % 7)


def _redate_mail(message: bytes, later: timedelta) -> bytes:
    def redate(found: re.Match[bytes]) -> bytes:
        moment = parsedate_to_datetime(found[1].decode("ascii"))
        return b"Date: " + format_datetime(moment + later).encode("ascii")

    return _DATE_HEADER.sub(redate, message, count=1)


def _redate_table(table: bytes, later: timedelta) -> bytes:
    def redate(found: re.Match[bytes]) -> bytes:
        return (date.fromisoformat(found[1].decode("ascii")) + later).isoformat().encode("ascii") + b","

    return _DATE_CELL.sub(redate, table)
