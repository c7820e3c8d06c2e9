"""The end of a run: the best few are measured again beside the baseline, and examined."""

from planish.finals.finish import finish
from planish.finals.searched import Searched

__all__ = ["Searched", "finish"]
