"""A sampler that shares the records of a data set out among the workers of a job, and that a checkpoint continues."""

from collections import deque
from collections.abc import Iterator, Sized
from functools import lru_cache

import torch

from ._errors import InvalidArgument
from ._paceline import SharedRecords
from ._store import Store

_EPOCH, _PLACE = "sampler.epoch", "sampler.place"  # in a task's position
_TAKEN = "shared.taken"  # the same: by it the job knows which of the records that it has given are used
_LARGEST_BLOCK = 64  # records that a worker is given at a time


class Sampler(torch.utils.data.Sampler[int]):
    """Each worker's part of a data set, for a DataLoader with any number of processes: each record belongs to one worker in an
    epoch, and the next epoch has another order. Trainer.batches(loader) counts what steps have used: a run that resumes goes on
    with the records that were not, with any number of workers.

        sampler = trainer.sampler(dataset)
        loader = torch.utils.data.DataLoader(dataset, batch_size=64, sampler=sampler, num_workers=2)
        while not trainer.store.ended:
            for inputs, targets in trainer.batches(loader):
                …
    """

    def __init__(self, records: Sized, store: Store, shuffle: bool = True, seed: int = 0) -> None:
        """Trainer.sampler makes it."""
        self._count = len(records)
        self._worker, self._workers = store.worker, store.workers
        if self._count < self._workers:
            raise InvalidArgument(f"sampler: {self._count} records cannot be shared out among {self._workers} workers")
        self._shuffle, self._seed = shuffle, seed
        self._epoch = store.restored.get(_EPOCH, 0)
        self._begin = min(store.restored.get(_PLACE, 0), self._count)  # the place in the epoch's order where this pass begins
        self._used = 0  # records of this pass that steps have used
        self._passing = False

    @property
    def epoch(self) -> int:
        """The epoch whose records come next or now, from 0."""
        return self._epoch

    def __len__(self) -> int:
        """The records of this worker in the pass that is under way, or the next one: after a resumption the rest of an epoch."""
        return len(range(self._begin + self._worker, self._count, self._workers))

    def __iter__(self) -> Iterator[int]:
        if self._passing:  # the pass before was left or is over
            self._end_pass()
        self._passing = True
        order = self._order(self._epoch)
        return iter([order[place] for place in range(self._begin + self._worker, self._count, self._workers)])

    def use(self, records: int) -> dict[str, int]:
        """Counts records that the next step uses; the position with which it begins (Store.step)."""
        self._used = min(self._used + records, len(self))
        place = self._begin + self._used * self._workers
        if self._used == len(self):
            return {_EPOCH: self._epoch + 1, _PLACE: 0}
        return {_EPOCH: self._epoch, _PLACE: place}

    def _end_pass(self) -> None:
        self._epoch += 1
        self._begin = self._used = 0
        self._passing = False

    def _order(self, epoch: int) -> list[int]:
        if not self._shuffle:
            return list(range(self._count))
        generator = torch.Generator().manual_seed((self._seed << 20) + epoch)
        order: list[int] = torch.randperm(self._count, generator=generator).tolist()
        return order


class DynamicSampler(Sampler):
    """Records of which each worker takes the next ones when it needs some (the flag shard="dynamic"): a slow worker has fewer,
    and each record is used once in an epoch, whichever workers join, leave or are lost. How many are a worker's is known when
    the epoch is over, so that the sampler, and a DataLoader over it, have no length."""

    def __init__(self, records: Sized, store: Store, shared: SharedRecords, shuffle: bool = True, seed: int = 0) -> None:
        """Trainer.sampler makes it. shared: the records of the job."""
        super().__init__(records, store, shuffle, seed)
        self._shared = shared
        self._epoch = 0
        self._begins = 0  # of `shared`
        self._last = -1  # the place of the record that a step used last
        self._pending: deque[int] = deque()  # places that were taken, and not used
        self._given = 0  # of them, to the loader, in the pass that is under way
        self._dropped = 0  # records that no step uses, since the loader has dropped them, and that count as used
        self._stale = 0  # records that the loader has, and which are others' by now
        self._over = False  # the pass before has given all that it had of its epoch
        self._order = lru_cache(2)(self._order)  # type: ignore[method-assign]  # what is given anew may be of the epoch before

    def __len__(self) -> int:
        raise TypeError("how many records a worker has is known when the epoch is over (--shard dynamic)")

    def __iter__(self) -> Iterator[int]:
        if self._over:  # a loader with drop_last has left its last batch
            for _ in range(self._given):
                self._pending.popleft()
            self._dropped += self._given
        self._over, self._given, self._stale = False, 0, 0
        return self._pass()

    def use(self, records: int) -> dict[str, int]:
        """Counts records that the next step uses; the position with which it begins (Store.step)."""
        self._follow(self._shared.begins())
        stale = min(self._stale, records)
        self._stale -= stale
        used = min(self._given, records - stale)
        for _ in range(used):
            self._last = self._pending.popleft()
        self._given -= used
        taken = self._shared.use(self._dropped + used)
        self._dropped = 0
        place = {} if self._last < 0 else {_EPOCH: self._last // self._count, _PLACE: self._last % self._count + 1}
        return {_TAKEN: taken, **place}  # by the place a run with equal parts goes on

    def _pass(self) -> Iterator[int]:
        epoch = -1
        while self._given < len(self._pending) or self._take():
            place = self._pending[self._given]
            if epoch < 0:
                epoch = max(self._epoch, place // self._count)
            if place // self._count > epoch:
                break
            self._given += 1
            yield self._order(place // self._count)[place % self._count]
        self._epoch, self._over = max(self._epoch, epoch) + 1, True

    def _take(self) -> bool:
        """False when there will be no more."""
        begins, first, end = self._shared.take(_LARGEST_BLOCK)
        self._follow(begins)
        self._pending.extend(range(first, end))
        return first < end

    def _follow(self, begins: int) -> None:
        """What was taken before a new beginning is given to others."""
        if self._begins != begins:
            self._begins = begins
            self._stale += self._given
            self._pending.clear()
            self._given = self._dropped = 0


def sampler_of(records: Sized, store: Store, shuffle: bool, seed: int) -> Sampler:
    """A sampler whose parts are equal, or where the job shares records out the one that takes them."""
    count = len(records)
    shared = store._call(lambda: store._binding.shared_records(max(1, min(_LARGEST_BLOCK, count // (8 * store.workers)))))
    if shared is None:
        return Sampler(records, store, shuffle, seed)
    if store._shared_records != count:
        raise InvalidArgument(f"sampler: --shard dynamic shares out the records of all workers alike: give distribute(shared_records={count}), "
                              f"the number of them, which is {store._shared_records} there")
    return DynamicSampler(records, store, shared, shuffle, seed)
