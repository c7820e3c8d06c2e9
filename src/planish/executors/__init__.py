"""Executors of candidates: in this process, or in sandboxed workers."""

from planish.executors.inline import InlineExecutor
from planish.executors.local import ForkedExecutor, LocalExecutor

__all__ = ["ForkedExecutor", "InlineExecutor", "LocalExecutor"]
