"""Version of planish, below everything that writes it into a file."""

__version__ = "0.1.0"
