"""A detector like YOLO (Redmon et al. 2016), the fifth and later: CSP blocks, heads on three scales."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from models.blocks import convolution
from torch import Tensor, nn
from torch.nn import functional


def _unit(channels: int, out: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    return convolution(channels, out, kernel, stride, activation=nn.SiLU())


class Partial(nn.Module):
    """A cross-stage partial block: one half goes through residual convolutions, and both are joined."""

    def __init__(self, channels: int, out: int, repeats: int, *, residual: bool) -> None:
        super().__init__()
        inner = out // 2
        self.first, self.second = _unit(channels, inner, 1), _unit(channels, inner, 1)
        pairs = (nn.Sequential(_unit(inner, inner, 1), _unit(inner, inner)) for _ in range(repeats))
        self.pairs, self.residual = nn.ModuleList(pairs), residual
        self.out = _unit(2 * inner, out, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        for pair in self.pairs:
            y = y + pair(y) if self.residual else pair(y)
        return self.out(torch.cat([y, self.second(x)], 1))


class Pyramid(nn.Module):
    """Pools one feature map three times, and joins all (SPPF)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.out = _unit(channels, channels // 2, 1), _unit(2 * channels, channels, 1)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        one = self.first(x)
        two = self.pool(one)
        three = self.pool(two)
        return self.out(torch.cat([one, two, three, self.pool(three)], 1))


class Yolo(nn.Module):
    """The detector.

    Args:
        widths: channels of the stem, and of four stages, each of which halves the feature map.
        repeats: residual pairs of a stage.
        numbers: that each place of a feature map gives.
    """

    def __init__(self, widths: Sequence[int], repeats: int, numbers: int) -> None:
        super().__init__()
        stem, *rest = widths
        self.stem = _unit(3, stem, 3, 2)
        self.stages = nn.ModuleList()
        for given, out in zip(widths, rest, strict=False):
            self.stages.append(
                nn.Sequential(_unit(given, out, 3, 2), Partial(out, out, repeats, residual=True))
            )
        small, middle, large = rest[-3:]
        self.pyramid = Pyramid(large)
        self.lateral = nn.ModuleList([_unit(large, middle, 1), _unit(middle, small, 1)])
        self.up = nn.ModuleList(
            [Partial(2 * middle, middle, 1, residual=False), Partial(2 * small, small, 1, residual=False)]
        )
        self.steps = nn.ModuleList([_unit(small, small, 3, 2), _unit(middle, middle, 3, 2)])
        self.down = nn.ModuleList(
            [Partial(2 * small, middle, 1, residual=False), Partial(2 * middle, large, 1, residual=False)]
        )
        self.heads = nn.ModuleList(nn.Conv2d(width, numbers, 1) for width in (small, middle, large))

    def forward(self, images: Tensor) -> Tensor:
        x, maps = self.stem(images), list[Tensor]()
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        large = self.lateral[0](self.pyramid(maps[-1]))
        middle = self.lateral[1](self.up[0](torch.cat([_twice(large), maps[-2]], 1)))
        small = self.up[1](torch.cat([_twice(middle), maps[-3]], 1))
        joined = self.down[0](torch.cat([self.steps[0](small), middle], 1))
        end = self.down[1](torch.cat([self.steps[1](joined), large], 1))
        told = [
            head(x).flatten(2).sigmoid() for head, x in zip(self.heads, (small, joined, end), strict=True)
        ]
        return torch.cat(told, 2)


def _twice(x: Tensor) -> Tensor:
    return functional.interpolate(x, scale_factor=2.0, mode="nearest")
