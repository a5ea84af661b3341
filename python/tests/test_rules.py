"""Rules: the numbers, the defaults and the errors are those of the library."""

import numpy as np
import pytest

import paceline

RULES = [paceline.Sgd, paceline.Momentum, paceline.Adam, paceline.AdamW, paceline.Adagrad, paceline.Rmsprop, paceline.Ftrl,
         paceline.DelayedNesterov, paceline.Ema, paceline.Add, paceline.Assign]


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_what_its_text_says(rule: type[paceline.Rule]) -> None:
    made = rule()
    assert eval(repr(made), vars(paceline)) == made
    assert isinstance(made, paceline.Rule)
    assert hash(made) == hash(rule())


def test_numbers_are_given_by_place_or_name_and_read_as_given() -> None:
    rule = paceline.Adam(3e-4, beta2=0.95)
    assert (rule.learning_rate, rule.beta1, rule.beta2, rule.epsilon) == (3e-4, 0.9, 0.95, 1e-8)
    assert paceline.Adam(np.float32(0.5)).learning_rate == 0.5
    assert paceline.Momentum(nesterov=True).nesterov is True


def test_rules_of_other_numbers_differ() -> None:
    assert paceline.Adam(1e-3) == paceline.Adam()
    assert paceline.Adam(1e-3) != paceline.Adam(2e-3)
    assert paceline.Adam() != paceline.AdamW()
    assert paceline.Adam() != "adam"


def test_a_number_out_of_range_is_a_value_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="beta1 = 1.5: must be at least 0 and below 1") as caught:
        paceline.Adam(beta1=1.5)
    assert isinstance(caught.value, paceline.Error)
    assert caught.value.code == paceline.ErrorCode.INVALID_ARGUMENT
    for number in (float("nan"), float("inf"), -1.0):
        with pytest.raises(ValueError, match="learning"):
            paceline.Sgd(number)


def test_a_rule_does_not_change() -> None:
    with pytest.raises(AttributeError):
        paceline.Adam().beta1 = 0.5  # type: ignore[misc]


def test_slots_are_named() -> None:
    assert paceline.Adam().name == "adam"
    assert paceline.Adam().slots == ("m", "v", "t")
    assert paceline.Sgd().slots == ()


def test_momentum_rounds_as_torch_does() -> None:
    random = np.random.default_rng(1)
    initial, *gradients = random.standard_normal((4, 10007), np.float32)
    w, m = initial.copy(), np.zeros_like(initial)
    for gradient in gradients:
        m = np.float32(0.9) * m + gradient  # the product is rounded, and then the sum
        w = (w - np.float64(np.float32(0.01)) * m).astype(np.float32)  # rounded once
    with paceline.Store({"w": initial}, paceline.Momentum(0.01, 0.9), quiet=True) as store:
        for gradient in gradients:
            with store.step():
                store.ready("w", gradient)
        assert np.array_equal(store.read("w"), w)
