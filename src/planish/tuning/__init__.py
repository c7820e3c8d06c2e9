"""Tuning: the loop, what comes after it, and runs of many programs."""
