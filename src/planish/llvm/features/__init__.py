"""Feature vectors of LLVM IR."""
