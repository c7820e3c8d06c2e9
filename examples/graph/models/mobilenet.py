"""MobileNetV2 and V3, EfficientNet (Sandler et al. 2018, Howard et al. 2019, Tan and Le 2019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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

B0: tuple[Stage, ...] = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 40, 2, 2),
    (6, 80, 3, 2),
    (6, 112, 3, 1),
    (6, 192, 4, 2),
    (6, 320, 1, 1),
)
"""EfficientNet's."""


@dataclass(frozen=True)
class Kind:
    """What differs between the networks of inverted residuals.

    Args:
        activation: makes what follows convolutions.
        kernel: of the depthwise ones.
        squeezes: makes what is within a squeeze, and what gates; None: there is no squeeze.
    """

    activation: Callable[[], nn.Module]
    kernel: int = 3
    squeezes: tuple[Callable[[], nn.Module], Callable[[], nn.Module]] | None = None


SECOND = Kind(nn.ReLU6)
THIRD = Kind(nn.Hardswish, 5, (nn.ReLU, nn.Hardsigmoid))
EFFICIENT = Kind(nn.SiLU, 3, (nn.SiLU, nn.Sigmoid))


class Squeeze(nn.Module):
    """Scales each channel by what the averages of all channels say (squeeze and excitation)."""

    def __init__(self, channels: int, within: nn.Module, gate: nn.Module) -> None:
        super().__init__()
        inner = max(4, channels // 4)
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, inner, 1),
            within,
            nn.Conv2d(inner, channels, 1),
            gate,
        )

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(x)


class Inverted(nn.Module):
    """An inverted residual block: a 1x1 convolution, a depthwise one, and a 1x1 one; some squeeze."""

    def __init__(self, channels: int, out: int, expansion: int, stride: int, kind: Kind) -> None:
        super().__init__()
        inner = channels * expansion
        layers: list[nn.Module] = []
        if expansion > 1:
            layers.append(convolution(channels, inner, 1, activation=kind.activation()))
        layers.append(convolution(inner, inner, kind.kernel, stride, inner, kind.activation()))
        if kind.squeezes:
            within, gate = kind.squeezes
            layers.append(Squeeze(inner, within(), gate()))
        self.layers = nn.Sequential(*layers, convolution(inner, out, 1))
        self.same = stride == 1 and channels == out

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.same else self.layers(x)


def body(plan: Sequence[Stage], stem: int, kind: Kind = SECOND) -> tuple[list[nn.Sequential], list[int]]:
    """Make the stem and the stages, and tell the channels that each gives."""
    found = [convolution(3, stem, 3, 2, activation=kind.activation())]
    channels = [stem]
    for expansion, out, repeats, stride in plan:
        blocks: list[nn.Module] = []
        given = channels[-1]
        for repeat in range(repeats):
            blocks.append(Inverted(given, out, expansion, 1 if repeat else stride, kind))
            given = out
        found.append(nn.Sequential(*blocks))
        channels.append(given)
    return found, channels


def mobilenet(
    plan: Sequence[Stage] = V2, stem: int = 32, last: int = 1280, classes: int = 1000, kind: Kind = SECOND
) -> nn.Module:
    """Make a MobileNet, the second or the third, or an EfficientNet."""
    parts, channels = body(plan, stem, kind)
    end = convolution(channels[-1], last, 1, activation=kind.activation())
    return nn.Sequential(*parts, end, Classifier(last, classes))
