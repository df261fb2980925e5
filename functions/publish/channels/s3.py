"""The s3 channel: one Markdown object for each published draft, and its attachments beside it.

The keys are the run's, so that sending the same draft twice leaves one of each (G8: it can deduplicate).
"""

from collections.abc import Sequence

from galley.bucket import Bucket
from galley.drafts import Attachment
from galley.instants import format_instant
from galley.markdown import heading
from galley.runs import RunKey


def object_key(prefix: str, run: RunKey) -> str:
    """Return where a run's draft is published, like ``published/daily-digest/2026-03-29T05:00:00Z.md``."""
    return f"{_stem(prefix, run)}.md"


def attachment_key(prefix: str, run: RunKey, name: str) -> str:
    """Return where an attachment is published, like ``published/weekly-report/2026-03-30T12:00:00Z.chart.svg``."""
    return f"{_stem(prefix, run)}.{name}"


def _stem(prefix: str, run: RunKey) -> str:
    return f"{prefix.rstrip('/')}/{run.drafter}/{format_instant(run.slot)}"


def send(
    bucket: Bucket, prefix: str, run: RunKey, title: str, body: str, attachments: Sequence[Attachment] = ()
) -> None:
    """Write the draft as Markdown, its title as the first heading, after the attachments that go with it.

    The title is plain text, so it is escaped: a subject of a mail may stand in it.
    """
    for one in attachments:
        key = attachment_key(prefix, run, one.name)
        bucket.put(key, one.text.encode(), content_type=f"{one.media_type}; charset=utf-8")
    text = f"{heading(title)}\n\n{body}\n"
    bucket.put(object_key(prefix, run), text.encode(), content_type="text/markdown; charset=utf-8")
