"""The parts that the peers' programs share: their command line, the timing, tasks on this host, the result line.

A peer's program prints one JSON line: peer, version, model, ps, workers, threads, steps,
total_steps_per_s, total_examples_per_s (ptb: words); for fetch a list "fetch" of shape, local_us,
remote_us, added_us (medians, microseconds).
"""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time

WARM_UP = 10
MLP = dict(batch=128, features=256, hidden=4096)
PTB = dict(batch=20, unroll=20, hidden=200, vocabulary=10000, clip=5.0, scale=0.1)
CIFAR10 = dict(batch=128, pixels=24, filters=64, classes=10)
FAST = dict(batch=2000, pixels=32, whitening=24, widths=(64, 256, 256), classes=10)  # cifar10 --recipe fast
RESNET = dict(batch=128, pixels=32, units=18, classes=10)
SIZES = dict(mlp=MLP, ptb=PTB, cifar10=CIFAR10, resnet=RESNET)
IMAGES = ("cifar10", "resnet")
FETCH = ((128, 32, 256), (256, 128, 128), (256, 128, 64))  # features, batch, hidden


def read_arguments(about, models, ps=False, workers=False, training=False, device=False):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("model", choices=models)
    parser.add_argument("--seconds", type=float, default=8, help="timed steps take so long (default 8)")
    parser.add_argument("--threads", type=int, default=0,
                        help="of one task; 0: the peer's own choice, of several workers the cores divided among them")
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=0)
    parser.add_argument("--depth", type=int, default=0, help="of resnet: 2 more than 6 times the units of a stage")
    parser.add_argument("--recipe", choices=["report", "fast"], default="report", help="of cifar10, where the peer has fast")
    parser.add_argument("--bfloat16", action="store_true", help="compute in bfloat16 where the peer can")
    if ps:
        parser.add_argument("--ps", type=int, default=0)
        parser.add_argument("--intra-op", type=int, help="threads of one op (default: as --threads)")
        parser.add_argument("--sync", action="store_true", help="synchronous replicas (SyncReplicasOptimizer), for a cluster")
        parser.add_argument("--sim-step-ms", type=float, help="in place of computing, wait so long: a device that only takes time")
        parser.add_argument("--gbps", type=float, help="each task on an emulated host of its own, with a link of that rate (needs root)")
    if workers:
        parser.add_argument("--workers", type=int, default=1)
    if device:
        parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="which computes, in one process")
    if training:
        parser.add_argument("--data", metavar="FOLDER", help="train to the end on train/CLASS/* in it, and evaluate with test/CLASS/*")
        parser.add_argument("--steps", type=int, help="with --data: so many")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--checkpoint", metavar="FILE", help="with --data: save there each minute, and go on from it if it is there")
    parser.add_argument("--task", help=argparse.SUPPRESS)     # "worker:1": started by the program itself
    parser.add_argument("--cluster", help=argparse.SUPPRESS)  # JSON, by job
    args = parser.parse_args()
    if training and args.data and not (args.steps and (args.model == "resnet" or (args.model == "cifar10" and args.recipe == "fast"))):
        parser.error("--data needs --steps, and resnet or cifar10 --recipe fast")
    several = getattr(args, "workers", 1)
    if not args.threads and several > 1 and not (args.task or "").startswith("ps"):
        args.threads = max(1, len(os.sched_getaffinity(0)) // several)  # workers share the cores, as Paceline's do
    return args


def sizes(args):
    """The published ones, but for what the command line says."""
    chosen = dict(FAST if args.model == "cifar10" and args.recipe == "fast" else SIZES[args.model])
    for name in ("batch", "hidden"):
        if name in chosen:
            chosen[name] = getattr(args, name) or chosen[name]
    if args.model == "resnet" and args.depth:
        chosen["units"] = args.depth // 6
    return chosen


def examples_per_step(args):
    s = sizes(args)
    return s["batch"] * s["unroll"] if args.model == "ptb" else s["batch"]


def timed(step, seconds, before=lambda: None, finish=lambda: None):
    """Untimed steps, then `before`, then steps for so many seconds and `finish`: (steps, seconds they took)."""
    for _ in range(WARM_UP):
        step()
    before()
    steps, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        step()
        steps += 1
    finish()
    return steps, time.perf_counter() - begun


def median_us(call, calls=2000):
    times = []
    for i in range(calls + WARM_UP):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return 1e6 * statistics.median(times[WARM_UP:])


def say(line):
    print(json.dumps(line), flush=True)


def result(peer, version, args, runs):
    """The line of all workers: `runs` are (steps, seconds) of each."""
    rate = sum(steps / seconds for steps, seconds in runs)
    return dict(peer=peer, version=version, model=args.model, ps=getattr(args, "ps", 0), workers=len(runs),
                threads=args.threads, steps=sum(steps for steps, _ in runs), total_steps_per_s=rate,
                total_examples_per_s=rate * examples_per_step(args))


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % probe.getsockname()[1]


def wait_for_all(meanwhile=None):
    """Says that this worker is ready, and returns when all are. Until then it calls `meanwhile`: for a worker whose
    steps others wait for."""
    say("ready")
    if meanwhile is None:
        return sys.stdin.readline()
    waits = threading.Thread(target=sys.stdin.readline, daemon=True)
    waits.start()
    while waits.is_alive():
        meanwhile()


def run_tasks(cluster, environment=None, measured="worker", hosts=None):
    """Starts this program again for each task of `cluster` (addresses by job), begins when all measured tasks are
    ready, and gives what each of them says. All are ended together, so that each was measured under full load.
    With `hosts` each task is on one of its own, in the order of the cluster."""
    tasks = {}
    try:
        for job, addresses in cluster.items():
            for index in range(len(addresses)):
                words = [sys.executable, *sys.argv, "--task", f"{job}:{index}", "--cluster", json.dumps(cluster)]
                if hosts:
                    words = hosts.on(len(tasks), words)
                tasks[job, index] = subprocess.Popen(words, env=environment, text=True, stdin=subprocess.PIPE,
                                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        workers = [tasks[measured, index] for index in range(len(cluster[measured]))]
        for worker in workers:
            line_of(worker)
        for worker in workers:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        return [line_of(worker) for worker in workers]
    finally:
        for task in tasks.values():
            task.kill()
            task.wait()


def line_of(task):
    for line in task.stdout:
        try:
            return json.loads(line)
        except ValueError:
            continue  # a line that the library has printed
    sys.exit("a task ended without a result")
