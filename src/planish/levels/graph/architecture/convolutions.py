"""Marks of convolutional networks: kinds of convolutions, residual blocks, heads, skips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from planish.levels.graph.architecture.data_flow import Meeting, Node, Wiring

CONVOLUTIONS = frozenset({"Conv", "FusedConv", "QLinearConv", "ConvInteger", "NhwcFusedConv"})
UPSAMPLINGS = frozenset({"Resize", "Upsample", "ConvTranspose", "DepthToSpace"})
PRODUCTS = frozenset(
    {"MatMul", "Gemm", "Einsum", "FusedMatMul", "FusedGemm", "MatMulInteger", "QLinearMatMul", "MatMulNBits"}
)
AVERAGES = frozenset({"GlobalAveragePool", "ReduceMean", "AveragePool"})
_POOLINGS = frozenset({"MaxPool", "AveragePool", "LpPool"})
_REORDERS = frozenset({"ReorderInput", "ReorderOutput"})
"""By ONNX Runtime, which lays channels side by side for some convolutions; which depends on the processor."""
_HEAVY = CONVOLUTIONS | PRODUCTS | {"ConvTranspose", "LSTM", "GRU", "RNN"}
_SKIPS = frozenset({"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"})
_ADDS = frozenset({"Add", "Sum", "QLinearAdd", "BiasAdd"}) | _SKIPS | CONVOLUTIONS
"""Sums of two results; ONNX Runtime's convolutions and normalisations may add one."""

Scale = tuple[float, int]
"""How often a feature map was halved on its way (in strides), and how often cut at its border."""


@dataclass(frozen=True)
class Residual:
    """A sum of a branch and of what the branch began with.

    Args:
        depthwise: whether there is a depthwise convolution in the branch.
        convolutions: indices of the branch's convolutions; none where the branch is made of dense layers.
    """

    depthwise: bool
    convolutions: tuple[int, ...]


