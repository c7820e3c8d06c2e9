"""ResNet (He et al. 2016): residual blocks, two convolutions or a bottleneck of three."""

from __future__ import annotations

from collections.abc import Sequence

from models.blocks import Classifier, convolution
from torch import Tensor, nn

EXPANSION = 4


class Residual(nn.Module):
    """A residual block; its output has 4 times the width where it is a bottleneck."""

    def __init__(self, channels: int, width: int, stride: int, *, bottleneck: bool) -> None:
        super().__init__()
        self.out = width * EXPANSION if bottleneck else width
        if bottleneck:
            self.branch = nn.Sequential(
                convolution(channels, width, 1, activation=nn.ReLU()),
                convolution(width, width, 3, stride, activation=nn.ReLU()),
                convolution(width, self.out, 1),
            )
        else:
            self.branch = nn.Sequential(
                convolution(channels, width, 3, stride, activation=nn.ReLU()), convolution(width, width)
            )
        same = stride == 1 and channels == self.out
        self.shortcut = nn.Identity() if same else convolution(channels, self.out, 1, stride)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.branch(x) + self.shortcut(x))


def stages(depths: Sequence[int], width: int, *, bottleneck: bool) -> tuple[list[nn.Sequential], list[int]]:
    """Make the stem and the stages of residual blocks, and tell the channels that each gives."""
    stem = nn.Sequential(convolution(3, width, 7, 2, activation=nn.ReLU()), nn.MaxPool2d(3, 2, 1))
    found, channels = [stem], [width]
    for stage, depth in enumerate(depths):
        blocks: list[nn.Module] = []
        given = channels[-1]
        for place in range(depth):
            stride = 2 if stage and not place else 1
            block = Residual(given, width << stage, stride, bottleneck=bottleneck)
            blocks.append(block)
            given = block.out
        found.append(nn.Sequential(*blocks))
        channels.append(given)
    return found, channels


def resnet(depths: Sequence[int], width: int = 64, classes: int = 1000, *, bottleneck: bool) -> nn.Module:
    """Make a ResNet: depths (3, 4, 6, 3) with bottlenecks is ResNet-50, (2, 2, 2, 2) without is ResNet-18."""
    parts, channels = stages(depths, width, bottleneck=bottleneck)
    return nn.Sequential(*parts, Classifier(channels[-1], classes))
