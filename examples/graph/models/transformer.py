"""Transformers: an encoder like BERT's (Devlin et al. 2018), decoders like GPT-2's and Llama's, and ViT."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

Kind = Literal["bert", "gpt", "llama"]


@dataclass(frozen=True)
class Size:
    """How large a transformer is.

    Args:
        layers: how many.
        width: of a token's vector.
        heads: of attention.
        words: in the vocabulary.
        length: of the longest text, in tokens.
        fused: whether attention is PyTorch's one function instead of its parts.
    """

    layers: int
    width: int
    heads: int
    words: int = 30522
    length: int = 128
    fused: bool = False


class RootMeanSquare(nn.Module):
    """Normalizes by the root of the mean square, as Llama does."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Attention(nn.Module):
    """Attention of all tokens to all, or to those before."""

    mask: Tensor

    def __init__(self, size: Size, *, causal: bool, separate: bool) -> None:
        super().__init__()
        self.size, self.causal = size, causal
        count = 3 if separate else 1
        self.project = nn.ModuleList(nn.Linear(size.width, 3 // count * size.width) for _ in range(count))
        self.out = nn.Linear(size.width, size.width)
        self.register_buffer("mask", torch.ones(size.length, size.length).tril().bool(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = [part for layer in self.project for part in layer(x).split(width, -1)]
        q, k, v = (p.view(batch, length, self.size.heads, -1).transpose(1, 2) for p in parts)
        if self.size.fused:
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            if self.causal:
                scores = scores.masked_fill(~self.mask[:length, :length], -1e9)
            mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Gated(nn.Module):
    """Llama's dense block: one half gates the other."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(width, 3 * width), nn.Linear(width, 3 * width)
        self.down = nn.Linear(3 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    """Attention and a dense block, each with a residual; BERT normalizes after them, the others before."""

    def __init__(self, size: Size, kind: Kind) -> None:
        super().__init__()
        width = size.width
        self.after = kind == "bert"
        self.attention = Attention(size, causal=kind != "bert", separate=kind != "gpt")
        if kind == "llama":
            self.dense: nn.Module = Gated(width)
        else:
            gelu = nn.GELU("none" if kind == "bert" else "tanh")
            self.dense = nn.Sequential(nn.Linear(width, 4 * width), gelu, nn.Linear(4 * width, width))
        self.norms = nn.ModuleList(_norm(width, kind) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.norms
        if self.after:
            x = first(x + self.attention(x))
            return second(x + self.dense(x))
        x = x + self.attention(first(x))
        return x + self.dense(second(x))


def _norm(width: int, kind: Kind) -> nn.Module:
    return RootMeanSquare(width) if kind == "llama" else nn.LayerNorm(width)


class Bert(nn.Module):
    """An encoder that gives the beginning and the end of an answer (SQuAD)."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.words = nn.Embedding(size.words, size.width)
        self.places = nn.Embedding(size.length, size.width)
        self.types = nn.Embedding(2, size.width)
        self.norm = nn.LayerNorm(size.width)
        self.layers = nn.Sequential(*(Layer(size, "bert") for _ in range(size.layers)))
        self.answer = nn.Linear(size.width, 2)

    def forward(self, tokens: Tensor, types: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.places(places) + self.types(types)
        return self.answer(self.layers(self.norm(x)))


class Decoder(nn.Module):
    """A decoder that gives the scores of the next word at each place."""

    def __init__(self, size: Size, kind: Kind = "gpt") -> None:
        super().__init__()
        self.words = nn.Embedding(size.words, size.width)
        self.places = nn.Embedding(size.length, size.width)
        self.layers = nn.Sequential(*(Layer(size, kind) for _ in range(size.layers)), _norm(size.width, kind))
        self.out = nn.Linear(size.width, size.words, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.out(self.layers(x))


class Vision(nn.Module):
    """An encoder of an image's patches (ViT)."""

    def __init__(self, size: Size, patch: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, size.width, patch, patch)
        self.places = nn.Parameter(torch.randn(1, size.length, size.width) * 0.02)
        self.layers = nn.Sequential(*(Layer(size, "bert") for _ in range(size.layers)))
        self.out = nn.Linear(size.width, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2) + self.places
        return self.out(self.layers(x).mean(1))
