"""Scores of compiled modules: what a metric gives for their answers, and their time."""
