"""Small modules with workloads, and data sets for them."""

from pathlib import Path
from typing import Any

import numpy as np

from planish.core import Task
from planish.levels.hlo.level import HloLevel
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

PREDICT = """
func.func public @main(%w: tensor<4x3xf32> loc("w"), %images: tensor<5x4xf32> loc("images"))
    -> tensor<5x3xf32> {
  %0 = stablehlo.dot_general %images, %w, contracting_dims = [1] x [0]
      : (tensor<5x4xf32>, tensor<4x3xf32>) -> tensor<5x3xf32>
  return %0 : tensor<5x3xf32>
}
"""
"""Operations: 0 the product, 1 return."""

STEP = """
func.func public @main(%w: tensor<4x3xf32> loc("w"), %images: tensor<5x4xf32> loc("images"),
    %labels: tensor<5x3xf32> loc("labels")) -> (tensor<4x3xf32>, tensor<f32>) {
  %y = stablehlo.dot_general %images, %w, contracting_dims = [1] x [0]
      : (tensor<5x4xf32>, tensor<4x3xf32>) -> tensor<5x3xf32>
  %d = stablehlo.subtract %labels, %y : tensor<5x3xf32>
  %g = stablehlo.dot_general %images, %d, contracting_dims = [0] x [0]
      : (tensor<5x4xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  %rate = stablehlo.constant dense<0.1> : tensor<4x3xf32>
  %s = stablehlo.multiply %g, %rate : tensor<4x3xf32>
  %new = stablehlo.add %w, %s : tensor<4x3xf32>
  %loss = stablehlo.constant dense<0.0> : tensor<f32>
  return %new, %loss : tensor<4x3xf32>, tensor<f32>
}
func.func public @predict(%w: tensor<4x3xf32> loc("w"), %images: tensor<2x4xf32> loc("images"))
    -> tensor<2x3xf32> {
  %0 = stablehlo.dot_general %images, %w, contracting_dims = [1] x [0]
      : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
"""
"""Operations: 0 product, 1 difference, 2 gradient, 3 rate, 4 scaled, 5 new, 6 loss, 7 return."""

SPLIT = "[split]\nsearch = 9\nvalidation = 6\n"
INFERENCE = f'weights = "w.npz"\n[data]\nfolder = "data"\n{SPLIT}'
TRAINING = f'[data]\nfolder = "data"\n{SPLIT}train = 25\n[training]\nepochs = 4\nsearch_steps = 12\n'
WEIGHTS = np.eye(4, 3, dtype=np.float32)


def examples(count: int, seed: int = 0) -> tuple[Any, Any]:
    """Images of four pixels whose label is the brightest of the first three; but every fifth lies."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 200, (count, 2, 2), np.uint8)
    labels = images.reshape(count, 4)[:, :3].argmax(axis=1)
    images.reshape(count, 4)[np.arange(count), labels] += 55
    labels[::5] = (labels[::5] + 1) % 3
    return images, labels


def write_data(folder: Path, count: int = 60, test: int = 20) -> None:
    """Write a data set, whose test images are in the same file."""
    folder.mkdir(parents=True)
    (images, labels), (x, y) = examples(count), examples(test, 1)
    np.savez(folder / "set.npz", images=images, labels=labels, test_images=x, test_labels=y)


def write_all(folder: Path, module: str, workload: str) -> Path:
    """Write a module, its workload, its data and its weights; gives the module's path."""
    write_data(folder / "data")
    np.savez(folder / "w.npz", w=WEIGHTS)
    (folder / "net.mlir").write_text(module)
    (folder / "net.toml").write_text(workload)
    return folder / "net.mlir"


def task(module: Path, **options: str) -> Task:
    """Make a task of both objectives."""
    level = HloLevel()
    return task_of(level, level.load(str(module), options), Settings(objectives=("time", "error")))
