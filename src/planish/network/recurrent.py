"""LSTM, GRU and RNN: the loop over time in plain code, behind a product over all steps.

The products with the inputs do not depend on the steps before, so that they are one product of `loops`. What
is left for each step is a product with the state, whose weights are stored as rows that are read in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from planish.network import scalars
from planish.network.model import Array, Network, Node, Value
from planish.network.plain import PlainKernel, PlainProgram, fused

GATES: Mapping[str, int] = {"LSTM": 4, "GRU": 3, "RNN": 1}
"""Operator to how many gates it has."""
_ACTIVATIONS: Mapping[str, Any] = {
    "sigmoid": scalars.sigmoid,
    "tanh": scalars.hyperbolic_tangent,
    "relu": scalars.rectified,
    "hardsigmoid": scalars.hard_sigmoid,
    "softsign": scalars.soft_sign,
}
_DEFAULT: Mapping[str, Sequence[str]] = {
    "LSTM": ("sigmoid", "tanh", "tanh"),
    "GRU": ("sigmoid", "tanh"),
    "RNN": ("tanh",),
}
_ROWS = 8
"""Rows of the weights that one pass over the gates reads."""
_LANES = 16
"""Columns of the widest vectors."""


def accumulate(
    state: Array, weights: Array, gates: Array, hidden: int, first: int, wide: int, stride: int, block: int,
    turns: Any,
) -> None:  # fmt: skip
    """Add the product of a state and of weights, from a column on, to gates.

    The weights are as `blocked` stores them, in rows of `stride`. Every other time they are read from their
    end, so that what the cache nearest to the core still has of them is read first.
    """
    last = hidden // _ROWS - 1
    for n in range(hidden // _ROWS):
        k = n + (last - 2 * n) * turns
        s = state[_ROWS * k :]
        for b in range(wide // block):
            w = weights[_ROWS * (k * stride + first + b * block) :]
            g = gates[b * block :]
            for j in range(block):
                low = fused(s[0], w[j], fused(s[1], w[block + j], g[j]))
                low = fused(s[2], w[2 * block + j], fused(s[3], w[3 * block + j], low))
                high = fused(s[4], w[4 * block + j], s[5] * w[5 * block + j])
                high = fused(s[6], w[6 * block + j], fused(s[7], w[7 * block + j], high))
                g[j] = low + high
    for k in range(hidden // _ROWS * _ROWS, hidden):
        w = weights[k * stride + first :]
        for j in range(wide):
            gates[j] = fused(state[k], w[j], gates[j])


def blocked(weights: Array, block: int) -> Array:
    """Store weights [directions, rows, columns] in the order in which `accumulate` reads them.

    Of so many rows, blocks of columns follow each other; the rows that are left at the end are as they were.
    """
    directions, rows, columns = weights.shape
    whole = rows // _ROWS * _ROWS
    parts = weights[:, :whole].reshape(directions, -1, _ROWS, columns // block, block).swapaxes(2, 3)
    return np.concatenate([parts.reshape(directions, -1), weights[:, whole:].reshape(directions, -1)], 1)


def block_of(hidden: int) -> int:
    """Return the columns of a block of weights: those of the widest vectors, or all of a gate."""
    return _LANES if hidden % _LANES == 0 else hidden


def begin(start: Any, state: Array, size: int) -> None:
    """Set a state to the initial one, or to 0."""
    for j in range(size):
        state[j] = 0.0 if start is None else start[j]


def time_of(step: int, count: Any, backward: Any) -> Any:
    """Return which element of a sequence a step takes; those behind its end are in their order."""
    return count - 1 - step if backward and step < count else step


def limited(values: Array, count: int, limit: Any) -> None:
    """Bring values into the range of the attribute `clip`, if there is one."""
    if limit is not None:
        for j in range(count):
            values[j] = min(max(values[j], -limit), limit)


def copy(source: Array, target: Array, count: int) -> None:
    """Copy values."""
    for j in range(count):
        target[j] = source[j]


def zero(target: Array, count: int) -> None:
    """Set values to 0."""
    for j in range(count):
        target[j] = 0.0


def lstm(
    x: Array, r: Array, lengths: Any, h0: Any, c0: Any, peep: Any, y: Array, y_h: Array, y_c: Array,
    gates: Array, steps: int, batch: int, hidden: int, block: int, directions: int, backward: bool, f: Any,
    g: Any, h: Any, limit: Any,
) -> None:  # fmt: skip
    """Compute LSTM; its gates are i, o, f and c."""
    begin(h0, y_h, directions * batch * hidden)
    begin(c0, y_c, directions * batch * hidden)
    for d in range(directions):
        for b in range(batch):
            count = steps if lengths is None else int(lengths[b])
            state = y_h[(d * batch + b) * hidden :]
            cell = y_c[(d * batch + b) * hidden :]
            for s in range(steps):
                t = time_of(s, count, backward or d == 1)
                out = y[((t * directions + d) * batch + b) * hidden :]
                if s < count:
                    copy(x[((t * batch + b) * directions + d) * 4 * hidden :], gates, 4 * hidden)
                    weights = r[d * hidden * 4 * hidden :]
                    accumulate(state, weights, gates, hidden, 0, 4 * hidden, 4 * hidden, block, s & 1)
                    if peep is not None:
                        look(peep[d * 3 * hidden :], cell, gates, hidden)
                        look(peep[(d * 3 + 2) * hidden :], cell, gates[2 * hidden :], hidden)
                    limited(gates, 4 * hidden, limit)
                    for j in range(hidden):
                        product = f(gates[j]) * g(gates[3 * hidden + j])
                        cell[j] = fused(f(gates[2 * hidden + j]), cell[j], product)
                    if peep is not None:
                        look(peep[(d * 3 + 1) * hidden :], cell, gates[hidden:], hidden)
                    for j in range(hidden):
                        state[j] = f(gates[hidden + j]) * h(cell[j])
                    copy(state, out, hidden)
                else:
                    zero(out, hidden)


def look(weights: Array, cell: Array, gates: Array, count: int) -> None:
    """Add what a gate sees of the cells."""
    for j in range(count):
        gates[j] = fused(weights[j], cell[j], gates[j])


def gru(
    x: Array, r: Array, lengths: Any, h0: Any, shift: Array, y: Array, y_h: Array, gates: Array, steps: int,
    batch: int, hidden: int, block: int, directions: int, backward: bool, f: Any, g: Any, linear: bool,
    limit: Any,
) -> None:  # fmt: skip
    """Compute GRU; its gates are z, r and h, and `shift` is what is added to the last one's product."""
    begin(h0, y_h, directions * batch * hidden)
    last = gates[2 * hidden :]
    reset = gates[3 * hidden :]
    for d in range(directions):
        for b in range(batch):
            count = steps if lengths is None else int(lengths[b])
            state = y_h[(d * batch + b) * hidden :]
            weights = r[d * hidden * 3 * hidden :]
            for s in range(steps):
                t = time_of(s, count, backward or d == 1)
                out = y[((t * directions + d) * batch + b) * hidden :]
                if s < count:
                    row = x[((t * batch + b) * directions + d) * 3 * hidden :]
                    copy(row, gates, 2 * hidden)
                    copy(shift[d * hidden :], last, hidden)
                    wide = (3 if linear else 2) * hidden
                    accumulate(state, weights, gates, hidden, 0, wide, 3 * hidden, block, s & 1)
                    limited(gates, 2 * hidden, limit)
                    for j in range(2 * hidden):
                        gates[j] = f(gates[j])
                    if not linear:
                        for j in range(hidden):
                            reset[j] = gates[hidden + j] * state[j]
                        accumulate(reset, weights, last, hidden, 2 * hidden, hidden, 3 * hidden, block, s & 1)
                    for j in range(hidden):
                        last[j] = row[2 * hidden + j] + (gates[hidden + j] * last[j] if linear else last[j])
                    limited(last, hidden, limit)
                    for j in range(hidden):
                        state[j] = fused(gates[j], state[j], (1.0 - gates[j]) * g(last[j]))
                    copy(state, out, hidden)
                else:
                    zero(out, hidden)


