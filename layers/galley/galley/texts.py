"""Text that is shown to a person: cut to a length, put on one line, listed and counted, in one way everywhere."""

from collections.abc import Sequence

CUT_MARK = " [… cut]"
"""What stands at the end of a text that goes on."""


def clip(text: str, limit: int) -> str:
    """Return the text, or as much of its beginning as fits into ``limit`` characters with a mark that it is cut."""
    if len(text) <= limit:
        return text
    if limit <= len(CUT_MARK):
        return text[:limit]
    return text[: limit - len(CUT_MARK)].rstrip() + CUT_MARK


def clip_bytes(text: str, limit: int) -> str:
    """Return the text, or as much of its beginning as has ``limit`` bytes in UTF-8, and the mark that it is cut."""
    encoded = text.encode()
    if len(encoded) <= limit:
        return text
    return encoded[: max(0, limit - len(CUT_MARK.encode()))].decode(errors="ignore") + CUT_MARK


def one_line(text: str, limit: int | None = None) -> str:
    """Return the text on one line, with single spaces, and clipped where there is a limit."""
    line = " ".join(text.split())
    return line if limit is None else clip(line, limit)


def listed(things: Sequence[object], at_most: int) -> str:
    """Return the things joined by commas, the first ``at_most`` of them, and how many more there are."""
    shown = ", ".join(map(str, things[:at_most]))
    return shown if len(things) <= at_most else f"{shown} and {len(things) - at_most} more"


def counted(number: int, one: str, many: str) -> str:
    """Return the number with its noun: ``1 message``, ``1,200 messages``."""
    return f"{number:,} {one if number == 1 else many}"
