#!/usr/bin/env python3
"""mlp and ptb small in PyTorch: one process, or data-parallel workers over gloo on this host."""
import json
import os

import peer

args = peer.read_arguments(__doc__, ("mlp", "ptb"), workers=True)
import torch
from torch import nn

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

    def forward(self, x, y):
        return nn.functional.mse_loss(self.layers(x), y)

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

    def forward(self, x, y):
        outputs, _ = self.lstm(self.embedding(x))
        logits = self.softmax(outputs.flatten(0, 1))
        return nn.functional.cross_entropy(logits, y.flatten(), reduction="sum") / SIZES["batch"]

    @staticmethod
    def optimizer(parameters):
        return torch.optim.SGD(parameters, lr=1.0, fused=True)


def measure(distributed):
    if args.threads:
        torch.set_num_threads(args.threads)
    model = dict(mlp=Mlp, ptb=Ptb)[args.model]()
    trained = model
    if distributed:
        trained = nn.parallel.DistributedDataParallel(model)
    optimizer = model.optimizer(model.parameters())

    def step():
        x, y = model.batch()
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bfloat16):
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


if args.task:
    worker()
if args.workers > 1:
    runs = peer.run_tasks(dict(worker=[peer.free_address() for _ in range(args.workers)]))
else:
    runs = [peer.timed(measure(distributed=False), args.seconds)]
peer.say(peer.result("torch", torch.__version__, args, runs))
