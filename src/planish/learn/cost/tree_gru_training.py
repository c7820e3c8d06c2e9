"""Training a TreeGRU by PyTorch, an extra."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from planish.learn.cost.model import Dataset, Floats

if TYPE_CHECKING:
    from planish.learn.cost.tree_gru import TreeGru

HIDDEN = 64
"""Width of the layer that reads the memory."""

Arrays = dict[str, NDArray[Any]]
Places = NDArray[np.intp]


def train(model: TreeGru, loops: Floats, whole: Floats, data: Dataset, margin: Floats) -> Arrays:
    """Learn, on one thread; gives name to array, as `TreeGru.predict` reads them.

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
        # What the user draws by torch goes on as if nothing was learnt here.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(model.seed % 2**31)
            return _trained(torch, model, loops, whole, data, margin)
    finally:
        torch.set_num_threads(threads)


def _trained(
    torch: Any, model: TreeGru, loops: Floats, whole: Floats, data: Dataset, margin: Floats
) -> Arrays:
    network = _Network(torch, model, loops.shape[2], whole.shape[1])
    optimiser = torch.optim.Adam(network.parameters, lr=model.rate)
    steps = model.epochs * -(-len(whole) // model.rows)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, steps)
    inputs = [torch.from_numpy(np.ascontiguousarray(each, np.float32)) for each in (loops, whole)]
    added, targets = (torch.from_numpy(each.astype(np.float32)) for each in (margin, data.targets[:, 0]))

    def expected(rows: Places) -> Any:
        return added[rows] + network.predict(*[each[rows] for each in inputs])

    for first, second in _pairs(model, data):
        optimiser.zero_grad()
        if model.objective == "rank":
            # Equation 2: of two rows the better one is to be told, whatever the gap.
            wanted = torch.sign(targets[first] - targets[second])
            gap = expected(first) - expected(second)
            loss = (torch.nn.functional.softplus(-wanted * gap) * wanted.abs()).mean()
        else:
            loss = ((expected(first) - targets[first]) ** 2).mean()
        loss.backward()
        optimiser.step()
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
        for place in range(loops.shape[1]):
            state = self.cell(loops[:, place], state)
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


def _pairs(model: TreeGru, data: Dataset) -> Iterator[tuple[Places, Places]]:
    """Give batch after batch of rows, each with another of its group."""
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
