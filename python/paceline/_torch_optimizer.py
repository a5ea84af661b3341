"""Optimizers of torch as rules: each worker updates its own values by them, and the store keeps and saves their state."""

import copy
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ._errors import InvalidArgument
from ._paceline import Rule, code_rule

_MOST_SLOTS = 3  # the slots of a rule
_STEP = "step"  # the state that counts a parameter's updates, which the store counts, too


def rules_of(optimizer: torch.optim.Optimizer, names: dict[int, str]) -> dict[str, Rule]:
    """A rule for each parameter of an optimizer. names: of the parameters by their id. Raises ValueError that names the
    optimizer and a parameter or a state that cannot be kept."""
    return {names[id(parameter)]: _rule_of(optimizer, group, parameter, names[id(parameter)])
            for group in optimizer.param_groups for parameter in group["params"]}


def rate_of(group: dict[str, Any]) -> float:
    """The learning rate of a group before a scheduler has changed it; 1 for an optimizer that has none."""
    return float(group.get("initial_lr", group.get("lr", 1.0)))


def _rule_of(optimizer: torch.optim.Optimizer, group: dict[str, Any], parameter: torch.nn.Parameter, name: str) -> Rule:
    kind = type(optimizer).__name__
    before = _plain(optimizer.state.get(parameter, {}))
    if _counted(before) > 0:
        raise InvalidArgument(f"distribute: {kind} has made steps already, and the store begins with none: give a new one; a "
                              "training goes on by the flags out and resume")
    slots = _slots_of(optimizer, group, parameter, before, name)
    update = _Update(optimizer, group, tuple(parameter.shape), before, slots)
    return code_rule(_word("torch_" + kind.lower(), kind), rate_of(group), [_word(slot.lower(), kind) for slot in slots], update)


class _Update:
    """The update of one parameter, by a copy of its optimizer that has no other, on the memory that the store lends it."""

    def __init__(self, optimizer: torch.optim.Optimizer, group: dict[str, Any], shape: tuple[int, ...], before: dict[str, Any],
                 slots: Sequence[str]) -> None:
        self._group, self._shape, self._before, self._slots = group, shape, before, slots
        self._single = _single(optimizer)

    def __call__(self, value: NDArray[np.float32], slots: list[NDArray[np.float32]], gradient: NDArray[np.float32],
                 count: int) -> None:
        kept = {name: self._view(slot) for name, slot in zip(self._slots, slots, strict=True)}
        state = copy.deepcopy(self._before)
        if count > 1:
            state.update(kept)
        if _STEP in state:
            state[_STEP] = _like(state[_STEP], count - 1)
        elif count > 1:
            state[_STEP] = torch.tensor(float(count - 1))
        after = _step(self._single, self._group, self._view(value), self._view(gradient), state)
        for name, slot in kept.items():
            if name in after and after[name].data_ptr() != slot.data_ptr():
                slot.copy_(after[name])

    def _view(self, array: NDArray[np.float32]) -> torch.Tensor:
        return torch.from_numpy(array).view(self._shape)


def _single(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """A copy of an optimizer, for one parameter at a time: without hooks, and without whatever has replaced its step."""
    single: torch.optim.Optimizer = object.__new__(type(optimizer))
    single.__dict__.update({key: value for key, value in optimizer.__dict__.items()
                            if key != "step" and not key.startswith("_optimizer_")})
    for key, value in optimizer.__dict__.items():
        if key.startswith("_optimizer_"):
            single.__dict__[key] = type(value)()
    return single


def _step(single: torch.optim.Optimizer, group: dict[str, Any], value: torch.Tensor, gradient: torch.Tensor,
          state: dict[str, Any]) -> dict[str, Any]:
    """Makes a step of one parameter in its memory; what the optimizer then keeps for it."""
    parameter = torch.nn.Parameter(value)
    parameter.grad = gradient
    single.param_groups = [{**group, "params": [parameter]}]
    single.state = defaultdict(dict)
    if state:
        single.state[parameter] = state
    single.step()
    return dict(single.state[parameter])


def _slots_of(optimizer: torch.optim.Optimizer, group: dict[str, Any], parameter: torch.nn.Parameter, before: dict[str, Any],
              name: str) -> list[str]:
    """The names of the state that is as large as the parameter, as two steps on a copy of it show."""
    kind = type(optimizer).__name__
    value, state = parameter.detach().cpu().clone(), copy.deepcopy(before)
    try:
        for _ in range(2):
            state = _step(_single(optimizer), group, value, torch.ones_like(value), state)
    except Exception as error:  # of whatever kind the optimizer's author has chosen
        raise InvalidArgument(f"distribute: {kind} cannot update parameter '{name}' by itself, which a store asks of it: {error}"
                              ) from error
    slots = []
    for key, kept in state.items():
        if key == _STEP or kept is None:
            continue
        if not isinstance(kept, torch.Tensor) or kept.shape != parameter.shape or kept.dtype != torch.float32:
            raise InvalidArgument(f"distribute: {kind} keeps '{key}' for parameter '{name}', which is no float32 of its shape and "
                                  "could not be saved: use another optimizer, or a rule of Paceline")
        slots.append(key)
    if len(slots) > _MOST_SLOTS:
        raise InvalidArgument(f"distribute: {kind} keeps {', '.join(slots)} for parameter '{name}': a store keeps at most "
                              f"{_MOST_SLOTS} of them")
    return slots


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    return {key: value.detach().cpu().clone() if isinstance(value, torch.Tensor) else value for key, value in state.items()}


def _counted(state: dict[str, Any]) -> float:
    made = state.get(_STEP)
    return float(made) if made is not None else float(bool(state) and any(value is not None for value in state.values()))


def _like(before: Any, count: int) -> Any:
    return torch.full_like(before, float(count)) if isinstance(before, torch.Tensor) else type(before)(count)


def _word(word: str, kind: str) -> str:
    if len(word) <= 32 and word.isascii() and word.replace("_", "a").isalnum():
        return word
    raise InvalidArgument(f"distribute: {kind} has the name '{word}', and a rule or a slot has at most 32 letters, digits and '_'")
