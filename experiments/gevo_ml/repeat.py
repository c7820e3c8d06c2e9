"""Repeat what was found of MobileNet, by jaxlib alone: interleaved times, right answers of CIFAR-10's test.

    planish export RUN out/ --pick 2
    python experiments/gevo_ml/repeat.py out/main.mlir [MORE.mlir ...] --data FOLDER_WITH_CIFAR10

Knows nothing of planish. Each module is compiled by XLA for one core and answers for all 10,000 test images;
then all take turns with the unchanged one, for one batch each. A ratio is the median of the rounds' ratios of
processor time, with the quartiles; the loss of a module comes with its standard error, by the images that
only one of both gets right.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import struct
import tarfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ["NPROC"] = os.environ["PJRT_NPROC"] = "1"  # XLA reads them when a client is made

import jax
import numpy as np
from jaxlib import _jax, xla_client  # type: ignore[attr-defined]
from numpy.typing import NDArray
from PIL import Image

HERE = Path(__file__).parents[2] / "examples" / "hlo"
MEAN = np.array([0.4914, 0.4822, 0.4465], np.float32)
DEVIATION = np.array([0.2470, 0.2435, 0.2616], np.float32)
BATCH = 100


def weights(path: Path) -> list[NDArray[np.float32]]:
    """Read a safetensors file of float32: the arrays by the order of their names, as a module takes them."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header: Mapping[str, Any] = json.loads(content[8 : 8 + length])
    found: dict[str, NDArray[np.float32]] = {}
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            found[name] = np.frombuffer(content[start:end], np.float32).reshape(entry["shape"])
    return [found[name] for name in sorted(found)]


def test_images(folder: Path) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Read `test.tar` (CLASS/NUMBER.jpg), normalized, and the labels: classes by the order of their names."""
    with tarfile.open(folder / "test.tar") as content:
        members = sorted((m for m in content.getmembers() if m.isfile()), key=lambda m: m.name)
        files = [content.extractfile(member) for member in members]
        images = [np.asarray(Image.open(io.BytesIO(file.read())).convert("RGB")) for file in files if file]
    classes = [Path(member.name).parent.name for member in members]
    numbers = {name: number for number, name in enumerate(sorted(set(classes)))}
    pixels = (np.stack(images) / np.float32(255) - MEAN) / DEVIATION
    return pixels.astype(np.float32), np.array([numbers[name] for name in classes])


class Module:
    """A module that XLA compiled, with its weights in place."""

    def __init__(self, client: Any, path: Path, arrays: Sequence[NDArray[np.float32]]) -> None:
        devices = _jax.DeviceList(tuple(client.local_devices()[:1]))  # type: ignore[attr-defined]
        options = xla_client.CompileOptions()
        self._run = client.compile_and_load(path.read_bytes(), devices, options).execute_sharded
        self._weights = [jax.device_put(array) for array in arrays]

    def answers(self, images: Any) -> NDArray[np.float32]:
        """Give the rows of numbers for a batch."""
        ((result,),) = self._run([*self._weights, images]).disassemble_into_single_device_arrays()
        return np.asarray(result)


def main() -> None:
    """Run all, and print the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("modules", nargs="+", type=Path)
    given.add_argument("--data", required=True, type=Path)
    given.add_argument("--rounds", type=int, default=15)
    asked = given.parse_args()
    client = jax.local_devices()[0].client
    arrays = weights(HERE / "mobilenet.safetensors")
    paths = [HERE / "mobilenet.mlir", *asked.modules]
    modules = [Module(client, path, arrays) for path in paths]
    images, labels = test_images(asked.data)
    batches = [jax.device_put(batch) for batch in np.split(images, len(images) // BATCH)]
    right = [
        np.concatenate([module.answers(batch).argmax(axis=1) for batch in batches]) == labels
        for module in modules
    ]
    times = rounds(modules, batches[0], asked.rounds)
    print("| module | ms | times faster (quartiles) | right | points lost |\n|---|--:|--:|--:|--:|")
    for place, path in enumerate(paths):
        ratios = [one[0] / one[place] for one in times]
        low, middle, high = statistics.quantiles(ratios, n=4)
        lost = right[0].astype(float) - right[place]
        spread = lost.std() / len(lost) ** 0.5
        ms = statistics.median(one[place] for one in times) * 1e3
        print(
            f"| {path.parent.name}/{path.name} | {ms:.1f} | {middle:.2f} ({low:.2f} to {high:.2f}) |"
            f" {right[place].mean():.2%} | {lost.mean() * 100:.2f} ± {spread * 100:.2f} |"
        )


def rounds(modules: Sequence[Module], batch: Any, count: int) -> list[list[float]]:
    """Time all modules alternately: processor seconds, a list for each round."""
    found: list[list[float]] = []
    for _ in range(count):
        one: list[float] = []
        for module in modules:
            began = time.process_time()
            module.answers(batch)
            one.append(time.process_time() - began)
        found.append(one)
    return found


if __name__ == "__main__":
    main()
