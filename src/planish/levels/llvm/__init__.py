"""The level `llvm`: LLVM IR, whose candidates are pass lists."""
