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


@pytest.mark.guarantee("G11")
def test_g11_the_worst_cost_is_the_dearer_of_the_days_on_which_the_call_may_be_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    low, high = Rates(1, 1, 1, 1), Rates(2, 2, 2, 2)
    steps = (Price(date(2026, 1, 1), low), Price(date(2026, 6, 1), high), Price(date(2026, 7, 1), low))
    monkeypatch.setitem(prices.PRICES, "claude-test", steps)
    days = (date(2026, 5, 30), date(2026, 5, 31), date(2026, 6, 1), date(2026, 6, 30), date(2026, 7, 1))
    assert [worst_cost("claude-test", 10, 10, day) for day in days] == [20, 40, 40, 40, 20]


@pytest.mark.guarantee("G11")
@pytest.mark.parametrize(
    ("max_input_tokens", "rate"),
    [pytest.param(50_000, 100, id="out of reach"), pytest.param(50_001, 500, id="within reach of a wrong estimate")],
)
def test_g11_the_worst_cost_is_that_of_the_dearest_tier_within_reach(max_input_tokens: int, rate: int) -> None:
    assert worst_cost("claude-haiku-5-5", max_input_tokens, 0, TODAY) == max_input_tokens * rate


def test_a_table_of_prices_says_when_and_where_they_were_read() -> None:
    assert prices.SOURCE.startswith("https://")
    assert all(step.since <= prices.READ for steps in PRICES.values() for step in steps[:1])


@pytest.mark.parametrize("model", sorted(PRICES))
def test_every_rate_is_there_and_prices_stand_oldest_first(model: str) -> None:
    steps = PRICES[model]
    assert [step.since for step in steps] == sorted(step.since for step in steps)
    for step in steps:
        assert (step.tier_tokens is None) == (step.above is None)
        for rates in filter(None, (step.rates, step.above)):
            assert 0 < rates.cache_read < rates.input < rates.cache_write < rates.output
