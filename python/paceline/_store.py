"""The store: variables that several processes train together, of a model that other code computes."""

import atexit
import os
import shlex
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _paceline
from ._errors import Error, TrainingEnded
from ._paceline import ErrorCode, Rule, StepResult, Strategy

T = TypeVar("T")
Flag = str | int | float | bool | os.PathLike[str] | None


@dataclass
class Variable:
    """A variable of a Store that is more than its value.

    value: an array of float32: NumPy's, or any framework's in the CPU's memory.
    rule, weight_decay: those of this variable, in place of the store's.
    most_rows: above 0 the variable is read and updated by rows of its first dimension, at most so many in a step.
    frozen: it is kept, saved and handed out, and never updated.
    seconds_to_need, seconds_to_ready: parts of a step's time, for predictions: before it is needed, from when the one
    before it was; before its gradient is ready, from when that of the one after it was. 0: they follow from its size.
    """

    value: Any
    rule: Rule | None = None
    weight_decay: float = 0.0
    most_rows: int = 0
    frozen: bool = False
    seconds_to_need: float = 0.0
    seconds_to_ready: float = 0.0


class Step:
    """A step of a store, as a context: it ends with the context, or with an error that ends the training."""

    def __init__(self, store: "Store", rows: Mapping[str, Any], position: Mapping[str, int] | None, begun: bool) -> None:
        self._store, self._rows, self._position, self._begun = store, rows, position, begun
        self.loss: float | None = None
        """The loss of this worker's batch, for reports and the check that it is finite; set it within the step."""
        self.result: StepResult | None = None
        """The numbers of the step, once it has ended."""

    def __enter__(self) -> "Step":
        if not self._begun and not self._store.begin_step(self._rows, self._position):
            raise TrainingEnded("training has ended: there is no further step", ErrorCode.FAILED_PRECONDITION)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self.result = self._store.end_step(self.loss)
        else:
            self._store._fail(f"{type(error).__name__}: {error}")


