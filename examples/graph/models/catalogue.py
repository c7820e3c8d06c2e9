"""The networks by name, each in its usual size and in a small one of the same structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from models.conformer import Conformer
from models.encoder_decoder import EncoderDecoder
from models.graph_network import ByMatrix, OverEdges
from models.recommender import Recommender
from models.recurrent import Recurrent
from models.transformer import Bert, Decoder, Size, Vision
from models.yolo import Yolo
from torch import Tensor, nn

from models import mobilenet, plain, resnet, ssd, unet

Make = Callable[[], nn.Module]


@dataclass(frozen=True)
class Network:
    """One network.

    Args:
        classes: what it is recognized as; empty for a network of no class.
        usual: makes it in the usual size.
        small: makes it small.
        inputs: name to the largest number and the shape of one example; 0 for real numbers.
        small_inputs: those of the small one.
        layered: makes it with another number of layers, where it has such an option.
    """

    classes: tuple[str, ...]
    usual: Make
    small: Make
    inputs: Mapping[str, tuple[int, tuple[int, ...]]]
    small_inputs: Mapping[str, tuple[int, tuple[int, ...]]]
    layered: Callable[[int], nn.Module] | None = None

    def examples(self, batch: int, *, small: bool) -> tuple[Tensor, ...]:
        """Draw inputs for a batch."""
        chosen = self.small_inputs if small else self.inputs
        return tuple(_drawn(most, (batch, *shape)) for most, shape in chosen.values())


def _drawn(most: int, shape: tuple[int, ...]) -> Tensor:
    return torch.randint(0, most, shape) if most else torch.randn(shape)


def _images(side: int) -> Mapping[str, tuple[int, tuple[int, ...]]]:
    return {"images": (0, (3, side, side))}


def _tokens(words: int, length: int, *, types: bool = False) -> Mapping[str, tuple[int, tuple[int, ...]]]:
    tokens = {"tokens": (words, (length,))}
    return tokens | {"types": (2, (length,))} if types else tokens


def _picture(
    classes: tuple[str, ...], usual: Make, small: Make, side: int = 224, little: int = 32
) -> Network:
    return Network(classes, usual, small, _images(side), _images(little))


def _text(kind: str, make: Callable[[Size], nn.Module], usual: Size, small: Size) -> Network:
    given = [_tokens(size.words, size.length, types=kind == "bert") for size in (usual, small)]
    return Network(
        (kind,),
        lambda: make(usual),
        lambda: make(small),
        *given,
        layered=lambda layers: make(replace(usual, layers=layers)),
    )


def _resnet(depths: tuple[int, ...], little: tuple[int, ...], *, bottleneck: bool) -> Network:
    return _picture(
        ("resnet",),
        lambda: resnet.resnet(depths, bottleneck=bottleneck),
        lambda: resnet.resnet(little, 4, 10, bottleneck=bottleneck),
    )


def _ssd_resnet(*, small: bool) -> nn.Module:
    if small:
        parts, channels = resnet.stages((1, 1, 1), 2, bottleneck=True)
        return ssd.Ssd(parts, channels, (2, 3), (16,), 4)
    parts, channels = resnet.stages((3, 4, 6), 64, bottleneck=True)
    return ssd.Ssd(parts, channels, (2, 3), (512, 512, 256, 256))


def _ssd_mobilenet(*, small: bool) -> nn.Module:
    if small:
        parts, channels = mobilenet.body(mobilenet.SMALL, 8)
        return ssd.Ssd(parts, channels, (3, 4), (16,), 4)
    parts, channels = mobilenet.body(mobilenet.V2, 32)
    return ssd.Ssd(parts, channels, (5, 7), (512, 256, 256, 128))


def _ssd_vgg(*, small: bool) -> nn.Module:
    plan = ((4,), (8,), (8, 8)) if small else ((64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3)
    parts = plain.vgg_stages(plan, normalize=True)
    channels = [stage[-1] for stage in plan]
    if small:
        return ssd.Ssd(parts, channels, (1, 2), (16,), 4)
    return ssd.Ssd(parts, channels, (3, 4), (512, 256, 256))


def _recurrent(kind: type[nn.LSTM] | type[nn.GRU], *, both: bool = False) -> Network:
    return Network(
        ("recurrent",),
        lambda: Recurrent(kind, 10000, 256, 2, 5, both=both),
        lambda: Recurrent(kind, 50, 8, 2, 3, both=both),
        _tokens(10000, 64),
        _tokens(50, 8),
    )


_SMALL = Size(layers=2, width=16, heads=2, words=60, length=12)
_VGG16 = ((64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3)

NETWORKS: Mapping[str, Network] = {
    "resnet50": _resnet((3, 4, 6, 3), (2, 1, 2), bottleneck=True),
    "resnet18": _resnet((2, 2, 2, 2), (1, 2), bottleneck=False),
    "mobilenetv2": _picture(
        ("mobilenet",), mobilenet.mobilenet, lambda: mobilenet.mobilenet(mobilenet.SMALL, 8, 32, 10)
    ),
    "ssd-resnet50": _picture(
        ("ssd", "resnet"), lambda: _ssd_resnet(small=False), lambda: _ssd_resnet(small=True), 300, 64
    ),
    "bert-4x256": _text("bert", Bert, Size(4, 256, 4), _SMALL),
    "bert-base": _text("bert", Bert, Size(12, 768, 12), replace(_SMALL, fused=True)),
    "vgg16": _picture(
        ("plain",), lambda: plain.vgg(_VGG16, 224, 4096, 1000), lambda: plain.vgg(((4,), (8, 8)), 32, 16, 10)
    ),
    "cnn": _picture(
        ("plain",),
        lambda: plain.cnn(((32,), (64,), (128,), (256,)), 100),
        lambda: plain.cnn(((4,), (8,), (8,)), 10),
        64,
    ),
    "lstm": _recurrent(nn.LSTM),
    "gru": _recurrent(nn.GRU),
    "gpt": _text("gpt", Decoder, Size(6, 384, 6, 10000), _SMALL),
    "unet": _picture(
        ("unet",),
        lambda: unet.Unet((32, 64, 128, 256, 512), 4),
        lambda: unet.Unet((4, 4, 8, 8), 2),
    ),
    "vit": Network(
        ("vit",),
        lambda: Vision(Size(6, 192, 3, 0, 196), 16, 1000),
        lambda: Vision(Size(2, 16, 2, 0, 16), 8, 10),
        _images(224),
        _images(32),
    ),
    "efficientnet": _picture(
        ("efficientnet",),
        lambda: mobilenet.mobilenet(mobilenet.B0, 32, kind=mobilenet.EFFICIENT),
        lambda: mobilenet.mobilenet(mobilenet.SMALL, 8, 32, 10, mobilenet.EFFICIENT),
    ),
    "yolo": _picture(
        ("yolo",),
        lambda: Yolo((16, 32, 64, 128, 256), 1, 85),
        lambda: Yolo((4, 8, 8, 8, 8), 1, 7),
        320,
        64,
    ),
    "conformer": Network(
        ("conformer",),
        lambda: Conformer(Size(4, 144, 4, 0, 64), 31, 128),
        lambda: Conformer(Size(2, 16, 2, 0, 8), 7, 10),
        {"frames": (0, (256, 80))},
        {"frames": (0, (32, 80))},
    ),
    "t5": Network(
        ("t5",),
        lambda: EncoderDecoder(Size(4, 256, 4, 8000, 64)),
        lambda: EncoderDecoder(_SMALL),
        {"tokens": (8000, (64,)), "begun": (8000, (64,))},
        {"tokens": (60, (12,)), "begun": (60, (12,))},
    ),
    "dlrm": Network(
        ("recommender",),
        lambda: Recommender(10000, 26, 32, 13, (512, 256), (512, 256)),
        lambda: Recommender(40, 6, 4, 5, (8,), (8,)),
        {"numbers": (0, (13,)), "kinds": (10000, (26,))},
        {"numbers": (0, (5,)), "kinds": (40, (6,))},
    ),
    "gnn": Network(
        ("graph",),
        lambda: OverEdges((128, 128, 128, 128), 16),
        lambda: OverEdges((8, 8, 8), 3),
        {"nodes": (0, (1000, 128)), "edges": (1000, (2, 5000))},
        {"nodes": (0, (12, 8)), "edges": (12, (2, 30))},
    ),
}
"""Those that the recognizer was made with."""

HELD_OUT: Mapping[str, Network] = {
    "resnet34": _resnet((3, 4, 6, 3), (2, 3, 2), bottleneck=False),
    "resnet101": _resnet((3, 4, 23, 3), (1, 3, 3), bottleneck=True),
    "mobilenetv3": _picture(
        ("mobilenet",),
        lambda: mobilenet.mobilenet(mobilenet.V3, 16, kind=mobilenet.THIRD),
        lambda: mobilenet.mobilenet(mobilenet.SMALL, 8, 32, 10, mobilenet.THIRD),
    ),
    "ssd-mobilenet": _picture(
        ("ssd", "mobilenet"), lambda: _ssd_mobilenet(small=False), lambda: _ssd_mobilenet(small=True), 300, 64
    ),
    "ssd-vgg": _picture(
        ("ssd", "plain"), lambda: _ssd_vgg(small=False), lambda: _ssd_vgg(small=True), 300, 64
    ),
    "bert-fused": _text("bert", Bert, Size(6, 768, 12, fused=True), replace(_SMALL, layers=3, fused=True)),
    "llama": _text(
        "gpt",
        lambda size: Decoder(size, "llama"),
        Size(4, 256, 8, 8000, fused=True),
        replace(_SMALL, fused=True),
    ),
    "bilstm": _recurrent(nn.LSTM, both=True),
    "unet-resize": _picture(
        ("unet",),
        lambda: unet.Unet((16, 32, 64, 128), 2, resize=True),
        lambda: unet.Unet((4, 6, 8), 2, resize=True),
    ),
    "densenet": _picture(
        (), lambda: plain.densenet((6, 12, 8), 16, 100), lambda: plain.densenet((3, 3), 4, 10)
    ),
    "gcn": Network(
        ("graph",),
        lambda: ByMatrix((256, 128, 64), 16),
        lambda: ByMatrix((8, 8, 8), 3),
        {"nodes": (0, (500, 256)), "neighbors": (0, (500, 500))},
        {"nodes": (0, (12, 8)), "neighbors": (0, (12, 12))},
    ),
    "mlp": Network(
        (),
        lambda: plain.mlp((784, 512, 256, 10)),
        lambda: plain.mlp((12, 8, 8, 4)),
        {"numbers": (0, (784,))},
        {"numbers": (0, (12,))},
    ),
}
"""Those that it had not seen: other depths, relatives, and networks of no class."""

ALL: Mapping[str, Network] = {**NETWORKS, **HELD_OUT}
