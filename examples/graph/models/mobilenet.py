"""MobileNetV2 and V3 (Sandler et al. 2018, Howard et al. 2019): inverted residuals around depthwise ones."""

from __future__ import annotations

from collections.abc import Sequence

from models.blocks import Classifier, convolution
from torch import Tensor, nn

Stage = tuple[int, int, int, int]

V2: tuple[Stage, ...] = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, blocks and stride of each stage."""
SMALL: tuple[Stage, ...] = ((1, 8, 1, 1), (3, 8, 2, 2), (3, 12, 2, 2), (3, 16, 2, 2))
V3: tuple[Stage, ...] = (
    (1, 16, 1, 1),
    (4, 24, 2, 2),
    (3, 40, 3, 2),
    (6, 80, 4, 2),
    (6, 112, 2, 1),
    (6, 160, 3, 2),
)


class Squeeze(nn.Module):
    """Scales each channel by what the averages of all channels say (squeeze and excitation)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = max(4, channels // 4)
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, inner, 1),
            nn.ReLU(),
            nn.Conv2d(inner, channels, 1),
            nn.Hardsigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(x)


class Inverted(nn.Module):
    """An inverted residual block: a 1x1 convolution, a depthwise one, and a 1x1 one; V3 squeezes."""

    def __init__(self, channels: int, out: int, expansion: int, stride: int, *, third: bool) -> None:
        super().__init__()
        inner = channels * expansion
        layers: list[nn.Module] = []
        if expansion > 1:
            layers.append(convolution(channels, inner, 1, activation=_activation(third)))
        kernel = 5 if third else 3
        layers.append(convolution(inner, inner, kernel, stride, inner, _activation(third)))
        if third:
            layers.append(Squeeze(inner))
        self.layers = nn.Sequential(*layers, convolution(inner, out, 1))
        self.same = stride == 1 and channels == out

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.same else self.layers(x)


def _activation(third: bool) -> nn.Module:
    return nn.Hardswish() if third else nn.ReLU6()


def body(plan: Sequence[Stage], stem: int, *, third: bool = False) -> tuple[list[nn.Sequential], list[int]]:
    """Make the stem and the stages, and tell the channels that each gives."""
    found = [convolution(3, stem, 3, 2, activation=_activation(third))]
    channels = [stem]
    for expansion, out, repeats, stride in plan:
        blocks: list[nn.Module] = []
        given = channels[-1]
        for repeat in range(repeats):
            blocks.append(Inverted(given, out, expansion, 1 if repeat else stride, third=third))
            given = out
        found.append(nn.Sequential(*blocks))
        channels.append(given)
    return found, channels


def mobilenet(
    plan: Sequence[Stage] = V2, stem: int = 32, last: int = 1280, classes: int = 1000, *, third: bool = False
) -> nn.Module:
    """Make a MobileNet, the second or the third."""
    parts, channels = body(plan, stem, third=third)
    end = convolution(channels[-1], last, 1, activation=_activation(third))
    return nn.Sequential(*parts, end, Classifier(last, classes))
