"""Executor whose workers are forked from this process."""

from typing import ClassVar

from planish.executors.local import LocalExecutor


class ForkedExecutor(LocalExecutor):
    """Evaluates candidates in sandboxed workers that are forked from this process.

    A fork takes some milliseconds, where a new interpreter takes 0.3 s, and has the libraries that are loaded
    here. It is for evaluators whose libraries survive a fork, as LLVM does; those that start threads, such as
    run-time systems of tensors, do not. In all else it is a `LocalExecutor`.
    """

    _forks: ClassVar[bool] = True
