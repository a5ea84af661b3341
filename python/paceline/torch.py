"""Any PyTorch model, distributed by Paceline: five lines of a plain script change (docs/pytorch.md).

    trainer = paceline.torch.distribute(model, rule=paceline.Adam(1e-3))
    for inputs, targets in trainer.batches(loader):
        loss = loss_of(model(inputs), targets)
        loss.backward()
        trainer.step(loss)
"""

import contextlib
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, TypeVar

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

from ._errors import InvalidArgument, TrainingEnded
from ._paceline import Assign as _Assign
from ._paceline import ErrorCode, Rule, Sgd, StepResult, Strategy
from ._store import Flag, Store, Variable
from ._torch_optimizer import rate_of, rules_of
from ._torch_sampler import Sampler, sampler_of
from ._torch_transfer import transfer_of

T = TypeVar("T")

_BUFFER = "buffer:"  # before the names of buffers in the store
_BUFFERS = ("mean", "chief", "own")
_MOST_NAMED = 4000  # parameters that are named when workers join, which is one message


class _Rates(torch.optim.Optimizer):
    """What torch's schedulers of learning rates act on: the groups of parameters with their rates."""

    def __init__(self, groups: list[dict[str, Any]]) -> None:
        super().__init__(groups, {"lr": 0.0})

    def step(self, closure: Any = None) -> Any:
        """The trainer's step stands in its place."""


