"""The package as a whole: what it exports, how fast it is there, what it carries."""

import importlib.metadata
import inspect
import re
import subprocess
import sys

import pytest
from conftest import run_python

import paceline


def test_its_version_is_that_of_the_command(command: str) -> None:
    said = subprocess.run([command, "version"], check=True, capture_output=True, text=True).stdout
    assert f"paceline: {paceline.__version__}\n" in said
    assert said.splitlines()[1] in paceline.version_text()
    assert paceline.version().startswith(paceline.__version__ + " ")


def test_it_brings_the_plug_in_for_gpus(command: str) -> None:
    said = subprocess.run([command, "version"], check=True, capture_output=True, text=True).stdout
    for text in (said, paceline.version_text()):
        gpus = next(line for line in text.splitlines() if line.startswith("GPUs: "))
        # A machine without a GPU lacks NVIDIA's driver, and not a part of the package.
        assert re.match("GPUs: (cuda:0 |NVIDIA's driver was not found|the driver )", gpus), gpus


def test_all_names_have_words() -> None:
    for name in paceline.__all__:
        value = getattr(paceline, name)
        if inspect.isclass(value) or callable(value):
            assert inspect.getdoc(value), name


def test_all_methods_have_words() -> None:
    silent = [f"{name}.{method}" for name in paceline.__all__ if inspect.isclass(kind := getattr(paceline, name))
              for method, value in vars(kind).items()
              if not method.startswith("_") and (callable(value) or isinstance(value, property)) and not value.__doc__]
    assert silent == []


def test_an_import_takes_little_longer_than_numpys() -> None:
    # The times are the import system's own. A machine that is busy is asked again.
    def milliseconds() -> float:
        done = run_python("import time, numpy; a = time.process_time(); import paceline; print(time.process_time() - a)")
        return float(done.stdout) * 1000
    assert min(milliseconds() for _ in range(5)) <= 150


def test_an_import_starts_no_thread_and_imports_no_framework() -> None:
    done = run_python("import sys, numpy, threading, os; before = len(os.listdir('/proc/self/task'))\n"
                      "import paceline; print(len(os.listdir('/proc/self/task')) - before, 'torch' in sys.modules, "
                      "'ml_dtypes' in sys.modules)")
    assert done.stdout.split() == ["0", "False", "False"]


def test_devices_are_those_of_the_command() -> None:
    assert paceline.devices() == ["cpu", "cuda", "sim"]


def test_the_wheels_command_takes_flags_and_gives_its_status() -> None:
    try:
        importlib.metadata.version("paceline")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed from a wheel")
    done = run_python("import sys; sys.argv = ['paceline', 'version', '--nonsense']\n"
                      "import paceline_command; paceline_command.main()")
    assert done.returncode == 2
    assert "--nonsense" in done.stderr


def test_the_module_shows_no_name_but_its_own() -> None:
    from paceline import _paceline
    assert _paceline.__file__
    shown = subprocess.run(["nm", "-D", "--defined-only", _paceline.__file__], capture_output=True, text=True)
    if shown.returncode != 0:
        pytest.skip("there is no nm")
    assert [line.split()[-1] for line in shown.stdout.splitlines()] == ["PyInit__paceline"]


def test_typed() -> None:
    from importlib.resources import files
    assert (files("paceline") / "py.typed").is_file()
    assert "class Adam(Rule)" in (files("paceline") / "_paceline.pyi").read_text()
    assert not re.search(r"std::", (files("paceline") / "_paceline.pyi").read_text())
    assert sys.version_info >= (3, 11)
