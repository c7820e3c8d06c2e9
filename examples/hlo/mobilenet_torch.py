"""The MobileNetV2 of make_mobilenet.py in PyTorch, with batch normalization, to be trained."""

from __future__ import annotations

from collections.abc import Iterator

import make_mobilenet as module
import torch
from torch import Tensor, nn


class Depthwise(nn.Conv2d):
    """A depthwise convolution, of 32 bits where it has strides.

    With bfloat16 the gradient of one with strides takes a processor ten times as long.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  (PyTorch's name)
        """Give the convolution in the type of the input, N x channels x side x side."""
        if self.stride == (1, 1):
            return super().forward(input)
        with torch.autocast(input.device.type, enabled=False):
            return super().forward(input.float()).to(input.dtype)


class Layer(nn.Sequential):
    """A convolution, a batch normalization, and a cut to 0 to 6 unless it is the last of its block."""

    def __init__(
        self, inputs: int, outputs: int, side: int, stride: int = 1, groups: int = 1, *, cut: bool = True
    ) -> None:
        kind = nn.Conv2d if groups == 1 else Depthwise
        convolution = kind(inputs, outputs, side, stride, side // 2, groups=groups, bias=False)
        super().__init__(convolution, nn.BatchNorm2d(outputs), *([nn.ReLU6(inplace=True)] if cut else []))

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Give the kernel, and what the normalization scales and shifts by."""
        convolution, norm = self[0], self[1]
        assert isinstance(convolution, nn.Conv2d)
        assert isinstance(norm, nn.BatchNorm2d)
        assert norm.running_var is not None
        assert norm.running_mean is not None
        scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        yield "kernel", convolution.weight.permute(2, 3, 1, 0)
        yield "scale", scale
        yield "shift", norm.bias - norm.running_mean * scale


class Block(nn.Module):
    """An inverted residual block."""

    def __init__(self, block: module.Block) -> None:
        super().__init__()
        self.adds = block.stride == 1 and block.channels == block.out
        layers: dict[str, nn.Module] = {}
        if block.expanded != block.channels:
            layers["expand"] = Layer(block.channels, block.expanded, 1)
        layers["depthwise"] = Layer(block.expanded, block.expanded, 3, block.stride, block.expanded)
        layers["project"] = Layer(block.expanded, block.out, 1, cut=False)
        self.layers = nn.ModuleDict(layers)

    def forward(self, x: Tensor) -> Tensor:
        """Give what the block makes of its input."""
        y = x
        for layer in self.layers.values():
            y = layer(y)
        return x + y if self.adds else y


class MobileNet(nn.Module):
    """The network of make_mobilenet.py, with batch normalization."""

    def __init__(self) -> None:
        super().__init__()
        found = list(module.blocks())
        self.stem = Layer(3, found[0].channels, 3)
        self.blocks = nn.ModuleDict({block.name: Block(block) for block in found})
        self.last = Layer(found[-1].out, module.LAST, 1)
        self.classifier = nn.Linear(module.LAST, module.CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Give the logits of images, which are N x 3 x side x side."""
        x = self.stem(images)
        for block in self.blocks.values():
            x = block(x)
        return self.classifier(self.last(x).mean(dim=(2, 3)))

    def weights(self) -> dict[str, Tensor]:
        """Give the arguments of the module: name to values."""
        found = {
            f"{name.replace('blocks.', '').replace('layers.', '')}.{kind}": values
            for name, layer in self.named_modules()
            if isinstance(layer, Layer)
            for kind, values in layer.weights()
        }
        found |= {"classifier.weight": self.classifier.weight.T, "classifier.bias": self.classifier.bias}
        return {name: values.detach().float().cpu().contiguous() for name, values in found.items()}
