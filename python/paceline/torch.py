"""Any PyTorch model, distributed by Paceline: five lines of a plain script change (docs/pytorch.md).

    trainer = paceline.torch.distribute(model, rule=paceline.Adam(1e-3))
    for inputs, targets in trainer.batches(loader):
        loss = loss_of(model(inputs), targets)
        loss.backward()
        trainer.step(loss)
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch

from ._errors import InvalidArgument, TrainingEnded
from ._paceline import ErrorCode, Rule, StepResult, Strategy
from ._paceline import Assign as _Assign
from ._store import Flag, Store, Variable

T = TypeVar("T")


class _Rates(torch.optim.Optimizer):
    """What torch's schedulers of learning rates act on: the groups of parameters with their rates."""

    def __init__(self, groups: list[dict[str, Any]], trainer: "Trainer") -> None:
        super().__init__(groups, {"lr": 0.0})
        self._trainer = trainer

    def step(self, closure: Any = None) -> None:
        """Ends the trainer's step."""
        self._trainer.step()


class Trainer:
    """A model whose parameters a Store keeps: gradients leave while backward computes the others, and values come while
    forward computes with the first ones. distribute makes it."""

    store: Store
    """The store of the parameters, and of buffers that are averaged."""
    optimizer: torch.optim.Optimizer
    """Parameter groups with their learning rates, for torch's schedulers; its step is the trainer's."""

    def __init__(self, model: torch.nn.Module, store: Store, parameters: dict[str, torch.nn.Parameter],
                 buffers: dict[str, torch.Tensor], groups: list[dict[str, Any]]) -> None:
        self.model, self.store = model, store
        self._parameters, self._buffers = parameters, buffers
        self._exchange = True
        self._missing: set[str] = set()  # values that the model has not got in this step
        self._open = False
        self._stale = False  # the model's values are those before the last update
        self.optimizer = _Rates(groups, self)
        self._first_rates = [group["lr"] for group in self.optimizer.param_groups]
        self._names = {id(parameter): name for name, parameter in parameters.items()}
        self._handles: list[Any] = [model.register_forward_pre_hook(self._before_model)]
        for module in model.modules():
            own = [self._names[id(p)] for p in module.parameters(recurse=False) if id(p) in self._names]
            names = own + [f"buffer:{name}" for name, buffer in buffers.items()
                           if any(buffer is mine for mine in module.buffers(recurse=False))]
            if names:
                self._handles.append(module.register_forward_pre_hook(self._before_module(names)))
        for name, parameter in parameters.items():
            self._handles.append(parameter.register_post_accumulate_grad_hook(self._after_gradient(name)))
        self._handles.append(model.register_state_dict_pre_hook(lambda module, prefix, keep_vars: self.refresh()))
        self._load(store.names, store.read)

    def step(self, loss: torch.Tensor | float | None = None) -> StepResult:
        """Ends the step that the model's forward began: parameters without a gradient count as unchanged by this worker.

        loss: of this worker's batch, for reports and the check that it is finite. Raises Error with the name of the
        variable, the worker and the step when a loss or a gradient is not finite, and whatever ends the training."""
        if not self._open:
            raise InvalidArgument("trainer.step(): the model has computed nothing in training mode since the last step")
        for name, buffer in self._buffers.items():
            self.store.ready(f"buffer:{name}", buffer.detach().clone())
        result = self.store.end_step(loss.item() if isinstance(loss, torch.Tensor) else loss)
        self.optimizer._opt_called = True  # type: ignore[attr-defined]  # what torch's schedulers ask for
        self._open, self._stale = False, True
        for parameter in self._parameters.values():
            parameter.grad = None
        return result

    @contextlib.contextmanager
    def no_exchange(self) -> Iterator[None]:
        """Within it gradients add up in the parameters, as torch does by itself, and are handed over by the first backward
        after it: the sum of several batches is one step."""
        self._exchange = False
        try:
            yield
        finally:
            self._exchange = True

    def batches(self, batches: Iterable[T]) -> Iterator[T]:
        """The batches, until a limit such as the flag steps ends training. Where another worker has ended it, the next
        forward raises TrainingEnded, which a `with trainer` ends with."""
        for batch in batches:
            if not self._open and self.store.ended:
                return
            yield batch

    def refresh(self) -> None:
        """Gives the model the newest values, between two steps; evaluations and state_dict do so by themselves."""
        if self._stale and not self._open:
            self._load(self.store.names, self.store.read)
            self._stale = False

    def close(self) -> None:
        """Ends the training: the model has the newest values, and is an ordinary one again. May be called again."""
        if not self.store._closed:
            if self._open:
                self.store._fail("the program has ended a training within a step")
            else:
                self.refresh()
                self.store.close()
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def __enter__(self) -> "Trainer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool:
        if error is None or isinstance(error, TrainingEnded):
            self.close()
            return True
        if not isinstance(error, KeyboardInterrupt):
            self.store._fail(f"{type(error).__name__}: {error}")
        self.close()
        return False

    def _begin(self) -> bool:
        for group, first in zip(self.optimizer.param_groups, self._first_rates, strict=True):
            factor = group["lr"] / first if first else 1.0
            if group.get("_factor", 1.0) != factor:
                group["_factor"] = factor
                for parameter in group["params"]:
                    self.store.set_learning_rate_factor(self._names[id(parameter)], factor)
        if not self.store.begin_step():
            return False
        self._missing = set(self.store.names)
        self._open = True
        return True

    def _before_model(self, module: torch.nn.Module, inputs: Any) -> None:
        if self._open or self.store._closed:
            return
        if not module.training or not torch.is_grad_enabled():
            self.refresh()
        elif not self._begin():
            raise TrainingEnded("training has ended: there is no further step", ErrorCode.FAILED_PRECONDITION)

    def _need(self, name: str) -> Any:
        return self.store._call(lambda: self.store._binding.need_dlpack(name))

    def _before_module(self, names: Sequence[str]) -> Callable[[torch.nn.Module, Any], None]:
        def hook(module: torch.nn.Module, inputs: Any) -> None:
            self._before_model(module, inputs)  # the program may call a part of the model
            if self._open and self._missing:
                self._load([name for name in names if name in self._missing], self._need)
                self._missing.difference_update(names)
        return hook

    def _after_gradient(self, name: str) -> Callable[[torch.Tensor], None]:
        def hook(parameter: torch.Tensor) -> None:
            if self._open and self._exchange and parameter.grad is not None:
                gradient = parameter.grad.detach()
                self.store.ready(name, gradient if gradient.device.type == "cpu" else gradient.cpu())
        return hook

    def _load(self, names: Iterable[str], read: Callable[[str], Any]) -> None:
        with torch.no_grad():
            for name in names:
                target = self._buffers[name[7:]] if name.startswith("buffer:") else self._parameters[name]
                target.copy_(torch.from_dlpack(read(name)))


