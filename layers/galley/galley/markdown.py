"""Plain text as Markdown that shows it and nothing else: no link, image, code, stress, entity or tag comes of it."""

import re

from galley.texts import one_line

_CLOSING_MARKS = re.compile(r"(?<!\S)#+$")


def heading(title: str) -> str:
    """Return a title, which is plain text, as a Markdown heading of the first level, on one line."""
    return f"# {_CLOSING_MARKS.sub(_escaped_marks, escape(one_line(title)))}"


def escape(text: str) -> str:
    """Return plain text so that CommonMark shows it as it is within a line (https://spec.commonmark.org/0.31.2/).

    What only counts at the beginning of a line (a heading, a list, a quotation) is not the concern of this function.
    """
    text = re.sub(r"[\\`*\[\]]", r"\\\g<0>", text)
    text = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", text)
    text = escape_entities(text.replace("~~", r"\~\~"))
    return text.replace("<", "&lt;")


def escape_entities(text: str) -> str:
    """Return the text with each ``&`` escaped that would begin an entity."""
    return re.sub(r"&(?=#|[a-z][a-z0-9]*;)", "&amp;", text, flags=re.IGNORECASE)


def _escaped_marks(found: re.Match[str]) -> str:
    # Marks at the end of a heading close it, and would not be shown.
    return rf"\{found[0]}"
