"""A run of real tasks, and what can be done to it from outside while it trains. For scripts/stage_causes."""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

# Flags that one process does without.
ONLY_CLUSTERS = ("--ps", "--workers", "--strategy", "--lab-hosts", "--lab-gbps", "--sim-straggler")
CGROUPS = pathlib.Path("/sys/fs/cgroup/memory")


def with_flags(words, changes):
    """The command with other values of some flags, or of settings ("--set NAME"); None: without the flag."""
    kept, i = [], 0
    while i < len(words):
        setting = f"--set {words[i + 1].split('=')[0]}" if words[i] == "--set" else None
        if words[i] in changes or setting in changes:
            i += 2
        else:
            kept.append(words[i])
            i += 1
    for flag, value in changes.items():
        if value is None:
            continue
        kept += ["--set", f"{flag.split()[1]}={value}"] if flag.startswith("--set ") else [flag, str(value)]
    return kept


class Run:
    """One run of the launcher, or of one process, and what is done to its tasks meanwhile."""

    def __init__(self, stage, seed):
        self.stage, self.chance = stage, random.Random(seed)
        self.folder = tempfile.mkdtemp(prefix="stage-")
        self.report = os.path.join(self.folder, "report.json")
        self.seconds, self.environment, self.burners = 9, {}, []
        self.without = {}  # what was staged with flags: those of a run without it, for with_flags()
        self.cgroup = self.swap = None

    def start(self, words):
        """Starts `paceline train` with these words, or, when they begin with a path, that program."""
        self.words = list(map(str, words))
        head = [] if self.words[0].startswith("/") else [self.stage.program, "train"]
        command = [*head, *self.words, "--report", self.report, "--seconds", str(self.seconds)]
        self.log = open(os.path.join(self.folder, "output"), "w+")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, preexec_fn=self.enter_cgroup,
                                        env={**os.environ, **self.environment})
        self.command = " ".join(command)

    def slow_files(self, call, path, microseconds, task=""):
        """From its start on each call "read" or "write" of files with this in their path takes so long, in one task or all."""
        self.environment = {"LD_PRELOAD": self.stage.library, "PACELINE_SLOW": call, "PACELINE_SLOW_PATH": path,
                            "PACELINE_SLOW_US": str(microseconds), "PACELINE_SLOW_TASK": task}

    def task(self, name, within=30):
        """The process of a task."""
        until = time.monotonic() + within
        while time.monotonic() < until and self.process.poll() is None:
            try:
                children = open(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read().split()
            except FileNotFoundError:
                break
            for child in children:
                try:
                    words = open(f"/proc/{child}/cmdline").read().split("\0")
                except FileNotFoundError:
                    continue
                if "--task" in words and words[words.index("--task") + 1] == name and "ip" not in words[0]:
                    return int(child)
            time.sleep(0.1)
        raise RuntimeError(f"{name} did not start: {self.output()}")

    def output(self):
        self.log.flush()
        return open(self.log.name).read()

    def wait_for_steps(self):
        until = time.monotonic() + 60
        while "steps/sec" not in self.output() and time.monotonic() < until and self.process.poll() is None:
            time.sleep(0.1)

    def burn(self, core):
        burner = subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", "while True: pass"])
        self.burners.append(burner)

    def stop(self, task, seconds):
        os.kill(task, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(task, signal.SIGCONT)

    def limit_link(self, host, mbit):
        """The link of an emulated host carries so much from now on."""
        prefix = f"paceline-lab-{self.process.pid}-0-"
        change = f"qdisc change dev {{}} root handle 1: tbf rate {mbit}mbit burst 65536 latency 20ms"
        for space, device in ((f"{prefix}{host}", "eth0"), (f"{prefix}switch", f"port{host}")):
            subprocess.run(["tc", "-n", space, *change.format(device).split()], check=True)

    def make_cgroup(self):
        """The run starts in a group of its own, whose memory can be put into a swap file."""
        self.cgroup = CGROUPS / f"stage-{os.getpid()}"
        self.cgroup.mkdir(exist_ok=True)
        self.swap = os.path.join(self.folder, "swap")
        subprocess.run(["fallocate", "-l", "1G", self.swap], check=True)
        os.chmod(self.swap, 0o600)
        for command in ("mkswap", "swapon"):
            subprocess.run([command, self.swap], check=True, stdout=subprocess.DEVNULL)

    def enter_cgroup(self):
        if self.cgroup:
            (self.cgroup / "cgroup.procs").write_text("0")

    def press_memory(self, every):
        """Until the run ends, what it has in memory is put into the swap file again and again, as if others needed the room."""
        def press():
            while self.process.poll() is None:
                try:
                    (self.cgroup / "memory.force_empty").write_text("0")
                except OSError:
                    pass  # some pages were in use
                time.sleep(every)
        threading.Thread(target=press, daemon=True).start()

    def clean(self):
        for burner in self.burners:
            burner.kill()
            burner.wait()
        if self.cgroup:
            subprocess.run(["swapoff", self.swap], check=False)
            os.unlink(self.swap)
            self.cgroup.rmdir()

    def end(self):
        try:
            self.process.wait(300)
        finally:
            self.process.kill()
            self.process.wait()
            self.clean()
        if self.process.returncode != 0:
            raise RuntimeError(f"{self.command}: {self.output()[-800:]}")

    def finding(self):
        told = os.path.join(self.folder, "finding.json")
        subprocess.run([self.stage.program, "explain", self.report, "--json", told], check=True, stdout=subprocess.DEVNULL)
        return json.load(open(told))

    def examples_per_s(self):
        return json.load(open(self.report))["total"]["examples_per_s"]

    def cured(self, finding):
        """The run with its cure: the flags that are advised, or without what was staged."""
        cure = Run(self.stage, 0)
        changes, advice = dict(self.without), finding["advice"].split()
        if advice[0].startswith("--"):
            changes = dict(zip(advice[::2], advice[1::2]))
        elif advice[:2] == ["One", "process,"]:
            changes = {flag: None for flag in self.words if flag in ONLY_CLUSTERS}
        cure.start(with_flags(self.words, changes))
        cure.end()
        return cure
