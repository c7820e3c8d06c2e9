"""Code generation: from a loop tree to machine code."""
