"""Sandbox: worker processes, what they may use and do, and how they end."""

from planish.sandbox.confinement import SandboxPolicy
from planish.sandbox.fork_pool import Done, ForkLimits, ForkPool, Watchdog, forked, in_child
from planish.sandbox.limits import (
    ExitStatus,
    Limits,
    LostError,
    describe_exit,
    is_external_signal,
    worker_loss_notes,
)
from planish.sandbox.tool import Ran, run_tool

__all__ = [
    "Done",
    "ExitStatus",
    "ForkLimits",
    "ForkPool",
    "Limits",
    "LostError",
    "Ran",
    "SandboxPolicy",
    "Watchdog",
    "describe_exit",
    "forked",
    "in_child",
    "is_external_signal",
    "run_tool",
    "worker_loss_notes",
]
