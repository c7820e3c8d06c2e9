"""Optimization of whole modules for size: what is inlined, and a pass list for each function."""
