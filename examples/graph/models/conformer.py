"""A Conformer (Gulati et al. 2020): attention and depthwise convolutions over the frames of speech."""

from __future__ import annotations

from models.transformer import Attention, Size
from torch import Tensor, nn


def _dense(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)
    )


class Convolution(nn.Module):
    """A gated 1x1 convolution, a depthwise one over frames, and a 1x1 one."""

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(
            nn.Conv1d(width, 2 * width, 1),
            nn.GLU(1),
            nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width),
            nn.BatchNorm1d(width),
            nn.SiLU(),
            nn.Conv1d(width, width, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(self.norm(x).transpose(1, 2)).transpose(1, 2)


class Block(nn.Module):
    """Half a dense block, attention, a convolution, and the other half."""

    def __init__(self, size: Size, kernel: int) -> None:
        super().__init__()
        self.first, self.second = _dense(size.width), _dense(size.width)
        self.norm, self.attention = nn.LayerNorm(size.width), Attention(size, causal=False, separate=True)
        self.convolution, self.end = Convolution(size.width, kernel), nn.LayerNorm(size.width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + 0.5 * self.first(x)
        x = x + self.attention(self.norm(x))
        x = x + self.convolution(x)
        return self.end(x + 0.5 * self.second(x))


class Conformer(nn.Module):
    """Reads frames of 80 bands, a quarter of them after two convolutions, and scores a letter for each."""

    def __init__(self, size: Size, kernel: int, letters: int) -> None:
        super().__init__()
        self.less = nn.Sequential(
            nn.Conv2d(1, size.width // 4, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(size.width // 4, size.width // 4, 3, 2, 1),
            nn.ReLU(),
        )
        self.project = nn.Linear(size.width // 4 * 20, size.width)
        self.blocks = nn.Sequential(*(Block(size, kernel) for _ in range(size.layers)))
        self.out = nn.Linear(size.width, letters)

    def forward(self, frames: Tensor) -> Tensor:
        x = self.less(frames.unsqueeze(1))
        x = self.project(x.permute(0, 2, 1, 3).flatten(2))
        return self.out(self.blocks(x)).log_softmax(-1)
