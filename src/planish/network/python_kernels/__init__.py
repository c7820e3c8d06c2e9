"""Operators as functions in a subset of Python, which LLVM compiles."""
