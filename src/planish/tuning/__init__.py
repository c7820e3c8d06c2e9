"""Tuning: the engine, the end of a run, its result, and runs of many programs."""
