"""paceline.torch: models of PyTorch train as they do by torch's own optimizers."""

import contextlib
import copy
import pathlib
import subprocess
import sys

import pytest

import paceline

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
if torch is not None:
    import paceline.torch


def small_model() -> "torch.nn.Module":
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))


def batch(step: int) -> tuple["torch.Tensor", "torch.Tensor"]:
    generator = torch.Generator().manual_seed(step)
    return torch.randn(8, 6, generator=generator), torch.randn(8, 3, generator=generator)


def loss_of(model: "torch.nn.Module", step: int) -> "torch.Tensor":
    inputs, targets = batch(step)
    return ((model(inputs) - targets) ** 2).mean()


def train_plain(model: "torch.nn.Module", optimizer: "torch.optim.Optimizer", steps: int) -> list[float]:
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("rule, of_torch", [
    (paceline.Sgd(0.1), lambda p: torch.optim.SGD(p, 0.1)),
    (paceline.Momentum(0.1), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
    (paceline.Adam(1e-2), lambda p: torch.optim.Adam(p, 1e-2)),
    (paceline.AdamW(1e-2), lambda p: torch.optim.AdamW(p, 1e-2)),
])
def test_one_process_trains_as_torch_does(rule: paceline.Rule, of_torch: object) -> None:
    plain = small_model()
    expected = train_plain(plain, of_torch(plain.parameters()), 50)  # type: ignore[operator]
    model = small_model()
    losses = []
    with paceline.torch.distribute(model, rule, quiet=True) as trainer:
        for step in range(50):
            loss = loss_of(model, step)
            loss.backward()
            trainer.step(loss)
            losses.append(loss.item())
    assert losses == pytest.approx(expected, rel=1e-5)
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_state_dict_and_evaluation_see_the_last_update() -> None:
    model = small_model()
    with paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True) as trainer:
        before = copy.deepcopy(model.state_dict())
        loss_of(model, 0).backward()
        trainer.step()
        after = model.state_dict()
        assert not torch.equal(before["0.weight"], after["0.weight"])
        torch.testing.assert_close(after["0.weight"], torch.from_numpy(trainer.store.read("0.weight")))
        model.eval()
        with torch.no_grad():
            one = model(batch(1)[0])
        model.train()
    torch.testing.assert_close(one, model(batch(1)[0]))


def test_gradients_are_read_in_place() -> None:
    model = small_model()
    with paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True) as trainer:
        seen = {}
        ready = trainer.store.ready
        trainer.store.ready = lambda name, gradient: (seen.update({name: gradient.data_ptr()}), ready(name, gradient))  # type: ignore
        loss_of(model, 0).backward()
        given = {name: p.grad.data_ptr() for name, p in model.named_parameters()}
        trainer.step()
        assert seen == given
        assert list(seen)[0] == "2.bias" or list(seen)[0] == "2.weight"  # the last layer's leave first
        assert all(p.grad is None for p in model.parameters())


def test_one_process_changes_parameters_where_they_lie(tmp_path: pathlib.Path) -> None:
    model = small_model()
    held = [p.detach().numpy() for p in model.parameters()]  # what the program has of them
    with paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True, out=tmp_path / "run") as trainer:
        for step in range(3):
            loss = loss_of(model, step)
            before = [p.detach().clone() for p in model.parameters()]
            versions = [p._version for p in model.parameters()]
            loss.backward(retain_graph=True)
            gradients = [p.grad.clone() for p in model.parameters()]
            assert all(torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True)), "not before the step"
            trainer.step(loss)
            for p, old, gradient, version in zip(model.parameters(), before, gradients, versions, strict=True):
                torch.testing.assert_close(p, old - 0.1 * gradient)
                assert p._version > version
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                loss.backward()
        assert all((p.detach().numpy() == mine).all() for p, mine in zip(model.parameters(), held, strict=True))
        assert all(p.data_ptr() == mine.ctypes.data for p, mine in zip(model.parameters(), held, strict=True))
    last = [mine.copy() for mine in held]
    saved = paceline.load(tmp_path / "run")
    for (name, p), mine in zip(model.named_parameters(), last, strict=True):
        assert (saved[name] == mine).all()
    resumed = small_model()
    with paceline.torch.distribute(resumed, paceline.Sgd(0.1), quiet=True, out=tmp_path / "run", resume=True):
        assert all((p.detach().numpy() == mine).all() for p, mine in zip(resumed.parameters(), last, strict=True))


