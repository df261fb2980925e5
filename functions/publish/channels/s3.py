"""The s3 channel: one Markdown object for each published draft.

The key is the run's, so that sending the same draft twice leaves one object (G8: it can deduplicate).
"""

from galley.bucket import Bucket
from galley.instants import format_instant
from galley.markdown import heading
from galley.runs import RunKey


def object_key(prefix: str, run: RunKey) -> str:
    """Return where a run's draft is published, like ``published/daily-digest/2026-03-29T05:00:00Z.md``."""
    return f"{prefix.rstrip('/')}/{run.drafter}/{format_instant(run.slot)}.md"


def send(bucket: Bucket, prefix: str, run: RunKey, title: str, body: str) -> None:
    """Write the draft as Markdown, its title as the first heading.

    The title is plain text, so it is escaped: a subject of a mail may stand in it.
    """
    text = f"{heading(title)}\n\n{body}\n"
    bucket.put(object_key(prefix, run), text.encode(), content_type="text/markdown; charset=utf-8")
