"""The papers' workloads, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from planish.core.errors import ProgramError, did_you_mean
from planish.core.hashing import rng
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program

SPLIT_SEED = 2023
"""Of the split of the thesis' matrix multiplications; the thesis does not state its own."""


def matmul(m: int, n: int, k: int, dtype: str = "float32") -> Program:
    """Return `C[m,n] += A[m,k] * B[k,n]`, row-major."""
    return parse("C[m,n] += A[m,k] * B[k,n]", {"m": m, "n": n, "k": k}, dtype=dtype)


def convolution(
    size: int, inputs: int, outputs: int, kernel: int, stride: int, dtype: str = "float32"
) -> Program:
    """Return a square convolution of one image, channels first, padded by half the kernel; W is constant.

    Args:
        size: rows and columns of the input.
        inputs: channels.
        outputs: channels.
        kernel: rows and columns of the window; odd.
        stride: of the window.
        dtype: the element type.
    """
    text = f"O[k,y,x] += {_window(kernel, stride)} * W[k,c,r,s]"
    shapes = {"I": (inputs, size, size), "W": (outputs, inputs, kernel, kernel)}
    return parse(text, {}, shapes, dtype).with_constants(["W"])


def winograd(size: int, inputs: int, outputs: int) -> Program:
    """Return `convolution(size, inputs, outputs, 3, 1)` by Winograd's algorithm F(4 x 4, 3 x 3).

    The input's tiles are transformed by B, to V; at each of 36 points there is a product with the weights U,
    which are transformed already; A transforms the products (Lavin and Gray, 2015). All three are constant
    inputs. The result has whole tiles: where the size is no multiple of 4, rows and columns follow that are
    of no use.

    Args:
        size: rows and columns of the input.
        inputs: channels.
        outputs: channels.
    """
    tiles = -(-size // 4)
    text = (
        "X[i,c,p,w] += B[i,r] * pad(I[c, 4*p + r - 1, w - 1], 0); "
        "D[i,j,c,p,q] += B[j,s] * X[i,c,p, 4*q + s]; "
        f"V[6*i + j, c, {tiles}*p + q] = D[i,j,c,p,q]; "
        "M[t,k,n] += U[t,k,c] * V[t,c,n]; "
        f"Z[i,k,p,q,v] += A[v,j] * M[6*i + j, k, {tiles}*p + q]; "
        "R[k,p,u,q,v] += A[u,i] * Z[i,k,p,q,v]; "
        "O[k, 4*p + u, 4*q + v] = R[k,p,u,q,v]"
    )
    sizes = {"i": 6, "j": 6, "c": inputs, "k": outputs, "p": tiles, "q": tiles, "w": 4 * tiles + 2, "v": 4}
    shapes = {"I": (inputs, size, size), "U": (36, outputs, inputs), "A": (4, 6), "B": (6, 6)}
    return parse(text, sizes, shapes).with_constants(["A", "B", "U"])


def depthwise(size: int, channels: int, kernel: int, stride: int, dtype: str = "float32") -> Program:
    """Return a square depthwise convolution of one image; arguments as of `convolution`."""
    text = f"O[c,y,x] += {_window(kernel, stride)} * W[c,r,s]"
    shapes = {"I": (channels, size, size), "W": (channels, kernel, kernel)}
    return parse(text, {}, shapes, dtype).with_constants(["W"])


def _window(kernel: int, stride: int) -> str:
    return f"pad(I[c, {stride}*y + r - {kernel // 2}, {stride}*x + s - {kernel // 2}], 0)"


_Make = Callable[..., Program]

RESNET18: Mapping[str, tuple[int, int, int, int, int]] = {
    "C1": (224, 3, 64, 7, 2),
    "C2": (56, 64, 64, 3, 1),
    "C3": (56, 64, 64, 1, 1),
    "C4": (56, 64, 128, 3, 2),
    "C5": (56, 64, 128, 1, 2),
    "C6": (28, 128, 128, 3, 1),
    "C7": (28, 128, 256, 3, 2),
    "C8": (28, 128, 256, 1, 2),
    "C9": (14, 256, 256, 3, 1),
    "C10": (14, 256, 512, 3, 2),
    "C11": (14, 256, 512, 1, 2),
    "C12": (7, 512, 512, 3, 1),
}
"""AutoTVM's table 1: size, input channels, output channels, kernel, stride.

The padding is ResNet's, half the kernel. The batch is one image, and has no axis: the memory is that of
NCHW with N = 1.
"""

THESIS: Mapping[str, _Make] = {
    **{f"MM-{n}": partial(matmul, n, n, n) for n in (64, 128, 256, 512)},
    "CONV-1": partial(convolution, 56, 64, 64, 3, 1),
    "CONV-2": partial(convolution, 28, 128, 128, 3, 1),
    "CONV-3": partial(convolution, 14, 256, 256, 3, 1),
    "CONV-4": partial(convolution, 7, 512, 512, 3, 1),
    "DWCONV-1": partial(depthwise, 112, 32, 3, 1),
    "DWCONV-2": partial(depthwise, 56, 128, 3, 1),
    "DWCONV-3": partial(depthwise, 28, 256, 3, 1),
    "DWCONV-4": partial(depthwise, 14, 512, 3, 1),
}
"""Table 3.1 of the thesis, which does not state the shapes of its convolutions.

Here CONV-1 to CONV-4 are the 3 x 3 convolutions of stride 1 in the four stages of ResNet-18, and
DWCONV-1 to DWCONV-4 the depthwise ones of stride 1 in MobileNet v1.
"""


def workload(name: str, dtype: str = "float32") -> Program:
    """Make a workload by its name: C1 to C12, MM-64 and so on.

    Raises:
        ProgramError: there is none of this name.
    """
    known: dict[str, _Make] = {n: partial(convolution, *a) for n, a in RESNET18.items()} | dict(THESIS)
    if name not in known:
        raise ProgramError(f"unknown workload '{name}'", did_you_mean(name, known))
    return known[name](dtype=dtype)


def thesis_matmuls() -> list[tuple[int, int, int]]:
    """List the (m, n, k) of the thesis' data set: 2197, each from 64 to 256 in steps of 16 (3.6)."""
    sizes = range(64, 257, 16)
    return [(m, n, k) for m in sizes for n in sizes for k in sizes]


def thesis_split() -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """Split them into 1757 for training and 440 for testing, in random order by a fixed seed.

    The thesis states the sizes of its split, not the members.
    """
    everything = thesis_matmuls()
    order = rng(SPLIT_SEED).permutation(len(everything))
    return [everything[i] for i in order[440:]], [everything[i] for i in order[:440]]
