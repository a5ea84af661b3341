"""What tests share: the command, and files to read."""

import json
import pathlib
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest

import paceline


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "torch: needs PyTorch")
    # What a shell starts behind its back ignores Ctrl-C, and so would the tasks that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def command() -> str:
    """The program `paceline` of the package that is tested."""
    return str(pathlib.Path(paceline.__file__).parent / "bin/paceline")


@pytest.fixture(scope="session")
def run_folder(command: str, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The --out folder of a training by the command, whose rule is Adam."""
    folder = tmp_path_factory.mktemp("run") / "out"
    subprocess.run([command, "train", "mlp", "--hidden", "8", "--batch", "4", "--steps", "3", "--out", folder],
                   check=True, capture_output=True, timeout=120)
    return folder


def write_safetensors(path: pathlib.Path, tensors: dict[str, tuple[str, np.ndarray]]) -> pathlib.Path:
    """A file of tensors by name: the format's name of their type, and the values."""
    header, data = {}, b""
    for name, (dtype, values) in tensors.items():
        raw = np.ascontiguousarray(values).tobytes()
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def run_python(program: str, arguments: Sequence[object] = ()) -> subprocess.CompletedProcess[str]:
    """Runs a program in a Python of its own."""
    return subprocess.run([sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, timeout=120)