def distribute(
    model: torch.nn.Module,
    rule: Rule,
    strategy: Strategy | str | None = None,
    *,
    groups: Sequence[Mapping[str, Any]] | None = None,
    average_buffers: bool = True,
    clip_norm: float = 0.0,
    clip_value: float = 0.0,
    name: str | None = None,
    examples_per_step: int = 0,
    unit: str = "examples",
    arguments: Sequence[str] = (),
    **flags: Flag,
) -> Trainer:
    """Puts the parameters of a model into a Store, and hooks into the model that exchange them.

    model: its parameters that require a gradient must be float32 and keep their shapes. On the CPU gradients are read in
    place; those of another device go through the host's memory.
    rule: how gradients change them; strategy, clip_norm, clip_value, arguments, flags: those of Store.
    groups: parameter groups as torch.optim takes them: {"params": …, "rule": Rule, "weight_decay": …}; what is in none
    has `rule`.
    average_buffers: buffers of float32, such as batch norm's statistics, become the mean of the workers' in each step;
    otherwise each worker keeps its own.

    Raises ValueError that names a parameter that cannot be exchanged, and what Store raises. In a process that is a
    parameter server it serves, and ends the process."""
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    if not trained:
        raise InvalidArgument("distribute: the model has no parameter that requires a gradient")
    for n, parameter in trained.items():
        _check(n, parameter)
    buffers = {n: b for n, b in model.named_buffers() if average_buffers and b.dtype == torch.float32}
    owns = {id(p): group for group in groups or () for p in group["params"]}
    strangers = set(owns) - {id(p) for p in trained.values()}
    if strangers:
        raise InvalidArgument("distribute: a group has a parameter that the model has not, or that requires no gradient")
    variables: dict[str, Any] = {}
    for n, parameter in trained.items():
        own = owns.get(id(parameter), {})
        variables[n] = Variable(parameter.detach().cpu(), rule=own.get("rule"), weight_decay=own.get("weight_decay", 0.0))
    for n, buffer in buffers.items():
        variables[f"buffer:{n}"] = Variable(buffer.detach().cpu(), rule=_Assign())
    options: dict[str, Any] = dict(flags)
    store = Store(variables, rule, strategy, clip_norm=clip_norm, clip_value=clip_value, model=name or type(model).__name__,
                  examples_per_step=examples_per_step, unit=unit, arguments=arguments, **options)
    rates = [{"params": list(group["params"]), "lr": _rate(group.get("rule", rule))} for group in groups or ()]
    rest = [p for p in trained.values() if id(p) not in owns]
    if rest:
        rates.append({"params": rest, "lr": _rate(rule)})
    return Trainer(model, store, trained, buffers, rates)


def _rate(rule: Rule) -> float:
    return float(getattr(rule, "learning_rate", 1.0))


def _check(name: str, parameter: torch.Tensor) -> None:
    why = ""
    if parameter.dtype != torch.float32:
        why = f"it is {parameter.dtype}, and only float32 is exchanged: keep it in float32 and compute under torch.autocast"
    elif parameter.layout != torch.strided:
        why = f"its layout is {parameter.layout}, and only dense parameters are exchanged"
    elif isinstance(parameter, torch.nn.parameter.UninitializedParameter):
        why = "it has no shape yet: run the model once before"
    elif parameter.device.type == "meta":
        why = "it lies on the device meta and has no value: materialise it before"
    if why:
        raise InvalidArgument(f"distribute: parameter '{name}' cannot be exchanged: {why}")
