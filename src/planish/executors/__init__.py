"""Executors of candidates: in this process, or in sandboxed workers."""

from planish.executors.forked import ForkedExecutor
from planish.executors.inline import InlineExecutor
from planish.executors.local import LocalExecutor

__all__ = ["ForkedExecutor", "InlineExecutor", "LocalExecutor"]
