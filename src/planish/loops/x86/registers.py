"""The vector registers of straight-line code, and which loaded values are in them."""

from __future__ import annotations

from collections.abc import Callable

from planish.core import TargetError
from planish.loops.x86.vectors import Loaded


class Registers:
    """Gives out registers; when they run out, a loaded value loses its own (Belady).

    Args:
        numbers: the registers that may be used.
        next_use: tells when a loaded value is used next; the farthest goes first.
    """

    def __init__(self, numbers: list[int], next_use: Callable[[Loaded], int]) -> None:
        self.free = list(reversed(numbers))
        self.pinned: set[int] = set()
        self._held: dict[int, Loaded] = {}
        self._next_use = next_use

    def take(self) -> int:
        """Take a register.

        Raises:
            TargetError: all are in use by what cannot be loaded again.
        """
        if self.free:
            return self.free.pop()
        candidates = [load for register, load in self._held.items() if register not in self.pinned]
        if not candidates:
            raise TargetError("an expression needs more vector registers than the processor has")
        self.let_go(max(candidates, key=self._next_use))
        return self.free.pop()

    def give(self, register: int) -> None:
        """Give back a register that `take` gave."""
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
        """Free the registers of all loaded values."""
        for load in list(self._held.values()):
            self.let_go(load)
