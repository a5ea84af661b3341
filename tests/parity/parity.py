#!/usr/bin/env python3
"""Compares a training step of each model with PyTorch's on the same numbers: the loss and every contribution, within 1e-4.
And loads what `paceline export` makes of each model into the peer's module, whose logits have to be ours, within 1e-4.

usage: parity.py FOLDER, with what parity_step has written there. PyTorch computes in float64.
"""
import json
import pathlib
import runpy
import struct
import sys

import torch
from torch.nn import functional as F

TOLERANCE = 1e-4
TYPES = {"F32": torch.float32, "I32": torch.int32}


def read_tensors(path):
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, of in header.items():
        begin, end = (8 + size + offset for offset in of["data_offsets"])
        tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=TYPES[of["dtype"]]).reshape(of["shape"])
    return tensors


def padded_as_same(x, size, stride, value=0.0):
    """Pads so that a window of `size` gives as many outputs as there are strides; the odd element goes behind."""
    total = max((-(-x.shape[2] // stride) - 1) * stride + size - x.shape[2], 0)
    before, after = total // 2, total - total // 2
    return F.pad(x, (before, after, before, after), value=value)


def conv(x, weights, bias=None, stride=1):
    return F.conv2d(padded_as_same(x, weights.shape[2], stride), weights, bias, stride)


def max_pool(x):
    return F.max_pool2d(padded_as_same(x, 3, 2, -torch.inf), 3, 2)


def response_norm(x):
    squares = F.pad(x.square(), (0, 0, 0, 0, 4, 4)).unfold(1, 9, 1).sum(-1)
    return x * (1 + 0.001 / 9 * squares) ** -0.75


def decay(weights, rate):
    return rate / 2 * sum(w.square().sum() for w in weights)


class Step:
    """A model gives (loss that is differentiated, loss that is reported, other results by name)."""

    def mlp(self, v):
        h = v["x"]
        for layer in (1, 2, 3):
            h = F.relu(h @ v[f"layer{layer}/w"] + v[f"layer{layer}/b"])
        loss = F.mse_loss(h, v["y"])
        return loss, loss, {}

    def ptb(self, v):
        x = v["embedding"][v["inputs"].long()]
        for layer in ("lstm1", "lstm2"):
            x = self.lstm(x, v, layer)
        logits = x.flatten(0, 1) @ v["softmax/w"] + v["softmax/b"]
        loss = F.cross_entropy(logits, v["targets"].long().flatten(), reduction="sum") / x.shape[1]
        return loss, loss, {}

    @staticmethod
    def lstm(x, v, layer):
        h, c, outputs = v[layer + "/h"], v[layer + "/c"], []
        for one in x:
            i, j, f, o = (torch.cat([one, h], 1) @ v[layer + "/w"] + v[layer + "/b"]).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * j.tanh()
            h = o.sigmoid() * c.tanh()
            outputs.append(h)
        return torch.stack(outputs)

    def cifar10(self, v):
        x = response_norm(max_pool(F.relu(conv(v["images"], v["conv1/w"], v["conv1/b"]))))
        x = max_pool(response_norm(F.relu(conv(x, v["conv2/w"], v["conv2/b"])))).flatten(1)
        for layer in ("dense1", "dense2"):
            x = F.relu(x @ v[layer + "/w"] + v[layer + "/b"])
        loss = F.cross_entropy(x @ v["dense3/w"] + v["dense3/b"], v["labels"].long())
        return loss, loss + decay([v["dense1/w"], v["dense2/w"]], 0.004), {}

    def resnet(self, v):
        statistics = {}

        def norm(x, name, slope):
            variance, mean = torch.var_mean(x, (0, 2, 3), correction=0)
            statistics[name + "/moving_mean"], statistics[name + "/moving_variance"] = mean, variance
            of = {"weight": v[name + "/gains"], "bias": v[name + "/offsets"]}
            return F.leaky_relu(F.batch_norm(x, None, None, training=True, eps=1e-3, **of), slope)

        x = conv(v["images"], v["conv0/w"])
        for stage in (1, 2, 3):
            name = f"stage{stage}/unit1"
            a = norm(x, name + "/norm1", 0.1)
            shortcut = a if stage == 1 else F.avg_pool2d(x, 2)
            y = norm(conv(a, v[name + "/conv1/w"], stride=1 if stage == 1 else 2), name + "/norm2", 0.1)
            y = conv(y, v[name + "/conv2/w"])
            more = y.shape[1] - shortcut.shape[1]
            x = y + F.pad(shortcut, (0, 0, 0, 0, more // 2, more - more // 2))
        x = norm(x, "norm", 0.0).mean((2, 3))
        loss = F.cross_entropy(x @ v["dense/w"] + v["dense/b"], v["labels"].long())
        weights = [w for name, w in v.items() if name.endswith("/w")]
        return loss, loss + decay(weights, 0.0002), statistics


def compare(model, tensors):
    """Returns the largest distance and where it is."""
    values = {}
    for name, tensor in tensors.items():
        if name.startswith("feed/"):
            floats = tensor.is_floating_point()
            values[name[5:]] = tensor.double().requires_grad_() if floats else tensor
    loss, reported, others = getattr(Step(), model)(values)
    loss.backward()
    distances = {}
    for name, ours in tensors.items():
        if not name.startswith("result/"):
            continue
        name = name[7:]
        if name == "loss":
            theirs = reported
        elif name in others:
            theirs = others[name]
        else:
            theirs = values[name].grad
        theirs, ours = theirs.detach(), ours.double()
        if f"ids/{name}" in tensors:
            ours = torch.zeros_like(theirs).index_add(0, tensors[f"ids/{name}"].long(), ours)
        distances[name] = float((ours - theirs).norm() / theirs.norm())
    worst = max(distances, key=distances.get)
    print(f"{model}: loss {reported.item():.6f}, {len(distances)} tensors, at most {distances[worst]:.1e} apart ({worst})")
    return distances[worst]


# The peers' programs with the sizes of parity_step.
PEERS = {"mlp": ("Mlp", ["mlp", "--hidden", "300"]), "ptb": ("Ptb", ["ptb", "--hidden", "60"]), "cifar10": ("Cifar10", ["cifar10"]),
         "resnet": ("Resnet", ["resnet", "--depth", "14"]), "fast": ("Fast", ["cifar10", "--recipe", "fast"])}


def mean_of_views(peer, images):
    """The mean over an image as it is, shifted by a pixel up and left or down and right, and all of them mirrored."""
    padded = F.pad(images, (1,) * 4, mode="reflect")
    views = [images, padded[:, :, :-2, :-2], padded[:, :, 2:, 2:]]
    logits = [peer.logits(view) + peer.logits(view.flip(3)) for view in views]
    return (0.5 * logits[0] + 0.25 * logits[1] + 0.25 * logits[2]) / 2


def compare_export(model, tensors):
    """The exported variables fit the peer's module, all of them, and its logits are ours."""
    name, arguments = PEERS[model]
    peers = pathlib.Path(__file__).resolve().parents[2] / "bench/peers"
    sys.path.insert(0, str(peers))
    sys.argv = ["torch_peer.py", *arguments, "--batch", "8"]
    peer = runpy.run_path(str(peers / "torch_peer.py"))[name]()
    peer.load_state_dict({key[6:]: tensor for key, tensor in tensors.items() if key.startswith("torch/")})
    peer.eval()
    with torch.no_grad():
        given = tensors["input"]
        if model == "fast":
            logits = mean_of_views(peer, given)
        else:
            logits = peer.logits(given.long() if model == "ptb" else given)
    apart = float((logits - tensors["logits"]).norm() / logits.norm())
    print(f"{model}: exported, {len(tensors) - 2} tensors, logits {apart:.1e} apart")
    return apart


def main():
    folder = pathlib.Path(sys.argv[1])
    distances = [compare(model, read_tensors(folder / f"{model}.safetensors")) for model in ("mlp", "ptb", "cifar10", "resnet")]
    distances += [compare_export(model, read_tensors(folder / f"{model}-torch.safetensors")) for model in PEERS]
    if not max(distances) <= TOLERANCE:
        sys.exit(f"parity: more than {TOLERANCE:.0e} apart")


if __name__ == "__main__":
    main()