class Store:
    """Variables that the workers of a job train together; alone, those of this process.

    The model is computed by other code, which asks for values (need) and hands gradients over (ready) within a step, in
    any order and from any thread. Which task this process is says the system that has started it: `paceline launch`,
    torchrun, srun, … (docs/launchers.md); a process that is a parameter server serves in this constructor, and ends.

    variables: by name, in the order in which a step first needs them: arrays of float32, or Variable. The chief's values
    count. The arrays are copied.
    rule: how gradients change variables.
    strategy: how the workers share what they learn, by its name or as a Strategy.
    clip_norm: gradients are scaled by min(1, clip_norm / their norm); clip_value: each number is brought into
    [-clip_value, clip_value]; 0: neither.
    average_decay: above 0 moving averages of the variables are kept and saved.
    model, examples_per_step, unit: for reports.
    nan_guard: training ends at the first loss that is not finite.
    agreed: what all workers must have alike besides, such as {"torch": "2.5.1"}; one that differs does not join.
    shared_records: with the flag shard="dynamic" the number of records of an epoch, of which each worker takes the next ones
    when it needs some (paceline.torch has a sampler that does); all workers must have it alike.
    flags: those of `paceline train --help` for the job and the run, with _ for -: out="run", wire="bfloat16",
    accumulate=4, save_every="10m", report="r.json", resume=True; arguments: more of them, such as sys.argv[1:].

    Where `paceline predict -- COMMAND` or the flag predict asks what is expected of the job, ten steps are made in this
    process alone, which leave nothing behind; then the table of all ways to distribute is printed, and the process ends.

    Raises ValueError for variables that cannot be trained so and for flags, Error with the code UNAVAILABLE when other
    tasks cannot be reached, and TimeoutError when they do not come.
    """

    def __init__(
        self,
        variables: Mapping[str, Any],
        rule: Rule,
        strategy: Strategy | str | None = None,
        *,
        clip_norm: float = 0.0,
        clip_value: float = 0.0,
        average_decay: float = 0.0,
        model: str = "model",
        examples_per_step: int = 0,
        unit: str = "examples",
        nan_guard: bool = True,
        agreed: Mapping[str, str] | None = None,
        shared_records: int = 0,
        arguments: Sequence[str] = (),
        **flags: Flag,
    ) -> None:
        given = [_given(name, value) for name, value in variables.items()]
        words = [*_words(strategy, flags), *arguments]
        self._calls = 0
        self._interrupted = False
        self._closed = True
        binding = _paceline.StoreBinding(
            [sys.argv[0] or "python", *words], given, rule, clip_norm=clip_norm, clip_value=clip_value,
            average_decay=average_decay, model=model, examples_per_step=examples_per_step, unit=unit, nan_guard=nan_guard,
            resume_command=_resume_command(words), agreed=dict(agreed or {}), shared_records=shared_records)
        if not binding.trains:
            raise SystemExit(binding.status)
        self._binding = binding
        self._names = tuple(variables)
        self._shared_records = shared_records
        self._worker, self._workers, _, self._global_step = binding.place()
        self._restored = binding.restored()
        self._closed = False
        _open_stores.add(self)
        self._signals = _Signals(self)

    def step(self, *, rows: Mapping[str, Any] | None = None, position: Mapping[str, int] | None = None) -> Step:
        """The next step, as a context: `with store.step() as step: …`.

        rows: of every variable that is read by rows (Variable.most_rows) the ids that this batch reads, int32 or int64.
        position: the program's place in its data once this batch is used, which checkpoints keep.
        On entering raises TrainingEnded when training is over, KeyboardInterrupt when the user has interrupted it, once the
        chief has saved a checkpoint. An exception within the step ends the training of this worker.
        """
        return Step(self, rows or {}, position, begun=False)

    def steps(self) -> Iterator[Step]:
        """Steps until training ends: `for step in store.steps(): with step: …`. Each is begun when it is given."""
        while self.begin_step():
            yield Step(self, {}, None, begun=True)

    def begin_step(self, rows: Mapping[str, Any] | None = None, position: Mapping[str, int] | None = None) -> bool:
        """Begins a step without a context; False when training is over. Arguments and errors are those of step."""
        place = None if position is None else {name: int(number) for name, number in position.items()}
        return self._call(lambda: self._binding.begin_step(list((rows or {}).items()), place))

    def end_step(self, loss: float | None = None) -> StepResult:
        """Ends a step: gradients that were not handed over count as zeros. Raises Error when the loss is not finite, and
        SystemExit when the job was only to be predicted, and has been."""
        result = self._call(lambda: self._binding.end_step(None if loss is None else float(loss)))
        self._global_step = result.global_step
        if self._binding.predicted:
            self.close()
            raise SystemExit(0)
        return result

    def need(self, name: str) -> NDArray[np.float32]:
        """Waits for the value that this step reads, and gives it without a copy. It is read-only, and valid until the
        gradient of this variable is handed over, without one until the step ends: copy what is to stay. The array keeps its
        memory, also once the store is closed, but not where a job of several tasks has failed. Of a variable that is read by rows it has
        one row for each of the step's ids. Raises NameNotFound (a KeyError) with the nearest name, and whatever ends the
        training."""
        return self._call(lambda: self._binding.need(name))

    def ready(self, name: str, gradient: Any, rows: Any = None) -> None:
        """Hands a gradient over and waits for nothing: an array of the variable's type and shape, which is read in place
        when its rows follow each other, and kept until it was read. Change it no more before the step has ended.

        rows: of a variable that is updated by rows, the id of each row of the gradient. Raises ValueError that names both
        types and shapes when they differ, NameNotFound, and Error for the second gradient of a step."""
        if rows is None:
            self._binding.ready(name, gradient)
        else:
            self._binding.ready_rows(name, rows, gradient)

    def read(self, name: str) -> NDArray[np.float32]:
        """The newest value of a variable, between two steps: a copy. Raises NameNotFound."""
        return self._call(lambda: self._binding.read(name))

    def set_learning_rate_factor(self, name: str, factor: float) -> None:
        """Sets a factor on the learning rate of a variable's rule, from the next step on. Raises NameNotFound."""
        self._binding.set_learning_rate_factor(name, factor)

    def save(self) -> None:
        """Saves a checkpoint in the folder `out` between two steps, and waits for it; the chief does, others nothing."""
        self._call(self._binding.save)

    def stop_all(self) -> None:
        """Ends the training of all workers, as a limit of steps does."""
        self._call(self._binding.stop_all)

    def report(self, section: str, key: str, value: float | None) -> None:
        """Adds a number to the report: report("accuracy", "test", 0.97)."""
        self._call(lambda: self._binding.report(section, key, value))

    def summarise(self, tag: str, value: float) -> None:
        """Gives summaries a number of the model between two steps, such as summarise("loss/valid", 0.3). Of the number that the
        flag keep_best names, the checkpoint of these values is kept while it is the best one."""
        self._call(lambda: self._binding.summarise(tag, value))

    def print(self, line: str) -> None:
        """Prints a line for the user, unless the flag quiet is given."""
        self._call(lambda: self._binding.print(line))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""
        return self._names

    @property
    def worker(self) -> int:
        """The number of this worker, from 0; 0 is the chief."""
        return self._worker

    @property
    def workers(self) -> int:
        """How many workers the job has; 1 alone."""
        return self._workers

    @property
    def global_step(self) -> int:
        """The steps of all workers so far, as this one's last step knew it."""
        return self._global_step

    @property
    def ended(self) -> bool:
        """True when the last step was the last one of the training, between two steps."""
        return self._call(self._binding.ended)

    @property
    def restored(self) -> dict[str, int]:
        """The position that was saved with the checkpoint from which this task goes on; empty when it begins anew."""
        return dict(self._restored)

    def close(self) -> None:
        """Ends the training of this worker between two steps and writes its report; the chief saves, where the flag out is
        given. Raises what that raises. Nothing can be called after it; it may be called again."""
        if self._closed:
            return
        self._closed = True
        _open_stores.discard(self)
        try:
            if self._interrupted and not self._binding.in_step():
                self._binding.begin_step([], None)  # saves, and says that it was interrupted
            self._binding.close()
        except KeyboardInterrupt:
            self._binding.fail("interrupted")
            if not self._interrupted:
                raise
        finally:
            self._signals.restore()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None or isinstance(error, (KeyboardInterrupt, TrainingEnded)):
            self.close()
        else:
            self._fail(f"{type(error).__name__}: {error}")

    def _call(self, call: Callable[[], T]) -> T:
        self._calls += 1
        try:
            return call()
        finally:
            self._calls -= 1

    def _fail(self, why: str) -> None:
        if self._closed:
            return
        self._closed = True
        _open_stores.discard(self)
        try:
            self._binding.fail(why)
        finally:
            self._signals.restore()


