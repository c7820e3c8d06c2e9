"""An encoder and a decoder like T5's (Raffel et al. 2020): attention with biases, and across texts."""

from __future__ import annotations

import torch
from models.transformer import RootMeanSquare, Size
from torch import Tensor, nn


class Attention(nn.Module):
    """Attention to the same text, with a bias that may hide what comes, or to another; without scaling."""

    mask: Tensor

    def __init__(self, size: Size, *, causal: bool) -> None:
        super().__init__()
        self.heads = size.heads
        self.q, self.k, self.v, self.out = (nn.Linear(size.width, size.width, bias=False) for _ in range(4))
        self.bias = nn.Parameter(torch.randn(1, size.heads, size.length, size.length) * 0.1)
        hidden = torch.zeros(size.length, size.length)
        if causal:
            hidden = torch.full((size.length, size.length), -1e9).triu(1)
        self.register_buffer("mask", hidden, persistent=False)

    def forward(self, x: Tensor, other: Tensor) -> Tensor:
        q, k, v = (
            layer(given).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer, given in ((self.q, x), (self.k, other), (self.v, other))
        )
        scores = q @ k.transpose(-2, -1)
        if x is other:
            scores = scores + self.bias + self.mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Attention, attention to the encoder's states in a decoder, and a dense block, each with a residual."""

    def __init__(self, size: Size, *, decodes: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(RootMeanSquare(size.width) for _ in range(3))
        self.own = Attention(size, causal=decodes)
        self.across = Attention(size, causal=False) if decodes else None
        width = size.width
        self.dense = nn.Sequential(
            nn.Linear(width, 4 * width, bias=False), nn.ReLU(), nn.Linear(4 * width, width, bias=False)
        )

    def forward(self, x: Tensor, states: Tensor | None = None) -> Tensor:
        given = self.norms[0](x)
        x = x + self.own(given, given)
        if self.across is not None and states is not None:
            x = x + self.across(self.norms[1](x), states)
        return x + self.dense(self.norms[2](x))


class EncoderDecoder(nn.Module):
    """Reads one text, and scores the next word at each place of another."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.words = nn.Embedding(size.words, size.width)
        self.encoder = nn.ModuleList(Layer(size, decodes=False) for _ in range(size.layers))
        self.decoder = nn.ModuleList(Layer(size, decodes=True) for _ in range(size.layers))
        self.norms = nn.ModuleList(RootMeanSquare(size.width) for _ in range(2))
        self.out = nn.Linear(size.width, size.words, bias=False)

    def forward(self, tokens: Tensor, begun: Tensor) -> Tensor:
        states, x = self.words(tokens), self.words(begun)
        for layer in self.encoder:
            states = layer(states)
        states = self.norms[0](states)
        for layer in self.decoder:
            x = layer(x, states)
        return self.out(self.norms[1](x))
