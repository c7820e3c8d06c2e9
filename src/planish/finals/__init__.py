"""The end of a run: the best few are measured again beside the baseline, and examined."""

from planish.finals.allowance import LEAST_S
from planish.finals.finish import finish
from planish.finals.searched import Searched

__all__ = ["LEAST_S", "Searched", "finish"]
