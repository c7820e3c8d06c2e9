"""The vector registers of straight-line code, and which loaded values are in them."""

from __future__ import annotations

from collections.abc import Sequence

from planish.core import TargetError
from planish.loops.codegen.x86.vectors import Loaded

SPARE = 3
"""Registers that are free beside one that keeps a constant."""


class NoRegisterError(TargetError):
    """All registers are in use by what cannot be loaded again."""


class Registers:
    """Gives out registers; when they run out, a loaded value loses its own (Belady).

    Args:
        count: how many registers may be used, from the first one.
        loads: the loaded values of each item; the one whose next use is farthest goes first.

    Attributes:
        now: the item that is being written.
        constants: bytes that may be wanted again to the register that has them, until it is needed.
    """

    def __init__(self, count: int, loads: Sequence[tuple[Loaded, ...]]) -> None:
        self.free = list(range(count - 1, -1, -1))
        self.pinned: set[int] = set()
        self.now = 0
        self.constants: dict[bytes, int] = {}
        self._held: dict[int, Loaded] = {}
        self._loads = loads

    def take(self) -> int:
        """Take a register.

        Raises:
            NoRegisterError: all are in use by what cannot be loaded again.
        """
        if self.free:
            return self.free.pop()
        # Constants go first: they may be wanted again, the held values will be.
        if self.constants:
            return self.constants.popitem()[1]
        candidates = [load for register, load in self._held.items() if register not in self.pinned]
        if not candidates:
            raise NoRegisterError("an expression needs more vector registers than the processor has")
        self.let_go(max(candidates, key=self._next_use))
        return self.free.pop()

    def give(self, register: int) -> None:
        """Give back a register that `take` gave."""
        self.free.append(register)

    def keep(self, register: int, data: bytes) -> None:
        """Give back a register that has a constant, which stays where there are registers enough."""
        if len(self.free) >= SPARE:
            self.constants[data] = register
        else:
            self.free.append(register)

    def hold(self, load: Loaded, register: int) -> None:
        """Note that a taken register holds a loaded value."""
        load.register = register
        self._held[register] = load

    def let_go(self, load: Loaded) -> None:
        """Free the register of a loaded value."""
        del self._held[load.register]
        self.free.append(load.register)
        load.register = -1

    def let_all_go(self) -> None:
        """Free the registers of all loaded values and constants."""
        self.free.extend(self.constants.values())
        self.constants.clear()
        for load in list(self._held.values()):
            self.let_go(load)

    def _next_use(self, load: Loaded) -> int:
        return next(n for n in range(self.now, load.last + 1) if load in self._loads[n])
