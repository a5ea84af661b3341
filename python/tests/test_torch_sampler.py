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
    from paceline._torch_sampler import Sampler
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