class Trainer:
    """A model whose parameters a Store keeps: gradients leave while backward computes the others, and values come while
    forward computes with the first ones. distribute makes it."""

    store: Store
    """The store of the parameters, and of buffers that are averaged."""
    optimizer: torch.optim.Optimizer
    """Parameter groups with their learning rates, for torch's schedulers: the one that distribute was given, or a stand-in
    for its rules. Its step is the trainer's."""

    def __init__(self, model: torch.nn.Module, store: Store, parameters: dict[str, torch.nn.Parameter],
                 buffers: dict[str, torch.Tensor], optimizer: torch.optim.Optimizer,
                 scaler: torch.amp.GradScaler | None = None, chiefs_buffers: bool = False) -> None:
        """distribute makes it."""
        self.model, self.store, self.optimizer = model, store, optimizer
        self._parameters, self._buffers, self._scaler = parameters, buffers, scaler
        self._rows = {_BUFFER + name: np.zeros(1, np.int32) for name in buffers} if chiefs_buffers else {}  # that each step reads, of the chief's buffers
        self._exchange = True
        self._missing: set[str] = set()  # values that the model has not got in this step
        self._called: set[str] = set()  # values whose module's forward asks for them; others are there before the model's
        self._handed: dict[str, tuple[torch.Tensor, int]] = {}  # gradients of this step, and their versions then
        self._versions: dict[str, int] = {}  # of the parameters since the store's values were put into them
        self._open = False
        self._stale = False  # the model's values are those before the last update
        self._unscale = 1.0
        self._position: dict[str, int] | None = None  # in the data, once the next step is made
        self._transfers = {device: transfer_of(device) for device in {tensor.device for tensor in
                                                                      [*parameters.values(), *buffers.values()]}}
        self._first_rates = [rate_of(group) for group in optimizer.param_groups]
        self._factors = [1.0] * len(self._first_rates)
        self._names = {id(parameter): name for name, parameter in parameters.items()}
        self._places = {name: parameter.data_ptr() for name, parameter in parameters.items() if self._keeps_in_place(name, parameter)}
        self._copied = tuple(name for name in store.names if name not in self._places)
        self._take_steps_of(optimizer)
        self._handles: list[Any] = []
        self._hook_into(model)
        self._load(self._copied, store.read)
        self._note_values(self._places)

    def step(self, loss: torch.Tensor | float | None = None) -> StepResult:
        """Ends the step that the model's forward began: parameters without a gradient count with zeros.

        loss: of this worker's batch, for reports and the check that it is finite; with a GradScaler the loss before it was
        scaled. Raises Error with the name of the variable, the worker and the step when a loss or a gradient is not finite,
        ValueError for a gradient that was changed after backward, and whatever ends the training."""
        if not self._open:
            raise InvalidArgument("trainer.step(): the model has computed nothing in training mode since the last step")
        for name, parameter in self._parameters.items():
            if parameter.grad is not None and name not in self._handed:
                self._hand_over(name, parameter)
        self._check_unchanged()
        for name, (gradient, _) in self._handed.items():
            if name in self._places:
                self._send(name, gradient)
        for name, buffer in self._buffers.items():
            if not self._rows:
                self._send(_BUFFER + name, buffer.detach())
            elif self.store.worker == 0:
                self.store.ready(_BUFFER + name, _as_row(buffer), self._rows[_BUFFER + name])
        for transfer in self._transfers.values():
            if transfer is not None:
                transfer.flush()
        result = self.store.end_step(loss.item() if isinstance(loss, torch.Tensor) else loss)
        self._open, self._stale = False, True
        self._note_values(self._places)
        self._handed.clear()
        for parameter in self._parameters.values():
            parameter.grad = None
        self.optimizer._opt_called = True  # type: ignore[attr-defined]  # what torch's schedulers ask for
        if self._scaler is not None:
            self._tell_scaler(result.skipped)
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
        """The batches, until a limit such as the flag steps ends training; of a DataLoader with a sampler of this trainer
        checkpoints keep how far it was used. Where another worker has ended it, the next
        forward raises TrainingEnded, which a `with trainer` ends with."""
        sampler = getattr(batches, "sampler", None)
        for batch in batches:
            if not self._open and self.store.ended:
                return
            if isinstance(sampler, Sampler):
                self._position = sampler.use(getattr(batches, "batch_size", None) or 1)
            yield batch

    def sampler(self, records: Sized, *, shuffle: bool = True, seed: int = 0) -> Sampler:
        """A sampler for a DataLoader that shares the records out among the workers, in another order in each epoch: equal
        parts, or with the flag shard="dynamic" (and distribute(shared_records=len(dataset))) to each worker as many as it uses.

        seed: of the orders, the same on all workers. Raises ValueError when there are more workers than records."""
        return sampler_of(records, self.store, shuffle, seed)

    def refresh(self) -> None:
        """Gives the model the newest values, between two steps; evaluations and state_dict do so by themselves."""
        if self._stale and not self._open:
            self._load(self._copied, self.store.read)
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
        for transfer in self._transfers.values():
            if transfer is not None:
                transfer.close()
        self._transfers = {}

    def __enter__(self) -> "Trainer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool:
        if error is None or isinstance(error, TrainingEnded):
            self.close()
            return True
        if isinstance(error, KeyboardInterrupt):
            with contextlib.suppress(KeyboardInterrupt):  # a job that has ended says it again
                self.refresh()
            self._stale = False
        else:
            self.store._fail(f"{type(error).__name__}: {error}")
        self.close()
        return False

    def _hook_into(self, model: torch.nn.Module) -> None:
        """Hooks are functions, so that a copy of the model has them without a copy of the trainer; there they do nothing."""
        add: Callable[[Any], None] = self._handles.append
        module: Any
        for module in model.modules():
            names = [self._names[id(p)] for p in module.parameters(recurse=False) if id(p) in self._names]
            names += [_BUFFER + name for name, buffer in self._buffers.items()
                      if any(buffer is mine for mine in module.buffers(recurse=False))]
            if names or module is model:
                add(module.register_forward_pre_hook(self._before_module(module, names)))
            add(module.register_state_dict_pre_hook(self._before_state_dict(module)))
            add(module._register_load_state_dict_pre_hook(self._before_loading(module), with_module=True))
        parameter: Any
        for name, parameter in self._parameters.items():
            add(parameter.register_post_accumulate_grad_hook(self._after_gradient(name)))

    def _take_steps_of(self, optimizer: torch.optim.Optimizer) -> None:
        def step(optimizer: torch.optim.Optimizer, closure: Any = None) -> None:
            if hasattr(optimizer, "grad_scale"):
                raise InvalidArgument("scaler.step(optimizer): give the scaler to distribute(scaler=…) and call trainer.step(loss), "
                                      "which steps and updates the scaler")
            self.step()

        step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
        optimizer.step = types.MethodType(step, optimizer)  # type: ignore[method-assign]
        optimizer._step_supports_amp_scaling = True  # type: ignore[attr-defined]  # a scaler leaves all to step

    def _begin(self) -> bool:
        for at, (group, first) in enumerate(zip(self.optimizer.param_groups, self._first_rates, strict=True)):
            factor = float(group.get("lr", first)) / first if first else 1.0
            if self._factors[at] != factor:
                self._factors[at] = factor
                for parameter in group["params"]:
                    self.store.set_learning_rate_factor(self._names[id(parameter)], factor)
        self._check_parameters()
        if not self.store.begin_step(self._rows, self._position):
            return False
        self._missing = set(self._copied)
        self._unscale = 1.0 if self._scaler is None else 1.0 / self._scaler.get_scale()
        self._open = True
        self._get([name for name in self._copied if name not in self._called])
        return True

    def _before_model(self, module: torch.nn.Module) -> None:
        if self._open or self.store._closed:
            return
        if not module.training or not torch.is_grad_enabled():
            self.refresh()
        elif not self._begin():
            raise TrainingEnded("training has ended: there is no further step", ErrorCode.FAILED_PRECONDITION)

    def _need(self, name: str) -> Any:
        return self.store._call(lambda: self.store._binding.need_dlpack(name))

    def _get(self, names: Sequence[str]) -> None:
        self._load([name for name in names if name in self._missing], self._need)
        self._missing.difference_update(names)

    def _before_module(self, of: torch.nn.Module, names: Sequence[str]) -> Callable[[torch.nn.Module, Any], None]:
        def hook(module: torch.nn.Module, inputs: Any) -> None:
            if module is not of:
                return
            self._before_model(module)  # the program may call a part of the model
            if self._open:
                self._called.update(names)
                self._get(names)
        return hook

    def _before_state_dict(self, of: torch.nn.Module) -> Callable[[torch.nn.Module, str, bool], None]:
        def hook(module: torch.nn.Module, prefix: str, keep_vars: bool) -> None:
            if module is of and not self.store._closed:
                self.refresh()
        return hook

    def _before_loading(self, of: torch.nn.Module) -> Callable[..., None]:
        owned = [self._names[id(p)] for p in of.parameters(recurse=False) if id(p) in self._names]

        def hook(module: torch.nn.Module, *arguments: Any) -> None:
            if module is of and owned and not self.store._closed:
                raise InvalidArgument(
                    f"load_state_dict: the values of '{owned[0]}' lie in the store, which all workers share: load them before "
                    "distribute (the chief's count), begin with init_from=…, or load them after trainer.close()")
        return hook

    def _after_gradient(self, name: str) -> Callable[[torch.Tensor], None]:
        def hook(parameter: torch.Tensor) -> None:
            if self._open and name in self._missing:
                self._called.discard(name)
                warnings.warn(f"parameter '{name}' was used in this step without a call of its module, which steps before called: it had "
                              "the value of the last step. From now on its value is there before the model's forward.", stacklevel=2)
            if not self._open or not self._exchange or parameter.grad is None:
                return
            if name in self._handed:
                raise InvalidArgument(f"backward: a second gradient of '{name}' in one step, and the first is on its way: call all "
                                      "backwards of a step but the last within trainer.no_exchange()")
            self._hand_over(name, parameter)
        return hook

    def _hand_over(self, name: str, parameter: torch.Tensor) -> None:
        assert parameter.grad is not None
        gradient = parameter.grad.detach()
        if gradient.layout != torch.strided:
            raise InvalidArgument(f"the gradient of '{name}' is {gradient.layout}, and only dense ones are exchanged: make its "
                                  "embedding with sparse=False, or keep its rows in a paceline.Store (Variable.most_rows)")
        if self._unscale != 1.0:
            gradient.mul_(self._unscale)
        self._handed[name] = (gradient, gradient._version)
        if name not in self._places:  # else the rule would change the parameter while backward may still read it
            self._send(name, gradient)

    def _send(self, name: str, tensor: torch.Tensor) -> None:
        transfer = self._transfers.get(tensor.device)
        if transfer is None:
            self.store.ready(name, tensor if tensor.device.type == "cpu" else tensor.cpu())
        else:
            transfer.send(name, tensor, lambda copied: self.store.ready(name, copied))

    def _check_unchanged(self) -> None:
        for name, (gradient, version) in self._handed.items():
            if gradient._version != version:
                raise InvalidArgument(f"trainer.step(): the gradient of '{name}' was changed after backward, when it was on its way "
                                      "already: clip by distribute(clip_norm=…) or clip_value")

    def _check_parameters(self) -> None:
        """Refuses values that the program has put into a parameter, and which the next forward would overwrite."""
        for name, version in self._versions.items():
            parameter = self._parameters[name]
            if parameter._version != version or self._places.get(name, parameter.data_ptr()) != parameter.data_ptr():
                raise InvalidArgument(f"parameter '{name}' was changed by the program, and its values lie in the store: change it "
                                      "before distribute, or after trainer.close()")

    def _tell_scaler(self, skipped: bool) -> None:
        scaler = self._scaler
        assert scaler is not None
        if not scaler.is_enabled():
            return
        device = torch.device(scaler._device) if hasattr(scaler, "_device") else torch.device("cuda")
        found = torch.full((), float(skipped), dtype=torch.float32, device=device)
        scaler._per_optimizer_states[id(self.optimizer)]["found_inf_per_device"] = {device: found}
        scaler.update()

    def _load(self, names: Iterable[str], read: Callable[[str], Any]) -> None:
        with torch.no_grad():
            for name in names:
                buffer = name.startswith(_BUFFER)
                target = self._buffers[name[len(_BUFFER):]] if buffer else self._parameters[name]
                value = from_dlpack(read(name))
                if name in self._rows:
                    value = _of_row(value, target)
                transfer = self._transfers.get(target.device)
                if transfer is None:
                    target.copy_(value)
                else:
                    transfer.fetch(name, value, target)
                if not buffer:
                    self._versions[name] = target._version

    def _keeps_in_place(self, name: str, parameter: torch.Tensor) -> bool:
        """Has the store keep the value in the parameter's own memory, which steps then change as an optimizer of torch does."""
        return parameter.device.type == "cpu" and parameter.is_contiguous() and self.store._call(
            lambda: self.store._binding.keep_in(name, parameter.detach()))

    def _note_values(self, names: Iterable[str]) -> None:
        """The store has changed parameters: to torch they are others now, as after a step of its optimizers."""
        for name in names:
            self._parameters[name].detach().view(-1)[:0].zero_()  # changes nothing but its version
            self._versions[name] = self._parameters[name]._version


