"""Networks without shortcuts: VGG (Simonyan and Zisserman 2015), a plain one, a dense one and an MLP."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from models.blocks import Classifier, convolution
from torch import Tensor, nn


def vgg_stages(plan: Sequence[Sequence[int]], *, normalize: bool = False) -> list[nn.Sequential]:
    """Make stages of 3x3 convolutions, each but the first after a pooling."""
    found: list[nn.Sequential] = []
    channels = 3
    for place, stage in enumerate(plan):
        layers: list[nn.Module] = [nn.MaxPool2d(2)] if place else []
        for out in stage:
            plain = nn.Sequential(nn.Conv2d(channels, out, 3, padding=1), nn.ReLU())
            layers.append(convolution(channels, out, activation=nn.ReLU()) if normalize else plain)
            channels = out
        found.append(nn.Sequential(*layers))
    return found


def vgg(plan: Sequence[Sequence[int]], side: int, dense: int, classes: int) -> nn.Module:
    """Make a VGG for images of this side."""
    inner = side >> len(plan)
    return nn.Sequential(
        *vgg_stages(plan),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(plan[-1][-1] * inner * inner, dense),
        nn.ReLU(),
        nn.Linear(dense, dense),
        nn.ReLU(),
        nn.Linear(dense, classes),
    )


def cnn(plan: Sequence[Sequence[int]], classes: int) -> nn.Module:
    """Make a plain network with batch normalization, and one dense layer."""
    return nn.Sequential(*vgg_stages(plan, normalize=True), Classifier(plan[-1][-1], classes))


def mlp(widths: Sequence[int]) -> nn.Module:
    """Make a network of dense layers."""
    layers: list[nn.Module] = []
    for given, out in pairwise(widths):
        layers += [nn.Linear(given, out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Dense(nn.Module):
    """A block whose layers see all that came before, as in DenseNet (Huang et al. 2017)."""

    def __init__(self, channels: int, growth: int, layers: int) -> None:
        super().__init__()
        given = (channels + growth * i for i in range(layers))
        self.layers = nn.ModuleList(convolution(c, growth, activation=nn.ReLU()) for c in given)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return x


def densenet(blocks: Sequence[int], growth: int, classes: int) -> nn.Module:
    """Make a network of dense blocks with poolings between."""
    channels = 2 * growth
    parts: list[nn.Module] = [convolution(3, channels, 3, 2, activation=nn.ReLU())]
    for layers in blocks:
        parts += [Dense(channels, growth, layers), nn.AvgPool2d(2)]
        channels += growth * layers
    return nn.Sequential(*parts, Classifier(channels, classes))
