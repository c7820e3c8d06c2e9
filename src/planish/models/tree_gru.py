"""AutoTVM's neural cost model: a TreeGRU over the loops' context vectors (section 3.1, and figure 3d).

It is trained by PyTorch, an extra; predictions are computed by NumPy alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError
from planish.core.installation import install_command
from planish.models.cost_model import Dataset, Floats, Prediction

HIDDEN = 64
"""Width of the layer that reads the memory."""

Arrays = dict[str, NDArray[Any]]
Rows = NDArray[np.intp]


def train(model: TreeGru, loops: Floats, whole: Floats, data: Dataset, margin: Floats) -> Arrays:
    """Learn, on one thread; return name to array, as `TreeGru.predict` reads them.

    Args:
        model: the settings.
        loops: (n, loops, width), scaled.
        whole: (n, width), scaled.
        data: their targets and groups.
        margin: (n,), to which the prediction is added.
    """
    torch: Any = import_module("torch")  # not everywhere installed, so it has no types here
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more are slower for networks of this size, and others measure meanwhile
    try:
        # What the user draws by torch does not depend on what is learnt here.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(model.seed % 2**31)
            return _trained(torch, model, loops, whole, data, margin)
    finally:
        torch.set_num_threads(threads)


def _trained(
    torch: Any, model: TreeGru, loops: Floats, whole: Floats, data: Dataset, margin: Floats
) -> Arrays:
    network = _Network(torch, model, loops.shape[2], whole.shape[1])
    optimizer = torch.optim.Adam(network.parameters, lr=model.rate)
    steps = model.epochs * -(-len(whole) // model.rows)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, steps)
    inputs = [torch.from_numpy(np.ascontiguousarray(each, np.float32)) for each in (loops, whole)]
    added, targets = (torch.from_numpy(each.astype(np.float32)) for each in (margin, data.targets[:, 0]))

    def expected(rows: Rows) -> Any:
        return added[rows] + network.predict(*[each[rows] for each in inputs])

    for first, second in _pairs(model, data):
        optimizer.zero_grad()
        if model.objective == "rank":
            # Equation 2: of two rows the better one is to be predicted, whatever the gap.
            wanted = torch.sign(targets[first] - targets[second])
            gap = expected(first) - expected(second)
            loss = (torch.nn.functional.softplus(-wanted * gap) * wanted.abs()).mean()
        else:
            loss = ((expected(first) - targets[first]) ** 2).mean()
        loss.backward()
        optimizer.step()
        schedule.step()
    return network.arrays()


class _Network:
    """The layers; see `TreeGru`."""

    def __init__(self, torch: Any, model: TreeGru, loop: int, whole: int) -> None:
        self.torch = torch
        self.cell = torch.nn.GRUCell(loop, model.width)
        self.scatter = torch.nn.Linear(model.width, model.slots)
        self.hidden = torch.nn.Linear(model.width * model.slots + whole, HIDDEN)
        self.out = torch.nn.Linear(HIDDEN, 1)
        layers = (self.cell, self.scatter, self.hidden, self.out)
        self.parameters = [each for layer in layers for each in layer.parameters()]

    def predict(self, loops: Any, whole: Any) -> Any:
        state = loops.new_zeros(len(loops), self.cell.hidden_size)
        memory: Any = 0
        for loop in range(loops.shape[1]):
            state = self.cell(loops[:, loop], state)
            shares = self.torch.softmax(self.scatter(state), dim=1)
            memory = memory + shares[:, :, None] * state[:, None]
        read = self.torch.cat([memory.flatten(1), whole], dim=1)
        return self.out(self.torch.relu(self.hidden(read)))[:, 0]

    def arrays(self) -> Arrays:
        named = {
            "input": self.cell.weight_ih.T,
            "input_bias": self.cell.bias_ih,
            "recurrent": self.cell.weight_hh.T,
            "recurrent_bias": self.cell.bias_hh,
            "scatter": self.scatter.weight.T,
            "scatter_bias": self.scatter.bias,
            "hidden": self.hidden.weight.T,
            "hidden_bias": self.hidden.bias,
            "out": self.out.weight.T,
            "out_bias": self.out.bias,
        }
        return {name: each.detach().numpy().copy() for name, each in named.items()}


def _pairs(model: TreeGru, data: Dataset) -> Iterator[tuple[Rows, Rows]]:
    """Yield batch after batch of rows, each with another of its group."""
    random = np.random.default_rng(model.seed)
    count = len(data.targets)
    groups = np.zeros(count, np.intp) if data.groups is None else data.groups
    order = np.argsort(groups, kind="stable")
    _, start, size = np.unique(groups[order], return_index=True, return_counts=True)
    number = np.searchsorted(np.unique(groups), groups)
    for _ in range(model.epochs):
        mixed = random.permutation(count)
        # A random other row of the group; all pairs would be n ** 2. A row that meets itself has no sign, and
        # no weight.
        partner = order[start[number] + (random.random(count) * size[number]).astype(np.intp)]
        for begin in range(0, count, model.rows):
            chosen = mixed[begin : begin + model.rows]
            yield chosen, partner[chosen]


_OF_LOOP = re.compile(r"(.*), loop (\d+)")
_LEAST = 1e-6


def can_train() -> bool:
    """Return whether PyTorch is installed."""
    return find_spec("torch") is not None


@dataclass
class TreeGru:
    """Encodes a nest from its innermost loop outward by a gated recurrent unit, and predicts one cost.

    As in figure 3d each loop is described by its context vector and not by the variables' embeddings, and
    what the unit knows after each loop is scattered, by a softmax, into memory slots that are summed over
    the loops. A last layer reads the slots, and the features of the nest as a whole, which the paper does
    not have. Loops that a shallow nest lacks have one iteration, as their features say: so nests of all
    depths are one batch.

    Args:
        objective: "rank" (equation 2, pairs of one group) or "regression".
        width: of what the unit knows.
        slots: m, of the memory.
        epochs: how often all rows are gone through.
        rows: of a step of the optimizer.
        rate: of the optimizer (Adam) at the beginning; it falls evenly.
        seed: of all randomness.
        names: of the features: those named "..., loop 3" are of that loop, 0 the innermost. Where none is
            named so, all are of one loop.

    Attributes:
        weights: name to array: what was learnt, and which columns are whose.
    """

    objective: str = "rank"
    width: int = 48
    slots: int = 8
    epochs: int = 60
    rows: int = 256
    rate: float = 4e-3
    seed: int = 0
    names: Sequence[str] = ()
    weights: dict[str, NDArray[Any]] = field(init=False, default_factory=dict[str, NDArray[Any]])

    @property
    def can_learn(self) -> bool:
        """Return whether PyTorch is installed."""
        return can_train()

    @property
    def sizes(self) -> Sequence[int]:
        """It has one: a network that is cut is another."""
        return [self.epochs]

    def sized(self, size: int) -> Self:
        """Return an unfitted model with this number of epochs."""
        return replace(self, epochs=size)

    def first(self, size: int) -> Self:
        """Return itself, its only size."""
        del size
        return self

    def fit(self, data: Dataset, margin: Floats | None = None) -> None:
        """Learn, instead of what was learnt before.

        Args:
            data: with one target.
            margin: (n,), what another model expects; it learns what is to be added to that.

        Raises:
            PlanishError: PyTorch is not installed.
        """
        if not can_train():
            raise PlanishError(
                "a TreeGRU is trained by PyTorch, which is not installed", install_command("train")
            )

        mean, deviation = data.features.mean(axis=0), data.features.std(axis=0)
        # A column that never varied gets the weight 0: nothing was learnt of it, so nothing may follow from
        # it.
        scale = np.where(deviation > _LEAST, 1 / np.maximum(deviation, _LEAST), 0)
        self.weights = {
            **_columns(self.names or [""] * data.features.shape[1]),
            "mean": mean.astype(np.float32),
            "scale": scale.astype(np.float32),
        }
        known = np.zeros(len(data.targets), np.float32) if margin is None else margin
        self.weights |= train(self, *self.split(data.features), data, known)

    def split(self, features: Floats) -> tuple[Floats, Floats]:
        """Return scaled features: (n, loops, width) of the loops, (n, width) of the nest as a whole."""
        known = self.weights
        scaled = (features - known["mean"]) * known["scale"]
        return scaled[:, known["loops"]], scaled[:, known["whole"]]

    def predict(self, features: Floats) -> Prediction:
        """Expect the cost of (n, width) features, up to a factor where only its order was learnt; (n, 1)."""
        known = self.weights
        loops, whole = self.split(features)
        state = np.zeros((len(features), known["recurrent"].shape[0]), np.float32)
        memory = np.zeros((len(features), known["scatter"].shape[1], state.shape[1]), np.float32)
        for loop in range(loops.shape[1]):
            state = _step(known, loops[:, loop], state)
            scores = state @ known["scatter"] + known["scatter_bias"]
            # Less the greatest: no exponential overflows.
            raised = np.exp(scores - scores.max(axis=1, keepdims=True))
            shares = np.asarray(raised / raised.sum(axis=1, keepdims=True), np.float32)
            memory += shares[:, :, None] * state[:, None]
        read = np.concatenate([memory.reshape(len(features), -1), whole], axis=1)
        hidden = np.maximum(read @ known["hidden"] + known["hidden_bias"], 0)
        return Prediction((hidden @ known["out"] + known["out_bias"]).astype(np.float32))

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return the fitted parameters, for a file."""
        return self.weights

    def fits(self, width: int) -> bool:
        """Return whether its arrays fit each other, and this number of features."""
        known = self.weights
        loops, whole = known["loops"], known["whole"]
        unit, slots, hidden = known["recurrent"].shape[0], known["scatter"].shape[1], known["out"].shape[0]
        shapes = {
            "mean": (width,),
            "scale": (width,),
            "input": (loops.shape[1], 3 * unit),
            "input_bias": (3 * unit,),
            "recurrent": (unit, 3 * unit),
            "recurrent_bias": (3 * unit,),
            "scatter": (unit, slots),
            "scatter_bias": (slots,),
            "hidden": (unit * slots + len(whole), hidden),
            "hidden_bias": (hidden,),
            "out": (hidden, 1),
            "out_bias": (1,),
        }
        columns = np.concatenate([loops.ravel(), whole])
        inside = 0 <= columns.min(initial=0) <= columns.max(initial=0) < width
        return bool(inside) and all(known[name].shape == shape for name, shape in shapes.items())

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make a model of what a file holds.

        Raises:
            KeyError: an array is missing, as `fits` may raise too.
        """
        made = cls()
        made.weights = dict(arrays)
        return made


def _columns(names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the columns of the whole nest, and (loops, columns) of each loop; without names, of one."""
    found: dict[int, list[int]] = {}
    for column, name in enumerate(names):
        if match := _OF_LOOP.fullmatch(name):
            found.setdefault(int(match[2]), []).append(column)
    loops = [found[loop] for loop in sorted(found)] or [list(range(len(names)))]
    inside = {column for columns in loops for column in columns} if found else set[int]()
    whole = [column for column in range(len(names)) if column not in inside]
    return {"whole": np.array(whole, np.int32), "loops": np.array(loops, np.int32)}


def _step(known: Mapping[str, NDArray[Any]], loop: Floats, state: Floats) -> Floats:
    """Go over one loop, as PyTorch's GRUCell does."""
    width = state.shape[1]
    from_loop = loop @ known["input"] + known["input_bias"]
    from_state = state @ known["recurrent"] + known["recurrent_bias"]
    reset = _sigmoid(from_loop[:, :width] + from_state[:, :width])
    keep = _sigmoid(from_loop[:, width : 2 * width] + from_state[:, width : 2 * width])
    # PyTorch resets after the product with the recurrent weights and adds both biases; the paper that
    # introduced the unit resets before it.
    new = np.tanh(from_loop[:, 2 * width :] + reset * from_state[:, 2 * width :])
    return np.asarray((1 - keep) * new + keep * state, np.float32)


def _sigmoid(x: Floats) -> Floats:
    # By tanh, which does not overflow as exp does.
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)), np.float32)
