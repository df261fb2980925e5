"""Money: whole nano-dollars everywhere, so that sums are exact; dollars only where a person writes or reads them."""

NANOUSD = 1_000_000_000
"""How many nano-dollars a US dollar has."""


def usd(nanousd: int) -> str:
    """Return an amount for a person to read, in dollars with four decimals: ``$0.0123``."""
    return f"${nanousd / NANOUSD:.4f}"
