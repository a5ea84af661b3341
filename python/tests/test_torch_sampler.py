"""Records that are shared out among workers: each one once in an epoch, and on over a checkpoint."""

import pathlib
import subprocess
import sys
from types import SimpleNamespace

import pytest

import paceline

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
if torch is not None:
    import paceline.torch
    from paceline._torch_sampler import DynamicSampler, Sampler
    from test_torch import small_model


class Records(torch.utils.data.Dataset if torch is not None else object):  # type: ignore[misc]
    """Records that are their numbers."""

    def __len__(self) -> int:
        return 50

    def __getitem__(self, index: int) -> "tuple[torch.Tensor, int]":
        return torch.full((6,), float(index)), index


def of_worker(worker: int, workers: int, restored: dict[str, int] | None = None) -> "Sampler":
    return Sampler(Records(), SimpleNamespace(worker=worker, workers=workers, restored=restored or {}))  # type: ignore[arg-type]


def test_each_record_is_one_workers_in_each_epoch_whose_order_is_another() -> None:
    samplers = [of_worker(worker, 3) for worker in range(3)]
    epochs = []
    for _ in range(3):
        parts = [list(sampler) for sampler in samplers]
        assert sorted(sum(parts, [])) == list(range(50))
        assert [len(part) for part in parts] == [17, 17, 16]
        assert [len(sampler) for sampler in samplers] == [17, 17, 16]
        epochs.append(parts[0])
    assert epochs[0] != epochs[1] != epochs[2]
    assert epochs[0] == list(of_worker(0, 3)), "they follow from the seed"


def test_more_workers_than_records_are_refused() -> None:
    with pytest.raises(ValueError, match="50 records cannot be shared out among 51 workers"):
        of_worker(0, 51)


def test_other_numbers_of_workers_go_on_with_the_rest_of_the_epoch() -> None:
    first = [of_worker(worker, 2) for worker in range(2)]
    used = []
    for sampler in first:
        records = list(sampler)
        place = sampler.use(8)
        used += records[:8]
        assert place == {"sampler.epoch": 0, "sampler.place": 16}
    rest = [list(of_worker(worker, 5, place)) for worker in range(5)]
    assert sorted(used + sum(rest, [])) == list(range(50))


class Given:
    """Stands in for the records of a job: gives them to one worker, in blocks of at most so many."""

    def __init__(self, *blocks: tuple[int, int]) -> None:
        self.blocks = list(blocks)
        self.begun = 1
        self.used = 0

    def take(self, most: int) -> tuple[int, int, int]:
        if not self.blocks:
            return self.begun, 0, 0
        first, end = self.blocks.pop(0)
        if end - first > most:
            self.blocks.insert(0, (first + most, end))
        return self.begun, first, min(end, first + most)

    def use(self, records: int) -> int:
        self.used += records
        return self.used

    def begins(self) -> int:
        return self.begun


def dynamic(*blocks: tuple[int, int]) -> "tuple[DynamicSampler, Given]":
    given = Given(*blocks)
    store = SimpleNamespace(worker=0, workers=2, restored={})
    return DynamicSampler(Records(), store, given, shuffle=False), given  # type: ignore[arg-type]


def test_records_that_are_taken_as_they_are_needed_make_epochs() -> None:
    sampler, given = dynamic((0, 20), (30, 50), (50, 60), (90, 100), (20, 30), (100, 104))
    assert list(sampler) == [*range(20), *range(30, 50)]
    assert sampler.epoch == 1
    assert sampler.use(30)["shared.taken"] == 30
    assert sampler.use(30) == {"shared.taken": 40, "sampler.epoch": 0, "sampler.place": 50}, "the last batch is smaller"
    assert list(sampler) == [*range(10), *range(40, 50), *range(20, 30)], "what another worker has left comes late"
    assert sampler.use(30)["shared.taken"] == 70
    assert list(sampler) == [0, 1, 2, 3], "there are no more"
    with pytest.raises(TypeError, match="how many records a worker has is known when the epoch is over"):
        len(sampler)


def test_a_pass_that_is_left_goes_on_with_what_no_step_has_used() -> None:
    sampler, _ = dynamic((0, 20), (20, 60))
    records = iter(sampler)
    assert [next(records) for _ in range(12)] == list(range(12))
    assert sampler.use(4)["shared.taken"] == 4
    assert list(sampler) == list(range(4, 50))
    assert sampler.use(100)["shared.taken"] == 50


def test_what_a_loader_drops_at_the_end_of_an_epoch_counts_as_used() -> None:
    sampler, _ = dynamic((0, 30), (30, 110))
    loader = torch.utils.data.DataLoader(Records(), batch_size=8, sampler=sampler, drop_last=True)
    for epoch in range(2):
        places = []
        for _, indices in loader:
            places.append(sampler.use(8))
            assert len(indices) == 8
        assert len(places) == 6
        assert places[-1] == {"shared.taken": 48 + 50 * epoch, "sampler.epoch": epoch, "sampler.place": 48}


def test_records_that_others_have_by_now_count_no_more() -> None:
    sampler, given = dynamic((0, 20), (20, 40), (3, 9))
    records = iter(sampler)
    assert [next(records) for _ in range(10)] == list(range(10))
    assert sampler.use(4)["shared.taken"] == 4
    given.begun, given.used, given.blocks = 2, 3, [(30, 36), (50, 51)]  # the others have gone on without this worker
    assert sampler.use(4)["shared.taken"] == 3, "they are read once more"
    assert list(records) == [*range(30, 36)]
    assert sampler.use(4)["shared.taken"] == 3 + 2, "two of them"
    assert sampler.use(4)["shared.taken"] == 3 + 6


