"""Sandbox: worker processes, what they may use and do, and how they end."""

from planish.sandbox.confinement import SandboxPolicy
from planish.sandbox.fork_pool import Done, ForkLimits, ForkPool, Watchdog, forked, in_child
from planish.sandbox.limits import (
    ExitStatus,
    Limits,
    describe_exit,
    is_external_signal,
)
from planish.sandbox.tool import Ran, run_tool

__all__ = [
    "Done",
    "ExitStatus",
    "ForkLimits",
    "ForkPool",
    "Limits",
    "Ran",
    "SandboxPolicy",
    "Watchdog",
    "describe_exit",
    "forked",
    "in_child",
    "is_external_signal",
    "run_tool",
]
