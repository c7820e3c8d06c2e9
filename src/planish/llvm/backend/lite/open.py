"""Opening llvmlite's LLVM."""

from __future__ import annotations

from planish.llvm.backend.lite.reach import LIFETIME, reach
from planish.llvm.backend.lite.wheel import Wheel
from planish.llvm.backend.protocol import Backend


def open_llvmlite(wheel: Wheel, *, reduced: bool = False) -> Backend:
    """Open it: whole where that can be reached.

    Args:
        wheel: the installed llvmlite.
        reduced: use llvmlite's public interface alone, in any case.
    """
    whole = "" if reduced else reach(wheel)
    if not isinstance(whole, str):
        return whole
    # It imports llvmlite, which takes a while.
    from planish.llvm.backend.lite.reduced import ReducedBackend

    return ReducedBackend(LIFETIME)
