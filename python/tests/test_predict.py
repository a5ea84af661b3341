"""Predictions of programs that train with a store: `paceline predict -- COMMAND`."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

# Each step takes 20 ms at least, so that one process makes 50 a second at most.
PROGRAM = '''
import sys, time, numpy as np, paceline
store = paceline.Store({"w": np.zeros((300, 300), np.float32), "b": np.zeros(300, np.float32)}, paceline.Sgd(0.1),
                       "ssp", staleness=3, arguments=sys.argv[1:])
with store:
    for step in store.steps():
        print("step", flush=True)
        with step:
            w, b = store.need("w"), store.need("b")
            time.sleep(0.02)
            store.ready("b", b)
            store.ready("w", w)
print("has trained")
'''


@pytest.fixture
def roof(tmp_path: pathlib.Path) -> str:
    """That of the machine, so that nothing is measured."""
    path = tmp_path / "roof.toml"
    path.write_text("[[host]]\ncores = 2\ngflops = 100\ngbytes_per_s = 20\n")
    return str(path)


def predict(command: str, program: str, *words: object, flags: tuple[object, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run([command, "predict", *map(str, flags), "--", sys.executable, "-c", program, *map(str, words)],
                          capture_output=True, text=True, timeout=180)


def test_the_table_of_all_ways_is_printed(command: str, roof: str, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "run"
    done = predict(command, PROGRAM, "--out", out, "--steps", 3, "--report", tmp_path / "r.json",
                   flags=("--roof", roof, "--json", tmp_path / "ways.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("step\n") == 10
    assert "has trained" not in done.stdout, "the program ends with its prediction"
    assert not out.exists()
    ways = {way["way"]: way for way in json.loads((tmp_path / "ways.json").read_text())["ways"]}
    for way in ("one process", "sync, 1 ps + 2 workers", "async, 1 ps + 2 workers", "allreduce, 2 workers"):
        assert way in done.stdout
        assert way in ways
    assert ways["one process"]["steps_per_s"] <= 50


def test_copies_that_run_at_once_tell_how_they_slow_each_other(command: str, roof: str, tmp_path: pathlib.Path) -> None:
    # In a copy, a step takes four times as long.
    program = PROGRAM.replace("time.sleep(0.02)", "time.sleep(0.08 if 'copy-gate' in os.environ['PACELINE_PREDICT'] else 0.02)")
    done = predict(command, program.replace("import sys,", "import os, sys,"),
                   flags=("--roof", roof, "--ps", 1, "--workers", 2, "--json", tmp_path / "ways.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Runs 2 copies of the command at once" in done.stderr
    assert "2 copies at once: " in done.stdout
    assert done.stdout.count("step\n") == 10, "copies print nothing"
    written = json.loads((tmp_path / "ways.json").read_text())
    (copies,) = written["copies"]
    assert copies["copies"] == 2
    assert copies["step_seconds"] >= 0.08
    assert copies["steps_per_s"] <= 25
    ways = {way["way"]: way["steps_per_s"] for way in written["ways"]}
    assert ways["async, 1 ps + 2 workers"] < ways["one process"]


def test_no_copies_run_if_not_wanted_or_for_other_hosts(command: str, roof: str, tmp_path: pathlib.Path) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text("[[host]]\nname = 'not here'\ncores = 4\ngflops = 100\ngbytes_per_s = 20\ndevices = 4\n")
    for flags in (("--no-trial",), ("--hosts", hosts)):
        done = predict(command, PROGRAM, flags=("--roof", roof, "--workers", 2, *flags, "--json", tmp_path / "ways.json"))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "copies" not in done.stdout + done.stderr
        assert json.loads((tmp_path / "ways.json").read_text())["copies"] == []
        assert "nothing was measured" not in done.stdout


def test_a_copy_that_fails_is_told_and_ways_are_predicted_without_it(command: str, roof: str) -> None:
    program = "import os; gate = os.environ['PACELINE_PREDICT']\n" \
        "if '/2\"' in gate: raise SystemExit('no second copy')\n" + PROGRAM
    done = predict(command, program, flags=("--roof", roof, "--workers", 2))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "copy 2 of 2 that ran at once failed (exit status 1)" in done.stderr
    assert "no second copy" in done.stderr
    assert "async, 1 ps + 2 workers" in done.stdout
    assert "copies at once" not in done.stdout


def test_workers_that_wait_for_a_device_are_not_predicted_to_share_the_cores(command: str, roof: str, tmp_path: pathlib.Path) -> None:
    done = predict(command, PROGRAM, "--workers", 4, "--strategy", "allreduce",
                   flags=("--roof", roof, "--json", tmp_path / "ways.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    ways = {way["way"]: way for way in json.loads((tmp_path / "ways.json").read_text())["ways"]}
    # Four workers on two cores: as fast as one each, since all that they do is sleep.
    assert ways["allreduce, 4 workers"]["steps_per_s"] > 0.7 * ways["one process"]["steps_per_s"]


def test_predicts_own_flags_count_in_place_of_the_commands(command: str, roof: str, tmp_path: pathlib.Path) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text("[[host]]\nname = 'one'\ncount = 3\ncores = 2\ngflops = 100\ngbytes_per_s = 20\ndevices = 1\n"
                     "gbps = 1\n")
    (tmp_path / "train.py").write_text(PROGRAM)
    # The command works in another folder.
    words = f"cd / && exec {sys.executable} {tmp_path}/train.py --wire float32 --workers 7 --steps 5"
    done = subprocess.run([command, "predict", "--roof", roof, "--hosts", "hosts.toml", "--ps", "1", "--workers", "2",
                           "--strategy", "sync", "--wire", "bfloat16", "--", "sh", "-c", words],
                          capture_output=True, text=True, timeout=180, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sync, 1 ps + 2 workers, bfloat16" in done.stdout
    assert "allreduce" not in done.stdout
    assert "7 workers" not in done.stdout


@pytest.mark.parametrize(("program", "status", "said"), [
    ("print('nothing')", 1, "made no ten steps with a store"),
    ("raise SystemExit(3)", 1, "exit status 3"),
    (PROGRAM.replace("store.steps()", "(step for _, step in zip(range(4), store.steps()))"), 1,
     "ended after 4 of the 10 steps"),
    (PROGRAM.replace("store.steps()", "[store.steps().__next__() for _ in range(1)]").replace("with step:", "if False:"), 1,
     "ended after 0 of the 10 steps"),
    (PROGRAM.replace("time.sleep(0.02)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), 1, "killed by signal 9"),
    (PROGRAM.replace("time.sleep(0.02)", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"), 130, "interrupted"),
])
def test_a_command_that_makes_no_ten_steps_is_told(command: str, roof: str, program: str, status: int, said: str) -> None:
    done = predict(command, program, flags=("--roof", roof))
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stderr, done.stdout + done.stderr
    assert "nothing is predicted" in done.stderr


def test_wrong_use_is_refused_before_the_command_starts(command: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "hosts.toml").write_text("[[host]]\ncore = 2\n")
    for flags, said in [(["--hosts", "none.toml"], "none.toml"), (["--hosts", tmp_path / "hosts.toml"], "line 2"),
                        (["--workesr", "2"], "--workers"), (["--steps", "0"], "--steps")]:
        done = predict(command, "print('begun')", flags=tuple(flags))
        assert done.returncode == 2, done.stdout + done.stderr
        assert said in done.stderr
        assert "begun" not in done.stdout
    done = subprocess.run([command, "predict", "--", "no-such-program"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, "no-such-program cannot be run" in done.stderr) == (2, True), done.stderr
    done = subprocess.run([command, "predict", "--help", "--", "x"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "--hosts" in done.stdout
    assert "--no-trial" in done.stdout


def test_a_launcher_within_it_is_refused(command: str, roof: str) -> None:
    done = subprocess.run([command, "predict", "--roof", roof, "--", command, "launch", "--ps", "1", "--workers", "1", "--",
                           sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "without paceline launch" in done.stdout + done.stderr


def test_a_model_of_the_command_is_predicted_too(command: str, roof: str) -> None:
    done = subprocess.run([command, "predict", "--roof", roof, "--", "train", "mlp", "--hidden", "8", "--strategy", "sync"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "allreduce, 2 workers" in done.stdout


def test_a_signal_reaches_the_command(command: str, roof: str) -> None:
    program = PROGRAM.replace("time.sleep(0.02)", "time.sleep(0.5)")
    predicts = subprocess.Popen([command, "predict", "--roof", roof, "--", sys.executable, "-c", program], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)
    assert predicts.stdout is not None
    for line in predicts.stdout:
        if line == "step\n":
            break
    predicts.send_signal(signal.SIGINT)
    output, _ = predicts.communicate(timeout=60)
    assert predicts.returncode == 130, output


def test_a_signal_ends_the_copies_too(command: str, roof: str, tmp_path: pathlib.Path) -> None:
    # Each copy notes its process and makes steps that take minutes.
    program = ("import os\nif 'copy-gate' in os.environ['PACELINE_PREDICT']:\n"
               f"    open(os.path.join({str(tmp_path)!r}, str(os.getpid())), 'w').close()\n"
               "    print('copy', flush=True)\n    import time; time.sleep(600)\n") + PROGRAM
    predicts = subprocess.Popen([command, "predict", "--roof", roof, "--workers", "2", "--", sys.executable, "-c", program],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert predicts.stdout is not None
    for line in predicts.stdout:
        if line.startswith("Runs 2 copies"):
            break
    predicts.send_signal(signal.SIGINT)
    output, _ = predicts.communicate(timeout=60)
    assert predicts.returncode == 130, output
    for copy in tmp_path.iterdir():
        if copy.name.isdigit():
            assert not pathlib.Path("/proc", copy.name).exists()


def test_a_run_says_what_is_expected_once_one_process_has_trained(command: str, roof: str, tmp_path: pathlib.Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM.replace('"ssp", staleness=3, ', ""))
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def launch() -> str:
        done = subprocess.run([command, "launch", "--ps", "1", "--workers", "2", "--report", tmp_path / "r.json", "--", sys.executable,
                               program, "--strategy", "sync", "--steps", "40", "--roof", roof], capture_output=True, text=True,
                              timeout=120, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def expected() -> float | None:
        report = json.loads((tmp_path / "r.json").read_text())
        return report["expected"]["steps_per_s"] if report.get("expected") else None

    assert "No speed is expected: other code computes the model" in launch()
    assert expected() is None
    explained = subprocess.run([command, "explain", tmp_path / "r.json"], capture_output=True, text=True, timeout=120, env=env)
    assert explained.returncode == 0, explained.stderr
    assert "The batch is small" not in explained.stdout
    subprocess.run([sys.executable, program, "--steps", "40", "--roof", roof], capture_output=True, check=True, timeout=120, env=env)
    assert "Expected: " in launch()
    assert (expected() or 1000) <= 100, "two workers, whose steps take 20 ms at least"
