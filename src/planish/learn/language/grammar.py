"""Which steps may follow in a list: a finite automaton, with a table that is looked up once a step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ListGrammar:
    """Lists of one to `longest` steps, some of which come at most once, as LLVM's own pipelines do.

    A state is a number: how many steps there are, and which of the latter are among them. Where a pass may
    stand is no question for it: each is written within the managers of its own nesting.

    Args:
        tokens: how many different steps there are; the end is the token after them.
        longest: steps of the longest list.
        once: tokens that come at most once.
    """

    tokens: int
    longest: int
    once: tuple[int, ...] = ()

    @property
    def end(self) -> int:
        """The token of the end."""
        return self.tokens

    def after(self, state: int, token: int) -> int:
        """Give the state after a step; the first state is 0."""
        # The count stands above the bits of what came already, so that a step adds a whole range of them.
        return (state + self._masks) | int(self._bits[token])

    def legal(self, state: int) -> NDArray[np.bool_]:
        """Tell which tokens may follow, the end last."""
        return self._table[state]

    def repaired(self, tokens: Iterable[int]) -> tuple[int, ...]:
        """Leave out, from the left, each step that may not stand where it does, as the thesis does (6.4)."""
        state, kept = 0, list[int]()
        for token in tokens:
            if self.legal(state)[token]:
                state = self.after(state, token)
                kept.append(token)
        return tuple(kept)

    @property
    def _masks(self) -> int:
        return 1 << len(self.once)

    @cached_property
    def _bits(self) -> NDArray[np.int64]:
        bits = np.zeros(self.tokens, np.int64)
        for place, token in enumerate(self.once):
            bits[token] = 1 << place
        return bits

    @cached_property
    def _table(self) -> NDArray[np.bool_]:
        table = np.ones((self.longest + 1, self._masks, self.tokens + 1), bool)
        table[:, :, :-1] = (np.arange(self._masks)[:, None] & self._bits) == 0
        table[-1, :, :-1] = False  # full
        table[0, :, -1] = False  # nothing is no list
        return table.reshape(-1, self.tokens + 1)