def test_a_parameter_in_other_memory_is_refused() -> None:
    model = small_model()
    with pytest.raises(ValueError, match="parameter '0.weight' was changed by the program"), \
            paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True):
        model[0].weight.data = torch.zeros(16, 6)
        loss_of(model, 0)


def test_parameters_whose_rows_do_not_follow_each_other_train_too() -> None:
    plain, model = small_model(), small_model()
    model[0].weight.data = model[0].weight.data.t().contiguous().t()
    expected = train_plain(plain, torch.optim.SGD(plain.parameters(), 0.1), 10)
    with paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True) as trainer:
        for step, wanted in enumerate(expected):
            loss = loss_of(model, step)
            assert loss.item() == pytest.approx(wanted, rel=1e-5)
            loss.backward()
            trainer.step(loss)


class Twice(torch.nn.Module):
    """A weight that is used twice, one that is frozen, one that some steps do not use, and batch norm."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.shared = torch.nn.Linear(6, 6)
        self.again = torch.nn.Linear(6, 6)
        self.again.weight = self.shared.weight
        self.norm = torch.nn.BatchNorm1d(6)
        self.rare = torch.nn.Linear(6, 6)
        self.fixed = torch.nn.Linear(6, 3)
        self.fixed.weight.requires_grad = False
        self.use_rare = False

    def forward(self, inputs: "torch.Tensor") -> "torch.Tensor":
        hidden = self.norm(torch.tanh(self.again(torch.tanh(self.shared(inputs)))))
        return self.fixed(self.rare(hidden) if self.use_rare else hidden)


def test_parameters_used_twice_frozen_or_seldom_and_batch_norm() -> None:
    plain, model = Twice(), Twice()
    optimizer = torch.optim.SGD([p for p in plain.parameters() if p.requires_grad], 0.1)
    with paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True) as trainer:
        for step in range(10):
            plain.use_rare = model.use_rare = step % 3 == 0
            optimizer.zero_grad()
            loss_of(plain, step).backward()
            optimizer.step()
            loss_of(model, step).backward()
            trainer.step()
    for (name, ours), theirs in zip(model.state_dict().items(), plain.state_dict().values(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6, msg=name)


class Direct(torch.nn.Module):
    """Layers whose weights are used without a call of the layer: always, and in some steps only."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.attention = torch.nn.MultiheadAttention(6, 2)  # never calls the layer that it projects with
        self.positions = torch.nn.Embedding(8, 6)
        self.last = torch.nn.Linear(6, 3)
        self.call = True

    def forward(self, inputs: "torch.Tensor") -> "torch.Tensor":
        hidden = inputs + self.positions.weight
        hidden = self.attention(hidden, hidden, hidden, need_weights=False)[0]
        return self.last(hidden) if self.call else torch.nn.functional.linear(hidden, self.last.weight, self.last.bias)


def test_weights_that_are_used_without_a_call_of_their_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paceline.torch.Trainer, "_keeps_in_place", lambda *_: False)  # as in a job of several tasks
    plain, model = Direct(), Direct()
    expected = train_plain(plain, torch.optim.SGD(plain.parameters(), 0.1, momentum=0.9), 10)
    losses = []
    with paceline.torch.distribute(model, paceline.Momentum(0.1), quiet=True) as trainer:
        for step in range(10):
            loss = loss_of(model, step)
            loss.backward()
            trainer.step(loss)
            losses.append(loss.item())
        assert losses == pytest.approx(expected, rel=1e-5)
        model.call = False
        loss = loss_of(model, 10)
        with pytest.warns(UserWarning, match=r"parameter 'last\.\w+' was used in this step without a call of its module"):
            loss.backward()
        trainer.step()
        loss_of(model, 11)
        torch.testing.assert_close(model.last.weight, torch.from_numpy(trainer.store.need("last.weight").copy()))
        model.zero_grad()
        trainer.step()


