"""Edit `Relayout`: convolutions with their dimensions in another order; no answer changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from planish.core import ScheduleError
from planish.levels.hlo.edits.edit import GroupRewrite, pick, pick_some
from planish.levels.hlo.edits.editable import EditableModule, OpBuilder
from planish.levels.hlo.edits.lower import ordered
from planish.levels.hlo.edits.sink_transposes import Order, inverse
from planish.levels.hlo.ir.mlir import TensorType, conv_numbers, ir, type_of

if TYPE_CHECKING:
    from numpy.random import Generator

LAYOUTS: Mapping[str, tuple[str, str]] = {"last": ("bsf", "sio"), "first": ("bfs", "ois")}
"""Position of the channels, to the orders of images and of kernels.

b batch, s space, f features, i inputs, o outputs."""


@dataclass(frozen=True)
class Relayout(GroupRewrite):
    """Convert convolutions to channels last (NHWC), or first (NCHW), between transposes.

    The transposes go by `SinkTransposes` where convolutions follow each other. The answer stays, to rounding.

    ::

        y = convolution(x, k), NCHW   -- Relayout(("y",)) -->
        y = transpose(convolution(transpose(x), transpose(k)), NHWC)

    Args:
        ops: convolutions of any kind, those of gradients too.
        channels: one of `LAYOUTS`: "last" or "first".
    """

    exact = True

    channels: str = "last"

    def apply(self, module: EditableModule) -> None:
        if self.channels not in LAYOUTS:
            raise ScheduleError(f"channels cannot be '{self.channels}'", f"Known: {', '.join(LAYOUTS)}.")
        super().apply(module)

    def rewrite(self, module: EditableModule, uid: str, id_prefix: str) -> None:
        if module.infos[uid].name != "stablehlo.convolution":
            raise ScheduleError(f"operation '{uid}' is not a convolution")
        if _has(module, uid, self.channels):
            raise ScheduleError(f"convolution '{uid}' has its channels {self.channels} already")
        _laid_out(module, uid, self.channels, OpBuilder(module, uid, id_prefix))

    @classmethod
    def match(cls, module: EditableModule, channels: str = "last") -> tuple[str, ...]:
        """Find the convolutions that the results need and that have their channels elsewhere."""
        convolutions = module.targets("stablehlo.convolution")
        return tuple(uid for uid in convolutions if not _has(module, uid, channels))

    @classmethod
    def draw(cls, module: EditableModule, rng: Generator) -> Self:
        """Draw where channels are to be, and some of the convolutions that have them elsewhere."""
        channels = pick(list(LAYOUTS), rng)
        return cls(pick_some(cls.match(module, channels), rng), channels)


def _has(module: EditableModule, uid: str, channels: str) -> bool:
    return all(order == tuple(sorted(order)) for order in _orders(module.op(uid), channels))


def _orders(op: ir.Operation, channels: str) -> tuple[Order, Order, Order]:
    """Return the orders into which the dimensions of image, kernel and result are to be put."""
    n = conv_numbers(op)
    (activations, weights), space = LAYOUTS[channels], list(n.input_spatial_dimensions)
    image = {"b": [n.input_batch_dimension], "s": space, "f": [n.input_feature_dimension]}
    inputs, outputs = [n.kernel_input_feature_dimension], [n.kernel_output_feature_dimension]
    kernel = {"s": list(n.kernel_spatial_dimensions), "i": inputs, "o": outputs}
    space = list(n.output_spatial_dimensions)
    result = {"b": [n.output_batch_dimension], "s": space, "f": [n.output_feature_dimension]}

    def order(form: str, axes: Mapping[str, list[int]]) -> Order:
        return tuple(axis for letter in form for axis in axes[letter])

    return order(activations, image), order(weights, kernel), order(activations, result)


def _laid_out(module: EditableModule, uid: str, channels: str, build: OpBuilder) -> None:
    op = module.op(uid)
    image, kernel, result = _orders(op, channels)
    operands = [
        ordered(build, value, order) for value, order in zip(op.operands, (image, kernel), strict=True)
    ]
    old = type_of(op.results[0])
    new = TensorType(tuple(old.shape[axis] for axis in result), old.element)
    numbers = {"dimension_numbers": _numbers(channels, len(image) - 2)}
    (made,) = build.again(op, operands, [new], numbers)
    value = ordered(build, made, inverse(result))
    module.replace(uid, [value])


def _numbers(channels: str, space: int) -> str:
    def listed(form: str) -> str:
        return ", ".join(", ".join(map(str, range(space))) if letter == "s" else letter for letter in form)

    activations, weights = map(listed, LAYOUTS[channels])
    return f"#stablehlo.conv<[{activations}]x[{weights}]->[{activations}]>"
