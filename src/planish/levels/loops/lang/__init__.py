"""The language: programs in Einstein notation, from their text or from Python."""
