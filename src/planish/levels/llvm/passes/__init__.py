"""LLVM's passes as data, lists of them as text, and the space of such lists."""
