"""Rewriting of ONNX graphs without control flow and sequences, where their extent is known.

`If` computes both branches and chooses. `Scan`, and `Loop` with a known number of iterations, are repeated;
if a loop may end before, what it carries is kept from then on. Sequences are lists of tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from planish.core import ProgramError
from planish.network.ir import Array
from planish.network.onnx.translator import attributes_of

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

MOST_NODES = 20_000
"""Nodes that a loop is repeated to at most."""

_CONTROL = ("If", "Loop", "Scan")
_SEQUENCES = (
    "ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
    "SequenceInsert", "SequenceLength", "SplitToSequence",
)  # fmt: skip


def unroll(model: ModelProto) -> bool:
    """Rewrite what can be rewritten, in place; return whether anything was."""
    if not any(node.op_type in (*_CONTROL, *_SEQUENCES) for node in model.graph.node):
        return False
    unroller = _Unroller(model.graph)
    nodes = [made for node in model.graph.node for made in unroller.node(node, {}, "")]
    if not unroller.changes:
        return False
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(unroller.added)
    return True


def refuse_control(model: ModelProto) -> None:
    """Refuse what is left of control flow, and say why; raises ProgramError where there is some."""
    for node in model.graph.node:
        if node.op_type in _CONTROL:
            why = {"If": "its branches have other shapes", "Scan": "its sequence has no known length"}
            reason = why.get(node.op_type, "how often it is repeated depends on data")
            raise ProgramError(f"node '{node.name or node.output[0]}' ({node.op_type}): {reason}")


class _Unroller:
    def __init__(self, graph: GraphProto) -> None:
        from onnx import numpy_helper

        self.added: list[Any] = []
        self.changes = 0
        self._constants: dict[str, Array] = {
            each.name: numpy_helper.to_array(each) for each in graph.initializer
        }
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self._constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        self._sequences: dict[str, list[str]] = {}
        self._shapes: dict[str, list[int | None]] = {}
        for info in (*graph.input, *graph.value_info, *graph.output):
            if info.type.tensor_type.HasField("shape"):
                self._shapes[info.name] = _dims(info)
        self._shapes |= {name: list(array.shape) for name, array in self._constants.items()}

    def constant(self, name: str, array: Any) -> str:
        """Add a constant."""
        from onnx import numpy_helper

        self._constants[name] = np.asarray(array)
        self.added.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, node: NodeProto, names: Mapping[str, str], prefix: str) -> Iterator[NodeProto]:
        """Rewrite a node.

        Args:
            node: of some graph.
            names: names in that graph to those in the graph that is written.
            prefix: of the names of results.
        """
        made = deepcopy(node)
        del made.input[:], made.output[:]
        made.input.extend(names.get(name, name) for name in node.input)
        made.output.extend(prefix + name if name else "" for name in node.output)
        made.name = prefix + (node.name or node.output[0])
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            from onnx import numpy_helper

            self._constants[made.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        if node.op_type in _SEQUENCES:
            yield from self._sequence(made)
        elif node.op_type not in _CONTROL:
            yield made
        else:
            for attribute in made.attribute:
                if attribute.HasField("g"):
                    _rename_outer(attribute.g, names)
            found = {"If": self._if, "Loop": self._loop, "Scan": self._scan}[node.op_type](made)
            if found is None:
                yield made
            else:
                self.changes += 1
                yield from found

    def _inline(
        self, graph: GraphProto, inputs: Sequence[str], prefix: str
    ) -> tuple[list[NodeProto], list[str]]:
        """Return the nodes of a body, applied to inputs, and the names of its outputs."""
        from onnx import numpy_helper

        names = dict(zip((each.name for each in graph.input), inputs, strict=True))
        for each in graph.initializer:
            names[each.name] = self.constant(prefix + each.name, numpy_helper.to_array(each))
        nodes = list[Any]()
        for info in graph.value_info:
            self._shapes[prefix + info.name] = _dims(info)
        for node in graph.node:
            nodes += self.node(node, names, prefix)
            for name in node.output:
                names[name] = prefix + name
        return nodes, [names.get(each.name, each.name) for each in graph.output]

    def _outputs(self, node: NodeProto, names: Sequence[str]) -> Iterator[NodeProto]:
        """Name results as the outputs of a node."""
        for name, made in zip(node.output, names, strict=False):
            if name and made in self._sequences:
                self._sequences[name] = self._sequences[made]
            elif name:
                yield _node("Identity", [made], name)

    def _if(self, node: NodeProto) -> list[NodeProto] | None:
        bodies = {each.name: each.g for each in node.attribute}
        known = self._constants.get(node.input[0])
        if known is not None:
            body = bodies["then_branch" if known.reshape(()).item() else "else_branch"]
            nodes, outputs = self._inline(body, [], f"{node.name}/")
            return [*nodes, *self._outputs(node, outputs)]
        if _differ(bodies["then_branch"], bodies["else_branch"]):
            return None
        yes, first = self._inline(bodies["then_branch"], [], f"{node.name}/then/")
        no, second = self._inline(bodies["else_branch"], [], f"{node.name}/else/")
        chosen = [
            _node("Where", [node.input[0], a, b], name)
            for name, a, b in zip(node.output, first, second, strict=True)
            if name
        ]
        return [*yes, *no, *chosen]

    def _loop(self, node: NodeProto) -> list[NodeProto] | None:
        body = node.attribute[0].g
        most = self._constants.get(node.input[0]) if node.input[0] else None
        condition = node.input[1] if len(node.input) > 1 else ""
        begins = self._constants.get(condition) if condition else np.array(True)
        if begins is not None and not begins.reshape(()).item():
            most = np.array(0)
        always = self._is_always(body) and begins is not None
        carried = list(node.input[2:])
        states = len(carried)
        scans: list[list[str]] = [[] for _ in range(len(body.output) - 1 - states)]
        if most is None or int(most) * max(1, len(body.node)) > MOST_NODES or (scans and not always):
            return None
        nodes = list[Any]()
        active = condition
        for i in range(int(most)):
            prefix = f"{node.name}/{i}/"
            number = self.constant(f"{prefix}iteration", np.array(i, np.int64))
            truth = active or self.constant(f"{prefix}condition", np.array(True))
            made, (ongoing, *results) = self._inline(body, [number, truth, *carried], prefix)
            nodes += made
            if always:
                carried = results[:states]
            else:
                for at, (old, new) in enumerate(zip(carried, results[:states], strict=True)):
                    nodes.append(_node("Where", [truth, new, old], f"{prefix}carried {at}"))
                nodes.append(_node("And", [truth, ongoing], f"{prefix}goes on"))
                carried = [f"{prefix}carried {at}" for at in range(states)]
                active = f"{prefix}goes on"
            for kept, name in zip(scans, results[states:], strict=True):
                kept.append(name)
        if not int(most) and scans:
            return None
        stacked = list[str]()
        for at, kept in enumerate(scans):
            nodes += self._stack(kept, 0, f"{node.name}/scan {at}")
            stacked.append(f"{node.name}/scan {at}")
        return [*nodes, *self._outputs(node, [*carried, *stacked])]

    def _is_always(self, body: GraphProto) -> bool:
        """Return whether the condition of a loop's body goes on as it was, or holds."""
        from onnx import numpy_helper

        names = {body.output[0].name}
        for node in reversed(body.node):
            if names & set(node.output):
                if node.op_type == "Constant":
                    return bool(numpy_helper.to_array(node.attribute[0].t).reshape(()).item())
                if node.op_type not in ("Identity", "Cast"):
                    return False
                names = {node.input[0]}
        (name,) = names
        known = {each.name: each for each in body.initializer}
        if name in known:
            return bool(numpy_helper.to_array(known[name]).reshape(()).item())
        outer = self._constants.get(name)
        return name == body.input[1].name or (outer is not None and bool(outer.reshape(()).item()))

    def _stack(self, names: Sequence[str], axis: int, name: str) -> Iterator[NodeProto]:
        axes = self.constant(f"{name} axes", np.array([axis], np.int64))
        for index, each in enumerate(names):
            yield _node("Unsqueeze", [each, axes], f"{name} part {index}")
        yield _node("Concat", [f"{name} part {index}" for index in range(len(names))], name, axis=axis)

    def _scan(self, node: NodeProto) -> list[NodeProto] | None:
        attributes = attributes_of(node)
        body, count = attributes["body"], attributes["num_scan_inputs"]
        states = len(node.input) - count
        carried, scanned = list(node.input[:states]), list(node.input[states:])
        axes = attributes.get("scan_input_axes") or [0] * count
        backward = attributes.get("scan_input_directions") or [0] * count
        shape = self._shapes.get(scanned[0])
        steps = shape[axes[0]] if shape else None
        if steps is None or steps * max(1, len(body.node)) > MOST_NODES:
            return None
        scans: list[list[str]] = [[] for _ in range(len(body.output) - states)]
        nodes = list[Any]()
        for i in range(steps):
            prefix, parts = f"{node.name}/{i}/", list[str]()
            for name, axis, back in zip(scanned, axes, backward, strict=True):
                index = self.constant(
                    f"{prefix}{name} index", np.array(steps - 1 - i if back else i, np.int64)
                )
                nodes.append(_node("Gather", [name, index], f"{prefix}{name} part", axis=axis))
                parts.append(f"{prefix}{name} part")
            made, results = self._inline(body, [*carried, *parts], prefix)
            nodes += made
            carried = results[:states]
            for kept, name in zip(scans, results[states:], strict=True):
                kept.append(name)
        out_axes = attributes.get("scan_output_axes") or [0] * len(scans)
        out_backward = attributes.get("scan_output_directions") or [0] * len(scans)
        stacked = list[str]()
        for at, kept in enumerate(scans):
            ordered = kept[::-1] if out_backward[at] else kept
            nodes += self._stack(ordered, out_axes[at], f"{node.name}/scan {at}")
            stacked.append(f"{node.name}/scan {at}")
        return [*nodes, *self._outputs(node, [*carried, *stacked])]

    # Sequences

    def _sequence(self, node: NodeProto) -> Iterator[NodeProto]:
        """Follow a sequence, or write a node that takes it apart; what is not known stays as it is."""
        before = self.changes
        self.changes += 1
        attributes = {each.name: each for each in node.attribute}
        found = [self._sequences.get(name) for name in node.input]
        index = self._constants.get(node.input[-1]) if node.input and node.input[-1] else None
        output = node.output[0]
        match node.op_type:
            case "SequenceConstruct" | "SequenceEmpty":
                self._sequences[output] = list(node.input)
            case "SequenceInsert" if (items := found[0]) is not None and (
                len(node.input) < 3 or index is not None
            ):
                at = len(items) if len(node.input) < 3 else int(index)  # type: ignore[arg-type]
                self._sequences[output] = [*items[:at], node.input[1], *items[at:]]
            case "SequenceErase" if (items := found[0]) is not None and (
                len(node.input) < 2 or index is not None
            ):
                at = (len(items) - 1 if len(node.input) < 2 else int(index)) % len(items)  # type: ignore[arg-type]
                self._sequences[output] = items[:at] + items[at + 1 :]
            case "SequenceAt" if (items := found[0]) is not None and index is not None:
                yield _node("Identity", [items[int(index)]], output)
            case "SequenceLength" if (items := found[0]) is not None:
                yield _node(
                    "Identity", [self.constant(f"{output} length", np.array(len(items), np.int64))], output
                )
            case "ConcatFromSequence" if (items := found[0]) is not None:
                axis = attributes["axis"].i
                if "new_axis" in attributes and attributes["new_axis"].i:
                    yield from self._stack(items, axis, output)
                else:
                    yield _node("Concat", items, output, axis=axis)
            case "SplitToSequence":
                yield from self._split(node, attributes, before)
            case _:
                self.changes = before
                yield node

    def _split(self, node: NodeProto, attributes: Mapping[str, Any], before: int) -> Iterator[NodeProto]:
        shape, output = self._shapes.get(node.input[0]), node.output[0]
        axis = attributes["axis"].i if "axis" in attributes else 0
        extent = shape[axis] if shape else None
        sizes = self._constants.get(node.input[1]) if len(node.input) > 1 and node.input[1] else np.array(1)
        if extent is None or sizes is None:
            self.changes = before
            yield node
            return
        if not sizes.ndim:
            size = int(sizes)
            sizes = np.array([min(size, extent - start) for start in range(0, extent, size)], np.int64)
        names = [f"{output} item {index}" for index in range(len(sizes))]
        parts = self.constant(f"{output} sizes", sizes.astype(np.int64))
        made = _node("Split", [node.input[0], parts], names[0], axis=axis)
        del made.output[:]
        made.output.extend(names)
        yield made
        squeezes = len(node.input) < 2 and "keepdims" in attributes and not attributes["keepdims"].i
        if squeezes:
            axes = self.constant(f"{output} axes", np.array([axis], np.int64))
            for name in names:
                yield _node("Squeeze", [name, axes], f"{name} squeezed")
            names = [f"{name} squeezed" for name in names]
        self._sequences[output] = names


def _dims(info: Any) -> list[int | None]:
    dims = info.type.tensor_type.shape.dim
    return [each.dim_value if each.HasField("dim_value") else None for each in dims]


def _differ(a: GraphProto, b: GraphProto) -> bool:
    """Return whether outputs of two branches are known to have other shapes."""
    return any(
        None not in (*_dims(x), *_dims(y)) and _dims(x) != _dims(y)
        for x, y in zip(a.output, b.output, strict=True)
        if x.type.tensor_type.HasField("shape") and y.type.tensor_type.HasField("shape")
    )


def _node(operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> NodeProto:
    from onnx import helper

    return helper.make_node(operator, inputs, [output], output, **attributes)


def _rename_outer(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Rename what a body reads of the graphs around it."""
    own = {each.name for each in (*graph.input, *graph.initializer)}
    own |= {name for node in graph.node for name in node.output}
    outer = {old: new for old, new in names.items() if old not in own}
    for node in graph.node:
        for index, name in enumerate(node.input):
            node.input[index] = outer.get(name, name)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename_outer(attribute.g, outer)
    for each in graph.output:
        each.name = outer.get(each.name, each.name)
