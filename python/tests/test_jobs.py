"""Python programs as the tasks of a job: by `paceline launch`, torchrun's and Slurm's variables."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

import paceline

# Each worker pulls w to its own target, so that rounds end at the mean of the targets.
PROGRAM = '''
import sys, numpy as np, paceline
store = paceline.Store({"w": np.zeros(8, np.float32), "v": np.ones((300, 300), np.float32)}, paceline.Sgd(0.1),
                       arguments=sys.argv[1:])
target = store.worker + 1.0
with store:
    for step in store.steps():
        with step:
            w = store.need("w").copy()
            store.ready("v", np.zeros((300, 300), np.float32))
            store.ready("w", w - target)
            step.loss = float(np.mean((w - target) ** 2))
    print("value", store.worker, store.workers, store.read("w")[0], flush=True)
'''


@pytest.fixture
def program(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return str(path)


def launch(command: str, *words: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([command, "launch", *map(str, words)], capture_output=True, text=True, timeout=180,
                          env={**os.environ, **(env or {})})


def values_in(output: str) -> list[float]:
    return [float(line.split()[-1]) for line in output.splitlines() if "value " in line]


@pytest.mark.parametrize("flags", [
    ["--ps", 1, "--workers", 2, "--", "--strategy", "sync"],
    ["--ps", 2, "--workers", 2, "--", "--strategy", "sync", "--wire", "bfloat16", "--clip"],
    ["--ps", 0, "--workers", 2, "--", "--strategy", "allreduce"],
    ["--ps", 1, "--workers", 2, "--", "--strategy", "local_sgd", "--local-steps", 4],
    ["--ps", 1, "--workers", 2, "--", "--strategy", "async"],
    ["--ps", 1, "--workers", 2, "--", "--strategy", "ssp", "--staleness", 2],
    ["--ps", 1, "--workers", 2, "--", "--strategy", "sync", "--accumulate", 2],
    ["--ps", 1, "--workers", 2, "--tls", "on", "--", "--strategy", "sync"],
], ids=lambda flags: " ".join(map(str, flags)))
def test_workers_train_together(command: str, program: str, flags: list[object]) -> None:
    at = flags.index("--")
    own = [flag for flag in flags[at + 1:] if flag != "--clip"]
    done = launch(command, *flags[:at], "--", sys.executable, program, "--steps", 150, *own)
    assert done.returncode == 0, done.stdout + done.stderr
    values = values_in(done.stdout)
    assert len(values) == 2, done.stdout + done.stderr
    # Each worker pulls to a number of its own, 1 or 2; one that nobody waits for may have the last word.
    together = not {"async", "ssp"} & set(map(str, flags))
    for value in values:
        assert value == pytest.approx(1.5, abs=0.15 if together else 0.51)


@pytest.mark.parametrize("strategy", ["sync", "allreduce", "local_sgd"])
def test_values_keep_their_memory_when_the_job_is_over(command: str, tmp_path: pathlib.Path, strategy: str) -> None:
    (tmp_path / "train.py").write_text(PROGRAM + 'print("kept", store.worker, view.shape, np.isfinite(view).all())\n')
    text = (tmp_path / "train.py").read_text().replace('store.ready("v",', 'view = store.need("v")\n            store.ready("v",')
    (tmp_path / "train.py").write_text(text)
    done = launch(command, "--ps", 0 if strategy == "allreduce" else 1, "--workers", 2, "--", sys.executable, tmp_path / "train.py",
                  "--strategy", strategy, "--steps", 10)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("(300, 300) True") == 2


def test_the_report_is_of_all_tasks(command: str, program: str, tmp_path: pathlib.Path) -> None:
    done = launch(command, "--ps", 1, "--workers", 2, "--report", tmp_path / "r.json", "--", sys.executable, program,
                  "--strategy", "sync", "--steps", 10, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert sorted(task["task"] for task in report["tasks"]) == ["ps:0", "worker:0", "worker:1"]
    assert paceline.load(tmp_path / "run").step == 10


def test_a_worker_that_fails_is_named(command: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace('step.loss =', 'assert store.worker == 0, "mine"\n            step.loss ='))
    done = launch(command, "--ps", 1, "--workers", 2, "--", sys.executable, tmp_path / "train.py", "--strategy", "sync",
                  "--steps", 1000000)
    assert done.returncode == 1
    assert "worker:1" in done.stdout + done.stderr
    assert "AssertionError: mine" in done.stdout + done.stderr


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start_all(environments: list[dict[str, str]], *words: object) -> list[tuple[int, str]]:
    tasks = [subprocess.Popen([sys.executable, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, **environment}) for environment in environments]
    return [(task.wait(timeout=180), output) for task in tasks for output in [task.communicate(timeout=180)[0]]]


def test_torchruns_variables_are_read(program: str) -> None:
    port = free_port()
    ended = start_all([{"RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "3",
                        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} for rank in range(3)],
                      program, "--ps", 1, "--strategy", "sync", "--steps", 150)
    assert [status for status, _ in ended] == [0, 0, 0], ended
    assert [values_in(output) != [] for _, output in ended] == [False, True, True]


def test_slurms_variables_are_read(program: str) -> None:
    job = str(os.getpid())
    ended = start_all([{"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": str(rank), "SLURM_STEP_NODELIST": "localhost",
                        "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_DISTRIBUTION": "block", "SLURM_JOB_ID": job, "SLURM_STEP_ID": "0",
                        "SLURM_NODEID": "0", "SLURM_LOCALID": str(rank)} for rank in range(2)],
                      program, "--strategy", "allreduce", "--steps", 150)
    assert [status for status, _ in ended] == [0, 0], ended
    for _, output in ended:
        assert values_in(output)[0] == pytest.approx(1.5, abs=0.05)


WAITING = '''
import sys, threading, numpy as np, paceline
turns = 0
def count():
    global turns
    while True:
        turns += 1
threading.Thread(target=count, daemon=True).start()
try:
    store = paceline.Store({"w": np.zeros(8, np.float32)}, paceline.Sgd(0.1), cluster=sys.argv[1], task="worker:0",
                           join_timeout=float(sys.argv[2]), insecure=True)
except paceline.Error as error:
    print("ended", error.code.name, turns > 100000, error)
'''


def test_a_wait_for_others_has_an_end_and_lets_other_threads_run(tmp_path: pathlib.Path) -> None:
    cluster = f"ps=127.0.0.1:{free_port()};worker=127.0.0.1:{free_port()}"
    (tmp_path / "wait.py").write_text(WAITING)
    done = subprocess.run([sys.executable, tmp_path / "wait.py", cluster, "2"], capture_output=True, text=True, timeout=120)
    assert "ended" in done.stdout, done.stdout + done.stderr
    assert "True" in done.stdout
    assert "ps:0" in done.stdout


def wait_for(condition: object, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)


def test_an_interruption_ends_a_wait_for_others_within_a_second(tmp_path: pathlib.Path) -> None:
    cluster = f"ps=127.0.0.1:{free_port()};worker=127.0.0.1:{free_port()}"
    (tmp_path / "wait.py").write_text(WAITING.replace("try:", "print('begins', flush=True)\ntry:"))
    task = subprocess.Popen([sys.executable, tmp_path / "wait.py", cluster, "300"], stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.STDOUT)
    assert task.stdout is not None
    assert task.stdout.readline() == "begins\n"
    time.sleep(1)
    begun = time.monotonic()
    task.send_signal(signal.SIGINT)
    task.communicate(timeout=60)
    assert task.returncode in (130, -signal.SIGINT)
    assert time.monotonic() - begun < 5  # a second, on a machine that is not busy


@pytest.mark.parametrize("ps, strategy", [(1, "sync"), (0, "allreduce")])
def test_an_interruption_ends_a_wait_in_a_round_and_saves_what_was_finished(command: str, tmp_path: pathlib.Path, ps: int,
                                                                            strategy: str) -> None:
    # Worker 1 stops within its step 5, and worker 0 waits for its gradient.
    program = PROGRAM.replace("for step in store.steps():", "for number, step in enumerate(store.steps()):").replace(
        '            w = store', '''            print("step", number, os.getpid(), flush=True)
            if store.worker == 1 and number == 5: os.kill(os.getpid(), signal.SIGSTOP)
            w = store''').replace("import sys", "import os, signal, sys")
    (tmp_path / "train.py").write_text(program)
    job = subprocess.Popen([command, "launch", "--ps", str(ps), "--workers", "2", "--", sys.executable, tmp_path / "train.py", "--strategy",
                            strategy, "--steps", "1000", "--out", str(tmp_path / "run"), "--save-every", "3"], stdout=subprocess.PIPE,
                           text=True, stderr=subprocess.STDOUT)
    assert job.stdout is not None
    stops: dict[str, int] = {}
    for line in job.stdout:
        words = line.split()
        if words[1:4] == ["|", "step", "5"]:
            stops[words[0]] = int(words[4])
        if len(stops) == 2:
            break
    os.kill(stops["worker:0"], signal.SIGINT)
    seen = ""
    for line in job.stdout:  # until the launcher has ended the others
        seen += line
        if "KeyboardInterrupt: worker:0 was interrupted" in line:
            os.kill(stops["worker:1"], signal.SIGKILL)
    job.wait(timeout=60)
    assert "KeyboardInterrupt: worker:0 was interrupted at step 5" in seen, seen
    assert paceline.load(tmp_path / "run").step == 5


def test_an_interruption_of_a_job_saves_it(command: str, program: str, tmp_path: pathlib.Path) -> None:
    job = subprocess.Popen([command, "launch", "--ps", "1", "--workers", "2", "--", sys.executable, program, "--strategy", "sync",
                            "--steps", "10000000", "--out", str(tmp_path / "run"), "--save-every", "20"], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, start_new_session=True)
    saved = tmp_path / "run/checkpoints"
    wait_for(lambda: saved.exists() and any(saved.glob("step-*")))
    os.killpg(job.pid, signal.SIGINT)
    output, _ = job.communicate(timeout=60)
    assert job.returncode == 130, output
    assert paceline.load(tmp_path / "run").step is not None
    assert np.isfinite(paceline.load(tmp_path / "run")["w"]).all()


def test_strategy_auto_starts_no_tasks_of_a_program_that_cannot(program: str) -> None:
    done = subprocess.run([sys.executable, program, "--strategy", "auto", "--steps", "12"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "value 0 1" in done.stdout
    assert "ways" not in done.stdout, "which of them it is to start is not asked"
