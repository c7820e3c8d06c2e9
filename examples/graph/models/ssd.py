"""SSD (Liu et al. 2016): boxes and classes from feature maps of several sizes, on any backbone."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from models.blocks import convolution
from torch import Tensor, nn

BOXES = 4
"""Boxes for each place of a feature map, with 4 numbers each."""


class Ssd(nn.Module):
    """A detector.

    Args:
        parts: the backbone, whose stages are run in turn.
        channels: how many each stage gives.
        used: places of the stages whose feature maps are looked at.
        extra: channels of each further stage, which halves the feature map.
        classes: of objects, with the background.
    """

    def __init__(
        self,
        parts: Sequence[nn.Module],
        channels: Sequence[int],
        used: Sequence[int],
        extra: Sequence[int],
        classes: int = 81,
    ) -> None:
        super().__init__()
        given = [*channels, *extra]
        further = [_extra(given[len(channels) - 1 + i], out) for i, out in enumerate(extra)]
        self.parts = nn.ModuleList([*parts, *further])
        self.used = [*used, *range(len(channels), len(given))]
        self.boxes = nn.ModuleList(nn.Conv2d(given[i], BOXES * 4, 3, padding=1) for i in self.used)
        self.classes = nn.ModuleList(nn.Conv2d(given[i], BOXES * classes, 3, padding=1) for i in self.used)
        self.count = classes

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        maps: list[Tensor] = []
        for place, part in enumerate(self.parts):
            x = part(x)
            if place in self.used:
                maps.append(x)
        boxes = [_rows(head(map_), 4) for head, map_ in zip(self.boxes, maps, strict=True)]
        classes = [_rows(head(map_), self.count) for head, map_ in zip(self.classes, maps, strict=True)]
        return torch.cat(boxes, 1), torch.cat(classes, 1).softmax(-1)


def _extra(channels: int, out: int) -> nn.Module:
    inner = max(4, out // 2)
    return nn.Sequential(
        convolution(channels, inner, 1, activation=nn.ReLU()),
        convolution(inner, out, 3, 2, activation=nn.ReLU()),
    )


def _rows(scores: Tensor, each: int) -> Tensor:
    """Turn N x (boxes each) x H x W into N x (H W boxes) x each."""
    return scores.permute(0, 2, 3, 1).reshape(scores.shape[0], -1, each)
