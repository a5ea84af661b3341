"""Autocast and GradScaler: a step with infinity is applied by nobody, and the scale falls."""

import pathlib
import subprocess
import sys

import pytest

import paceline

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
if torch is not None:
    import paceline.torch
    from test_torch import batch, loss_of, small_model


def made_scaler(scale: float = 2.0 ** 10, interval: int = 4) -> "torch.amp.GradScaler":
    return torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=interval)


def train_plain_scaled(model: "torch.nn.Module", optimizer: "torch.optim.Optimizer", scaler: "torch.amp.GradScaler", steps: int,
                       bad: int = -1) -> list[float]:
    scales = []
    for step in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = loss_of(model, step)
        scaler.scale(loss * (float("inf") if step == bad else 1)).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales


@pytest.mark.parametrize("by", ["rule", "optimizer"])
def test_a_scaler_acts_as_it_does_by_itself(by: str) -> None:
    plain, model = small_model(), small_model()
    expected = train_plain_scaled(plain, torch.optim.SGD(plain.parameters(), 0.1, momentum=0.9), made_scaler(), 20, bad=6)
    scaler, scales, skipped = made_scaler(), [], []
    how = ({"rule": paceline.Momentum(0.1)} if by == "rule" else
           {"optimizer": torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)})
    with paceline.torch.distribute(model, **how, scaler=scaler, quiet=True) as trainer:
        for step in range(20):
            with torch.autocast("cpu", torch.float16):
                loss = loss_of(model, step)
            scaler.scale(loss * (float("inf") if step == 6 else 1)).backward()
            skipped += [step] if trainer.step(loss).skipped else []
            scales.append(scaler.get_scale())
    assert skipped == [6]
    assert scales == expected
    assert scales[6] == scales[5] / 2
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_overflow_of_float16_itself_lowers_the_scale_until_steps_count() -> None:
    model, scaler = small_model(), made_scaler(2.0 ** 40)
    losses = []
    with paceline.torch.distribute(model, paceline.Sgd(0.1), scaler=scaler, quiet=True) as trainer:
        for _ in range(60):
            with torch.autocast("cpu", torch.float16):
                loss = loss_of(model, 0)
            scaler.scale(loss).backward()
            trainer.step(loss)
            losses.append(loss.item())
    assert losses[0] == losses[1]  # the first steps overflow
    assert losses[-1] < 0.9 * losses[0]


def test_a_scaler_that_is_off_changes_nothing() -> None:
    with_one, without = small_model(), small_model()
    for model, scaler in ((with_one, torch.amp.GradScaler("cpu", enabled=False)), (without, None)):
        with paceline.torch.distribute(model, paceline.Sgd(0.1), scaler=scaler, quiet=True) as trainer:
            for step in range(5):
                loss = loss_of(model, step)
                (scaler.scale(loss) if scaler else loss).backward()
                assert not trainer.step(loss).skipped
    for a, b in zip(with_one.parameters(), without.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_scaler_that_the_trainer_does_not_know_is_refused() -> None:
    model, scaler = small_model(), made_scaler()
    with pytest.raises(ValueError, match=r"give the scaler to distribute\(scaler=…\)"), \
            paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True) as trainer:
        scaler.scale(loss_of(model, 0)).backward()
        scaler.step(trainer.optimizer)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_parameters_and_gradients_stay_float32_under_autocast(dtype: str) -> None:
    model = small_model()
    with paceline.torch.distribute(model, paceline.Adam(1e-2), quiet=True) as trainer:
        seen = []
        ready = trainer.store.ready
        trainer.store.ready = lambda name, gradient: (seen.append(gradient.dtype), ready(name, gradient))  # type: ignore
        losses = []
        for _ in range(30):
            with torch.autocast("cpu", getattr(torch, dtype)):
                outputs = model(batch(0)[0])
                loss = ((outputs - batch(0)[1]) ** 2).mean()
            loss.backward()
            trainer.step(loss)
            losses.append(loss.item())
    assert outputs.dtype == getattr(torch, dtype)
    assert set(seen) == {torch.float32}
    assert losses[-1] < losses[0] / 2


PROGRAM = '''
import sys, torch, paceline, paceline.torch
sys.path.insert(0, sys.argv[1])
from test_torch import small_model, batch
torch.set_num_threads(1)
model = small_model()
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=100)
with paceline.torch.distribute(model, paceline.Momentum(0.1), scaler=scaler, arguments=sys.argv[2:]) as trainer:
    mine = trainer.store.worker
    for step in trainer.batches(range(12)):
        inputs, targets = batch(step)
        with torch.autocast("cpu", torch.float16):
            loss = ((model(inputs) - targets) ** 2).mean()
        scaler.scale(loss * (float("inf") if step == 5 and mine == 1 else 1.0)).backward()
        if trainer.step(loss).skipped:
            print("skips", step, flush=True)
print("scale", scaler.get_scale(), flush=True)
print("norm", sum(float((p.detach().double() ** 2).sum()) for p in model.parameters()), flush=True)
'''


def run_two(command: str, tmp_path: pathlib.Path, ps: int, strategy: str) -> list[list[str]]:
    (tmp_path / "train.py").write_text(PROGRAM)
    done = subprocess.run([command, "launch", "--ps", str(ps), "--workers", "2", "--", sys.executable, tmp_path / "train.py",
                           pathlib.Path(__file__).parent, "--strategy", strategy], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.split("|")[1].split() for line in sorted(done.stdout.splitlines()) if line.startswith("worker:")]


def values(lines: list[list[str]], word: str) -> list[str]:
    return [line[1] for line in lines if line[:1] == [word]]


def test_all_workers_of_an_all_reduce_leave_the_step_out_together(command: str, tmp_path: pathlib.Path) -> None:
    lines = run_two(command, tmp_path, 0, "allreduce")
    assert values(lines, "skips") == ["5", "5"]
    assert values(lines, "scale") == ["512.0", "512.0"]
    norms = values(lines, "norm")
    assert norms[0] == norms[1]
    plain = small_model()
    optimizer = torch.optim.SGD(plain.parameters(), 0.1, momentum=0.9)
    train_plain_scaled(plain, optimizer, made_scaler(1024.0, 100), 12, bad=5)
    assert float(norms[0]) == pytest.approx(sum(float((p.detach().double() ** 2).sum()) for p in plain.parameters()), rel=1e-4)


def test_a_round_of_parameter_servers_leaves_that_worker_out(command: str, tmp_path: pathlib.Path) -> None:
    lines = run_two(command, tmp_path, 1, "sync")
    assert values(lines, "skips") == ["5"]
    assert sorted(values(lines, "scale")) == ["1024.0", "512.0"]
