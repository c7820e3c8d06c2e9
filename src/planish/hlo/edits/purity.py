"""Operations that may be done once where they are done twice, or earlier: they do nothing but compute."""

from planish.hlo.edits.mirror import Fact
from planish.hlo.tiling.axes import SAME_PLACE

_MORE = (
    *("bitcast_convert", "broadcast_in_dim", "cholesky", "concatenate", "constant", "convolution"),
    *("dot_general", "dynamic_slice", "dynamic_update_slice", "fft", "gather", "iota", "pad", "reduce"),
    *("reduce_window", "reshape", "reverse", "scatter", "select_and_scatter", "slice", "sort", "transpose"),
    "triangular_solve",
)
PURE = SAME_PLACE | {f"stablehlo.{name}" for name in _MORE}
"""Of the same operands they give the same, and they end; not loops, calls, or random numbers."""

FORMS = frozenset(
    f"stablehlo.{name}" for name in ("broadcast_in_dim", "constant", "iota", "reshape", "slice", "convert")
)
"""What costs next to nothing, for compilers make it where it is used."""


def is_pure(fact: Fact) -> bool:
    """Whether an operation may be shared and moved."""
    return fact.name in PURE