def test_accumulation_without_exchange_is_the_sum() -> None:
    plain, model = small_model(), small_model()
    optimizer = torch.optim.SGD(plain.parameters(), 0.1)
    with paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True) as trainer:
        for step in range(3):
            optimizer.zero_grad()
            for part in range(4):
                loss_of(plain, 10 * step + part).backward()
                with trainer.no_exchange() if part < 3 else contextlib.nullcontext():
                    loss_of(model, 10 * step + part).backward()
            optimizer.step()
            trainer.step()
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_groups_and_schedulers_act() -> None:
    plain, model = small_model(), small_model()
    optimizer = torch.optim.SGD([{"params": plain[2].parameters(), "lr": 0.05}, {"params": plain[0].parameters(), "lr": 0.1}])
    plain_schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    with paceline.torch.distribute(model, paceline.Sgd(0.1), groups=[{"params": list(model[2].parameters()), "rule": paceline.Sgd(0.05)}],
                                   quiet=True) as trainer:
        schedule = torch.optim.lr_scheduler.StepLR(trainer.optimizer, 2, 0.5)
        for step in range(7):
            optimizer.zero_grad()
            loss_of(plain, step).backward()
            optimizer.step()
            plain_schedule.step()
            loss_of(model, step).backward()
            trainer.step()
            schedule.step()
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_autocast_trains() -> None:
    model = small_model()
    losses = []
    with paceline.torch.distribute(model, paceline.Adam(1e-2), quiet=True) as trainer:
        for _ in range(50):
            with torch.autocast("cpu", torch.bfloat16):
                loss = loss_of(model, 0)
            loss.backward()
            trainer.step(loss)
            losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


def test_a_parameter_that_cannot_be_exchanged_is_named() -> None:
    with pytest.raises(ValueError, match="parameter '0.weight' cannot be exchanged: it is torch.float16"):
        paceline.torch.distribute(small_model().half(), paceline.Sgd())
    with pytest.raises(ValueError, match="'weight'.*no shape yet"):
        paceline.torch.distribute(torch.nn.LazyLinear(3), paceline.Sgd())
    frozen = small_model().requires_grad_(False)
    with pytest.raises(ValueError, match="no parameter that requires a gradient"):
        paceline.torch.distribute(frozen, paceline.Sgd())
    with pytest.raises(ValueError, match="a group has a parameter"):
        paceline.torch.distribute(small_model(), paceline.Sgd(), groups=[{"params": list(small_model().parameters())}])


def test_a_loss_or_a_gradient_that_is_not_finite_is_told(tmp_path: pathlib.Path) -> None:
    model = small_model()
    with pytest.raises(paceline.Error, match="not finite|NaN|nan"), paceline.torch.distribute(model, paceline.Sgd(), quiet=True) as trainer:
        loss = loss_of(model, 0) * float("nan")
        loss.backward()
        trainer.step(loss)


def test_training_ends_by_the_flag_steps() -> None:
    model = small_model()
    with paceline.torch.distribute(model, paceline.Sgd(), steps=3, quiet=True) as trainer:
        made = 0
        for step in trainer.batches(range(100)):
            loss_of(model, step).backward()
            trainer.step()
            made += 1
    assert made == 3


PROGRAM = '''
import sys, torch, paceline, paceline.torch
sys.path.insert(0, sys.argv[1])
from test_torch import small_model, batch
torch.set_num_threads(1)
model = small_model()
with paceline.torch.distribute(model, paceline.Momentum(0.1), arguments=sys.argv[2:]) as trainer:
    part = slice(None) if trainer.store.workers == 1 else slice(4 * trainer.store.worker, 4 * trainer.store.worker + 4)
    for step in trainer.batches(range(50)):
        inputs, targets = (half[part] for half in batch(step))
        loss = ((model(inputs) - targets) ** 2).mean()
        loss.backward()
        trainer.step(loss)
print("norm", sum(float((p.double() ** 2).sum()) for p in model.parameters()), flush=True)
'''


BUFFERS = '''
import sys, torch, paceline, paceline.torch
torch.set_num_threads(1)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 3))
with paceline.torch.distribute(model, paceline.Sgd(0.1), buffers=sys.argv[1], arguments=sys.argv[2:]) as trainer:
    for step in trainer.batches(range(12)):
        generator = torch.Generator().manual_seed(100 * trainer.store.worker + step)
        loss = (model(torch.randn(8, 6, generator=generator) + trainer.store.worker) ** 2).mean()
        loss.backward()
        trainer.step(loss)
print("means", *model[0].running_mean.tolist(), flush=True)
'''


