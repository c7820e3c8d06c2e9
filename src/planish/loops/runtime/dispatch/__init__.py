"""Calls from Python that cost a fraction of a microsecond: machine code finds the kernel for the operands."""

from planish.loops.runtime.dispatch.table import Table

__all__ = ["Table"]
