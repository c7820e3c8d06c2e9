"""Schedules, their rules, and the loop trees that they become."""
