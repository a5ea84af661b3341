"""Paceline: distributed training whose speed is said before it begins and explained when it ends.

Values travel as arrays of NumPy, or of any framework that speaks DLPack. docs/python.md is the guide.
"""

from ._checkpoint import Checkpoint, load
from ._errors import Cancelled, DeadlineExceeded, Error, InvalidArgument, NameNotFound, NotFound
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
    Strategy,
    devices,
    strategy_names,
    version,
    version_text,
)

__version__: str = version().split()[0]

__all__ = [
    "Adagrad",
    "Adam",
    "AdamW",
    "Add",
    "Assign",
    "Cancelled",
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
    "Strategy",
    "devices",
    "load",
    "strategy_names",
    "version",
    "version_text",
]
