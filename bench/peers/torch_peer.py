#!/usr/bin/env python3
"""mlp, ptb small, cifar10 and resnet in PyTorch: one process, or data-parallel workers over gloo on this host.

With --data, `cifar10 --recipe fast` and resnet train to the end on the images of a folder (torch_training.py), in place of
being timed on drawn ones; the line then has `precision`, of the folder's test images, and `seconds`."""
import json
import os

import peer

args = peer.read_arguments(__doc__, ("mlp", "ptb", *peer.IMAGES), workers=True, training=True, device=True)
import torch
from torch import nn
from torch.nn import functional as F

SIZES = peer.sizes(args)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        widths = (SIZES["features"], SIZES["hidden"], SIZES["hidden"], SIZES["features"])
        layers = []
        for rows, columns in zip(widths, widths[1:]):
            layers += [nn.Linear(rows, columns), nn.ReLU()]
            nn.init.xavier_uniform_(layers[-2].weight)
            nn.init.zeros_(layers[-2].bias)
        self.layers = nn.Sequential(*layers)

    def batch(self):
        return torch.randn(2, SIZES["batch"], SIZES["features"]).unbind()

    def logits(self, x):
        return self.layers(x)

    def forward(self, x, y):
        return nn.functional.mse_loss(self.logits(x), y)

    @staticmethod
    def optimizer(parameters):
        return torch.optim.Adam(parameters, lr=1e-4, fused=True)


class Ptb(nn.Module):
    def __init__(self):
        super().__init__()
        hidden, words = SIZES["hidden"], SIZES["vocabulary"]
        self.embedding = nn.Embedding(words, hidden)
        self.lstm = nn.LSTM(hidden, hidden, num_layers=2)
        self.softmax = nn.Linear(hidden, words)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -SIZES["scale"], SIZES["scale"])

    def batch(self):
        ids = torch.randint(SIZES["vocabulary"], (SIZES["unroll"] + 1, SIZES["batch"]))
        return ids[:-1], ids[1:]

    def logits(self, x):
        outputs, _ = self.lstm(self.embedding(x))
        return self.softmax(outputs.flatten(0, 1))

    def forward(self, x, y):
        logits = self.logits(x)
        return nn.functional.cross_entropy(logits, y.flatten(), reduction="sum") / SIZES["batch"]

    @staticmethod
    def optimizer(parameters):
        return torch.optim.SGD(parameters, lr=1.0, fused=True)


class Images(nn.Module):
    """What the image models share; their images are drawn once, so that input takes no time."""

    def __init__(self):
        super().__init__()
        shape = SIZES["batch"], 3, SIZES["pixels"], SIZES["pixels"]
        self.drawn = (torch.randn(shape).to(memory_format=torch.channels_last),
                      torch.randint(SIZES["classes"], (SIZES["batch"],)))

    def batch(self):
        return self.drawn

    def forward(self, x, y):
        return F.cross_entropy(self.logits(x), y)


class Cifar10(Images):
    def __init__(self):
        super().__init__()
        filters = SIZES["filters"]
        self.conv1 = nn.Conv2d(3, filters, 5, padding=2)
        self.conv2 = nn.Conv2d(filters, filters, 5, padding=2)
        pooled = filters * (SIZES["pixels"] // 4) ** 2
        self.dense = nn.Sequential(nn.Linear(pooled, 384), nn.ReLU(), nn.Linear(384, 192), nn.ReLU(),
                                   nn.Linear(192, SIZES["classes"]))

    def logits(self, x):
        norm = lambda x: F.local_response_norm(x, 9, alpha=0.001, beta=0.75)
        pool = lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True)  # the odd pixel of the padding lies behind
        x = norm(pool(F.relu(self.conv1(x))))
        return self.dense(pool(norm(F.relu(self.conv2(x)))).flatten(1))

    def optimizer(self, parameters):
        decayed = [self.dense[0].weight, self.dense[2].weight]
        others = [p for p in parameters if not any(p is d for d in decayed)]
        groups = [dict(params=decayed, weight_decay=0.004), dict(params=others)]
        return torch.optim.SGD(groups, lr=0.1, fused=True)


class Muon(torch.optim.Optimizer):
    """Filters of norm √rows, changed by the momentum of their gradient after three steps of Newton–Schulz."""

    def __init__(self, parameters):
        super().__init__(parameters, dict(lr=0.24, momentum=0.6))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                m.mul_(group["momentum"]).add_(p.grad)
                x = p.grad.add(m, alpha=group["momentum"]).flatten(1)
                x = x / (x.norm() + 1e-7)
                for _ in range(3):
                    a = x @ x.T
                    x = 3.4445 * x + (2.0315 * a @ a - 4.775 * a) @ x
                p.mul_(len(p) ** 0.5 / p.norm()).sub_(x.view_as(p), alpha=group["lr"])


class Both:
    """Two optimizers as one."""

    def __init__(self, *parts):
        self.parts = parts

    def zero_grad(self, **how):
        for part in self.parts:
            part.zero_grad(**how)

    def step(self):
        for part in self.parts:
            part.step()


