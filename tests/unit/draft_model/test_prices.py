from datetime import date

import pytest

import prices
from galley.retry import NeverSucceeds
from galley.runs import Usage
from prices import PRICES, Price, Rates, UnknownModel, price, worst_cost

TODAY = date(2026, 12, 1)


@pytest.mark.parametrize(
    ("model", "usage", "cost"),
    [
        pytest.param("claude-haiku-5-5", Usage(20_000, 1_500), 2_750_000, id="a digest costs a quarter of a cent"),
        pytest.param("claude-sonnet-5-5", Usage(20_000, 1_500), 55_000_000, id="twenty times as much"),
        pytest.param("claude-haiku-5-5", Usage(100_000, 0), 100_000 * 100, id="at the threshold"),
        pytest.param("claude-haiku-5-5", Usage(100_001, 0), 100_001 * 500, id="above the threshold"),
        pytest.param(
            "claude-haiku-5-5", Usage(1, 0, 50_000, 50_000), 1 * 500 + 50_000 * 1_050, id="cached tokens count too"
        ),
        pytest.param("claude-opus-5-5", Usage(), 0, id="nothing used"),
    ],
)
def test_a_call_costs_its_tokens_at_the_rates_of_its_tier(model: str, usage: Usage, cost: int) -> None:
    assert price(model, usage, TODAY) == cost


def test_a_surcharge_is_rounded_up() -> None:
    assert price("claude-haiku-5-5", Usage(0, 0, 0, 1), TODAY, percent=101) == 11


def test_an_unknown_model_is_refused_with_the_known_ones_named() -> None:
    for ask in (
        lambda: price("gpt-9", Usage(), TODAY),
        lambda: worst_cost("claude-haiku-55", 1, 1, TODAY),
    ):
        with pytest.raises(UnknownModel, match="claude-haiku-5-5, claude-mythos-5") as raised:
            ask()
        assert isinstance(raised.value, ValueError)
        assert isinstance(raised.value, NeverSucceeds)


@pytest.mark.guarantee("G11")
@pytest.mark.parametrize("model", sorted(PRICES))
def test_g11_no_call_within_its_limits_costs_more_than_its_worst_cost(model: str) -> None:
    most = worst_cost(model, 20_000, 2_000, TODAY)
    for used in (
        Usage(20_000, 2_000),
        Usage(19_999, 2_000),
        Usage(1, 2_000),
        Usage(20_000, 1),
        Usage(10_000, 0, 0, 10_000),
    ):
        assert 0 < price(model, used, TODAY) <= most


def test_a_price_holds_from_its_day_on(monkeypatch: pytest.MonkeyPatch) -> None:
    cheap, dear = Rates(1, 1, 1, 1), Rates(2, 2, 2, 2)
    steps = (Price(date(2026, 1, 1), cheap), Price(date(2026, 6, 1), dear))
    monkeypatch.setitem(prices.PRICES, "claude-test", steps)
    days = (date(2025, 1, 1), date(2026, 5, 31), date(2026, 6, 1), date(2027, 1, 1))
    assert [price("claude-test", Usage(1), day) for day in days] == [1, 1, 2, 2]


@pytest.mark.parametrize("model", sorted(PRICES))
def test_every_rate_is_there_and_prices_stand_oldest_first(model: str) -> None:
    steps = PRICES[model]
    assert [step.since for step in steps] == sorted(step.since for step in steps)
    for step in steps:
        assert (step.tier_tokens is None) == (step.above is None)
        for rates in filter(None, (step.rates, step.above)):
            assert 0 < rates.cache_read < rates.input < rates.cache_write < rates.output
