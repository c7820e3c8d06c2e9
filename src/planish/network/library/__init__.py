"""Shared libraries: assembly, linking, and use in Python."""
