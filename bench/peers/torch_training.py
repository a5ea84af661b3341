"""Trains an image model of torch_peer.py on a folder of images, with the views, rates and evaluation of `paceline train`.

The folder has train and test, each with a folder of images for each class. A checkpoint is saved as training goes on, and
training begins from it when it is there: a run that was killed goes on.
"""
import math
import os
import pathlib
import time

import torch
from PIL import Image
from torch.nn import functional as F

EVALUATED_AT_ONCE = 500
SAVED_EVERY = 60  # seconds
NO_IMAGES = "{}: no folder of images for each class"


def read_folder(folder):
    """All images (N,3,H,W), as bytes, and their labels: places among the sorted names of classes."""
    classes = sorted(path for path in pathlib.Path(folder).iterdir() if path.is_dir())
    files = [(path, label) for label, of_class in enumerate(classes) for path in sorted(of_class.iterdir())]
    if not files:
        raise SystemExit(NO_IMAGES.format(folder))
    images = [torch.frombuffer(bytearray(Image.open(path).convert("RGB").tobytes()), dtype=torch.uint8) for path, _ in files]
    width, height = Image.open(files[0][0]).size
    return torch.stack(images).view(-1, height, width, 3).permute(0, 3, 1, 2).contiguous(), torch.tensor([label for _, label in files])


def cut(padded, size, tops, lefts):
    """From each image the part of `size` × `size` at its own place."""
    rows = (tops[:, None] + torch.arange(size))[:, None, :, None]
    columns = (lefts[:, None] + torch.arange(size))[:, None, None, :]
    return padded[torch.arange(len(padded))[:, None, None, None], torch.arange(padded.shape[1])[None, :, None, None], rows, columns]


def moved(images, margin, how, draws):
    """Random parts of images with a margin around them."""
    size = images.shape[-1]
    padded = F.pad(images.float(), (margin,) * 4, mode=how)
    tops, lefts = torch.randint(2 * margin + 1, (2, len(images)), generator=draws)
    return cut(padded, size, tops, lefts)


def mirrored(images, which):
    return torch.where(which[:, None, None, None], images.flip(3), images)


class Recipe:
    """What both recipes share; `model` is one of torch_peer.py."""

    def __init__(self, model, steps, seed):
        self.model, self.steps, self.seed = model, steps, seed

    def draws(self, *of):
        """Random numbers that are a function of the seed and of these numbers: a run goes on with the next ones."""
        return torch.Generator().manual_seed(hash((self.seed, *of)) % 2**63)

    def scale_rates(self, step):
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", group["lr"])
                group["lr"] = group["initial_lr"] * self.factor(step, group.get("steps", self.steps))

    def scores(self, images):
        return self.model.logits(self.undistorted(images))


class Fast(Recipe):
    """airbench94 with Muon (https://github.com/KellerJordan/cifar10-airbench)."""

    MEANS, DEVIATIONS = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
    BIAS_RATE, HEAD_RATE, DECAY = 0.053, 0.67, 2e-6

    def prepare(self, images, muon):
        """Values to begin with, and the optimizers."""
        model, batch = self.model, self.model.drawn[1].numel()
        some = self.undistorted(images[torch.randperm(len(images), generator=self.draws(0))[:5000]])
        patches = some.unfold(2, 2, 1).unfold(3, 2, 1).permute(0, 2, 3, 1, 4, 5).reshape(-1, 12).double()
        values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
        filters = (vectors / (values.clamp(min=0) + 5e-4).sqrt()).T.reshape(12, 3, 2, 2).float()
        with torch.no_grad():
            model.whiten.weight.copy_(torch.cat([filters, -filters]))
            model.whiten.bias.zero_()
            model.head.weight.div_(model.head.weight.std())
            convolutions = [layer for layer in model.groups if isinstance(layer, torch.nn.Conv2d)]
            for layer in convolutions:
                torch.nn.init.dirac_(layer.weight[: layer.in_channels])
        norms = [layer.bias for layer in model.groups if isinstance(layer, torch.nn.BatchNorm2d)]
        decay = batch * self.DECAY
        groups = [dict(params=[model.whiten.bias], lr=self.BIAS_RATE, weight_decay=decay / self.BIAS_RATE, steps=-(-self.steps * 3 // 8)),
                  dict(params=norms, lr=self.BIAS_RATE, weight_decay=decay / self.BIAS_RATE),
                  dict(params=[model.head.weight], lr=self.HEAD_RATE, weight_decay=decay / self.HEAD_RATE)]
        self.optimizers = [muon([layer.weight for layer in convolutions]), torch.optim.SGD(groups, momentum=0.85, nesterov=True)]

    @staticmethod
    def factor(step, steps):
        return max(0.0, 1 - step / steps)

    def normalised(self, images):
        means, deviations = (torch.tensor(of).view(1, 3, 1, 1) for of in (self.MEANS, self.DEVIATIONS))
        return (images.float() / 255 - means) / deviations

    undistorted = normalised

    def distorted(self, images, records, epoch, draws):
        half = torch.randint(2, (50_000,), generator=self.draws(1)).bool()  # these are mirrored in even epochs, the others in odd ones
        return self.normalised(mirrored(moved(images, 2, "reflect", draws), half[records % 50_000] != bool(epoch % 2)))

    def scores(self, images):
        """The mean over six views: as they are, shifted by a pixel down and right, and up and left; and mirrored."""
        size = images.shape[-1]
        padded = F.pad(self.normalised(images), (1,) * 4, mode="reflect")
        total = 0
        for place, weight in ((1, 0.25), (0, 0.125), (2, 0.125)):
            view = padded[:, :, place:place + size, place:place + size].contiguous(memory_format=torch.channels_last)
            total = total + weight * (self.model.logits(view) + self.model.logits(view.flip(3)))
        return total


class Resnet(Recipe):
    def prepare(self, images, muon):
        model, decayed, others = self.model, [], []
        for module in model.modules():
            if isinstance(module, torch.nn.Conv2d):
                torch.nn.init.normal_(module.weight, 0, math.sqrt(2 / (9 * module.out_channels)))
                decayed.append(module.weight)
            elif isinstance(module, torch.nn.BatchNorm2d):
                others += [module.weight, module.bias]
        torch.nn.init.xavier_uniform_(model.dense.weight)
        torch.nn.init.zeros_(model.dense.bias)
        groups = [dict(params=[*decayed, model.dense.weight], weight_decay=0.0002), dict(params=[*others, model.dense.bias])]
        self.optimizers = [torch.optim.SGD(groups, lr=0.1, momentum=0.9, fused=True)]

    @staticmethod
    def factor(step, steps):
        """`--rates cosine`: it rises for a twentieth of the steps, and falls to 0."""
        rising = max(1, steps // 20)
        return (step + 1) / rising if step < rising else 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1, steps - rising)))

    @staticmethod
    def undistorted(images):
        values = images.float().flatten(1)
        deviations = values.std(1, correction=0, keepdim=True).clamp(min=values.shape[1] ** -0.5)
        return ((values - values.mean(1, keepdim=True)) / deviations).view(images.shape)

    def distorted(self, images, records, epoch, draws):
        images = moved(images, 2, "constant", draws)
        return self.undistorted(mirrored(images, torch.randint(2, (len(images),), generator=draws).bool()))


