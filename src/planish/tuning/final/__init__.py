"""The end of a run: the best few are measured again beside the baseline, and examined."""

from planish.tuning.final.allowance import LEAST_S
from planish.tuning.final.finish import finish
from planish.tuning.final.search_outcome import SearchOutcome

__all__ = ["LEAST_S", "SearchOutcome", "finish"]
