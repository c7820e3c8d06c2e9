"""Decisions for code generators whose values have names, and are given registers later.

What is held is a set of cells: each vector or scalar of memory that a part of the tree touches has a name.
Loops that move cells are unrolled, so that each copy has names of its own.
"""

from planish.loops.lower.virtual.annotate import annotate

__all__ = ["annotate"]
