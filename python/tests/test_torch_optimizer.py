"""Optimizers of torch that update on the workers: as without Paceline, alone and in a job, and over a checkpoint."""

import pathlib
import subprocess
import sys

import pytest

import paceline

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
if torch is not None:
    import paceline.torch
    from test_torch import loss_of, small_model, train_plain


def train_ours(model: "torch.nn.Module", optimizer: "torch.optim.Optimizer", steps: range, **flags: object) -> list[float]:
    losses = []
    with paceline.torch.distribute(model, optimizer=optimizer, quiet=True, **flags) as trainer:
        for step in trainer.batches(steps):
            loss = loss_of(model, step)
            loss.backward()
            trainer.step(loss)
            losses.append(loss.item())
    return losses


def assert_alike(ours: "torch.nn.Module", theirs: "torch.nn.Module", rtol: float = 0, atol: float = 0) -> None:
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol, msg=lambda why, name=name: f"{name}: {why}")


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, dampening=0.5, weight_decay=1e-3),
    "nesterov": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, foreach=False),
    "adam": lambda p: torch.optim.Adam(p, 1e-2, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, 1e-2, fused=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, 1e-2, initial_accumulator_value=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-2, momentum=0.5, centered=True),
    "adadelta": lambda p: torch.optim.Adadelta(p),
    "adamax": lambda p: torch.optim.Adamax(p),
    "radam": lambda p: torch.optim.RAdam(p, 1e-2),
    "rprop": lambda p: torch.optim.Rprop(p, 1e-2),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_one_process_trains_as_the_optimizer_does_by_itself(kind: str) -> None:
    plain, model = small_model(), small_model()
    expected = train_plain(plain, OPTIMIZERS[kind](plain.parameters()), 20)
    assert train_ours(model, OPTIMIZERS[kind](model.parameters()), range(20)) == expected
    assert_alike(model, plain)


def test_groups_and_schedulers_of_the_optimizer_act() -> None:
    def made(model: "torch.nn.Module") -> tuple["torch.optim.Optimizer", object]:
        optimizer = torch.optim.AdamW([{"params": model[0].parameters(), "weight_decay": 0.1}, {"params": model[2].parameters(), "lr": 0.1}],
                                      lr=1e-2)
        return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, [0.01, 0.1], total_steps=20)

    plain, model = small_model(), small_model()
    optimizer, schedule = made(plain)
    ours, own_schedule = made(model)
    with paceline.torch.distribute(model, optimizer=ours, quiet=True) as trainer:
        assert trainer.optimizer is ours
        for step in range(12):
            optimizer.zero_grad()
            loss_of(plain, step).backward()
            optimizer.step()
            schedule.step()  # type: ignore[attr-defined]
            loss_of(model, step).backward()
            trainer.step() if step % 2 else ours.step()  # they are one
            own_schedule.step()  # type: ignore[attr-defined]
    assert_alike(model, plain)


def test_its_state_goes_on_from_a_checkpoint(tmp_path: pathlib.Path) -> None:
    plain, first, second = small_model(), small_model(), small_model()
    expected = train_plain(plain, torch.optim.Adam(plain.parameters(), 1e-2), 20)
    losses = train_ours(first, torch.optim.Adam(first.parameters(), 1e-2), range(12), out=tmp_path / "run")
    saved = paceline.load(tmp_path / "run")
    assert saved.rule("0.weight") == "torch_adam"
    assert sorted(saved.slots("0.weight")) == ["exp_avg", "exp_avg_sq", "t"]
    losses += train_ours(second, torch.optim.Adam(second.parameters(), 1e-2), range(12, 20), out=tmp_path / "run", resume=True)
    assert losses == expected
    assert_alike(second, plain)


def test_clipping_comes_before_it() -> None:
    plain, model = small_model(), small_model()
    optimizer = torch.optim.Adam(plain.parameters(), 1e-2)
    for step in range(10):
        optimizer.zero_grad()
        loss_of(plain, step).backward()
        torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.1)
        optimizer.step()
    train_ours(model, torch.optim.Adam(model.parameters(), 1e-2), range(10), clip_norm=0.1)
    assert_alike(model, plain, rtol=1e-3, atol=1e-5)


def test_parameters_that_it_has_not_stay_as_they_are() -> None:
    model = small_model()
    before = [p.detach().clone() for p in model[0].parameters()]
    train_ours(model, torch.optim.SGD(model[2].parameters(), 0.1), range(3))
    assert all(torch.equal(p, old) for p, old in zip(model[0].parameters(), before, strict=True))


