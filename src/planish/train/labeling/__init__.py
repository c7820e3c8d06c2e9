"""Labeling of a corpus: the best pass list of each function (thesis 4.3.2)."""
