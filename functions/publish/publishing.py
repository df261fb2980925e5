"""Sending an approved draft to its channels, and recording what is known of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from channels import s3
from galley.bucket import Bucket
from galley.drafts import Channel
from galley.observe import logger, tell_outcome
from galley.rules import Review
from galley.runs import Run, RunKey, Status
from galley.store import Conflict, NoSuchRun, Settled, Store, StoredDraft


@dataclass(frozen=True, slots=True)
class Press:
    """What publishing needs: the rows, the bucket that the s3 channel writes to, and the clock."""

    store: Store
    bucket: Bucket
    now: Callable[[], datetime]


def publish(key: RunKey, press: Press) -> Run | None:
    """Send an approved run's text to each of its channels, and return its row as it then is.

    The text is sent only if it is, by its hash, the one that a person approved, or one that its own row says need not
    be reviewed (G8), and only if every channel is one that this version can send to; otherwise nothing is sent and the
    run becomes publish_unknown, for a person to settle. A run that is not approved (any more) is left alone.
    """
    run = press.store.run(key)
    if run is None or run.status is not Status.APPROVED:
        logger.info("run %s is not waiting to be published", key)
        return run
    stored = press.store.draft(key)
    if stored is None or stored.text_hash != run.text_hash:
        return _settle(run, Status.PUBLISH_UNKNOWN, "the stored text is not the text that was approved", press)
    if not may_be_sent(run):
        return _settle(run, Status.PUBLISH_UNKNOWN, "nothing was sent: no person approved this text", press)
    unknown = [channel.kind for channel in stored.draft.channels if channel.kind not in CHANNELS]
    if unknown:
        detail = f"nothing was sent: channel {unknown[0]!r} is not known; this version sends to: {', '.join(CHANNELS)}"
        return _settle(run, Status.PUBLISH_UNKNOWN, detail, press)
    for channel in stored.draft.channels:
        CHANNELS[channel.kind](channel, run, stored, press)
    where = ", ".join(f"{channel.kind}:{channel.target}" for channel in stored.draft.channels)
    return _settle(run, Status.PUBLISHED, where or "no channel", press)


def may_be_sent(run: Run) -> bool:
    """Tell whether an approved run's text was approved by a person who read it, or need not be by its own rules."""
    match run.rules.review:
        case Review.REQUIRED:
            decision = run.decision
            return decision is not None and (decision.edited or decision.read_hash == run.text_hash)
        case Review.NONE:
            return True


def _send_to_s3(channel: Channel, run: Run, stored: StoredDraft, press: Press) -> None:
    s3.send(press.bucket, channel.target, run.key, stored.title, stored.body, stored.draft.attachments)


CHANNELS: Mapping[str, Callable[[Channel, Run, StoredDraft, Press], None]] = {"s3": _send_to_s3}
"""How a draft is sent, by the kind of its channel."""


def _settle(run: Run, status: Status, detail: str, press: Press) -> Run | None:
    match press.store.settle_publication(run, status, detail, now=press.now()):
        case Settled(settled):
            tell_outcome(settled)
            return settled
        case Conflict(current):
            logger.warning("run %s changed while it was published", run.key)
            return current
        case NoSuchRun():
            return None
