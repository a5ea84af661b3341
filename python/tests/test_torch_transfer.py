"""Gradients and values of a device, by a device that a fake on the CPU stands in for."""

import contextlib
import threading
from collections.abc import Callable, Iterator

import pytest

import paceline

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
if torch is not None:
    import paceline.torch
    from paceline._torch_transfer import Transfer
    from test_torch import batch, loss_of, small_model, train_plain


class FakeApi:
    """Streams and events in the CPU's memory: copies are made at once, and events wait for the gate."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.calls: list[str] = []
        self.threads: set[str] = set()
        api = self

        class Stream:
            def __init__(self, device: "torch.device | None" = None) -> None:
                pass

            def wait_stream(self, other: "Stream") -> None:
                api.calls.append("side waits" if self is not api.main else "main waits")

        class Event:
            def record(self, stream: Stream) -> None:
                api.calls.append("record")

            def synchronize(self) -> None:
                assert api.gate.wait(60)
                api.threads.add(threading.current_thread().name)

        self.Stream, self.Event, self.main = Stream, Event, Stream()

    def current_stream(self, device: "torch.device") -> object:
        return self.main

    @contextlib.contextmanager
    def stream(self, stream: object) -> Iterator[None]:
        self.calls.append("on side")
        yield
        self.calls.append("off side")


def made(api: FakeApi) -> "Transfer":
    return Transfer(torch.device("cpu"), api, torch.empty_like)


def test_a_gradient_is_handed_over_when_its_copy_is_made_and_backward_does_not_wait() -> None:
    api = FakeApi()
    transfer = made(api)
    api.gate.clear()
    handed: list["torch.Tensor"] = []
    gradient = torch.arange(3.0)
    transfer.send("w", gradient, handed.append)
    assert handed == []
    api.gate.set()
    transfer.flush()
    assert torch.equal(handed[0], gradient)
    assert handed[0].data_ptr() != gradient.data_ptr()
    assert api.calls == ["side waits", "on side", "record", "off side"]
    transfer.close()


def test_what_handing_over_raises_is_raised_where_the_step_ends() -> None:
    transfer = made(FakeApi())

    def refuse(gradient: "torch.Tensor") -> None:
        raise ValueError("not this one")

    transfer.send("w", torch.ones(2), refuse)
    with pytest.raises(ValueError, match="not this one"):
        transfer.flush()
    transfer.flush()
    transfer.close()


def test_a_value_arrives_before_the_kernels_that_follow() -> None:
    api = FakeApi()
    transfer = made(api)
    target = torch.zeros(2)
    for number in (1.0, 2.0):
        transfer.fetch("w", torch.full((2,), number), target)
        assert target[0] == number
    assert api.calls == ["side waits", "on side", "record", "off side", "main waits"] * 2
    transfer.close()


def test_a_model_trains_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    api = FakeApi()
    make: Callable[[object], "Transfer"] = lambda device: made(api)
    monkeypatch.setattr(paceline.torch, "transfer_of", make)
    plain, model = small_model(), small_model()
    train_plain(plain, torch.optim.SGD(plain.parameters(), 0.1), 5)
    with paceline.torch.distribute(model, paceline.Sgd(0.1), quiet=True) as trainer:
        for step in range(5):
            loss = loss_of(model, step)
            loss.backward()
            trainer.step(loss)
    assert "paceline gradients" in api.threads
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    assert model(batch(0)[0]).shape == (8, 3)
