"""Optimization of whole programs for run time: a pass list for each function in which they spend it."""
