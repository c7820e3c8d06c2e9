"""Recurrent networks: LSTM and GRU over texts."""

from __future__ import annotations

from torch import Tensor, nn


class Recurrent(nn.Module):
    """Reads a text, and gives the scores of its classes.

    Args:
        kind: nn.LSTM or nn.GRU.
        words: in the vocabulary.
        width: of a token's vector and of the state.
        layers: how many, one upon the other.
        classes: of texts.
        both: whether the text is read from its end too.
    """

    def __init__(
        self,
        kind: type[nn.LSTM] | type[nn.GRU],
        words: int,
        width: int,
        layers: int,
        classes: int,
        *,
        both: bool = False,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.states = kind(width, width, layers, batch_first=True, bidirectional=both)
        self.out = nn.Linear(width * (2 if both else 1), classes)

    def forward(self, tokens: Tensor) -> Tensor:
        states: Tensor = self.states(self.words(tokens))[0]
        return self.out(states[:, -1])