class _Signals:
    """While a store is open the first SIGINT, SIGTERM or SIGHUP asks the job to end: a step is finished, and the next one
    saves and raises KeyboardInterrupt; between steps KeyboardInterrupt is raised at once, as by the second signal."""

    def __init__(self, store: Store) -> None:
        self._store = weakref.ref(store)
        self._before: dict[int, Any] = {}
        if threading.current_thread() is not threading.main_thread():
            return
        for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL),
                              (signal.SIGHUP, signal.SIG_DFL)):
            if signal.getsignal(number) is usual or signal.getsignal(number) == usual:
                self._before[number] = signal.signal(number, self._ask)
        weakref.finalize(store, self.restore)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        store = self._store()
        if store is None or store._closed or store._interrupted:
            raise KeyboardInterrupt
        store._interrupted = True
        store._binding.interrupt()
        if store._calls == 0 and not store._binding.in_step():
            raise KeyboardInterrupt

    def restore(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._before.items():
                signal.signal(number, handler)
        self._before = {}


_open_stores: "weakref.WeakSet[Store]" = weakref.WeakSet()


def _close_all() -> None:
    """At the end of the program: stores that it has left open."""
    error = getattr(sys, "last_value", None)
    for store in list(_open_stores):
        if error is None or isinstance(error, KeyboardInterrupt):
            store.close()
        else:
            store._fail(f"{type(error).__name__}: {error}")


atexit.register(_close_all)


def _resume_command(words: Sequence[str]) -> str:
    """What a user is told who has interrupted a run; only the program knows how it takes its flags."""
    return shlex.join(sys.orig_argv) + ("" if "--resume" in words else ", with resume=True or --resume")


def _given(name: str, value: Any) -> _paceline.GivenVariable:
    variable = value if isinstance(value, Variable) else Variable(value)
    return _paceline.GivenVariable(
        name, variable.value, most_rows=variable.most_rows, frozen=variable.frozen, rule=variable.rule,
        weight_decay=variable.weight_decay, seconds_to_need=variable.seconds_to_need,
        seconds_to_ready=variable.seconds_to_ready)


def _words(strategy: Strategy | str | None, flags: Mapping[str, Flag]) -> list[str]:
    """A command line with these flags."""
    words = Strategy(strategy).flags() if isinstance(strategy, str) else strategy.flags() if strategy else []
    for name, value in flags.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        words += [flag] if value is True else [flag, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    return words