@pytest.mark.parametrize("processes", [0, 2])
def test_a_run_that_resumes_uses_what_was_not_used(tmp_path: pathlib.Path, processes: int) -> None:
    def run(steps: int, **flags: object) -> list[int]:
        model = small_model()
        seen: list[int] = []
        with paceline.torch.distribute(model, paceline.Sgd(0.0), steps=steps, out=tmp_path / "run", quiet=True, **flags) as trainer:
            sampler = trainer.sampler(Records())
            loader = torch.utils.data.DataLoader(Records(), batch_size=8, sampler=sampler, num_workers=processes)
            while not trainer.store.ended:
                for inputs, indices in trainer.batches(loader):
                    model(inputs).mean().backward()
                    trainer.step()
                    seen += indices.tolist()
        return seen

    seen = run(10)  # the first epoch has 7 batches
    assert sorted(seen[:50]) == list(range(50))
    seen += run(14, resume=True)
    assert sorted(seen[50:]) == list(range(50))
    assert seen[:50] != seen[50:]


PROGRAM = '''
import sys, torch, paceline, paceline.torch
sys.path.insert(0, sys.argv[1])
from test_torch import small_model
from test_torch_sampler import Records
torch.set_num_threads(1)
model = small_model()
with paceline.torch.distribute(model, paceline.Sgd(0.1), arguments=sys.argv[2:]) as trainer:
    loader = torch.utils.data.DataLoader(Records(), batch_size=5, sampler=trainer.sampler(Records()))
    for inputs, indices in trainer.batches(loader):
        model(inputs).mean().backward()
        trainer.step()
        print("read", *indices.tolist(), flush=True)
'''


def test_workers_of_a_job_read_each_record_once(command: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    done = subprocess.run([command, "launch", "--ps", "0", "--workers", "2", "--", sys.executable, tmp_path / "train.py",
                           pathlib.Path(__file__).parent, "--strategy", "allreduce"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    read = [int(word) for line in done.stdout.splitlines() if "| read" in line for word in line.split()[3:]]
    assert sorted(read) == list(range(50))


# Worker 1 waits with its first batch until worker 0 has read what --until says.
DYNAMIC = '''
import argparse, pathlib, sys, time, torch, paceline, paceline.torch
parser = argparse.ArgumentParser()
parser.add_argument("tests")
parser.add_argument("--until", type=int, default=0)
parser.add_argument("--told", type=int, default=50)
parser.add_argument("--seen", type=pathlib.Path)
own, flags = parser.parse_known_args()
sys.path.insert(0, own.tests)
from test_torch import small_model
from test_torch_sampler import Records
torch.set_num_threads(1)
model = small_model()
with paceline.torch.distribute(model, paceline.Sgd(0.1), shared_records=own.told, arguments=flags) as trainer:
    loader = torch.utils.data.DataLoader(Records(), batch_size=4, sampler=trainer.sampler(Records()))
    read = 0
    for inputs, indices in trainer.batches(loader):
        while own.until and trainer.store.worker == 1 and not own.seen.exists():
            time.sleep(0.02)
        model(inputs).mean().backward()
        trainer.step()
        print("read", *indices.tolist(), flush=True)
        read += len(indices)
        if own.until and trainer.store.worker == 0 and read >= own.until:
            own.seen.touch()
'''


def read_by(command: str, tmp_path: pathlib.Path, ps: int, workers: int, *flags: object) -> tuple[dict[str, list[int]], str]:
    (tmp_path / "train.py").write_text(DYNAMIC)
    done = subprocess.run([command, "launch", "--ps", str(ps), "--workers", str(workers), "--", sys.executable, tmp_path / "train.py",
                           pathlib.Path(__file__).parent, "--shard", "dynamic", *map(str, flags)],
                          capture_output=True, text=True, timeout=300)
    read: dict[str, list[int]] = {}
    for line in done.stdout.splitlines():
        if "| read" in line:
            read.setdefault(line.split()[0], []).extend(map(int, line.split()[3:]))
    return read, done.stdout + done.stderr


def test_a_worker_that_is_slow_has_fewer_records(command: str, tmp_path: pathlib.Path) -> None:
    read, said = read_by(command, tmp_path, 1, 2, "--strategy", "async", "--until", 30, "--seen", tmp_path / "seen")
    assert sorted(sum(read.values(), [])) == list(range(50)), said
    assert len(read["worker:0"]) >= 30


def test_another_number_of_workers_goes_on_with_the_rest(command: str, tmp_path: pathlib.Path) -> None:
    flags = ["--strategy", "allreduce", "--out", tmp_path / "run"]
    first, said = read_by(command, tmp_path, 0, 2, *flags, "--steps", 4)
    assert sum(map(len, first.values())) == 32, said
    rest, said = read_by(command, tmp_path, 0, 3, *flags, "--resume", "--steps", 9)
    left = set(range(50)) - set(sum(first.values(), []))
    assert len(left) == 18
    assert left in [set(read) for read in rest.values()], said  # the others have begun the next epoch


def test_the_number_of_records_must_be_told(command: str, tmp_path: pathlib.Path) -> None:
    _, said = read_by(command, tmp_path, 0, 2, "--strategy", "allreduce", "--told", 40)
    assert "give distribute(shared_records=50), the number of them, which is 40 there" in said
