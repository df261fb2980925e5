"""What a model call costs, in nano-dollars: whole numbers, since a million tokens cost as little as ten cents."""

from dataclasses import dataclass
from datetime import date, timedelta

from galley.retry import NeverSucceeds
from galley.runs import Usage

BEDROCK_PERCENT = 110
"""What Bedrock is booked at, as a percentage of the list price.

AWS says that its global endpoints save about a tenth against those that keep to a geography; ``bedrock-mantle`` has
regional endpoints and its prices were not to be found, so the dearer is booked.
https://docs.aws.amazon.com/bedrock/latest/userguide/global-cross-region-inference.html
"""

US_PERCENT = 110
"""What Anthropic's API is booked at where a call ran in the United States only, as a percentage of the list price.

Galley asks for no place, but a workspace can have one as its default, so this is what a call may cost at worst.
https://docs.aws.amazon.com/claude-platform/latest/userguide/data-residency.md
"""

MISCOUNTED = 2
"""How many times the tokens that were estimated a prompt may have, as far as its tier is concerned.

The estimate of a prompt counts more than half a token for each letter of a word, and no token is less than a letter.
"""


class UnknownModel(NeverSucceeds, ValueError):
    """A model whose price is not in the table; it is not called, since its cost could not be bounded."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Nano-dollars for each token.

    ``cache_write`` is the rate of the one-hour cache, the dearer of the two: Galley asks for no caching, and should a
    gateway do so, the usage that is kept does not tell the two apart.
    """

    input: int
    output: int
    cache_write: int
    cache_read: int


@dataclass(frozen=True, slots=True)
class Price:
    """A model's price from a day on. A prompt above ``tier_tokens`` is billed wholly at the ``above`` rates."""

    since: date
    rates: Rates
    tier_tokens: int | None = None
    above: Rates | None = None


READ = date(2026, 11, 29)
"""The day on which the prices below were read from their source."""

SOURCE = "https://platform.claude.com/docs/en/about-claude/pricing"
"""Where they were read, and on the pages of the models, such as
https://platform.claude.com/docs/en/models/haiku-5-5/overview."""

_OPUS_5 = Price(READ, Rates(5_000, 25_000, 10_000, 500))
_FABLE_5 = Price(READ, Rates(10_000, 50_000, 20_000, 1_000))
_FABLE_5_1 = Price(READ, Rates(10_000, 50_000, 20_000, 250))

PRICES: dict[str, tuple[Price, ...]] = {
    "claude-haiku-5-5": (
        Price(READ, Rates(100, 500, 200, 10), tier_tokens=100_000, above=Rates(500, 2_500, 1_000, 50)),
    ),
    "claude-sonnet-5-5": (Price(READ, Rates(2_000, 10_000, 4_000, 100)),),
    "claude-sonnet-5": (Price(READ, Rates(2_000, 10_000, 4_000, 200)),),
    "claude-sonnet-4-6": (Price(READ, Rates(3_000, 15_000, 6_000, 300)),),
    "claude-opus-5-5": (Price(READ, Rates(4_000, 20_000, 8_000, 200)),),
    "claude-opus-5": (_OPUS_5,),
    "claude-opus-4-8": (_OPUS_5,),
    "claude-opus-4-7": (_OPUS_5,),
    "claude-opus-4-6": (_OPUS_5,),
    "claude-fable-5-1": (_FABLE_5_1,),
    "claude-mythos-5-1": (_FABLE_5_1,),
    "claude-fable-5": (_FABLE_5,),
    "claude-mythos-5": (_FABLE_5,),
}
"""The prices of each model, oldest first. A change of price is a further entry, with the day from which it holds.

Where no change is known the day is that of reading. A cache write for one hour costs twice the input rate, which is
also how the rates were found that the pages leave out. Models that are deprecated, or whose official price was not to
be found (Fable 5.2, Mythos 5.2), are left out on purpose.
"""


def price(model: str, usage: Usage, on: date, percent: int = 100) -> int:
    """Return what a call cost, in nano-dollars, at ``percent`` of the list price of the UTC day ``on``, rounded up.

    Before the first known price that one is taken.

    Raises:
        UnknownModel: one line that names the models whose price is known.
    """
    prompt = usage.input_tokens + usage.cache_write_tokens + usage.cache_read_tokens
    return _cost(usage, _rates(_price_on(model, on), prompt), percent)


def worst_cost(model: str, max_input_tokens: int, max_output_tokens: int, on: date, percent: int = 100) -> int:
    """Return the most that a call within both limits can cost, in nano-dollars; this is what a run reserves.

    The call is made later, perhaps on the next UTC day, so the dearer of both days' prices is taken. The tokens of its
    prompt are an estimate, so the dearer tier is taken where a wrong one could reach it.

    Raises:
        UnknownModel: one line that names the models whose price is known.
    """
    usage = Usage(input_tokens=max_input_tokens, output_tokens=max_output_tokens)
    days = (on, on + timedelta(days=1))
    return max(_cost(usage, _rates(_price_on(model, day), max_input_tokens * MISCOUNTED), percent) for day in days)


def _cost(usage: Usage, rates: Rates, percent: int) -> int:
    cost = (
        usage.input_tokens * rates.input
        + usage.output_tokens * rates.output
        + usage.cache_write_tokens * rates.cache_write
        + usage.cache_read_tokens * rates.cache_read
    )
    return -(-cost * percent // 100)


def _price_on(model: str, on: date) -> Price:
    known = PRICES.get(model)
    if known is None:
        raise UnknownModel(
            "unknown_model", f"the price of model {model!r} is not known; use one of {', '.join(sorted(PRICES))}"
        )
    current = known[0]
    for later in known[1:]:
        if later.since <= on:
            current = later
    return current


def _rates(price: Price, prompt_tokens: int) -> Rates:
    if price.above is not None and price.tier_tokens is not None and prompt_tokens > price.tier_tokens:
        return price.above
    return price.rates