def statistics_of(worker: int) -> list[float]:
    norm = torch.nn.BatchNorm1d(6)
    for step in range(12):
        generator = torch.Generator().manual_seed(100 * worker + step)
        norm(torch.randn(8, 6, generator=generator) + worker)
    means: list[float] = norm.running_mean.tolist()
    return means


def statistics_with(command: str, tmp_path: pathlib.Path, ps: int, buffers: str, flags: list[str]) -> list[list[float]]:
    (tmp_path / "train.py").write_text(BUFFERS)
    done = subprocess.run([command, "launch", "--ps", str(ps), "--workers", "3", "--", sys.executable, tmp_path / "train.py", buffers,
                           "--out", tmp_path / "run", *flags], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = {line.split()[0]: [float(word) for word in line.split()[3:]] for line in done.stdout.splitlines() if "| means" in line}
    return [seen[f"worker:{worker}"] for worker in range(3)]


@pytest.mark.parametrize("ps, strategy", [(1, "sync"), (1, "async"), (0, "allreduce")])
def test_all_workers_have_the_chiefs_buffers_where_it_is_asked_for(command: str, tmp_path: pathlib.Path, ps: int, strategy: str) -> None:
    all_means = statistics_with(command, tmp_path, ps, "chief", ["--strategy", strategy, "--steps", "12" if strategy != "async" else "36"])
    for means in all_means if strategy != "async" else all_means[:1]:  # another worker may have ended before the chief
        assert means == pytest.approx(statistics_of(0), rel=1e-5, abs=1e-6)
    saved = paceline.load(tmp_path / "run")["buffer:0.running_mean"]
    assert (saved[0, :-1] / saved[0, -1]).tolist() == pytest.approx(statistics_of(0), rel=1e-5, abs=1e-6)


def test_each_worker_has_its_own_buffers_or_the_mean_of_all(command: str, tmp_path: pathlib.Path) -> None:
    each = [statistics_of(worker) for worker in range(3)]
    own = statistics_with(command, tmp_path, 0, "own", ["--strategy", "allreduce", "--steps", "12"])
    assert own == [pytest.approx(means, rel=1e-5, abs=1e-6) for means in each]
    (mean,) = {tuple(means) for means in statistics_with(command, tmp_path, 0, "mean", ["--strategy", "allreduce", "--steps", "12",
                                                                                       "--overwrite"])}
    assert mean == pytest.approx([sum(parts) / 3 for parts in zip(*each, strict=True)], rel=1e-5, abs=1e-6)


def test_what_is_done_with_buffers_is_one_of_three(command: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="buffers is 'all', and must be 'mean', 'chief' or 'own'"):
        paceline.torch.distribute(small_model(), paceline.Sgd(), buffers="all")
    (tmp_path / "train.py").write_text(BUFFERS)
    done = subprocess.run([command, "launch", "--ps", "1", "--workers", "2", "--", sys.executable, tmp_path / "train.py", "chief",
                           "--strategy", "local_sgd"], capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    assert "buffers='chief' does not go with local_sgd" in done.stdout + done.stderr


@pytest.mark.parametrize("ps, flags", [(1, ["--strategy", "sync"]), (0, ["--strategy", "allreduce"])])
def test_two_workers_are_as_good_as_one_with_the_whole_batch(command: str, tmp_path: pathlib.Path, ps: int, flags: list[str]) -> None:
    plain = small_model()
    train_plain(plain, torch.optim.SGD(plain.parameters(), 0.1, momentum=0.9), 50)
    expected = sum(float((p.double() ** 2).sum()) for p in plain.parameters())
    (tmp_path / "train.py").write_text(PROGRAM)
    done = subprocess.run([command, "launch", "--ps", str(ps), "--workers", "2", "--", sys.executable, tmp_path / "train.py",
                           pathlib.Path(__file__).parent, "--steps", "50", *flags], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    norms = [float(line.split()[-1]) for line in done.stdout.splitlines() if "norm " in line]
    assert norms == pytest.approx([expected] * 2, rel=1e-5)
