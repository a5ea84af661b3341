"""The exceptions of Paceline: each is an Error with a code, and what Python calls it where Python has the word."""

from ._paceline import ErrorCode


class Error(Exception):
    """What failed, in words that name the file, the variable, the task or the flag, and the remedy."""

    code: ErrorCode

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INTERNAL) -> None:
        super().__init__(message)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])


class InvalidArgument(Error, ValueError):
    """A value, a type, a shape or a flag that cannot be."""


class NotFound(Error, FileNotFoundError):
    """A file or a folder that is not there."""


class NameNotFound(Error, KeyError):
    """A name that a mapping does not have; the message has the nearest one."""


class DeadlineExceeded(Error, TimeoutError):
    """A wait that took longer than it may."""


class TrainingEnded(Error):
    """There is no further step: a limit is reached, or another worker has ended the training."""


_KINDS: dict[ErrorCode, type[Error]] = {
    ErrorCode.INVALID_ARGUMENT: InvalidArgument,
    ErrorCode.USAGE: InvalidArgument,
    ErrorCode.NOT_FOUND: NotFound,
    ErrorCode.DEADLINE_EXCEEDED: DeadlineExceeded,
}


def error_of(code: ErrorCode, message: str, of_mapping: bool) -> BaseException:
    """The exception of a failure in the library, which calls this."""
    if code == ErrorCode.CANCELLED:  # no Error: no `except Exception` is to hold it up, and Python ends with status 130
        interrupted = KeyboardInterrupt(message)
        interrupted.code = code  # type: ignore[attr-defined]
        return interrupted
    kind = NameNotFound if of_mapping else _KINDS.get(code, Error)
    return kind(message, code)