def precision(recipe, images, labels, bfloat16):
    recipe.model.eval()
    right = 0
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        for some, their in zip(images.split(EVALUATED_AT_ONCE), labels.split(EVALUATED_AT_ONCE)):
            right += (recipe.scores(some).argmax(1) == their).sum().item()
    recipe.model.train()
    return right / len(labels)


class Checkpoint:
    """A file that is whole or not there."""

    def __init__(self, path, recipe):
        self.path, self.recipe, self.saved = path, recipe, time.monotonic()

    def load(self):
        """The step to go on with, and the seconds of training before it."""
        if not self.path or not os.path.exists(self.path):
            return 0, 0.0
        kept = torch.load(self.path)
        self.recipe.model.load_state_dict(kept["model"])
        for optimizer, state in zip(self.recipe.optimizers, kept["optimizers"]):
            optimizer.load_state_dict(state)
        return kept["step"], kept["seconds"]

    def save(self, step, seconds, now=False):
        if not self.path or not (now or time.monotonic() - self.saved > SAVED_EVERY):
            return
        torch.save(dict(model=self.recipe.model.state_dict(), optimizers=[each.state_dict() for each in self.recipe.optimizers],
                        step=step, seconds=seconds), self.path + ".part")
        os.replace(self.path + ".part", self.path)
        self.saved = time.monotonic()


def train(model, args, muon):
    """Trains for so many steps, and gives what the result line says of it."""
    recipe = (Resnet if args.model == "resnet" else Fast)(model, args.steps, args.seed)
    images, labels = read_folder(pathlib.Path(args.data) / "train")
    recipe.prepare(images, muon)
    checkpoint, batch = Checkpoint(args.checkpoint, recipe), model.drawn[1].numel()
    first, before = checkpoint.load()
    epoch_steps = len(images) // batch
    if epoch_steps == 0:
        raise SystemExit(f"{args.data}: {len(images)} images to train on, and a batch has {batch}")
    begun, loss, order, order_epoch = time.monotonic(), None, None, -1
    for step in range(first, args.steps):
        epoch, place = divmod(step, epoch_steps)
        if epoch != order_epoch:
            order, order_epoch = torch.randperm(len(images), generator=recipe.draws(2, epoch)), epoch
        records = order[place * batch:(place + 1) * batch]
        x = recipe.distorted(images[records], records, epoch, recipe.draws(3, step)).contiguous(memory_format=torch.channels_last)
        recipe.scale_rates(step)
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bfloat16):
            loss = model(x, labels[records])
        for optimizer in recipe.optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for optimizer in recipe.optimizers:
            optimizer.step()
        if not math.isfinite(loss.item()):
            raise SystemExit(f"step {step + 1}: loss {loss.item()}")
        if (step + 1) % 100 == 0 or step + 1 == args.steps:
            print(f"step {step + 1} loss {loss.item():.4f}", flush=True)
        checkpoint.save(step + 1, before + time.monotonic() - begun, now=step + 1 == args.steps)
    seconds = before + time.monotonic() - begun
    images, labels = read_folder(pathlib.Path(args.data) / "test")
    return dict(steps=args.steps, seconds=seconds, precision=precision(recipe, images, labels, args.bfloat16))
