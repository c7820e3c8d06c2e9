"""Sandbox: worker processes, what they may use and do, and how they end."""

from subprocess import DEVNULL, PIPE

from planish.sandbox.confinement import SandboxPolicy
from planish.sandbox.fork_pool import Done, ForkLimits, ForkPool, Watchdog, forked, in_child
from planish.sandbox.limits import End, Limits, LostError, ending_of, is_from_outside, loss_notes
from planish.sandbox.scratch import Scratch
from planish.sandbox.tool import ChildProcess, Ran, run_tool

__all__ = [
    "DEVNULL",
    "PIPE",
    "ChildProcess",
    "Done",
    "End",
    "ForkLimits",
    "ForkPool",
    "Limits",
    "LostError",
    "Ran",
    "SandboxPolicy",
    "Scratch",
    "Watchdog",
    "ending_of",
    "forked",
    "in_child",
    "is_from_outside",
    "loss_notes",
    "run_tool",
]
