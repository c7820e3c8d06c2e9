"""Networks by other authors, of `transformers`, small and with random weights: what was never looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

_TEXT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
_WORDS = _TEXT | {"vocab_size": 99, "max_position_embeddings": 32}
_IMAGE = _TEXT | {"image_size": 32, "patch_size": 8}

FAMILIES: Mapping[str, tuple[tuple[str, ...], str, dict[str, Any]]] = {
    "Bert": (("bert",), "text", _WORDS),
    "DistilBert": (
        ("bert",),
        "text",
        {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64, "vocab_size": 99},
    ),
    "Roberta": (("bert",), "text", _WORDS),
    "Electra": (("bert",), "text", _WORDS | {"embedding_size": 16}),
    "Albert": (("bert",), "text", _WORDS | {"embedding_size": 16}),
    "ViT": (("vit",), "image", _IMAGE),
    "DeiT": (("vit",), "image", _IMAGE),
    "GPT2": (
        ("gpt",),
        "text",
        {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 99, "n_positions": 32},
    ),
    "Llama": (("gpt",), "text", _WORDS | {"num_key_value_heads": 1}),
    "Mistral": (("gpt",), "text", _WORDS | {"num_key_value_heads": 1}),
    "OPT": (
        ("gpt",),
        "text",
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "ffn_dim": 64,
            "vocab_size": 99,
            "max_position_embeddings": 32,
            "word_embed_proj_dim": 32,
        },
    ),
    "GPTNeoX": (("gpt",), "text", _WORDS),
    "ResNet": (
        ("resnet",),
        "image",
        {"embedding_size": 8, "hidden_sizes": [16, 32], "depths": [2, 2], "layer_type": "bottleneck"},
    ),
    "RegNet": (
        ("resnet",),
        "image",
        {"embedding_size": 8, "hidden_sizes": [16, 32], "depths": [2, 2], "groups_width": 8},
    ),
    "MobileNetV1": (("mobilenet",), "image", {"image_size": 32, "depth_multiplier": 0.25}),
    "MobileNetV2": (("mobilenet",), "image", {"image_size": 32, "depth_multiplier": 0.25}),
    "EfficientNet": (
        ("efficientnet",),
        "image",
        {"image_size": 32, "width_coefficient": 0.25, "depth_coefficient": 0.5, "hidden_dim": 320},
    ),
}
"""The family, what it is of, what it takes, and how to make it small."""


class _First(nn.Module):
    """Gives a network's first result alone."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, given: Tensor) -> Tensor:
        return self.network(given, return_dict=False)[0]


def relatives() -> Iterator[tuple[str, tuple[str, ...], Callable[[], nn.Module], Tensor]]:
    """Give each network: its name, its classes, what makes it, and an input; nothing without transformers."""
    try:
        import transformers
    except ImportError:
        return
    for family, (classes, kind, options) in FAMILIES.items():
        given = torch.randint(3, 90, (1, 12)) if kind == "text" else torch.randn(1, 3, 32, 32)
        config: Any = getattr(transformers, f"{family}Config")
        model: Any = getattr(transformers, f"{family}Model")

        def make(config: Any = config, model: Any = model, options: dict[str, Any] = options) -> nn.Module:
            asked = config(**options, use_cache=False) if "vocab_size" in options else config(**options)
            return _First(model(asked).eval())

        yield family, classes, make, given
