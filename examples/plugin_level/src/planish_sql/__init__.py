"""Indexes that make an SQLite query fast: a level for planish."""