def rnn(
    x: Array, r: Array, lengths: Any, h0: Any, y: Array, y_h: Array, gates: Array, steps: int, batch: int,
    hidden: int, block: int, directions: int, backward: bool, f: Any, limit: Any,
) -> None:  # fmt: skip
    """Compute RNN."""
    begin(h0, y_h, directions * batch * hidden)
    for d in range(directions):
        for b in range(batch):
            count = steps if lengths is None else int(lengths[b])
            state = y_h[(d * batch + b) * hidden :]
            for s in range(steps):
                t = time_of(s, count, backward or d == 1)
                out = y[((t * directions + d) * batch + b) * hidden :]
                if s < count:
                    copy(x[((t * batch + b) * directions + d) * hidden :], gates, hidden)
                    weights = r[d * hidden * hidden :]
                    accumulate(state, weights, gates, hidden, 0, hidden, hidden, block, s & 1)
                    limited(gates, hidden, limit)
                    for j in range(hidden):
                        state[j] = f(gates[j])
                    copy(state, out, hidden)
                else:
                    zero(out, hidden)


def divided(
    node: Node, outputs: Sequence[str], values: dict[str, Value], constants: dict[str, Array]
) -> Iterator[Node]:
    """Divide LSTM, GRU or RNN into a product over all steps, and the loop over them.

    Args:
        node: with the inputs of ONNX.
        outputs: its outputs, of which those that are not asked for are empty.
        values: types of tensors, to which new ones are added.
        constants: values of constants, likewise.
    """
    operator, attributes = node.operator, node.attributes
    if attributes.get("layout") or attributes.get("input_forget"):
        raise node.refuse("layout and input_forget are not covered")
    missing = [n for n in (1, 2, 3) if node.has(n) and node.inputs[n] not in constants]
    if missing:
        raise node.refuse(f"input {missing[0]} is computed, which is not covered")
    (steps, batch, inner), gates = values[node.inputs[0]].shape, GATES[operator]
    w, r = (constants[node.inputs[n]] for n in (1, 2))
    directions, hidden = r.shape[0], r.shape[2]
    bias = (
        constants[node.inputs[3]] if node.has(3) else np.zeros((directions, 2 * gates * hidden), np.float32)
    )
    of_x, of_h = bias[:, : gates * hidden], bias[:, gates * hidden :]
    linear = bool(attributes.get("linear_before_reset"))
    start, shift = of_x + of_h, np.zeros((directions, hidden), np.float32)
    if operator == "GRU" and linear:
        # The bias of the last gate's product is within what the reset gate multiplies.
        shift = np.ascontiguousarray(of_h[:, 2 * hidden :])
        start[:, 2 * hidden :] = of_x[:, 2 * hidden :]
    wide = directions * gates * hidden
    name = next(filter(None, outputs))

    def constant(what: str, array: Array) -> str:
        constants[f"{name} {what}"] = np.ascontiguousarray(array, np.float32)
        values[f"{name} {what}"] = Value(array.shape)
        return f"{name} {what}"

    def tensor(what: str) -> str:
        values[f"{name} {what}"] = Value((steps, batch, wide))
        return f"{name} {what}"

    product = Node(
        "MatMul", node.name, (node.inputs[0], constant("w", w.reshape(wide, inner).T)), tensor("xw")
    )
    added = Node("Add", node.name, (product.output, constant("b", start.reshape(wide))), tensor("xwb"))
    yield from (product, added)
    shapes = ((steps, directions, batch, hidden), (directions, batch, hidden), (directions, batch, hidden))
    count = 3 if operator == "LSTM" else 2
    names = [each or f"{name} unused {n}" for n, each in enumerate([*outputs, "", "", ""][:count])]
    values |= {each: Value(shape) for each, shape in zip(names, shapes, strict=False)}
    optional = {"lengths": 4, "h0": 5, "c0": 6, "peep": 7}
    given = {key: node.inputs[n] for key, n in optional.items() if node.has(n)}
    inputs = {"x": added.output, "r": constant("r", blocked(r.transpose(0, 2, 1), block_of(hidden))), **given}
    if operator == "GRU":
        inputs["shift"] = constant("shift", shift)
    yield Node(
        operator,
        node.name,
        tuple(inputs.values()),
        names[0],
        {**attributes, "parameters": tuple(inputs), "hidden": hidden, "directions": directions},
        tuple(names[1:]),
    )