class Fast(Images):
    """airbench94 with Muon, as in `paceline train cifar10 --recipe fast`."""

    def __init__(self):
        super().__init__()
        before = SIZES["whitening"]
        self.whiten = nn.Conv2d(3, before, 2)
        self.whiten.weight.requires_grad = False
        groups = []
        for width in SIZES["widths"]:
            groups += [nn.Conv2d(before, width, 3, padding=1, bias=False), nn.MaxPool2d(2), self.norm(width), nn.GELU(),
                       nn.Conv2d(width, width, 3, padding=1, bias=False), self.norm(width), nn.GELU()]
            before = width
        self.groups, self.head = nn.Sequential(*groups), nn.Linear(before, SIZES["classes"], bias=False)

    @staticmethod
    def norm(width):
        norm = nn.BatchNorm2d(width, eps=1e-12, momentum=0.4)
        norm.weight.requires_grad = False
        return norm

    def logits(self, x):
        x = F.max_pool2d(self.groups(F.gelu(self.whiten(x))), 3)
        return self.head(x.flatten(1)) / self.head.in_features

    def forward(self, x, y):
        return F.cross_entropy(self.logits(x), y, label_smoothing=0.2, reduction="sum")

    @staticmethod
    def optimizer(parameters):
        trained = [p for p in parameters if p.requires_grad]
        filters = [p for p in trained if p.dim() == 4]
        others = [p for p in trained if p.dim() != 4]
        return Both(Muon(filters), torch.optim.SGD(others, lr=0.053, momentum=0.85, nesterov=True, fused=True))


class Unit(nn.Module):
    """A residual unit with pre-activation; the first of the network shares its activation with the shortcut."""

    def __init__(self, before, channels, first):
        super().__init__()
        self.first, self.widens = first, channels != before
        self.norm1, self.norm2 = nn.BatchNorm2d(before, eps=1e-3), nn.BatchNorm2d(channels, eps=1e-3)
        self.conv1 = nn.Conv2d(before, channels, 3, 2 if self.widens else 1, 0 if self.widens else 1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)

    def forward(self, x):
        a = F.leaky_relu(self.norm1(x), 0.1)
        shortcut = a if self.first else x
        if self.widens:
            a = F.pad(a, (0, 1, 0, 1))  # the odd pixel of the padding lies behind
            more = self.conv1.out_channels - self.conv1.in_channels
            shortcut = F.pad(F.avg_pool2d(shortcut, 2), (0, 0, 0, 0, more // 2, more // 2))
        return shortcut + self.conv2(F.leaky_relu(self.norm2(self.conv1(a)), 0.1))


class Resnet(Images):
    def __init__(self):
        super().__init__()
        self.conv0 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        units, before = [], 16
        for channels in (16, 32, 64):
            for _ in range(SIZES["units"]):
                units.append(Unit(before, channels, not units))
                before = channels
        self.units = nn.Sequential(*units)
        self.norm, self.dense = nn.BatchNorm2d(64, eps=1e-3), nn.Linear(64, SIZES["classes"])

    def logits(self, x):
        x = self.units(self.conv0(x))
        return self.dense(F.relu(self.norm(x)).mean((2, 3)))

    @staticmethod
    def optimizer(parameters):
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.0002, fused=True)


def build():
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    model = dict(mlp=Mlp, ptb=Ptb, cifar10=Fast if args.recipe == "fast" else Cifar10, resnet=Resnet)[args.model]()
    if args.model in peer.IMAGES:
        model.drawn = tuple(part.to(args.device) for part in model.drawn)
        model = model.to(memory_format=torch.channels_last)
    return model.to(args.device)


def measure(distributed):
    model = build()
    trained = model
    if distributed:
        trained = nn.parallel.DistributedDataParallel(model)
    optimizer = model.optimizer(list(model.parameters()))

    def step():
        x, y = (part.to(args.device) for part in model.batch())
        with torch.autocast(args.device, torch.bfloat16, enabled=args.bfloat16):
            loss = trained(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if args.model == "ptb":
            nn.utils.clip_grad_norm_(model.parameters(), SIZES["clip"])
        optimizer.step()

    return step


def worker():
    addresses = json.loads(args.cluster)["worker"]
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = addresses[0].split(":")
    torch.distributed.init_process_group("gloo", rank=int(args.task.split(":")[1]), world_size=len(addresses))
    step = measure(distributed=True)
    peer.say(peer.timed(step, args.seconds, peer.wait_for_all))
    while True:  # the others are still measured, and need this one's gradients
        step()


def train():
    import torch_training  # needs Pillow, which timing does not

    return torch_training.train(build(), args, Muon)


def main():
    if args.data:
        peer.say(dict(peer="torch", version=torch.__version__, model=args.model, threads=args.threads, seed=args.seed, **train()))
        return
    if args.task:
        worker()
    if args.workers > 1:
        runs = peer.run_tasks(dict(worker=[peer.free_address() for _ in range(args.workers)]))
    else:
        finish = torch.cuda.synchronize if args.device == "cuda" else lambda: None
        runs = [peer.timed(measure(distributed=False), args.seconds, finish, finish)]
    peer.say(peer.result("torch", torch.__version__, args, runs))


if __name__ == "__main__":
    main()
