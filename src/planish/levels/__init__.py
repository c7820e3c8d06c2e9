"""Levels of the compiler stack, and the registry that finds them."""
