"""Portable code generator: explicit vector code for any processor that LLVM knows."""
