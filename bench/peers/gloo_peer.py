#!/usr/bin/env python3
"""The time of PyTorch's Gloo all-reduce between processes of this host, by number of processes and size.

Prints one JSON line: peer, version, and "collectives": {"75 MB between 2": {"us": …}, …}, the median over --repeat
series, each of 0.1 s and at least two reductions, of the mean time of one.
"""
import argparse
import datetime
import json
import os
import statistics
import time

import peer

SIZES = {"4 KB": 4 << 10, "64 KB": 64 << 10, "1 MB": 1 << 20, "16 MB": 16 << 20, "75 MB": 75_000_000}
GROUPS = (2, 4)
SERIES_S = 0.1

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("model", choices=["collectives"])
parser.add_argument("--repeat", type=int, default=5)
parser.add_argument("--task", help=argparse.SUPPRESS)  # "worker:1": started by the program itself
parser.add_argument("--cluster", help=argparse.SUPPRESS)
args = parser.parse_args()
import torch
import torch.distributed as dist


def mean_time(numbers, times):
    dist.barrier()
    begun = time.perf_counter()
    for _ in range(times):
        dist.all_reduce(numbers)
    return (time.perf_counter() - begun) / times


def times_of_series(numbers):
    """The first process chooses, since all must make the same calls."""
    mean_time(numbers, 1)
    chosen = torch.tensor([max(2, int(SERIES_S / mean_time(numbers, 2)))])
    dist.broadcast(chosen, 0)
    return int(chosen)


def measure(size):
    numbers = torch.zeros(size // 4)
    times = times_of_series(numbers)
    return 1e6 * statistics.median(mean_time(numbers, times) for _ in range(args.repeat))


def worker():
    addresses = json.loads(args.cluster)["worker"]
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = addresses[0].split(":")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=int(args.task.split(":")[1]), world_size=len(addresses),
                            timeout=datetime.timedelta(seconds=60))
    peer.wait_for_all()
    peer.say({name: {"us": measure(size)} for name, size in SIZES.items()})


if args.task:
    worker()
else:
    rows = {}
    for members in GROUPS:
        first = peer.run_tasks(dict(worker=[peer.free_address() for _ in range(members)]))[0]
        rows.update({f"{name} between {members}": row for name, row in first.items()})
    peer.say(dict(peer="gloo", version=torch.__version__, collectives=rows))
