"""What a model call costs, in nano-dollars: whole numbers, since a million tokens cost as little as ten cents."""

from dataclasses import dataclass
from datetime import date

from galley.retry import NeverSucceeds
from galley.runs import Usage

BEDROCK_PERCENT = 110
"""What Bedrock is booked at, as a percentage of the list price.

AWS says that its global endpoints save about a tenth against those that keep to a geography; ``bedrock-mantle`` has
regional endpoints and its prices were not to be found, so the dearer is booked.
https://docs.aws.amazon.com/bedrock/latest/userguide/global-cross-region-inference.html
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


_READ = date(2026, 11, 29)

_OPUS_5 = Price(_READ, Rates(5_000, 25_000, 10_000, 500))
_FABLE_5 = Price(_READ, Rates(10_000, 50_000, 20_000, 1_000))
_FABLE_5_1 = Price(_READ, Rates(10_000, 50_000, 20_000, 250))

PRICES: dict[str, tuple[Price, ...]] = {
    "claude-haiku-5-5": (
        Price(_READ, Rates(100, 500, 200, 10), tier_tokens=100_000, above=Rates(500, 2_500, 1_000, 50)),
    ),
    "claude-sonnet-5-5": (Price(_READ, Rates(2_000, 10_000, 4_000, 100)),),
    "claude-sonnet-5": (Price(_READ, Rates(2_000, 10_000, 4_000, 200)),),
    "claude-sonnet-4-6": (Price(_READ, Rates(3_000, 15_000, 6_000, 300)),),
    "claude-opus-5-5": (Price(_READ, Rates(4_000, 20_000, 8_000, 200)),),
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

Read on 29 November 2026 from https://platform.claude.com/docs/en/about-claude/pricing and the pages of the models
(https://platform.claude.com/docs/en/models/haiku-5-5/overview). A cache write for one hour costs twice the input rate,
which is also how the rates were found that those pages leave out. Models that are deprecated, or whose official price
was not to be found (Fable 5.2, Mythos 5.2), are left out on purpose.
"""


def price(model: str, usage: Usage, on: date, percent: int = 100) -> int:
    """Return what a call cost, in nano-dollars, at ``percent`` of the list price of the UTC day ``on``, rounded up.

    Before the first known price that one is taken.

    Raises:
        UnknownModel: one line that names the models whose price is known.
    """
    prompt = usage.input_tokens + usage.cache_write_tokens + usage.cache_read_tokens
    rates = _rates(model, prompt, on)
    cost = (
        usage.input_tokens * rates.input
        + usage.output_tokens * rates.output
        + usage.cache_write_tokens * rates.cache_write
        + usage.cache_read_tokens * rates.cache_read
    )
    return -(-cost * percent // 100)


def worst_cost(model: str, max_input_tokens: int, max_output_tokens: int, on: date, percent: int = 100) -> int:
    """Return the most that a call within both limits can cost, in nano-dollars; this is what a run reserves.

    Raises:
        UnknownModel: one line that names the models whose price is known.
    """
    return price(model, Usage(input_tokens=max_input_tokens, output_tokens=max_output_tokens), on, percent)


def _rates(model: str, prompt_tokens: int, on: date) -> Rates:
    known = PRICES.get(model)
    if known is None:
        raise UnknownModel(
            "unknown_model", f"the price of model {model!r} is not known; use one of {', '.join(sorted(PRICES))}"
        )
    current = known[0]
    for later in known[1:]:
        if later.since <= on:
            current = later
    if current.above is not None and current.tier_tokens is not None and prompt_tokens > current.tier_tokens:
        return current.above
    return current.rates
