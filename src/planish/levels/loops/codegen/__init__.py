"""From a loop tree to machine code."""
