"""Libraries as baselines on a CUDA GPU: cuBLAS and cuDNN by PyTorch, and products by Triton's autotuner.

A library is verified and timed as kernels are: by events of the device, with the last cache flushed before
each call. Products of float32 are computed in float32, and in TF32 where the program's type is that.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import TargetError
from planish.levels.loops.lang.program import TF32, Access, Program, factors_of

LIBRARIES = ("torch", "triton")
"""Names of `planish.levels.loops.backends.Library` on a GPU."""
_CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Product:
    """A product as `torch.einsum` computes it.

    Args:
        equation: of the operands' dimensions.
        operands: names of the tensors.
    """

    equation: str
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Convolution:
    """A convolution of one image with square strides, as `torch.nn.functional.conv2d` computes it.

    Args:
        image: name of the tensor, (channels, rows, columns).
        weights: name of the tensor, (outputs, channels, rows, columns), or without channels if `depthwise`.
        stride: rows and columns between windows.
        padding: rows and columns of zeros on either side.
        depthwise: whether each channel has its own output.
    """

    image: str
    weights: str
    stride: int
    padding: int
    depthwise: bool


def library_call(program: Program) -> Product | Convolution | None:
    """Find what libraries have for a program: a single product or convolution; None for all others."""
    if len(program.statements) != 1:
        return None
    (statement,) = program.statements
    factors = factors_of(statement.value)
    operands = [factor for factor in factors if isinstance(factor, Access)]
    if statement.reduce != "add" or len(operands) != len(factors) or len(factors) > 2:
        return None
    return _product(statement.target, operands) or _convolution(program, statement.target, operands)


def _product(target: Access, operands: list[Access]) -> Product | None:
    letters: dict[str, str] = {}
    words: list[str] = []
    for access in (*operands, target):
        axes = [index.terms[0] for index in access.index if len(index.terms) == 1 and not index.offset]
        if len(axes) < len(access.index) or any(c != 1 for _, c in axes) or access.pad is not None:
            return None
        words.append("".join(letters.setdefault(axis, _LETTERS[len(letters)]) for axis, _ in axes))
    return Product(f"{','.join(words[:-1])}->{words[-1]}", tuple(access.tensor for access in operands))


def _convolution(program: Program, target: Access, operands: list[Access]) -> Convolution | None:
    if len(operands) != 2 or len(target.index) != 3:
        return None
    image, weights = sorted(operands, key=lambda access: max(len(index.terms) for index in access.index))[
        ::-1
    ]
    k, y, x = (str(index) for index in target.index)
    names = [str(index) for index in weights.index]
    depthwise = len(names) == 3
    channel = k if depthwise else names[1] if len(names) == 4 else ""
    windows = [dict(index.terms) for index in image.index[1:]]
    if len(windows) != 2 or names[0] != k or str(image.index[0]) != channel or image.pad not in (None, 0):
        return None
    stride, padding = windows[0].get(y, 0), -image.index[1].offset
    r, s = names[-2:]
    same = windows == [{y: stride, r: 1}, {x: stride, s: 1}] and image.index[2].offset == -padding
    sizes = program.size
    shape = program.type[image.tensor].shape[1:]
    # The library's results are as many as fit.
    fits = all(
        (extent + 2 * padding - sizes[window]) // max(stride, 1) + 1 == sizes[axis]
        for extent, window, axis in zip(shape, (r, s), (y, x), strict=True)
    )
    if not (same and fits and stride > 0 and padding >= 0):
        return None
    return Convolution(image.tensor, weights.tensor, stride, padding, depthwise)


def has_library(name: str) -> bool:
    """Return whether a library is installed."""
    return all(find_spec(module) for module in ("torch", *["triton"] * (name == "triton")))


class LibraryRun:
    """A library's call with its arrays; see `planish.levels.loops.backends.BoundKernel`.

    Args:
        name: one of `LIBRARIES`.
        program: what is computed.
        inputs: tensor to array.
        outputs: likewise.

    Attributes:
        device_ns: nanoseconds that the device was busy so far.

    Raises:
        TargetError: the library is not installed, has no call for the program, or cannot use a GPU.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        inputs: Mapping[str, NDArray[Any]],
        outputs: Mapping[str, NDArray[Any]],
    ) -> None:
        found = library_call(program)
        if found is None or not has_library(name):
            raise TargetError(f"library '{name}' has no call for this program, or is not installed")
        for variable in _CACHES:
            # Not the user's: a worker may write to its own scratch alone.
            os.environ[variable] = tempfile.mkdtemp(prefix="planish-library-")
        torch: Any = import_module("torch")
        if not torch.cuda.is_available():
            raise TargetError("PyTorch finds no CUDA GPU", "Install PyTorch's build for CUDA.")
        self._torch = torch
        self._inputs, (self._output,) = inputs, outputs.values()
        self.device_ns = 0
        tf32 = any(kind.dtype == TF32 for _, kind in program.types)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = True
        self._call = _call(torch, found)
        if name == "triton":
            options = {"max_autotune": True, "max_autotune_gemm_backends": "TRITON"}
            self._call = torch.compile(self._call, options=options)
        size = torch.cuda.get_device_properties(0).L2_cache_size
        self._scratch = torch.zeros(size, dtype=torch.uint8, device="cuda")
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def prepare(self) -> None:
        """Make no memory: the library has its own."""

    def poison(self, byte: int = 0xFF) -> None:
        """Leave the library's memory, which is out of reach."""
        del byte

    def close(self) -> None:
        """Free no memory: it is the library's."""

    def repeat(self, times: int) -> None:
        """Call it a number of times, with the arrays as they are."""
        tensors = {name: self._sent(array) for name, array in self._inputs.items()}
        found: Any = None
        for _ in range(times):
            self._scratch.zero_()
            self._events[0].record()
            found = self._call(tensors)
            self._events[1].record()
            self._events[1].synchronize()
            self.device_ns += round(self._events[0].elapsed_time(self._events[1]) * 1e6)
        self._output.reshape(-1).view(np.uint8)[...] = self._bytes(found)

    def _sent(self, array: NDArray[Any]) -> Any:
        if array.dtype.name != "bfloat16":
            return self._torch.from_numpy(array).to("cuda")
        return self._torch.from_numpy(array.view(np.int16)).to("cuda").view(self._torch.bfloat16)

    def _bytes(self, tensor: Any) -> NDArray[np.uint8]:
        return tensor.contiguous().cpu().reshape(-1).view(self._torch.uint8).numpy()


def _call(torch: Any, found: Product | Convolution) -> Callable[[Mapping[str, Any]], Any]:
    if isinstance(found, Product):
        return lambda tensors: torch.einsum(found.equation, *[tensors[name] for name in found.operands])

    def convolved(tensors: Mapping[str, Any]) -> Any:
        image, weights = tensors[found.image], tensors[found.weights]
        groups = image.shape[0] if found.depthwise else 1
        weights = weights.unsqueeze(1) if found.depthwise else weights
        result = torch.nn.functional.conv2d(
            image.unsqueeze(0), weights, stride=found.stride, padding=found.padding, groups=groups
        )
        return result.squeeze(0)

    return convolved
