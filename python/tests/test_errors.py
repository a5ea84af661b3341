"""Errors: kinds that Python has words for can be caught by them."""

import pytest

import paceline
from paceline._errors import error_of


@pytest.mark.parametrize("code, kind", [("INVALID_ARGUMENT", ValueError), ("USAGE", ValueError), ("NOT_FOUND", FileNotFoundError),
                                        ("DEADLINE_EXCEEDED", TimeoutError), ("UNAVAILABLE", Exception), ("INTERNAL", Exception)])
def test_a_code_is_what_python_calls_it(code: str, kind: type[Exception]) -> None:
    error = error_of(paceline.ErrorCode[code], "worker:1 is gone", False)
    assert isinstance(error, kind)
    assert isinstance(error, paceline.Error)
    assert str(error) == "worker:1 is gone"
    assert error.code == paceline.ErrorCode[code]


def test_all_codes_become_errors() -> None:
    for code in paceline.ErrorCode:
        assert error_of(code, "words", False).code is code  # type: ignore[attr-defined]


def test_an_interruption_is_no_exception_that_a_program_would_swallow() -> None:
    error = error_of(paceline.ErrorCode.CANCELLED, "interrupted", False)
    assert type(error) is KeyboardInterrupt
    assert error.code == paceline.ErrorCode.CANCELLED
