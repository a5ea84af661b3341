"""What moves gradients of a CUDA device to the store and values back, beside the kernels. It was not run on hardware yet."""

import queue
import threading
from collections.abc import Callable
from typing import Any

import torch


class Transfer:
    """Copies between a device and pinned memory of the host, by a stream of its own. A thread waits for each gradient's copy and
    hands it over, so that backward waits for none.

    api: torch.cuda, or what stands in for it: Stream, Event, stream, current_stream. pin: makes pinned memory like a tensor."""

    def __init__(self, device: torch.device, api: Any, pin: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self._device, self._api, self._pin = device, api, pin
        self._stream = api.Stream(device)
        self._pinned: dict[tuple[str, str], torch.Tensor] = {}  # by the way and the name; gradients' is free once a step has ended
        self._fetched: dict[str, Any] = {}  # by name, when the last copy of a value to the device is made
        self._sent: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._under_way = 0
        self._failed: BaseException | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._hand_over_all, name="paceline gradients", daemon=True)
        self._thread.start()

    def send(self, name: str, gradient: torch.Tensor, hand_over: Callable[[torch.Tensor], None]) -> None:
        """Copies a gradient to the host once the kernels queued before it are done, then calls hand_over on another thread."""
        pinned = self._memory("gradient", name, gradient)
        self._stream.wait_stream(self._api.current_stream(self._device))
        copied = self._api.Event()
        with self._api.stream(self._stream):
            pinned.copy_(gradient, non_blocking=True)
            copied.record(self._stream)
        with self._changed:
            self._under_way += 1

        def finish() -> None:
            copied.synchronize()
            hand_over(pinned)

        self._sent.put(finish)

    def flush(self) -> None:
        """Waits until all that was sent is handed over. Raises what handing over raised first."""
        with self._changed:
            self._changed.wait_for(lambda: self._under_way == 0)
            failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def fetch(self, name: str, value: torch.Tensor, target: torch.Tensor) -> None:
        """Copies a value to the device before the kernels that are queued from now on, and after those queued before."""
        if name in self._fetched:
            self._fetched[name].synchronize()  # the pinned memory is read no more
        pinned = self._memory("value", name, value)
        pinned.copy_(value)
        self._stream.wait_stream(self._api.current_stream(self._device))
        with self._api.stream(self._stream):
            target.copy_(pinned, non_blocking=True)
            self._fetched[name] = self._api.Event()
            self._fetched[name].record(self._stream)
        self._api.current_stream(self._device).wait_stream(self._stream)

    def close(self) -> None:
        """Ends the thread."""
        self._sent.put(None)
        self._thread.join()

    def _memory(self, way: str, name: str, like: torch.Tensor) -> torch.Tensor:
        if (way, name) not in self._pinned:
            self._pinned[way, name] = self._pin(like)
        return self._pinned[way, name]

    def _hand_over_all(self) -> None:
        while (finish := self._sent.get()) is not None:
            try:
                finish()
            except BaseException as error:  # flush raises it on the program's thread
                self._failed = self._failed or error
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()


def transfer_of(device: torch.device) -> Transfer | None:
    """That of a device; None where copies are made in place or by torch alone."""
    if device.type != "cuda":
        return None
    return Transfer(device, torch.cuda, lambda like: torch.empty(like.shape, dtype=like.dtype, pin_memory=True))
