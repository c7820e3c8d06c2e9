"""Searchers, each over any space that offers what it needs."""

from planish.search.factory import (
    Option,
    OptionInfo,
    OptionValue,
    SearcherInfo,
    describe_searcher,
    fitting_searchers,
    make_searcher,
    split_settings,
)
from planish.search.rounds import Costs, CostVectors, Rounds, RoundSearcher, VectorRounds, VectorRoundSearcher

__all__ = [
    "CostVectors",
    "Costs",
    "Option",
    "OptionInfo",
    "OptionValue",
    "RoundSearcher",
    "Rounds",
    "SearcherInfo",
    "VectorRoundSearcher",
    "VectorRounds",
    "describe_searcher",
    "fitting_searchers",
    "make_searcher",
    "split_settings",
]
