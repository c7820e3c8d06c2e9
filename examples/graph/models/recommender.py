"""A recommender like DLRM (Naumov et al. 2019): many tables, and products of all pairs of their rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from models.plain import mlp
from torch import Tensor, nn


class Recommender(nn.Module):
    """Scores one thing for one user.

    Args:
        rows: of each table.
        tables: how many.
        width: of a row.
        numbers: that are given beside the rows' places.
        bottom: widths of the dense layers before the products, and `top` after.
    """

    def __init__(
        self, rows: int, tables: int, width: int, numbers: int, bottom: Sequence[int], top: Sequence[int]
    ) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = mlp((numbers, *bottom, width))
        pairs = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("places", pairs[0] * (tables + 1) + pairs[1], persistent=False)
        self.top = mlp((width + pairs.shape[1], *top, 1))

    def forward(self, numbers: Tensor, kinds: Tensor) -> Tensor:
        dense = self.bottom(numbers)
        found = [table(kinds[:, place]) for place, table in enumerate(self.tables)]
        all_ = torch.stack([dense, *found], 1)
        products = (all_ @ all_.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([dense, products[:, self.places]], 1)).sigmoid()
