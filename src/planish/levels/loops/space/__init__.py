"""Spaces of schedules, and the replay of a candidate to its schedule."""
