"""Softmax and layer normalization that are written as several operators, as one operator each.

JAX writes them by reductions and element-wise operators, and one kernel computes the whole. ONNX Runtime's
basic optimizations join layer normalizations with weights as PyTorch exports them, and none of JAX.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isclose, prod

from planish.network.ir import Network, Node, Shape
from planish.network.operators.builder import align_shape

_Reduced = tuple[str, Shape]
"""A tensor, and the dimensions along which it is reduced, in their order."""
_CLOSE = 1e-6
"""Relative difference of numbers in float32 that are taken to be equal."""


def join_normalizations(network: Network) -> Network:
    """Replace the operators of softmax and of layer normalization by one operator each."""
    parts, nodes = _Parts(network), list[Node]()
    for node in network.nodes:
        nodes += parts.softmax(node) or parts.normalization(node) or [node]
    if len(nodes) == len(network.nodes) and all(map(Node.__eq__, nodes, network.nodes)):
        return network
    types = dict(network.types)
    for node in nodes:
        types.setdefault(node.output, types[node.inputs[0]])
    return replace(network, nodes=tuple(nodes), types=types).without_unread()


class _Parts:
    """Finds the parts of normalizations by the nodes that compute tensors."""

    def __init__(self, network: Network) -> None:
        self.network = network

    def softmax(self, node: Node) -> list[Node]:
        """Return Softmax for the division of exponentials by their sum; empty for any other node."""
        power = self._producer(node.inputs[0], "Exp") if node.operator == "Div" else None
        rest = self._producer(power.inputs[0], "Sub") if power else None
        if power is None or rest is None:
            return []
        total = self._reduced(node.inputs[1], "ReduceSum")
        most = self._reduced(self._without_most(rest.inputs[1], -inf), "ReduceMax")
        if total is None or most is None or len(most[1]) != 1:
            return []
        same = total == (power.output, most[1]) and most[0] == rest.inputs[0]
        fits = self._fits(node.inputs[1], most) and self._fits(rest.inputs[1], most)
        if not (same and fits and self._has_shape_of(node.output, most)):
            return []
        return [Node("Softmax", node.name, most[:1], node.output, {"axis": most[1][0]})]

    def normalization(self, node: Node) -> list[Node]:
        """Return LayerNormalization for differences from the mean that are divided by their deviation.

        They may also be multiplied by its reciprocal, or by a multiple of that. Empty for any other node.
        """
        if node.operator == "Div":
            part = self._difference(node.inputs[0])
            epsilon = self._deviation(node.inputs[1], part) if part else None
            return self._normalized(node, part, epsilon, "") if part else []
        for rest, factor in (node.inputs, node.inputs[::-1]) if node.operator == "Mul" else ():
            if (part := self._difference(rest)) is None:
                continue
            multiple = self._viewed(factor, "Mul")
            pairs = [(factor, ""), *((multiple.inputs, multiple.inputs[::-1]) if multiple else ())]
            for inverse, scale in pairs:
                reciprocal = self._viewed(inverse, "Reciprocal")
                epsilon = self._deviation(reciprocal.inputs[0], part) if reciprocal else None
                if self._fits(inverse, part) and (found := self._normalized(node, part, epsilon, scale)):
                    return found
        return []

    def _normalized(self, node: Node, part: _Reduced, epsilon: float | None, scale: str) -> list[Node]:
        if epsilon is None or not self._has_shape_of(node.output, part):
            return []
        made = f"{node.output} normalized" if scale else node.output
        attributes = {"axis": part[1][0], "epsilon": epsilon}
        first = Node("LayerNormalization", node.name, part[:1], made, attributes)
        return [first, Node("Mul", f"{node.name} scale", (made, scale), node.output)] if scale else [first]

    def _deviation(self, name: str, part: _Reduced) -> float | None:
        """Return what is added to a tensor's variance whose root another one is; None where it is none."""
        root = self._viewed(name, "Sqrt")
        added = self._viewed(root.inputs[0], "Add") if root else None
        for variance, number in (
            (added.inputs, added.inputs[::-1]) if added and self._fits(name, part) else ()
        ):
            if self._is_variance(variance, part):
                return self._number(number)
        return None

    def _is_variance(self, name: str, part: _Reduced) -> bool:
        """Return whether a tensor is a variance: mean((x - mean)^2), or mean(x^2) - mean^2, as in Flax."""
        squares = self._mean(name)
        if squares is not None:
            return squares[1] == part[1] and self._is_square(squares[0], part)
        node = self._viewed(self._without_most(name, 0), "Sub")
        squares = self._mean(node.inputs[0]) if node else None
        if node is None or squares is None or squares[1] != part[1]:
            return False
        square, product = self._producer(squares[0], "Mul"), self._viewed(node.inputs[1], "Mul")
        is_square = square is not None and set(square.inputs) == {part[0]}
        return is_square and product is not None and all(self._mean(each) == part for each in product.inputs)

    def _is_square(self, name: str, part: _Reduced) -> bool:
        """Return whether a tensor has the squares of the differences of another one from its mean."""
        product, power = self._producer(name, "Mul"), self._producer(name, "Pow")
        if product is not None and product.inputs[0] == product.inputs[1]:
            return self._difference(product.inputs[0]) == part
        if power is not None and self._number(power.inputs[1]) == 2:
            return self._difference(power.inputs[0]) == part
        return False

    def _difference(self, name: str) -> _Reduced | None:
        """Return the tensor whose mean along its last dimensions is subtracted from it."""
        node = self._producer(name, "Sub")
        mean = self._mean(node.inputs[1]) if node else None
        if node is None or mean is None or mean[0] != node.inputs[0]:
            return None
        rank = len(self.network.shape(mean[0]))
        is_last = mean[1] == tuple(range(rank - len(mean[1]), rank))
        return mean if is_last and self._fits(node.inputs[1], mean) else None

    def _mean(self, name: str) -> _Reduced | None:
        """Return the tensor whose mean another one is."""
        if (found := self._reduced(name, "ReduceMean")) is not None:
            return found
        for operator in ("Div", "Mul"):
            node = self._viewed(name, operator)
            found = self._reduced(node.inputs[0], "ReduceSum") if node else None
            number = self._number(node.inputs[1]) if node else None
            if found and number:
                count = prod(self.network.shape(found[0])[d] for d in found[1])
                is_mean = isclose(number if operator == "Div" else 1 / number, count, rel_tol=_CLOSE)
                return found if is_mean else None
        return None

    def _reduced(self, name: str, operator: str) -> _Reduced | None:
        """Return what a tensor is a reduction of."""
        node = self._viewed(name, operator)
        if node is None:
            return None
        axes: Sequence[int] | None = node.attributes.get("axes")
        if node.has(1):
            axes = self.network.whole_numbers(node, 1)
        rank = len(self.network.shape(node.inputs[0]))
        return (node.inputs[0], tuple(sorted(d % rank for d in axes))) if axes else None

    def _without_most(self, name: str, least: float) -> str:
        """Return a tensor whose maximum with a number another one is, where that changes nothing."""
        node = self._viewed(name, "Max")
        if node is None or len(node.inputs) != 2:
            return name
        numbers = [self._number(each) for each in node.inputs]
        return node.inputs[1 - numbers.index(least)] if least in numbers else name

    def _fits(self, name: str, part: _Reduced) -> bool:
        """Return whether a tensor is broadcast along the dimensions along which another one is reduced."""
        shape, own = self.network.shape(part[0]), self.network.shape(name)
        kept = tuple(1 if d in part[1] else extent for d, extent in enumerate(shape))
        return align_shape(own, len(shape)) == kept

    def _has_shape_of(self, name: str, part: _Reduced) -> bool:
        return self.network.shape(name) == self.network.shape(part[0])

    def _number(self, name: str) -> float | None:
        return self.network.scalar(self.network.root(name))

    def _viewed(self, name: str, operator: str) -> Node | None:
        """Return the node of an operator that computes a tensor, or what that is a view of."""
        return self._producer(self.network.root(name), operator)

    def _producer(self, name: str, operator: str) -> Node | None:
        node = self.network.producers.get(name)
        return node if node is not None and node.operator == operator else None
