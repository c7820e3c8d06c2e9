"""LSTM, GRU and RNN: the loop over time as Python kernels, after a product over all steps.

The products with the inputs do not depend on the steps before, so that they are one product of `loops`. What
is left for each step is a product with the state, whose weights are stored as rows that are read in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from planish.network.ir import Array, Network, Node, TensorType
from planish.network.python_kernels import scalars
from planish.network.python_kernels.intrinsics import fused, sigmoid
from planish.network.python_kernels.program import PythonKernel, divisible, python_kernel

GATES: Mapping[str, int] = {"LSTM": 4, "GRU": 3, "RNN": 1}
"""Operator to how many gates it has."""
_ACTIVATIONS: Mapping[str, Any] = {
    "sigmoid": sigmoid,
    "tanh": np.tanh,
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
    state: Array, weights: Array, gates: Array, hidden: int, unit: Any, block: int, count: int, step: Any
) -> None:
    """Add the product of a state and of the weights of one part, as `blocked` stores them, to gates.

    Args:
        state: what is multiplied.
        weights: of all parts.
        gates: `count` blocks of a part's sums.
        hidden: elements of the state.
        unit: number of the part.
        block: columns of a block.
        count: blocks of a part.
        step: the number of a step; see `turned`.
    """
    own = weights[unit * count * block * hidden :]
    for n in range(hidden // _ROWS):
        k = turned(n, hidden // _ROWS, step)
        s = state[_ROWS * k :]
        for b in range(count):
            w = own[_ROWS * block * (k * count + b) :]
            g = gates[b * block :]
            for j in range(block):
                low = fused(s[0], w[j], fused(s[1], w[block + j], g[j]))
                low = fused(s[2], w[2 * block + j], fused(s[3], w[3 * block + j], low))
                high = fused(s[4], w[4 * block + j], s[5] * w[5 * block + j])
                high = fused(s[6], w[6 * block + j], fused(s[7], w[7 * block + j], high))
                g[j] = low + high
    for k in range(hidden // _ROWS * _ROWS, hidden):
        w = own[k * count * block :]
        for j in range(count * block):
            gates[j] = fused(state[k], w[j], gates[j])


def blocked(weights: Array, block: int, *, together: bool) -> Array:
    """Store weights [directions, gates, units, rows] in the order in which `accumulate` reads them.

    Args:
        weights: of the state.
        block: units of a part.
        together: whether all units are one part, each of whose blocks is of some of them; else each part has
            a block of each gate.
    """
    directions, gates, units, rows = weights.shape
    parts = weights.reshape(directions, gates, units // block, block, rows)
    parts = parts[:, None, 0] if together else parts.swapaxes(1, 2)
    whole = rows // _ROWS * _ROWS
    # [directions, parts, blocks, columns, rows] to [directions, parts, rows / 8, blocks, 8, columns].
    first = parts[..., :whole].reshape(*parts.shape[:4], -1, _ROWS).transpose(0, 1, 4, 2, 5, 3)
    rest = parts[..., whole:].transpose(0, 1, 4, 2, 3)
    flat = [each.reshape(*parts.shape[:2], -1) for each in (first, rest)]
    return np.concatenate(flat, 2).reshape(directions, -1)


def stored(operator: str, weights: Array, linear: bool) -> Array:
    """Store the weights [directions, gates * hidden, hidden] of an operator in the order of its steps."""
    hidden = weights.shape[2]
    parts = weights.reshape(len(weights), GATES[operator], hidden, hidden)
    # What is summed up for all units before any of them goes on is apart.
    alone = 0 if operator == "LSTM" or (operator == "GRU" and linear) else 1
    first, last = np.split(parts, [GATES[operator] - alone], 1)
    block = block_of(hidden)
    found = [blocked(part, block, together=part is last) for part in (first, last) if part.shape[1]]
    return np.concatenate(found, 1)


def block_of(hidden: int) -> int:
    """Return the units of a part: as many as the widest vectors have lanes, or all."""
    return _LANES if hidden % _LANES == 0 else hidden


def turned(number: Any, count: int, step: Any) -> Any:
    """Return a number, counted from the end in every other step.

    So what the cache nearest to the core still has of the weights is read first.
    """
    return number + (count - 1 - 2 * number) * (step & 1)


def begin(start: Any, state: Array, first: Any, size: int) -> None:
    """Set a state to the initial one, which is at an index, or to 0."""
    for j in range(size):
        state[j] = 0.0 if start is None else start[first + j]


def time_of(step: int, count: Any, backward: Any) -> Any:
    """Return which element of a sequence a step takes; those after its end are in their order."""
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


@divisible("directions", "batch")
def lstm(
    x: Array, r: Array, lengths: Any, h0: Any, c0: Any, peep: Any, y: Array, y_h: Array, y_c: Array,
    gates: Array, steps: int, batch: int, hidden: int, block: int, directions: int, backward: bool, f: Any,
    g: Any, h: Any, limit: Any,
) -> None:  # fmt: skip
    """Compute LSTM; its gates are i, o, f and c, of a part of the units at a time."""
    for d in range(directions):
        weights = r[d * hidden * 4 * hidden :]
        for b in range(batch):
            count = steps if lengths is None else int(lengths[b])
            state = y_h[(d * batch + b) * hidden :]
            begin(h0, state, (d * batch + b) * hidden, hidden)
            begin(c0, y_c[(d * batch + b) * hidden :], (d * batch + b) * hidden, hidden)
            for s in range(steps):
                t = time_of(s, count, backward or d == 1)
                out = y[((t * directions + d) * batch + b) * hidden :]
                if s < count:
                    row = x[((t * batch + b) * directions + d) * 4 * hidden :]
                    for n in range(hidden // block):
                        unit = turned(n, hidden // block, s)
                        cell = y_c[(d * batch + b) * hidden + unit * block :]
                        lstm_part(
                            row, weights, state, cell, peep, out, gates, d * 3 * hidden, hidden, unit, block,
                            s, f, g, h, limit,
                        )  # fmt: skip
                    copy(out, state, hidden)
                else:
                    zero(out, hidden)


def lstm_part(
    row: Array, weights: Array, state: Array, cell: Array, peep: Any, out: Array, gates: Array, start: Any,
    hidden: int, unit: Any, block: int, step: Any, f: Any, g: Any, h: Any, limit: Any,
) -> None:  # fmt: skip
    """Compute a step of some units of LSTM; `peep` has the weights of a direction from `start` on."""
    first = unit * block
    for k in range(4):
        copy(row[k * hidden + first :], gates[k * block :], block)
    accumulate(state, weights, gates, hidden, unit, block, 4, step)
    if peep is not None:
        look(peep[start + first :], cell, gates, block)
        look(peep[start + 2 * hidden + first :], cell, gates[2 * block :], block)
    limited(gates, 4 * block, limit)
    for j in range(block):
        cell[j] = fused(f(gates[2 * block + j]), cell[j], f(gates[j]) * g(gates[3 * block + j]))
    if peep is not None:
        look(peep[start + hidden + first :], cell, gates[block:], block)
    for j in range(block):
        out[first + j] = f(gates[block + j]) * h(cell[j])


def look(weights: Array, cell: Array, gates: Array, count: int) -> None:
    """Add what a gate sees of the cells."""
    for j in range(count):
        gates[j] = fused(weights[j], cell[j], gates[j])


@divisible("directions", "batch")
def gru(
    x: Array, r: Array, lengths: Any, h0: Any, shift: Array, y: Array, y_h: Array, gates: Array, steps: int,
    batch: int, hidden: int, block: int, directions: int, backward: bool, f: Any, g: Any, linear: bool,
    limit: Any,
) -> None:  # fmt: skip
    """Compute GRU; its gates are z, r and h, and `shift` is what is added to the last one's product."""
    for d in range(directions):
        weights = r[d * hidden * 3 * hidden :]
        added = shift[d * hidden :]
        for b in range(batch):
            count = steps if lengths is None else int(lengths[b])
            state = y_h[(d * batch + b) * hidden :]
            begin(h0, state, (d * batch + b) * hidden, hidden)
            for s in range(steps):
                t = time_of(s, count, backward or d == 1)
                out = y[((t * directions + d) * batch + b) * hidden :]
                row = x[((t * batch + b) * directions + d) * 3 * hidden :]
                if s >= count:
                    zero(out, hidden)
                elif linear:
                    for n in range(hidden // block):
                        unit = turned(n, hidden // block, s)
                        gru_part(row, weights, state, added, out, gates, hidden, unit, block, s, f, g, limit)
                    copy(out, state, hidden)
                else:
                    gru_step(row, weights, state, added, gates, hidden, block, s, f, g, limit)
                    copy(state, out, hidden)


def gru_part(
    row: Array, weights: Array, state: Array, shift: Array, out: Array, gates: Array, hidden: int, unit: Any,
    block: int, step: Any, f: Any, g: Any, limit: Any,
) -> None:  # fmt: skip
    """Compute a step of some units of GRU, whose reset gate multiplies a product."""
    first = unit * block
    last = gates[2 * block :]
    for k in range(2):
        copy(row[k * hidden + first :], gates[k * block :], block)
    copy(shift[first:], last, block)
    accumulate(state, weights, gates, hidden, unit, block, 3, step)
    limited(gates, 2 * block, limit)
    for j in range(block):
        last[j] = row[2 * hidden + first + j] + f(gates[block + j]) * last[j]
    limited(last, block, limit)
    for j in range(block):
        kept = f(gates[j])
        out[first + j] = fused(kept, state[first + j], (1.0 - kept) * g(last[j]))


def gru_step(
    row: Array, weights: Array, state: Array, shift: Array, gates: Array, hidden: int, block: int, step: Any,
    f: Any, g: Any, limit: Any,
) -> None:  # fmt: skip
    """Compute a step of GRU whose reset gate multiplies the state: its last product waits for all units."""
    update = gates[2 * hidden :]
    reset = gates[3 * hidden :]
    for n in range(hidden // block):
        unit = turned(n, hidden // block, step)
        first = unit * block
        for k in range(2):
            copy(row[k * hidden + first :], gates[k * block :], block)
        accumulate(state, weights, gates, hidden, unit, block, 2, step)
        limited(gates, 2 * block, limit)
        for j in range(block):
            update[first + j] = f(gates[j])
            reset[first + j] = f(gates[block + j]) * state[first + j]
    copy(shift, gates, hidden)
    accumulate(reset, weights[2 * hidden * hidden :], gates, hidden, 0, block, hidden // block, step)
    for j in range(hidden):
        gates[j] = row[2 * hidden + j] + gates[j]
    limited(gates, hidden, limit)
    for j in range(hidden):
        state[j] = fused(update[j], state[j], (1.0 - update[j]) * g(gates[j]))


@divisible("directions", "batch")
def rnn(
    x: Array, r: Array, lengths: Any, h0: Any, y: Array, y_h: Array, gates: Array, steps: int, batch: int,
    hidden: int, block: int, directions: int, backward: bool, f: Any, limit: Any,
) -> None:  # fmt: skip
    """Compute RNN."""
    for d in range(directions):
        for b in range(batch):
            count = steps if lengths is None else int(lengths[b])
            state = y_h[(d * batch + b) * hidden :]
            begin(h0, state, (d * batch + b) * hidden, hidden)
            for s in range(steps):
                t = time_of(s, count, backward or d == 1)
                out = y[((t * directions + d) * batch + b) * hidden :]
                if s < count:
                    copy(x[((t * batch + b) * directions + d) * hidden :], gates, hidden)
                    weights = r[d * hidden * hidden :]
                    accumulate(state, weights, gates, hidden, 0, block, hidden // block, s)
                    limited(gates, hidden, limit)
                    for j in range(hidden):
                        state[j] = f(gates[j])
                    copy(state, out, hidden)
                else:
                    zero(out, hidden)


def divide_recurrence(
    node: Node, outputs: Sequence[str], types: dict[str, TensorType], constants: dict[str, Array]
) -> Iterator[Node]:
    """Divide LSTM, GRU or RNN into a product over all steps, and the loop over them.

    Args:
        node: with the inputs of ONNX.
        outputs: its outputs, of which those that are not asked for are empty.
        types: types of tensors, to which new ones are added.
        constants: types of constants, likewise.
    """
    operator, attributes = node.operator, node.attributes
    if attributes.get("layout") or attributes.get("input_forget"):
        raise node.refuse("layout and input_forget are not covered")
    missing = [n for n in (1, 2, 3) if node.has(n) and node.inputs[n] not in constants]
    if missing:
        raise node.refuse(f"input {missing[0]} is computed, which is not covered")
    (steps, batch, inner), gates = types[node.inputs[0]].shape, GATES[operator]
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
        types[f"{name} {what}"] = TensorType(array.shape)
        return f"{name} {what}"

    def tensor(what: str) -> str:
        types[f"{name} {what}"] = TensorType((steps, batch, wide))
        return f"{name} {what}"

    product = Node(
        "MatMul", node.name, (node.inputs[0], constant("w", w.reshape(wide, inner).T)), tensor("xw")
    )
    added = Node("Add", node.name, (product.output, constant("b", start.reshape(wide))), tensor("xwb"))
    yield from (product, added)
    shapes = ((steps, directions, batch, hidden), (directions, batch, hidden), (directions, batch, hidden))
    count = 3 if operator == "LSTM" else 2
    names = [each or f"{name} unused {n}" for n, each in enumerate([*outputs, "", "", ""][:count])]
    types |= {each: TensorType(shape) for each, shape in zip(names, shapes, strict=False)}
    optional = {"lengths": 4, "h0": 5, "c0": 6, "peep": 7}
    given = {key: node.inputs[n] for key, n in optional.items() if node.has(n)}
    inputs = {"x": added.output, "r": constant("r", stored(operator, r, linear)), **given}
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


def write_recurrence(network: Network, node: Node) -> PythonKernel:
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
    constants: dict[str, Any] = {
        "steps": steps, "batch": batch, "hidden": hidden, "block": block_of(hidden), "directions": directions,
        "backward": attributes.get("direction", "forward") == "reverse", **dict(functions),
        "limit": attributes.get("clip"), **{key: None for key in optional if key not in parameters},
    }  # fmt: skip
    if operator == "GRU":
        constants["linear"] = bool(attributes.get("linear_before_reset"))
    flops = 2 * steps * batch * directions * GATES[operator] * hidden * hidden
    scratch = {"gates": ("float32", 4 * 4 * hidden)}
    return python_kernel(
        network, node, function, " ".join(parameters), "y y_h y_c", scratch, flops, **constants
    )
