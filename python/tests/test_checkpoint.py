"""Checkpoints and safetensors files as arrays."""

import gc
import pathlib
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from conftest import write_safetensors

import paceline


def test_a_run_is_read_with_its_slots(run_folder: pathlib.Path) -> None:
    checkpoint = paceline.load(run_folder)
    assert checkpoint.step == 3
    assert checkpoint.notes["model"] == "mlp"
    assert len(checkpoint) == len(list(checkpoint)) > 0
    for name, value in checkpoint.items():
        assert value.dtype == np.float32
        assert value.shape == checkpoint.shape(name)
        for slot, state in checkpoint.slots(name).items():
            assert state.shape in (value.shape, (1,)), slot
        assert checkpoint.rule(name)
    assert "3" in repr(checkpoint)


def test_all_types_of_elements_come_as_they_are(tmp_path: pathlib.Path) -> None:
    values = {
        "f64": ("F64", np.arange(6, dtype=np.float64).reshape(2, 3)),
        "f32": ("F32", np.array(1.5, dtype=np.float32)),
        "f16": ("F16", np.array([1, 2], dtype=np.float16)),
        "bf16": ("BF16", np.array([[1, -2.5]], dtype=ml_dtypes.bfloat16)),
        "i64": ("I64", np.array([-3], dtype=np.int64)),
        "i32": ("I32", np.array([7, 8, 9], dtype=np.int32)),
        "u8": ("U8", np.zeros((0, 4), dtype=np.uint8)),
        "bool": ("BOOL", np.array([True, False])),
    }
    order = sorted(values.items(), key=lambda item: -item[1][1].dtype.itemsize)
    checkpoint = paceline.load(write_safetensors(tmp_path / "all.safetensors", dict(order)))
    assert checkpoint.step is None
    assert set(checkpoint) == set(values)
    for name, (_, expected) in values.items():
        read = checkpoint[name]
        assert read.dtype == expected.dtype
        assert checkpoint.dtype(name) == str(expected.dtype)
        np.testing.assert_array_equal(read, expected)


def test_an_array_keeps_its_memory_and_is_the_readers_own(tmp_path: pathlib.Path) -> None:
    path = write_safetensors(tmp_path / "w.safetensors", {"w": ("F32", np.arange(1000, dtype=np.float32))})
    checkpoint = paceline.load(path)
    first, second = checkpoint["w"], checkpoint["w"]
    del checkpoint
    gc.collect()
    path.unlink()
    first[0] = 9
    assert second[0] == 0
    assert first[1:].sum() == 999 * 1000 / 2


def test_dlpack_gives_the_same_memory_to_others(tmp_path: pathlib.Path) -> None:
    path = write_safetensors(tmp_path / "w.safetensors", {"w": ("F32", np.arange(6, dtype=np.float32).reshape(2, 3))})
    given = paceline.load(path).dlpack("w")
    one, other = np.from_dlpack(given), np.from_dlpack(given)
    assert one.ctypes.data == other.ctypes.data
    del given, other
    gc.collect()
    np.testing.assert_array_equal(one, np.arange(6, dtype=np.float32).reshape(2, 3))


def test_a_name_that_is_not_there_is_a_key_error_with_the_nearest(tmp_path: pathlib.Path) -> None:
    checkpoint = paceline.load(write_safetensors(tmp_path / "w.safetensors", {"weights": ("F32", np.ones(1, np.float32))}))
    for read in (checkpoint.__getitem__, checkpoint.dlpack, checkpoint.slots, checkpoint.shape, checkpoint.dtype,
                 checkpoint.rule):
        with pytest.raises(KeyError, match="weights") as caught:
            read("weigths")
        assert isinstance(caught.value, paceline.Error)
        assert not str(caught.value).startswith(("'", '"'))
    assert checkpoint.get("weigths") is None
    assert "weigths" not in checkpoint


def test_a_file_that_is_not_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere") as caught:
        paceline.load(tmp_path / "nowhere")
    assert isinstance(caught.value, paceline.Error)
    assert caught.value.code == paceline.ErrorCode.NOT_FOUND


def test_a_file_that_is_cut_short(tmp_path: pathlib.Path) -> None:
    path = write_safetensors(tmp_path / "w.safetensors", {"w": ("F32", np.ones(100, np.float32))})
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(paceline.Error, match="w.safetensors") as caught:
        paceline.load(path)
    assert caught.value.code == paceline.ErrorCode.DATA_LOSS


def test_a_torn_checkpoint_is_passed_over_with_a_warning(command: str, tmp_path: pathlib.Path) -> None:
    subprocess.run([command, "train", "mlp", "--hidden", "8", "--batch", "4", "--steps", "4", "--save-every", "2", "--out",
                    tmp_path / "out"], check=True, capture_output=True, timeout=120)
    torn = tmp_path / "out/checkpoints/step-4"
    next(torn.glob("*.safetensors")).unlink()
    with pytest.warns(UserWarning, match="step-4"):
        assert paceline.load(tmp_path / "out").step == 2
    with pytest.raises(paceline.Error, match="step-4"):
        paceline.load(torn)


def test_other_threads_run_while_a_file_is_read(tmp_path: pathlib.Path) -> None:
    checkpoint = paceline.load(write_safetensors(tmp_path / "w.safetensors", {"w": ("F32", np.ones(1 << 22, np.float32))}))
    may_run, has_run = threading.Event(), []

    def run() -> None:
        may_run.wait()
        has_run.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # nobody takes the GIL from a thread that does not give it
    try:
        may_run.set()
        reads = 0
        while not has_run and reads < 1000:
            checkpoint["w"]
            reads += 1
    finally:
        sys.setswitchinterval(before)
        thread.join()
    assert reads < 1000
