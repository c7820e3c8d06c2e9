"""Operators as kernels of the level `loops`."""
