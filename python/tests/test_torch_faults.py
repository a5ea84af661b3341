"""What goes wrong in a job of several workers is said in words that name the worker, the parameter and the remedy."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

# The worker that --who names does at step 5 what --what says.
PROGRAM = '''
import argparse, json, os, signal, sys, torch, paceline, paceline.torch
parser = argparse.ArgumentParser()
parser.add_argument("--who", type=int, default=-1)
parser.add_argument("--what", default="")
own, flags = parser.parse_known_args()
torch.manual_seed(1)
torch.set_num_threads(1)
mine = json.loads(os.environ["PACELINE_TASK"])["task"] == f"worker:{own.who}"
if mine and own.what == "version":
    torch.__version__ = "1.99.0"
model = torch.nn.Sequential(torch.nn.Linear(6, 16 if not (mine and own.what == "model") else 17), torch.nn.Tanh(), torch.nn.Linear(
    16 if not (mine and own.what == "model") else 17, 3))
with paceline.torch.distribute(model, paceline.Sgd(0.1), arguments=flags) as trainer:
    for step in trainer.batches(range(10**9)):
        if mine and own.what == "end" and step == 5:
            trainer.store.stop_all()
        loss = (model(torch.randn(8, 6)) ** 2).mean()
        if mine and step == (0 if own.what == "nan" else 5):
            print("now", os.getpid(), flush=True)
            if own.what == "nan":
                loss = loss * float("nan")
            if own.what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if own.what == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            if own.what == "error":
                raise RuntimeError("the data are gone")
        loss.backward()
        result = trainer.step(loss)
        if step % 100 == 7:
            print("at", result.global_step, flush=True)
print("ended well", flush=True)
'''

JOBS = [pytest.param(1, ["--strategy", "sync"], id="sync"), pytest.param(0, ["--strategy", "allreduce"], id="allreduce")]


class Job:
    """A job of two workers whose output is read as it comes."""

    def __init__(self, command: str, folder: pathlib.Path, ps: int, flags: list[str]) -> None:
        (folder / "train.py").write_text(PROGRAM)
        self.task = subprocess.Popen([command, "launch", "--ps", str(ps), "--workers", "2", "--", sys.executable, folder / "train.py",
                                      *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.seen = ""
        self._limit = threading.Timer(240, lambda: os.killpg(self.task.pid, signal.SIGKILL))
        self._limit.start()

    def wait_for(self, pattern: str) -> "re.Match[str]":
        assert self.task.stdout is not None
        for line in self.task.stdout:
            self.seen += line
            found = re.search(pattern, line)
            if found:
                return found
        raise AssertionError(f"there is no line with {pattern}:\n{self.seen}")

    def end(self) -> int:
        assert self.task.stdout is not None
        self.seen += self.task.stdout.read()
        self._limit.cancel()
        return self.task.wait(timeout=60)


@pytest.mark.parametrize("ps, flags", JOBS)
@pytest.mark.parametrize("who", [0, 1])
def test_the_first_step_that_is_not_finite_names_the_worker_and_the_parameter(command: str, tmp_path: pathlib.Path, ps: int,
                                                                             flags: list[str], who: int) -> None:
    job = Job(command, tmp_path, ps, [*flags, "--who", str(who), "--what", "nan"])
    assert job.end() != 0
    assert re.search(rf"worker:{who} contributed NaN or infinity to \d\.(weight|bias) in its step 0", job.seen), job.seen


@pytest.mark.parametrize("ps, flags", JOBS)
def test_a_worker_that_is_killed_is_named_and_the_job_ends(command: str, tmp_path: pathlib.Path, ps: int, flags: list[str]) -> None:
    job = Job(command, tmp_path, ps, [*flags, "--who", "1", "--what", "kill"])
    assert job.end() != 0
    assert "worker:1 failed first: killed by signal 9" in job.seen, job.seen
    # Within a call of the store it says at which step; between two calls it is Python's own.
    assert re.search(r"worker:0 +\| KeyboardInterrupt(: worker:0 was interrupted at step .*)?$", job.seen, re.MULTILINE), job.seen
    assert "During handling of the above exception" not in job.seen, job.seen


@pytest.mark.parametrize("ps, flags", JOBS)
def test_a_worker_that_is_stopped_is_waited_for_and_goes_on(command: str, tmp_path: pathlib.Path, ps: int, flags: list[str]) -> None:
    job = Job(command, tmp_path, ps, [*flags, "--who", "1", "--what", "stop", "--steps", "300"])
    stopped = int(job.wait_for(r"now (\d+)").group(1))
    job.wait_for(r"worker:1.*(silent|lost|not answer|waits for|without)|waits for.*worker:1|(silent|lost).*worker:1")
    os.kill(stopped, signal.SIGCONT)
    assert job.end() == 0, job.seen
    assert re.search(r"worker:0 +\| ended well", job.seen), job.seen
    assert re.search(r"worker:1 +\| ended well", job.seen), job.seen


@pytest.mark.parametrize("ps, flags", JOBS)
def test_two_models_are_refused_with_the_parameter_that_differs(command: str, tmp_path: pathlib.Path, ps: int, flags: list[str]) -> None:
    job = Job(command, tmp_path, ps, [*flags, "--who", "1", "--what", "model", "--join-timeout", "20"])
    assert job.end() != 0
    assert re.search(r"(the chief|worker:0)'s parameter '0\.bias' is \(16,\), that of worker:1 is \(17,\)", job.seen), job.seen


@pytest.mark.parametrize("ps, flags", JOBS)
def test_two_versions_of_torch_are_refused_with_both(command: str, tmp_path: pathlib.Path, ps: int, flags: list[str]) -> None:
    job = Job(command, tmp_path, ps, [*flags, "--who", "1", "--what", "version", "--join-timeout", "20"])
    assert job.end() != 0
    ours = re.escape(torch.__version__.split("+")[0])
    assert re.search(rf"torch is ({ours}, that of worker:1 is 1\.99\.0|1\.99\.0, that of .* is {ours})", job.seen), job.seen


@pytest.mark.parametrize("ps, flags", JOBS)
def test_training_that_a_worker_ends_ends_for_all(command: str, tmp_path: pathlib.Path, ps: int, flags: list[str]) -> None:
    job = Job(command, tmp_path, ps, [*flags, "--who", "1", "--what", "end"])
    assert job.end() == 0, job.seen
    assert job.seen.count("ended well") == 2, job.seen


@pytest.mark.parametrize("ps, flags", JOBS)
def test_an_exception_of_the_program_is_named(command: str, tmp_path: pathlib.Path, ps: int, flags: list[str]) -> None:
    job = Job(command, tmp_path, ps, [*flags, "--who", "1", "--what", "error"])
    assert job.end() != 0
    assert "RuntimeError: the data are gone" in job.seen
    assert "worker:1" in job.seen
