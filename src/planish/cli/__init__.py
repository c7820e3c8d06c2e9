"""The command line: `planish COMMAND`; one file for each command, and nothing heavy until one runs."""

from planish.cli.app import app, main

__all__ = ["app", "main"]