def test_what_cannot_be_is_refused_in_a_sentence() -> None:
    model = small_model()
    distribute = paceline.torch.distribute
    with pytest.raises(ValueError, match="give a rule, with groups if need be, or an optimizer"):
        distribute(model)
    with pytest.raises(ValueError, match="give a rule, with groups if need be, or an optimizer"):
        distribute(model, paceline.Sgd(), optimizer=torch.optim.SGD(model.parameters(), 0.1))
    with pytest.raises(ValueError, match="the optimizer has a parameter that the model has not"):
        distribute(model, optimizer=torch.optim.SGD(small_model().parameters(), 0.1))
    with pytest.raises(ValueError, match="NAdam keeps 'mu_product' for parameter '0.weight'"):
        distribute(model, optimizer=torch.optim.NAdam(model.parameters()))
    with pytest.raises(ValueError, match=r"ASGD keeps '\w+' for parameter '0.weight', which is no float32 of its shape"):
        distribute(model, optimizer=torch.optim.ASGD(model.parameters()))
    if hasattr(torch.optim, "Adafactor"):  # of torch 2.5
        with pytest.raises(ValueError, match=r"Adafactor keeps '\w+' for parameter '0.weight', which is no float32 of its shape"):
            distribute(model, optimizer=torch.optim.Adafactor(model.parameters()))
    with pytest.raises(ValueError, match="LBFGS cannot update parameter '0.weight' by itself"):
        distribute(model, optimizer=torch.optim.LBFGS(model.parameters()))
    used = torch.optim.Adam(model.parameters())
    loss_of(model, 0).backward()
    used.step()
    with pytest.raises(ValueError, match="Adam has made steps already"):
        distribute(model, optimizer=used)


PROGRAM = '''
import sys, torch, paceline, paceline.torch
sys.path.insert(0, sys.argv[1])
from test_torch import small_model, batch
torch.set_num_threads(1)
model = small_model()
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
with paceline.torch.distribute(model, optimizer=optimizer, arguments=sys.argv[2:]) as trainer:
    part = slice(4 * trainer.store.worker, 4 * trainer.store.worker + 4)
    for step in trainer.batches(range(40)):
        inputs, targets = (half[part] for half in batch(step))
        loss = ((model(inputs) - targets) ** 2).mean()
        loss.backward()
        trainer.step(loss)
print("norm", sum(float((p.detach().double() ** 2).sum()) for p in model.parameters()), flush=True)
'''


def launched(command: str, tmp_path: pathlib.Path, ps: int, flags: list[str], program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    (tmp_path / "train.py").write_text(program)
    return subprocess.run([command, "launch", "--ps", str(ps), "--workers", "2", "--", sys.executable, tmp_path / "train.py",
                           pathlib.Path(__file__).parent, *flags], capture_output=True, text=True, timeout=300)


def norm_of(model: "torch.nn.Module") -> float:
    return sum(float((p.detach().double() ** 2).sum()) for p in model.parameters())


def norms_in(done: subprocess.CompletedProcess[str]) -> list[float]:
    assert done.returncode == 0, done.stdout + done.stderr
    return [float(line.split()[-1]) for line in done.stdout.splitlines() if "norm " in line]


def test_workers_of_an_all_reduce_update_by_it_as_one_with_the_whole_batch(command: str, tmp_path: pathlib.Path) -> None:
    plain = small_model()
    train_plain(plain, torch.optim.AdamW(plain.parameters(), 1e-2), 40)
    done = launched(command, tmp_path, 0, ["--strategy", "allreduce", "--steps", "40"])
    assert norms_in(done) == pytest.approx([norm_of(plain)] * 2, rel=1e-4)


@pytest.mark.parametrize("ps", [0, 1])
def test_workers_that_make_local_steps_update_by_it(command: str, tmp_path: pathlib.Path, ps: int) -> None:
    plain = small_model()
    train_plain(plain, torch.optim.AdamW(plain.parameters(), 1e-2), 40)
    done = launched(command, tmp_path, ps, ["--strategy", "local_sgd", "--local-steps", "4", "--steps", "40"])
    norms = norms_in(done)
    assert len(norms) == 2
    assert norms == pytest.approx([norm_of(plain)] * 2, rel=0.3)


@pytest.mark.parametrize("strategy", ["sync", "async", "ssp"])
def test_parameter_servers_do_not_apply_it_and_say_so(command: str, tmp_path: pathlib.Path, strategy: str) -> None:
    done = launched(command, tmp_path, 1, ["--strategy", strategy])
    assert done.returncode != 0
    assert (f"--strategy {strategy} applies rules on the parameter servers, and rule torch_adamw of '0.weight' is code of the workers: "
            "use --strategy allreduce without parameter servers, local_sgd, or a rule of Paceline") in done.stdout + done.stderr


@pytest.mark.parametrize("by", ["optimizer", "rule"])
def test_hybrid_is_refused_where_nothing_is_read_by_rows(command: str, tmp_path: pathlib.Path, by: str) -> None:
    program = PROGRAM if by == "optimizer" else PROGRAM.replace("optimizer=optimizer", "paceline.Sgd(0.1)")
    done = launched(command, tmp_path, 1, ["--strategy", "hybrid"], program)
    assert done.returncode != 0
    assert "--strategy hybrid needs a sparse variable, such as an embedding that is read by rows" in done.stdout + done.stderr
