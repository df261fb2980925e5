"""Instants: aware datetimes in UTC, and their one text form, ``2026-03-29T05:00:00Z``."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the present instant in UTC."""
    return datetime.now(UTC)


def in_utc(moment: datetime) -> datetime:
    """Return the same instant in UTC.

    Instants are compared only in UTC: Python compares two datetimes of one zone by wall clock and
    ignores the fold, so the repeated hour of an autumn night would compare wrongly.

    Raises:
        ValueError: for a naive datetime; guessing its zone would move slots by hours. Also for one whose instant in
            UTC lies outside the years 1 to 9999, which no datetime can hold.
    """
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no timezone; give an aware datetime")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{moment.isoformat()} is outside the years 1 to 9999 in UTC") from error


def to_the_second(moment: datetime) -> datetime:
    """Return the same instant in UTC without its fraction of a second, which is how rows, slots and cursors keep it.

    Raises:
        ValueError: as ``in_utc`` does.
    """
    return in_utc(moment).replace(microsecond=0)


def format_instant(moment: datetime) -> str:
    """Return ``YYYY-MM-DDTHH:MM:SSZ``, dropping fractions of a second. Sorts as it reads.

    Raises:
        ValueError: for a naive datetime.
    """
    # strftime("%Y") gives the year 1 without its zeros on Linux.
    return f"{in_utc(moment).replace(microsecond=0, tzinfo=None).isoformat()}Z"


def parse_instant(text: str) -> datetime:
    """Return the instant that an ISO 8601 text with an offset names, in UTC.

    Raises:
        ValueError: when the text is not ISO 8601, has no offset, or names an instant that no datetime can hold.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not an instant like 2026-03-29T05:00:00Z") from error
    if moment.tzinfo is None:
        whole = moment.isoformat(timespec="seconds")
        raise ValueError(f"{text!r} has no timezone; write {whole}Z for UTC, or an offset like {whole}+01:00")
    return in_utc(moment)
