"""The store of one process: values, gradients, rules, errors, checkpoints."""

import gc
import json
import pathlib
import signal
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from conftest import run_python

import paceline

QUIET = {"quiet": True}


def variables() -> dict[str, np.ndarray]:
    return {"first": np.arange(6, dtype=np.float32).reshape(2, 3), "second": np.ones(4, dtype=np.float32)}


def gradient_of(name: str, step: int) -> np.ndarray:
    return np.sin(variables()[name] + step).astype(np.float32)


def test_the_rule_is_applied_to_what_was_handed_over() -> None:
    expected = variables()
    momentum = {name: np.zeros_like(value) for name, value in expected.items()}
    with paceline.Store(variables(), paceline.Momentum(0.1), **QUIET) as store:
        for step in range(5):
            with store.step() as made:
                for name in store.names:
                    np.testing.assert_allclose(store.need(name), expected[name], rtol=1e-6)
                for name in reversed(store.names):
                    gradient = gradient_of(name, step)
                    store.ready(name, gradient)
                    momentum[name] = np.float32(0.9) * momentum[name] + gradient
                    expected[name] = expected[name] - np.float32(0.1) * momentum[name]
                made.loss = 1.5
            assert made.result is not None
            assert (made.result.step, made.result.global_step, made.result.loss) == (step + 1, step + 1, 1.5)
        for name in store.names:
            np.testing.assert_allclose(store.read(name), expected[name], rtol=1e-6)
        assert (store.worker, store.workers, store.global_step) == (0, 1, 5)


def test_the_best_checkpoint_is_kept(tmp_path: pathlib.Path) -> None:
    out = str(tmp_path / "run")
    with paceline.Store(variables(), paceline.Sgd(1.0), out=out, keep_best="loss/valid", **QUIET) as store:
        for loss in (3.0, 1.0, 2.0):
            with store.step():
                for name in store.names:
                    store.ready(name, np.ones_like(variables()[name]))
            store.summarise("loss/valid", loss)
    np.testing.assert_array_equal(paceline.load(out + ":best")["second"], np.full(4, -1, np.float32))
    np.testing.assert_array_equal(paceline.load(out)["second"], np.full(4, -2, np.float32))


