"""How long the other side of a request asks us to wait, in the headers of its answer. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Return how long the other side asks us to wait, as it says it; the caller decides how much of that is sane.

    Reads ``retry-after-ms`` and both forms of ``retry-after`` (RFC 9110, section 10.2.3). What cannot be read, and a
    wait that is over, is None.
    """
    for name, seconds in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait = timedelta(seconds=float(headers[name]) * seconds)
        except OverflowError:
            wait = timedelta.max if float(headers[name]) > 0 else timedelta(0)
        except (KeyError, ValueError):
            continue
        return wait if wait > timedelta(0) else None
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, OverflowError):
        return None
    wait = (until if until.tzinfo else until.replace(tzinfo=UTC)) - now
    return wait if wait > timedelta(0) else None
