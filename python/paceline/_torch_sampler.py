"""A sampler that shares the records of a data set out among the workers of a job, and that a checkpoint continues."""

from collections.abc import Iterator, Sized

import torch

from ._errors import InvalidArgument
from ._store import Store

_EPOCH, _PLACE = "sampler.epoch", "sampler.place"  # in a task's position


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
