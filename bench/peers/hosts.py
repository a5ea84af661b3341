"""Emulated hosts for a peer's tasks: network namespaces, joined by a switch over links of a limited rate, as `paceline lab` makes them. Needs root."""
import os
import subprocess


class Hosts:
    """with Hosts(3, 1) as hosts: three hosts with links of 1 Gbit/s, each way."""

    def __init__(self, count, gbps):
        self.count, self.gbps = count, gbps
        self.prefix = f"peer{os.getpid()}-"

    def address(self, host):
        return f"10.78.{host // 250}.{host % 250 + 1}"

    def on(self, host, words):
        """The words that run `words` there."""
        return ["ip", "netns", "exec", f"{self.prefix}{host}", *words]

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def make(self):
        switch = self.prefix + "switch"
        burst = max(131072, int(self.gbps * 125000))  # the bytes of a millisecond, but at least one large segment
        limit = f"root handle 1: tbf rate {self.gbps * 1e6:.0f}kbit burst {burst} latency 20ms"
        run(f"ip netns add {switch}")
        run(f"ip -n {switch} link add bridge0 type bridge")
        run(f"ip -n {switch} link set bridge0 up")
        for host in range(self.count):
            name = f"{self.prefix}{host}"
            run(f"ip netns add {name}")
            run(f"ip -n {name} link add eth0 type veth peer name port{host} netns {switch}")
            run(f"ip -n {name} addr add {self.address(host)}/16 dev eth0")
            run(f"ip -n {name} link set lo up")
            run(f"ip -n {name} link set eth0 up")
            run(f"ip -n {switch} link set port{host} master bridge0 up")
            run(f"tc -n {name} qdisc add dev eth0 {limit}")
            run(f"tc -n {switch} qdisc add dev port{host} {limit}")

    def remove(self):
        for host in [*range(self.count), "switch"]:
            subprocess.run(["ip", "netns", "del", f"{self.prefix}{host}"], stderr=subprocess.DEVNULL, check=False)


def run(command):
    subprocess.run(command.split(), check=True)