def test_the_programs_arrays_stay_its_own() -> None:
    mine = variables()
    with paceline.Store(mine, paceline.Sgd(1.0), **QUIET) as store:
        mine["first"][:] = 100
        with store.step():
            assert store.need("first")[0, 1] == 1
            store.ready("first", np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(mine["first"], np.full((2, 3), 100, np.float32))


KEPT = '''
import gc, sys, numpy as np, paceline
def train(ending):
    store = paceline.Store({"w": np.ones((2000, 2000), np.float32)}, paceline.Sgd(0.5), quiet=True, arguments=sys.argv[1:])
    with store.step():
        kept = store.need("w")
        other = store._binding.need_dlpack("w")
    ending(store)
    del store
    gc.collect()
    return kept, other
def fail(store):
    try:
        with store.step():
            raise RuntimeError("mine")
    except RuntimeError:
        pass
for ending in (lambda store: store.close(), lambda store: None, fail):
    kept, other = train(ending)
    print(kept.sum(), np.from_dlpack(other).sum(), flush=True)
    del kept, other
    gc.collect()
'''


def test_values_keep_their_memory_when_the_store_is_closed_or_gone() -> None:
    done = run_python(KEPT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4e+06"] * 6


def test_values_are_given_without_a_copy_and_read_only() -> None:
    with paceline.Store(variables(), paceline.Sgd(), **QUIET) as store:
        with store.step():
            one, other = store.need("first"), store.need("first")
            assert one.ctypes.data == other.ctypes.data
            assert not one.flags.owndata
            with pytest.raises(ValueError, match="read-only"):
                one[0, 0] = 1


def test_a_value_keeps_its_owner_alive() -> None:
    store = paceline.Store(variables(), paceline.Sgd(), **QUIET)
    with store.step():
        value = store.need("second")
    del store
    gc.collect()
    np.testing.assert_array_equal(value, np.ones(4, np.float32))


def test_gradients_come_from_any_thread_in_any_order() -> None:
    with paceline.Store(variables(), paceline.Sgd(1.0), **QUIET) as store:
        for step in range(20):
            with store.step():
                threads = [threading.Thread(target=store.ready, args=(name, np.ones_like(variables()[name])))
                           for name in (store.names if step % 2 else reversed(store.names))]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
        np.testing.assert_allclose(store.read("second"), 1 - 20 * np.ones(4))


def test_gradients_of_other_layouts_and_owners_are_taken() -> None:
    class Foreign:  # a framework that speaks DLPack and nothing else
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __dlpack__(self, **options: object) -> object:
            return self.array.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    with paceline.Store(variables(), paceline.Sgd(1.0), **QUIET) as store:
        with store.step():
            store.ready("first", np.arange(6, dtype=np.float32).reshape(3, 2).T)
            store.ready("second", Foreign(np.full(4, 2, np.float32)))
        np.testing.assert_array_equal(store.read("first"), variables()["first"] - np.arange(6, dtype=np.float32).reshape(3, 2).T)
        np.testing.assert_array_equal(store.read("second"), np.full(4, -1, np.float32))


def test_a_gradient_is_kept_until_it_was_read_and_no_longer() -> None:
    with paceline.Store(variables(), paceline.Sgd(1.0), **QUIET) as store:
        gradient = np.ones((2, 3), np.float32)
        before = sys.getrefcount(gradient)
        with store.step():
            store.ready("first", gradient)
        assert sys.getrefcount(gradient) == before
        with store.step():
            store.ready("first", np.ones((2, 3), np.float32))  # nobody else keeps it
            gc.collect()
        np.testing.assert_array_equal(store.read("first"), variables()["first"] - 2)


def test_a_variable_without_a_gradient_stays() -> None:
    with paceline.Store(variables(), paceline.Sgd(1.0), **QUIET) as store:
        with store.step():
            store.ready("second", np.ones(4, np.float32))
        np.testing.assert_array_equal(store.read("first"), variables()["first"])


def test_variables_may_differ_in_rule_and_be_frozen() -> None:
    given = {"fast": paceline.Variable(np.ones(2, np.float32), rule=paceline.Sgd(1.0)), "slow": np.ones(2, np.float32),
             "fixed": paceline.Variable(np.ones(2, np.float32), frozen=True)}
    with paceline.Store(given, paceline.Sgd(0.25), **QUIET) as store:
        with store.step():
            assert store.need("fixed")[0] == 1
            for name in ("fast", "slow"):
                store.ready(name, np.ones(2, np.float32))
            with pytest.raises(ValueError, match="fixed"):
                store.ready("fixed", np.ones(2, np.float32))
        assert [store.read(name)[0] for name in store.names] == [0, 0.75, 1]


def test_rows_are_read_and_updated_alone() -> None:
    table = np.arange(20, dtype=np.float32).reshape(10, 2)
    with paceline.Store({"table": paceline.Variable(table, most_rows=4)}, paceline.Sgd(1.0), **QUIET) as store:
        ids = np.array([7, 2, 7])
        with store.step(rows={"table": ids}):
            np.testing.assert_array_equal(store.need("table"), table[ids])
            store.ready("table", np.ones((3, 2), np.float32), rows=ids)
        expected = table.copy()
        np.subtract.at(expected, ids, 1)
        np.testing.assert_array_equal(store.read("table"), expected)
        with pytest.raises(ValueError, match="table"):
            store.begin_step(rows={"table": np.array([10])})
        with pytest.raises(ValueError, match="float32 .*must be int32 or int64"):
            store.begin_step(rows={"table": np.array([1.0], np.float32)})


def test_learning_rate_factors_act_from_the_next_step_on() -> None:
    with paceline.Store(variables(), paceline.Sgd(1.0), **QUIET) as store:
        for factor in (1.0, 0.5):
            store.set_learning_rate_factor("second", factor)
            with store.step():
                store.ready("second", np.ones(4, np.float32))
        assert store.read("second")[0] == -0.5


def test_gradients_are_clipped_by_their_norm() -> None:
    with paceline.Store({"w": np.zeros(2, np.float32)}, paceline.Sgd(1.0), clip_norm=1.0, **QUIET) as store:
        with store.step() as step:
            store.ready("w", np.array([3, 4], np.float32))
        assert step.result is not None and step.result.global_norm == pytest.approx(5)
        np.testing.assert_allclose(store.read("w"), [-0.6, -0.8], rtol=1e-6)


@pytest.mark.parametrize("gradient, message", [
    (np.ones((2, 3)), r"gradient of 'first': it is float64 \(2,3\), and must be float32 \(2,3\)"),
    (np.ones((3, 2), np.float32), r"it is float32 \(3,2\), and must be float32 \(2,3\)"),
    (np.ones((2, 3), ml_dtypes.bfloat16), r"it is bfloat16 \(2,3\), and must be float32 \(2,3\)"),
    (np.ones((2, 3), np.complex64), "has no elements of complex64"),
    (np.array([["a"]]), "gradient of 'first'"),
    ([[1.0]], "list is no array"),
    (None, "NoneType is no array"),
])
def test_a_gradient_of_another_kind_is_a_value_error_that_names_both_sides(gradient: object, message: str) -> None:
    with paceline.Store(variables(), paceline.Sgd(), **QUIET) as store, store.step():
        with pytest.raises(ValueError, match=message):
            store.ready("first", gradient)


def test_names_and_calls_that_there_are_not() -> None:
    with paceline.Store(variables(), paceline.Sgd(), **QUIET) as store:
        with pytest.raises(paceline.Error, match="step") as caught:
            store.need("first")
        assert caught.value.code == paceline.ErrorCode.FAILED_PRECONDITION
        with store.step():
            with pytest.raises(KeyError, match="'frist'.*'first'"):
                store.need("frist")
            with pytest.raises(KeyError, match="'first'"):
                store.ready("frist", np.ones((2, 3), np.float32))
            store.ready("first", np.ones((2, 3), np.float32))
            with pytest.raises(paceline.Error, match="first"):
                store.ready("first", np.ones((2, 3), np.float32))
    with pytest.raises(paceline.Error, match="closed"):
        store.read("first")
    store.close()


def test_variables_that_cannot_be_trained_are_named() -> None:
    with pytest.raises(ValueError, match="'w'.*float64|float64.*'w'"):
        paceline.Store({"w": np.ones(2)}, paceline.Sgd(), **QUIET)
    with pytest.raises(ValueError):
        paceline.Store({}, paceline.Sgd(), **QUIET)


def test_flags_are_those_of_the_command() -> None:
    for flags, message in (({"wier": "bfloat16"}, "--wier"), ({"save_every": "often"}, "--save-every"),
                           ({"arguments": ["--steps", "-1"]}, "--steps"), ({"ps": 1, "workers": 2}, "paceline launch")):
        with pytest.raises(ValueError, match=message) as caught:
            paceline.Store(variables(), paceline.Sgd(), **flags)  # type: ignore[arg-type]
        assert isinstance(caught.value, paceline.Error)


def test_training_ends_where_flags_say(tmp_path: pathlib.Path) -> None:
    report = tmp_path / "report.json"
    with paceline.Store(variables(), paceline.Sgd(), steps=3, report=report, model="small", **QUIET) as store:
        made = 0
        for step in store.steps():
            with step:
                made += 1
        assert made == 3
        with pytest.raises(paceline.TrainingEnded), store.step():
            pass
        store.report("accuracy", "test", 0.5)
    told = json.loads(report.read_text())
    assert told["model"] == "small"
    assert told["accuracy"]["test"] == 0.5


def test_a_run_goes_on_from_its_checkpoint(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "run"
    with paceline.Store(variables(), paceline.Adam(0.1), out=out, steps=4, **QUIET) as store:
        for number in range(4):
            with store.step(position={"batch": number + 1}):
                for name in store.names:
                    store.ready(name, gradient_of(name, number))
        before = {name: store.read(name) for name in store.names}
    saved = paceline.load(out)
    assert saved.step == 4
    for name in store.names:
        np.testing.assert_array_equal(saved[name], before[name])
        assert saved.rule(name) == "adam"
    with paceline.Store(variables(), paceline.Adam(0.1), out=out, resume=True, **QUIET) as again:
        assert again.global_step == 4
        assert again.restored == {"batch": 4}
        with again.step():
            for name in again.names:
                np.testing.assert_array_equal(again.need(name), before[name])


def test_a_loss_that_is_not_finite_ends_training() -> None:
    with pytest.raises(paceline.Error, match="loss"), paceline.Store(variables(), paceline.Sgd(), **QUIET) as store:
        with store.step() as step:
            step.loss = float("nan")


def test_an_exception_within_a_step_passes_and_ends_the_store() -> None:
    with pytest.raises(ZeroDivisionError):
        with paceline.Store(variables(), paceline.Sgd(), **QUIET) as store, store.step():
            raise ZeroDivisionError("mine")
    with pytest.raises(paceline.Error, match="closed"):
        store.read("first")


def test_signal_handlers_are_as_before_once_a_store_is_closed() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with paceline.Store(variables(), paceline.Sgd(), **QUIET):
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


INTERRUPTED = """
import os, signal, sys, numpy as np, paceline
store = paceline.Store({"w": np.zeros(4, np.float32)}, paceline.Sgd(1.0), out=sys.argv[1], save_every=1000, quiet=True)
for number in range(1000):
    with store.step():
        store.ready("w", np.ones(4, np.float32))
        if number == 6: os.kill(os.getpid(), getattr(signal, sys.argv[2]))
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_a_run_with_a_checkpoint_of_the_step(tmp_path: pathlib.Path, number: str) -> None:
    done = run_python(INTERRUPTED, arguments=[str(tmp_path / "run"), number])
    assert done.returncode in (130, -signal.SIGINT), done.stderr
    saved = paceline.load(tmp_path / "run")
    assert saved.step == 7
    np.testing.assert_array_equal(saved["w"], np.full(4, -7, np.float32))


def test_a_program_that_closes_nothing_ends_well(tmp_path: pathlib.Path) -> None:
    done = run_python("import sys, numpy as np, paceline\n"
                      "store = paceline.Store({'w': np.zeros(4, np.float32)}, paceline.Sgd(1.0), out=sys.argv[1], quiet=True)\n"
                      "with store.step(): store.ready('w', np.ones(4, np.float32))\n", arguments=[str(tmp_path / "run")])
    assert done.returncode == 0, done.stderr
    assert paceline.load(tmp_path / "run").step == 1


def test_a_program_that_fails_between_steps_reports_its_error(tmp_path: pathlib.Path) -> None:
    done = run_python("import sys, numpy as np, paceline\n"
                      "store = paceline.Store({'w': np.zeros(4, np.float32)}, paceline.Sgd(), report=sys.argv[1], quiet=True)\n"
                      "with store.step(): store.ready('w', np.ones(4, np.float32))\n"
                      "raise LookupError('the data is gone')\n", arguments=[str(tmp_path / "report.json")])
    assert done.returncode == 1
    assert "LookupError: the data is gone" in done.stderr
    assert "the data is gone" in json.loads((tmp_path / "report.json").read_text())["error"]


def test_help_lists_the_flags() -> None:
    done = run_python("import numpy as np, paceline\n"
                      "paceline.Store({'w': np.zeros(4, np.float32)}, paceline.Sgd(), arguments=['--help'])\nprint('not here')")
    assert done.returncode == 0
    assert "--strategy" in done.stdout
    assert "not here" not in done.stdout