def recurrence(network: Network, node: Node) -> PlainKernel:
    """Write the loop over time."""
    attributes, operator = node.attributes, node.operator
    parameters: Sequence[str] = attributes["parameters"]
    steps, batch, _ = network.shape(node.inputs[0])
    hidden, directions = attributes["hidden"], attributes["directions"]
    wanted = [name.lower() for name in attributes.get("activations") or ()] or _DEFAULT[operator] * directions
    count = len(_DEFAULT[operator])
    if len(set(map(tuple, (wanted[:count], wanted[-count:])))) > 1 or not set(wanted) <= set(_ACTIVATIONS):
        raise node.refuse(f"the activations {', '.join(wanted)} are not covered")
    functions = zip("fgh", (_ACTIVATIONS[name] for name in wanted[:count]), strict=False)
    function, optional = {
        "LSTM": (lstm, ("lengths", "h0", "c0", "peep")),
        "GRU": (gru, ("lengths", "h0")),
        "RNN": (rnn, ("lengths", "h0")),
    }[operator]
    names: Sequence[str] = ("y", "y_h", "y_c")
    outputs = dict[str, str](zip(names, (node.output, *node.more), strict=False))
    constants: dict[str, Any] = {
        "steps": steps, "batch": batch, "hidden": hidden, "block": block_of(hidden), "directions": directions,
        "backward": attributes.get("direction", "forward") == "reverse", **dict(functions),
        "limit": attributes.get("clip"), **{key: None for key in optional if key not in parameters},
    }  # fmt: skip
    if operator == "GRU":
        constants["linear"] = bool(attributes.get("linear_before_reset"))
    arrays = [(key, network.values[name].dtype) for key, name in zip(parameters, node.inputs, strict=True)]
    arrays += [(key, "float32") for key in (*outputs, "gates")]
    flops = 2 * steps * batch * directions * GATES[operator] * hidden * hidden
    program = PlainProgram(function, tuple(arrays), tuple(constants.items()), flops)
    scratch = {"gates": 4 * 4 * hidden}
    return PlainKernel(
        (node,), program, dict(zip(parameters, node.inputs, strict=True)), outputs, scratch=scratch
    )
