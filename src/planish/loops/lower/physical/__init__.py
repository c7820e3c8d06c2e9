"""Decisions for code generators that give numbers to the vector registers themselves.

LoopNest holds the output of the largest scope that fits the register file (thesis 3.4.2, "no spilling of the
result tensor"), unrolls what writes along it, and counts the rest.
"""

from planish.loops.lower.physical.annotate import annotate

__all__ = ["annotate"]
