"""`numpy.einsum` as a drop-in: by a kernel tuned for the operands, or by NumPy."""

from planish.einsum.bound import BoundEinsum, kernel
from planish.einsum.call import FallbackWarning, einsum
from planish.einsum.contraction import contraction_of

__all__ = ["BoundEinsum", "FallbackWarning", "contraction_of", "einsum", "kernel"]
