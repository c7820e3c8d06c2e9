"""Networks over graphs: sums over edges (Hamilton et al. 2017), products with a matrix (Kipf, Welling)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class OverEdges(nn.Module):
    """Each node of one graph adds up what its neighbors are, by a list of edges."""

    def __init__(self, widths: Sequence[int], classes: int) -> None:
        super().__init__()
        self.own = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.others = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.out = nn.Linear(widths[-1], classes)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        source, target = edges[0, 0], edges[0, 1]
        for own, others in zip(self.own, self.others, strict=True):
            messages = others(nodes).index_select(1, source)
            places = target[None, :, None].expand(messages.shape)
            summed = torch.zeros(1, nodes.shape[1], messages.shape[2]).scatter_add(1, places, messages)
            nodes = (own(nodes) + summed).relu()
        return self.out(nodes)


class ByMatrix(nn.Module):
    """Each node's neighbors are a row of a matrix, which the states are multiplied with."""

    def __init__(self, widths: Sequence[int], classes: int) -> None:
        super().__init__()
        ends = (*widths, classes)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(ends))

    def forward(self, nodes: Tensor, neighbors: Tensor) -> Tensor:
        *inner, last = self.layers
        for layer in inner:
            nodes = (neighbors @ layer(nodes)).relu()
        return neighbors @ last(nodes)
