"""What a reviewer may write: an edit of a draft, and words beside a rejection. Every door checks it here."""

from unicodedata import category

MAX_TITLE = 300
MAX_BODY = 60_000
"""Characters of an edit. It is kept beside the original in one row, and a row of DynamoDB holds 400 KB.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
"""
MAX_WORDS = 2_000


def checked_title(title: str) -> str:
    """Return the title of an edit as it is kept.

    Raises:
        ValueError: what a title must be: one line, not blank, without control characters, not too long.
    """
    title = _with_plain_line_ends(title)
    if not title.strip() or has_control(title):
        raise ValueError("must be one line of text without control characters")
    return _at_most(MAX_TITLE, title)


def checked_body(body: str) -> str:
    """Return the text of an edit as it is kept, each line ended by a line feed.

    Raises:
        ValueError: what a text must be: not blank, without control characters but line ends and tabs, not too long.
    """
    body = _with_plain_line_ends(body)
    if not body.strip() or has_control(body, but="\n\t"):
        raise ValueError("must be text without control characters other than line ends and tabs")
    return _at_most(MAX_BODY, body)


def checked_words(words: str) -> str:
    """Return a reviewer's words as they are kept, without blanks around them; they may be empty.

    Raises:
        ValueError: what they must be: without control characters but line ends and tabs, not too long.
    """
    words = _with_plain_line_ends(words).strip()
    if has_control(words, but="\n\t"):
        raise ValueError("must be text without control characters other than line ends and tabs")
    return _at_most(MAX_WORDS, words)


def has_control(text: str, but: str = "") -> bool:
    """Tell whether the text holds a control character, a line separator or half of a surrogate pair."""
    return any(category(character) in ("Cc", "Cs", "Zl", "Zp") for character in text if character not in but)


def _with_plain_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _at_most(length: int, text: str) -> str:
    if len(text) > length:
        raise ValueError(f"must have at most {length} characters, not {len(text)}")
    return text
