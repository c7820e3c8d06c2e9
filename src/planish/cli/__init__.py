"""The command line: `planish COMMAND`; one file for each command, and nothing heavy until one runs."""
