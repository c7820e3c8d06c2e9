"""U-Net (Ronneberger et al. 2015): down, and up again beside what came down."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from models.blocks import convolution
from torch import Tensor, nn


class Unet(nn.Module):
    """Gives the scores of each pixel.

    Args:
        widths: channels at each size, the largest image first.
        classes: of pixels.
        resize: whether it goes up by interpolation; else by transposed convolution.
    """

    def __init__(self, widths: Sequence[int], classes: int, *, resize: bool = False) -> None:
        super().__init__()
        self.down = nn.ModuleList(_twice(c, out) for c, out in zip((3, *widths), widths, strict=False))
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.grow = nn.ModuleList(_grown(low, high, resize=resize) for low, high in pairs)
        self.up = nn.ModuleList(_twice(2 * high, high) for _, high in pairs)
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept: list[Tensor] = []
        for place, part in enumerate(self.down):
            x = part(self.pool(x) if place else x)
            kept.append(x)
        for grow, part, beside in zip(self.grow, self.up, kept[-2::-1], strict=True):
            x = part(torch.cat([beside, grow(x)], 1))
        return self.out(x)


def _twice(channels: int, out: int) -> nn.Module:
    return nn.Sequential(
        convolution(channels, out, activation=nn.ReLU()), convolution(out, out, activation=nn.ReLU())
    )


def _grown(low: int, high: int, *, resize: bool) -> nn.Module:
    if resize:
        return nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(low, high, 1))
    return nn.ConvTranspose2d(low, high, 2, 2)