class Convolutional:
    """The convolutional side of a graph."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring

    @cached_property
    def convolutions(self) -> Sequence[Node]:
        """All convolutions, also those that a runtime has fused with others."""
        return [node for node in self._wiring.nodes if node.op in CONVOLUTIONS]

    @cached_property
    def depthwise(self) -> frozenset[int]:
        """Places of the convolutions with a filter for each channel."""
        return frozenset(node.index for node in self.convolutions if self._is_depthwise(node))

    @cached_property
    def pointwise(self) -> frozenset[int]:
        """Places of the convolutions with kernels of 1x1."""
        kernels = ((node.index, self._kernel(node)) for node in self.convolutions)
        return frozenset(index for index, kernel in kernels if kernel and set(kernel) == {1})

    @cached_property
    def over_frames(self) -> int:
        """Return how many depthwise convolutions go along one axis alone, as speech models' do."""
        return sum(
            node.index in self.depthwise and sum(side > 1 for side in self._kernel(node)) == 1
            for node in self.convolutions
        )

    @cached_property
    def patches(self) -> int:
        """Return how many convolutions of an input cut it into pieces, of which none overlap."""
        return sum(
            max(self._kernel(node), default=1) > 1
            and tuple(node.attribute("strides", ())) == self._kernel(node)
            and not any(before.op in _HEAVY for before in self._wiring.reached([node], _any, back=True))
            for node in self.convolutions
        )

    @cached_property
    def swishes(self) -> int:
        """Return how many times a value is multiplied by its own sigmoid."""
        fused = sum(node.op in ("Swish", "QuickGelu") for node in self._wiring.nodes)
        return fused + sum(self._is_swish(node) for node in self._wiring.nodes if node.op == "Mul")

    @cached_property
    def residuals(self) -> Sequence[Residual]:
        """All residual sums."""
        found = (self._residual(node) for node in self._wiring.nodes if node.op in _ADDS)
        return [residual for residual in found if residual is not None]

    @cached_property
    def terminal(self) -> Sequence[Node]:
        """The convolutions after which nothing heavy comes: an image's result, or a detector's heads."""
        busy: set[int] = set()
        # Backwards, so that all that comes after a node is known.
        for node in reversed(self._wiring.nodes):
            if any(after.op in _HEAVY or after.index in busy for after in self._wiring.after(node)):
                busy.add(node.index)
        return [node for node in self.convolutions if node.index not in busy]

    @cached_property
    def scales(self) -> frozenset[Scale]:
        """The sizes of the feature maps that the terminal convolutions look at."""
        known = self._all_scales
        return frozenset(known.get(node.data[0], (0.0, 0)) for node in self.terminal if node.data)

    @cached_property
    def skips(self) -> int:
        """Return how many concatenations join what was upsampled with what was not."""
        return sum(self._joins_scales(node) for node in self._concatenations)

    @cached_property
    def joints(self) -> int:
        """Return how many concatenations join branches of one size between convolutions, as in Inception."""
        between = (node for node in self._concatenations if not self._joins_scales(node))
        return sum(self._feeds_convolution(node) for node in between)

    @cached_property
    def squeezes(self) -> int:
        """Return how many products scale a feature map by its own averages (squeeze and excitation)."""
        return sum(self._is_squeeze(node) for node in self._wiring.nodes if node.op == "Mul")

    def _is_depthwise(self, node: Node) -> bool:
        group = int(node.attribute("group", 1))
        shape = self._wiring.shape(_filter(node))
        # A filter's second extent is the channels of a group; where its shape is unknown, groups must do.
        return group > 1 and (shape[1:2] == (1,) if shape else True)

    def _kernel(self, node: Node) -> tuple[int, ...]:
        return tuple(node.attribute("kernel_shape", ())) or self._wiring.shape(_filter(node))[2:]

    def _residual(self, node: Node) -> Residual | None:
        meeting = self._met(node)
        if meeting is None:
            return None
        # A convolution that adds what it is given belongs to the branch itself.
        branch = [*meeting.first, *meeting.second, *([node] if node.op in CONVOLUTIONS else [])]
        if any(n.op in UPSAMPLINGS for n in branch) or not any(n.op in _HEAVY for n in branch):
            return None
        indices = tuple(n.index for n in branch if n.op in CONVOLUTIONS)
        return Residual(any(index in self.depthwise for index in indices), indices)

    def _met(self, node: Node) -> Meeting | None:
        return self._wiring.meeting(*node.data[:2]) if len(node.data) >= 2 else None

    @cached_property
    def _concatenations(self) -> Sequence[Node]:
        joined = ("Concat", "QLinearConcat")
        return [node for node in self._wiring.nodes if node.op in joined and len(node.data) >= 2]

    def _joins_scales(self, node: Node) -> bool:
        meeting = self._met(node)
        if meeting is None:
            return False
        ways = (meeting.first, meeting.second)
        grown = [sum(n.op in UPSAMPLINGS for n in way) for way in ways]
        # Each side may hold what went up before; the one with one more was upsampled last.
        return grown[0] != grown[1]

    def _feeds_convolution(self, node: Node) -> bool:
        light = self._wiring.reached([node], lambda n: n.op not in _HEAVY)
        return any(n.op in CONVOLUTIONS for n in light)

    def _is_swish(self, node: Node) -> bool:
        return any(
            before.op == "Sigmoid" and before.inputs[0] in node.inputs for before in self._wiring.before(node)
        )

    def _is_squeeze(self, node: Node) -> bool:
        meeting = self._met(node)
        if meeting is None:
            return False
        first, second = (
            [n.op for n in way if n.op not in _REORDERS] for way in (meeting.first, meeting.second)
        )
        # One factor is the feature map itself: no operation is on its way.
        if first and second:
            return False
        branch = [*first, *second]
        return any(op in AVERAGES for op in branch) and any(op in _HEAVY for op in branch)

    @cached_property
    def _all_scales(self) -> dict[str, Scale]:
        known: dict[str, Scale] = {}
        for node in self._wiring.nodes:
            given = max((known[name] for name in node.data if name in known), default=(1.0, 0))
            made = self._scaled(node, given)
            known |= dict.fromkeys(node.outputs, made)
        return known

    def _scaled(self, node: Node, given: Scale) -> Scale:
        stride, cuts = given
        if node.op in CONVOLUTIONS | _POOLINGS:
            kernel = self._kernel(node) or (1,)
            padded = any(node.attribute("pads", ())) or node.attribute("auto_pad", b"NOTSET") != b"NOTSET"
            step = max(node.attribute("strides", (1,)))
            # Without padding the border is cut, by kernels that reach beyond their step.
            return stride * step, cuts + (max(kernel) > step and not padded)
        if node.op in UPSAMPLINGS:
            return stride / _growth(node), cuts
        return given


def _any(node: Node) -> bool:
    del node
    return True


def _filter(node: Node) -> str:
    index = 3 if node.op == "QLinearConv" else 1
    return node.inputs[index] if len(node.inputs) > index else ""


def _growth(node: Node) -> float:
    """Return how far an upsampling goes; 2 where the file says it by a computed value."""
    steps: Sequence[Any] = node.attribute("strides", ()) or (node.attribute("blocksize", 2),)
    return float(max(steps))


def shares(convolutional: Convolutional) -> Iterator[tuple[str, int]]:
    """Count the residual sums by what is in their branches: "plain", "inverted" and "dense"."""
    kinds = [
        "dense" if not r.convolutions else "inverted" if r.depthwise else "plain"
        for r in convolutional.residuals
    ]
    return ((kind, kinds.count(kind)) for kind in ("plain", "inverted", "dense"))
