"""Train the MobileNetV2 of make_mobilenet.py on CIFAR-10, and write its weights (GEVO-ML, 6.1).

The images are those of the workload's `train` part, so that what an error is measured on later was never
trained on. Small images come first and full ones last, which halves the time on a CPU. Each core has a
process, with its share of every batch. A GPU is used where PyTorch finds one. Ctrl-C loses one epoch at most:
the same command goes on. 100 epochs take about two and a half hours on two cores.

`python examples/hlo/train_mobilenet.py --data FOLDER_WITH_CIFAR10`
"""

from __future__ import annotations

import argparse
import ctypes
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import make_mobilenet as module
import torch
from mobilenet_torch import MobileNet
from safetensors.torch import save_file
from torch import Tensor, distributed, multiprocessing, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD, Optimizer

from planish.core import usable_cores
from planish.levels.hlo.workload.arguments import RoleCall, fit
from planish.levels.hlo.workload.examples import Part, Parts
from planish.levels.hlo.workload.files import read_workload

HERE = Path(__file__).parent
BATCH, PEAK_RATE, RISE, DECAY, SMOOTHING = 128, 0.2, 0.15, 5e-4, 0.1
SIDES = ((0.25, 20), (0.55, 26), (1.0, 32))
"""Up to which share of the epochs images have which side."""


@dataclass(frozen=True)
class Images:
    """Normalized images, N x 3 x 32 x 32, and their labels."""

    images: Tensor
    labels: Tensor


def read(parts: Parts, call: RoleCall, part: Part, device: str) -> Images:
    """Read a part of the workload's examples."""
    found = parts.read(part, call)
    images = torch.from_numpy(found.images).permute(0, 3, 1, 2)
    return Images(images.to(device, torch.bfloat16), torch.from_numpy(found.labels).to(device))


@dataclass(frozen=True)
class Share:
    """Which part of each batch a process has: the one of its rank."""

    rank: int
    processes: int
    meeting: Path


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


def train(
    network: nn.Module, data: Images, optimizer: Optimizer, epoch: int, epochs: int, share: Share
) -> None:
    """Train for one epoch; the rate rises, then falls to 0 at the end of the last."""
    network.train()
    side = side_at(epoch, epochs)
    order = torch.randperm(len(data.labels)).split(BATCH)[:-1]
    for number, batch in enumerate(order):
        done = (epoch + number / len(order)) / epochs
        for group in optimizer.param_groups:
            group["lr"] = PEAK_RATE * min(done / RISE, (1 - done) / (1 - RISE))
        places = batch.chunk(share.processes)[share.rank]
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


def work(rank: int, options: argparse.Namespace, meeting: Path) -> None:
    """Train in one of the processes; the first writes checkpoint and weights after each epoch."""
    share = Share(rank, options.processes, meeting)
    torch.set_num_threads(max(1, usable_cores() // share.processes))
    torch.manual_seed(options.seed)
    keep_memory()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    workload = read_workload(HERE / "mobilenet.toml", options.data, weights=False)
    fitted = fit(module.program(original=True), workload)
    parts = Parts(workload, fitted)
    examples, others = (read(parts, fitted.evolved, part, device) for part in ("train", "validation"))
    network = MobileNet().to(device, memory_format=torch.channels_last)
    optimizer = optimizer_of(network)
    first = 0
    if options.checkpoint.exists():
        saved = torch.load(options.checkpoint, weights_only=True, map_location=device)
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["epoch"]
    parallel = shared(network, share)

    for epoch in range(first, options.epochs):
        torch.manual_seed(options.seed * 1000 + epoch)
        start = time.monotonic()
        train(parallel, examples, optimizer, epoch, options.epochs, share)
        if rank == 0:
            side = side_at(epoch, options.epochs)
            wrong = error(network, others, side)
            took = time.monotonic() - start
            told = f"epoch {epoch + 1}: validation error {wrong:.2%} with a side of {side}, {took:.0f} s"
            print(told, flush=True)
            state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}
            torch.save(state, options.checkpoint)
            save_file(network.weights(), options.weights)
    if share.processes > 1:
        distributed.destroy_process_group()


def optimizer_of(network: nn.Module) -> Optimizer:
    """Make the optimizer; only matrices and kernels decay."""
    matrices = [p for p in network.parameters() if p.ndim > 1]
    vectors = [p for p in network.parameters() if p.ndim == 1]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]
    return SGD(groups, lr=PEAK_RATE, momentum=0.9, nesterov=True)


def shared(network: nn.Module, share: Share) -> nn.Module:
    """Meet the other processes, and let gradients be the mean of all."""
    if share.processes == 1:
        return network
    distributed.init_process_group(
        "gloo", init_method=share.meeting.as_uri(), rank=share.rank, world_size=share.processes
    )
    return DistributedDataParallel(network, forward_sync_buffers=False)


def main() -> None:
    """Train in as many processes as there are cores, or in one with a GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="", help="the folder with CIFAR-10; else PLANISH_DATA")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1 if torch.cuda.is_available() else usable_cores())
    parser.add_argument("--checkpoint", type=Path, default=Path("build/mobilenet.pt"))
    parser.add_argument("--weights", type=Path, default=HERE / "mobilenet.safetensors")
    options = parser.parse_args()
    options.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(work, (options, Path(folder) / "meeting"), options.processes)


if __name__ == "__main__":
    main()
