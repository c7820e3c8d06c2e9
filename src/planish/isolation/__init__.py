"""Isolation: worker processes, what they may use and do, and how they end."""

from planish.isolation.cage import Cage
from planish.isolation.child import DEVNULL, PIPE, ChildProcess
from planish.isolation.endings import End, ending_of, is_from_outside
from planish.isolation.fork_pool import Done, ForkLimits, ForkPool, forked, in_child
from planish.isolation.guard import Answer
from planish.isolation.limits import Limits
from planish.isolation.losses import LostError, loss_notes
from planish.isolation.scratch import Scratch
from planish.isolation.tool import Ran, run_tool
from planish.isolation.watchdog import Watchdog

__all__ = [
    "DEVNULL",
    "PIPE",
    "Answer",
    "Cage",
    "ChildProcess",
    "Done",
    "End",
    "ForkLimits",
    "ForkPool",
    "Limits",
    "LostError",
    "Ran",
    "Scratch",
    "Watchdog",
    "ending_of",
    "forked",
    "in_child",
    "is_from_outside",
    "loss_notes",
    "run_tool",
]
