"""What make_pytorch_table trains: ResNet-18, a GPT, and stand-ins for both that sleep for as long as a step takes."""
import dataclasses
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

IMAGES = 64  # of a step
PIXELS = 32
CLASSES = 1000
SEQUENCES, CONTEXT = 4, 64  # 256 tokens of a step
BYTES = 256


def resnet18() -> nn.Module:
    """torchvision's, unchanged: 11.7 M parameters. Its stem makes 8 x 8 of an image of 32 x 32."""
    import torchvision

    return torchvision.models.resnet18()


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = self.attend(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x))))


class Gpt(nn.Module):
    """GPT-2's layers over bytes, without dropout, its output tied to its embedding: 9.97 M parameters."""

    def __init__(self, layers: int = 8, heads: int = 5, width: int = 320) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(BYTES, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
                if isinstance(module, nn.Linear):
                    nn.init.zeros_(module.bias)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.embedding.weight)


class SleepingPass(torch.autograd.Function):
    """Sleeps in forward, and twice as long in backward; each parameter's gradient is a small part of it."""

    @staticmethod
    def forward(context, seconds, x, *parameters):
        time.sleep(seconds / 3)
        context.seconds = seconds
        context.save_for_backward(*parameters)
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        time.sleep(context.seconds * 2 / 3)
        return None, gradient, *(parameter * 1e-6 for parameter in context.saved_tensors)


class SleepingLayer(nn.Module):
    def __init__(self, seconds: float, parameters: list[nn.Parameter]) -> None:
        super().__init__()
        self.seconds = seconds
        self.own = nn.ParameterList(parameters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return SleepingPass.apply(self.seconds, x, *self.own)


class Sleeping(nn.Module):
    """The parameters of a model, in modules that sleep: each as long as the others, all together for `seconds`."""

    def __init__(self, of: nn.Module, seconds: float) -> None:
        super().__init__()
        owners = [list(module.parameters(recurse=False)) for module in of.modules()]
        owners = [own for own in owners if own]
        self.layers = nn.Sequential(*(SleepingLayer(seconds / len(owners), own) for own in owners))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


@dataclasses.dataclass(frozen=True)
class Workload:
    """A model, and what it trains on; a part of a step's batch is that of one worker."""

    model: Callable[[], nn.Module]
    part: Callable[[torch.Generator], tuple[torch.Tensor, torch.Tensor]]
    examples: int  # of a part
    unit: str
    learning_rate: float

    def batch(self, step: int, parts: range) -> tuple[torch.Tensor, torch.Tensor]:
        """Those parts of a step's batch."""
        made = [self.part(torch.Generator().manual_seed(1000 * step + part)) for part in parts]
        inputs, targets = zip(*made, strict=True)
        return torch.cat(inputs), torch.cat(targets)

    @staticmethod
    def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The mean over the batch."""
        return F.cross_entropy(outputs.flatten(0, -2), targets.flatten())

    def sleeping(self, seconds: float) -> "Workload":
        """The same parameters, of a model that sleeps for a step."""
        return dataclasses.replace(self, model=lambda: Sleeping(self.model(), seconds), part=lambda random: (torch.zeros(1, 2), torch.zeros(1, dtype=torch.long)))


def images(random: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(IMAGES, 3, PIXELS, PIXELS, generator=random), torch.randint(CLASSES, (IMAGES,), generator=random)


def tokens(random: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Bytes that count up from anywhere, by steps of 1 to 4: the next one can be learned."""
    first = torch.randint(BYTES, (SEQUENCES, 1), generator=random)
    by = torch.randint(1, 5, (SEQUENCES, 1), generator=random)
    counted = (first + by * torch.arange(CONTEXT + 1)) % BYTES
    return counted[:, :-1], counted[:, 1:]


WORKLOADS = {
    "resnet18": Workload(resnet18, images, IMAGES, "images", 0.01),
    "gpt": Workload(Gpt, tokens, SEQUENCES * CONTEXT, "tokens", 0.05),
}
