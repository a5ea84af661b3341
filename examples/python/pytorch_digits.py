"""A PyTorch model, distributed: python pytorch_digits.py, or several workers:

    paceline launch --ps 1 --workers 2 -- python pytorch_digits.py --strategy sync --steps 300
"""

import sys

import torch

import paceline
import paceline.torch

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
trainer = paceline.torch.distribute(model, rule=paceline.Adam(1e-3), examples_per_step=64,
                                    arguments=sys.argv[1:] or ["--steps", "300"])

centres = torch.randn(10, 64)  # ten kinds of inputs, the same on every worker
random = torch.Generator().manual_seed(trainer.store.worker)


def examples(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    kinds = torch.randint(10, (count,), generator=random)
    return centres[kinds] + torch.randn(count, 64, generator=random), kinds


with trainer:
    for inputs, kinds in trainer.batches(examples(64) for _ in range(10**9)):
        loss = torch.nn.functional.cross_entropy(model(inputs), kinds)
        loss.backward()
        trainer.step(loss)

model.eval()
inputs, kinds = examples(1000)
print(f"right: {(model(inputs).argmax(1) == kinds).float().mean():.3f}")
