"""A run as one HTML file: numbers by pure functions, then drawn, then written."""

from planish.report.page import write_report

__all__ = ["write_report"]
