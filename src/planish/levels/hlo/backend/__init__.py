"""Compilers that run modules: XLA through jaxlib, and IREE to cross-check."""
