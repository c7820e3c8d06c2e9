"""Sandbox: worker processes, what they may use and do, and how they end."""

from planish.sandbox.confinement import SandboxPolicy
from planish.sandbox.limits import (
    ExitStatus,
    Limits,
    describe_exit,
    is_external_signal,
)

__all__ = [
    "ExitStatus",
    "Limits",
    "SandboxPolicy",
    "describe_exit",
    "is_external_signal",
]
