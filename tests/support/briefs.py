"""Items and briefs for tests of what is made from them."""

from datetime import UTC, datetime
from typing import Any

from galley.drafts import Item
from writing import Brief

SLOT = datetime(2026, 3, 30, 5, 0, tzinfo=UTC)


def an_item(place: int = 1, **fields: Any) -> Item:
    """Return an item; ``fields`` replace the usual ones."""
    usual = {
        "id": f"m{place}",
        "title": f"Letter {place}",
        "text": f"The press number {place} was repaired on Friday and prints again.",
        "source": "inbox",
        "link": f"https://mail.example/{place}",
        "author": "Ada",
        "published": datetime(2026, 3, 29, 17, place % 60, tzinfo=UTC),
    }
    return Item(**{**usual, **fields})


def a_brief(*items: Item, **fields: Any) -> Brief:
    """Return a brief about these items; ``fields`` replace the usual ones."""
    usual = {
        "drafter": "daily-digest",
        "shape": "digest",
        "title": "Morning mail",
        "instructions": "Summarise the morning's mail for the print shop.",
        "items": items,
        "figures": "",
        "slot": SLOT,
        "model": "claude-haiku-5-5",
        "max_input_tokens": 20_000,
        "max_output_tokens": 2_000,
    }
    return Brief(**{**usual, **fields})
