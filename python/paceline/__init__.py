"""Paceline: distributed training whose speed is said before it begins and explained when it ends.

Values travel as arrays of NumPy, or of any framework that speaks DLPack. docs/python.md is the guide.
"""

from ._checkpoint import Checkpoint, load
from ._errors import DeadlineExceeded, Error, InvalidArgument, NameNotFound, NotFound, TrainingEnded
from ._paceline import (
    Adagrad,
    Adam,
    AdamW,
    Add,
    Assign,
    DelayedNesterov,
    Ema,
    ErrorCode,
    Ftrl,
    Momentum,
    Rmsprop,
    Rule,
    Sgd,
    StepResult,
    Strategy,
    devices,
    strategy_names,
    version,
    version_text,
)
from ._store import Step, Store, Variable

__version__: str = version().split()[0]

__all__ = [
    "Adagrad",
    "Adam",
    "AdamW",
    "Add",
    "Assign",
    "Checkpoint",
    "DeadlineExceeded",
    "DelayedNesterov",
    "Ema",
    "Error",
    "ErrorCode",
    "Ftrl",
    "InvalidArgument",
    "Momentum",
    "NameNotFound",
    "NotFound",
    "Rmsprop",
    "Rule",
    "Sgd",
    "Step",
    "StepResult",
    "Store",
    "Strategy",
    "TrainingEnded",
    "Variable",
    "devices",
    "load",
    "strategy_names",
    "version",
    "version_text",
]
