"""`numpy.einsum` as a drop-in: by a kernel tuned for the operands, or by NumPy."""

from planish.einsum.backends import contraction_of
from planish.einsum.call import BoundEinsum, FallbackWarning, einsum, kernel

__all__ = ["BoundEinsum", "FallbackWarning", "contraction_of", "einsum", "kernel"]