def distribute(
    model: torch.nn.Module,
    rule: Rule | None = None,
    strategy: Strategy | str | None = None,
    *,
    optimizer: torch.optim.Optimizer | None = None,
    groups: Sequence[Mapping[str, Any]] | None = None,
    scaler: torch.amp.GradScaler | None = None,
    buffers: str = "mean",
    clip_norm: float = 0.0,
    clip_value: float = 0.0,
    name: str | None = None,
    examples_per_step: int = 0,
    unit: str = "examples",
    shared_records: int = 0,
    arguments: Sequence[str] = (),
    **flags: Flag,
) -> Trainer:
    """Puts the parameters of a model into a Store, and hooks into the model that exchange them.

    model: its parameters that require a gradient must be float32 and keep their shapes. On the CPU gradients are read in
    place; those of a CUDA device go through pinned memory by a stream of their own, which was not run on hardware yet.
    rule: how gradients change them, wherever the values lie; strategy, clip_norm, clip_value, shared_records, arguments,
    flags: those of Store.
    groups: parameter groups as torch.optim takes them: {"params": …, "rule": Rule, "weight_decay": …}; what is in none
    has `rule`.
    optimizer: of torch.optim, in place of a rule: each worker updates its values by it, which `allreduce`, `local_sgd` and
    one process do; its state lies in the store, and in checkpoints. Parameters that it has not are not trained.
    scaler: for autocast in float16: `scaler.scale(loss).backward()`, and trainer.step(loss) divides the gradients, leaves
    out a step with infinity (the flag on_nan="skip", which it sets) and updates the scaler.
    buffers: what becomes of buffers of float32, such as batch norm's statistics, in each step: "mean", that of the workers'
    (under async and ssp those of the last one); "chief", those of worker 0, not with local_sgd; "own", each worker keeps
    its own, and checkpoints have none.

    Raises ValueError that names a parameter that cannot be exchanged, and what Store raises. In a process that is a
    parameter server it serves, and ends the process."""
    if (rule is None) == (optimizer is None) or (optimizer is not None and groups):
        raise InvalidArgument("distribute: give a rule, with groups if need be, or an optimizer of torch.optim, which has its own")
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    owns = {id(p): group for group in (optimizer.param_groups if optimizer else groups or ()) for p in group["params"]}
    if set(owns) - {id(p) for p in trained.values()}:
        raise InvalidArgument(f"distribute: {'the optimizer' if optimizer else 'a group'} has a parameter that the model has not, or "
                              "that requires no gradient")
    if optimizer is not None:
        trained = {n: p for n, p in trained.items() if id(p) in owns}
    if not trained:
        raise InvalidArgument("distribute: the model has no parameter that requires a gradient")
    for n, parameter in trained.items():
        _check(n, parameter)
    rules = rules_of(optimizer, {id(p): n for n, p in trained.items()}) if optimizer else {}
    if buffers not in _BUFFERS:
        raise InvalidArgument(f"distribute: buffers is {buffers!r}, and must be {', '.join(map(repr, _BUFFERS[:-1]))} or {_BUFFERS[-1]!r}")
    shared = {n: b for n, b in model.named_buffers() if buffers != "own" and b.dtype == torch.float32}
    variables: dict[str, Any] = {}
    for n, parameter in trained.items():
        own: Mapping[str, Any] = {"rule": rules[n]} if optimizer else owns.get(id(parameter), {})
        variables[n] = Variable(parameter.detach().cpu(), rule=own.get("rule"), weight_decay=own.get("weight_decay", 0.0))
    chiefs = buffers == "chief"
    for n, buffer in shared.items():
        variables[_BUFFER + n] = Variable(_as_row(buffer), _Assign(), most_rows=1) if chiefs else Variable(buffer.detach().cpu(), _Assign())
    options: dict[str, Any] = dict(flags)
    if scaler is not None and "--on-nan" not in arguments:
        options.setdefault("on_nan", "skip")
    store = Store(variables, rule or Sgd(), strategy, clip_norm=clip_norm, clip_value=clip_value, model=name or type(model).__name__,
                  examples_per_step=examples_per_step, unit=unit, agreed=_agreed(trained),
                  shared_records=shared_records, arguments=arguments, **options)
    if chiefs and store.workers > 1 and store._binding.strategy == "local_sgd":
        why = "distribute: buffers='chief' does not go with local_sgd, whose workers give their mean change: take buffers='mean' or 'own'"
        store._fail(why)
        raise InvalidArgument(why)
    if optimizer is None:
        assert rule is not None
        rates = [{"params": list(group["params"]), "lr": _rate(group.get("rule", rule))} for group in groups or ()]
        rest = [p for p in trained.values() if id(p) not in owns]
        optimizer = _Rates([*rates, {"params": rest, "lr": _rate(rule)}] if rest else rates)
    return Trainer(model, store, trained, shared, optimizer, scaler, chiefs)


def _as_row(buffer: torch.Tensor) -> torch.Tensor:
    """The chief's buffer as a row that it alone contributes, and a 1 behind it, by which _of_row sees of how many workers
    the row became the mean."""
    flat = buffer.detach().cpu().flatten()
    return torch.cat([flat, torch.ones(1)])[None]


def _of_row(row: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return (row[0, :-1] / row[0, -1]).view(like.shape)


def _agreed(parameters: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """What workers say when they join: the first line that differs is named."""
    lines = {"torch": torch.__version__.split("+")[0]}
    if len(parameters) <= _MOST_NAMED:
        lines |= {f"parameter '{name}'": str(tuple(parameter.shape)) for name, parameter in parameters.items()}
    return lines


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
