"""Corpora of LLVM IR functions: the programs that pass lists are tuned for and policies learn from."""
