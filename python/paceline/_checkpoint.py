"""Checkpoints and safetensors files as mappings of arrays."""

import os
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _paceline


class Checkpoint(Mapping[str, NDArray[Any]]):
    """The variables of a checkpoint by name. A value is read from its file whenever it is asked for, into
    memory of its own that belongs to the array."""

    def __init__(self, reader: _paceline.CheckpointReader) -> None:
        self._reader = reader
        self._names = reader.names()

    @property
    def path(self) -> str:
        """The folder or the file that was read."""
        return self._reader.path

    @property
    def step(self) -> int | None:
        """The global step at which it was saved; None for a file that is no checkpoint of a run."""
        return self._reader.step

    @property
    def notes(self) -> dict[str, str]:
        """What the run noted of itself: "model", "seed", …"""
        return self._reader.notes

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The value of a variable; bfloat16 is that of ml_dtypes. Raises NameNotFound (a KeyError), which
        names the nearest, and Error with the code DATA_LOSS where the file is not what it was."""
        return self._reader.array(name)

    def dlpack(self, name: str) -> Any:
        """The value of a variable as an object that gives its memory by DLPack, without a copy:
        `torch.from_dlpack(checkpoint.dlpack("w"))`. Raises what [] raises."""
        return self._reader.dlpack(name)

    def slots(self, name: str) -> dict[str, NDArray[Any]]:
        """What the rule keeps for a variable, by name: {"m": …, "v": …, "t": …}; each has the shape of the
        variable, or (1,) where it is one number. Raises what [] raises."""
        return self._reader.slots(name)

    def rule(self, name: str) -> str:
        """The name of the rule that updates the variable, such as "adam"; "" where none does."""
        return self._reader.describe(name)[2]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a variable, which is not read for that."""
        return self._reader.describe(name)[1]

    def dtype(self, name: str) -> str:
        """The type of its elements, such as "float32"; the variable is not read for that."""
        return self._reader.describe(name)[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step {self.step}"
        return f"Checkpoint({self.path!r}{step}, {len(self)} variables)"


def load(path: str | os.PathLike[str]) -> Checkpoint:
    """Opens a checkpoint's folder, a folder of checkpoints or the --out folder of a run (of both the newest
    whole one), a safetensors file, or the index of several (model.safetensors.index.json). Warns of
    checkpoints that are newer and not whole. Raises NotFound (a FileNotFoundError), and Error with the code
    DATA_LOSS for one that is not whole."""
    reader, said = _paceline.open_checkpoint(os.fspath(path))
    for line in said:
        warnings.warn(line, stacklevel=2)
    return Checkpoint(reader)
