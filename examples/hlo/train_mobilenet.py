"""Train the MobileNetV2 of make_mobilenet.py on CIFAR-10, and write its weights (GEVO-ML, 6.1).

The images are those of the workload's `train` part, so that what an error is measured on later was never
trained on. Small images come first and full ones last, which halves the time on a CPU. A GPU is used where
PyTorch finds one. Ctrl-C loses one epoch at most: the same command goes on.

`python examples/hlo/train_mobilenet.py --data FOLDER_WITH_CIFAR10`
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import make_mobilenet as module
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, Optimizer

from planish.hlo.workload import Call, Part, Parts, fit, read_workload

HERE = Path(__file__).parent
BATCH, PEAK_RATE, RISE, DECAY, SMOOTHING = 128, 0.2, 0.15, 5e-4, 0.1
SIDES = ((0.25, 20), (0.55, 26), (1.0, 32))
"""Up to which share of the epochs images have which side."""


class Depthwise(nn.Conv2d):
    """A depthwise convolution, always of 32 bits.

    With bfloat16 the gradient of one with strides, or of tiny images, takes a processor ten times as long.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  (PyTorch's name)
        """Give the convolution in the type of the input, N x channels x side x side."""
        with torch.autocast(input.device.type, enabled=False):
            return super().forward(input.float()).to(input.dtype)


class Layer(nn.Sequential):
    """A convolution, a batch normalisation, and a cut to 0 to 6 unless it is the last of its block."""

    def __init__(
        self, inputs: int, outputs: int, side: int, stride: int = 1, groups: int = 1, *, cut: bool = True
    ) -> None:
        kind = nn.Conv2d if groups == 1 else Depthwise
        convolution = kind(inputs, outputs, side, stride, side // 2, groups=groups, bias=False)
        super().__init__(convolution, nn.BatchNorm2d(outputs), *([nn.ReLU6(inplace=True)] if cut else []))

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Give the kernel, and what the normalisation scales and shifts by."""
        convolution, norm = self[0], self[1]
        assert isinstance(convolution, nn.Conv2d)
        assert isinstance(norm, nn.BatchNorm2d)
        assert norm.running_var is not None
        assert norm.running_mean is not None
        scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        yield "kernel", convolution.weight.permute(2, 3, 1, 0)
        yield "scale", scale
        yield "shift", norm.bias - norm.running_mean * scale


class Block(nn.Module):
    """An inverted residual block."""

    def __init__(self, block: module.Block) -> None:
        super().__init__()
        self.adds = block.stride == 1 and block.channels == block.out
        layers: dict[str, nn.Module] = {}
        if block.expanded != block.channels:
            layers["expand"] = Layer(block.channels, block.expanded, 1)
        layers["depthwise"] = Layer(block.expanded, block.expanded, 3, block.stride, block.expanded)
        layers["project"] = Layer(block.expanded, block.out, 1, cut=False)
        self.layers = nn.ModuleDict(layers)

    def forward(self, x: Tensor) -> Tensor:
        """Give what the block makes of its input."""
        y = x
        for layer in self.layers.values():
            y = layer(y)
        return x + y if self.adds else y


class MobileNet(nn.Module):
    """The network of make_mobilenet.py, with batch normalisation."""

    def __init__(self) -> None:
        super().__init__()
        found = list(module.blocks())
        self.stem = Layer(3, found[0].channels, 3)
        self.blocks = nn.ModuleDict({block.name: Block(block) for block in found})
        self.last = Layer(found[-1].out, module.LAST, 1)
        self.classifier = nn.Linear(module.LAST, module.CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Give the logits of images, which are N x 3 x side x side."""
        x = self.stem(images)
        for block in self.blocks.values():
            x = block(x)
        return self.classifier(self.last(x).mean(dim=(2, 3)))

    def weights(self) -> dict[str, Tensor]:
        """Give the arguments of the module: name to values."""
        found = {
            f"{name.replace('blocks.', '').replace('layers.', '')}.{kind}": values
            for name, layer in self.named_modules()
            if isinstance(layer, Layer)
            for kind, values in layer.weights()
        }
        found |= {"classifier.weight": self.classifier.weight.T, "classifier.bias": self.classifier.bias}
        return {name: values.detach().float().cpu().contiguous() for name, values in found.items()}


@dataclass(frozen=True)
class Images:
    """Normalised images, N x 3 x 32 x 32, and their labels."""

    images: Tensor
    labels: Tensor


def read(parts: Parts, call: Call, part: Part, device: str) -> Images:
    """Read a part of the workload's examples."""
    found = parts.read(part, call)
    images = torch.from_numpy(found.images).permute(0, 3, 1, 2)
    return Images(images.to(device, torch.bfloat16), torch.from_numpy(found.labels).to(device))


def side_at(epoch: int, epochs: int) -> int:
    """Give the side that images have in an epoch."""
    return next(side for share, side in SIDES if epoch < share * epochs)


def resized(images: Tensor, side: int) -> Tensor:
    """Shrink images to a side."""
    if side == images.shape[-1]:
        return images
    return functional.interpolate(images.float(), side, mode="bilinear", antialias=True).to(images)


def changed(images: Tensor) -> Tensor:
    """Mirror and move each image at random."""
    side = images.shape[-1]
    images = torch.where(torch.rand(len(images), 1, 1, 1, device=images.device) < 0.5, images.flip(3), images)
    pad = side // 8
    padded = functional.pad(images, (pad,) * 4, mode="reflect")
    rows, columns = torch.randint(0, 2 * pad + 1, (2, len(images), 1), device=images.device)
    along = torch.arange(side, device=images.device)
    picked = torch.arange(len(images), device=images.device)[:, None, None]
    moved = padded.permute(0, 2, 3, 1)[picked, (rows + along)[:, :, None], (columns + along)[:, None, :]]
    return moved.permute(0, 3, 1, 2)


def train(network: MobileNet, data: Images, optimizer: Optimizer, epoch: int, epochs: int) -> None:
    """Train for one epoch; the rate rises, then falls to 0 at the end of the last."""
    network.train()
    side = side_at(epoch, epochs)
    order = torch.randperm(len(data.labels)).split(BATCH)[:-1]
    for number, places in enumerate(order):
        done = (epoch + number / len(order)) / epochs
        for group in optimizer.param_groups:
            group["lr"] = PEAK_RATE * min(done / RISE, (1 - done) / (1 - RISE))
        images = changed(resized(data.images[places], side)).contiguous(memory_format=torch.channels_last)
        with torch.autocast(images.device.type, torch.bfloat16):
            logits = network(images)
        loss = functional.cross_entropy(logits.float(), data.labels[places], label_smoothing=SMOOTHING)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def error(network: MobileNet, data: Images, side: int) -> float:
    """Give the share of wrong answers for images of a side."""
    network.eval()
    right = 0
    for images, labels in zip(data.images.split(500), data.labels.split(500), strict=True):
        right += int((network(resized(images.float(), side)).argmax(dim=1) == labels).sum())
    return 1 - right / len(data.labels)


def keep_memory() -> None:
    """Keep freed memory in the process, where the C library is glibc.

    It gives large blocks back to the system at once; to be given them anew takes a quarter of the training.
    """
    trim_threshold, mmap_max = -1, -4
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(trim_threshold, 2**31 - 1)
        library.mallopt(mmap_max, 0)


def main() -> None:
    """Train, and write the weights after each epoch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="", help="the folder with CIFAR-10; else PLANISH_DATA")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--checkpoint", type=Path, default=Path("build/mobilenet.pt"))
    parser.add_argument("--weights", type=Path, default=HERE / "mobilenet.safetensors")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_memory()
    device = "cuda" if torch.cuda.is_available() else "cpu"

    workload = read_workload(HERE / "mobilenet.toml", options.data, weights=False)
    fitted = fit(module.program(original=True), workload)
    parts = Parts(workload, fitted)
    examples, others = (read(parts, fitted.evolved, part, device) for part in ("train", "validation"))
    network = MobileNet().to(device, memory_format=torch.channels_last)
    matrices = [p for p in network.parameters() if p.ndim > 1]
    vectors = [p for p in network.parameters() if p.ndim == 1]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = SGD(groups, lr=PEAK_RATE, momentum=0.9, nesterov=True)
    first = 0
    if options.checkpoint.exists():
        saved = torch.load(options.checkpoint, weights_only=True, map_location=device)
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["epoch"]

    for epoch in range(first, options.epochs):
        torch.manual_seed(options.seed * 1000 + epoch)
        start = time.monotonic()
        train(network, examples, optimizer, epoch, options.epochs)
        side = side_at(epoch, options.epochs)
        wrong = error(network, others, side)
        took = time.monotonic() - start
        print(
            f"epoch {epoch + 1}: validation error {wrong:.2%} with a side of {side}, {took:.0f} s", flush=True
        )
        options.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}
        torch.save(state, options.checkpoint)
        save_file(network.weights(), options.weights)


if __name__ == "__main__":
    main()
