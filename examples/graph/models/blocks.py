"""What several convolutional networks are built of."""

from __future__ import annotations

from torch import Tensor, nn


def convolution(
    channels: int,
    out: int,
    kernel: int = 3,
    stride: int = 1,
    groups: int = 1,
    activation: nn.Module | None = None,
) -> nn.Sequential:
    """Make a padded convolution with a batch normalization and, where one is given, an activation."""
    layers: list[nn.Module] = [
        nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(out),
    ]
    return nn.Sequential(*layers, *([activation] if activation else []))


class Classifier(nn.Module):
    """Averages each channel, and gives a score for each class."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dense = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.dense(self.pool(x).flatten(1))
