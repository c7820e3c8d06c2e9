"""How often the body of a loop is repeated, and what goes round with a loop that counts."""

from __future__ import annotations

from planish.loops.ir.cells import Cell, position
from planish.loops.ir.extent import within
from planish.loops.ir.tree import Loop, leaves
from planish.loops.lower.virtual.scope import UNROLLED_MOST, Scopes
from planish.loops.lower.virtual.state import State

SMALL = 16
"""A loop of so few vector operations is unrolled, and a body is repeated up to so many."""
SMALL_HELD = 128
"""As `SMALL`, where registers hold the results."""
SMALL_VECTORS = 32
"""As `SMALL`, for an innermost loop."""
CHUNK = 4
"""Vectors in one iteration of a long innermost loop."""


class Unrolling:
    """Answers for one tree.

    Args:
        scopes: of the tree.
    """

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._analysis = scopes.analysis

    def moves_held(self, loop: Loop, state: State) -> bool:
        return state.held is not None and self._analysis.moves(loop, state.held.scope.held)

    def copies(self, loop: Loop, state: State, full: int) -> int:
        """How often to repeat a loop's body; `full` times, where it is to be no loop at all."""
        if full <= 1 or state.unrolling or self.moves_held(loop, state):
            return full
        inner = within(state.inside, loop.axis, loop.step)
        volume = self._analysis.volume(loop.body, inner, len(state.at) + 1)
        asked = loop.kind == "unroll"
        most = UNROLLED_MOST if asked else SMALL_HELD if state.held else SMALL
        if volume * full <= most:
            return full
        return max(1, (UNROLLED_MOST if asked else SMALL) // volume)

    def carried(self, loop: Loop, state: State) -> tuple[Cell, ...]:
        """List the held cells that a counted loop touches, counted from their homes."""
        if state.held is None:
            return ()
        scope, homes = state.held
        at = state.at
        shift = {name: position(home, at) - home.offset for name, home in homes.items()}
        found = self._scopes.cells((loop,), state.inside, at, len(at), scope)
        return tuple([c._replace(offset=c.offset - shift[c.buffer]) for c in dict.fromkeys(found)])

    def chunk(self, loop: Loop, full: int, state: State) -> int:
        """How many vectors to write in one iteration; more than `full`, where there is to be no loop."""
        volume = sum(map(self._analysis.weight, leaves(loop.body)))
        most = UNROLLED_MOST if loop.kind == "unroll" else SMALL_VECTORS
        if state.unrolling or self.moves_held(loop, state) or full * volume <= most:
            return full + 1
        parts = state.held.scope.parts if state.held else 1
        # As many as a sum has parts at least: vectors take these by turns.
        return max(parts, min(CHUNK, 64 // volume), 1)
