"""The level `hlo`: StableHLO modules, whose candidates are patches: lists of edits with their repairs."""

from planish.levels.hlo.program import Program, from_jax, program_from, read_program

__all__ = ["Program", "from_jax", "program_from", "read_program"]
