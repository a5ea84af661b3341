#!/usr/bin/env python3
"""One process of make_pytorch_table: trains a model by plain torch, DistributedDataParallel over Gloo, or Paceline, and
leaves what it measured in FOLDER/worker-N.json. Which task it is $PACELINE_TASK says, of the launcher that starts all
three alike. Flags that are not listed here are Paceline's.
usage: pytorch_train.py MODEL --by torch|ddp|paceline --into FOLDER [flags]"""
import argparse
import json
import os
import pathlib
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS, allow_abbrev=False)
    parser.add_argument("model", choices=["resnet18", "gpt"])
    parser.add_argument("--by", choices=["torch", "ddp", "paceline"], required=True)
    parser.add_argument("--into", type=pathlib.Path, required=True, metavar="FOLDER")
    parser.add_argument("--steps", type=int, default=40, metavar="N", help="timed ones (default 40)")
    parser.add_argument("--warm-up", type=int, default=10, metavar="N", help="steps before (default 10)")
    parser.add_argument("--compute-threads", type=int, default=0, metavar="T", help="of torch (default: its own choice)")
    parser.add_argument("--core-each", action="store_true", help="worker i, and parameter server i, on core i")
    parser.add_argument("--sleep-ms", type=float, default=0, metavar="MS", help="in place of computing, for each step")
    parser.add_argument("--parts", type=int, default=1, metavar="N", help="by torch: the batches of N workers in each step (default 1)")
    parser.add_argument("--compress", action="store_true", help="by ddp: gradients travel as bfloat16 (DDP's bf16_compress_hook)")
    return parser.parse_known_args()


given, rest = arguments()
task = json.loads(os.environ.get("PACELINE_TASK", "{}"))
kind, _, index = task.get("task", "worker:0").partition(":")
workers = dict(part.split("=") for part in task.get("cluster", "worker=").split(";"))["worker"].split(",")
if given.core_each:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(index) % len(cores)]})

import torch  # its threads begin on the cores of this one

from pytorch_models import WORKLOADS

if given.compute_threads:
    torch.set_num_threads(given.compute_threads)
workload = WORKLOADS[given.model]
if given.sleep_ms:
    workload = workload.sleeping(given.sleep_ms / 1000)
torch.manual_seed(1)
model = workload.model()
ends, losses = [], []


def train(forward, step):
    """All steps: `step` takes the loss, after backward."""
    parts = range(given.parts) if given.by == "torch" else range(int(index), int(index) + 1)
    for number in range(given.warm_up + given.steps):
        inputs, targets = workload.batch(number, parts)
        loss = workload.loss(forward(inputs), targets)
        loss.backward()
        step(loss)
        losses.append(loss.item())
        ends.append(time.monotonic())


def train_by_torch(forward):
    optimizer = torch.optim.SGD(model.parameters(), workload.learning_rate, momentum=0.9, fused=True)

    def step(loss):
        optimizer.step()
        optimizer.zero_grad()

    train(forward, step)


def train_by_ddp():
    host, port = workers[0].rsplit(":", 1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo" if host.startswith("127.") else "eth0"  # a host of `paceline lab`
    group = torch.distributed
    group.init_process_group("gloo", init_method=f"tcp://{host}:{port}", rank=int(index), world_size=len(workers))
    forward = torch.nn.parallel.DistributedDataParallel(model)
    if given.compress:
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        forward.register_comm_hook(None, default_hooks.bf16_compress_hook)
    train_by_torch(forward)
    group.destroy_process_group()


def train_by_paceline():
    import paceline.torch

    with paceline.torch.distribute(model, paceline.Momentum(workload.learning_rate, 0.9), name=given.model,
                                   examples_per_step=workload.examples, unit=workload.unit, arguments=rest) as trainer:
        train(model, trainer.step)


if given.by == "torch":
    train_by_torch(model)
elif given.by == "ddp":
    train_by_ddp()
else:
    train_by_paceline()
first = ends[given.warm_up - 1] if given.warm_up else ends[0]
steps = given.warm_up + given.steps - max(1, given.warm_up)
found = {"torch": torch.__version__, "steps_per_s": steps / (ends[-1] - first), "losses": losses,
         "parameters": sum(parameter.numel() for parameter in model.parameters()),
         "tensors": len(list(model.parameters()))}
(given.into / f"worker-{index}.json").write_text(json.dumps(found) + "\n")
