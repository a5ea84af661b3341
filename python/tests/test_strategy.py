"""Strategies: names and options are those of the flags."""

import re
import subprocess

import pytest

import paceline


def test_options_are_the_commands_flags(command: str) -> None:
    help_text = subprocess.run([command, "train", "mlp", "--help"], check=True, capture_output=True, text=True).stdout
    options = [name for name, value in vars(paceline.Strategy).items() if isinstance(value, property) and name != "name"]
    assert len(options) == 8
    for option in options:
        assert re.search(rf"--{option.replace('_', '-')}\b", help_text), option
    for name in paceline.strategy_names():
        assert re.search(rf"\b{name}\b", help_text), name


def test_a_strategy_is_what_its_text_says() -> None:
    for strategy in (paceline.Strategy(), paceline.Strategy("ssp", staleness=3), paceline.Strategy("sync", late="fold"),
                     paceline.Strategy("local_sgd", local_steps=8, outer_rate=1, outer_momentum=0, outer="async"),
                     paceline.Strategy("sync", replicas_to_aggregate=None), paceline.Strategy("auto")):
        assert eval(repr(strategy), vars(paceline)) == strategy
        assert hash(strategy) == hash(eval(repr(strategy), vars(paceline)))


def test_options_are_read_as_they_were_given() -> None:
    strategy = paceline.Strategy("local_sgd", outer_rate=0.9, outer="async")
    assert (strategy.name, strategy.outer_rate, strategy.outer, strategy.local_steps) == ("local_sgd", 0.9, "async", 20)
    assert strategy != paceline.Strategy("local_sgd")


@pytest.mark.parametrize("options, message", [
    ({"staleness": -1}, "staleness is -1, and must be a whole number from 0 to 1000000"),
    ({"staleness": 1.5}, "staleness is 1.5, and must be a whole number"),
    ({"staleness": True}, "staleness is True"),
    ({"staleness": None}, "staleness is None"),
    ({"late": "never"}, "late is 'never', and must be drop or fold"),
    ({"outer_rate": 0}, "outer_rate is 0, and must be above 0"),
    ({"outer_momentum": 1}, "outer_momentum is 1, and must be a number from 0 to below 1"),
    ({"outer_rate": float("nan")}, "outer_rate is nan"),
    ({"local_steps": 0}, "local_steps is 0"),
])
def test_a_value_that_cannot_be_is_a_value_error(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        paceline.Strategy("sync", **options)  # type: ignore[arg-type]


def test_a_name_that_there_is_not_is_told_with_all_names() -> None:
    with pytest.raises(ValueError, match="none named 'synch'; there are alone, async, ssp, sync"):
        paceline.Strategy("synch")


def test_an_option_that_there_is_not_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="no option 'stale'; it has staleness"):
        paceline.Strategy("ssp", stale=1)  # type: ignore[call-arg]
