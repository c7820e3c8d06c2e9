"""Running LLVM in this process: by its own shared library, or by the one inside llvmlite."""
