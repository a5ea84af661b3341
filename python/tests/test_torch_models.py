"""The models of evidence/make_pytorch_table learn by Paceline what they learn by plain torch."""

import json
import pathlib
import subprocess
import sys
from collections.abc import Sequence

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch
PROGRAM = pathlib.Path(__file__).parents[2] / "evidence/pytorch_train.py"
STEPS = 50


def train(folder: pathlib.Path, model: str, by: str, flags: Sequence[str] = (), launched: Sequence[str] = ()) -> list[list[float]]:
    """The losses of each worker, by its number."""
    folder.mkdir()
    done = subprocess.run([*launched, sys.executable, str(PROGRAM), model, "--by", by, "--into", str(folder), "--warm-up", "0", "--steps", str(STEPS),
                           "--compute-threads", "1", *flags], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    losses: list[list[float]] = [json.loads(path.read_text())["losses"] for path in sorted(folder.iterdir())]
    assert all(len(each) == STEPS for each in losses)
    return losses


@pytest.mark.parametrize("model", ["gpt", "resnet18"])
def test_one_worker_has_the_losses_of_plain_torch(tmp_path: pathlib.Path, model: str) -> None:
    if model == "resnet18":
        pytest.importorskip("torchvision")
    [plain] = train(tmp_path / "torch", model, "torch")
    [ours] = train(tmp_path / "paceline", model, "paceline", ["--quiet"])
    assert min(plain) < 0.99 * plain[0]
    assert ours == pytest.approx(plain, rel=1e-5)


@pytest.mark.parametrize("tasks, flags", [(["--ps", "1"], ["--strategy", "sync"]), (["--ps", "0"], ["--strategy", "allreduce"])])
def test_two_workers_have_the_losses_of_the_whole_batch(command: str, tmp_path: pathlib.Path, tasks: list[str], flags: list[str]) -> None:
    [plain] = train(tmp_path / "torch", "gpt", "torch", ["--parts", "2"])
    ours = train(tmp_path / "paceline", "gpt", "paceline", flags, [command, "launch", *tasks, "--workers", "2", "--quiet", "--"])
    assert len(ours) == 2
    assert [sum(each) / 2 for each in zip(*ours, strict=True)] == pytest.approx(plain, rel=1e-5)
